package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/similar"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitUnavailable = 4
)

// failure is an error with an exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usageError(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// notDone is for a valid request that can't be carried out now.
func notDone(format string, args ...any) error {
	return &failure{exitFailed, fmt.Errorf(format, args...)}
}

func badConfig(format string, args ...any) error {
	return &failure{exitConfig, fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var f *failure
	var differs *lease.DiffersError
	var key *masterkey.FileError
	var needed *masterkey.NeededError
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &differs), errors.As(err, &key), errors.As(err, &needed):
		return exitConfig
	case errors.Is(err, context.Canceled):
		return exitFailed
	case errors.Is(err, store.ErrSchema), doorward.HasCode(err, doorward.CodeUnavailable):
		return exitUnavailable
	case doorward.HasCode(err, doorward.CodeValidationFailed):
		return exitUsage
	}
	return exitFailed
}

// describe returns the error as a message for operators.
func describe(err error) string {
	var ours *doorward.Error
	var differs *lease.DiffersError
	var key *masterkey.FileError
	switch {
	case errors.As(err, &differs):
		return describeDiffering(differs)
	case errors.As(err, &key):
		return describeKeyFile(key)
	case errors.Is(err, context.Canceled):
		return "stopped before it was finished."
	case errors.Is(err, syscall.EADDRINUSE):
		return describeAddressInUse(err)
	case !errors.As(err, &ours):
		return plain(err)
	case ours.Code == doorward.CodeUnavailable:
		return describeUnavailable(ours)
	case len(ours.Fields) > 0:
		return describeFields(ours.Fields)
	case ours.Detail != "":
		return ours.Detail
	}
	return ours.Code.Problem().Help
}

// describeDiffering returns a line for each setting, and what to do.
func describeDiffering(e *lease.DiffersError) string {
	lines := []string{"other nodes on this database have different settings:"}
	for _, d := range e.Differences {
		lines = append(lines, fmt.Sprintf("--%s is %s here and %s on the node %s", d.Setting.Name, d.Setting.Value, d.OtherValue, d.Node))
	}
	lines = append(lines, "A node that differs in these would end or refuse sessions that others hold valid, or destroy",
		"what they have promised to keep. Give all nodes the same values; to change them while",
		"nodes run, start one node after the other with the new value and --change-shared.")
	return strings.Join(lines, "\n  ")
}

// describeKeyFile adds what to do if the file holds another key; other errors say it
// themselves.
func describeKeyFile(e *masterkey.FileError) string {
	text := "--master-key-file: " + e.Error()
	if wrong := (*masterkey.WrongKeyError)(nil); errors.As(e, &wrong) {
		text += fmt.Sprintf("\n  Put the file of the key %s there, or name it with --master-key-file. Without any file the server\n  starts too, and refuses what needs the key.", wrong.Needed)
	}
	return text
}

func describeAddressInUse(err error) string {
	where, setting := "the address", "listen"
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Addr != nil {
		where = op.Addr.String()
	}
	if l := (*node.ListenError)(nil); errors.As(err, &l) {
		setting = l.Setting
	}
	return where + " is in use by another program.\n  Stop that program, or choose another address with --" + setting + " or " + variable(setting) + "."
}

// describeUnavailable recognises a missing SQLite file by the stat of store.OpenExisting.
func describeUnavailable(e *doorward.Error) string {
	if file := (*fs.PathError)(nil); errors.As(e, &file) && file.Op == "stat" && errors.Is(file, fs.ErrNotExist) {
		return fmt.Sprintf("there is no database file %s.\n  \"doorward migrate\" and \"doorward serve\" make it; --database names another one.", file.Path)
	}
	return "the database can't be used: " + plain(e.Err) + "\n  \"doorward doctor\" shows what else is wrong."
}

