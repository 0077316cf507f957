//go:build !linux

package node

// descriptorLimit is known on Linux only, where servers run.
func descriptorLimit() uint64 { return 0 }
