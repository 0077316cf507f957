package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/policy"
)

const explainedText = `@id("closed") @reason("Closed for the audit.") forbid(principal in Role::"USER", action == Action::"message.send", resource);

@id("inside") forbid(principal, action in [Action::"message.send", Action::"user.suspend"], resource) unless { context.ip.isInRange(ip("192.0.2.0/24")) };`

// summary returns a short form of an explanation.
func summary(e policy.Explanation) string {
	text := fmt.Sprintf("%t %s %v", e.Allowed, e.Role, e.GrantedBy)
	for _, b := range e.Because {
		text += fmt.Sprintf(" | %s %s", b.Kind, b.ID)
		if b.Line > 0 {
			text += fmt.Sprintf(":%d", b.Line)
		}
		if b.Reason != "" {
			text += " " + b.Reason
		}
	}
	return text
}

// Each cause of a refusal is named: the role, the key, all policies, the tenant.
func TestExplain(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		tenant, owner := f.Tenant()
		bob, vic, eve := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleViewer), f.Join(owner, doorward.RoleUser)
		key, secret, err := f.Node(0).APIKeys.Create(ctx, owner.Caller, apikey.Draft{Name: "sync", Permissions: []string{"message.send"}})
		f.NoError(err)
		ended, _, err := f.Node(0).APIKeys.Create(ctx, owner.Caller, apikey.Draft{Name: "ended", Permissions: []string{"message.send"}})
		f.NoError(err)
		_, err = f.Node(0).APIKeys.Revoke(ctx, owner.Caller, ended.ID)
		f.NoError(err)
		_, _, err = f.Node(0).Users.Edit(ctx, owner.Caller, eve.User, suspended())
		f.NoError(err)
		put(f, 0, owner.Caller, policy.Draft{Text: explainedText})
		fromOffice := policy.Context{IP: "192.0.2.7"}
		for n, c := range []struct {
			q    policy.Question
			want string
		}{
			{policy.Question{UserID: bob.User.ID, Action: "message.read"}, "true USER [VIEWER USER ADMIN OWNER] | role USER"},
			{policy.Question{UserID: vic.User.ID, Action: "message.send"}, "false VIEWER [USER ADMIN OWNER] | role VIEWER The role VIEWER does not grant message.send."},
			{policy.Question{UserID: bob.User.ID, Action: "message.send", Context: fromOffice}, "false USER [USER ADMIN OWNER] | policy closed:1 Closed for the audit."},
			{policy.Question{UserID: bob.User.ID, Action: "message.send", Context: policy.Context{IP: "198.51.100.7"}}, "false USER [USER ADMIN OWNER] | policy closed:1 Closed for the audit. | policy inside:3"},
			{policy.Question{Credential: owner.Token.Reveal(), Action: "message.send"}, "false OWNER [USER ADMIN OWNER] | policy inside:3 It reads ip, which the request lacks."},
			{policy.Question{Credential: owner.Token.Reveal(), Action: "message.send", Context: fromOffice}, "true OWNER [USER ADMIN OWNER] | role OWNER"},
			{policy.Question{UserID: eve.User.ID, Action: "message.read"}, "false USER [VIEWER USER ADMIN OWNER] | role USER The membership is suspended."},
			{policy.Question{KeyID: key.ID, Action: "message.read"}, "false USER [VIEWER USER ADMIN OWNER] | key " + key.ID + " The API key does not have the permission message.read."},
			{policy.Question{KeyID: key.ID, Action: "user.manage"}, "false USER [ADMIN OWNER] | role USER The role USER does not grant user.manage."},
			{policy.Question{KeyID: ended.ID, Action: "message.send"}, "false USER [USER ADMIN OWNER] | key " + ended.ID + " The API key was revoked."},
			{policy.Question{Credential: secret.Reveal(), Action: "message.send", Context: fromOffice}, "false USER [USER ADMIN OWNER] | policy closed:1 Closed for the audit."},
			{policy.Question{UserID: owner.User.ID, Action: "user.suspend"}, "false OWNER [ADMIN OWNER] | policy inside:3 It reads ip, which the request lacks."},
			{policy.Question{UserID: owner.User.ID, Action: "policy.read"}, "true OWNER [ADMIN OWNER] | role OWNER"},
			{policy.Question{UserID: bob.User.ID, Action: "message.read", Resource: &doorward.Resource{Type: "tenant", ID: tenant.ID}}, "true USER [VIEWER USER ADMIN OWNER] | role USER"},
			{policy.Question{UserID: bob.User.ID, Action: "message.read", Resource: &doorward.Resource{Type: "tenant", ID: "tnt_x"}}, "false USER [VIEWER USER ADMIN OWNER] | tenant " + tenant.ID + " The resource is a tenant other than that of the user or key."},
			{policy.Question{UserID: bob.User.ID, Action: "message.read", Resource: &doorward.Resource{Type: "invoice", ID: "1"}}, "false USER [VIEWER USER ADMIN OWNER] | role USER message.read acts on resources of the type tenant, and this is one of the type invoice. For an action of the platform, \"resource\" in the model names the type."},
		} {
			for node := range f.Nodes {
				got, err := f.Node(node).Policies.Explain(ctx, owner.Caller, c.q)
				if text := summary(got); err != nil || text != c.want {
					t.Errorf("%d: %+v\n is explained: %s, %v\n         want: %s", n, c.q, text, err, c.want)
				}
			}
		}
	})
}

