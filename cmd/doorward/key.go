package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func keyCommand() *cobra.Command {
	return group("key", "Create, list, revoke and replace keys", keyCreateOperatorCommand(), keyListOperatorsCommand(), keyRevokeOperatorCommand(),
		keyCreateServiceCommand(), keyListServicesCommand(), keyRevokeServiceCommand(), keyEnableServiceCommand(),
		keyCreateMasterCommand(), keyRotateMasterCommand(), keyRotateSigningCommand())
}

func keyCreateOperatorCommand() *cobra.Command {
	var name string
	cmd := onDatabase(newSettings(), &cobra.Command{
		Use: "create-operator", Short: "Create an operator key and print it, once",
		Long: `Create-operator creates a key that acts as the operator of the installation, sent
as "Authorization: Bearer dwo_…". The key is the last line of the output and is
shown only now; the database keeps a hash.`,
		Example: "  doorward key create-operator --name billing-sync", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		made, err := n.App.Keys.CreateOperator(cmd.Context(), doorward.OperatorAtTerminal(), name)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Operator key %q. Save it now, it is not shown again:\n%s\n", name, made)
		return nil
	})
	cmd.Flags().StringVar(&name, "name", "", "what the key is for")
	return checkFirst(requireFlags(cmd, "name"), func() error { return key.CheckName(name) })
}

// operatorKeyView is a key in the output for programs.
type operatorKeyView struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"createdAt"`
}

func keyListOperatorsCommand() *cobra.Command {
	keys := listing[store.OperatorKey]{
		head:   []string{"ID", "NAME", "CREATED"},
		row:    func(k store.OperatorKey) []string { return []string{k.ID, k.Name, day(k.CreatedAt)} },
		object: func(k store.OperatorKey) any { return operatorKeyView{k.ID, k.Name, k.CreatedAt} },
	}
	return keys.command(&cobra.Command{
		Use: "list-operators", Short: "List the operator keys that work",
		Example: "  doorward key list-operators",
	}, func(ctx context.Context, n *node.Node) ([]store.OperatorKey, error) {
		return n.App.Keys.Operators(ctx)
	})
}

func keyRevokeOperatorCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "revoke-operator NAME", Short: "Revoke an operator key, on every node",
		Long: `Revoke-operator revokes the key of that name or id. The next request with it is
answered with 401, on every node. It can't be undone; the installation's audit trail
records that the key was created and revoked.`,
		Example: "  doorward key revoke-operator signup-2026", Args: oneArg("NAME or key id"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		found, err := n.App.Keys.FindOperators(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if len(found) > 1 {
			return badUse("%d keys are called %s. Name one by its id:%s", len(found), args[0], keyIDs(found))
		}
		if err := n.App.Keys.RevokeOperator(cmd.Context(), doorward.OperatorAtTerminal(), found[0]); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Operator key %q (%s) is revoked.\n", found[0].Name, found[0].ID)
		return nil
	})
}

func keyIDs(found []store.OperatorKey) string {
	var b strings.Builder
	for _, k := range found {
		fmt.Fprintf(&b, "\n  %s  (made %s)", k.ID, k.CreatedAt.Format(time.DateTime))
	}
	return b.String()
}
