package edge_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
)

const introspectPath = "/api/v2/access/introspect"

// introspect asks with a key; a string is sent unchanged, anything else is encoded.
func (d *server) introspect(t *testing.T, key string, body any) answer {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	a := d.send(t, "POST "+introspectPath, strings.NewReader(text), headers{"Authorization", "Bearer " + key, "Content-Type", "application/json"})
	a.requireHeaders()
	return a
}

// object is a JSON object.
type object = map[string]any

func (a answer) json() (m object) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, &m); err != nil {
		a.t.Fatalf("%s: %s: %v", a.request, a.body, err)
	}
	return m
}

var inactive = object{"active": false}

// wantPerson requires that the answer describes the person with only what a check
// also returns.
func wantPerson(t *testing.T, got object, p person) {
	t.Helper()
	user, _ := got["user"].(object)
	session, _ := got["session"].(object)
	if got["active"] != true || user == nil || session == nil {
		t.Fatalf("%v, want an active session", got)
	}
	identity := map[string]string{"X-Auth-Key": "", "X-Auth-Assertion": "", "X-Auth-Aal": fmt.Sprint(session["aal"])}
	for name, value := range map[string]any{
		"X-Auth-User": user["id"], "X-Auth-Tenant": user["tenantId"], "X-Auth-Role": user["role"], "X-Auth-Email": user["email"], "X-Auth-Session": session["id"],
	} {
		identity[name], _ = value.(string)
	}
	if diff := cmp.Diff(p.identity, identity); diff != "" {
		t.Errorf("the identity (-want +got):\n%s", diff)
	}
	if session["tenantId"] != user["tenantId"] || user["status"] != "active" || user["permissions"] == nil {
		t.Errorf("user %v, session %v", user, session)
	}
	for name := range got {
		if !slices.Contains([]string{"active", "user", "session", "allowed"}, name) {
			t.Errorf("the answer has the member %q", name)
		}
	}
}

func TestIntrospectActiveSession(t *testing.T) {
	t.Parallel()
	d := start(t)
	key := d.createOperatorKey(t)
	for _, role := range roles {
		p := d.people[role]
		plain := d.introspect(t, key, object{"credential": p.Token()})
		if plain.status != http.StatusOK || plain.json()["allowed"] != nil {
			t.Fatalf("%s: %d %s", role, plain.status, plain.body)
		}
		wantPerson(t, plain.json(), p)
		for action, to := range granted {
			got := d.introspect(t, key, object{"credential": p.Token(), "action": action}).json()
			if wantPerson(t, got, p); got["allowed"] != strings.Contains(to, role) {
				t.Errorf("%s %s: allowed %v", role, action, got["allowed"])
			}
		}
	}
}

func TestIntrospectInvalidCredential(t *testing.T) {
	t.Parallel()
	d := start(t)
	key, user, admin := d.createOperatorKey(t), d.people["USER"], d.people["ADMIN"]
	ended := user.Token()
	if status, body := user.Post("/api/v2/auth/logout", nil); status != http.StatusNoContent {
		t.Fatalf("logout: %d %s", status, body)
	}
	for _, credential := range []string{
		ended, strings.Repeat("A", 43), "junk", "JSESSIONID=" + admin.Token(), admin.Token() + "=", admin.Token() + " ", " " + admin.Token(),
		admin.Token()[:42], strings.ToUpper(admin.Token()), admin.identity["X-Auth-Session"], key, "Bearer " + key, "é",
		strings.Repeat("x", 60_000),
	} {
		for _, question := range []object{{"credential": credential}, {"credential": credential, "action": "message.send"}} {
			a := d.introspect(t, key, question)
			if a.status != http.StatusOK || !cmp.Equal(a.json(), inactive) {
				t.Errorf("%.50q: %d %s", credential, a.status, a.body)
			}
		}
	}
	d.Advance(time.Hour)
	if a := d.introspect(t, key, object{"credential": admin.Token()}); !cmp.Equal(a.json(), inactive) {
		t.Errorf("after an idle hour: %d %s", a.status, a.body)
	}
}

