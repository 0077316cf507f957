package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward/internal/goldentest"
	"github.com/doorward/doorward/node"
)

// The tables in docs about the command line; update them with
//
//	go test -run Golden ./cmd/doorward -update

// TestGoldenConfiguration: each setting, in the order and the groups of
// node.Settings.
func TestGoldenConfiguration(t *testing.T) {
	all := ""
	for name, groups := range map[string][]node.Group{
		"everywhere": {node.GroupFile, node.GroupAddress, node.GroupCommon, node.GroupSchema}, "mail": {node.GroupMail, node.GroupTexts},
		"server": {node.GroupServer}, "policy": {node.GroupPolicy},
		"sealed": {node.GroupSeal},
	} {
		table := settingTable(false, groups...)
		goldentest.Section(t, "../../docs/configuration.md", name, table)
		all += table
	}
	goldentest.Section(t, "../../docs/configuration.md", "rare", settingTable(true))
	for _, name := range publicSettings() {
		if !strings.Contains(all, "`--"+name+"`") {
			t.Errorf("--%s is in no table of docs/configuration.md: its group is missing in this test", name)
		}
	}
}

// publicSettings returns the names of the settings that aren't hidden.
func publicSettings() (names []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(settings).register(f)
	f.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// settingTable describes the settings of these groups, or of all if none is given: those that are Rare, or
// the others.
func settingTable(isRare bool, groups ...node.Group) string {
	rare := namesOf(func(d node.Setting) bool { return d.Rare })
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	new(settings).register(f, groups...)
	live := namesOf(func(d node.Setting) bool { return d.Live })
	var out strings.Builder
	out.WriteString("| Flag | Variable | Default | SIGHUP | Meaning |\n|---|---|---|---|---|\n")
	f.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(rare, f.Name) == isRare && (isRare || !f.Hidden) {
			_, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&out, "| `--%s` | %s | %s | %s | %s |\n", f.Name, variables(f.Name), defaultValue(f), map[bool]string{true: "yes"}[slices.Contains(live, f.Name)], cell(usage))
		}
	})
	return out.String()
}

// cell escapes a text for a table cell.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }

// variables lists the environment variables of a setting, and for a secret the YAML key
// that names its file. Otherwise the YAML key is the flag's name.
func variables(name string) string {
	text := "`" + variable(name) + "`"
	if slices.Contains(secrets, name) {
		text += ", `" + variable(name) + "_FILE`; `" + name + "-file:`"
	}
	return text
}

func defaultValue(f *pflag.Flag) string {
	if value := strings.Trim(f.DefValue, "[]"); value != "" {
		return "`" + value + "`"
	}
	return ""
}

// TestGoldenCommands: each public command, with its own flags.
func TestGoldenCommands(t *testing.T) {
	var out strings.Builder
	walk(command(), func(cmd *cobra.Command) {
		if isDocumented(cmd) {
			describeCommand(&out, cmd)
		}
	})
	goldentest.Section(t, "../../docs/commands.md", "commands", out.String())
}

// isDocumented reports whether a command does something itself and isn't one of cobra's.
// A group has no text of its own.
func isDocumented(cmd *cobra.Command) bool {
	path, isGroup := cmd.CommandPath(), cmd.HasSubCommands() && (cmd.Long == "" || !cmd.HasParent())
	return !isGroup && !strings.HasPrefix(path, "doorward completion") && !strings.HasPrefix(path, "doorward help")
}

func describeCommand(out *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(out, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(out, "\n```text\n%s\n```\n", cmd.Long)
	}
	fmt.Fprintf(out, "\n```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimSpace(cmd.Example), "\n  ", "\n"))
	var settings []string
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case slices.Contains(settingNames(), f.Name):
			settings = append(settings, f.Name)
		default:
			_, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(out, "- `--%s`: %s\n", f.Name, usage)
		}
	})
	switch {
	case len(settings) == len(publicSettings()):
		out.WriteString("- settings: all\n")
	case len(settings) > 0:
		fmt.Fprintf(out, "- settings: `--%s`\n", strings.Join(settings, "`, `--"))
	}
}

// TestManualPage: the manual page of the Debian package has each command, with its
// short help.
func TestManualPage(t *testing.T) {
	page := read(t, "deploy/deb/doorward.1")
	for _, cmd := range command().Commands() {
		if entry := ".TP\n.B " + cmd.Name() + "\n" + cmd.Short + "\n"; !strings.Contains(page, entry) {
			t.Errorf("deploy/deb/doorward.1 lacks this:\n%s", entry)
		}
	}
}
