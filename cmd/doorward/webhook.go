package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/node"
)

func webhookCommand() *cobra.Command {
	const enable, disable = true, false
	return group("webhook", "Manage the installation's webhooks, which get the events of all tenants", recording(webhookCreateCommand()), webhookListCommand(),
		recording(webhookSwitchCommand("enable", "Let a webhook get events again", enable)), recording(webhookSwitchCommand("disable", "Send a webhook nothing more, and drop what is pending", disable)),
		recording(webhookRotateCommand()), recording(webhookTestCommand()), webhookDeliveriesCommand(), recording(webhookRetryCommand()), recording(webhookReplayCommand()), recording(webhookDeleteCommand()), webhookQueueCommand())
}

func webhookCreateCommand() *cobra.Command {
	var url, about string
	var events, include []string
	s := newSettings()
	cmd := onDatabase(s, &cobra.Command{
		Use: "create", Short: "Create a webhook and print its secret, once",
		Long: `Create makes a webhook of the installation, which gets the events of all tenants,
and of the installation itself. Tenants make their own in the console. The secret is
the last line of the output and is shown only now.`,
		Example: "  doorward webhook create --url https://hooks.example.com/doorward --events 'user.*,tenant.*'", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		if err := n.App.MasterKey.Load(cmd.Context()); err != nil {
			return err
		}
		made, err := n.App.Webhooks.Create(cmd.Context(), n.Operator(), webhook.Draft{URL: &url, Events: &events, About: &about, Include: &include})
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Webhook %s, public key %s. Save the secret now, it is not shown again:\n%s\n", made.Webhook.ID, made.Webhook.PublicKey, made.Secret.Reveal())
		return nil
	})
	s.register(cmd.Flags(), node.GroupSeal)
	cmd.Flags().StringVar(&url, "url", "", "where the events go, an https `URL`")
	cmd.Flags().StringSliceVar(&events, "events", nil, "which: user.invite, user.* or *, `PATTERN,…`")
	cmd.Flags().StringVar(&about, "about", "", "what it is for")
	cmd.Flags().StringSliceVar(&include, "include", nil, "email: bodies hold e-mail addresses")
	return requireFlags(cmd, "url", "events")
}

func webhookListCommand() *cobra.Command {
	hooks := listing[doorward.Webhook]{
		head: []string{"ID", "STATUS", "CREATED", "EVENTS", "URL"},
		row: func(w doorward.Webhook) []string {
			return []string{w.ID, webhookStatus(w), day(w.CreatedAt), strings.Join(w.Events, ","), w.URL}
		},
		object: func(w doorward.Webhook) any {
			return map[string]any{"id": w.ID, "url": w.URL, "events": w.Events, "about": w.About, "include": w.Include, "enabled": w.Enabled, "publicKey": w.PublicKey, "createdAt": w.CreatedAt}
		},
	}
	return hooks.command(&cobra.Command{
		Use: "list", Short: "List the installation's webhooks", Example: "  doorward webhook list",
	}, func(ctx context.Context, n *node.Node) ([]doorward.Webhook, error) {
		page, err := n.App.Webhooks.List(ctx, n.Operator(), doorward.Window{Limit: doorward.WebhooksMax})
		return page.Items, err
	})
}

func webhookStatus(w doorward.Webhook) string {
	switch {
	case !w.Enabled && w.DisabledReason != "":
		return "disabled: " + string(w.DisabledReason)
	case !w.Enabled:
		return "disabled"
	case w.FailingSince != nil:
		return "failing"
	}
	return "enabled"
}

func webhookSwitchCommand(use, short string, enabled bool) *cobra.Command {
	return onWebhook(withoutMigration(), &cobra.Command{Use: use + " ID", Short: short, Example: "  doorward webhook " + use + " whk_5tqm7x3yh4n6rj7wd2c5tpae7k"},
		func(cmd *cobra.Command, n *node.Node, id string) error {
			var anyVersion []string // the edit is based on none
			w, err := n.App.Webhooks.Edit(cmd.Context(), n.Operator(), id, webhook.Draft{Enabled: &enabled}, anyVersion)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "Webhook %s: %s.\n", w.ID, webhookStatus(w))
			}
			return err
		})
}

