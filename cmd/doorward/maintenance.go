package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func maintenanceCommand() *cobra.Command {
	return group("maintenance", "Pause changes on all nodes, and resume them", maintenanceOnCommand(), recording(maintenanceOffCommand()), maintenanceStatusCommand())
}

func maintenanceOnCommand() *cobra.Command {
	var reason string
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "on", Short: "Pause changes on all nodes",
		Long: `On makes every node answer changes with 503 maintenance, until "doorward maintenance
off"; a restart doesn't end it. Signing in and access checks go on, and so does what
ends access: signing out, suspending people, freezing tenants, revoking keys and
invitations. Commands at the terminal of a server are not affected. When the command
returns, no node begins another change.`,
		Example: `  doorward maintenance on --reason 'We move to another database until 14:00 UTC.'`, Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		if err := n.App.Installation.PauseChanges(cmd.Context(), n.Operator(), reason); err != nil {
			return err
		}
		return printMaintenance(cmd, n)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "what people are told; it stands in every refusal")
	return checkFirst(cmd, func() error { return access.CheckReason(&reason) })
}

func maintenanceOffCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "off", Short: "Resume changes on all nodes",
		Example: "  doorward maintenance off", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		if err := n.App.Installation.ResumeChanges(cmd.Context(), n.Operator()); err != nil {
			return err
		}
		return printMaintenance(cmd, n)
	})
}

func maintenanceStatusCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "status", Short: "Say whether changes are paused",
		Example: "  doorward maintenance status", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error { return printMaintenance(cmd, n) })
}

func printMaintenance(cmd *cobra.Command, n *node.Node) error {
	m, err := n.App.Installation.Maintenance(cmd.Context())
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), describeMaintenance(m))
	return nil
}

func describeMaintenance(m store.Maintenance) string {
	switch {
	case !m.On:
		return "Changes are not paused."
	case m.Reason == "":
		return "Changes have been paused since " + m.Since.Format(time.RFC3339) + "."
	}
	return "Changes have been paused since " + m.Since.Format(time.RFC3339) + ": " + m.Reason
}
