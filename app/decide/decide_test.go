package decide

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
)

// callers are principals without a tenant; "zero" and "unknown" have no known kind.
var callers = map[string]doorward.Principal{
	"anonymous": {Kind: doorward.Anonymous}, "zero": {}, "unknown": {Kind: "robot"},
	"operator": {Kind: doorward.Operator}, "system": {Kind: doorward.System},
}

// An unknown action is an internal error for every caller. A service that asks about one gets
// unknown_action.
func TestUnknownActions(t *testing.T) {
	for name, by := range callers {
		for _, action := range []doorward.Action{"", "message", "message.*", "MESSAGE.SEND", "message.send ", "*"} {
			if err := May(&by, &Question{Action: action, On: doorward.Object{}}).Err(); !doorward.HasCode(err, doorward.CodeInternal) {
				t.Errorf("%s gets %v for the action %q, want internal", name, err, action)
			}
			if err := May(&by, &Question{Action: action, ForService: true}).Err(); !doorward.HasCode(err, doorward.CodeUnknownAction) {
				t.Errorf("a service that asks about %s and %q gets %v, want unknown_action", name, action, err)
			}
		}
	}
}

// A caller of unknown kind, or with an unknown role and no tenant, may do nothing that needs a
// role or an operator.
func TestCallersWithoutTenant(t *testing.T) {
	nowhere := doorward.PrincipalOf(doorward.User{Role: "LANDLORD", Status: doorward.UserActive}, doorward.Session{})
	for _, verb := range doorward.Verbs() {
		if verb.By == doorward.ByProof {
			continue
		}
		for name, by := range map[string]doorward.Principal{"zero": callers["zero"], "unknown": callers["unknown"], "unknown role": nowhere} {
			if May(&by, &Question{Action: verb.Action, On: doorward.Object{}}).Allowed {
				t.Errorf("%s may %s", name, verb.Action)
			}
		}
	}
}

// A higher role may do everything that a lower one may, on the same object.
func TestHigherRolesMayMore(t *testing.T) {
	for _, verb := range doorward.Verbs() {
		for _, held := range append([]doorward.Role{""}, doorward.Roles...) {
			for _, given := range append([]doorward.Role{""}, doorward.Roles...) {
				on, lowerCould := doorward.Object{TenantID: "tnt_x", Held: held, Granted: given}, false
				for _, role := range doorward.Roles {
					by := doorward.PrincipalOf(doorward.User{TenantID: "tnt_x", Role: role, Status: doorward.UserActive}, doorward.Session{})
					allowed := May(&by, &Question{Action: verb.Action, On: on}).Allowed
					if lowerCould && !allowed {
						t.Errorf("%s may not %s to %v, but a lower role may", role, verb.Action, on)
					}
					lowerCould = allowed
				}
			}
		}
	}
}

// The answer for an object of another tenant is the same as for one that doesn't exist.
func TestOtherTenantsAreNotThere(t *testing.T) {
	for _, role := range doorward.Roles {
		by := doorward.PrincipalOf(doorward.User{TenantID: "tnt_x", Role: role, Status: doorward.UserActive}, doorward.Session{})
		for _, verb := range doorward.Verbs() {
			if verb.By != doorward.ByRole {
				continue
			}
			absent := May(&by, &Question{Action: verb.Action, On: doorward.Object{}}).Err()
			foreign := May(&by, &Question{Action: verb.Action, On: doorward.Object{TenantID: "tnt_y", Held: doorward.RoleOwner, Granted: doorward.RoleOwner}}).Err()
			if diff := cmp.Diff(absent, foreign); diff != "" || !doorward.HasCode(foreign, doorward.CodeNotFound) {
				t.Errorf("%s, %s: %v, want not_found:\n%s", role, verb.Action, foreign, diff)
			}
		}
	}
}

// member is the principal of a member of the tenant tnt_x.
func member(role doorward.Role, status doorward.UserStatus, tenant doorward.TenantStatus) doorward.Principal {
	return doorward.PrincipalOf(doorward.User{ID: "usr_1", TenantID: "tnt_x", TenantStatus: tenant, Role: role, Status: status}, doorward.Session{ID: "ses_1"})
}

