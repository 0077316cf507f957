// Doorward is the authentication and access service for multi-tenant
// platforms. Run "doorward dev" to try it, "doorward --help" for the rest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitUnavailable = 4
)

// failure is an error with an exit code of its own.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func badUse(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

func badConfig(format string, args ...any) error {
	return &failure{exitConfig, fmt.Errorf(format, args...)}
}

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "doorward:", describe(err))
	return exitCode(err)
}

func exitCode(err error) int {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, store.ErrSchema), doorward.HasCode(err, doorward.CodeUnavailable):
		return exitUnavailable
	}
	return exitFailed
}

// describe is the error as the person at the terminal is to read it.
func describe(err error) string {
	var e *doorward.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if e.Code == doorward.CodeUnavailable {
		return fmt.Sprintf("the database can't be used: %v\n  \"doorward doctor\" checks what is wrong.", e.Err)
	}
	text := e.Detail
	if text == "" && len(e.Fields) == 0 {
		text = e.Code.Problem().Title + ". " + e.Code.Problem().Help
	}
	for _, f := range e.Fields {
		text += f.Message + " "
	}
	return text
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "doorward",
		Short: "The authentication and access service for multi-tenant platforms",
		Long: `Doorward invites people to tenants, signs them in and keeps their sessions.

Settings come from flags, then the environment (--base-url is DOORWARD_BASE_URL),
then the YAML file named by --config (base-url: …). Secrets are also read from
files: DOORWARD_DATABASE_FILE names the file that holds the database's URL.

Exit codes: 0 ok, 1 failed, 2 wrong use, 3 configuration invalid, 4 database
unreachable or its schema not as needed.`,
		Example: `  doorward dev
  doorward serve --base-url https://auth.example.com --smtp smtp://mail.example.com
  doorward tenant create --name Acme --owner-email owner@acme.example`,
		SilenceUsage: true, SilenceErrors: true,
		Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return badUse("%w\n  \"%s --help\" lists what it takes.", err, cmd.CommandPath())
	})
	root.AddCommand(devCommand(), serveCommand(), tenantCommand(), userCommand(), keyCommand(),
		migrateCommand(), doctorCommand(), configCommand(), openAPICommand(), versionCommand())
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return badUse("there is no command %q.\n  \"%s --help\" lists the commands.", args[0], cmd.CommandPath())
	}
	return badUse("%q is one argument too many; \"%s\" takes flags only.", args[0], cmd.CommandPath())
}
