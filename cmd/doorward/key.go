package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
)

func keyCommand() *cobra.Command {
	return group("key", "Make keys", keyCreateOperatorCommand())
}

func keyCreateOperatorCommand() *cobra.Command {
	var name string
	cmd := act(newSettings(), &cobra.Command{
		Use: "create-operator", Short: "Make an operator key and print it, once",
		Long: `Create-operator makes a key that acts as the operator of the installation, sent
as "Authorization: Bearer dwo_…". The key is the last line of the output and is
shown only now; the database keeps a hash.`,
		Example: "  doorward key create-operator --name billing-sync", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		key, err := n.App.Keys.CreateOperator(cmd.Context(), doorward.OperatorAtTerminal(), name)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Operator key %q. Keep it now, it is not shown again:\n%s\n", name, key)
		return nil
	})
	cmd.Flags().StringVar(&name, "name", "", "what the key is for")
	return needs(cmd, "name")
}
