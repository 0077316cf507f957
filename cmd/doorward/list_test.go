package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestRowsArePrintedWhileTheyAreRead: a long list holds few rows, and its first ones are printed while later
// ones are read.
func TestRowsArePrintedWhileTheyAreRead(t *testing.T) {
	var out bytes.Buffer
	l := listing[int]{head: []string{"N"}, row: func(n int) []string { return []string{fmt.Sprint(n)} }}
	rows := func(yield func(int, error) bool) {
		for n := range 10*rowsAtOnce + 1 {
			if missing := n - strings.Count(out.String(), "\n"); missing > rowsAtOnce {
				t.Fatalf("%d rows were read, and %d of them not printed", n, missing)
			}
			if !yield(n, nil) {
				return
			}
		}
		yield(0, errors.New("the database is gone"))
	}
	for limit, want := range map[int]struct {
		lines int
		more  bool
	}{
		1:                 {2, true},
		rowsAtOnce:        {rowsAtOnce + 1, true},
		10*rowsAtOnce + 1: {10*rowsAtOnce + 2, false},
		0:                 {10*rowsAtOnce + 2, false},
	} {
		out.Reset()
		more, err := l.printEach(&out, rows, limit)
		if got := strings.Count(out.String(), "\n"); got != want.lines || more != want.more || strings.Count(out.String(), "N") != 1 {
			t.Errorf("limit %d: %d lines, more %v: want %v", limit, got, more, want)
		}
		if isFailed := err != nil; isFailed != !more {
			t.Errorf("limit %d: the error is %v", limit, err)
		}
	}
}
