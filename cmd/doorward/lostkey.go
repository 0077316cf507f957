package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store/lease"
)

func keyReplaceMasterCommand() *cobra.Command {
	var yes bool
	s := withoutMigration()
	cmd := onDatabase(s, &cobra.Command{
		Use: "replace-master NEW", Short: "Replace a master key that is lost, and forget what it has sealed",
		Long: `Replace-master makes the key in the file NEW the master key of the database, although the
present one is lost. It makes NEW if there is no such file. What the lost key has sealed
can't be read any more. The command lists it first, and then forgets it:

  authenticator apps     can't be used, but still count: nobody signs in with the password
                         alone who needed a second factor. Recovery codes, passkeys and
                         resets of factors remain.
  webhooks               are disabled until their managers, who get a mail, have rotated
                         the secret and given it, and the new public key, to the receiver
  connections            sign nobody in until their client secret is entered again; keys of
                         Doorward's own are replaced, and a provider of SAML that uses
                         them has to read our metadata again. OWNERs get a mail that lists
                         the webhooks and connections of their tenant
  keys of assertions     are replaced

It works with no server running, or beside running ones. Those that still have the lost key
in memory lose it: put NEW where --master-key-file says, for every server; they read it
within a minute. If the key is in that file now, nothing is done: see "rotate-master".

At a terminal it asks first, unless --yes is given. If it is interrupted, run it again.
Backups from before need the lost key, and this command after a restore.`,
		Example: `  doorward key replace-master /etc/doorward/master.key --reason 'disk died'
  doorward key replace-master /etc/doorward/master.key --yes`, Args: oneArg("NEW"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		return replaceMaster(cmd, n, args[0], yes)
	})
	s.register(cmd.Flags(), node.GroupSeal)
	addYes(cmd, &yes)
	return cmd
}

func replaceMaster(cmd *cobra.Command, n *node.Node, file string, yes bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	next, err := masterkey.File{Path: file, Optional: true}.Read()
	if err != nil {
		return usageError("%s", plain(err))
	}
	lost, err := n.App.MasterKey.Lost(ctx, next)
	if err != nil {
		return replaceError(err, 0)
	}
	if len(lost.Keys) == 0 {
		return notDone("no key is lost: the database has used none, or %s has it. Nothing has changed.", file)
	}
	listLost(out, lost)
	if err := warnOfLiveKey(ctx, cmd.ErrOrStderr(), n, lost); err != nil {
		return err
	}
	if err := confirm(cmd, yes, "This can't be undone. Type yes to go on: ", "yes"); err != nil {
		return err
	}
	isNew := next.IsZero()
	if isNew {
		if next, err = seal.Create(file); err != nil {
			return notDone("%s.", plain(err))
		}
	}
	forgotten, err := n.App.MasterKey.Replace(ctx, n.Operator(), next)
	if err != nil {
		if notLost := (*masterkey.NotLostError)(nil); isNew && errors.As(err, &notLost) {
			_ = os.Remove(file) // an unused key, which somebody might take for the right one
		}
		return replaceError(err, forgotten.Len())
	}
	fmt.Fprintf(out, "The key %s is the master key now. Forgotten: %d. The trails say whose: key.replace_master, webhook.disable, connection.secret.\nServers need %s as their --master-key-file.\n", next.ID(), forgotten.Len(), file)
	return nil
}

// replaceError says what to do about a failure, after the number of rows.
func replaceError(err error, rows int) error {
	notLost := (*masterkey.NotLostError)(nil)
	if errors.As(err, &notLost) {
		return notDone("%s. Nothing has changed.", plain(err))
	}
	return interrupted(err, rows > 0)
}

// lostKinds are the tables with sealed values, as they are called to an operator.
var lostKinds = []struct{ table, name string }{
	{"factors", "authenticator apps"},
	{"webhooks", "webhooks"},
	{"connection_secrets", "client secrets of connections"},
	{"connection_keys", "keys of connections"},
	{"connection_saml_keys", "keys of connections by SAML"},
	{"signing_keys", "keys of assertions"},
}

// listedMax is how many ids of a kind are listed.
const listedMax = 20

func listLost(out io.Writer, lost masterkey.Lost) {
	fmt.Fprintf(out, "Lost with the key %s:\n", strings.Join(lost.Keys, ", "))
	for _, kind := range lostKinds {
		ids := lost.Tables[kind.table]
		fmt.Fprintf(out, "  %-30s %d", kind.name, len(ids))
		if len(ids) > 0 && kind.table != "factors" {
			fmt.Fprint(out, "  ", strings.Join(ids[:min(len(ids), listedMax)], " "))
		}
		if len(ids) > listedMax && kind.table != "factors" {
			fmt.Fprint(out, " …")
		}
		fmt.Fprintln(out)
	}
}

// warnOfLiveKey says that running servers have a lost key: its file may be on their machines.
func warnOfLiveKey(ctx context.Context, stderr io.Writer, n *node.Node, lost masterkey.Lost) error {
	inFiles, err := lease.PublishedValues(ctx, n.DB, app.MasterKeySetting)
	if err != nil {
		return err
	}
	for _, id := range lost.Keys {
		for _, live := range inFiles {
			if live == id {
				fmt.Fprintf(stderr, "doorward: a running server still has the key %s. If its machine has the file, copy that one instead: then nothing is lost.\n", id)
				return nil
			}
		}
	}
	return nil
}
