package app_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/signoff"
)

// TestRaceTurns: of several nodes that look at once, one does each sweep, and again when it is due next. So a node
// that has died is replaced.
func TestRaceTurns(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		names := f.Node(0).SweepNames()
		if sorted := slices.Compact(slices.Sorted(slices.Values(names))); len(sorted) != len(names) {
			f.Fatalf("two sweeps have one name: %q", names)
		}
		for _, round := range []struct {
			later time.Duration
			want  int
		}{{0, len(names)}, {time.Minute - time.Second, 0}, {time.Second, len(names) - 3}, {4 * time.Minute, len(names) - 1}, {24 * time.Hour, len(names)}} {
			clock.Move(round.later)
			var taken atomic.Int64
			apptest.Concurrently(4, func(i int) error {
				left := map[string]time.Time{}
				for range 2 * len(names) { // some find that another node was faster
					if f.Node(i).TakeTurn(f.Context(), left) {
						taken.Add(1)
					}
				}
				return nil
			})
			if got := int(taken.Load()); got != round.want {
				f.Errorf("after %v: %d turns were taken, want %d", round.later, got, round.want)
			}
		}
	})
}

// turns takes all turns that are due for the node, and returns how many.
func turns(f *apptest.Fixture, node int, left map[string]time.Time) (n int) {
	for f.Node(node).TakeTurn(f.Context(), left) {
		n++
	}
	return n
}

// TestFailedTurnsPassOn: a node that can't do a sweep leaves the next turn to the others, and the one after
// that to none.
func TestFailedTurnsPassOn(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		all, left := len(f.Node(0).SweepNames()), map[string]time.Time{}
		f.Exec(`ALTER TABLE mails RENAME TO lost`)
		if n := turns(f, 0, left); n != all || len(left) != 1 {
			f.Fatalf("%d turns of %d, failed: %v", n, all, left)
		}
		f.Exec(`ALTER TABLE lost RENAME TO mails`)
		clock.Move(24 * time.Hour)
		left["mails"] = f.Node(0).Now().Add(time.Second)
		if n := turns(f, 0, left); n != all-1 {
			f.Errorf("%d turns of the node that failed, want %d", n, all-1)
		}
		if n := turns(f, 1, map[string]time.Time{}); n != 1 {
			f.Errorf("%d turns of the other node, want 1", n)
		}
		clock.Move(24 * time.Hour)
		if n := turns(f, 0, left); n != all {
			f.Errorf("%d turns later, want %d", n, all)
		}
	})
}

// TestEachNodeWritesWhatItCounted: what a node has counted of requests that a provider didn't sign is in its memory, so that
// no other node can write it into the protocol.
func TestEachNodeWritesWhatItCounted(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		con := f.Active(owner, f.Provider())
		counted := func() (n int) {
			page, err := f.DB.Read().AttemptPage(f.Context(), con.ID, doorward.Window{Limit: 100})
			f.NoError(err)
			for _, a := range page.Items {
				if a.Kind == doorward.AttemptRevoke {
					n += a.Count
				}
			}
			return n
		}
		for range 3 {
			_, err := f.Node(1).SignOff.Revoke(f.Context(), apptest.Anonymous(1), con.ID, "not a token", "/sub_id", signoff.Subject{})
			f.WantOnly([]error{err}, doorward.CodeUnauthenticated)
		}
		if n := counted(); n != 1 {
			t.Fatalf("the protocol counts %d at once, want 1", n)
		}
		clock.Move(2 * time.Minute)
		turns(f, 0, map[string]time.Time{})
		f.NoError(f.Node(1).SweepNode(f.Context()))
		if n := counted(); n != 3 {
			t.Errorf("the protocol counts %d, want 3", n)
		}
	})
}

// TestAddressesOfClientsEnd: outside of trails the address of a client is kept for 90 days. A table that gets a
// column with addresses must end them, too.
func TestAddressesOfClientsEnd(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		ended := []string{"api_keys.last_used_ip", "sessions.ip"}
		others := map[string]string{
			"events.ip":                   "the trail, which keepEventsDays and --keep-events end",
			"devices.ip":                  "blanked when the browser stands in for no factor any more, after 30 days",
			"api_keys.allowed_ips":        "a setting of the key, not where somebody was",
			"connection_attempts.address": "a mail address",
			"directory_effects.address":   "a mail address",
			"former_domains.address":      "a mail address",
			"directory_users.address":     "a mail address",
		}
		var columns string
		f.NoError(f.SQL().QueryRowContext(f.Context(), `SELECT group_concat(m.name || '.' || c.name, ' ') FROM sqlite_master m JOIN pragma_table_info(m.name) c
WHERE m.type = 'table' AND (c.name LIKE '%ip' OR c.name LIKE '%ips' OR c.name LIKE '%address')`).Scan(&columns))
		if !strings.Contains(columns, "sessions.ip") {
			f.Errorf("the columns with addresses are %s", columns)
		}
		for column := range strings.FieldsSeq(columns) {
			if !slices.Contains(ended, column) && others[column] == "" {
				f.Errorf("the column %s has addresses of clients, it seems: end them after 90 days, or say here why not", column)
			}
		}
		_, ann := f.Tenant()
		ann = f.SignIn(ann.User.Email, apptest.FirstPassword)
		f.Exec(`UPDATE sessions SET ip = '192.0.2.7', created_at = $1`, f.DB.Now().UnixMicro())
		f.Exec(`INSERT INTO api_keys (id, tenant_id, owner_id, created_by, name, search, status, permissions, role, created_at, expires_at, ends_at, allowed_ips, per_second, noticed_at, last_used_at, last_used_ip)
VALUES ('key_1', $1, $2, $2, 'CI', ' ci', 'active', '', 'USER', 1, 1, 1, '', 0, 0, $3, '192.0.2.7')`, ann.User.TenantID, ann.User.ID, f.DB.Now().UnixMicro())
		left := func() int {
			return f.Int(`SELECT (SELECT count(*) FROM sessions WHERE ip <> '') + (SELECT count(*) FROM api_keys WHERE last_used_ip <> '')`)
		}
		all := left()
		for _, c := range []struct {
			days, want int
		}{{88, all}, {1, 0}} {
			clock.Move(time.Duration(c.days) * 24 * time.Hour)
			f.NoError(f.Node(0).ForgetAddresses(f.Context()))
			if n := left(); n != c.want {
				f.Errorf("%d more days later %d addresses are left, want %d", c.days, n, c.want)
			}
		}
	})
}

// TestTurnsAfterAClockThatWasAhead: turns that were taken then are due now.
func TestTurnsAfterAClockThatWasAhead(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		left := map[string]time.Time{}
		clock.Move(10 * 24 * time.Hour)
		turns(f, 0, left)
		clock.Move(-10 * 24 * time.Hour)
		if n, want := turns(f, 0, left), len(f.Node(0).SweepNames()); n != want {
			f.Errorf("%d turns, want %d", n, want)
		}
	})
}
