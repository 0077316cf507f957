package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

func keyCreateMasterCommand() *cobra.Command {
	return &cobra.Command{
		Use: "create-master FILE", Short: "Create a master key in a new file",
		Long: `Create-master writes a new master key to FILE, which must not exist yet, readable by
its owner only. Servers read it with --master-key-file; it seals in the database what
must be readable again. Keep a copy apart from the backups of the database: without
the key, what it seals is lost.

With SQLite this isn't needed: the server makes its key beside the database.`,
		Example: "  doorward key create-master /etc/doorward/master.key", Args: oneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := seal.Create(args[0])
			if err != nil {
				return notDone("%s.", plain(err))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The master key %s is in %s. Keep a copy of the file, apart from the backups.\n", key.ID(), args[0])
			return nil
		},
	}
}

func keyRotateMasterCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "rotate-master OLD NEW", Short: "Seal everything with another master key, while servers run",
		Long: `Rotate-master replaces the master key in the file OLD by the one in the file NEW, and
seals again with it what is sealed in the database. It makes NEW if there is no such
file. Servers keep running: the database holds the new key, sealed with the old
one, until every server has it in its file. If it was interrupted, run it again.

Then put NEW in the place of OLD for every server, by a rename. Servers read it within
a minute; until all of them have, a server can still be restarted with OLD. Keep OLD
as long as you keep backups from before.`,
		Example: "  doorward key rotate-master /etc/doorward/master.key /etc/doorward/master.new", Args: twoArgs("OLD", "NEW"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		return rotateMaster(cmd.Context(), cmd.OutOrStdout(), n, args[0], args[1])
	})
}

func rotateMaster(ctx context.Context, out io.Writer, n *node.Node, oldFile, newFile string) error {
	old, err := masterkey.File{Path: oldFile}.Read()
	if err != nil {
		return usageError("%s", plain(err))
	}
	next, err := masterkey.File{Path: newFile, Optional: true}.Read()
	if err != nil {
		return usageError("%s", plain(err))
	}
	isNew := next.IsZero()
	if isNew {
		if next, err = seal.Create(newFile); err != nil {
			return notDone("%s.", plain(err))
		}
	}
	if old.ID() == next.ID() {
		return usageError("%s and %s hold the same key.", oldFile, newFile)
	}
	// The ids of the keys that running servers have in their files.
	inFiles, err := lease.PublishedValues(ctx, n.DB, app.MasterKeySetting)
	if err != nil {
		return err
	}
	sealed, err := n.App.MasterKey.Rotate(ctx, n.Operator(), old, next, inFiles)
	if err != nil {
		if isNew && refusedRotation(err) {
			_ = os.Remove(newFile) // an unused key, which somebody might take for the new one
		}
		return rotateError(err, sealed)
	}
	fmt.Fprintf(out, "The key %s replaces %s. Values sealed again: %d.\nNow put %s in the place of %s for every server, by a rename.\n", next.ID(), old.ID(), sealed, newFile, oldFile)
	return nil
}

// refusedRotation reports whether the rotation has changed nothing, and NEW is not in use.
func refusedRotation(err error) bool {
	wrong, unfinished := (*masterkey.WrongKeyError)(nil), (*masterkey.UnfinishedError)(nil)
	return errors.As(err, &wrong) || errors.As(err, &unfinished)
}

// rotateError says what to do about a failed rotation.
func rotateError(err error, sealed int) error {
	var wrong *masterkey.WrongKeyError
	var unfinished *masterkey.UnfinishedError
	switch {
	case errors.As(err, &wrong):
		return notDone("the database is sealed with the key %s, and OLD holds the key %s. Nothing has changed.", wrong.Needed, wrong.File)
	case errors.As(err, &unfinished):
		return notDone("%s. Servers read it within a minute. Nothing has changed.", plain(err))
	case sealed > 0:
		return fmt.Errorf("%w\n  %d values are sealed with the new key. Run the command again to finish it", err, sealed)
	}
	return err
}

// warnKeyMissing warns if a copied database needs a master key whose file isn't there.
func warnKeyMissing(stderr io.Writer, cfg node.Config, fit masterkey.Fit) {
	if fit.Needed == "" || fit.InFile != "" {
		return
	}
	where := "name its file with --master-key-file"
	if path := cfg.KeyFile().Path; path != "" {
		where = "put its file at " + path
	}
	fmt.Fprintf(stderr, "doorward: the database is sealed with the master key %s: %s before a server starts.\n", fit.Needed, where)
}

// checkMasterKey compares the key file with the database.
func checkMasterKey(ctx context.Context, db *store.DB, cfg node.Config) (f finding) {
	f = finding{check: "master key", code: exitConfig}
	fit, err := masterkey.CheckFile(ctx, db.Read(), cfg.KeyFile())
	wrong := (*masterkey.FileError)(nil)
	switch {
	case errors.As(err, &wrong):
		f.wrong, f.remedy = cause(err), "Put the right file there, or name it with --master-key-file."
		return f
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
		return f
	case fit.Needed != "" && fit.InFile == "":
		f.wrong = fmt.Sprintf("the database is sealed with the key %s, and there is no file of it: what needs it is refused", fit.Needed)
		f.remedy = "Put the file back, or name it with --master-key-file. If it is lost: \"doorward key replace-master\"."
		return f
	case fit.Needed == "":
		f.code, f.fine = 0, "none used yet; \"doorward key create-master\" and --master-key-file set one"
		if cfg.KeyFile().Optional {
			f.fine = "none used yet; the server makes it beside the database"
		}
		return f
	}
	return checkRotation(ctx, db, fit)
}

// checkRotation reports whether a replacement of the master key is finished.
func checkRotation(ctx context.Context, db *store.DB, fit masterkey.Fit) finding {
	f := finding{check: "master key", fine: "the file holds the key " + fit.InFile + ", which fits"}
	state, err := masterkey.ReadState(ctx, db.Read())
	switch {
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
	case state.Remaining > 0 && state.Previous == "":
		f.wrong, f.code = fmt.Sprintf("%d values or more are sealed with a key that was lost", state.Remaining), exitFailed
		f.remedy = "Run \"doorward key replace-master\" again, with the key that it has made: it was interrupted."
	case state.Remaining > 0:
		f.wrong, f.code = fmt.Sprintf("%d values or more are still sealed with the key %s", state.Remaining, state.Previous), exitFailed
		f.remedy = "Run \"doorward key rotate-master\" again: it was interrupted."
	case fit.InFile != fit.Needed:
		f.fine = fmt.Sprintf("the file holds the key %s, which %s has replaced: put that key's file in its place", fit.InFile, fit.Needed)
	case state.Previous != "":
		f.fine += "; the key before it is kept until every server has this one"
	}
	return f
}
