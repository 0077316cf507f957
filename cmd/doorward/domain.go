package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func domainCommand() *cobra.Command {
	return group("domain", "List and release the domains that tenants have proved", domainListCommand(), recording(domainReleaseCommand()))
}

// heldDomainView is a domain in the output for programs, with the names of the API.
type heldDomainView struct {
	ID           string                `json:"id"`
	Domain       string                `json:"domain"`
	Status       doorward.DomainStatus `json:"status"`
	Free         bool                  `json:"free"`
	TenantID     string                `json:"tenantId"`
	TenantName   string                `json:"tenantName"`
	VerifiedAt   *time.Time            `json:"verifiedAt,omitempty"`
	CheckedAt    *time.Time            `json:"checkedAt,omitempty"`
	MissingSince *time.Time            `json:"missingSince,omitempty"`
}

func domainListCommand() *cobra.Command {
	var now time.Time
	domains := listing[store.HeldDomain]{
		head: []string{"DOMAIN", "STATUS", "VERIFIED", "TENANT", "NAME"},
		row: func(d store.HeldDomain) []string {
			return []string{d.Name, domainStatus(d.Domain, now), day(*d.VerifiedAt), d.TenantID, d.TenantName}
		},
		object: func(d store.HeldDomain) any {
			return heldDomainView{d.ID, d.Name, d.Status, d.IsFree(now), d.TenantID, d.TenantName, d.VerifiedAt, d.CheckedAt, d.MissingSince}
		},
	}
	return domains.command(&cobra.Command{
		Use: "list", Short: "List the domains that tenants hold", Example: "  doorward domain list\n  doorward domain list --json",
		Long: `List shows the domains that tenants have proved. One that has lapsed still belongs to its
tenant; when it is free, whoever proves it next has it.`,
	}, func(ctx context.Context, n *node.Node) ([]store.HeldDomain, error) {
		now = n.App.Now()
		return n.App.Domains.Held(ctx)
	})
}

func domainStatus(d doorward.Domain, now time.Time) string {
	switch {
	case d.IsFree(now):
		return "lapsed, free"
	case d.Status == doorward.DomainVerified && d.MissingSince != nil:
		return "verified, record missing"
	}
	return string(d.Status)
}

func domainReleaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "release DOMAIN", Short: "Let whoever proves a domain next have it",
		Long: `Release ends a tenant's hold on a domain at once. The domain lapses, the tenant's OWNERs get
a mail, and whoever proves the domain next has it: another tenant, or the same one again.
Identities and sessions stay as they are.`,
		Example: "  doorward domain release acme.example", Args: oneArg("DOMAIN"),
	}
	return onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, args []string) error {
		d, err := n.App.Domains.Release(cmd.Context(), n.Operator(), args[0])
		if doorward.HasCode(err, doorward.CodeNotFound) {
			return notDone("No tenant holds the domain %s. \"doorward domain list\" shows those that are held.", args[0])
		}
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "Released %s, which tenant %s held. Whoever proves it next has it.\n", d.Name, d.TenantID)
		}
		return err
	})
}
