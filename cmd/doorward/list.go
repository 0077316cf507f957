package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
)

// listing prints rows as a table or, with --json, as one JSON object per line with the
// names of the API.
type listing[T any] struct {
	asJSON bool
	head   []string
	row    func(T) []string
	object func(T) any
}

func (l *listing[T]) addJSONFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print one JSON object per line, with the names of the API")
}

// command completes cmd, which then lists what fetch returns.
func (l *listing[T]) command(cmd *cobra.Command, fetch func(context.Context, *node.Node) ([]T, error)) *cobra.Command {
	cmd.Args = noArgs
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		all, err := fetch(cmd.Context(), n)
		if err != nil {
			return err
		}
		return l.print(cmd.OutOrStdout(), all)
	})
	l.addJSONFlag(cmd)
	return cmd
}

func (l *listing[T]) print(out io.Writer, all []T) error {
	if l.asJSON {
		return l.printJSON(out, all)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if l.head != nil { // nil: the rows go on after others
		fmt.Fprintln(w, strings.Join(l.head, "\t"))
	}
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
