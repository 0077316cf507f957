package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/incident"
	"github.com/doorward/doorward/node"
)

func incidentCommand() *cobra.Command {
	return group("incident", "End the sessions or the passwords of many people, after a theft", recording(showingProgress(incidentSignOutCommand())), recording(showingProgress(incidentForceResetCommand())))
}

func incidentSignOutCommand() *cobra.Command {
	var which incident.Sessions
	var since string
	var yes bool
	cmd := &cobra.Command{
		Use: "sign-out", Short: "End all sessions, those of a tenant, or those since a time",
		Long: `Sign-out ends all sessions: of all tenants, or with --tenant of one, and with --since only
those that were opened since then. Servers keep running. When it returns, no server
accepts any of them. People sign in again as before: their passwords, second factors,
remembered browsers and API keys stay. "doorward incident force-reset" removes passwords,
"doorward user reset-mfa" the second factors of one person.

If it is interrupted, run it again. At a terminal it asks first, unless --yes is given.
docs/incidents.md says what else to do.`,
		Example: `  doorward incident sign-out --yes
  doorward incident sign-out --since 2h --reason 'ticket 4711'
  doorward incident sign-out --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --since 2025-03-02T09:00:00Z`, Args: noArgs,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		ended, err := n.App.Incidents.SignOut(cmd.Context(), n.Operator(), which)
		if err != nil {
			return interrupted(err, ended > 0)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Sessions ended: %d.\n", ended)
		return nil
	})
	cmd.Flags().StringVar(&which.TenantID, "tenant", "", "`id` of the only tenant")
	cmd.Flags().StringVar(&since, "since", "", "only sessions opened since a `TIME` such as 2025-03-02T09:00:00Z, or for a duration such as 2h or 7d")
	addYes(cmd, &yes)
	return checkFirst(refuseEmpty(cmd, "tenant", "since"), func() (err error) {
		if which.Since, err = parseSince(since); err != nil {
			return err
		}
		return confirm(cmd, yes, "This signs people out. Type yes to go on: ", "yes")
	})
}

func incidentForceResetCommand() *cobra.Command {
	var whose incident.People
	var all, yes bool
	cmd := &cobra.Command{
		Use: "force-reset", Short: "Remove the passwords of a person, of a tenant or of everybody, and mail resets",
		Long: `Force-reset removes the hashes of passwords, imported ones too, so that nobody can use
passwords that were stolen or are being guessed. Sessions and known browsers of these
people end, and each gets a mail with a link, valid for 24 hours, that sets a new password.
Later they get one by "Forgot password?". Second factors, passkeys and tenants' own sign-on
stay. Servers keep running, and send the mails.

With --tenant or --all the sessions end first, all of them, also those of people who have no
password; they sign in again as before. Then the passwords go, and the mails are queued
last. If it is interrupted, run it again: it goes on with those who still have a password
or were not mailed. At a terminal it asks first, unless --yes is given.`,
		Example: `  doorward incident force-reset --user ann@acme.example
  doorward incident force-reset --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --reason 'ticket 4711'
  doorward incident force-reset --all --yes`, Args: noArgs,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		done, err := n.App.Incidents.ForceReset(cmd.Context(), n.Operator(), whose)
		if err != nil {
			return interrupted(err, done.IsBegun())
		}
		if done.People == 0 && whose.Email != "" {
			return printUnchanged(cmd, whose.Email+" has no password, as somebody who signs in by a provider or a passkey, or whose password was removed before. \"doorward user sign-out "+whose.Email+"\" ends sessions")
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Passwords removed: %d. Mails queued: %d. Sessions ended: %d.\n", done.People, done.Mails, done.Sessions)
		return nil
	})
	cmd.Flags().StringVar(&whose.Email, "user", "", "`address` of the only person")
	cmd.Flags().StringVar(&whose.TenantID, "tenant", "", "`id` of the tenant whose members it is for")
	cmd.Flags().BoolVar(&all, "all", false, "everybody")
	addYes(cmd, &yes)
	cmd = refuseTogether(refuseTogether(refuseTogether(cmd, "user", "tenant"), "user", "all"), "tenant", "all")
	return checkFirst(refuseEmpty(cmd, "user", "tenant"), func() error {
		if whose == (incident.People{}) && !all {
			return usageError("Say whose passwords, with --user, --tenant or --all, for example:\n%s", cmd.Example)
		}
		return confirm(cmd, yes, "This removes passwords, which can't be undone. Type yes to go on: ", "yes")
	})
}

func addYes(cmd *cobra.Command, yes *bool) { cmd.Flags().BoolVar(yes, "yes", false, "don't ask") }

// confirm lets the operator at a terminal type the word, unless yes is set.
func confirm(cmd *cobra.Command, yes bool, question, word string) error {
	if yes || !isatty.IsTerminal(os.Stdin.Fd()) {
		return nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), question)
	typed, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil || strings.TrimSpace(typed) != word {
		return notDone("That is not %q. Nothing is changed.", word)
	}
	return nil
}

// parseSince parses a time, or how long ago it was; "" is the zero time.
func parseSince(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := doorward.ParseTime(text)
	if err != nil {
		ago, fault := parseExpiry(text)
		if at, err = time.Now().Add(-ago), fault; err != nil {
			return at, usageError("--since: write a time such as 2025-03-02T09:00:00Z, or a duration such as 2h or 7d.")
		}
	}
	if at.After(time.Now()) {
		return at, usageError("--since: %s is in the future.", text)
	}
	return at, nil
}

// interrupted says of an error that a part is done.
func interrupted(err error, begun bool) error {
	if !begun {
		return err
	}
	return fmt.Errorf("%w\n  A part is done, and stays so. Run the command again to finish it", err)
}
