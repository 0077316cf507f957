package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/node"
)

// onPerson makes a command about the account that its first argument names.
func onPerson(s *settings, cmd *cobra.Command, do func(cmd *cobra.Command, n *node.Node, address string) error) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = oneArg("EMAIL")
	}
	return onDatabase(s, cmd, func(cmd *cobra.Command, n *node.Node, args []string) error { return do(cmd, n, args[0]) })
}

func userShowCommand() *cobra.Command {
	asJSON := false
	cmd := onPerson(withoutMigration(), &cobra.Command{
		Use: "show EMAIL", Short: "Show an account: tenants, sessions, factors, keys",
		Example: "  doorward user show ann@acme.example",
	}, func(cmd *cobra.Command, n *node.Node, address string) error {
		held, err := n.App.Accounts.Show(cmd.Context(), address)
		switch {
		case err != nil:
			return err
		case asJSON:
			return json.NewEncoder(cmd.OutOrStdout()).Encode(held)
		}
		writePerson(cmd.OutOrStdout(), held)
		return nil
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, as \"doorward user export\", without events")
	return cmd
}

// writePerson writes what an operator looks for first.
func writePerson(w io.Writer, h account.Held) {
	password := "none"
	if h.Account.HasPassword {
		password = "set"
	}
	fmt.Fprintf(w, "%s  %s  created %s, password %s\n", h.Account.Email, h.Account.ID, day(h.Account.CreatedAt), password)
	if h.Account.ManagedBy != "" {
		fmt.Fprintf(w, "managed by the sign-on of %s\n", h.Account.ManagedBy)
	}
	if len(h.Account.FormerEmails) > 0 {
		fmt.Fprintf(w, "addresses of the last 7 days: %s\n", strings.Join(h.Account.FormerEmails, ", "))
	}
	for _, m := range h.Memberships {
		fmt.Fprintf(w, "tenant   %s  %s  %s  %s\n", m.TenantID, m.TenantName, m.Role, m.Status)
	}
	for _, f := range h.Factors {
		state := "in use"
		if f.ConfirmedAt == nil {
			state = "being set up"
		}
		if f.DisabledAt != nil {
			state = "disabled"
		}
		fmt.Fprintf(w, "factor   %s  %s  %s\n", f.ID, f.Type, state)
	}
	for _, s := range h.Sessions {
		fmt.Fprintf(w, "session  %s  %s  opened %s, last seen %s, from %s\n", s.ID, s.TenantID, second(s.CreatedAt), second(s.LastSeenAt), s.IP)
	}
	for _, k := range h.APIKeys {
		fmt.Fprintf(w, "key      %s  %s  %s  %s\n", k.ID, k.TenantID, k.Name, k.Status)
	}
	fmt.Fprintf(w, "recovery codes: %d, known browsers: %d\n", h.RecoveryCodes, len(h.Browsers))
}

func second(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func userSignOutCommand() *cobra.Command {
	return onPerson(withoutMigration(), &cobra.Command{
		Use: "sign-out EMAIL", Short: "End all sessions of somebody, in all tenants, and forget the known browsers",
		Example: "  doorward user sign-out ann@acme.example --reason 'stolen laptop'",
	}, func(cmd *cobra.Command, n *node.Node, address string) error {
		ended, err := n.App.Accounts.SignOut(cmd.Context(), n.Operator(), address)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s is signed out. Sessions ended: %d.\n", address, ended.Sessions)
		}
		return err
	})
}

func userUnlockCommand() *cobra.Command {
	return onPerson(withoutMigration(), &cobra.Command{
		Use: "unlock EMAIL", Short: "End the delays after wrong passwords and codes",
		Long: `Unlock lets somebody sign in at once who has to wait after wrong passwords or codes. The
limits of their network stay: they are for all who share it.`,
		Example: "  doorward user unlock ann@acme.example",
	}, func(cmd *cobra.Command, n *node.Node, address string) error {
		err := n.App.Accounts.Unlock(cmd.Context(), n.Operator(), address)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s can sign in at once.\n", address)
		}
		return err
	})
}

