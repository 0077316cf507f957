package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
)

func ssoCommand() *cobra.Command {
	return group("sso", "Manage the sign-on of tenants' own", ssoListCommand(), recording(ssoOffCommand()))
}

func ssoOffCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "off TENANT-ID", Short: "Turn a tenant's sign-on off, so that people sign in with passwords and passkeys again",
		Long: `Off sets the mode of a tenant's sign-on to off: its connections sign nobody in, and
their sessions end. It is the way back when a provider doesn't work and no OWNER gets
in. An OWNER can turn it on again in the console. Somebody who has no password asks
for one where they sign in.`,
		Example: "  doorward sso off tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		changed, err := n.App.Demands.Off(cmd.Context(), n.Operator(), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Sign-on is off. Sessions ended: %d.\n", changed.Ended.Sessions)
		return nil
	})
}
