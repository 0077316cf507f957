package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/transfer"
)

func backupCommand() *cobra.Command {
	s := newSettings()
	var force, record bool
	var into backupFolder
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Copy a SQLite database while the server runs",
		Long: `Backup writes a consistent snapshot of the database to FILE, checks it for damage
and makes it readable by its owner only. Writers aren't blocked. FILE gets its name
only when all of it is on the disk, so a file of that name is a complete backup.

With - it goes to standard output, to be encrypted and sent elsewhere. It is sent
once it is complete, and until then takes as much disk beside the database as the
database has. "doorward restore" refuses a backup that was cut off.

It holds what the database holds: addresses, names, the audit trail and hashes of
passwords, but no credential that works by itself. The master key is not in it: keep a
copy of its file elsewhere. The time of the backup is recorded in the database, for the
metric and alert of the last backup's age.

With --into the file is named after the time, read again and verified once it is on the
disk, and only then recorded; the newest --keep stay, older ones are deleted. The
doorward-backup.timer of the Debian package runs this every night.

PostgreSQL is backed up by its own programs; docs/operations.md says how. Run
"doorward backup --record" when they have succeeded, to record that.`,
		Example: "  doorward backup /var/backups/doorward.db\n  doorward backup --force --config /etc/doorward/doorward.yaml /var/backups/doorward.db\n  doorward backup --into /var/backups/doorward --keep 7 --config /etc/doorward/doorward.yaml\n  doorward backup - | gzip > doorward.db.gz\n  doorward backup --record --config /etc/doorward/doorward.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := s.read(cmd)
			if err != nil {
				return err
			}
			if record {
				const unknown = "" // where the other program has put it
				return recordBackup(cmd.Context(), cfg, unknown)
			}
			if into.path != "" {
				if err := into.check(); err != nil {
					return err
				}
				return into.run(cmd, cfg)
			}
			if err := checkBackupTarget(args[0], force); err != nil {
				return err
			}
			return takeBackup(cmd, cfg, args[0], func() error { return nil })
		},
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		noFile := record || into.path != ""
		return fileArgUnless(&noFile)(cmd, args)
	}
	s.registerBase(cmd.Flags())
	hideFlags(cmd, "base-url", "listen")
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE")
	cmd.Flags().BoolVar(&record, "record", false, "only record that another program has just taken a backup")
	cmd.Flags().StringVar(&into.path, "into", "", "write to a new file in this `FOLDER`, verify it, and delete the oldest there")
	cmd.Flags().IntVar(&into.keep, "keep", 7, "how many backups --into keeps")
	cmd.AddCommand(showingProgress(backupVerifyCommand()))
	return checkFirst(refuseTogether(refuseTogether(cmd, "into", "record"), "into", "force"), func() error {
		if cmd.Flags().Changed("keep") && into.path == "" {
			return usageError("--keep: it counts the backups in the folder of --into, which is missing.")
		}
		return nil
	})
}

func backupVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", Short: "Check that a backup is what was written",
		Long: `Verify reads a backup, or standard input with -, and changes nothing. It compares
the checksum at its end, has SQLite check pages, indexes and references, and walks
the chains of the audit trail. Faults go to stderr, and the exit code is 1.

The checksum finds what a disk or a transfer did to the file. It doesn't show who
wrote it: somebody who can write to a backup can recompute it.`,
		Example: "  doorward backup verify /var/backups/doorward.db\n  doorward backup verify - < /var/backups/doorward.db",
		Args:    oneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := verifyBackup(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printVerified(cmd.OutOrStdout(), cmd.ErrOrStderr(), displayName(args[0]), v)
		},
	}
}

func verifyBackup(ctx context.Context, file string) (node.VerifiedBackup, error) {
	switch {
	case file != piped:
		return node.VerifyBackup(ctx, file)
	case isatty.IsTerminal(os.Stdin.Fd()):
		return node.VerifiedBackup{}, errTyped("backup verify")
	}
	return node.VerifyBackupFrom(ctx, os.Stdin)
}

