package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
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

// pages completes cmd, which then prints the rows that fetch returns while it reads them, so that it holds few,
// and stops after --limit of them.
func (l *listing[T]) pages(cmd *cobra.Command, fetch func(context.Context, *node.Node) iter.Seq2[T, error]) *cobra.Command {
	limit := 0
	cmd.Args = noArgs
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		more, err := l.printEach(cmd.OutOrStdout(), fetch(cmd.Context(), n), limit)
		if more {
			fmt.Fprintf(cmd.ErrOrStderr(), "There are more rows than %d. Narrow the list, or name a larger --limit.\n", limit)
		}
		return err
	})
	cmd.Flags().IntVar(&limit, "limit", 0, "how many rows at most; 0: all")
	l.addJSONFlag(cmd)
	return checkFirst(cmd, func() error { return checkLimit(limit) })
}

func checkLimit(limit int) error {
	if limit < 0 {
		return usageError("--limit: write 0 or more.")
	}
	return nil
}

// rowsAtOnce is how many rows of a long list are printed at once. The columns of a table are aligned among them.
const rowsAtOnce = 200

// printEach prints the rows, at most limit of them unless that is 0, and reports whether there are more.
func (l *listing[T]) printEach(out io.Writer, rows iter.Seq2[T, error], limit int) (more bool, err error) {
	one, printed := *l, 0 // a copy, since the head is printed once
	var some []T
	flush := func() error {
		defer func() { one.head, some = nil, some[:0] }()
		printed += len(some)
		return one.print(out, some)
	}
	for row, err := range rows {
		if err != nil {
			if len(some) > 0 {
				err = errors.Join(flush(), err)
			}
			return false, err
		}
		if more = limit > 0 && printed+len(some) == limit; more {
			break
		}
		if some = append(some, row); len(some) == rowsAtOnce {
			if err := flush(); err != nil {
				return false, err
			}
		}
	}
	return more, flush()
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
	w := bufio.NewWriter(out)
	write := l.printTable
	if l.asJSON {
		write = l.printJSON
	}
	return errors.Join(write(w, all), w.Flush())
}

func (l *listing[T]) printTable(out io.Writer, all []T) error {
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

// counted returns the number before a text about one, or about several.
func counted[N int | int64](n N, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", several)
}
