package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/node"
)

// onDatabase makes a command that works on the database, whether a server runs or not.
// The flags for the server's address are accepted but hidden: few commands use them.
func onDatabase(s *settings, cmd *cobra.Command, do func(cmd *cobra.Command, n *node.Node, args []string) error) *cobra.Command {
	s.registerBase(cmd.Flags())
	hideFlags(cmd, addresses()...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := s.read(cmd)
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

func hideFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		cmd.Flags().Lookup(name).Hidden = true
	}
}

// showFlags shows flags that onDatabase has hidden.
func showFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		cmd.Flags().Lookup(name).Hidden = false
	}
}

// withoutMigration returns settings for commands that refuse an outdated schema instead of
// migrating it.
func withoutMigration() *settings {
	s := newSettings()
	s.cfg.Migrate = false
	return s
}

func tenantCommand() *cobra.Command {
	return group("tenant", "Create, list, export, freeze, close and limit tenants",
		recording(tenantCreateCommand()), tenantListCommand(), recording(showingProgress(tenantExportCommand())), recording(tenantFreezeCommand()), recording(tenantThawCommand()), recording(tenantCloseCommand()), recording(tenantRestoreCommand()), recording(tenantQuotaCommand()))
}

func tenantCreateCommand() *cobra.Command {
	s := newSettings()
	var d tenant.Draft
	cmd := onDatabase(s, &cobra.Command{
		Use:   "create",
		Short: "Create a tenant and invite its first OWNER",
		Long: `Create brings the schema up to date, creates the tenant, mails its first OWNER an
invitation and prints a link to accept it, on the last line. Either the mail or the
link can be used, once, within 7 days. If the mail server does not accept the mail
within 10 s, a running server keeps trying. Other queued mail is left to running
servers.`,
		Example: `  doorward tenant create --name Acme --owner-email owner@acme.example`,
		Args:    noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		created, err := n.App.Tenants.Create(cmd.Context(), n.Operator(), d)
		if err != nil {
			return err
		}
		mail, err := deliver(cmd.Context(), n, created.Invitation.ID)
		if s.logsMail() && mail == mailSent {
			mail = "The mail is in the log above only, unless a running server has sent it. Set --smtp to send mails."
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Created tenant %s (%s) and invited %s as its first OWNER.\n%s\nThis link accepts the invitation, too:\n%s/accept#token=%s\n",
			created.Tenant.Name, created.Tenant.ID, created.Invitation.Email, mail, n.URL(), created.Token.Reveal())
		return err
	})
	s.register(cmd.Flags(), node.GroupMail, node.GroupTexts)
	showFlags(cmd, "base-url", "listen")
	cmd.Flags().StringVar(&d.Name, "name", "", "name of the tenant")
	cmd.Flags().StringVar(&d.OwnerEmail, "owner-email", "", "address of the first OWNER")
	cmd.Flags().StringVar(&d.Locale, "locale", "", "language of the mails to the first OWNER, such as de; empty: English")
	return checkFirst(requireFlags(cmd, "name", "owner-email"), func() error { return tenant.Check(&d) })
}

const mailSent = "The mail was sent."

// deliver polls, because a running server may have claimed the mail first and be sending it.
const (
	deliveryTimeout   = 10 * time.Second // for the mail server
	deliveryPolls     = 20
	deliveryPollEvery = 100 * time.Millisecond
)

// deliver sends the invitation's mail and returns its outcome as a sentence. Other
// queued mail is left to running servers. The tenant exists whatever the outcome.
func deliver(ctx context.Context, n *node.Node, invitationID string) (string, error) {
	delivered := n.App.Mail.DeliverForSubject(ctx, invitationID, deliveryTimeout)
	for range deliveryPolls {
		inv, err := n.DB.Read().Invitation(ctx, invitationID)
		switch {
		case err != nil:
			return "It is unknown whether the mail was sent.", errors.Join(delivered, err)
		case inv.Delivery == doorward.DeliverySent:
			return mailSent, delivered
		case inv.Delivery == doorward.DeliveryFailed:
			return "The mail can't be delivered.", delivered
		}
		select {
		case <-ctx.Done():
		case <-time.After(deliveryPollEvery):
		}
	}
	return "The mail was not sent yet; a running server keeps trying.", delivered
}

// tenantView is a tenant in the output for programs.
type tenantView struct {
	ID        string                `json:"id"`
	Name      string                `json:"name"`
	Status    doorward.TenantStatus `json:"status"`
	CreatedAt time.Time             `json:"createdAt"`
	// DestroyedAt is when the data of a closed tenant is destroyed; absent unless the tenant is
	// closed and the time is stored.
	DestroyedAt *time.Time `json:"destroyedAt,omitempty"`
}