// TestIntrospectIsAUse: an introspection counts as use of the session.
func TestIntrospectIsAUse(t *testing.T) {
	t.Parallel()
	d := start(t)
	key, user := d.createOperatorKey(t), d.people["USER"]
	for range 3 {
		d.Advance(40 * time.Minute)
		wantPerson(t, d.introspect(t, key, object{"credential": user.Token()}).json(), user)
	}
}

func TestIntrospectAnswersInOrder(t *testing.T) {
	t.Parallel()
	d := start(t)
	key := d.createOperatorKey(t)
	var items []object
	for n := range 100 {
		switch n % 5 {
		case 4:
			items = append(items, object{"credential": fmt.Sprint("junk ", n), "action": "message.send"})
		case 3:
			items = append(items, object{"credential": d.people["VIEWER"].Token(), "action": "message.send"})
		default:
			items = append(items, object{"credential": d.people[roles[n%5]].Token()})
		}
	}
	a := d.introspect(t, key, object{"items": items})
	answers, _ := a.json()["items"].([]any)
	if a.status != http.StatusOK || len(answers) != len(items) || len(a.json()) != 1 {
		t.Fatalf("%d %.300s", a.status, a.body)
	}
	for n, one := range answers {
		got, _ := one.(object)
		switch n % 5 {
		case 4:
			if !cmp.Equal(got, inactive) {
				t.Errorf("%d: %v", n, got)
			}
		case 3:
			if wantPerson(t, got, d.people["VIEWER"]); got["allowed"] != false {
				t.Errorf("%d: %v", n, got)
			}
		default:
			if wantPerson(t, got, d.people[roles[n%5]]); got["allowed"] != nil {
				t.Errorf("%d: %v", n, got)
			}
		}
	}
}

// faults returns pairs of pointer and code.
func (a answer) faults() (all []string) {
	a.t.Helper()
	var p struct {
		Errors []struct{ Pointer, Code string }
	}
	if err := json.Unmarshal(a.body, &p); err != nil {
		a.t.Fatalf("%s: %s: %v", a.request, a.body, err)
	}
	for _, e := range p.Errors {
		all = append(all, e.Pointer, e.Code)
	}
	return all
}

func TestIntrospectRefusesInvalidFields(t *testing.T) {
	t.Parallel()
	d := start(t)
	key, token := d.createOperatorKey(t), d.people["USER"].Token()
	one := object{"credential": token}
	for _, test := range []struct {
		body   any
		faults []string
	}{
		{object{}, []string{"/credential", "required"}},
		{object{"credential": ""}, []string{"/credential", "required"}},
		{object{"action": "message.send"}, []string{"/credential", "required"}},
		{object{"credential": token, "action": "none"}, []string{"/action", "invalid"}},
		{object{"credential": token, "action": "session.open"}, []string{"/action", "invalid"}},
		{object{"action": "none"}, []string{"/credential", "required", "/action", "invalid"}},
		{object{"items": []object{}}, []string{"/items", "out_of_range"}},
		{object{"items": slices.Repeat([]object{one}, 101)}, []string{"/items", "out_of_range"}},
		{object{"items": []object{one, {}, {"credential": token, "action": "x"}}}, []string{"/items/1/credential", "required", "/items/2/action", "invalid"}},
		{object{"items": []object{one}, "credential": token}, []string{"/items", "invalid"}},
		{object{"items": []object{one}, "action": "message.send"}, []string{"/items", "invalid"}},
		{object{"items": []object{}, "credential": token}, []string{"/items", "invalid"}},
	} {
		a := d.introspect(t, key, test.body)
		a.fails(http.StatusUnprocessableEntity, "validation_failed")
		if got := a.faults(); !slices.Equal(got, test.faults) {
			t.Errorf("%.100s: %q, want %q", fmt.Sprint(test.body), got, test.faults)
		}
		if strings.Contains(string(a.body), token) {
			t.Errorf("the answer repeats the credential: %s", a.body)
		}
	}
}

