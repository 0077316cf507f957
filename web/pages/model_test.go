package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

// The pages show the model in force: its actions in the table of roles and in examples, and above
// each guide that names actions which it lacks.
func TestPagesOfAnotherModel(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/docs/api", "/docs/api/roles"} {
		if a := get(t, s.URL+path); !strings.Contains(a.body, "message.") {
			t.Errorf("%s of the built-in model names none of its actions", path)
		}
	}
	const model = `actions:
  invoice.read: {roles: [OWNER, ADMIN, USER, VIEWER]}
  invoice.write: {roles: [OWNER, ADMIN, USER]}
`
	if _, err := s.Node.App.Models.Apply(t.Context(), doorward.OperatorAtTerminal(), model, nil, false); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths() {
		a := get(t, s.URL+path)
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", path, a.StatusCode)
		}
		isGuide := strings.HasPrefix(path, "/docs") && !strings.HasPrefix(path, "/docs/api/") && path != "/docs/api"
		for _, name := range []string{"message.send", "message.read", "report.read", "billing.read", "billing.manage", "data.destroy"} {
			if !strings.Contains(a.body, name) {
				continue
			}
			if !isGuide {
				t.Errorf("%s names %s", path, name)
			} else if !strings.Contains(a.body, "<code>invoice.read</code>, <code>invoice.write</code>") {
				t.Errorf("%s names %s and not the model's actions", path, name)
			}
		}
	}
	if a := get(t, s.URL+"/docs/api"); !strings.Contains(a.body, `<code>invoice.write</code></th><td><span class="yes">`) {
		t.Error("the table of roles lacks invoice.write")
	}
	if a := get(t, s.URL+"/docs/api/api-keys"); !strings.Contains(a.body, "invoice.write") {
		t.Error("no example of API keys names invoice.write")
	}
}
