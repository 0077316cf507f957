package cedar

import "testing"

func TestPlatform(t *testing.T) {
	entities, err := ParseEntities([]byte(`[
		{"uid": {"type": "user", "id": "morty"}, "attrs": {"email": "morty@example.com"}, "parents": [{"type": "group", "id": "editors"}]},
		{"uid": {"type": "group", "id": "editors"}, "attrs": {}, "parents": []}]`))
	if err != nil {
		t.Fatal(err)
	}
	set, faults := ParsePlatform(`
		@id("editors") permit(principal in group::"editors", action == Action::"invoice.read", resource);
		@id("state") permit(principal, action == Action::"invoice.approve", resource) when { resource.state == principal.email };
		@id("subject") forbid(principal, action == Action::"user.invite", resource) unless { context has subject && context.subject.level > 3 };
	`, entities, invoices(t))
	if faults != nil {
		t.Fatal(faults)
	}
	morty := set.Prepare(Principal{Type: "user", ID: "morty", Tenant: "ten_1"})
	for _, c := range []struct {
		name, action string
		who          *Prepared
		request      *Request
		permitted    string
		refused      bool
	}{
		{"of a group", "invoice.read", morty, &request, "editors", false},
		{"of no group", "invoice.read", set.Prepare(admin), &request, "", false},
		{"attribute of an entity", "invoice.approve", morty, with(map[string]any{"state": "morty@example.com"}), "state", false},
		{"stated attribute", "invoice.approve", set.Prepare(Principal{Type: "user", ID: "morty", Attributes: map[string]any{"email": "x"}}), with(map[string]any{"state": "x"}), "state", false},
		{"another's attribute", "invoice.approve", morty, with(map[string]any{"state": "x"}), "", false},
		{"a permit errs", "invoice.approve", morty, with(nil), "", true},
		{"no resource", "invoice.approve", morty, &request, "", false},
		{"nothing stated", "user.invite", morty, &request, "", true},
		{"stated", "user.invite", morty, &Request{SubjectSays: map[string]any{"level": float64(4)}}, "", false},
		{"stated a fraction", "user.invite", morty, &Request{SubjectSays: map[string]any{"level": 4.5}}, "", true},
	} {
		id, ok := c.who.Permits(c.action, c.request)
		if id != c.permitted || ok != (id != "") {
			t.Errorf("%s: permitted %v by %q", c.name, ok, id)
		}
		if v := c.who.Verdict(c.action, c.request); v.Refused != c.refused {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	whoever, faults := ParsePlatform(`
		@id("a") permit(principal, action == Action::"invoice.read", resource) when { group::"editors".open };
		@id("b") permit(principal, action == Action::"tenant.read", resource) when { principal.level == 3 };`, Entities{}, invoices(t))
	if faults != nil {
		t.Fatal(faults)
	}
	p := whoever.Prepare(Principal{Type: "user", ID: "x", Attributes: map[string]any{"level": 3}})
	if v := p.Verdict("invoice.read", with(nil)); !v.Erred || v.PolicyID != "a" {
		t.Errorf("an entity that nobody knows: %+v", v)
	}
	if id, ok := p.Permits("tenant.read", &request); !ok || id != "b" {
		t.Errorf("a stated attribute without entities: %v by %q", ok, id)
	}
	_, faults = ParsePlatform(`@id("a") permit(principal, action == Action::"burn", resource); permit(principal, action, resource);`, entities, invoices(t))
	if len(faults) != 2 || faults[0].Code != UnknownAction || faults[1].Code != MissingID {
		t.Errorf("faults %v", faults)
	}
}
