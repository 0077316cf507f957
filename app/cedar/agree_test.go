package cedar

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/doorward/doorward"
)

// everyAttribute has the attributes of an invoice that policies of tests read.
var everyAttribute = []types.String{"amount", "owner", "tags", "paid", "state", "due"}

// evaluateInOneStep evaluates each policy in one step with the engine's own Authorize.
func evaluateInOneStep(set *Set, principal Principal, action string, request *Request) []result {
	p := &Prepared{set: set, principal: set.principal(principal), kind: principal.kind(), tenant: types.NewEntityUID(typeTenant, types.String(principal.Tenant))}
	known := &entities{principal: &p.principal, known: set.entities()}
	asked := cedar.Request{Principal: p.principal.UID, Action: actionUID(action), Resource: p.tenant, Context: p.context(allNames, request)}
	if request.Resource != nil {
		known.resource = set.resource(request.Resource, everyAttribute)
		asked.Resource = known.resource.UID
	}
	results := make([]result, len(set.policies))
	for i, one := range set.policies {
		alone := cedar.NewPolicySet()
		alone.Add("", cedar.NewPolicyFromAST(public(one.ast)))
		switch _, found := cedar.Authorize(alone, known, asked); {
		case len(found.Errors) > 0:
			results[i] = errs
		case len(found.Reasons) > 0:
			results[i] = yes
		}
	}
	return results
}

// checkAgreement compares the evaluation in two steps, compiled where possible, with that in
// one step. A request without the resource that its action declares is left to TestVerdict.
func checkAgreement(t *testing.T, set *Set, principal Principal, action string, request *Request) {
	t.Helper()
	prepared, permits := set.Prepare(principal), map[string]bool{}
	explained := map[string]Verdict{}
	for _, v := range prepared.Explain(action, request) {
		explained[v.PolicyID] = v
	}
	for i, want := range evaluateInOneStep(set, principal, action, request) {
		one := set.policies[i]
		permits[one.id] = want == yes && !one.isForbid()
		refuses := want == errs || want == yes && one.isForbid()
		if v := explained[one.id]; v.Refused != refuses || v.Erred != (want == errs) {
			t.Fatalf("policy %s, %s by %+v with %+v: %+v in two steps, result %d in one\n%s",
				one.id, action, principal, request, v, want, cedar.NewPolicyFromAST(public(one.ast)).MarshalCedar())
		}
	}
	isPermitted := slices.Contains(slices.Collect(maps.Values(permits)), true)
	if permit, ok := prepared.Permit(action, request); ok != isPermitted || ok && !permits[permit.PolicyID] {
		t.Fatalf("%s by %+v with %+v: permitted by %+v in two steps, of %v in one", action, principal, request, permit, permits)
	}
	checkConsistency(t, prepared, action, request, len(explained))
}

// checkConsistency compares Verdict with Refused, Conditional and the number of policies that
// Explain has returned.
func checkConsistency(t *testing.T, p *Prepared, action string, request *Request, explained int) {
	t.Helper()
	v := p.Verdict(action, request)
	if v.Refused != (explained > 0) {
		t.Fatalf("verdict %+v where %d policies refuse", v, explained)
	}
	always := p.Refused(action)
	if always.Refused && always != v || !always.Refused && !p.Conditional(action) && v.Refused {
		t.Fatalf("Verdict returns %+v, Refused %+v, Conditional %v", v, always, p.Conditional(action))
	}
}

// generator makes policies, principals and requests that fit invoices.
type generator struct{ *rand.Rand }

func (g generator) pick(options ...string) string { return options[g.IntN(len(options))] }

func (g generator) number(depth int) string {
	if depth == 0 {
		return g.pick("0", "1", "5", "-3", "9223372036854775807", "resource.amount", "resource.amount")
	}
	return fmt.Sprintf("(%s %s %s)", g.number(depth-1), g.pick("+", "-", "*"), g.number(0))
}

