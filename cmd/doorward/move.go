package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/transfer"
)

func moveCommand() *cobra.Command {
	s := newSettings()
	var from, to string
	force := false
	cmd := &cobra.Command{
		Use: "move --from DATABASE --to DATABASE", Short: "Copy an installation into another database",
		Long: `Move copies everything from one database into another, empty one, from SQLite to
PostgreSQL or back. It compares the rows and content of each table, and the chains of
the audit trail. It copies everything or nothing. Sessions stay valid.

Stop the servers first: what they write during the copy would be lost. Then start them
with the new --database and the same master key, whose file move checks. The old
database stays unchanged; don't serve from it again.

Keep a password off the command line: pgx reads PGPASSWORD and ~/.pgpass.`,
		Example: "  doorward move --from sqlite:doorward.db --to postgres://doorward@db/doorward", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, d := range []struct{ flag, dsn string }{{"from", from}, {"to", to}} {
				if err := store.CheckDSN(d.dsn); err != nil {
					return usageError("--%s: %s.", d.flag, plain(err))
				}
			}
			if store.SameDatabase(from, to) {
				return usageError("--from and --to are the same database.")
			}
			s.cfg.Database = to // so that read checks this, not the default or the flag --database
			cfg, err := s.read(cmd)
			if err != nil {
				return err
			}
			cfg.Database = to // also if the environment or the file sets another one
			moved, tampered, fit, err := node.Move(cmd.Context(), cfg, from, force)
			if err != nil {
				return moveError(err)
			}
			warnKeyMissing(cmd.ErrOrStderr(), cfg, fit)
			return printMoved(cmd.OutOrStdout(), moved, tampered)
		},
	}
	s.registerBase(cmd.Flags())
	s.register(cmd.Flags(), node.GroupSeal)
	hideFlags(cmd, "base-url", "listen", "database")
	cmd.Flags().StringVar(&from, "from", "", "`URL` of the database that is copied")
	cmd.Flags().StringVar(&to, "to", "", "`URL` of the empty database that it is copied to")
	cmd.Flags().BoolVar(&force, "force", false, "copy although a server runs on it; what it writes during the copy is lost")
	return requireFlags(cmd, "from", "to")
}

// moveError says what to do about a failed move.
func moveError(err error) error {
	switch {
	case errors.Is(err, node.ErrAlive):
		return notDone("a server runs on the database of --from. Stop it, then try again. Nothing is moved.")
	case errors.Is(err, transfer.ErrNotEmpty):
		return notDone("--to: %s.\n  If an earlier move has filled it, set --database of the servers to it. Else name a new one; nothing is moved.", plain(err))
	}
	return err
}

func printMoved(out io.Writer, moved []transfer.MovedTable, tampered int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TABLE\tROWS\tCONTENT")
	for _, m := range moved {
		fmt.Fprintf(w, "%s\t%d\t%s\n", m.Table, m.Rows, m.Digest)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if tampered > 0 {
		return notDone("everything was copied unchanged, but the audit trail was tampered with. \"doorward audit verify\" shows where.")
	}
	fmt.Fprintln(out, "Moved. Every table was copied unchanged, and the audit trail is intact.")
	return nil
}