// Each refusal has its reason and the code that belongs to it.
func TestReasons(t *testing.T) {
	own := doorward.Object{TenantID: "tnt_x"}
	admin := member(doorward.RoleAdmin, doorward.UserActive, doorward.TenantActive)
	owner := member(doorward.RoleOwner, doorward.UserActive, doorward.TenantClosing)
	suspended := member(doorward.RoleOwner, doorward.UserSuspended, doorward.TenantActive)
	for _, c := range []struct {
		name   string
		d      Decision
		reason Reason
		code   doorward.Code
	}{
		{"role", May(&admin, &Question{Action: doorward.BillingRead, On: own}), ReasonRole, doorward.CodeForbidden},
		{"suspended", May(&suspended, &Question{Action: doorward.TenantRead, On: own}), ReasonRole, doorward.CodeForbidden},
		{"rank of what is given", May(&admin, &Question{Action: doorward.UserInvite, On: doorward.Object{TenantID: "tnt_x", Granted: doorward.RoleOwner}}), ReasonRank, doorward.CodeForbidden},
		{"rank of what is held", May(&admin, &Question{Action: doorward.UserRemove, On: doorward.Object{TenantID: "tnt_x", Held: doorward.RoleAdmin}}), ReasonRank, doorward.CodeForbidden},
		{"another tenant", May(&admin, &Question{Action: doorward.UserRead, On: doorward.Object{TenantID: "tnt_y"}}), ReasonForeign, doorward.CodeNotFound},
		{"a tenant that is closing", May(&owner, &Question{Action: doorward.UserInvite, On: own}), ReasonTenant, doorward.CodeTenantClosing},
		{"anonymous", May(&doorward.Principal{Kind: doorward.Anonymous}, &Question{Action: doorward.TenantFreeze, On: own}), ReasonCredential, doorward.CodeUnauthenticated},
		{"a user for an operator's action", May(&owner, &Question{Action: doorward.TenantFreeze, On: own}), ReasonOperator, doorward.CodeForbidden},
		{"an operator inside a tenant", Enter(&doorward.Principal{Kind: doorward.Operator}, Route{}), ReasonKind, doorward.CodeForbidden},
		{"a tenant's route while closing", Enter(&owner, Route{}), ReasonTenant, doorward.CodeTenantClosing},
		{"a route of the operator for a user", Enter(&admin, Route{Credential: OfOperator}), ReasonOperator, doorward.CodeForbidden},
		{"frozen", SignIn(doorward.User{Status: doorward.UserActive, Role: doorward.RoleOwner, TenantStatus: doorward.TenantFrozen}), ReasonTenant, doorward.CodeTenantFrozen},
		{"closing, not for an ADMIN", SignIn(doorward.User{Status: doorward.UserActive, Role: doorward.RoleAdmin, TenantStatus: doorward.TenantClosing}), ReasonTenant, doorward.CodeTenantClosing},
		{"a suspended membership", SignIn(doorward.User{Status: doorward.UserSuspended, TenantStatus: doorward.TenantActive}), ReasonMembership, doorward.CodeMembershipSuspended},
		{"the zero decision", Decision{}, "", doorward.CodeInternal},
	} {
		if c.d.Allowed || c.d.Reason != c.reason || !doorward.HasCode(c.d.Err(), c.code) {
			t.Errorf("%s: %+v, %v; want a refusal for %q with %s", c.name, c.d, c.d.Err(), c.reason, c.code)
		}
	}
}

// In a closing tenant the OWNER may only read, restore and destroy the tenant: other
// actions that need a role are refused.
func TestClosingTenant(t *testing.T) {
	owner := member(doorward.RoleOwner, doorward.UserActive, doorward.TenantClosing)
	open := map[doorward.Action]bool{doorward.TenantRead: true, doorward.TenantDestroy: true, doorward.TenantRestore: true}
	for _, verb := range doorward.Verbs() {
		if got := May(&owner, &Question{Action: verb.Action, On: owner.Tenant()}).Allowed; verb.By == doorward.ByRole && got != open[verb.Action] {
			t.Errorf("%s in a closing tenant: %v", verb.Action, got)
		}
	}
	if d := Enter(&owner, Route{WhileClosing: true}); !d.Allowed {
		t.Errorf("the OWNER is refused an action that is allowed while closing: %+v", d)
	}
}

