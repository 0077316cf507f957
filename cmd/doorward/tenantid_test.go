package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestNamesOfTenants: every command that takes a tenant says, for a name, where ids are found, before it opens
// a database.
func TestNamesOfTenants(t *testing.T) {
	tried := 0
	for _, cmd := range allCommands(command()) {
		path, usage := strings.Fields(cmd.CommandPath())[1:], append(strings.Fields(cmd.Use), "")
		var args []string
		switch {
		case usage[1] == tenantArg:
			args = append(path, "Acme Inc.")
		case cmd.Flags().Lookup("tenant") != nil:
			args = append(path, argumentsOf(cmd)...)
			args = append(args, "--tenant", "Acme Inc.")
		default:
			continue
		}
		tried++
		root := command()
		root.SetArgs(args)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		err := root.ExecuteContext(t.Context())
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(describe(err), `"Acme Inc." is not the id of a tenant`) || !strings.Contains(describe(err), "doorward tenant list") {
			t.Errorf("%v ends with %v", args, err)
		}
	}
	if tried < 15 {
		t.Errorf("only %d commands take a tenant", tried)
	}
}

func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		all = append(all, allCommands(sub)...)
	}
	return all
}

// argumentsOf returns what the command demands besides the tenant.
func argumentsOf(cmd *cobra.Command) []string {
	demanded := map[string][]string{
		"doorward user import":        {"people.jsonl"},
		"doorward user suspend":       {"ann@acme.example"},
		"doorward user resume":        {"ann@acme.example"},
		"doorward user remove":        {"ann@acme.example"},
		"doorward user set-role":      {"ann@acme.example", "--role", "USER"},
		"doorward explain":            {"ann@acme.example", "user.read"},
		"doorward key create-service": {"--name", "router", "--may", "user.read"},
	}
	return demanded[cmd.CommandPath()]
}
