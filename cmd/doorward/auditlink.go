package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

func auditLinkCommand() *cobra.Command {
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use:   "link",
		Short: "Print a link that shows the installation's trail in a browser, once",
		Long: `Link prints a link to a page with the installation's own audit trail, alone on the last
line. It opens the page once, within ten minutes, and the page closes by itself half an hour
later. The page changes nothing. Anybody who opens the link sees the trail, so treat it like a
password until then.`,
		Example: "  doorward audit link --config /etc/doorward/doorward.yaml", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		token, ends, err := n.App.Installation.MakeLink(cmd.Context(), n.Operator())
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "This link opens the operator's page once, until %s:\n%s%s#token=%s\n",
			ends.UTC().Format(time.RFC3339), n.URL(), front.OperatorPage, token.Reveal())
		return nil
	})
	showFlags(cmd, "base-url", "listen")
	return cmd
}

func auditEndLinksCommand() *cobra.Command {
	return onDatabase(withoutMigration(), &cobra.Command{
		Use: "end-links", Short: "End all pages and links that audit link has made",
		Long: `End-links ends every page that a link of "doorward audit link" has opened, and the links
that nobody has opened yet, on every node.`,
		Example: "  doorward audit end-links", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		ended, err := n.App.Installation.EndPages(cmd.Context(), n.Operator())
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Pages and links ended: %d.\n", ended)
		return nil
	})
}
