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
)

func keyCreateServiceCommand() *cobra.Command {
	var draft key.ServiceDraft
	cmd := onDatabase(newSettings(), &cobra.Command{
		Use: "create-service", Short: "Create a key for one of the platform's own services and print it, once",
		Long: `Create-service creates a key that acts across tenants, sent as
"Authorization: Bearer dws_…". What it may do is listed by --may:

  access.introspect   ask about credentials
  access.evaluate     ask what users, keys and sessions may do (AuthZEN)
  tenant.list         list and show tenants
  tenant.create       make tenants
  tenant.status       freeze and thaw tenants
  events.read         read the events of all tenants
  user.read user.invite user.manage tenant.read audit.read apikey.manage
                      inside the tenant that the request's header Doorward-Tenant
                      names, with the rank of an ADMIN
  webhook.manage      the same, or without the header the installation's webhooks

With --tenant it works in these tenants only, and makes none. The key is the last line
of the output and is shown only now; the database keeps a hash.`,
		Example: "  doorward key create-service --name router --may access.introspect,user.read\n" +
			"  doorward key create-service --name acme-sync --may user.read,user.invite --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae",
		Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		secret, err := n.App.Keys.CreateService(cmd.Context(), n.Operator(), draft)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Service key %q. Save it now, it is not shown again:\n%s\n", draft.Name, secret.Reveal())
		return nil
	})
	cmd.Flags().StringVar(&draft.Name, "name", "", "what the key is for")
	cmd.Flags().StringSliceVar(&draft.May, "may", nil, "what the key may do, `PERMISSION,…`")
	cmd.Flags().StringSliceVar(&draft.Tenants, "tenant", nil, "`ID` of a tenant that the key is limited to; may be repeated")
	return checkFirst(refuseEmpty(requireFlags(cmd, "name", "may"), "tenant"), func() error { return key.CheckService(&draft) })
}

// serviceKeyView is a key in the output for programs.
type serviceKeyView struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Status    string            `json:"status"`
	May       []doorward.Action `json:"may"`
	Tenants   []string          `json:"tenants"` // empty: all
	CreatedAt time.Time         `json:"createdAt"`
}

func viewServiceKey(k doorward.ServiceKey) serviceKeyView {
	status := doorward.APIKeyActive
	if k.Disabled {
		status = doorward.APIKeyDisabled
	}
	return serviceKeyView{k.ID, k.Name, string(status), k.May, k.Tenants, k.CreatedAt}
}

func keyListServicesCommand() *cobra.Command {
	keys := listing[doorward.ServiceKey]{
		head: []string{"ID", "NAME", "STATUS", "CREATED", "TENANTS", "MAY"},
		row: func(k doorward.ServiceKey) []string {
			v, tenants := viewServiceKey(k), "all"
			if len(k.Tenants) > 0 {
				tenants = strings.Join(k.Tenants, ",")
			}
			return []string{v.ID, v.Name, v.Status, day(v.CreatedAt), tenants, actionList(k.May)}
		},
		object: func(k doorward.ServiceKey) any { return viewServiceKey(k) },
	}
	return keys.command(&cobra.Command{
		Use: "list-services", Short: "List the keys of the platform's own services",
		Example: "  doorward key list-services",
	}, func(ctx context.Context, n *node.Node) ([]doorward.ServiceKey, error) {
		return n.App.Keys.Services(ctx)
	})
}

func actionList(all []doorward.Action) string {
	text := make([]string, len(all))
	for i, a := range all {
		text[i] = string(a)
	}
	return strings.Join(text, ",")
}

func keyRevokeServiceCommand() *cobra.Command {
	return onServiceKey(&cobra.Command{
		Use: "revoke-service NAME", Short: "Revoke a service key, on every node",
		Long: `Revoke-service revokes the service key of that name or id, and the invitations that
it sent and that are pending. The next request with it is answered with 401, on every
node. It can't be undone; the trails of the installation and of the tenants record it.`,
		Example: "  doorward key revoke-service router",
	}, func(cmd *cobra.Command, n *node.Node, k doorward.ServiceKey) error {
		revoked, err := n.App.Keys.RevokeService(cmd.Context(), n.Operator(), k)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Service key %q (%s) is revoked, and %d of its invitations.\n", k.Name, k.ID, revoked)
		return nil
	})
}

func keyEnableServiceCommand() *cobra.Command {
	return onServiceKey(&cobra.Command{
		Use: "enable-service NAME", Short: "Let a service key work again that a restore has disabled",
		Long: `Enable-service lets the service key of that name or id work again. A restore from a
backup disables service keys, since some may have been revoked since the backup.`,
		Example: "  doorward key enable-service router",
	}, func(cmd *cobra.Command, n *node.Node, k doorward.ServiceKey) error {
		if err := n.App.Keys.EnableService(cmd.Context(), n.Operator(), k); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Service key %q (%s) works again.\n", k.Name, k.ID)
		return nil
	})
}

// onServiceKey makes a command that acts on the one key that its argument names.
func onServiceKey(cmd *cobra.Command, act func(*cobra.Command, *node.Node, doorward.ServiceKey) error) *cobra.Command {
	cmd.Args = oneArg("NAME or key id")
	return onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, args []string) error {
		found, err := n.App.Keys.FindServices(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if len(found) > 1 {
			ids := ""
			for _, k := range found {
				ids += fmt.Sprintf("\n  %s  (made %s)", k.ID, k.CreatedAt.Format(time.DateTime))
			}
			return usageError("%d keys are called %s. Name one by its id:%s", len(found), args[0], ids)
		}
		return act(cmd, n, found[0])
	})
}
