package api_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/front"
)

// document is the part of the OpenAPI description that these tests read.
type document struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Security    []map[string][]string
		Action      string `json:"x-action"`
		Responses   map[string]struct {
			Description string
			Headers     map[string]any
			Content     map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				}
				Examples map[string]any
			}
		}
	}
	Components struct {
		Schemas         map[string]map[string]any
		SecuritySchemes map[string]any
	}
}

func parsedDocument(t *testing.T) document {
	t.Helper()
	text, err := api.Document(api.Routes(nil), "https://door.example", front.SessionCookie, "test")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocumentIsTheSameEachTime(t *testing.T) {
	first, err := api.Document(api.Routes(nil), "https://door.example", front.SessionCookie, "test")
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		again, err := api.Document(api.Routes(nil), "https://door.example", front.SessionCookie, "test")
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("another document: %v\n%s", err, cmp.Diff(string(first), string(again)))
		}
	}
}

// Each route is documented with its security requirements. Public routes have an
// explicit empty one: a missing one would look like an oversight.
func TestDocumentSaysWhoMayCall(t *testing.T) {
	d := parsedDocument(t)
	session, bearer, key, none := map[string][]string{"sessionCookie": {}}, map[string][]string{"sessionToken": {}}, map[string][]string{"tenantKey": {}}, map[string][]string{}
	want := map[string][]map[string][]string{
		front.Public().Name(): {none}, front.Optional().Name(): {session, bearer, none}, front.SignedIn().Name(): {session, bearer},
		front.Operated().Name(): {{"operatorKey": {}}}, front.KeyOnly().Name(): {key}, front.SignedInOrKey().Name(): {session, bearer, key},
	}
	ids := map[string]bool{}
	for _, r := range api.Routes(nil) {
		op, has := d.Paths[r.Path][strings.ToLower(r.Method)]
		if !has || op.OperationID == "" || ids[op.OperationID] || op.Action != r.Guard.Name() {
			t.Errorf("%s %s: described as %+v", r.Method, r.Path, op)
		}
		ids[op.OperationID] = true
		security, special := want[r.Guard.Name()]
		if !special { // an action: of a session whose role grants it, or of a key that has it
			security = want[front.SignedInOrKey().Name()]
		}
		if r.Guard.PeopleOnly() && !special {
			security = want[front.SignedIn().Name()]
		}
		if r.Guard.TakesOperatorKeys() {
			security = append(slices.Clone(security), map[string][]string{"operatorKey": {}})
		}
		if r.Guard.Service() != "" {
			security = append(slices.Clone(security), map[string][]string{"serviceKey": {}})
		}
		if diff := cmp.Diff(security, op.Security); diff != "" {
			t.Errorf("%s %s: security:\n%s", r.Method, r.Path, diff)
		}
	}
}

// The codes of a status are in its description for people, and among its examples for
// programs. They aren't an enum, since a client must accept a new one.
func TestDocumentListsTheCodesTwice(t *testing.T) {
	for path, item := range parsedDocument(t).Paths {
		for method, op := range item {
			for status, r := range op.Responses {
				if status < "400" {
					continue
				}
				problem := r.Content["application/problem+json"]
				if strings.HasPrefix(r.Description, "In the form of OAuth: ") && r.Content["application/json"].Schema.Ref != "" {
					continue
				}
				described := strings.Split(strings.ReplaceAll(r.Description, "`", ""), ", ")
				if !slices.Equal(described, slices.Sorted(maps.Keys(problem.Examples))) || problem.Schema.Ref != "#/components/schemas/Problem" {
					t.Errorf("%s %s %s: the description has %q, the examples are %+v", method, path, status, r.Description, problem)
				}
			}
		}
	}
}

// Each answer has the request's id; a 401 has WWW-Authenticate, and an answer that asks the
// caller to wait has Retry-After.
func TestDocumentListsHeaders(t *testing.T) {
	want := map[string][]string{
		"401": {"WWW-Authenticate", "X-Request-Id"}, "429": {"Retry-After", "X-Request-Id"}, "503": {"Retry-After", "X-Request-Id"},
	}
	for path, item := range parsedDocument(t).Paths {
		for method, op := range item {
			for status, r := range op.Responses {
				got, need := slices.Sorted(maps.Keys(r.Headers)), orElse(want[status], "X-Request-Id")
				if strings.Contains(r.Description, "`idempotency_in_progress`") {
					need = want["429"]
				}
				if status >= "400" && !slices.Equal(got, need) {
					t.Errorf("%s %s %s: headers %q", method, path, status, got)
				}
				if status < "400" && !slices.Contains(got, "X-Request-Id") {
					t.Errorf("%s %s %s: headers %q", method, path, status, got)
				}
			}
		}
	}
}

func orElse(names []string, otherwise string) []string {
	if names == nil {
		return []string{otherwise}
	}
	return names
}

// Generators make types of schemas and of credentials, whose names must not clash.
func TestNoSchemaIsNamedAsACredential(t *testing.T) {
	c := parsedDocument(t).Components
	for scheme := range c.SecuritySchemes {
		for schema := range c.Schemas {
			if strings.EqualFold(scheme, schema) {
				t.Errorf("%s is the name of a schema and of a kind of credential", schema)
			}
		}
	}
	if len(c.SecuritySchemes) < 5 || len(c.Schemas) < 50 {
		t.Errorf("%d kinds of credentials, %d schemas: the test reads the wrong thing", len(c.SecuritySchemes), len(c.Schemas))
	}
}

// What only requests use is closed, as the server refuses unknown members there; what
// answers use is open, so that a member of a later version breaks no client.
func TestAnswersAreOpen(t *testing.T) {
	schemas := parsedDocument(t).Components.Schemas
	for _, name := range []string{"Problem", "FieldError", "User", "Session", "SignedIn", "Invitation", "InvitationList", "Settings", "Event", "Change", "Challenge", "APIKey", "PreviousSecret"} {
		if _, isClosed := schemas[name]["additionalProperties"]; isClosed || schemas[name] == nil {
			t.Errorf("%s of answers is %v", name, schemas[name])
		}
	}
	for _, name := range []string{"LoginInput", "InviteInput", "BulkInput", "BulkOffer", "SettingsInput"} {
		if schemas[name]["additionalProperties"] != false {
			t.Errorf("%s of requests is open", name)
		}
	}
}
