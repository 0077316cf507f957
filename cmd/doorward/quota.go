package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
)

// quotaFlags are the flags that set quotas.
var quotaFlags = map[string]doorward.Quota{"people": doorward.QuotaPeople, "api-keys": doorward.QuotaAPIKeys, "webhooks": doorward.QuotaWebhooks, "events-per-day": doorward.QuotaEventsPerDay}

func tenantQuotaCommand() *cobra.Command {
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "quota TENANT-ID", Short: "Limit what a tenant may have",
		Long: `Quota sets how many people, API keys and webhooks a tenant may have, and how many events
of changes it may record per UTC day. Without flags it prints the quotas. A number is 0 or
more; "none" removes the quota. What the tenant has beyond a quota stays, but it can't add
more: such requests are answered 409 quota_exceeded. Actions that sign in, end access,
delete or protect an account don't count towards the events of a day, and are never refused
for that quota.`,
		Example: `  doorward tenant quota tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --people 50 --api-keys none
  doorward tenant quota tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --events-per-day 2000`, Args: oneArg("TENANT-ID"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		quotas, err := parseQuotas(cmd)
		if err != nil {
			return err
		}
		after, err := n.App.Tenants.SetQuotas(cmd.Context(), n.Operator(), args[0], quotas)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Tenant %s (%s): %s.\n", after.Name, after.ID, describeQuotas(after.Quotas))
		return nil
	})
	for flag, name := range quotaFlags {
		cmd.Flags().String(flag, "", "limit on "+name.Words()+", or \"none\"")
	}
	return checkFirst(cmd, func() error { _, err := parseQuotas(cmd); return err })
}

// parseQuotas returns the quotas that flags set.
func parseQuotas(cmd *cobra.Command) (map[doorward.Quota]int64, error) {
	quotas := map[doorward.Quota]int64{}
	for flag, name := range quotaFlags {
		text := cmd.Flags().Lookup(flag).Value.String()
		switch n, err := strconv.ParseUint(text, 10, 62); {
		case text == "none":
			quotas[name] = doorward.NoQuota
		case err == nil:
			quotas[name] = int64(n)
		case cmd.Flags().Changed(flag):
			return nil, usageError("--%s: write a number, 0 or more, or \"none\".", flag)
		}
	}
	return quotas, nil
}

func describeQuotas(q doorward.Quotas) string {
	var parts []string
	for _, name := range doorward.QuotaNames {
		limit := "any number"
		if text := doorward.QuotaText(*q.At(name)); text != "" {
			limit = "at most " + text
		}
		parts = append(parts, string(name)+" "+limit)
	}
	return strings.Join(parts, ", ")
}