func (g generator) condition(depth int) string {
	if depth == 0 {
		return g.pick("resource.paid", "true", "false", "context has aal", `context.kind == "user"`,
			"context.ip.isLoopback()", `context.ip.isInRange(ip("10.0.0.0/8"))`, "principal is User",
			`principal in Role::"ADMIN"`, "resource.owner == principal", `resource.tags.contains("a")`,
			`resource.tags.containsAny(["b", "c"])`, `resource.tags.containsAll(["b"])`, `resource.state like "op*n"`, "resource.tags.isEmpty()",
			"(context has aal && context.aal < 2)", "(context has authAge && context.authAge > 600)",
			`(context has path && context.path like "/a/*")`, "resource.due < context.now",
			`context.now.toTime() >= duration("18h")`, `action == Action::"invoice.read"`,
			`principal == User::"usr_1"`, `resource == invoice::"inv_1"`,
			g.number(g.IntN(3))+g.pick(" < ", " <= ", " == ", " != ")+g.number(1))
	}
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("(%s && %s)", g.condition(depth-1), g.condition(depth-1))
	case 1:
		return fmt.Sprintf("(%s || %s)", g.condition(depth-1), g.condition(depth-1))
	case 2:
		return "!" + g.condition(depth-1)
	}
	return fmt.Sprintf("(if %s then %s else %s)", g.condition(depth-1), g.condition(0), g.condition(depth-1))
}

func (g generator) policy(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `@id("p%d") forbid(%s, %s, %s)`, i,
		g.pick("principal", "principal", `principal in Role::"ADMIN"`, "principal is User", `principal is Key in Role::"USER"`, `principal == User::"usr_1"`),
		g.pick("action", `action == Action::"invoice.approve"`, `action in [Action::"invoice.approve", Action::"invoice.read"]`),
		g.pick("resource is invoice", `resource == invoice::"inv_1"`, "resource is invoice"))
	for range g.IntN(3) {
		fmt.Fprintf(&b, " %s { %s }", g.pick("when", "unless"), g.condition(g.IntN(4)))
	}
	return b.String() + ";\n"
}

func (g generator) text() string {
	var b strings.Builder
	for i := range 1 + g.IntN(4) {
		b.WriteString(g.policy(i))
	}
	return b.String()
}

func (g generator) principal() Principal {
	p := Principal{ID: g.pick("usr_1", "usr_2"), Email: "a@example.com", Role: g.pick("ADMIN", "USER", "AUDITOR"), Tenant: "ten_1"}
	if g.IntN(2) == 0 {
		return p
	}
	return Principal{ID: "key_1", Key: true, Owner: g.pick("usr_1", ""), Role: p.Role, Tenant: p.Tenant}
}

func (g generator) request() *Request {
	r := Request{Now: noon.Add(time.Duration(g.IntN(24)) * time.Hour), IP: netip.MustParseAddr(g.pick("10.1.1.1", "127.0.0.1", "::1"))}
	if g.IntN(2) == 0 {
		age := time.Duration(g.IntN(1200)) * time.Second
		r.AuthAge, r.AAL = &age, 1+g.IntN(2)
	}
	if g.IntN(2) == 0 {
		r.Path = g.pick("/", "/a/b")
	}
	attributes := map[string]any{
		"amount": g.IntN(10), "owner": g.pick("usr_1", "usr_2"), "tags": []string{g.pick("a", "b"), g.pick("a", "c")},
		"paid": g.IntN(2) == 0, "state": g.pick("open", "shut"), "due": "2026-11-23T00:00:00Z",
	}
	if g.IntN(4) == 0 { // what a policy reads may be absent
		delete(attributes, g.pick("amount", "owner", "tags", "paid", "state", "due"))
	}
	r.Resource = &doorward.Resource{Type: "invoice", ID: g.pick("inv_1", "inv_2"), Attributes: attributes}
	return &r
}

func TestTwoStepsAgreeWithOne(t *testing.T) {
	schema := invoiceSchema(t)
	sets, refused := 0, 0
	for seed := range uint64(3_000) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		text := g.text()
		set, faults := Parse(text, schema)
		if faults != nil {
			continue // the types don't fit
		}
		sets++
		for range 5 {
			principal, r, action := g.principal(), g.request(), g.pick("invoice.approve", "invoice.read")
			checkAgreement(t, set, principal, action, r)
			if set.Prepare(principal).Verdict(action, r).Refused {
				refused++
			}
		}
	}
	if t.Logf("%d sets, %d refusals", sets, refused); sets < 1_000 || refused < sets || refused > 4*sets {
		t.Errorf("%d sets with %d refusals compare too little", sets, refused)
	}
}