func TestIntrospectRefusesAnotherForm(t *testing.T) {
	t.Parallel()
	d := start(t)
	key, token := d.createOperatorKey(t), d.people["USER"].Token()
	for _, body := range []string{
		"", "null", "[]", `"x"`, "{", `{"credential": null}`, `{"credential": 1}`, `{"credential": ["x"]}`, `{"Credential": "x"}`,
		`{"credential": "x", "credential": "` + token + `"}`, `{"credential": "x", "token": "x"}`, `{"items": null}`, `{"items": {}}`,
		`{"items": ["x"]}`, `{"items": [null]}`, `{"items": [{"credential": "x", "items": []}]}`, `{"items": [{"Credential": "x"}]}`,
		`{"credential": "x"} {}`, "\ufeff{}", `{"credential": "\u0000"}`,
	} {
		a := d.introspect(t, key, body)
		a.fails(http.StatusBadRequest, "invalid_body")
		if strings.Contains(string(a.body), token) {
			t.Errorf("the answer repeats the credential: %s", a.body)
		}
	}
	d.introspect(t, key, `{"credential": "`+strings.Repeat("x", 64<<10)+`"}`).fails(http.StatusRequestEntityTooLarge, "body_too_large")
	d.send(t, "POST "+introspectPath, strings.NewReader("credential="+token), headers{
		"Authorization", "Bearer " + key, "Content-Type", "application/x-www-form-urlencoded", // the format of RFC 7662
	}).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
}

func TestIntrospectIsForOperators(t *testing.T) {
	t.Parallel()
	d := start(t)
	key := d.createOperatorKey(t)
	body := func() *strings.Reader { return strings.NewReader(`{"credential": "` + d.people["USER"].Token() + `"}`) }
	send := func(h ...string) answer {
		t.Helper()
		return d.send(t, "POST "+introspectPath, body(), append(headers{"Content-Type", "application/json"}, h...))
	}
	send().fails(http.StatusUnauthorized, "unauthenticated")
	send("Authorization", "Bearer "+strings.Replace(key, key[len(key)-4:], "AAAA", 1)).fails(http.StatusUnauthorized, "unauthenticated")
	send("Authorization", "Basic "+key).fails(http.StatusUnauthorized, "unauthenticated")
	for _, role := range roles {
		send(as(d.people[role])...).fails(http.StatusForbidden, "forbidden")
		send(as(d.people[role], "Authorization", "Bearer "+key)...).fails(http.StatusUnauthorized, "unauthenticated")
	}
	send("Authorization", "Bearer "+key, "Origin", "https://other.example").fails(http.StatusForbidden, "cross_origin")
	// Without a credential the format isn't checked.
	d.send(t, "POST "+introspectPath, strings.NewReader("{"), nil).fails(http.StatusUnauthorized, "unauthenticated")
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		a := d.send(t, method+" "+introspectPath, nil, headers{"Authorization", "Bearer " + key})
		a.fails(http.StatusMethodNotAllowed, "method_not_allowed")
		if allow := a.header.Get("Allow"); allow != "POST" {
			t.Errorf("%s: Allow: %q", method, allow)
		}
	}
}

// TestIntrospectWithoutDatabase: without the database, no credential is reported as
// inactive.
func TestIntrospectWithoutDatabase(t *testing.T) {
	t.Parallel()
	d := start(t)
	key, token := d.createOperatorKey(t), d.people["USER"].Token()
	if err := d.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	for _, body := range []object{{"credential": token}, {"credential": "junk"}, {"items": []object{{"credential": token}}}} {
		d.introspect(t, key, body).fails(http.StatusServiceUnavailable, "unavailable")
	}
}

// TestIntrospectWithoutSessions: the operator key is valid, but the session isn't cached and
// can't be read from the database.
func TestIntrospectWithoutSessions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "doorward.db")
	d := start(t, doorwardtest.Database("sqlite:"+file))
	key, token := d.createOperatorKey(t), d.people["USER"].Token()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(30000)") // the server writes, too
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE sessions RENAME TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	for _, credential := range []string{token, strings.Repeat("A", 43)} {
		for _, body := range []object{{"credential": credential}, {"items": []object{{"credential": "junk"}, {"credential": credential}}}} {
			d.introspect(t, key, body).fails(http.StatusServiceUnavailable, "unavailable")
		}
	}
	if a := d.introspect(t, key, object{"credential": "junk"}); !cmp.Equal(a.json(), inactive) {
		t.Errorf("a credential that is no token: %d %s", a.status, a.body)
	}
}
