package cedar

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
)

func invoiceSchema(t testing.TB) *Schema {
	t.Helper()
	s, err := NewSchema([]Action{
		{Name: "invoice.approve", Resource: "invoice"},
		{Name: "invoice.read", Resource: "invoice"},
		{Name: "user.invite"},
		{Name: "tenant.read"},
	}, map[string]map[string]Type{
		"invoice": {"amount": Long, "owner": User, "tags": Strings, "paid": Bool, "state": String, "due": Datetime},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t testing.TB, text string) *Set {
	t.Helper()
	set, faults := Parse(text, invoiceSchema(t))
	if faults != nil {
		t.Fatalf("%s\n%v", text, faults)
	}
	return set
}

var (
	admin   = Principal{ID: "usr_1", Email: "a@example.com", Role: "ADMIN", Tenant: "ten_1"}
	key     = Principal{ID: "key_1", Key: true, Owner: "usr_1", Role: "USER", Tenant: "ten_1"}
	noon    = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	request = Request{Now: noon, IP: netip.MustParseAddr("10.1.2.3")}
)

// requestWith returns a request about an invoice with these attributes.
func requestWith(attributes map[string]any) *Request {
	r := request
	r.Resource = &doorward.Resource{Type: "invoice", ID: "inv_1", Attributes: attributes}
	return &r
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name, text, action string
		principal          Principal
		request            *Request
		refused, erred     bool
		needs              string
	}{
		{"every action", `@id("a") forbid(principal, action, resource);`, "tenant.read", admin, &request, true, false, ""},
		{"other action", `@id("a") forbid(principal, action == Action::"user.invite", resource);`, "tenant.read", admin, &request, false, false, ""},
		{"role", `@id("a") forbid(principal in Role::"ADMIN", action, resource);`, "tenant.read", admin, &request, true, false, ""},
		{"other role", `@id("a") forbid(principal in Role::"USER", action, resource);`, "tenant.read", admin, &request, false, false, ""},
		{"key's owner", `@id("a") forbid(principal is Key, action, resource) when { principal.owner == User::"usr_1" };`, "tenant.read", key, &request, true, false, ""},
		{"ip", `@id("a") forbid(principal, action, resource) unless { context.ip.isInRange(ip("10.0.0.0/8")) };`, "tenant.read", admin, &request, false, false, ""},
		{"no ip", `@id("a") forbid(principal, action, resource) unless { context.ip.isInRange(ip("10.0.0.0/8")) };`, "tenant.read", admin, &Request{Now: noon}, true, true, "ip"},
		{"hours", `@id("a") forbid(principal, action, resource) when { context.now.toTime() >= duration("12h") };`, "tenant.read", admin, &request, true, false, ""},
		{"no aal, checked with has", `@id("a") forbid(principal, action, resource) when { context has aal && context.aal < 2 };`, "tenant.read", admin, &request, false, false, ""},
		{"amount", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount > 10000 };`, "invoice.approve", admin, requestWith(map[string]any{"amount": 10001}), true, false, ""},
		{"small amount", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount > 10000 };`, "invoice.approve", admin, requestWith(map[string]any{"amount": 10000}), false, false, ""},
		{"wrong amount", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount > 10000 };`, "invoice.approve", admin, requestWith(map[string]any{"amount": "1"}), true, true, "resource.amount as long"},
		{"fraction", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount > 10000 };`, "invoice.approve", admin, requestWith(map[string]any{"amount": 1.5}), true, true, "resource.amount as long"},
		{"no amount", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount > 10000 };`, "invoice.approve", admin, requestWith(nil), true, true, "resource.amount as long"},
		{"no ip, no amount", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount > 10000 && context.ip.isLoopback() };`, "invoice.approve", admin, &Request{Now: noon, Resource: requestWith(nil).Resource}, true, true, "ip"},
		{"a tag of too many bytes", `@id("a") forbid(principal, action, resource is invoice) when { resource.tags.contains("x") };`, "invoice.approve", admin, requestWith(map[string]any{"tags": []any{strings.Repeat("x", MaxText+1)}}), true, true, "resource.tags as set"},
		{"overflow errs", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount + 9223372036854775807 < 0 };`, "invoice.approve", admin, requestWith(map[string]any{"amount": 1}), true, true, ""},
		{"overflow of constants errs", `@id("a") forbid(principal, action, resource) when { 9223372036854775807 + 1 < 0 };`, "tenant.read", admin, &request, true, true, ""},
		{"no resource", `@id("a") forbid(principal, action, resource is invoice) when { resource.amount > 10000 };`, "invoice.approve", admin, &request, true, false, "resource"},
		{"no resource needed", `@id("a") forbid(principal, action, resource is invoice) when { context.ip.isLoopback() && resource.amount > 1 };`, "invoice.approve", admin, &request, false, false, ""},
		{"one invoice", `@id("a") forbid(principal, action, resource == invoice::"inv_2");`, "invoice.approve", admin, requestWith(nil), false, false, ""},
		{"one unknown invoice", `@id("a") forbid(principal, action, resource == invoice::"inv_2");`, "invoice.approve", admin, &request, true, false, "resource"},
		{"own", `@id("a") forbid(principal, action, resource is invoice) when { resource.owner == principal };`, "invoice.approve", admin, requestWith(map[string]any{"owner": "usr_1"}), true, false, ""},
		{"tag", `@id("a") forbid(principal, action, resource is invoice) when { resource.tags.contains("locked") };`, "invoice.approve", admin, requestWith(map[string]any{"tags": []any{"locked"}}), true, false, ""},
		{"overdue", `@id("a") forbid(principal, action, resource is invoice) when { resource.due < context.now };`, "invoice.approve", admin, requestWith(map[string]any{"due": "2026-11-21T00:00:00Z"}), true, false, ""},
		{"the tenant", `@id("a") forbid(principal, action, resource == Tenant::"ten_1");`, "tenant.read", admin, &request, true, false, ""},
		{"another tenant", `@id("a") forbid(principal, action, resource == Tenant::"ten_2");`, "tenant.read", admin, &request, false, false, ""},
		{"no policy", "", "tenant.read", admin, &request, false, false, ""},
		{"an action outside the schema", `@id("a") forbid(principal, action, resource);`, "session.end", admin, &request, false, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, c.text).Prepare(c.principal)
			v := p.Verdict(c.action, c.request)
			if v.Refused != c.refused || v.Erred != c.erred || v.Needs != c.needs {
				t.Errorf("verdict %+v, want refused %v, erred %v, needs %q", v, c.refused, c.erred, c.needs)
			}
			if all := p.Explain(c.action, c.request); (len(all) == 1) != v.Refused || v.Refused && all[0] != v {
				t.Errorf("Explain returns %+v, Verdict %+v", all, v)
			}
		})
	}
}

// A reason that an earlier version has taken is made to fit, in the texts of tenants and of the platform: the policy goes on
// to refuse.
func TestStoredReasonFits(t *testing.T) {
	long := `@id("a") @reason("\u{1b}[2J` + strings.Repeat("ü", maxReason) + `") forbid(principal, action == Action::"invoice.read", resource);`
	tenants, leftOut, err := ParseStored(long, invoiceSchema(t))
	if err != nil || len(leftOut) > 0 {
		t.Fatal(leftOut, err)
	}
	platforms, faults := ParseStoredPlatform(long, platformSchema(t, entitiesJSON))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, set := range []*Set{tenants, platforms} {
		v := set.Prepare(admin).Verdict("invoice.read", &request)
		if !v.Refused || len(v.Reason) > maxReason || !strings.HasPrefix(v.Reason, " [2Jü") || !strings.HasSuffix(v.Reason, "ü…") {
			t.Errorf("the verdict is %+v", v)
		}
	}
}

func TestFaults(t *testing.T) {
	const head = `@id("a") forbid(principal, action, resource)`
	for _, c := range []struct {
		name, text string
		want       []Code
		line       int
	}{
		{"nothing", "", nil, 0},
		{"comment", "// nothing\n", nil, 0},
		{"permit", `@id("a") permit(principal, action, resource);`, []Code{OnlyForbid}, 1},
		{"no id", "\n  forbid(principal, action, resource);", []Code{MissingID}, 2},
		{"long id", `@id("` + strings.Repeat("i", maxID+1) + `") forbid(principal, action, resource);`, []Code{TooLarge}, 1},
		{"longest id", `@id("` + strings.Repeat("i", maxID) + `") forbid(principal, action, resource);`, nil, 0},
		{"long reason", "@id(\"a\")\n@reason(\"" + strings.Repeat("r", maxReason+1) + `") forbid(principal, action, resource);`, []Code{TooLarge}, 2},
		{"longest reason", `@id("a") @reason("` + strings.Repeat("r", maxReason) + `") forbid(principal, action, resource);`, nil, 0},
		{"reason of a terminal", `@id("a") @reason("\u{1b}[2J") forbid(principal, action, resource);`, []Code{Syntax}, 1},
		{"reason that turns the text around", `@id("a") @reason("\u{202e}on") forbid(principal, action, resource);`, []Code{Syntax}, 1},
		{"id with NUL", `@id("a\0") forbid(principal, action, resource);`, []Code{Syntax}, 1},
		{"two ids", head + ";\n" + head + ";", []Code{DuplicateID}, 2},
		{"several faults", "forbid(principal, action, resource);\nforbid(;\n" + `@id("c") permit(principal, action, resource);`, []Code{MissingID, Syntax, OnlyForbid}, 1},
		{"attribute", head + ` when { principal.name == "x" };`, []Code{UnknownAttribute, UnknownAttribute}, 1}, // one for User, one for Key
		{"attribute of the context", head + ` when { context.country == "x" };`, []Code{UnknownAttribute}, 1},
		{"optional, without has", head + ` when { context.aal < 2 };`, []Code{UnknownAttribute}, 1},
		{"optional after or", head + ` when { context has aal || context.aal < 2 };`, []Code{UnknownAttribute}, 1},
		{"action", `@id("a") forbid(principal, action == Action::"invoice.burn", resource);`, []Code{UnknownAction}, 1},
		{"action in a condition", head + ` when { action == Action::"invoice.burn" };`, []Code{UnknownAction}, 1},
		{"actions by in", head + ` when { action in [Action::"tenant.read"] };`, []Code{WrongType}, 1},
		{"type", head + ` when { context.kind > 1 };`, []Code{WrongType}, 1},
		{"condition of another type", head + ` when { 1 };`, []Code{WrongType}, 1},
		{"address", head + ` when { context.ip == ip("300.1.1.1") };`, []Code{WrongType}, 1},
		{"others' attributes", `@id("a") forbid(principal, action, resource is invoice) when { resource.owner.email == "x" };`, []Code{WrongType}, 1},
		{"others' roles", `@id("a") forbid(principal, action, resource is invoice) when { resource.owner in Role::"ADMIN" };`, []Code{WrongType}, 1},
		{"the engine's own types", head + ` when { __cedar::variable::"a" == principal };`, []Code{Syntax}, 1},
		{"the engine's own calls", head + ` when { __cedar::partialError("a") };`, []Code{Syntax}, 1},
		{"block comment", "/* " + head + "; */", []Code{Syntax}, 1},
		{"open string", `@id("a`, []Code{Syntax}, 1},
		{"no end", head, []Code{Syntax}, 1},
		{"32 brackets", head + " when { " + strings.Repeat("(", 31) + "true" + strings.Repeat(")", 31) + " };", nil, 0},
		{"33 brackets", head + " when { " + strings.Repeat("(", 32) + "true" + strings.Repeat(")", 32) + " };", []Code{TooDeep}, 1},
		{"200 policies", nPolicies(200, ""), nil, 0},
		{"201 policies", nPolicies(201, ""), []Code{TooMany}, 201},
		{"64 KiB", strings.Repeat(" ", MaxBytes), nil, 0},
		{"64 KiB and a byte", strings.Repeat(" ", MaxBytes+1), []Code{TooLarge}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, faults := Parse(c.text, invoiceSchema(t))
			if (set == nil) != (len(c.want) > 0) || len(faults) != len(c.want) {
				t.Fatalf("faults %+v, want %v", faults, c.want)
			}
			for i, fault := range faults {
				if fault.Code != c.want[i] {
					t.Errorf("fault %+v, want %s", fault, c.want[i])
				}
			}
			if len(faults) > 0 && faults[0].Line != c.line {
				t.Errorf("line %d, want %d", faults[0].Line, c.line)
			}
		})
	}
}

