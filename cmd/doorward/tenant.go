package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
)

// group is a command that only has commands below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// act is a command that works on the database, beside a running server or not.
func act(s *settings, cmd *cobra.Command, do func(cmd *cobra.Command, n *node.Node, args []string) error) *cobra.Command {
	s.base(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := s.nodeConfig(cmd)
		if err != nil {
			return err
		}
		n, err := node.Open(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		defer n.Close()
		return do(cmd, n, args)
	}
	return cmd
}

// quiet is for commands that expect the schema to be as needed.
func quiet() *settings {
	s := newSettings()
	s.migrate = false
	return s
}

func tenantCommand() *cobra.Command {
	return group("tenant", "Make, list, freeze and thaw tenants",
		tenantCreateCommand(), tenantListCommand(), tenantFreezeCommand(), tenantThawCommand())
}

func tenantCreateCommand() *cobra.Command {
	s := newSettings()
	var name, owner string
	cmd := act(s, &cobra.Command{
		Use:   "create",
		Short: "Make a tenant and invite its first OWNER",
		Long: `Create brings the schema up to date, makes the tenant, mails its first OWNER an
invitation and prints a link that does the same. The link is valid for 7 days
and once. If the mail server does not take the mail now, a running server
tries again.`,
		Example: `  doorward tenant create --name Acme --owner-email owner@acme.example`,
		Args:    noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		created, err := n.App.Tenants.Create(cmd.Context(), doorward.OperatorAtTerminal(), name, owner)
		if err != nil {
			return err
		}
		if err := n.App.Mail.Deliver(cmd.Context()); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Tenant %s (%s) is made. Its first OWNER, %s, registers here:\n%s/accept#token=%s\n",
			created.Tenant.Name, created.Tenant.ID, created.Invitation.Email, n.URL(), created.Token.Reveal())
		return nil
	})
	s.mail(cmd.Flags())
	cmd.Flags().StringVar(&name, "name", "", "name of the tenant")
	cmd.Flags().StringVar(&owner, "owner-email", "", "address of the first OWNER")
	return needs(cmd, "name", "owner-email")
}

// needs refuses the command without the flags; cobra's own check runs before
// the environment is read and words it for programmers.
func needs(cmd *cobra.Command, names ...string) *cobra.Command {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range names {
			if !cmd.Flags().Changed(name) {
				return badUse("--%s is missing. For example:\n%s", name, cmd.Example)
			}
		}
		return nil
	}
	return cmd
}

func tenantListCommand() *cobra.Command {
	return act(quiet(), &cobra.Command{
		Use: "list", Short: "List tenants", Example: "  doorward tenant list", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		all, err := n.App.Tenants.All(cmd.Context())
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tSTATUS\tCREATED")
		for _, t := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.ID, t.Name, t.Status, t.CreatedAt.Format("2006-01-02"))
		}
		return firstError(err, w.Flush())
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func tenantFreezeCommand() *cobra.Command {
	return act(quiet(), &cobra.Command{
		Use: "freeze TENANT-ID", Short: "Keep everybody out of a tenant and end its sessions",
		Example: "  doorward tenant freeze tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		ended, err := n.App.Tenants.Freeze(cmd.Context(), doorward.OperatorAtTerminal(), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Frozen. Sessions ended: %d.\n", ended)
		return nil
	})
}

func tenantThawCommand() *cobra.Command {
	return act(quiet(), &cobra.Command{
		Use: "thaw TENANT-ID", Short: "Let people into a frozen tenant again",
		Example: "  doorward tenant thaw tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		if err := n.App.Tenants.Thaw(cmd.Context(), doorward.OperatorAtTerminal(), args[0]); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "Thawed. People sign in anew.")
		return nil
	})
}

func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return badUse("%s takes one %s. For example:\n%s", cmd.CommandPath(), what, cmd.Example)
		}
		return nil
	}
}