// Decisions are part of every request, so they must not allocate, nor move their principal to the heap.
func TestNoAllocation(t *testing.T) {
	user := member(doorward.RoleUser, doorward.UserActive, doorward.TenantActive)
	allowed := 0
	for _, action := range []doorward.Action{doorward.MessageSend, doorward.BillingManage, "none"} {
		n := testing.AllocsPerRun(100, func() {
			p := user
			if Enter(&p, Route{}).Allowed && May(&p, &Question{Action: action, On: p.Tenant(), Proof: time.Now, ForService: true}).Allowed {
				allowed++
			}
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", action, n)
		}
	}
	if allowed == 0 {
		t.Error("a USER may not send messages")
	}
}

// BenchmarkMay measures the decision of an access check.
func BenchmarkMay(b *testing.B) {
	b.ReportAllocs()
	user, allowed := member(doorward.RoleUser, doorward.UserActive, doorward.TenantActive), 0
	for b.Loop() {
		if May(&user, &Question{Action: doorward.MessageSend, On: user.Tenant(), Proof: time.Now, ForService: true}).Allowed {
			allowed++
		}
	}
	if allowed == 0 {
		b.Fatal("a USER may not send messages")
	}
}

// A key never acts with a rank that it or its owner lacks, and gives no role with more than keys can
// have.
func TestRankOfKeys(t *testing.T) {
	viewer := doorward.User{Role: doorward.RoleViewer}.Permissions()
	r := doorward.NewRules(doorward.RulesVersion{Tenant: 1}, doorward.BuiltIn(), []doorward.CustomRole{
		{Name: "CLERK", Permissions: append(slices.Clone(viewer), doorward.UserInvite, doorward.UserManage, doorward.BillingRead)},
		{Name: "HOST", Permissions: append(slices.Clone(viewer), doorward.UserInvite)},
	})
	for _, c := range []struct {
		role, owner, effective, actsAs doorward.Role
		gives                          []doorward.Role
	}{
		{doorward.RoleUser, doorward.RoleOwner, doorward.RoleUser, doorward.RoleUser, []doorward.Role{doorward.RoleUser, doorward.RoleViewer}},
		{doorward.RoleAdmin, doorward.RoleOwner, doorward.RoleAdmin, doorward.RoleAdmin, []doorward.Role{doorward.RoleUser, doorward.RoleViewer, "HOST"}},
		{doorward.RoleAdmin, doorward.RoleUser, doorward.RoleUser, doorward.RoleUser, []doorward.Role{doorward.RoleUser, doorward.RoleViewer}},
		// CLERK has what an ADMIN lacks, and acts as a VIEWER.
		{"CLERK", doorward.RoleAdmin, "CLERK", doorward.RoleViewer, []doorward.Role{doorward.RoleViewer}},
		{doorward.RoleAdmin, "CLERK", "CLERK", doorward.RoleViewer, []doorward.Role{doorward.RoleViewer}},
		{"GONE", doorward.RoleAdmin, doorward.RoleAdmin, "", nil},
		{doorward.RoleUser, "", "", "", nil},
	} {
		k := doorward.APIKey{ID: "key_1", TenantID: "tnt_x", Role: c.role, OwnerRole: c.owner, Rules: r, Permissions: []doorward.Action{doorward.UserInvite, doorward.UserManage}}
		p := doorward.PrincipalOfKey(k, doorward.TenantActive)
		if p.ActsAs != c.actsAs || p.Role != c.effective || k.EffectiveRole() != c.effective {
			t.Errorf("a key with %s, owned by %s: %s, acting as %s", c.role, c.owner, p.Role, p.ActsAs)
		}
		var gives []doorward.Role
		for _, role := range []doorward.Role{doorward.RoleOwner, doorward.RoleAdmin, doorward.RoleUser, doorward.RoleViewer, "HOST"} {
			if mayGive(&p, &doorward.Verb{Action: doorward.UserInvite}, r.Grant(role)).Allowed {
				gives = append(gives, role)
			}
		}
		if c.role != doorward.RoleUser && !slices.Equal(gives, c.gives) {
			t.Errorf("a key with %s, owned by %s, gives %v, not %v", c.role, c.owner, gives, c.gives)
		}
	}
}

// Somebody with a custom role acts with the rank of the highest built-in role whose
// permissions the custom role includes: on lower ranks only, and giving only own permissions.
func TestMayWithCustomRoles(t *testing.T) {
	viewer := doorward.User{Role: doorward.RoleViewer}.Permissions()
	with := func(more ...doorward.Action) []doorward.Action { return append(slices.Clone(viewer), more...) }
	r := doorward.NewRules(doorward.RulesVersion{Tenant: 1}, doorward.BuiltIn(), []doorward.CustomRole{
		{Name: "INVITER", Permissions: []doorward.Action{doorward.UserInvite}},
		{Name: "HOST", Permissions: with(doorward.UserInvite, doorward.UserManage)},
		{Name: "DESK", Permissions: with(doorward.MessageSend, doorward.UserInvite, doorward.UserManage, doorward.RoleManage)},
		{Name: "CLERK", Permissions: with(doorward.BillingRead)},
		{Name: "READER", Permissions: []doorward.Action{doorward.MessageRead}},
	})
	as := func(role doorward.Role) *doorward.Principal {
		p := doorward.PrincipalOf(doorward.User{ID: "usr_1", TenantID: "tnt_x", TenantStatus: doorward.TenantActive, Role: role, Status: doorward.UserActive, Rules: r}, doorward.Session{ID: "ses_1"})
		return &p
	}
	for _, c := range []struct {
		by     doorward.Role
		action doorward.Action
		on     doorward.Object
		want   bool
	}{
		{"INVITER", doorward.UserInvite, doorward.Object{Granted: doorward.RoleViewer}, false}, // has less than a VIEWER
		{"INVITER", doorward.UserInvite, doorward.Object{Granted: "READER"}, false},
		{"HOST", doorward.UserInvite, doorward.Object{Granted: doorward.RoleViewer}, true},
		{"HOST", doorward.UserInvite, doorward.Object{Granted: "READER"}, true},
		{"HOST", doorward.UserInvite, doorward.Object{Granted: doorward.RoleUser}, false},
		{"HOST", doorward.UserInvite, doorward.Object{Granted: "HOST"}, false}, // ranks as an ADMIN when it is given or held
		{"HOST", doorward.UserRole, doorward.Object{Held: "READER"}, false},    // acts as a VIEWER, and no rank is lower
		{"DESK", doorward.UserSuspend, doorward.Object{Held: "READER"}, true},  // acts as a USER
		{"DESK", doorward.UserSuspend, doorward.Object{Held: doorward.RoleViewer}, true},
		{"DESK", doorward.UserSuspend, doorward.Object{Held: doorward.RoleUser}, false},
		{"DESK", doorward.UserSuspend, doorward.Object{Held: "HOST"}, false},
		{"DESK", doorward.UserInvite, doorward.Object{Granted: doorward.RoleUser}, true},
		{"DESK", doorward.RoleManage, doorward.Object{Held: "READER"}, true},
		{"DESK", doorward.RoleManage, doorward.Object{Held: "HOST"}, false},
		{"DESK", doorward.RoleManage, doorward.Object{Grant: r.Model().GrantOf(with(doorward.MessageSend))}, true},
		{"DESK", doorward.RoleManage, doorward.Object{Grant: r.Model().GrantOf(with(doorward.AuditRead))}, false},
		{doorward.RoleAdmin, doorward.UserSuspend, doorward.Object{Held: "HOST"}, false},
		{doorward.RoleAdmin, doorward.UserSuspend, doorward.Object{Held: "CLERK"}, false},
		{doorward.RoleAdmin, doorward.UserSuspend, doorward.Object{Held: "READER"}, true},
		{doorward.RoleAdmin, doorward.UserInvite, doorward.Object{Granted: "HOST"}, true},
		{doorward.RoleAdmin, doorward.UserInvite, doorward.Object{Granted: "CLERK"}, false}, // sees bills
		{doorward.RoleOwner, doorward.UserInvite, doorward.Object{Granted: "CLERK"}, true},
		{doorward.RoleOwner, doorward.UserSuspend, doorward.Object{Held: "CLERK"}, true},
		{"CLERK", doorward.BillingRead, doorward.Object{}, true},
		{"CLERK", doorward.UserInvite, doorward.Object{Granted: doorward.RoleViewer}, false},
		{"GONE", doorward.MessageRead, doorward.Object{}, false},
	} {
		on := c.on
		on.TenantID = "tnt_x"
		if d := May(as(c.by), &Question{Action: c.action, On: on}); d.Allowed != c.want {
			t.Errorf("%s, %s on %+v: %v (%s)", c.by, c.action, c.on, d.Allowed, d.Reason)
		}
	}
}
