package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func keyCommand() *cobra.Command {
	return group("key", "Create, list, revoke and replace keys", recording(keyCreateOperatorCommand()), keyListOperatorsCommand(), recording(keyRevokeOperatorCommand()),
		recording(keyCreateServiceCommand()), keyListServicesCommand(), recording(keyRevokeServiceCommand()), recording(keyEnableServiceCommand()),
		keyCreateMasterCommand(), recording(showingProgress(keyRotateMasterCommand())), recording(showingProgress(keyReplaceMasterCommand())), recording(keyRotateSigningCommand()))
}

func keyCreateOperatorCommand() *cobra.Command {
	var draft key.OperatorDraft
	var expires string
	cmd := onDatabase(newSettings(), &cobra.Command{
		Use: "create-operator", Short: "Create an operator key and print it, once",
		Long: `Create-operator creates a key that acts as the operator of the installation, sent
as "Authorization: Bearer dwo_…". The key is the last line of the output and is
shown only now; the database keeps a hash.

It may do everything and never expires, unless --may and --expires say otherwise. What a
key can be limited to:

  access.introspect access.evaluate   ask about credentials, users and keys
  tenant.list tenant.create           list, show and make tenants
  tenant.status tenant.close          freeze and thaw; close tenants
  tenant.quota                        set quotas
  model.read model.apply              the platform's model
  webhook.manage                      webhooks of the installation
  audit.read                          the installation's own audit trail
  events.read                         the audit trails of all tenants`,
		Example: "  doorward key create-operator --name billing-sync --expires 90d --may tenant.list,tenant.create", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		secret, err := n.App.Keys.CreateLimitedOperator(cmd.Context(), n.Operator(), draft)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Operator key %q. Save it now, it is not shown again:\n%s\n", draft.Name, secret)
		return nil
	})
	cmd.Flags().StringVar(&draft.Name, "name", "", "what the key is for")
	cmd.Flags().StringVar(&expires, "expires", "", "when it expires: `DAYS` such as 90d, or a duration such as 12h; else never")
	cmd.Flags().StringSliceVar(&draft.May, "may", nil, "the only things it may do, `PERMISSION,…`; else everything")
	return checkFirst(refuseEmpty(requireFlags(cmd, "name"), "expires", "may"), func() (err error) {
		if draft.Expires, err = parseExpiry(expires); err != nil {
			return usageError("--expires: write days such as 90d, or a duration such as 12h.")
		}
		return key.CheckOperator(&draft)
	})
}

// parseExpiry parses a positive duration; "" is 0.
func parseExpiry(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := parseDuration(text)
	if err == nil && d <= 0 {
		err = strconv.ErrRange
	}
	return d, err
}

// operatorKeyView is a key in the output for programs.
type operatorKeyView struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	CreatedAt time.Time         `json:"createdAt"`
	ExpiresAt *time.Time        `json:"expiresAt,omitempty"` // absent: never
	May       []doorward.Action `json:"may,omitempty"`       // absent: everything
}

func operatorKeyRow(k store.OperatorKey) []string {
	expires, may := "never", "everything"
	if k.ExpiresAt != nil {
		expires = day(*k.ExpiresAt)
	}
	if len(k.May) > 0 {
		may = actionList(k.May)
	}
	return []string{k.ID, k.Name, day(k.CreatedAt), expires, may}
}

func keyListOperatorsCommand() *cobra.Command {
	keys := listing[store.OperatorKey]{
		head:   []string{"ID", "NAME", "CREATED", "EXPIRES", "MAY"},
		row:    operatorKeyRow,
		object: func(k store.OperatorKey) any { return operatorKeyView{k.ID, k.Name, k.CreatedAt, k.ExpiresAt, k.May} },
	}
	return keys.command(&cobra.Command{
		Use: "list-operators", Short: "List the operator keys, expired ones too",
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
			return usageError("%d keys are called %s. Name one by its id:%s", len(found), args[0], keyIDs(found))
		}
		if err := n.App.Keys.RevokeOperator(cmd.Context(), n.Operator(), found[0]); err != nil {
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
