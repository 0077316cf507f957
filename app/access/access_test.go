package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// house is a tenant with the door to it.
type house struct {
	*testing.T
	*access.Door
	db     *store.DB
	tenant *doorwardtest.Tenant
}

func build(t *testing.T) *house {
	t.Helper()
	server := doorwardtest.Start(t)
	return &house{T: t, Door: server.Node.App.Access, db: server.Node.DB, tenant: server.Tenant("Acme")}
}

// caller is a member as a request would have it.
func (h *house) caller(p *doorwardtest.Person) doorward.Caller {
	h.Helper()
	token, err := secret.Parse(p.Token())
	if err != nil {
		h.Fatal(err)
	}
	hash := token.Hash()
	found, err := h.db.Read().SessionByToken(h.Context(), hash[:])
	if err != nil {
		h.Fatal(err)
	}
	by := doorward.Caller{IP: "192.0.2.1", RequestID: "req_test"}.As(found.User)
	by.Session = found.Session
	return by
}

// tenantObject is the own tenant.
func (h *house) tenantObject() doorward.Object {
	return doorward.Object{Type: "tenant", ID: h.tenant.ID, TenantID: h.tenant.ID}
}

// mark is a write whose trace is easy to see.
func (h *house) mark(tx *access.Tx, hash byte) error {
	return tx.InsertLinkToken(h.Context(), []byte{hash}, h.tenant.ID)
}

// marked reports whether the mark with the hash is there.
func (h *house) marked(hash byte) bool {
	h.Helper()
	var there bool
	err := h.Upkeep(h.Context(), func(tx *store.Tx) error {
		there = tx.InsertLinkToken(h.Context(), []byte{hash}, "x") != nil
		return errLook
	})
	if !errors.Is(err, errLook) && !there {
		h.Fatal(err)
	}
	return there
}

var errLook = errors.New("only looking")

// events are those of the tenant, the oldest first.
func (h *house) events() []doorward.Event {
	h.Helper()
	all, err := h.db.Read().Events(h.Context(), h.tenant.ID)
	if err != nil {
		h.Fatal(err)
	}
	return all
}

