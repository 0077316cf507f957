// Package cputime measures the work of a test by the CPU time of its process, which doesn't
// grow on a busy machine as the time on the clock does.
package cputime

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Used returns the CPU time that the process has used, in user and system mode. The
// difference of two calls also counts tests that run in parallel.
func Used(tb testing.TB) time.Duration {
	tb.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