func userResetLinkCommand() *cobra.Command {
	cmd := onPerson(withoutMigration(), &cobra.Command{
		Use: "reset-link EMAIL", Short: "Print a link by which somebody sets another password",
		Long: `Reset-link prints a link, on the last line, that sets another password, once, within 30
minutes. Give it to that person only, after you have made sure who it is: with it anybody
has the account, unless a second factor is asked for. Earlier links for a new password end. Once it
is used, all sessions end, and the person gets a mail.`,
		Example: "  doorward user reset-link ann@acme.example --reason 'ticket 4711'",
	}, func(cmd *cobra.Command, n *node.Node, address string) error {
		token, ends, err := n.App.Accounts.ResetLink(cmd.Context(), n.Operator(), address)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "This link sets another password for %s. It works once, until %s:\n%s/reset#token=%s\n", address, second(ends), n.URL(), token.Reveal())
		}
		return err
	})
	showFlags(cmd, "base-url", "listen")
	return cmd
}

func userSetEmailCommand() *cobra.Command {
	var to account.NewEmail
	cmd := onPerson(withoutMigration(), &cobra.Command{
		Use: "set-email EMAIL NEW", Short: "Give an account another address",
		Long: `Set-email is for somebody who can't read mail at the old address. It ends all sessions,
known browsers and mailed links. Second factors stay, unless --reset-mfa is given. Both
addresses get a mail. By the mail to the old one, its reader can undo the change for 7
days; with --no-undo, for an address that somebody else reads, that mail has no link.

If a tenant doesn't allow the new address, nothing is changed; with --suspend the person is
suspended there.`,
		Example: `  doorward user set-email ann@acme.example ann@globex.example --reason 'ticket 4711'
  doorward user set-email ann@acme.example ann@globex.example --no-undo --reset-mfa`,
		Args: twoArgs("EMAIL", "NEW"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			to.To = args[1]
			return nil
		},
	}, func(cmd *cobra.Command, n *node.Node, address string) error {
		to.From = address
		ended, err := n.App.Accounts.SetEmail(cmd.Context(), n.Operator(), to)
		if err != nil {
			return describeSetEmail(err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is now %s. Sessions ended: %d.\n", address, to.To, ended.Sessions)
		return nil
	})
	cmd.Flags().BoolVar(&to.ResetMFA, "reset-mfa", false, "remove second factors and recovery codes, too")
	cmd.Flags().BoolVar(&to.NoUndo, "no-undo", false, "don't let the reader of the old address undo it")
	cmd.Flags().BoolVar(&to.Suspend, "suspend", false, "suspend the person in tenants that don't allow the new address")
	return cmd
}

// describeSetEmail names the tenants that don't allow the address.
func describeSetEmail(err error) error {
	var refused *doorward.Error
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Code == doorward.CodeMembershipsAffected:
		names := ""
		for _, t := range refused.Tenants {
			names += fmt.Sprintf("\n  %s  %s", t.ID, t.Name)
		}
		return notDone("These tenants don't allow the new address. Nothing is changed; --suspend changes it, and suspends the person there:%s", names)
	case len(refused.Fields) > 0: // of the argument, which is no flag
		return usageError("%s", refused.Fields[0].Message)
	}
	return err
}

func userExportCommand() *cobra.Command {
	output := ""
	cmd := onPerson(withoutMigration(), &cobra.Command{
		Use: "export EMAIL", Short: "Write what is held about somebody as JSON",
		Long: `Export writes one JSON document with what is held about the person, the same that the
person can take at /account: account, tenants, sessions, factors, keys, mails and audit
events. It has no secrets. The trails of the person's tenants record it.`,
		Example: "  doorward user export ann@acme.example --output ann.json",
	}, func(cmd *cobra.Command, n *node.Node, address string) error {
		n.App.Inbox.RecordPending(cmd.Context())
		return writeTo(output, cmd.OutOrStdout(), func(w io.Writer) error {
			return n.App.Accounts.ExportFor(cmd.Context(), n.Operator(), address, w)
		})
	})
	cmd.Flags().StringVar(&output, "output", "", "`FILE` to write, readable by its owner only (default standard output)")
	return cmd
}