func printVerified(out, stderr io.Writer, file string, v node.VerifiedBackup) error {
	if v.Tampered > 0 {
		return notDone("%s: its audit trail was tampered with, in %d places or more. To see where, restore it with --accept-damage and run \"doorward audit verify\".", file, v.Tampered)
	}
	warnUnverified(stderr, file, v.Info)
	const trail = "Its audit trail is intact."
	if !v.Verified {
		fmt.Fprintf(out, "%s is a complete database. %s\n", file, trail)
		return nil
	}
	fmt.Fprintf(out, "%s is what was written at %s, %d bytes, SHA-256 %s. %s\n", file, v.Taken.Format(time.RFC3339), v.Bytes, v.SHA256, trail)
	return nil
}

// errTyped refuses to read a backup from a terminal.
func errTyped(command string) error {
	return usageError("a backup can't be typed. Pipe it in, as in \"gunzip -c FILE | doorward %s -\", or name a FILE.", command)
}

// warnUnverified warns of a backup whose checksum is wrong or missing.
func warnUnverified(stderr io.Writer, file string, info transfer.Info) {
	switch {
	case info.ChecksumWrong:
		fmt.Fprintf(stderr, "doorward: the checksum of %s is wrong or missing, so it was changed after it was written. SQLite can read it; nothing more is known.\n", file)
	case !info.Verified:
		fmt.Fprintf(stderr, "doorward: %s has no checksum, because an older Doorward or another program made it: changed bytes that SQLite doesn't notice can't be found.\n", file)
	}
}

// displayName returns FILE as messages name it: for "-" it is /dev/stdin.
func displayName(file string) string {
	if file == piped {
		return os.Stdin.Name()
	}
	return file
}

// fileArgUnless accepts one FILE, or no argument if the flag is set.
func fileArgUnless(flag *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if *flag && len(args) > 0 {
			return usageError("%q is one word too many; with this flag there is no FILE.", args[0])
		}
		if *flag {
			return nil
		}
		return oneArg("FILE")(cmd, args)
	}
}

// takeBackup writes the backup, calls verify, and records the backup if verify returns nil. A
// backup that can't be recorded is still good, so that is a warning.
func takeBackup(cmd *cobra.Command, cfg node.Config, file string, verify func() error) error {
	db, err := store.OpenExisting(cmd.Context(), cfg.Database, cfg.Clock)
	if err != nil {
		return err
	}
	err = backup(cmd, db, file)
	if err := errors.Join(err, db.Close()); err != nil {
		return explainPostgreSQL(err, "pg_dump or pg_basebackup, and then \"doorward backup --record\"")
	}
	if err := verify(); err != nil {
		return err
	}
	destination := ""
	if file != piped {
		destination, _ = filepath.Abs(file) // for people to read
	}
	err = recordBackup(cmd.Context(), cfg, destination)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "doorward: the backup is complete, but its time could not be recorded: %s\n", cause(err))
	}
	return nil
}

// recordBackup notes in the database that a backup was completed now.
func recordBackup(ctx context.Context, cfg node.Config, destination string) (err error) {
	cfg.Migrate = false
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return n.App.Installation.BackedUp(ctx, n.Operator(), destination)
}

// piped stands for standard input or output in place of FILE.
const piped = "-"

// checkBackupTarget returns nil when a backup may be written there.
func checkBackupTarget(file string, force bool) error {
	if file == piped {
		if isatty.IsTerminal(os.Stdout.Fd()) {
			return usageError("a backup can't be shown on a terminal. Pipe it, as in \"doorward backup - | gzip > FILE\", or name a FILE.")
		}
		return nil
	}
	if _, err := os.Stat(file); err == nil && !force {
		return notDone("%s already exists.\n  Name another file, or replace it with --force.", file)
	}
	return nil
}

