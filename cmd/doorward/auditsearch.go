package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/node"
)

// search is one run of audit search.
type search struct {
	filter audit.Filter
	tenant string
	limit  int
	events listing[doorward.Event]
}

func auditSearchCommand() *cobra.Command {
	s := &search{events: listing[doorward.Event]{
		head: []string{"TIME", "TENANT", "ACTION", "OUTCOME", "ACTOR", "TARGET", "IP", "REASON"},
		row: func(e doorward.Event) []string {
			return []string{
				e.At.UTC().Format(time.RFC3339), cmp.Or(e.Target.TenantID, installation), string(e.Action), string(e.Outcome), describeActor(e),
				e.Target.Type + " " + e.Target.ID, e.IP, cmp.Or(e.Change(doorward.FieldOperatorReason).To, e.Change(doorward.FieldReason).To),
			}
		},
		object: func(e doorward.Event) any { return e.View() },
	}}
	var since string
	cmd := &cobra.Command{
		Use: "search", Short: "Find events in the trails of all tenants",
		Long: `Search prints the events that all the flags select, the newest first: of all tenants and
of the installation, by time. It prints at most --limit of them, and says if there are more. An
address after --actor finds the events of the account that has it now; "operator" finds all that was
done at the terminal and with operator keys, and a name such as root@db1 the commands that this user of the
system has run there. REASON is what --reason said, or why something was refused. With --json
it prints whole events, as "doorward audit export" does.`,
		Example: `  doorward audit search --ip 192.0.2.7 --since 7d
  doorward audit search --actor ann@acme.example --since 2025-03-02T09:00:00Z --json
  doorward audit search --actor operator --since 30d
  doorward audit search --action session.open --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae`, Args: noArgs,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		return s.run(cmd.Context(), n, cmd.OutOrStdout(), cmd.ErrOrStderr())
	})
	cmd.Flags().StringVar(&s.filter.IP, "ip", "", "only events from the `ADDRESS` of a client")
	cmd.Flags().StringVar(&s.filter.Actor, "actor", "", "only events by `WHO`: an id of a user or key, an address, \"operator\", or a system user such as root@db1")
	cmd.Flags().StringVar(&s.filter.Target, "target", "", "only events about the object with this `id`")
	cmd.Flags().StringVar(&s.filter.Action, "action", "", "only events of the `ACTION`, such as user.role")
	cmd.Flags().StringVar(&s.filter.Outcome, "outcome", "", "done or refused")
	cmd.Flags().StringVar(&s.filter.Request, "request", "", "only events of the request with this `id`, as in X-Request-Id")
	cmd.Flags().StringVar(&s.tenant, "tenant", "", "`id` of the only tenant, or \""+installation+"\"")
	cmd.Flags().StringVar(&since, "since", "", "only events since a `TIME` such as 2025-03-02T09:00:00Z, or for a duration such as 2h or 7d")
	cmd.Flags().StringVar(&s.filter.To, "until", "", "only events before the `TIME`")
	cmd.Flags().IntVar(&s.limit, "limit", 1000, "how many events at most; 0: all")
	s.events.addJSONFlag(cmd)
	completeWith(cmd, "outcome", "done", "refused")
	return checkFirst(refuseEmpty(cmd, "ip", "actor", "target", "action", "outcome", "request", "tenant", "since", "until"), func() error {
		at, err := parseSince(since)
		if err == nil && !at.IsZero() {
			s.filter.From = at.Format(time.RFC3339Nano)
		}
		if _, fault := doorward.ParseTime(s.filter.To); err == nil && s.filter.To != "" && fault != nil {
			err = usageError("--until: write a time such as 2025-03-02T09:00:00Z.")
		}
		if err == nil {
			err = checkLimit(s.limit)
		}
		return err
	})
}

// describeActor returns who has acted: for the operator who ran the command, or with which key.
func describeActor(e doorward.Event) string {
	if e.ActorType == doorward.Operator {
		return strings.TrimSpace(string(e.ActorType) + " " + cmp.Or(e.Change(doorward.FieldSystemUser).To, e.ActorID))
	}
	return cmp.Or(e.ActorEmail, e.ActorID, string(e.ActorType))
}

// run prints the events page by page, so that it never holds all.
func (s *search) run(ctx context.Context, n *node.Node, out, notes io.Writer) error {
	list, by := n.App.Audit.ListAll, n.Operator()
	if s.tenant != "" {
		list, by.TenantID = n.App.Audit.List, strings.TrimPrefix(s.tenant, installation)
	}
	if by.TenantID != "" {
		if _, err := n.App.Tenants.Get(ctx, by.TenantID); err != nil {
			return err
		}
	}
	more, err := s.events.printEach(out, doorward.EachRow(rowsAtOnce, func(w doorward.Window) (doorward.Page[doorward.Event], error) {
		return list(ctx, by, s.filter, w)
	}), s.limit)
	if more {
		fmt.Fprintf(notes, "There are more events than %d. Narrow the search, or name a larger --limit.\n", s.limit)
	}
	return err
}
