package pages_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/doorward/doorward/doorwardtest"
)

// operationOf finds what the form is sent to.
func operationOf(t *testing.T, doc *openapi3.T, form *html.Node) *openapi3.Operation {
	t.Helper()
	item := doc.Paths.Value(strings.TrimPrefix(attr(form, "action"), "/platform"))
	if item == nil || item.Post == nil || attr(form, "method") != "post" {
		t.Fatalf("the form goes to %s %s", attr(form, "method"), attr(form, "action"))
	}
	return item.Post
}

// eachForm calls fn for the forms of both pages, below a base path.
func eachForm(t *testing.T, fn func(page, form *html.Node, op *openapi3.Operation)) {
	t.Helper()
	server := doorwardtest.Start(t, doorwardtest.BaseURL("https://auth.example/platform"))
	doc := document(t, server)
	for _, path := range []string{"/platform/accept", "/platform/reset"} {
		root := page(t, server.URL+path)
		for form := range elements(root, "form") {
			fn(root, form, operationOf(t, doc, form))
		}
	}
}

func TestFormsHaveWhatTheirEndpointsNeed(t *testing.T) {
	got := map[string][]string{}
	eachForm(t, func(_, form *html.Node, op *openapi3.Operation) {
		body := op.RequestBody.Value.Content["application/json"].Schema.Value
		var names []string
		for input := range elements(form, "input") {
			names = append(names, attr(input, "name"))
			if body.Properties[attr(input, "name")] == nil {
				t.Errorf("%s has no member %q", op.OperationID, attr(input, "name"))
			}
			got[op.OperationID] = append(got[op.OperationID], attr(input, "name")+" "+attr(input, "type")+" "+attr(input, "autocomplete"))
		}
		for _, need := range body.Required {
			if !slices.Contains(names, need) {
				t.Errorf("the form of %s lacks %q", op.OperationID, need)
			}
		}
	})
	code, chosen, again := "token text off", "password password new-password", "confirmPassword password new-password"
	want := map[string][]string{
		"completeRegistration": {code, chosen, again},
		"acceptInvitation":     {code, "password password current-password"},
		"resetPassword":        {code, chosen, again},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("name, type and autocomplete of the fields (-want +got):\n%s", diff)
	}
}

type outcome struct{ Part, Pointer, Message string }

func outcomesOf(t *testing.T, form *html.Node) (all map[string]outcome) {
	t.Helper()
	if err := json.Unmarshal([]byte(attr(form, "data-outcomes")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOutcomesLeadSomewhere(t *testing.T) {
	eachForm(t, func(page, form *html.Node, op *openapi3.Operation) {
		if done := byID(page, attr(form, "data-done")); done == nil || !isHidden(done) {
			t.Errorf("%s ends at %q, which is not there or shows already", op.OperationID, attr(form, "data-done"))
		}
		for code, o := range outcomesOf(t, form) {
			switch {
			case o.Part != "" && byID(page, o.Part) == nil:
				t.Errorf("%s: %s leads to %q, which is not there", op.OperationID, code, o.Part)
			case o.Part == "" && (o.Message == "" || !hasField(form, strings.TrimPrefix(o.Pointer, "/"))):
				t.Errorf("%s: %s is the fault %q of %q", op.OperationID, code, o.Message, o.Pointer)
			}
		}
	})
}

func hasField(form *html.Node, name string) bool {
	for input := range elements(form, "input") {
		if attr(input, "name") == name {
			return true
		}
	}
	return false
}

// general are the codes that need no words of the page's own: their problem
// tells a person what to do, or says what has gone wrong with the page.
var general = []string{
	"body_too_large", "cross_origin", "internal_error", "invalid_body", "too_many_attempts", "unavailable", "unsupported_media_type", "validation_failed",
}

func TestEveryAnswerHasAnOutcome(t *testing.T) {
	eachForm(t, func(_, form *html.Node, op *openapi3.Operation) {
		var documented []string
		for status, res := range op.Responses.Map() {
			if status[0] != '2' {
				documented = append(documented, codes.FindAllString(*res.Value.Description, -1)...)
			}
		}
		told := append(slices.Collect(maps.Keys(outcomesOf(t, form))), general...)
		for _, code := range documented {
			if !slices.Contains(told, code) {
				t.Errorf("the page does not know what to do when %s answers %s", op.OperationID, code)
			}
		}
		for code := range outcomesOf(t, form) {
			if !slices.Contains(documented, code) {
				t.Errorf("the page waits for %s, which %s never answers", code, op.OperationID)
			}
		}
	})
}

func TestBlanksAreMembersOfTheAnswer(t *testing.T) {
	server := doorwardtest.Start(t)
	user := document(t, server).Components.Schemas["User"].Value
	blanks := 0
	for _, path := range []string{"/accept", "/reset"} {
		for n := range elements(page(t, server.URL+path), "strong") {
			blanks++
			if user.Properties[attr(n, "data-user")] == nil {
				t.Errorf("%s: a user has no %q", path, attr(n, "data-user"))
			}
		}
	}
	if blanks == 0 {
		t.Error("no page says who has joined what")
	}
}

// Until the script has taken over, a form can't be sent: the browser would send
// the password in its own way.
func TestFormsWaitForTheirScript(t *testing.T) {
	eachForm(t, func(page, form *html.Node, op *openapi3.Operation) {
		for n := range elements(form, "input", "button") {
			above := n.Parent
			for above != nil && above.Data != "fieldset" {
				above = above.Parent
			}
			if above == nil || !has(above, "disabled") {
				t.Errorf("%s: <%s name=%q> works without the script", op.OperationID, n.Data, attr(n, "name"))
			}
		}
		if said := text(find(page, "noscript")); !strings.Contains(said, "JavaScript") || !strings.Contains(said, "code") {
			t.Errorf("without JavaScript the page of %s says %q", op.OperationID, said)
		}
	})
}