func backup(cmd *cobra.Command, db *store.DB, file string) error {
	if file == piped {
		return backupToPipe(cmd, db)
	}
	if err := transfer.Backup(cmd.Context(), db, file); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Backed up to %s and checked.\n", file)
	if state, err := masterkey.ReadState(cmd.Context(), db.Read()); err == nil && state.Current != "" { // an older schema has no keys
		fmt.Fprintf(cmd.OutOrStdout(), "The master key %s is not in it: keep a copy of its file elsewhere.\n", state.Current)
	}
	return nil
}

// backupToPipe prints nothing when it is done: the pipe holds the backup alone, and a
// nightly job that succeeds is silent.
func backupToPipe(cmd *cobra.Command, db *store.DB) error {
	signal.Ignore(syscall.SIGPIPE) // so that a broken pipe is reported instead of ending the process
	out := &counter{to: os.Stdout}
	err := transfer.BackupTo(cmd.Context(), db, out)
	if info, e := os.Stdout.Stat(); err == nil && e == nil && info.Mode().IsRegular() {
		err = os.Stdout.Sync()
	}
	if err = errors.Join(err, os.Stdout.Close()); err != nil && out.written > 0 {
		return notDone("the backup was cut off after %d bytes and can't be used: %w", out.written, err)
	}
	return err
}

// counter counts the bytes written through it.
type counter struct {
	to      io.Writer
	written int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.written += int64(n)
	return n, err
}

// explainPostgreSQL replaces transfer.ErrOwnTools by an error that names the programs to use.
func explainPostgreSQL(err error, programs string) error {
	if errors.Is(err, transfer.ErrOwnTools) {
		return usageError("This command can't copy PostgreSQL. Use %s; docs/operations.md says how.", programs)
	}
	return err
}

func restoreCommand() *cobra.Command {
	s := newSettings()
	var o node.RestoreOptions
	finish := false
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Set a SQLite database back to a backup",
		Long: `Restore replaces the database with FILE, brings its schema up to date, and keeps the
previous database in a file beside it. Stop all servers on it first. The replacement
is atomic. With - the backup comes from standard input. A backup whose checksum is
wrong, or whose audit trail was tampered with, is refused.

Sessions that were ended since the backup would become valid again, and so would
links in mails that were used or revoked since. So all sessions and links end: people
must sign in again, and invitations have to be sent again from their list. All
known browsers are forgotten, since some may have been removed since.
API keys of tenants, service keys and webhooks are disabled, since some may have been
revoked or deleted since; they are listed. An administrator of the tenant can enable
those that are still wanted, "doorward key enable-service" does it for service keys, and
"doorward webhook enable" for the installation's webhooks. Connections, by which people of
a tenant sign in at its own provider, are disabled and listed, too, for its OWNERs to enable.
Restore checks that the master key's file fits the backup.

Other changes since the backup are lost and have to be repeated; restore lists
them, suspensions and new passwords first. Operator keys that were revoked since
stay revoked, and are listed.

With --finish there is no FILE: it only ends sessions, links and known browsers, and
disables keys, webhooks and connections, in a database that another program has restored, such as
pg_restore or a snapshot. Stop all servers on it first. It can't know which operator
keys were revoked since, so it lists all valid ones.`,
		Example: `  doorward restore /var/backups/doorward.db
  doorward restore --force --keep-sessions /var/backups/doorward.db
  doorward restore --force - < /var/backups/doorward.db
  doorward restore --finish --database postgres://doorward@db/doorward`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := s.read(cmd)
			if err != nil {
				return err
			}
			if finish {
				return finishRestore(cmd, cfg, o)
			}
			restored, err := restore(cmd.Context(), cfg, args[0], o)
			if err != nil {
				return restoreError(err)
			}
			printRestored(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], restored)
			warnKeyMissing(cmd.ErrOrStderr(), cfg, restored.MasterKey)
			return nil
		},
	}
	cmd.Args = fileArgUnless(&finish)
	s.registerBase(cmd.Flags())
	s.register(cmd.Flags(), node.GroupSeal)
	hideFlags(cmd, "base-url", "listen")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace the database that is there")
	cmd.Flags().BoolVar(&o.AcceptDamage, "accept-damage", false, "restore a backup although its checksum is wrong or its audit trail was tampered with")
	cmd.Flags().BoolVar(&finish, "finish", false, "only end sessions, links and known browsers, in a database that another program has restored")
	cmd.Flags().BoolVar(&o.Keep.Sessions, "keep-sessions", false, "keep the sessions in the backup valid, also those that were ended since")
	cmd.Flags().BoolVar(&o.Keep.Links, "keep-links", false, "keep the links in mails valid, also those that were used or revoked since")
	cmd.Flags().BoolVar(&o.Keep.Keys, "keep-keys", false, "keep the API keys of tenants, the service keys and the webhooks in the backup active, also those that were revoked or deleted since")
	cmd.Flags().BoolVar(&o.Keep.Connections, "keep-connections", false, "keep the connections of tenants in the backup active, also those that were disabled or deleted since")
	return cmd
}