func is(t *testing.T, err error, want doorward.Code) {
	t.Helper()
	if !doorward.HasCode(err, want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestDoRecordsWhatWasDone(t *testing.T) {
	h := build(t)
	by, before := h.caller(h.tenant.Owner), len(h.events())
	err := h.Do(t.Context(), by, doorward.SettingsManage, h.tenantObject(), func(tx *access.Tx) error {
		tx.Changed("name", "old", "new")
		return h.mark(tx, 1)
	})
	if err != nil || !h.marked(1) {
		t.Fatalf("written: %v, error %v", h.marked(1), err)
	}
	got := h.events()[before:]
	want := []doorward.Event{{
		Action: doorward.SettingsManage, Outcome: doorward.Done, ActorType: doorward.ByUser, ActorID: h.tenant.Owner.ID,
		ActorEmail: h.tenant.Owner.Email, Target: h.tenantObject(), IP: "192.0.2.1", RequestID: "req_test",
		Changes: []doorward.Change{{Field: "name", From: "old", To: "new"}},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(doorward.Event{}, "ID", "At")); diff != "" {
		t.Errorf("recorded:\n%s", diff)
	}
}

// A refusal leaves a record and nothing else, wherever it comes from.
func TestRefusalsAreRecorded(t *testing.T) {
	h := build(t)
	viewer := h.caller(h.tenant.Join("viewer@acme.example", "VIEWER"))
	owner := h.caller(h.tenant.Owner)
	before := len(h.events())
	is(t, h.Do(t.Context(), viewer, doorward.SettingsManage, h.tenantObject(), func(tx *access.Tx) error { return h.mark(tx, 1) }), doorward.CodeForbidden)
	is(t, h.Require(t.Context(), viewer, doorward.AuditRead, h.tenantObject()), doorward.CodeForbidden)
	is(t, h.Do(t.Context(), owner, doorward.SettingsManage, h.tenantObject(), func(tx *access.Tx) error {
		return errors.Join(h.mark(tx, 2), doorward.Fail(doorward.CodeTenantFrozen, ""))
	}), doorward.CodeTenantFrozen)
	is(t, h.Refuse(t.Context(), viewer, doorward.SessionRefuse, h.tenantObject(), doorward.Fail(doorward.CodeInvalidCredentials, "")), doorward.CodeInvalidCredentials)
	if h.marked(1) || h.marked(2) {
		t.Error("what was refused was written")
	}
	var got []string
	for _, e := range h.events()[before:] {
		got = append(got, strings.Join([]string{string(e.Action), string(e.Outcome), e.ActorEmail, e.Changes[0].To}, " "))
	}
	want := []string{
		"settings.manage refused viewer@acme.example forbidden", "audit.read refused viewer@acme.example forbidden",
		"settings.manage refused owner@acme.example tenant_frozen", "session.refuse refused viewer@acme.example invalid_credentials",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded:\n%s", diff)
	}
}

// What fails for another reason leaves nothing.
func TestFailuresLeaveNothing(t *testing.T) {
	h := build(t)
	by, before := h.caller(h.tenant.Owner), len(h.events())
	failure := errors.New("no luck")
	for _, fails := range []error{failure, doorward.Fail(doorward.CodeAlreadyMember, ""), doorward.Fail(doorward.CodeNotFound, ""), store.ErrNone} {
		err := h.Do(t.Context(), by, doorward.SettingsManage, h.tenantObject(), func(tx *access.Tx) error {
			return errors.Join(h.mark(tx, 1), fails)
		})
		if !errors.Is(err, fails) {
			t.Errorf("the error is %v, want %v", err, fails)
		}
	}
	elsewhere := doorward.Object{Type: "tenant", ID: "tnt_other", TenantID: "tnt_other"}
	is(t, h.Do(t.Context(), by, doorward.SettingsManage, elsewhere, func(tx *access.Tx) error { return h.mark(tx, 1) }), doorward.CodeNotFound)
	is(t, h.Require(t.Context(), by, doorward.SettingsManage, elsewhere), doorward.CodeNotFound)
	if h.marked(1) || len(h.events()) != before {
		t.Errorf("written: %v, events %v", h.marked(1), h.events()[before:])
	}
}

// Who has lost the role, the membership or the session since the request came
// has lost: what the request says of the caller isn't what counts.
func TestDecidedAgainInTheTransaction(t *testing.T) {
	h := build(t)
	viewer := h.tenant.Join("viewer@acme.example", "VIEWER")
	stale := h.caller(viewer)
	stale.User.Role = doorward.RoleOwner
	write := func(tx *access.Tx) error { return h.mark(tx, 1) }
	is(t, h.Do(t.Context(), stale, doorward.SettingsManage, h.tenantObject(), write), doorward.CodeForbidden)

	second := h.tenant.Join("second@acme.example", "OWNER")
	gone := h.caller(second)
	if status, body := second.Post("/api/v2/auth/logout", nil); status != 204 {
		t.Fatalf("logout: %d %s", status, body)
	}
	is(t, h.Do(t.Context(), gone, doorward.SettingsManage, h.tenantObject(), write), doorward.CodeUnauthenticated)
	if h.marked(1) {
		t.Error("it was written")
	}
}

// The role that fn sees is the one of now.
func TestTheCallerInTheTransaction(t *testing.T) {
	h := build(t)
	stale := h.caller(h.tenant.Owner)
	stale.User.Role = doorward.RoleAdmin
	err := h.Do(t.Context(), stale, doorward.SettingsManage, h.tenantObject(), func(tx *access.Tx) error {
		if tx.By.User.Role != doorward.RoleOwner {
			t.Errorf("the caller is %s in the transaction, want OWNER", tx.By.User.Role)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// callers are of every kind.
var callers = map[string]doorward.Caller{
	"anonymous": {Kind: doorward.Anonymous}, "zero": {}, "unknown": {Kind: "robot"},
	"operator": doorward.OperatorAtTerminal(), "system": {Kind: doorward.System},
}

// An action that isn't on the list is a defect, whoever asks.
func TestUnknownActions(t *testing.T) {
	for name, by := range callers {
		for _, act := range []doorward.Action{"", "message", "message.*", "MESSAGE.SEND", "message.send ", "*"} {
			if err := access.Decide(by, act, doorward.Object{}); !doorward.HasCode(err, doorward.CodeInternal) {
				t.Errorf("%q for %s: %v", act, name, err)
			}
		}
	}
}

// A caller of no known kind, or in no tenant, may do nothing that needs a role
// or an operator.
func TestCallersOfNoKind(t *testing.T) {
	nowhere := doorward.Caller{}.As(doorward.User{Role: "LANDLORD", Status: doorward.UserActive})
	for _, verb := range doorward.Verbs() {
		if verb.By == doorward.ByProof {
			continue
		}
		for name, by := range map[string]doorward.Caller{"zero": callers["zero"], "unknown": callers["unknown"], "a role that is none": nowhere} {
			if err := access.Decide(by, verb.Action, doorward.Object{}); err == nil {
				t.Errorf("%s may %s", name, verb.Action)
			}
		}
	}
}

// A higher role may all that a lower one may, to the same object.
func TestHigherRolesMayMore(t *testing.T) {
	for _, verb := range doorward.Verbs() {
		for _, held := range append([]doorward.Role{""}, doorward.Roles...) {
			for _, given := range append([]doorward.Role{""}, doorward.Roles...) {
				on, could := doorward.Object{TenantID: "tnt_x", Held: held, Granted: given}, false
				for _, role := range doorward.Roles {
					by := doorward.Caller{}.As(doorward.User{TenantID: "tnt_x", Role: role, Status: doorward.UserActive})
					can := access.Decide(by, verb.Action, on) == nil
					if could && !can {
						t.Errorf("%s may not %s to %v, and a lower role may", role, verb.Action, on)
					}
					could = can
				}
			}
		}
	}
}

// Nothing in the answer tells an object of another tenant from none, or what
// it holds.
func TestOtherTenantsAreNotThere(t *testing.T) {
	for _, role := range doorward.Roles {
		by := doorward.Caller{}.As(doorward.User{TenantID: "tnt_x", Role: role, Status: doorward.UserActive})
		for _, verb := range doorward.Verbs() {
			if verb.By != doorward.ByRole {
				continue
			}
			absent := access.Decide(by, verb.Action, doorward.Object{})
			foreign := access.Decide(by, verb.Action, doorward.Object{TenantID: "tnt_y", Held: doorward.RoleOwner, Granted: doorward.RoleOwner})
			if diff := cmp.Diff(absent, foreign); diff != "" || !doorward.HasCode(foreign, doorward.CodeNotFound) {
				t.Errorf("%s, %s: %v, want not_found:\n%s", role, verb.Action, foreign, diff)
			}
		}
	}
}
