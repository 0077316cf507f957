package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// listing prints rows as a table or, with --json, as one JSON object per line with the
// names of the API.
type listing[T any] struct {
	asJSON bool
	head   []string
	row    func(T) []string
	object func(T) any
}

func (l *listing[T]) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print one JSON object per line, with the names of the API")
}

func (l *listing[T]) print(out io.Writer, all []T) error {
	if l.asJSON {
		return l.printJSON(out, all)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(l.head, "\t"))
	for _, v := range all {
		fmt.Fprintln(w, strings.Join(l.row(v), "\t"))
	}
	return w.Flush()
}

func (l *listing[T]) printJSON(out io.Writer, all []T) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false) // it goes to a program, and to people who look for "A & B"
	for _, v := range all {
		if err := e.Encode(l.object(v)); err != nil {
			return err
		}
	}
	return nil
}

// day formats a date for a table.
func day(t time.Time) string { return t.Format(time.DateOnly) }
