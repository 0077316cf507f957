package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/model"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/node"
)

func modelCommand() *cobra.Command {
	return group("model", "Show, check, compare and apply the platform's own actions",
		modelShowCommand(), modelCheckCommand(), modelDiffCommand(), recording(modelApplyCommand()))
}

func modelShowCommand() *cobra.Command {
	var number int64
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "show", Short: "Print the model, as YAML",
		Long: `Show prints the current model. Until one is applied, that is the built-in one with
the actions of a messaging platform, version 0: a starting point for your own.`,
		Example: "  doorward model show > model.yaml\n  doorward model show --version 2", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		v, err := modelVersion(cmd, n, number)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "Version %d%s.\n", v.Version, describeApplied(v))
		_, err = io.WriteString(cmd.OutOrStdout(), v.Text)
		return err
	})
	cmd.Flags().Int64Var(&number, "version", 0, "an earlier version; 0 is the built-in one")
	return cmd
}

func modelVersion(cmd *cobra.Command, n *node.Node, number int64) (model.Version, error) {
	if cmd.Flags().Changed("version") {
		return n.App.Models.Version(cmd.Context(), number)
	}
	return n.App.Models.Current(cmd.Context())
}

func describeApplied(v model.Version) string {
	if v.Version == 0 {
		return ", the built-in one"
	}
	return fmt.Sprintf(", applied %s by %s", v.CreatedAt.Format("2006-01-02 15:04 MST"), cmp.Or(v.CreatedBy, "the command line"))
}

func modelCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check a model, without a database",
		Long: `Check prints each fault of FILE with its line and column; "-" is standard input.
The exit code is 1 if there are any.`,
		Example: "  doorward model check model.yaml", Args: oneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readModel(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			if err := model.Check(text); err != nil {
				return printModelFaults(cmd.ErrOrStderr(), args[0], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s can be applied.\n", args[0])
			return nil
		},
	}
}

func modelDiffCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "diff FILE", Short: "Say what applying a model would change",
		Long: `Diff compares FILE with the current model, and writes nothing: which actions are
new, gone or granted to other roles, which of the model's policies and entities
are new, gone or changed, which API keys and roles that tenants have made would gain
or lose something, and which policies of tenants would be off.`,
		Example: "  doorward model diff model.yaml", Args: oneArg("FILE"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		text, err := readModel(cmd.InOrStdin(), args[0])
		if err != nil {
			return err
		}
		plan, err := n.App.Models.Diff(cmd.Context(), text)
		if err != nil {
			return printModelFaults(cmd.ErrOrStderr(), args[0], err)
		}
		printPlan(cmd.OutOrStdout(), plan)
		return nil
	})
}

func modelApplyCommand() *cobra.Command {
	var force bool
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "apply FILE", Short: "Replace the model, on every node",
		Long: `Apply makes FILE the model of the installation and returns when it holds on every
node, for sessions and keys of all tenants. API keys and roles keep what they have
been given; actions that the model lacks have no effect until one has them again.
All versions are kept: "doorward model show --version 2" prints an earlier one.
If policies of tenants name what the model takes away, nothing is applied without
--force.`,
		Example: "  doorward model diff model.yaml\n  doorward model apply model.yaml", Args: oneArg("FILE"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		text, err := readModel(cmd.InOrStdin(), args[0])
		if err != nil {
			return err
		}
		applied, err := applyModel(cmd.Context(), n, text, force)
		if err != nil {
			return printModelFaults(cmd.ErrOrStderr(), args[0], err)
		}
		printChanges(cmd.OutOrStdout(), applied.Changes)
		printParts(cmd.OutOrStdout(), applied.Parts)
		printPoliciesOff(cmd.OutOrStdout(), applied.Broken)
		fmt.Fprintf(cmd.OutOrStdout(), "Version %d holds on every node.\n", applied.Model.Version)
		return nil
	})
	cmd.Flags().BoolVar(&force, "force", false, "apply it although policies of tenants name what it takes away; these are off then")
	return cmd
}

func printPoliciesOff(w io.Writer, all []model.BrokenPolicy) {
	for _, p := range all {
		fmt.Fprintf(w, "policy %q of %s: off, it names what the model takes away\n", p.ID, p.TenantID)
	}
}