func restore(ctx context.Context, cfg node.Config, file string, o node.RestoreOptions) (node.Restored, error) {
	switch {
	case file != piped:
		return node.Restore(ctx, cfg, file, o)
	case isatty.IsTerminal(os.Stdin.Fd()):
		return node.Restored{}, errTyped("restore")
	}
	return node.RestoreFrom(ctx, cfg, os.Stdin, o)
}

func finishRestore(cmd *cobra.Command, cfg node.Config, o node.RestoreOptions) error {
	if o.Force || o.AcceptDamage {
		return usageError("--finish takes nothing from a backup, so --force and --accept-damage have no meaning with it.")
	}
	ended, keys, fit, err := node.FinishRestore(cmd.Context(), cfg, o.Keep)
	if err != nil {
		return restoreError(err)
	}
	warnKeyMissing(cmd.ErrOrStderr(), cfg, fit)
	fmt.Fprintf(cmd.OutOrStdout(), "Finished. Sessions ended: %d. Links ended: %d.\n", ended.Sessions, ended.Links)
	printAPIKeys(cmd.OutOrStdout(), ended.Keys)
	printServiceKeys(cmd.OutOrStdout(), ended.ServiceKeys)
	printWebhooks(cmd.OutOrStdout(), ended.Webhooks)
	printConnections(cmd.OutOrStdout(), ended.Connections)
	printKeys(cmd.OutOrStdout(), "Valid operator keys, including any that were revoked since the backup:", keys)
	return nil
}

// printKeys lists operator keys by id and name, under a heading.
func printKeys(out io.Writer, heading string, keys []store.OperatorKey) {
	if len(keys) == 0 {
		return
	}
	fmt.Fprintln(out, heading)
	for _, k := range keys {
		fmt.Fprintf(out, "  %s  %s\n", k.ID, k.Name)
	}
}

// printAPIKeys lists keys that were disabled, by id, name and tenant.
func printAPIKeys(out io.Writer, keys []store.KeyName) {
	if len(keys) == 0 {
		return
	}
	fmt.Fprintln(out, "API keys that were disabled. Enable those that are still wanted, in the console or with PATCH /api/v2/api-keys/{id}:")
	for _, k := range keys {
		fmt.Fprintf(out, "  %s  %s  %s\n", k.ID, k.Name, k.TenantID)
	}
}

// printServiceKeys lists keys that were disabled, by id and name.
func printServiceKeys(out io.Writer, keys []doorward.ServiceKey) {
	if len(keys) == 0 {
		return
	}
	fmt.Fprintln(out, "Service keys that were disabled. Enable those that are still wanted with \"doorward key enable-service ID\":")
	for _, k := range keys {
		fmt.Fprintf(out, "  %s  %s\n", k.ID, k.Name)
	}
}

// printWebhooks lists webhooks that were disabled, by id and tenant.
func printWebhooks(out io.Writer, hooks []store.WebhookName) {
	if len(hooks) == 0 {
		return
	}
	fmt.Fprintln(out, "Webhooks that were disabled. Enable those that are still wanted, in the console or with PATCH /api/v2/webhooks/{id}, the installation's with \"doorward webhook enable ID\":")
	for _, h := range hooks {
		fmt.Fprintf(out, "  %s  %s\n", h.ID, cmp.Or(h.TenantID, "installation"))
	}
}

