package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/app/assertion"
	"github.com/doorward/doorward/node"
)

func keyRotateSigningCommand() *cobra.Command {
	s := withoutMigration()
	atOnce := false
	cmd := onDatabase(s, &cobra.Command{
		Use: "rotate-signing", Short: "Sign assertions with the next key, on every node",
		Long: `Rotate-signing has the next signing key sign the assertions of --assertion-audience,
300 seconds from now, or with --now at once, on every node. Services know that key
already: it is published in /.well-known/jwks.json since the one before began to sign.
The old key stays published for a day, so it still verifies what it has signed. Keys
are replaced every 30 days anyway.`,
		Example: "  doorward key rotate-signing\n  doorward key rotate-signing --now", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		if err := n.App.MasterKey.Load(cmd.Context()); err != nil {
			return err
		}
		rotated, err := n.App.Assertions.Rotate(cmd.Context(), n.Operator(), atOnce)
		if errors.Is(err, assertion.ErrNoNextKey) {
			return notDone("%s.", plain(err))
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "The key %s signs from %s.\n", rotated.KeyID, rotated.StartsAt.Format(time.RFC3339))
		return nil
	})
	s.register(cmd.Flags(), node.GroupSeal)
	cmd.Flags().BoolVar(&atOnce, "now", false, "sign with it at once")
	return cmd
}
