package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/node"
)

func userCommand() *cobra.Command {
	return group("user", "List and import people, and help or stop one of them",
		userListCommand(), recording(showingProgress(userImportCommand())), recording(userSuspendCommand()), recording(userResumeCommand()), recording(userSetRoleCommand()), recording(userResetMFACommand()), recording(userEraseCommand()),
		userShowCommand(), recording(userSignOutCommand()), recording(userUnlockCommand()), recording(userResetLinkCommand()), recording(userSetEmailCommand()), recording(userExportCommand()))
}

// userView is a membership in the output for programs.
type userView struct {
	ID          string              `json:"id"`
	Email       string              `json:"email"`
	Name        string              `json:"name"`
	Role        doorward.Role       `json:"role"`
	Status      doorward.UserStatus `json:"status"`
	TenantID    string              `json:"tenantId"`
	TenantName  string              `json:"tenantName"`
	CreatedAt   time.Time           `json:"createdAt"`
	LastLoginAt *time.Time          `json:"lastLoginAt,omitempty"`
}

func viewUser(u doorward.User) any {
	return userView{u.ID, u.Email, u.Name, u.Role, u.Status, u.TenantID, u.TenantName, u.CreatedAt, u.LastLoginAt}
}

func userListCommand() *cobra.Command {
	people := listing[doorward.User]{
		head: []string{"EMAIL", "ROLE", "STATUS", "TENANT", "TENANT ID", "USER ID"},
		row: func(u doorward.User) []string {
			return []string{u.Email, string(u.Role), string(u.Status), u.TenantName, u.TenantID, u.ID}
		},
		object: viewUser,
	}
	var tenant string
	var f user.Filter
	cmd := people.pages(&cobra.Command{
		Use: "list", Short: "List people and their roles",
		Long: `List prints the people whom all the flags select, the oldest tenant first, and in it the oldest
membership. A person who is in several tenants is printed for each of them. It reads and
prints a few hundred rows at a time.`,
		Example: `  doorward user list
  doorward user list --json --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae
  doorward user list --q ann --status suspended --limit 20`,
	}, func(ctx context.Context, n *node.Node) iter.Seq2[doorward.User, error] {
		return n.App.Users.All(ctx, tenant, f)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`id` of the only tenant to list")
	cmd.Flags().StringVar(&f.Text, "q", "", "only people whose address or name contains these `WORDS`, in any order")
	cmd.Flags().StringVar(&f.Status, "status", "", "active or suspended")
	completeWith(cmd, "status", string(doorward.UserActive), string(doorward.UserSuspended))
	return refuseEmpty(cmd, "tenant", "q", "status")
}

// onMembership makes a command that acts on one person's membership of a tenant.
func onMembership(cmd *cobra.Command, do func(cmd *cobra.Command, n *node.Node, u doorward.User) error) *cobra.Command {
	var tenant string
	cmd.Args = oneArg("EMAIL or user id")
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, args []string) error {
		u, err := findMembership(cmd, n, args[0], tenant)
		if err != nil {
			return err
		}
		return do(cmd, n, u)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`id` of the tenant, for people who are in several")
	return cmd
}

// findMembership returns the only membership of an address or user id, or the one in the
// tenant. With several and no tenant, the error lists them.
func findMembership(cmd *cobra.Command, n *node.Node, who, tenant string) (doorward.User, error) {
	found, err := n.App.Users.Find(cmd.Context(), who, tenant)
	if err != nil {
		return doorward.User{}, err
	}
	if len(found) > 1 {
		return doorward.User{}, usageError("%s is in several tenants. Name one with%s", who, tenantFlags(found))
	}
	return found[0], nil
}

func tenantFlags(found []doorward.User) string {
	var b strings.Builder
	for _, u := range found {
		fmt.Fprintf(&b, "\n  --tenant %s  (%s, %s)", u.TenantID, u.TenantName, u.Role)
	}
	return b.String()
}

func userSuspendCommand() *cobra.Command {
	return onMembership(&cobra.Command{
		Use: "suspend EMAIL", Short: "Keep somebody out of a tenant, and end the sessions there",
		Example: "  doorward user suspend ann@acme.example",
	}, func(cmd *cobra.Command, n *node.Node, u doorward.User) error {
		if slices.Contains(u.Suspensions(), doorward.ByAdministrator) {
			return printUnchanged(cmd, u.Email+" was suspended in "+u.TenantName+" already")
		}
		ended, err := n.App.Users.Suspend(cmd.Context(), n.Operator(), u)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is suspended in %s. Sessions ended: %d. Invitations revoked: %d.\n",
			u.Email, u.TenantName, ended.Sessions, ended.Invitations)
		if len(ended.Webhooks) > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "Webhooks that the person has made, and that go on: %d.\n", len(ended.Webhooks))
		}
		return nil
	})
}