// The operator's policies permit, too, and nothing checks the types of what they compare.
func TestTwoStepsAgreeWithOneForThePlatform(t *testing.T) {
	schema := platformSchema(t, entitiesJSON)
	sets, permitted, refused := 0, 0, 0
	for seed := range uint64(3_000) {
		g := generator{rand.New(rand.NewPCG(seed, 4))}
		set, faults := ParsePlatform(g.platformText(), schema)
		if faults != nil {
			continue
		}
		sets++
		for range 3 {
			principal, r, action := g.anyPrincipal(), g.request(), g.pick("invoice.approve", "invoice.read")
			r.SubjectSays = map[string]any{"level": g.IntN(6)}
			r.Resource.ID = g.pick("stored", "inv_1")
			r.Resource.Attributes[g.pick("amount", "state", "paid", "note")] = []any{1, "a", true, 1.5, nil, []any{"a"}}[g.IntN(6)]
			checkAgreement(t, set, principal, action, r)
			prepared := set.Prepare(principal)
			if _, ok := prepared.Permit(action, r); ok {
				permitted++
			}
			if prepared.Verdict(action, r).Refused {
				refused++
			}
		}
	}
	if t.Logf("%d sets, %d permitted, %d refused", sets, permitted, refused); sets < 1_000 || permitted < 500 || refused > 2*sets {
		t.Errorf("%d sets with %d permits and %d refusals compare too little", sets, permitted, refused)
	}
}

// anyPrincipal is a user or key of a tenant, or one of the operator's own users.
func (g generator) anyPrincipal() Principal {
	if g.IntN(2) == 0 {
		return g.principal()
	}
	return Principal{Type: "user", ID: g.pick("morty", "rick"), Attributes: map[string]any{"level": g.IntN(6)}}
}

// operand is a value of any type.
func (g generator) operand() string {
	return g.pick("1", "5", `"a"`, "true", `["a", "b"]`, "principal", "action", "resource", "principal.level", "principal.email",
		"resource.amount", "resource.owner", "resource.state", "resource.paid", "resource.tags", "resource.note", "context.now",
		"context.ip", "context.aal", "context.kind", "context.path", "context.subject.level", `ip("10.0.0.0/8")`, `user::"morty"`,
		`decimal("1.5")`, `datetime("2026-11-23T00:00:00Z")`, `duration("12h")`, "context.now.toTime()", "context.subject")
}

func (g generator) untypedCondition(depth int) string {
	switch g.IntN(4 + min(depth, 1)*4) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", g.operand(), g.pick("<", "<=", ">", ">=", "==", "!="), g.operand())
	case 1:
		return fmt.Sprintf("%s.%s(%s)", g.operand(), g.pick("contains", "containsAny", "containsAll", "isInRange"), g.operand())
	case 2:
		return fmt.Sprintf("%s.%s()", g.operand(), g.pick("isEmpty", "isIpv4", "isIpv6", "isLoopback", "isMulticast"))
	case 3:
		return g.pick("("+g.operand()+` like "a*")`, "(resource has note)", "(context has path)", "(principal has level)", g.operand())
	case 4:
		return fmt.Sprintf("(%s && %s)", g.untypedCondition(depth-1), g.untypedCondition(depth-1))
	case 5:
		return fmt.Sprintf("(%s || %s)", g.untypedCondition(depth-1), g.untypedCondition(depth-1))
	case 6:
		return "!" + g.untypedCondition(depth-1)
	}
	return fmt.Sprintf("(if %s then %s else %s)", g.untypedCondition(depth-1), g.untypedCondition(0), g.untypedCondition(depth-1))
}

func (g generator) platformText() string {
	var b strings.Builder
	for i := range 1 + g.IntN(3) {
		fmt.Fprintf(&b, `@id("p%d") %s(%s, action, %s)`, i, g.pick("permit", "forbid"),
			g.pick("principal", "principal", `principal in group::"editors"`), g.pick("resource", `resource == invoice::"stored"`))
		for range 1 + g.IntN(2) {
			fmt.Fprintf(&b, " %s { %s }", g.pick("when", "unless"), g.pick(g.untypedCondition(g.IntN(3)), g.condition(g.IntN(2))))
		}
		b.WriteString(";\n")
	}
	return b.String()
}
