package main

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
)

// connectionView is a connection in the output for programs, with the names of the API.
type connectionView struct {
	ID           string                    `json:"id"`
	Type         doorward.ConnectionType   `json:"type"`
	Name         string                    `json:"name"`
	Product      doorward.Product          `json:"product"`
	Status       doorward.ConnectionStatus `json:"status"`
	Issuer       string                    `json:"issuer,omitempty"`
	ClientID     string                    `json:"clientId,omitempty"`
	CreatedAt    time.Time                 `json:"createdAt"`
	TestedAt     *time.Time                `json:"testedAt,omitempty"`
	LastSignInAt *time.Time                `json:"lastSignInAt,omitempty"`
}

func ssoListCommand() *cobra.Command {
	connections := listing[doorward.Connection]{
		head: []string{"ID", "STATUS", "CREATED", "LAST SIGN-IN", "ISSUER", "NAME"},
		row: func(c doorward.Connection) []string {
			last := "never"
			if c.LastSignInAt != nil {
				last = day(*c.LastSignInAt)
			}
			return []string{c.ID, string(c.Status), day(c.CreatedAt), last, cmp.Or(c.InForce.Issuer, "-"), c.Name}
		},
		object: func(c doorward.Connection) any {
			return connectionView{c.ID, c.Type, c.Name, c.Product, c.Status, c.InForce.Issuer, c.InForce.ClientID, c.CreatedAt, c.InForce.TestedAt, c.LastSignInAt}
		},
	}
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "list TENANT-ID", Short: "List the connections by which people of a tenant sign in",
		Example: "  doorward sso list tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		if _, err := n.App.Tenants.Get(cmd.Context(), args[0]); err != nil {
			return err
		}
		all, err := n.App.Connections.Of(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return connections.print(cmd.OutOrStdout(), all)
	})
	connections.addJSONFlag(cmd)
	return cmd
}