func userResumeCommand() *cobra.Command {
	override := false
	cmd := &cobra.Command{
		Use: "resume EMAIL", Short: "Let a suspended person in again",
		Example: "  doorward user resume ann@acme.example",
	}
	cmd.Flags().BoolVar(&override, "override", false, "lift a suspension by a directory that runs, too")
	return onMembership(cmd, func(cmd *cobra.Command, n *node.Node, u doorward.User) error {
		if u.IsActive() {
			return printUnchanged(cmd, u.Email+" isn't suspended in "+u.TenantName)
		}
		status := doorward.UserActive
		after, _, err := n.App.Users.Edit(cmd.Context(), n.Operator(), u, user.Edit{Status: &status, Override: override})
		if err != nil {
			return err
		}
		if left := after.Suspensions(); len(left) > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "%s is still suspended in %s, by %s. To lift that, too, add --override.\n", u.Email, u.TenantName, strings.Join(left, ", "))
			return nil
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is active in %s.\n", u.Email, u.TenantName)
		return nil
	})
}

func userResetMFACommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset-mfa EMAIL", Short: "Remove somebody's second factors and end all their sessions",
		Example: "  doorward user reset-mfa ann@acme.example",
		Args:    oneArg("EMAIL"),
	}
	return onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, args []string) error {
		ended, err := n.App.Factors.ResetByAddress(cmd.Context(), n.Operator(), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s has no second factor now. Sessions ended: %d.\n", args[0], ended.Sessions)
		return nil
	})
}

func userSetRoleCommand() *cobra.Command {
	var role string
	cmd := onMembership(&cobra.Command{
		Use: "set-role EMAIL --role ROLE", Short: "Give somebody another role",
		Example: "  doorward user set-role ann@acme.example --role ADMIN",
	}, func(cmd *cobra.Command, n *node.Node, u doorward.User) error {
		if u.Role == doorward.Role(role) {
			return printUnchanged(cmd, u.Email+" was "+role+" in "+u.TenantName+" already")
		}
		if err := n.App.Users.SetRole(cmd.Context(), n.Operator(), u, doorward.Role(role)); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is now %s in %s.\n", u.Email, role, u.TenantName)
		return nil
	})
	cmd.Flags().StringVar(&role, "role", "", "OWNER, ADMIN, USER, VIEWER or a role that the tenant has made")
	completeWith(cmd, "role") // with nothing, not even files: the tenant's own roles are in the database
	return requireFlags(cmd, "role")
}

func userEraseCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "erase ADDRESS", Short: "Erase somebody's account in all tenants, for good",
		Long: `Erase takes the person out of all tenants and deletes the account with what is kept about
it: password, factors, sessions, mails, counters. Audit events and answered invitations
stay, without name, address and network. OWNERs are told what the person has left in their
tenants, such as webhooks. It works for people in no tenant, too. Nothing is
changed if a tenant would be left without an active OWNER. Backups from before still have
the account.

At a terminal it asks first, unless --yes is given.`,
		Example: "  doorward user erase ann@acme.example\n  doorward user erase ann@acme.example --yes",
		Args:    oneArg("ADDRESS"),
		PreRunE: func(cmd *cobra.Command, args []string) error {
			question := fmt.Sprintf("This erases the account of %s in all tenants, for good. Type the address again: ", args[0])
			return confirm(cmd, yes, question, args[0])
		},
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, args []string) error {
		erased, err := n.App.Users.EraseAddress(cmd.Context(), n.Operator(), args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "The account is erased. Tenants left: %d. Sessions ended: %d. API keys revoked: %d. Invitations revoked: %d.\n",
			len(erased.Tenants), erased.Sessions, erased.APIKeys, erased.Invitations)
		return nil
	})
	addYes(cmd, &yes)
	return cmd
}