func tenantListCommand() *cobra.Command {
	tenants := listing[doorward.Tenant]{
		head:   []string{"ID", "NAME", "STATUS", "CREATED"},
		row:    func(t doorward.Tenant) []string { return []string{t.ID, t.Name, string(t.Status), day(t.CreatedAt)} },
		object: func(t doorward.Tenant) any { return tenantView{t.ID, t.Name, t.Status, t.CreatedAt, t.DestroyAt} },
	}
	var f tenant.Filter
	cmd := tenants.pages(&cobra.Command{
		Use: "list", Short: "List tenants",
		Long: `List prints the tenants that all the flags select, the oldest first. It reads and prints a few
hundred rows at a time.`,
		Example: "  doorward tenant list\n  doorward tenant list --json --status closing\n  doorward tenant list --q acme --limit 20",
	}, func(ctx context.Context, n *node.Node) iter.Seq2[doorward.Tenant, error] {
		return n.App.Tenants.All(ctx, n.Operator(), f)
	})
	cmd.Flags().StringVar(&f.Text, "q", "", "only tenants whose name or id contains these `WORDS`, in any order")
	cmd.Flags().StringVar(&f.Status, "status", "", "active, frozen or closing")
	completeWith(cmd, "status", string(doorward.TenantActive), string(doorward.TenantFrozen), string(doorward.TenantClosing))
	return refuseEmpty(cmd, "q", "status")
}

// printUnchanged says that a command had nothing to do, and why.
func printUnchanged(cmd *cobra.Command, why string) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), why+": nothing is changed.")
	return err
}

func tenantFreezeCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "freeze TENANT-ID", Short: "Block all access to a tenant and end its sessions",
		Example: "  doorward tenant freeze tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		before, err := n.App.Tenants.Get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if before.Status == doorward.TenantFrozen {
			return printUnchanged(cmd, "It was frozen already")
		}
		ended, err := n.App.Tenants.Freeze(cmd.Context(), n.Operator(), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Frozen. Sessions ended: %d.\n", ended.Sessions)
		return nil
	})
}

func tenantThawCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "thaw TENANT-ID", Short: "Allow access to a frozen tenant again",
		Example: "  doorward tenant thaw tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		before, err := n.App.Tenants.Get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if before.Status == doorward.TenantActive {
			return printUnchanged(cmd, "It isn't frozen")
		}
		if _, err := n.App.Tenants.Thaw(cmd.Context(), n.Operator(), args[0]); err != nil {
			return err
		}
		t, err := n.App.Tenants.Get(cmd.Context(), args[0])
		if err == nil && t.ClosedAt != nil {
			fmt.Fprintf(cmd.OutOrStdout(), "Thawed. It is still closed: its OWNER can restore it until %s.\n", n.App.Tenants.DestroyedAt(t).Format(time.RFC3339))
			return nil
		}
		fmt.Fprintln(cmd.OutOrStdout(), "Thawed. People must sign in again.")
		return err
	})
}

func tenantCloseCommand() *cobra.Command {
	s := withoutMigration()
	cmd := onDatabase(s, &cobra.Command{
		Use: "close TENANT-ID", Short: "Close a tenant, as its OWNER can",
		Long: `Close ends all sessions and keys of the tenant at once. Its data is destroyed after
--tenant-hold, which must be the same as for the servers; until then "doorward tenant
restore", or its OWNER, can restore it. To keep its OWNER out as well, freeze it, too:
while it is frozen, nothing is destroyed.`,
		Example: "  doorward tenant close tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		before, err := n.App.Tenants.Get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if before.ClosedAt != nil {
			return printUnchanged(cmd, "It was closed already, and its data is destroyed at "+n.App.Tenants.DestroyedAt(before).Format(time.RFC3339)+", unless it is restored or frozen")
		}
		ended, err := n.App.Tenants.CloseFor(cmd.Context(), n.Operator(), args[0])
		if err != nil {
			return err
		}
		t, err := n.App.Tenants.Get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Closed; %s ended. Its data is destroyed at %s, unless it is restored or frozen.\n",
			counted(ended.Sessions, "session", "sessions"), n.App.Tenants.DestroyedAt(t).Format(time.RFC3339))
		return nil
	})
	for _, d := range s.list() {
		if d.Name == "tenant-hold" {
			addFlag(cmd.Flags(), d)
		}
	}
	return cmd
}

func tenantRestoreCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "restore TENANT-ID", Short: "Restore a closed tenant",
		Example: "  doorward tenant restore tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		if _, err := n.App.Tenants.RestoreFor(cmd.Context(), n.Operator(), args[0]); err != nil {
			return err
		}
		t, err := n.App.Tenants.Get(cmd.Context(), args[0])
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "Restored. Its status is %s; people must sign in again.\n", t.Status)
		}
		return err
	})
}
