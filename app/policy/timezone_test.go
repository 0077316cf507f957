package policy_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/store"
)

const inOfficeHours = `@id("hours") forbid(principal, action == Action::"message.send", resource)
unless { context.hour >= 8 && context.hour < 18 && context.weekday <= 5 };`

// TestTimeZone: the hour and the weekday are those of the time zone that the text was put with, also in
// summer and where it is another day already. A version that is restored keeps its own; one that differs
// in nothing else is a new version.
func TestTimeZone(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		at := func(node int, instant string) bool {
			e, err := f.Node(node).Policies.Explain(ctx, owner.Caller, policy.Question{UserID: bob.User.ID, Action: "message.send", Context: policy.Context{Time: instant}})
			f.NoError(err)
			return e.Allowed
		}
		for _, c := range []struct {
			zone string
			want map[string]bool
		}{
			{"", map[string]bool{"2026-11-27T07:59:59Z": false, "2026-11-27T08:00:00Z": true, "2026-11-27T17:59:59Z": true, "2026-11-27T18:00:00Z": false, "2026-11-29T12:00:00Z": false, "2026-11-30T12:00:00Z": true}},
			{"Europe/Berlin", map[string]bool{"2026-07-03T06:30:00Z": true, "2026-01-02T06:30:00Z": false, "2026-01-02T07:00:00Z": true}},
			{"Pacific/Auckland", map[string]bool{"2026-11-27T21:00:00Z": false, "2026-11-29T21:00:00Z": true}}, // Saturday, Monday
			{"Asia/Kathmandu", map[string]bool{"2026-11-27T02:15:00Z": true, "2026-11-27T02:14:59Z": false}},   // 5 h 45 min
		} {
			if v := put(f, 1, owner.Caller, policy.Draft{Text: inOfficeHours, TimeZone: c.zone}); v.TimeZone != c.zone {
				t.Errorf("%q is put as %q", c.zone, v.TimeZone)
			}
			for instant, want := range c.want {
				for node := range f.Nodes {
					if got := at(node, instant); got != want {
						t.Errorf("%s in %q on node %d: allowed is %v", instant, c.zone, node, got)
					}
				}
			}
		}
		if v, err := f.Node(0).Policies.Restore(ctx, owner.Caller, 2, nil); err != nil || v.TimeZone != "Europe/Berlin" || v.Version != 5 {
			t.Errorf("restored: %+v, %v", v, err)
		}
		if v := put(f, 0, owner.Caller, policy.Draft{Text: inOfficeHours, TimeZone: "Europe/Berlin"}); v.Version != 5 {
			t.Errorf("the same again is version %d", v.Version)
		}
		if v := put(f, 0, owner.Caller, policy.Draft{Text: inOfficeHours, TimeZone: "UTC"}); v.Version != 6 || v.TimeZone != "" {
			t.Errorf("UTC is put as %+v", v.PolicyVersion)
		}
		// A text that observes beside itself in another time zone doesn't take its force away.
		if v := put(f, 0, owner.Caller, policy.Draft{Text: inOfficeHours, TimeZone: "Asia/Tokyo", Mode: store.PolicyObserves}); v.Enforced != 6 {
			t.Errorf("beside the version that observes %d refuses", v.Enforced)
		}
		for _, wrong := range []string{"Local", "local", "Berlin", "Europe/berlin2", "../UTC", "/etc/localtime", "right/Europe/Berlin", "posix/Europe/Berlin", "localtime", "UTC+1 ", "Europe/Berlin\n"} {
			_, err := f.Node(0).Policies.Put(ctx, owner.Caller, policy.Draft{Text: inOfficeHours, TimeZone: wrong}, nil)
			if _, planned := f.Node(0).Policies.Plan(ctx, owner.Caller, policy.Draft{Text: inOfficeHours, TimeZone: wrong}, 1); apptest.Code(err) != doorward.CodeValidationFailed || apptest.Code(planned) != doorward.CodeValidationFailed {
				t.Errorf("%q: %v, %v", wrong, err, planned)
			}
		}
	})
}
