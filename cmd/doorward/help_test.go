package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward"
)

// walk calls visit with every public command.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

func TestHelpIsComplete(t *testing.T) {
	seen := 0
	walk(command(), func(cmd *cobra.Command) {
		seen++
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its line in the list of commands, %q, must not be empty or end with a full stop", cmd.CommandPath(), cmd.Short)
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) && !strings.HasPrefix(cmd.CommandPath(), "doorward help") {
			t.Errorf("%s: no example in its help calls it: %q", cmd.CommandPath(), cmd.Example)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no explanation", cmd.CommandPath(), f.Name)
			}
		})
	})
	if seen < 20 {
		t.Errorf("only %d commands seen", seen)
	}
}

// A group shows the examples of its commands, each once.
func TestExamplesAreDistinct(t *testing.T) {
	walk(command(), func(cmd *cobra.Command) {
		lines := strings.Split(cmd.Example, "\n")
		slices.Sort(lines)
		if len(slices.Compact(slices.Clone(lines))) != len(lines) {
			t.Errorf("%s: its help has an example twice:\n%s", cmd.CommandPath(), cmd.Example)
		}
	})
}

// The help of the commands that make keys names everything that a key can be limited to.
func TestHelpNamesPermissions(t *testing.T) {
	for cmd, all := range map[*cobra.Command][]doorward.Action{
		keyCreateServiceCommand():  doorward.ServicePermissions(),
		keyCreateOperatorCommand(): doorward.OperatorPermissions(),
	} {
		for _, a := range all {
			if !slices.Contains(strings.Fields(cmd.Long), string(a)) {
				t.Errorf("%s: its help lacks %s", cmd.Name(), a)
			}
		}
	}
}

// onlyReads are the commands on a database that record nothing.
var onlyReads = []string{
	"audit export", "audit search", "audit verify", "config check", "config print", "dev", "doctor", "doctor sso", "domain list", "explain", "healthcheck", "key list-operators", "key list-services",
	"maintenance on", // its --reason is another one
	"mail queue list", "maintenance status", "migrate", "model diff", "model show", "serve", "sso list", "support-bundle", "tenant list", "user list", "user show", "webhook deliveries", "webhook list", "webhook queue list",
}

// TestCommandsTakeReason: each command on a database either only reads or takes --reason.
func TestCommandsTakeReason(t *testing.T) {
	walk(command(), func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if cmd.Flags().Lookup("database") == nil {
			return
		}
		if records := cmd.Annotations[isRecording] != ""; records == slices.Contains(onlyReads, path) {
			t.Errorf("%s: wrap it in recording, or add it to onlyReads if it records nothing; not both", path)
		}
	})
}

// Every example must parse.
func TestExamplesParse(t *testing.T) {
	walk(command(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			for part := range strings.SplitSeq(line, " | ") {
				typed, found := strings.CutPrefix(strings.TrimSpace(part), "doorward ")
				if !found || strings.Contains(part, "completion") {
					continue
				}
				typed, _, _ = strings.Cut(typed, " > ")
				typed, _, _ = strings.Cut(typed, " < ")
				checkParses(t, wordsOf(typed))
			}
		}
	})
}

// shellWord matches a word of a shell command, as examples have them.
var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

func wordsOf(line string) []string {
	words := shellWord.FindAllString(line, -1)
	for i, w := range words {
		words[i] = strings.Trim(w, "'")
	}
	return words
}

// checkParses checks the arguments of doorward.
func checkParses(t *testing.T, words []string) {
	t.Helper()
	if err := parse(words); err != nil {
		t.Errorf("doorward %s: %v", strings.Join(words, " "), err)
	}
}

func parse(words []string) error {
	cmd, rest, err := command().Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	return err
}