// describeFields names flags where the API names members of a body. A fault of the
// argument has no pointer.
func describeFields(faults []doorward.FieldError) string {
	var lines []string
	for _, f := range faults {
		line := f.Message
		if f.Pointer != "" {
			line = flagOf(f.Pointer) + ": " + line
		} else if f.Parameter != "" {
			line = flagOf("/"+f.Parameter) + ": " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n  ")
}

// flagOf turns "/ownerEmail" into "--owner-email".
func flagOf(pointer string) string {
	var b strings.Builder
	for _, r := range strings.TrimPrefix(pointer, "/") {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return "--" + b.String()
}

// plain returns the text of an error without package names, and without the suffix of
// store.ErrSchema. Equal lines in succession become one: a database client repeats a line for
// each address that it has tried.
func plain(err error) string {
	text := strings.TrimSuffix(err.Error(), ": "+store.ErrSchema.Error())
	for _, name := range []string{"node: ", "store: ", "argon: ", "commonpw: ", "seal: "} {
		text = strings.TrimPrefix(text, name)
	}
	lines := slices.Compact(strings.Split(text, "\n"))
	return strings.ReplaceAll(strings.Join(lines, "\n"), "\t", "  ")
}

// describeFlagError turns an error of the flag parser into a message for operators.
func describeFlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var noValue *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	message := plain(err) + "."
	switch {
	case errors.As(err, &unknown):
		message = fmt.Sprintf("there is no flag %s.%s", asTyped(unknown), suggest(asTyped(unknown), flagsOf(cmd)))
	case errors.As(err, &noValue):
		message = fmt.Sprintf("--%s needs a value.", noValue.GetFlag().Name)
	case errors.As(err, &invalid):
		message = fmt.Sprintf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), expectedFormat(invalid.GetFlag()))
	}
	return usageError("%s\n  \"%s --help\" lists what it takes.", message, cmd.CommandPath())
}

func asTyped(e *pflag.NotExistError) string {
	if short := e.GetSpecifiedShortnames(); short != "" {
		return "-" + short
	}
	return "--" + e.GetSpecifiedName()
}

func flagsOf(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// expectedFormat says how to write the value of a flag.
func expectedFormat(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "write true or false."
	case "duration":
		return "write a time with its unit, as in 90s, 30m, 24h or 7d."
	case "int", "int64", "uint32":
		return "write a whole number in decimal digits, without leading zeros."
	case "float64":
		return "write a number, as in 0.25."
	case "stringSlice":
		return "write values separated by commas."
	}
	return "this is not a valid value."
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usageError("%q is one word too many; \"%s\" takes flags only.", args[0], cmd.CommandPath())
	}
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return usageError("there is no command %q.%s\n  \"%s --help\" lists the commands.", args[0], suggest(args[0], names), cmd.CommandPath())
}

func oneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return usageError("\"%s\" takes one %s, for example:\n%s", cmd.CommandPath(), name, cmd.Example)
	}
}

func twoArgs(first, second string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			return nil
		}
		return usageError("\"%s\" takes %s and %s, for example:\n%s", cmd.CommandPath(), first, second, cmd.Example)
	}
}

// requireFlags refuses the command without the flags. Cobra's own check has messages
// for programmers.
func requireFlags(cmd *cobra.Command, names ...string) *cobra.Command {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range names {
			if !cmd.Flags().Changed(name) {
				return usageError("--%s is missing, for example:\n%s", name, cmd.Example)
			}
		}
		return nil
	}
	return cmd
}

// checkFirst runs a check before the command opens, and perhaps creates, a database, and after
// the checks that the command has already. requireFlags replaces those, so call it before.
func checkFirst(cmd *cobra.Command, check func() error) *cobra.Command {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
	return cmd
}

// refuseEmpty refuses the flags with an empty value. Such a value is usually a shell variable
// that is not set, and would mean the same as no flag: no limit.
func refuseEmpty(cmd *cobra.Command, names ...string) *cobra.Command {
	return checkFirst(cmd, func() error {
		for _, name := range names {
			f := cmd.Flags().Lookup(name)
			if v := f.Value.String(); f.Changed && (v == "" || v == "[]") {
				return usageError("--%s is empty. Give it a value, or leave it out.", name)
			}
		}
		return nil
	})
}

// refuseTogether refuses two flags that exclude each other. Cobra's own check has a message
// for programmers, and another exit code.
func refuseTogether(cmd *cobra.Command, first, second string) *cobra.Command {
	return checkFirst(cmd, func() error {
		if cmd.Flags().Changed(first) && cmd.Flags().Changed(second) {
			return usageError("--%s and --%s: choose one of them.", first, second)
		}
		return nil
	})
}

// suggest returns a hint at the most similar name; empty if none is similar enough.
func suggest(name string, known []string) string {
	best := similar.Name(name, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %s?", best)
}

// completeWith makes the shell complete the values of a flag.
func completeWith(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for an unknown flag
}
