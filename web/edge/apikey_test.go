package edge_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
)

// createAPIKey creates a key of the OWNER, with values in place of the defaults, and returns its
// id and secret.
func (d *server) createAPIKey(t *testing.T, values object) (id, key string) {
	t.Helper()
	body := object{"name": "backup", "permissions": []string{"message.send", "user.read"}}
	for name, value := range values {
		body[name] = value
	}
	status, text := d.people["OWNER"].Post("/api/v2/api-keys", body)
	var made struct {
		APIKey struct{ ID string }
		Key    string
	}
	if err := json.Unmarshal(text, &made); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s", status, text)
	}
	return made.APIKey.ID, made.Key
}

func bearer(key string, more ...string) headers {
	return append(headers{"Authorization", "Bearer " + key}, more...)
}

// TestCheckWithKey: a key passes with its tenant, role and id in the headers, without those of a
// person, from the database and from memory, and only as far as its permissions go.
func TestCheckWithKey(t *testing.T) {
	t.Parallel()
	d := start(t, doorwardtest.TrustLoopback())
	id, key := d.createAPIKey(t, nil)
	_, boundKey := d.createAPIKey(t, object{"allowedIps": []string{"192.0.2.0/24", "2001:db8::7"}})
	for range 2 {
		a := d.check(t, "POST", "action=message.send", bearer(key, "Origin", "https://evil.example", "X-Forwarded-Method", "POST"))
		got := map[string]string{}
		for _, name := range identityNames[:6] { // not the assertion and AAL
			got[name] = a.header.Get(name)
		}
		want := map[string]string{"X-Auth-User": "", "X-Auth-Tenant": d.people["OWNER"].identity["X-Auth-Tenant"], "X-Auth-Role": "USER", "X-Auth-Email": "", "X-Auth-Session": "", "X-Auth-Key": id}
		if diff := cmp.Diff(want, got); a.status != http.StatusOK || diff != "" {
			t.Errorf("%d (-want +got):\n%s", a.status, diff)
		}
		d.check(t, "GET", "action=message.read", bearer(key)).fails(http.StatusForbidden, "forbidden")
		d.check(t, "GET", "action=user.invite", bearer(key)).fails(http.StatusForbidden, "forbidden")
		for ip, passes := range map[string]bool{"192.0.2.7": true, "2001:db8::7": true, "::ffff:192.0.2.8": true, "192.0.3.1": false, "2001:db8::8": false, "10.0.0.1, 192.0.2.7": true, "192.0.2.7, 10.0.0.1": false} {
			a := d.check(t, "GET", "", bearer(boundKey, "X-Forwarded-For", ip))
			if passes && a.status != http.StatusOK {
				t.Errorf("from %s: %d %s", ip, a.status, a.body)
			}
			if !passes {
				a.fails(http.StatusForbidden, "ip_not_allowed")
			}
		}
	}
	for name, sent := range map[string]headers{
		"beside a session":   as(d.people["USER"], "Authorization", "Bearer "+key),
		"twice":              bearer(key, "Authorization", "Bearer "+key),
		"one character less": bearer(key[:52]), "one more": bearer(key + "A"), "another character": bearer(key[:51] + "~~"),
		"as a cookie": {"Cookie", "JSESSIONID=" + key}, "without a scheme": {"Authorization", key},
	} {
		if a := d.check(t, "GET", "", sent); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	d.check(t, "GET", "key="+key, nil).fails(http.StatusUnauthorized, "unauthenticated")
}

// TestIntrospectKey: a service asks about a key that a caller has sent to it, and gives the
// caller's address.
func TestIntrospectKey(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.createOperatorKey(t)
	id, key := d.createAPIKey(t, nil)
	_, bound := d.createAPIKey(t, object{"allowedIps": []string{"192.0.2.7"}})
	for _, q := range []struct {
		ask     object
		active  bool
		allowed any
	}{
		{object{"credential": key}, true, nil},
		{object{"credential": key, "ip": "198.51.100.1", "action": "message.send"}, true, true},
		{object{"credential": key, "action": "message.read"}, true, false},
		{object{"credential": bound, "ip": "192.0.2.7"}, true, nil},
		{object{"credential": bound, "ip": "192.0.2.8"}, false, nil},
		{object{"credential": bound}, false, nil},
		{object{"credential": key[:52] + "~"}, false, nil},
		{object{"credential": operator}, false, nil},
	} {
		got := d.introspect(t, operator, q.ask).json()
		if !q.active {
			if diff := cmp.Diff(inactive, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", q.ask, diff)
			}
			continue
		}
		shown, _ := got["apiKey"].(object)
		if got["active"] != true || shown["name"] != "backup" || got["allowed"] != q.allowed || got["user"] != nil || got["session"] != nil {
			t.Errorf("%v answers %v", q.ask, got)
		}
		if q.ask["credential"] == key && shown["id"] != id {
			t.Errorf("%v answers the key %v", q.ask, shown["id"])
		}
	}
	batch := d.introspect(t, operator, object{"items": []object{{"credential": bound, "ip": "192.0.2.7"}, {"credential": bound}}}).json()
	items, _ := batch["items"].([]any)
	if len(items) != 2 || items[0].(object)["active"] != true || items[1].(object)["active"] != false {
		t.Errorf("a batch answers %v", batch)
	}
	if a := d.introspect(t, operator, object{"credential": key, "ip": "home"}); a.status != http.StatusUnprocessableEntity {
		t.Errorf("with no address: %d %s", a.status, a.body)
	}
	if status, body := d.people["OWNER"].Do(http.MethodDelete, "/api/v2/api-keys/"+id, nil); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, body)
	}
	if diff := cmp.Diff(inactive, d.introspect(t, operator, object{"credential": key}).json()); diff != "" {
		t.Errorf("a revoked key (-want +got):\n%s", diff)
	}
}
