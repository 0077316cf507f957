package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// walk calls visit with every command that people see.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	visit(cmd)
	for _, below := range cmd.Commands() {
		walk(below, visit)
	}
}

func TestHelpIsComplete(t *testing.T) {
	seen := 0
	walk(command(), func(cmd *cobra.Command) {
		seen++
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the line in the list of commands, %q, should be there and end without a stop", cmd.CommandPath(), cmd.Short)
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) && !strings.HasPrefix(cmd.CommandPath(), "doorward help") {
			t.Errorf("%s: its help has no example of it, but %q", cmd.CommandPath(), cmd.Example)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no explanation", cmd.CommandPath(), f.Name)
			}
		})
	})
	if seen < 20 {
		t.Errorf("%d commands seen, there are more", seen)
	}
}

// An example that no longer parses teaches what is wrong.
func TestExamplesParse(t *testing.T) {
	walk(command(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			_, typed, found := strings.Cut(line, "doorward ")
			if !found || strings.Contains(line, "completion") {
				continue
			}
			typed, _, _ = strings.Cut(typed, " > ")
			target, rest, err := command().Find(strings.Fields(typed))
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if err := target.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if err := target.ValidateArgs(target.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}
