package storetest

import "strings"

// Patiently repeats a write while another process has the SQLite file: on a busy machine that may be for
// longer than a request waits, which is a test of its own.
func Patiently(write func() error) error {
	for {
		if err := write(); err == nil || !strings.Contains(err.Error(), "SQLITE_BUSY") {
			return err
		}
	}
}
