package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// checkAgreement returns a finding if settings differ from those of running servers, and one
// if tenants are closed; none while the schema is out of date.
func checkAgreement(ctx context.Context, db *store.DB, s *settings, cfg node.Config) []finding {
	if db.CheckSchema(ctx) != nil {
		return nil
	}
	var all []finding
	if f, ok := checkShared(ctx, db, s, cfg); ok {
		all = append(all, f)
	}
	if f, ok := checkDestruction(ctx, db); ok {
		all = append(all, f)
	}
	return all
}

// checkShared compares the settings with those that running servers have published. A
// difference with which "doorward serve" would not start is a failure, if doctor was given
// the settings of a node. All others are only reported.
func checkShared(ctx context.Context, db *store.DB, s *settings, cfg node.Config) (f finding, ok bool) {
	f = finding{check: "settings"}
	differences, err := lease.Differences(ctx, db, cfg.Shared())
	if err != nil {
		f.wrong, f.code = cause(err), exitUnavailable
		return f, true
	}
	var strict, others []string
	for _, same := range groupEqual(differences) {
		if same[0].Setting.Strict && s.hasNodeSettings {
			strict = append(strict, describeDifference(same))
		} else {
			others = append(others, describeDifference(same))
		}
	}
	f.fine = strings.Join(others, "; ")
	if len(strict) > 0 {
		f.wrong, f.code = strings.Join(append(strict, others...), "; "), exitFailed
		f.remedy = "Give all nodes the same values; to change them while nodes run, see --change-shared."
	}
	return f, len(differences) > 0
}

// groupEqual groups the nodes that have the same value of a setting.
func groupEqual(all []lease.Difference) (groups [][]lease.Difference) {
	for _, d := range all {
		i := slices.IndexFunc(groups, func(g []lease.Difference) bool {
			return g[0].Setting == d.Setting && g[0].OtherValue == d.OtherValue
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

func describeDifference(same []lease.Difference) string {
	d, where := same[0], "the node "+same[0].Node
	if n := len(same); n > 1 {
		where = fmt.Sprintf("%d nodes, such as %s", n, d.Node)
	}
	return fmt.Sprintf("%s is %s here and %s on %s", d.Setting.Name, d.Setting.Value, d.OtherValue, where)
}

// shownClosed is how many closed tenants are listed.
const shownClosed = 10

// checkDestruction says which data will be destroyed, and when, while freezing the
// tenant can still prevent it.
func checkDestruction(ctx context.Context, db *store.DB) (f finding, ok bool) {
	f = finding{check: "destruction"}
	closed, err := db.Read().TenantsClosed(ctx, shownClosed+1)
	if err != nil {
		f.wrong, f.code = cause(err), exitUnavailable
		return f, true
	}
	var lines []string
	for i, t := range closed {
		if i == shownClosed {
			lines = append(lines, "and more, see \"doorward tenant list --json\"")
			break
		}
		lines = append(lines, describeDestruction(t))
	}
	f.fine = strings.Join(lines, "; ")
	return f, len(closed) > 0
}

func describeDestruction(t doorward.Tenant) string {
	switch {
	case t.ClosedAt.Unix() == 0: // set when the destruction begins
		return t.ID + " is being destroyed"
	case t.DestroyAt == nil:
		return t.ID + " is closed; a server of this version fixes when it is destroyed"
	case t.Status == doorward.TenantFrozen:
		return t.ID + " is closed, and kept as long as it is frozen"
	}
	return fmt.Sprintf("%s is destroyed at %s", t.ID, t.DestroyAt.Format(time.RFC3339))
}