// People, keys and sessions of another tenant are explained like unknown ones. An unknown
// action and an unknown version are refused.
func TestExplainsOwnTenantOnly(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		_, owner := f.Tenant()
		_, other := f.Tenant()
		key, secret, err := f.Node(0).APIKeys.Create(ctx, other.Caller, apikey.Draft{Name: "sync", Permissions: []string{"message.send"}})
		f.NoError(err)
		nobody := apptest.ErrorOf(f.Node(0).Policies.Explain(ctx, owner.Caller, policy.Question{UserID: "usr_nobody", Action: "message.send"})).Error()
		for _, q := range []policy.Question{
			{UserID: other.User.ID},
			{KeyID: key.ID},
			{Credential: other.Token.Reveal()},
			{Credential: secret.Reveal()},
			{UserID: key.ID},
			{KeyID: owner.User.ID},
			{Credential: "x"},
			{Credential: secret.Reveal()[:50]},
			{Credential: owner.Token.Reveal() + "x"},
			{},
		} {
			q.Action = "message.send"
			if _, err := f.Node(0).Policies.Explain(ctx, owner.Caller, q); err == nil || err.Error() != nobody {
				t.Errorf("%+v: %v", q, err)
			}
		}
		for _, action := range []doorward.Action{"message.shout", "session.open", "tenant.freeze", ""} {
			if _, err := f.Node(0).Policies.Explain(ctx, owner.Caller, policy.Question{UserID: owner.User.ID, Action: action}); apptest.Code(err) != doorward.CodeValidationFailed {
				t.Errorf("%s: %v", action, err)
			}
		}
		if _, err := f.Node(0).Policies.Explain(ctx, owner.Caller, policy.Question{UserID: owner.User.ID, Action: "message.send", Version: 1}); apptest.Code(err) != doorward.CodeNotFound {
			t.Errorf("version 1: %v", err)
		}
	})
}

// A version is explained as if it were enforced, whatever its mode and even after its end. The
// same question always has the same answer, and nothing is written.
func TestExplainWritesNothing(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		ctx := f.Context()
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		put(f, 0, owner.Caller, policy.Draft{Text: noMessages})
		put(f, 0, owner.Caller, observing(`@id("later") forbid(principal, action, resource) when { context.now > datetime("2026-01-01") };`))
		put(f, 0, owner.Caller, policy.Draft{Text: "", ConfirmMinutes: 5})
		f.NoError(f.Node(0).Sessions.Flush(ctx))
		before := f.RowsWithoutNodes()
		for _, who := range []policy.Question{{UserID: bob.User.ID}, {Credential: bob.Token.Reveal()}} {
			for want, q := range map[string]policy.Question{
				"true USER [USER ADMIN OWNER] | role USER":                                              {},
				"false USER [USER ADMIN OWNER] | policy no-messages:1 Closed for the audit.":            {Version: 1},
				"false USER [USER ADMIN OWNER] | policy later:1":                                        {Version: 2},
				"true USER [USER ADMIN OWNER] | role USER ":                                             {Version: 2, Context: policy.Context{Time: "2025-06-01T00:00:00Z"}}, // the space makes it a different key of the map
				"false USER [USER ADMIN OWNER] | policy later:1 It reads now, which the request lacks.": {Version: 2, Context: policy.Context{Time: "soon"}},
			} {
				q.UserID, q.Credential, q.Action = who.UserID, who.Credential, "message.send"
				for n := range 4 { // twice on each node
					got, err := f.Node(n).Policies.Explain(ctx, owner.Caller, q)
					if text := summary(got); err != nil || text != want && text+" " != want {
						t.Errorf("%+v: %s, %v; want %s", q, text, err, want)
					}
				}
			}
		}
		f.NoError(f.Node(0).Sessions.Flush(ctx))
		if after := f.RowsWithoutNodes(); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Error("explaining has written something")
		}
		clock.Move(6 * time.Minute) // the last version has ended: the one before observes, and the first refuses
		got, err := f.Node(1).Policies.Explain(ctx, owner.Caller, policy.Question{UserID: bob.User.ID, Action: "message.send"})
		if text := summary(got); err != nil || text != "false USER [USER ADMIN OWNER] | policy no-messages:1 Closed for the audit." {
			t.Errorf("after the end of a version: %s, %v", text, err)
		}
	})
}
