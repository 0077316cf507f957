package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/node"
)

func passwordsCommand() *cobra.Command {
	return group("passwords", "Make a filter of a list of breached passwords", passwordsBuildCommand())
}

func passwordsBuildCommand() *cobra.Command {
	output, falsePositives := "", 1e-4
	cmd := &cobra.Command{
		Use: "build FILE", Short: "Make a filter of a list of passwords, for --password-list",
		Long: `Build reads a list of any length and writes a filter, which a server with
--password-list loads in place of the list. FILE has one entry a line: a password in
UTF-8, or the SHA-1 hash of one, as the lists of "Pwned Passwords" have them, with or
without a colon and a number behind it. Lines that can't be passwords are left out and
counted. FILE is read twice, so it can't be a pipe.

A filter refuses every password on the list, and some others: with the default at most
one in 10,000, who are told that their password is in common use and choose another
one. It takes 22 bits an entry for that, on the disk and in the memory of each server,
and 17 for one in 1,000. Letter case is ignored, except for hashes: they are of one
spelling.

The filter gets its name only when all of it is on the disk, and replaces an earlier
one of that name. Servers load it when they start, and refuse a damaged one.`,
		Example: `  doorward passwords build breached.txt
  doorward passwords build breached.txt --max-false-positives 0.001 --output /etc/doorward/passwords.filter`,
		Args: oneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(falsePositives >= commonpw.MinFalsePositives && falsePositives <= commonpw.MaxFalsePositives) { // true for NaN, too
				return usageError("--max-false-positives: it must be %g to %g.", commonpw.MinFalsePositives, commonpw.MaxFalsePositives)
			}
			if output == "" {
				output = args[0] + ".filter"
			}
			return buildFilter(cmd.Context(), cmd.OutOrStdout(), args[0], output, falsePositives)
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "`FILE` to write (default the name of the list and .filter)")
	cmd.Flags().Float64Var(&falsePositives, "max-false-positives", falsePositives, "`share` of the passwords not on the list that is refused, at most")
	return cmd
}

func buildFilter(ctx context.Context, out io.Writer, list, output string, falsePositives float64) error {
	if err := checkFiles(list, output); err != nil {
		return err
	}
	file, err := os.Open(list)
	if err != nil {
		return usageError("%s", describeUnreadable(list, err))
	}
	defer file.Close()
	built, err := commonpw.Build(interruptible{file, ctx}, falsePositives)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return notDone("%s: %s.", list, plain(err))
	}
	if err := replaceFile(output, 0o644, built.Save); err != nil {
		return notDone("%s.", plain(err))
	}
	fmt.Fprintf(out, "%s is %s. Name it with --password-list.\n", output, describeList(built.List))
	if built.LeftOut > 0 {
		fmt.Fprintf(out, "Lines that can't be passwords, and were left out: %d.\n", built.LeftOut)
	}
	return nil
}

// checkFiles refuses a list that is a filter or isn't a regular file, and an output that
// would replace something other than a filter.
func checkFiles(list, output string) error {
	switch info, err := os.Stat(list); {
	case err != nil:
		return usageError("%s", describeUnreadable(list, err))
	case !info.Mode().IsRegular():
		return usageError("%s is not a file. It is read twice, so it can't be a pipe or a folder.", list)
	case isFilter(list):
		return usageError("%s is a filter already. Name the list it was made of.", list)
	}
	if _, err := os.Stat(output); err == nil && !isFilter(output) {
		return usageError("%s exists and is not a filter. Name another file with --output.", output)
	}
	return nil
}

// isFilter is false for a file that can't be read.
func isFilter(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return commonpw.IsFilter(f)
}

// interruptible is a file that can't be read further once the context has ended.
type interruptible struct {
	*os.File
	ctx context.Context
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.File.Read(p)
}

// describeList says what a list is, and of how many passwords.
func describeList(list *commonpw.List) string {
	if rate := list.FalsePositives(); rate > 0 {
		return fmt.Sprintf("a filter of %d passwords; of others it refuses at most 1 in %.0f", list.Len(), 1/rate)
	}
	return fmt.Sprintf("a list of %d passwords", list.Len())
}

// describeRefusedPasswords says which passwords the configuration refuses.
func (s *settings) describeRefusedPasswords(cfg node.Config) string {
	if s.raw.PasswordList == "" {
		return "the program's own, " + describeList(cfg.CommonPasswords)
	}
	return s.raw.PasswordList + ", " + describeList(cfg.CommonPasswords)
}
