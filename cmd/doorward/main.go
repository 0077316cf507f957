// Doorward is the authentication and access service for multi-tenant
// platforms. Run "doorward dev" to try it, "doorward --help" for the rest.
//
// This folder is the command line: a file for each command or group of commands
// (migrate.go also has config, openapi and version, import.go also tenant export),
// config.go for the sources of settings, settings.go for parsing them
// (node.Settings describes them), fault.go for reporting failures. The commands are
// thin: each builds a node.Config and calls one feature of app.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	// Root certificates for machines that have none, such as minimal containers; the
	// machine's own take precedence.
	_ "golang.org/x/crypto/x509roots/fallback"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == hashCommand {
		hashPasswords()
		return
	}
	os.Exit(run())
}

func run() int {
	err := command().ExecuteContext(untilSignal())
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "doorward:", describe(err))
	return exitCode(err)
}

// untilSignal returns a context that ends with the first signal to stop. A second
// signal ends the process at once. SIGHUP counts, unless the process was started to
// keep running without its terminal, as with nohup; serve reloads its settings instead.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	received := make(chan os.Signal, 1)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	signal.Notify(received, signals...)
	go func() {
		<-received
		signal.Stop(received)
		cancel()
	}()
	return ctx
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "doorward",
		Short: "The authentication and access service for multi-tenant platforms",
		Long: `Doorward invites people to tenants, signs them in and keeps their sessions.

Settings come from flags, then the environment (--base-url is DOORWARD_BASE_URL),
then the YAML file named by --config (base-url: …). Secrets are also read from
files: DOORWARD_DATABASE_FILE, or database-file: in the YAML file, names the file
that holds the database's URL, DOORWARD_SMTP_FILE or smtp-file: the one with the
mail server's.

Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 invalid configuration, 4 database
unreachable or its schema incompatible.`,
		Example: `  doorward dev
  doorward serve --base-url https://auth.example.com --smtp smtp://mail.example.com
  doorward tenant create --name Acme --owner-email owner@acme.example`,
		SilenceUsage: true, SilenceErrors: true,
		Args: noArgs, RunE: showHelp, Version: version(),
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n") // the same as "doorward version" prints
	root.SetFlagErrorFunc(describeFlagError)
	root.AddCommand(devCommand(), serveCommand(), tenantCommand(), userCommand(), keyCommand(), webhookCommand(), mailCommand(), domainCommand(), ssoCommand(), modelCommand(), explainCommand(), auditCommand(), incidentCommand(),
		maintenanceCommand(), recording(showingProgress(backupCommand())), recording(showingProgress(restoreCommand())), recording(showingProgress(moveCommand())),
		migrateCommand(), passwordsCommand(), textsCommand(), doctorCommand(), supportBundleCommand(), healthcheckCommand(), configCommand(), openAPICommand(), versionCommand())
	adaptCobraCommands(root)
	checkTenantIDs(root)
	onlyDecimal(root)
	return root
}

// adaptCobraCommands gives the commands that cobra adds examples and checks of their arguments. It turns
// the completion of file names off for all commands that don't ask for it.
func adaptCobraCommands(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for path, example := range map[string]string{
		"help":                  "  doorward help tenant create",
		"completion":            "  source <(doorward completion bash)",
		"completion bash":       "  doorward completion bash > /etc/bash_completion.d/doorward",
		"completion zsh":        "  doorward completion zsh > \"${fpath[1]}/_doorward\"",
		"completion fish":       "  doorward completion fish > ~/.config/fish/completions/doorward.fish",
		"completion powershell": "  doorward completion powershell | Out-String | Invoke-Expression",
	} {
		if cmd, _, err := root.Find(strings.Fields(path)); err == nil {
			cmd.Example = example
		}
	}
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = noArgs, showHelp // without RunE, cobra answers an unknown shell with help and exit code 0
		for _, shell := range completion.Commands() {
			shell.Args = noArgs
		}
	}
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = checkHelpTopic
	}
}

// checkHelpTopic checks that the arguments of help name a command. Cobra would take
// unknown words for arguments of the nearest one.
func checkHelpTopic(help *cobra.Command, args []string) error {
	found, rest, err := help.Root().Find(args)
	if err != nil {
		return err
	}
	return noArgs(found, rest)
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// group makes a command that only has subcommands, and shows their examples.
func group(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: showHelp}
	cmd.AddCommand(subcommands...)
	var examples []string
	for _, sub := range subcommands {
		for line := range strings.SplitSeq(sub.Example, "\n") {
			if !slices.Contains(examples, line) {
				examples = append(examples, line)
			}
		}
	}
	cmd.Example = strings.Join(examples, "\n")
	return cmd
}
