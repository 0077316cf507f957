package cedar

import (
	"math/rand/v2"
	"testing"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/doorward/doorward/internal/npmtest"
)

// wireCase is a text, and requests to evaluate, as testdata/reference.mjs reads them.
type wireCase struct {
	Policies []string      `json:"policies"`
	Requests []wireRequest `json:"requests"`
}

type wireRequest struct {
	Principal any            `json:"principal"`
	Action    any            `json:"action"`
	Resource  any            `json:"resource"`
	Context   types.Record   `json:"context"`
	Entities  []types.Entity `json:"entities"`
}

// wireAnswer is the answer of testdata/reference.mjs to a case.
type wireAnswer struct {
	Valid   bool
	Answers []struct{ Refuse, Err []string } // places of policies in the text, from 0
}

func uidJSON(uid types.EntityUID) any {
	return map[string]string{"type": string(uid.Type), "id": string(uid.ID)}
}

// wire returns a request as testdata/reference.mjs reads it.
func wire(set *Set, principal Principal, action string, r *Request) wireRequest {
	p := &Prepared{set: set, principal: principal.entity(), kind: principal.kind()}
	context := p.context(allNames, r)
	resource := set.resource(r.Resource, everyAttribute)
	return wireRequest{
		Principal: uidJSON(p.principal.UID), Action: uidJSON(actionUID(action)), Resource: uidJSON(resource.UID),
		Context: context, Entities: []types.Entity{p.principal, *resource},
	}
}

// question is one request as the set takes it.
type question struct {
	principal Principal
	action    string
	r         *Request
}

// TestVerdictsOfReference compares the verdicts with those of Cedar's reference
// implementation, which is written in Rust and shares nothing with cedar-go.
func TestVerdictsOfReference(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a package with npm")
	}
	schema := invoiceSchema(t)
	var cases []wireCase
	var sets []*Set
	var questions [][]question
	for seed := range uint64(400) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		text := g.text()
		statements, _ := split(text, limits{MaxBytes, MaxPolicies})
		one := wireCase{Requests: []wireRequest{}}
		for _, st := range statements {
			one.Policies = append(one.Policies, st.text)
		}
		set, _ := Parse(text, schema)
		var ofText []question
		for range 5 {
			q := question{g.principal(), g.pick("invoice.approve", "invoice.read"), g.request()}
			if set != nil {
				ofText = append(ofText, q)
				one.Requests = append(one.Requests, wire(set, q.principal, q.action, q.r))
			}
		}
		cases, sets, questions = append(cases, one), append(sets, set), append(questions, ofText)
	}
	compared := 0
	for i, answer := range askReference(t, schema, cases) {
		if answer.Valid != (sets[i] != nil) {
			t.Errorf("valid %v by the reference, %v here: %v", answer.Valid, sets[i] != nil, cases[i].Policies)
			continue
		}
		for j, q := range questions[i] {
			got := sets[i].Prepare(q.principal).Explain(q.action, q.r)
			if !isSame(got, answer.Answers[j].Refuse, answer.Answers[j].Err) {
				t.Errorf("%v by %+v with %+v: %+v, and by the reference %+v", cases[i].Policies, q.principal, q.r, got, answer.Answers[j])
			}
			compared++
		}
	}
	if t.Logf("%d requests", compared); compared < 1_000 {
		t.Errorf("only %d requests were compared", compared)
	}
}

// isSame reports whether the verdicts are those of the reference.
func isSame(got []Verdict, refuse, err []string) bool {
	want := map[string]bool{}
	for _, at := range refuse {
		want["p"+at] = false
	}
	for _, at := range err {
		want["p"+at] = true
	}
	for _, v := range got {
		if erred, ok := want[v.PolicyID]; !ok || erred != v.Erred {
			return false
		}
	}
	return len(got) == len(want)
}

// askReference returns the answers of the reference implementation, one for each case.
func askReference(t *testing.T, schema *Schema, cases []wireCase) (answers []wireAnswer) {
	t.Helper()
	npmtest.Ask(t, map[string]any{"schema": schema.Text(), "cases": cases}, &answers)
	if len(answers) != len(cases) {
		t.Fatalf("%d answers for %d cases", len(answers), len(cases))
	}
	return answers
}
