//go:build !linux

package store

// freeBytes is known on Linux only, where servers run.
func freeBytes(string) (n int64, known bool) { return 0, false }
