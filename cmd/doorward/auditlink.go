package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pages "github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

func auditLinkCommand() *cobra.Command {
	var acts []string
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use:   "link",
		Short: "Print a link that shows the installation in a browser, once",
		Long: `Link prints a link to the operator's page, alone on the last line: tenants, the
installation's own audit trail, nodes, queued mails and deliveries. It opens the page once,
within ten minutes, and the page closes by itself half an hour later. Anybody who opens the
link sees all that, so treat it like a password until then.

The page changes nothing, unless --act says what it may do: freeze, thaw or close tenants,
one at a time, each confirmed by typing the name of the tenant. The audit trail says who has
made the link, and the text of --reason.`,
		Example: `  doorward audit link --config /etc/doorward/doorward.yaml
  doorward audit link --act freeze,thaw --reason 'ticket 4711'`, Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		token, ends, err := n.App.Installation.MakeLink(cmd.Context(), n.Operator(), acts...)
		if err != nil {
			return err
		}
		may := ":"
		if checked, _ := pages.CheckActs(acts); len(checked) > 0 {
			may = ", which may " + strings.Join(checked, ", ") + " tenants:"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "This link opens the operator's page once, until %s%s\n%s%s#token=%s\n",
			ends.UTC().Format(time.RFC3339), may, n.URL(), front.OperatorPage, token.Reveal())
		return nil
	})
	cmd.Flags().StringSliceVar(&acts, "act", nil, "what the page may do to tenants, `ACTS` such as freeze,thaw,close; without it nothing")
	completeWith(cmd, "act", pages.PageActs()...)
	showFlags(cmd, "base-url", "listen")
	return checkFirst(refuseEmpty(cmd, "act"), func() error {
		if _, err := pages.CheckActs(acts); err != nil {
			return usageError("--act: write %s.", strings.Join(pages.PageActs(), ", "))
		}
		return nil
	})
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