// Each fault is at the token that is wrong, whatever comes before it in the text: comments, blank lines,
// tabs, line breaks of two characters, characters of several bytes, other faults.
func TestPlacesOfFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"comment and bytes", "// é\n  @id(\"é\") forbid(principal, actio, resource);", `2:30: expected "action", found "actio"`},
		{"blank lines", "\n\n@id(\"a\")\n\nforbid(principal\n\naction, resource);", `7:1: expected ",", found "action"`},
		{"tabs", "@id(\"a\")\n\tforbid(principal,\taction, resource)\n\t\twhen { context.ip.isInRnge(ip(\"10.0.0.1\")) };", "3:21: `isInRnge` is not a method (did you mean isInRange?)"},
		{"effect", "@id(\"a\")\r\n\r\nforbit(principal, action, resource);", `3:1: a policy begins with forbid or permit, not "forbit" (did you mean forbid?)`},
		{"no semicolon", "@id(\"a\")\nforbid(principal, action, resource)\n// end\n@id(\"b\") forbid(principal, action, resource);", `4:1: expected ";", found "@"`},
		{"no end", "@id(\"a\")\nforbid(principal, action, resource)\n// end\n", `2:36: expected ";", found the end of the policy`},
		{"escape", "@id(\"a\")\nforbid(principal, action, resource)\nwhen { \"é\" == \"\\q\" };", "3:15: invalid char escape"},
		{"number", "@id(\"a\")\nforbid(principal, action, resource)\nwhen { 1 ==\n99999999999999999999 };", "4:1: the number 99999999999999999999 is too large"},
		{"every policy and character", "@id(\"a\") permit(principal, action, resource);\n#\n;\n@id(\"b\") forbid(principal, action, resourc);\n@id(\"c\")\nforbid(principal, action == Action::\"tenant.raed\", resource);", `1:10: a tenant's policy can only forbid; roles say what is permitted
2:1: unexpected character, or a string that does not end on its line
4:36: expected "resource", found "resourc"
6:37: there is no action Action::"tenant.raed" (did you mean tenant.read?)`},
		{"actions", "@id(\"a\")\r\nforbid(principal, action in [\r\n  Action::\"tenant.read\",\r\n  Action::\"user.invit\",\r\n  Action::\"x\"], resource);", `4:11: there is no action Action::"user.invit" (did you mean user.invite?)
5:11: there is no action Action::"x"`},
		{"attributes", "@id(\"a\")\nforbid(principal, action == Action::\"invoice.read\", resource)\nwhen { resource.amount > 1 &&\n  resource.amuont > 2 }\nunless { context.mehtod == \"GET\" ||\n  context[\"mehtod\"] == \"é\" };", "4:12: attribute `amuont` on entity type `invoice` not found (did you mean amount?)\n5:18: attribute `mehtod` in context not found (did you mean method?)\n6:11: attribute `mehtod` in context not found (did you mean method?)"},
		{"an optional attribute, the third time", "@id(\"a\")\nforbid(principal, action, resource)\nwhen { context has aal && context.aal < 2 ||\n  context.hour > 3 &&\n  context.aal < 1 };", "5:11: unable to guarantee safety of access to optional attribute `aal` in context"},
		{"types", "@id(\"a\")\nforbid(principal is\n  Usr, action, resource)\nwhen { context.hour > 3 && (\n  context.kind > 1 || false) };", "3:3: unrecognized entity type `Usr` (did you mean User?)"},
		{"types of operands", "@id(\"a\")\nforbid(principal, action, resource)\nwhen { context.hour > 3 && (\n  context.kind > 1 ||\n false) };", "4:3: unexpected type: expected datetime, or duration, or Long but saw String"},
		{"an action and an attribute", "@id(\"a\")\nforbid(principal, action in [Action::\"tenant.read\",\nAction::\"x\"], resource)\nwhen { context.a == 1 };", "3:9: there is no action Action::\"x\"\n4:16: attribute `a` in context not found"},
		{"long reason", `@id("a") forbid(principal, action, resource); @reason("` + strings.Repeat("r", 600) + `") @id("b") forbid(principal, action, resource);`, `1:48: the @reason of the policy "b" has 600 bytes; 512 are the most`},
		{"two ids", "@id(\"a\") forbid(principal, action, resource);\n@reason(\"b\")\n@id(\"a\") forbid(principal, action, resource);", `3:2: two policies have the id "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, faults := Parse(c.text, invoiceSchema(t)); faults.Error() != c.want {
				t.Errorf("%s\nhas the faults\n%v\nwant\n%s", c.text, faults, c.want)
			}
		})
	}
}

// nPolicies returns n policies, each with the condition.
func nPolicies(n int, condition string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`@id("p` + strconv.Itoa(i) + `") forbid(principal, action == Action::"invoice.approve", resource)` + condition + ";\n")
	}
	return b.String()
}
