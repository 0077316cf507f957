// Package logtest stores the output of programs, so that a test can read it while
// they run.
package logtest

import (
	"bytes"
	"sync"
)

// Journal is a log that several goroutines write and read. The zero value is
// empty.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is all that was written so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
