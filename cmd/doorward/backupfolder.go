package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
)

// backupFolder holds the newest backups: "doorward backup --into", which a timer runs.
type backupFolder struct {
	path string
	keep int // how many backups stay
}

// The names of the backups in a folder, whose order is that of their times. Files with other
// names stay.
const (
	backupPattern = "doorward-????????T??????Z.db"
	backupLayout  = "doorward-20060102T150405Z.db"
)

func (f backupFolder) check() error {
	if f.keep < 1 {
		return usageError("--keep: keep at least one backup.")
	}
	if info, err := os.Stat(f.path); err != nil || !info.IsDir() {
		return notDone("--into: there is no folder %s.", f.path)
	}
	return nil
}

// run writes a backup, reads it again, records it, and only then deletes the oldest ones: if
// writing or verifying fails, every earlier backup is still there, and the recorded time is
// that of the last one that was verified.
func (f backupFolder) run(cmd *cobra.Command, cfg node.Config) error {
	file := filepath.Join(f.path, time.Now().UTC().Format(backupLayout))
	const force = false
	if err := checkBackupTarget(file, force); err != nil {
		return err
	}
	verify := func() error {
		v, err := verifyBackup(cmd.Context(), file)
		if err == nil {
			err = printVerified(cmd.OutOrStdout(), cmd.ErrOrStderr(), file, v)
		}
		if err != nil { // it must not count as one of those to keep
			return errors.Join(err, os.Rename(file, file+".damaged"))
		}
		return nil
	}
	if err := takeBackup(cmd, cfg, file, verify); err != nil {
		return err
	}
	return f.deleteOldest(cmd)
}

func (f backupFolder) deleteOldest(cmd *cobra.Command) error {
	all, err := fs.Glob(os.DirFS(f.path), backupPattern) // of the folder alone: its name may have a [
	if err != nil {
		return err
	}
	slices.Sort(all)
	for _, name := range all[:max(0, len(all)-f.keep)] {
		old := filepath.Join(f.path, name)
		if err := os.Remove(old); err != nil {
			return notDone("the backup is complete, but an old one could not be deleted: %w", err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Deleted %s.\n", old)
	}
	return nil
}
