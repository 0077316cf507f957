package main

import (
	"os"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/doorward/doorward/internal/progress"
)

// showingProgress lets the command show on stderr how far it is: a line that is rewritten on a terminal, else
// one every ten seconds.
func showingProgress(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := progress.Start(cmd.ErrOrStderr(), isatty.IsTerminal(os.Stderr.Fd()))
		cmd.SetOut(r.Before(cmd.OutOrStdout()))
		cmd.SetErr(r.Before(cmd.ErrOrStderr()))
		cmd.SetContext(progress.With(cmd.Context(), r))
		err := run(cmd, args)
		r.Stop()
		return err
	}
	return cmd
}