// printConnections lists connections that were disabled, by id and tenant.
func printConnections(out io.Writer, connections []store.ConnectionName) {
	if len(connections) == 0 {
		return
	}
	fmt.Fprintln(out, "Connections that were disabled. OWNERs enable those that are still wanted, with PATCH /api/v2/sso/connections/{id}:")
	for _, c := range connections {
		fmt.Fprintf(out, "  %s  %s\n", c.ID, c.TenantID)
	}
}

// restoreError says what to do about a failed restore.
func restoreError(err error) error {
	switch {
	case errors.Is(err, transfer.ErrInUse):
		return notDone("a program has the database open. Stop every server and command that uses it, then try again. Nothing has changed.")
	case errors.Is(err, transfer.ErrRestoring):
		return notDone("another restore is under way in that folder. Wait until it ends, and look at what it has restored. Nothing has changed.")
	case errors.Is(err, node.ErrAlive):
		return notDone("a server runs on the database. Stop every server that uses it, then try again. Nothing has changed.")
	case errors.Is(err, transfer.ErrChecksum), errors.Is(err, node.ErrTampered):
		return notDone("%s.\n  Use another backup. If there is none, restore this one with --accept-damage. Nothing has changed.", plain(err))
	case errors.Is(err, node.ErrOverwrites):
		return notDone("%s.\n  With --force it is replaced, and kept in a file beside it.", plain(err))
	}
	return explainPostgreSQL(err, "pg_restore, and then \"doorward restore --finish\"")
}

func printRestored(out, stderr io.Writer, file string, r node.Restored) {
	file = displayName(file)
	warnUnverified(stderr, file, r.Backup)
	fmt.Fprintf(out, "Restored from %s. Sessions ended: %d. Links ended: %d.\n", file, r.Ended.Sessions, r.Ended.Links)
	if r.ReplacedFile != "" {
		fmt.Fprintf(out, "The previous database is in %s.\n", r.ReplacedFile)
	}
	if len(r.Undone) > 0 {
		fmt.Fprintf(out, "Changes since the backup, now lost:\n")
	}
	for _, action := range lockoutsFirst(r.Undone) {
		fmt.Fprintf(out, "  %-20s %d\n", action, r.Undone[action])
	}
	printAPIKeys(out, r.Ended.Keys)
	printServiceKeys(out, r.Ended.ServiceKeys)
	printWebhooks(out, r.Ended.Webhooks)
	printConnections(out, r.Ended.Connections)
	printKeys(out, "Operator keys that were revoked since the backup, and stay revoked:", r.KeysRevoked)
	printKeys(out, "Operator keys that are valid and may have been revoked since the backup. Revoke those again with \"doorward key revoke-operator\":", r.KeysUnknown)
	if r.Tampered > 0 {
		fmt.Fprintf(stderr, "doorward: the audit trail in the backup was tampered with; \"doorward audit verify\" shows where.\n")
	}
}

// lockouts are actions that take access away. If they are lost, people and keys have
// that access again, so they are listed first.
var lockouts = []doorward.Action{
	doorward.UserSuspend, doorward.UserRemove, doorward.UserRole, doorward.PasswordReset, doorward.PasswordChange,
	doorward.InvitationRevoke, doorward.APIKeyRevoke, doorward.APIKeyLeak, doorward.TenantFreeze, doorward.TenantClose,
	doorward.UserLeave, doorward.AccountErase, doorward.RoleUpdate, doorward.RoleDelete, doorward.PolicyUpdate,
}

func lockoutsFirst(done map[doorward.Action]int) []doorward.Action {
	var all []doorward.Action
	for action := range done {
		all = append(all, action)
	}
	rank := func(a doorward.Action) int {
		if i := slices.Index(lockouts, a); i >= 0 {
			return i
		}
		return len(lockouts)
	}
	slices.SortFunc(all, func(a, b doorward.Action) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
	return all
}