func webhookRotateCommand() *cobra.Command {
	hours, s := int64(doorward.WebhookGraceHours), withoutMigration()
	cmd := onWebhook(s, &cobra.Command{
		Use: "rotate-secret ID", Short: "Give a webhook a new secret and print it, once",
		Long: `Rotate-secret replaces the secret, which is the last line of the output. Until the grace is over,
messages are signed with both. The public key in the output stays as it was, except after
"doorward key replace-master".`,
		Example: "  doorward webhook rotate-secret whk_5tqm7x3yh4n6rj7wd2c5tpae7k --grace-hours 48",
	}, func(cmd *cobra.Command, n *node.Node, id string) error {
		if err := n.App.MasterKey.Load(cmd.Context()); err != nil {
			return err
		}
		made, err := n.App.Webhooks.Rotate(cmd.Context(), n.Operator(), id, &hours)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "Give the receiver the secret below and, if it verifies by public key, %s.\n%s\n", made.Webhook.PublicKey, made.Secret.Reveal())
		}
		return err
	})
	s.register(cmd.Flags(), node.GroupSeal)
	cmd.Flags().Int64Var(&hours, "grace-hours", hours, "how long the present secret stays in use, in `hours`")
	return cmd
}

func webhookTestCommand() *cobra.Command {
	s := withoutMigration()
	cmd := onWebhook(s, &cobra.Command{
		Use: "test ID", Short: "Send a test to a webhook", Example: "  doorward webhook test whk_5tqm7x3yh4n6rj7wd2c5tpae7k",
	}, func(cmd *cobra.Command, n *node.Node, id string) error {
		if err := n.App.MasterKey.Load(cmd.Context()); err != nil {
			return err
		}
		made, err := n.App.Webhooks.Test(cmd.Context(), n.Operator(), id)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "status %d after %d ms. %s\n", made.Status, made.Ms, made.Error)
		}
		return err
	})
	s.register(cmd.Flags(), node.GroupSeal)
	return cmd
}

func webhookDeliveriesCommand() *cobra.Command {
	state := ""
	cmd := onWebhook(withoutMigration(), &cobra.Command{
		Use: "deliveries ID", Short: "List the last hundred deliveries of a webhook", Example: "  doorward webhook deliveries whk_5tqm7x3yh4n6rj7wd2c5tpae7k --state failed",
	}, func(cmd *cobra.Command, n *node.Node, id string) error {
		page, err := n.App.Webhooks.Deliveries(cmd.Context(), n.Operator(), id, state, doorward.Window{Limit: 100})
		for _, d := range page.Items {
			fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %s  %s  %d attempts\n", d.ID, d.CreatedAt.Format("2006-01-02 15:04:05"), d.Type, d.State, len(d.Attempts))
		}
		return err
	})
	cmd.Flags().StringVar(&state, "state", "", "pending, delivered, failed or dropped")
	return cmd
}

func webhookRetryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "retry DELIVERY", Short: "Try a delivery again now", Example: "  doorward webhook retry whd_5tqm7x3yh4n6rj7wd2c5tpae7k", Args: oneArg("id of a delivery")}
	return onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, args []string) error {
		err := n.App.Webhooks.Retry(cmd.Context(), n.Operator(), args[0])
		if doorward.HasCode(err, doorward.CodeNotFound) {
			return notDone("No delivery to a webhook of the installation has the id %s. \"doorward webhook deliveries\" shows them.", args[0])
		}
		return err
	})
}

func webhookReplayCommand() *cobra.Command {
	var events []string
	cmd := onWebhook(withoutMigration(), &cobra.Command{
		Use: "replay ID", Short: "Send a webhook the events of the past again", Example: "  doorward webhook replay whk_5tqm7x3yh4n6rj7wd2c5tpae7k --events 'user.*'",
		Long: "Replay queues the events that are kept and that the webhook's patterns match, the oldest first, at most 10,000.",
	}, func(cmd *cobra.Command, n *node.Node, id string) error {
		queued, err := n.App.Webhooks.Replay(cmd.Context(), n.Operator(), id, webhook.Replay{Events: events})
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), counted(queued, "event is queued.", "events are queued."))
		}
		return err
	})
	cmd.Flags().StringSliceVar(&events, "events", nil, "only these, `PATTERN,…`")
	return refuseEmpty(cmd, "events")
}

func webhookDeleteCommand() *cobra.Command {
	return onWebhook(withoutMigration(), &cobra.Command{
		Use: "delete ID", Short: "Delete a webhook with its deliveries", Example: "  doorward webhook delete whk_5tqm7x3yh4n6rj7wd2c5tpae7k",
	}, func(cmd *cobra.Command, n *node.Node, id string) error {
		return n.App.Webhooks.Delete(cmd.Context(), n.Operator(), id)
	})
}

// onWebhook makes a command that acts on the webhook that its argument names.
func onWebhook(s *settings, cmd *cobra.Command, act func(*cobra.Command, *node.Node, string) error) *cobra.Command {
	cmd.Args = oneArg("id of a webhook")
	return onDatabase(s, cmd, func(cmd *cobra.Command, n *node.Node, args []string) error {
		err := act(cmd, n, args[0])
		if doorward.HasCode(err, doorward.CodeNotFound) {
			return notDone("No webhook of the installation has the id %s. \"doorward webhook list\" shows all.", args[0])
		}
		return err
	})
}
