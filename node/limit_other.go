//go:build !linux

package node

// descriptorLimit returns 0: the limit is read on Linux only, where servers run.
func descriptorLimit() uint64 { return 0 }
