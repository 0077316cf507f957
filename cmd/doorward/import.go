package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/node"
)

func userImportCommand() *cobra.Command {
	var tenant, format string
	var dryRun bool
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "import FILE --tenant TENANT-ID", Short: "Import people from another system, with their passwords",
		Long: `Import makes everybody in FILE a member of a tenant, or nobody if any row has a
fault. Every fault is reported with its line.

FILE is CSV, whose first line names its columns, or JSON lines with one object per
line; "-" is standard input. It has email, role (OWNER, ADMIN, USER, VIEWER) and
optionally name, status (active, suspended) and passwordHash: bcrypt, scrypt,
PBKDF2 or Argon2id. People sign in with their existing password; those without a
hash set one with "forgot password". People who already have an account here keep
its password. No mail is sent.

Limits: 100,000 people, 64 MiB, 16 KiB a row. On SQLite nobody can sign in while
an import writes, about a second for each 10,000 people: import at a quiet time,
or split the file.`,
		Example: `  doorward user import people.csv --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --dry-run
  doorward user import people.csv --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae
  doorward user import - --format jsonl --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae < people.jsonl`,
		Args: oneArg("FILE"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		list, err := readList(cmd.InOrStdin(), args[0], format)
		if err != nil {
			return err
		}
		imported, err := n.App.Users.Import(cmd.Context(), n.Operator(), tenant, list, dryRun)
		if err != nil {
			return printListFaults(cmd.ErrOrStderr(), args[0], err)
		}
		printImported(cmd.OutOrStdout(), args[0], imported, dryRun)
		return nil
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`id` of the tenant to import into")
	cmd.Flags().StringVar(&format, "format", "", "csv or jsonl (default by the end of the file's name)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "try the import and roll it back")
	completeWith(cmd, "format", "csv", "jsonl")
	cmd.ValidArgsFunction = cobra.FixedCompletions([]string{"csv", "jsonl", "ndjson"}, cobra.ShellCompDirectiveFilterFileExt)
	return requireFlags(cmd, "tenant")
}

// readList reads and checks the file with this name, or stdin for "-".
func readList(stdin io.Reader, name, format string) (roster.List, error) {
	f, err := formatOf(name, format)
	if err != nil {
		return roster.List{}, err
	}
	if name == "-" {
		return roster.Read(stdin, f)
	}
	file, err := os.Open(name)
	if err != nil {
		return roster.List{}, err
	}
	defer file.Close()
	return roster.Read(file, f)
}

func formatOf(name, format string) (roster.Format, error) {
	switch f := roster.Format(format); f {
	case roster.CSV, roster.JSONLines:
		return f, nil
	case "":
	default:
		return "", usageError("--format: the formats are csv and jsonl.")
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return roster.CSV, nil
	case ".jsonl", ".ndjson":
		return roster.JSONLines, nil
	}
	return "", usageError("the name %s doesn't say how the file is written. Add --format csv or --format jsonl.", name)
}

// printListFaults prints a line for each fault, in the form that editors jump to, and
// returns the error for the command.
func printListFaults(w io.Writer, file string, err error) error {
	var refused *roster.Error
	if !errors.As(err, &refused) {
		return err
	}
	for _, f := range refused.Faults.Listed {
		where := fmt.Sprintf("%s:%d:", file, f.Line)
		if f.Line == 0 {
			where = file + ":"
		}
		if f.Column != "" {
			where += " " + f.Column + ":"
		}
		fmt.Fprintf(w, "%s %s (%s)\n", where, f.Message, f.Code)
	}
	if refused.More > 0 {
		fmt.Fprintf(w, "%s: and %d more\n", file, refused.More)
	}
	return fmt.Errorf("nobody was imported: %w", err)
}

// maxNotes is how many people who keep their password are listed.
const maxNotes = 100

func printImported(w io.Writer, file string, imported user.Imported, dryRun bool) {
	for _, p := range imported.PasswordKept[:min(len(imported.PasswordKept), maxNotes)] {
		fmt.Fprintf(w, "%s:%d: %s already has an account, which keeps its password if it has one; the hash is ignored.\n", file, p.Line, p.Email)
	}
	if more := len(imported.PasswordKept) - maxNotes; more > 0 {
		fmt.Fprintf(w, "%s: and %d more who already have an account\n", file, more)
	}
	verb := "Imported"
	if dryRun {
		verb = "Dry run, nothing was changed. Would have imported"
	}
	fmt.Fprintf(w, "%s: %d. New accounts: %d, without a password: %d. Invitations revoked: %d.\n",
		verb, imported.Members, imported.Accounts, imported.WithoutPassword, imported.Invitations)
}

func tenantExportCommand() *cobra.Command {
	var output string
	var people, hashes bool
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "export TENANT-ID", Short: "Write all data of a tenant as JSON",
		Long: `Export writes a tenant as one JSON document: its settings, people, invitations and
audit trail, as one consistent snapshot. It holds no tokens and no sessions; see
docs/import.md for its format. The server keeps running.

With --people-only it writes only the people, as JSON lines that "doorward user
import" accepts. With --with-password-hashes it includes the password hashes, so
that people can sign in elsewhere with the same password: protect that file like
the database. The audit trail records each export, and whether it had hashes.`,
		Example: `  doorward tenant export tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --output acme.json
  doorward tenant export tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --people-only --with-password-hashes --output acme.jsonl`,
		Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		n.App.Inbox.RecordPending(cmd.Context()) // so that recent refusals are in the trail
		write := n.App.Tenants.Export
		if people {
			write = n.App.Tenants.ExportPeople
		}
		return writeTo(output, cmd.OutOrStdout(), func(w io.Writer) error {
			return write(cmd.Context(), n.Operator(), args[0], hashes, w)
		})
	})
	cmd.Flags().StringVar(&output, "output", "", "`FILE` to write, readable by its owner only (default standard output)")
	cmd.Flags().BoolVar(&people, "people-only", false, "write only the people, as JSON lines for \"doorward user import\"")
	cmd.Flags().BoolVar(&hashes, "with-password-hashes", false, "write the password hashes too")
	return cmd
}

// writeTo calls write with a file that only its owner can read, as replaceFile does;
// without a name, with standard output.
func writeTo(name string, stdout io.Writer, write func(io.Writer) error) error {
	if name == "" {
		return write(stdout)
	}
	return replaceFile(name, 0o600, write)
}

// replaceFile writes to a temporary file and renames it to name when it is complete.
func replaceFile(name string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	if err := errors.Join(write(file), file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
