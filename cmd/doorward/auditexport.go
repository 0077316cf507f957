package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/node"
)

func auditExportCommand() *cobra.Command {
	e, tenant, all := &export{}, "", false
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use:   "export",
		Short: "Write the audit trail as JSON lines, and go on as it grows",
		Long: `Export writes a line of JSON for each event, the oldest first: those of all tenants
and of the installation, or of one of them. With --follow it goes on with new events
within a second, and waits while the database is away, until it is stopped.

--state FILE keeps the place up to which lines were written, so that the next run goes
on there. It is written after the lines. A run that is killed in between writes some
lines again: recognise them by their id. Without the file the place is printed on stderr
at the end, for --after.`,
		Example: "  doorward audit export --follow --state /var/lib/doorward/shipped | vector\n  doorward audit export --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae > trail.jsonl", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		e.scope = audit.Scope{TenantID: strings.TrimPrefix(tenant, installation), All: tenant == ""}
		e.trail, e.out, e.log = n.App.Audit, cmd.OutOrStdout(), cmd.ErrOrStderr()
		return e.run(cmd.Context())
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`id` of the only tenant to export, or \""+installation+"\"")
	cmd.Flags().BoolVar(&all, "all", false, "export all tenants and the installation (the default)")
	cmd.Flags().BoolVar(&e.follow, "follow", false, "go on with new events until stopped")
	cmd.Flags().StringVar(&e.after, "after", "", "`place` to begin after, as an earlier run has printed; with --tenant the number of an event")
	cmd.Flags().StringVar(&e.state, "state", "", "`file` that keeps the place")
	return refuseEmpty(refuseTogether(cmd, "tenant", "all"), "tenant", "state")
}

// export is one run of audit export.
type export struct {
	scope        audit.Scope
	follow       bool
	after, state string
	trail        *audit.Trail
	out, log     io.Writer
	place        audit.Cursor // after the last line written
	saved        audit.Cursor // in the state file
}

const (
	exportEvery    = time.Second      // between reads of a trail that has no more events
	exportRetryMax = 30 * time.Second // at most between tries while the database doesn't answer
)

func (e *export) run(ctx context.Context) error {
	if err := e.begin(); err != nil {
		return err
	}
	if e.place == "" && !e.follow { // else it isn't known how many come
		if err := e.trail.Begin(ctx, audit.Exporting, e.scope); err != nil {
			return err
		}
	}
	err := e.loop(ctx)
	// After an error the place is worth printing only if lines were written.
	if e.state == "" && e.place != "" && (err == nil || e.place != audit.Cursor(e.after)) {
		fmt.Fprintf(e.log, "The next run goes on with --after %s\n", e.place)
	}
	return err
}

// begin sets the place from which the export goes on.
func (e *export) begin() error {
	e.place = audit.Cursor(e.after)
	if e.state == "" {
		return nil
	}
	text, err := os.ReadFile(e.state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usageError("--state: %w", err)
	case e.after != "":
		return usageError("--after: the file of --state exists. Remove one of the two.")
	}
	e.place = audit.Cursor(strings.TrimSpace(string(text)))
	e.saved = e.place
	return nil
}

func (e *export) loop(ctx context.Context) error {
	for pause := exportEvery; ; {
		more, err := e.writeNext(ctx)
		switch {
		case ctx.Err() != nil && (err == nil || doorward.HasCode(err, doorward.CodeUnavailable)):
			return nil // stopped: between two batches, or while the database was read
		case err != nil && !(e.follow && doorward.HasCode(err, doorward.CodeUnavailable)):
			return err
		case err != nil:
			fmt.Fprintf(e.log, "The database doesn't answer; trying again in %v: %v\n", pause, err)
		case !more && !e.follow:
			return nil
		case more:
			continue
		default:
			pause = exportEvery
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if err != nil {
			pause = min(2*pause, exportRetryMax)
		}
	}
}

// writeNext writes the next events, and reports whether there were any.
func (e *export) writeNext(ctx context.Context) (more bool, err error) {
	events, next, err := e.trail.Export(ctx, e.scope, e.place)
	if err != nil {
		return false, err
	}
	var lines []byte
	for _, event := range events {
		if lines, err = audit.AppendLine(lines, event); err != nil {
			return false, err
		}
	}
	if _, err := e.out.Write(lines); err != nil {
		return false, err
	}
	e.place = next
	return len(events) > 0, e.saveState()
}

// saveState writes the state file, complete or not at all.
func (e *export) saveState() error {
	if e.state == "" || e.place == e.saved {
		return nil
	}
	e.saved = e.place
	return replaceFile(e.state, 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, e.place)
		return err
	})
}
