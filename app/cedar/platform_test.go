package cedar

import (
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

const entitiesJSON = `[
	{"uid": {"type": "user", "id": "morty"}, "attrs": {"email": "morty@example.com"}, "parents": [{"type": "group", "id": "editors"}]},
	{"uid": {"type": "group", "id": "editors"}},
	{"uid": {"type": "invoice", "id": "stored"}, "attrs": {"state": "sent", "owner": "morty", "amount": 5, "labels": {"a": [true]}}}]`

// platformSchema returns a schema with the entities. Its action tenant.read is not the
// platform's.
func platformSchema(t *testing.T, entities string) *Schema {
	t.Helper()
	s, err := NewSchema([]Action{
		{Name: "invoice.approve", Resource: "invoice", Platform: true},
		{Name: "invoice.read", Resource: "invoice", Platform: true},
		{Name: "report.read", Platform: true},
		{Name: "tenant.read"},
	}, map[string]map[string]Type{"invoice": {"amount": Long, "owner": User, "state": String}})
	if err != nil {
		t.Fatal(err)
	}
	s, faults, err := s.WithEntities([]byte(entities))
	if err != nil || faults != nil {
		t.Fatal(faults, err)
	}
	return s
}

func platformSet(t *testing.T, text, entities string) *Set {
	t.Helper()
	set, faults := ParsePlatform(text, platformSchema(t, entities))
	if faults != nil {
		t.Fatal(faults)
	}
	return set
}

// A resource is in the parents that the entities give it: in the scope of a policy as in its
// conditions.
func TestResourceInAParent(t *testing.T) {
	const entities = `[{"uid": {"type": "project", "id": "atlas"}},
		{"uid": {"type": "invoice", "id": "inv_1"}, "parents": [{"type": "project", "id": "atlas"}]}]`
	for _, text := range []string{
		`forbid(principal, action == Action::"invoice.read", resource in project::"atlas");`,
		`forbid(principal, action == Action::"invoice.read", resource is invoice in project::"atlas");`,
		`forbid(principal, action, resource in project::"atlas");`,
		`forbid(principal, action == Action::"invoice.read", resource) when { resource in project::"atlas" };`,
	} {
		prepared := platformSet(t, text, entities).Prepare(admin)
		for id, want := range map[string]bool{"inv_1": true, "inv_2": false} {
			asked := Request{Resource: &doorward.Resource{Type: "invoice", ID: id}}
			if v := prepared.Verdict("invoice.read", &asked); v.Refused != want {
				t.Errorf("%s: %s is refused: %t, want %t: %+v", text, id, v.Refused, want, v)
			}
		}
	}
	for _, text := range []string{
		`forbid(principal, action, resource in projct::"atlas");`,
		`forbid(principal, action == Action::"report.read", resource is invoice in project::"atlas");`,
	} {
		if _, faults := ParsePlatform(text, platformSchema(t, entities)); len(faults) == 0 {
			t.Errorf("%s has no fault", text)
		}
	}
}

func TestPlatform(t *testing.T) {
	set := platformSet(t, `
		@id("editors") permit(principal in group::"editors", action == Action::"invoice.read", resource);
		@id("state") permit(principal, action == Action::"invoice.approve", resource) when { resource.state == principal.email };
		@id("subject") forbid(principal, action == Action::"report.read", resource) unless { context.subject has level && context.subject.level > 3 };
	`, entitiesJSON)
	morty := set.Prepare(Principal{Type: "user", ID: "morty"})
	stated := set.Prepare(Principal{Type: "user", ID: "morty", Attributes: map[string]any{"email": "x"}})
	withoutEmail := set.Prepare(Principal{Type: "user", ID: "morty", Attributes: map[string]any{"email": nil}})
	for _, c := range []struct {
		name, action string
		prepared     *Prepared
		request      *Request
		permitted    string
		refused      bool
	}{
		{"in a group", "invoice.read", morty, &request, "editors", false},
		{"in no group", "invoice.read", set.Prepare(admin), &request, "", false},
		{"attribute of an entity", "invoice.approve", morty, requestWith(map[string]any{"state": "morty@example.com"}), "state", false},
		{"stated attribute", "invoice.approve", stated, requestWith(map[string]any{"state": "x"}), "state", false},
		{"attribute stated as null", "invoice.approve", withoutEmail, requestWith(map[string]any{"state": "x"}), "", true},
		{"another's attribute", "invoice.approve", morty, requestWith(map[string]any{"state": "x"}), "", false},
		{"a permit errs", "invoice.approve", morty, requestWith(nil), "", true},
		{"no resource", "invoice.approve", morty, &request, "", false},
		{"resource comes later", "invoice.approve", morty, &Request{Deferred: true}, "state", false},
		{"nothing stated", "report.read", morty, &request, "", true},
		{"stated", "report.read", morty, &Request{SubjectSays: map[string]any{"level": float64(4)}}, "", false},
		{"stated a fraction", "report.read", morty, &Request{SubjectSays: map[string]any{"level": 4.5}}, "", true},
		{"not of the platform", "tenant.read", morty, &request, "", false},
	} {
		if permit, ok := c.prepared.Permit(c.action, c.request); permit.PolicyID != c.permitted || ok != (permit.PolicyID != "") {
			t.Errorf("%s: permitted %v by %+v, want by %q", c.name, ok, permit, c.permitted)
		}
		if v := c.prepared.Verdict(c.action, c.request); v.Refused != c.refused {
			t.Errorf("%s: verdict %+v, want refused %v", c.name, v, c.refused)
		}
	}
}

// Attributes that a request states of a resource replace the known ones, also with a value of
// another type.
func TestStatedReplacesStored(t *testing.T) {
	set := platformSet(t, `
		permit(principal, action == Action::"invoice.read", resource) when { resource.owner == principal && resource.amount == 5 && resource has labels };
		permit(principal, action == Action::"invoice.approve", resource) when { resource has note && resource.note == {a: ["x", 1]} };`, entitiesJSON)
	forbid, faults := Parse(`@id("a") forbid(principal, action == Action::"invoice.read", resource) when { resource.amount == 5 };`, platformSchema(t, entitiesJSON))
	if faults != nil {
		t.Fatal(faults)
	}
	morty, tenant := set.Prepare(Principal{Type: "user", ID: "morty"}), forbid.Prepare(admin)
	note := map[string]any{"note": map[string]any{"a": []any{"x", 1}, "b": nil}}
	for name, c := range map[string]struct {
		id           string
		stated       map[string]any
		policy       string
		refused      bool // by the tenant's policy
		noteApproves bool // whether the platform's policy that reads the note permits
	}{
		"stored":           {"stored", nil, "policy0", true, false},
		"another number":   {"stored", map[string]any{"amount": 6}, "", false, false},
		"of another type":  {"stored", map[string]any{"amount": "5"}, "", true, false}, // it errs
		"null":             {"stored", map[string]any{"amount": nil}, "", true, false},
		"another owner":    {"stored", map[string]any{"owner": "usr_2"}, "", true, false},
		"undeclared":       {"stored", note, "policy0", true, true},
		"unknown":          {"other", map[string]any{"amount": 5, "owner": "morty", "labels": true}, "policy0", true, false},
		"unknown, nothing": {"other", nil, "", true, false},
	} {
		r := &Request{Resource: &doorward.Resource{Type: "invoice", ID: c.id, Attributes: c.stated}}
		if permit, _ := morty.Permit("invoice.read", r); permit.PolicyID != c.policy {
			t.Errorf("%s: permitted by %+v, want by %q", name, permit, c.policy)
		}
		if v := tenant.Verdict("invoice.read", r); v.Refused != c.refused {
			t.Errorf("%s: verdict of the tenant's policy %+v, want refused %v", name, v, c.refused)
		}
		if _, ok := morty.Permit("invoice.approve", r); ok != c.noteApproves {
			t.Errorf("%s: the note permits %v", name, ok)
		}
	}
}

// A permit without a condition needs no request: Prepare evaluates it.
func TestPermitWithoutCondition(t *testing.T) {
	set := platformSet(t, `@id("a") permit(principal is User, action, resource);
		@id("b") forbid(principal, action == Action::"invoice.read", resource) when { context.now > datetime("2100-01-01") };`, entitiesJSON)
	p := set.Prepare(admin)
	if permit, ok := p.Permit("report.read", nil); !ok || permit != (doorward.PolicyPermit{PolicyID: "a", Line: 1}) || p.Conditional("report.read") {
		t.Errorf("permitted %v by %+v", ok, permit)
	}
	if _, ok := set.Prepare(key).Permit("report.read", nil); ok {
		t.Error("a permit for users applies to a key")
	}
	if !p.Conditional("invoice.read") || p.Conditional("tenant.read") {
		t.Error("only invoice.read should depend on the request")
	}
}

func TestPlatformFaults(t *testing.T) {
	for text, want := range map[string]string{
		`permit(principal, action == Action::"burn", resource);`:                                                      `1:37: there is no action Action::"burn"`,
		`permit(principal, action == Action::"tenant.read", resource);`:                                               `1:37: Action::"tenant.read" is not an action of the platform`,
		`permit(principal in team::"x", action, resource);`:                                                           `1:21: there is no type team: neither the model's resources nor its entities have it`,
		`permit(principal in Role::"CLERK", action, resource);`:                                                       `1:27: the platform's policies know the roles OWNER, ADMIN, USER and VIEWER, not "CLERK": a tenant can give its own roles any name`,
		`forbid(principal, action, resource) when { principal in [Role::"USER", Role::"CLERK"] };`:                    `1:78: the platform's policies know the roles OWNER, ADMIN, USER and VIEWER, not "CLERK": a tenant can give its own roles any name`,
		`permit(principal, action, resource is bill);`:                                                                "1:27: no action in this policy's scope has a resource of this type\n1:39: there is no type bill: neither the model's resources nor its entities have it",
		"permit(principal, action, resource);\nforbid(principal, action, resource) when { [bill::\"x\"].isEmpty() };": `2:45: there is no type bill: neither the model's resources nor its entities have it`,
		`@id("a") permit(principal, action, resource); @id("a") forbid(principal, action, resource);`:                 `1:48: two policies have the id "a"`,
		`@id("policy1") permit(principal, action, resource); forbid(principal, action, resource);`:                    `1:53: without an @id, this policy's id is "policy1" by its place, but another policy has it: write an @id`,
		`permit(principal, action, resource); @id("policy0") forbid(principal, action, resource);`:                    `1:1: without an @id, this policy's id is "policy0" by its place, but another policy has it: write an @id`,
		`@id("` + strings.Repeat("i", maxID+1) + `") permit(principal, action, resource);`:                            `1:2: an id has 128 bytes at most`,
		`@reason("` + strings.Repeat("r", maxReason+1) + `") permit(principal, action, resource);`:                    `1:2: the @reason of the policy "policy0" has 513 bytes; 512 are the most`,
		strings.Repeat(`permit(principal, action, resource);`, maxPlatformPolicies+1):                                 `1:18001: there are 501 policies; 500 are the most`,
		`permit(principal, action, resource) when { ` + strings.Repeat("(", 40) + ` };`:                               `1:75: nested deeper than 32`,
	} {
		if _, faults := ParsePlatform(text, platformSchema(t, entitiesJSON)); faults.Error() != want {
			t.Errorf("%.80s has the faults\n%s\nwant\n%s", text, faults.Error(), want)
		}
	}
}

func TestEntityFaults(t *testing.T) {
	for entity, want := range map[string]string{
		`{"uid": {"type": "invoice", "id": "a"}, "attrs": {"amount": "5"}}`:                               `the attribute "amount" of invoice is declared as long`,
		`{"uid": {"type": "invoice", "id": "a"}, "attrs": {"note": {"__extn": {"fn": "x", "arg": "1"}}}}`: `the attribute "note" can't be read`,
		`{"uid": {"type": "invoice", "id": "a"}, "tags": {"note": {"__extn": {"fn": "x", "arg": "1"}}}}`:  `the tags can't be read`,
	} {
		_, faults, err := invoiceSchema(t).WithEntities([]byte(`[{"uid": {"type": "group", "id": "a"}},` + entity + `]`))
		if err != nil || len(faults) != 1 || faults[0].Index != 1 || !strings.Contains(faults[0].Message, want) {
			t.Errorf("%s: %+v %v", entity, faults, err)
		}
	}
	if _, _, err := invoiceSchema(t).WithEntities([]byte(`{}`)); err == nil {
		t.Error("an object was read as a list")
	}
	schema := platformSchema(t, entitiesJSON)
	if ids := schema.Declared("invoice"); len(ids) != 1 || ids[0] != "stored" || !schema.Declares("user", "morty") || schema.Declares("User", "morty") {
		t.Errorf("declared are %v", ids)
	}
}