func applyModel(ctx context.Context, n *node.Node, text string, force bool) (model.Applied, error) {
	var anyVersion []string // the text replaces whichever version is current
	return n.App.Models.Apply(ctx, n.Operator(), text, anyVersion, force)
}

// readModel returns the text of a file, or of stdin for "-". It cuts a larger text one byte
// above modelfile.MaxSize, so that the text is still refused.
func readModel(stdin io.Reader, name string) (string, error) {
	from := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", notDone("%s", describeUnreadable(name, err))
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, modelfile.MaxSize+1))
	if err != nil {
		return "", notDone("%s", describeUnreadable(name, err))
	}
	return string(text), nil
}

// printModelFaults prints a line for each fault, in the form that editors jump to, or for each policy that
// the model would put off, and returns the error for the command.
func printModelFaults(w io.Writer, file string, err error) error {
	var refused *doorward.Error
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Code == doorward.CodeModelInUse:
		for _, f := range refused.Fields {
			fmt.Fprintln(w, f.Message)
		}
		return notDone("%s Keep in the model what they name, or add --force: then these policies are off.", refused.Detail)
	case refused.Code != doorward.CodeValidationFailed:
		return err
	}
	for _, f := range refused.Fields {
		fmt.Fprintf(w, "%s:%d:%d: %s (%s)\n", file, max(f.Line, 1), max(f.Column, 1), f.Message, f.Code)
	}
	return notDone("the model can't be applied.")
}

func printPlan(w io.Writer, p model.Plan) {
	fmt.Fprintf(w, "Compared with version %d%s:\n", p.Base.Version, describeApplied(p.Base))
	printChanges(w, p.Changes)
	printParts(w, p.Parts)
	printHolders(w, "role", p.Roles)
	printHolders(w, "API key", p.Keys)
	printPoliciesOff(w, p.Broken)
}

func printChanges(w io.Writer, changes []modelfile.Change) {
	if len(changes) == 0 {
		fmt.Fprintln(w, "No action changes.")
	}
	for _, c := range changes {
		fmt.Fprintln(w, describeChange(c))
	}
}

func printParts(w io.Writer, changes []model.PartChange) {
	for _, c := range changes {
		sign := "~"
		switch {
		case c.Before == "":
			sign = "+"
		case c.After == "":
			sign = "-"
		}
		fmt.Fprintf(w, "%s %s %s\n", sign, c.Kind, c.Name)
	}
}

func describeChange(c modelfile.Change) string {
	switch {
	case c.Before == nil:
		return fmt.Sprintf("+ %s: for %s", c.Name, strings.Join(c.After.Roles, ", "))
	case c.After == nil:
		return fmt.Sprintf("- %s: no longer for %s", c.Name, strings.Join(c.Before.Roles, ", "))
	}
	var parts []string
	for _, part := range []struct {
		changed bool
		text    string
	}{
		{len(c.Gained()) > 0, "now for " + strings.Join(c.Gained(), ", ")},
		{len(c.Lost()) > 0, "no longer for " + strings.Join(c.Lost(), ", ")},
		{c.Before.Resource != c.After.Resource, fmt.Sprintf("resource %q instead of %q", c.After.Resource, c.Before.Resource)},
		{c.Before.StepUp != c.After.StepUp, fmt.Sprintf("stepUp: %v", c.After.StepUp)},
		{c.Before.Keys != c.After.Keys, fmt.Sprintf("keys: %v", c.After.Keys)},
		{c.Before.About != c.After.About, "another description"},
	} {
		if part.changed {
			parts = append(parts, part.text)
		}
	}
	return fmt.Sprintf("~ %s: %s", c.Name, strings.Join(parts, "; "))
}

func printHolders(w io.Writer, kind string, all []model.Holder) {
	for _, h := range all {
		fmt.Fprintf(w, "%s %s (%s) of %s:", kind, h.Name, h.ID, h.TenantID)
		for _, a := range h.Gains {
			fmt.Fprintf(w, " +%s", a)
		}
		for _, a := range h.Loses {
			fmt.Fprintf(w, " -%s", a)
		}
		if h.Rank != h.NewRank {
			fmt.Fprintf(w, " rank %s instead of %s", h.NewRank, h.Rank)
		}
		fmt.Fprintln(w)
	}
}
