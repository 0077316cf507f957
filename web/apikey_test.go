package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/smtp/smtptest"
)

const (
	keysPath   = "/api/v2/api-keys"
	reportPath = "/api/v2/auth/report-key"
)

// makeKey requests an API key with the values. Name and permissions have defaults.
func (s *server) makeKey(t *testing.T, by *doorwardtest.Person, values m, opts ...opt) answer {
	t.Helper()
	body := m{"name": "Reports", "permissions": []string{"report.read", "message.send"}}
	for name, value := range values {
		body[name] = value
	}
	return s.send(t, "POST "+keysPath, body, append(opts, as(by.Token()))...)
}

// newKey creates an API key and returns its id and its secret.
func (s *server) newKey(t *testing.T, by *doorwardtest.Person, values m) (id, key string) {
	t.Helper()
	a := s.makeKey(t, by, values).ok(http.StatusCreated)
	return a.text("apiKey.id"), a.text("key")
}

func (s *server) getKey(t *testing.T, by *doorwardtest.Person, id string) answer {
	t.Helper()
	return s.send(t, "GET "+keysPath+"/"+id, nil, as(by.Token()))
}

func (s *server) patchKey(t *testing.T, by *doorwardtest.Person, id string, body any, opts ...opt) answer {
	t.Helper()
	return s.send(t, "PATCH "+keysPath+"/"+id, body, append(opts, as(by.Token()))...)
}

var (
	keyForm  = regexp.MustCompile(`^dwk_[0-9A-Za-z]{49}$`)
	hintForm = regexp.MustCompile(`^dwk_[0-9A-Za-z]{4}…[0-9A-Za-z]{4}$`)
)

func TestCreateAPIKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		a := d.makeKey(t, acme.Owner, nil).ok(http.StatusCreated)
		a.members("", "apiKey", "key")
		a.members("apiKey", "id", "tenantId", "name", "status", "role", "effectiveRole", "permissions", "effectivePermissions", "ownerId", "createdBy", "createdAt", "expiresAt", "allowedIps", "hint")
		a.is("apiKey.status", "active").is("apiKey.role", "USER").is("apiKey.ownerId", acme.Owner.ID).is("apiKey.createdBy", acme.Owner.ID)
		a.is("apiKey.tenantId", acme.ID).is("apiKey.effectiveRole", "USER")
		if life := a.instant("apiKey.expiresAt").Sub(a.instant("apiKey.createdAt")); life != 365*24*time.Hour {
			t.Errorf("the key is valid for %v", life)
		}
		key, hint := a.text("key"), a.text("apiKey.hint")
		if !keyForm.MatchString(key) || !hintForm.MatchString(hint) || !strings.HasPrefix(key, hint[:8]) || !strings.HasSuffix(key, hint[len(hint)-4:]) {
			t.Errorf("the key %q has the hint %q", key, hint)
		}
		if got := fmt.Sprint(a.at("apiKey.permissions"), a.at("apiKey.effectivePermissions")); got != "[message.send report.read] [message.send report.read]" {
			t.Errorf("the permissions are %s", got)
		}
		shown := d.getKey(t, acme.Owner, a.text("apiKey.id")).ok(http.StatusOK)
		if strings.Contains(string(shown.body), key) || shown.text("hint") != hint {
			t.Errorf("shown is %s", shown.body)
		}

		ann := acme.Join("ann@acme.example", "ADMIN")
		bob := acme.Join("bob@acme.example", "VIEWER")
		b := d.makeKey(t, ann, m{
			"role": "ADMIN", "permissions": []string{"user.read", "message.read", "user.read"}, "expiresInDays": 1, "perSecond": 10000, "ownerId": bob.ID,
			"allowedIps": []string{"192.0.2.7", "::ffff:198.51.100.0/120", "2001:db8::/32", "192.0.2.7"},
		}).ok(http.StatusCreated)
		b.is("apiKey.role", "ADMIN").is("apiKey.ownerId", bob.ID).is("apiKey.createdBy", ann.ID).is("apiKey.perSecond", 10000.0)
		got := fmt.Sprint(b.at("apiKey.permissions"), b.at("apiKey.effectivePermissions"), b.at("apiKey.allowedIps"))
		if got != "[message.read user.read] [message.read user.read] [192.0.2.7 198.51.100.0/24 2001:db8::/32]" {
			t.Errorf("the second key has %s", got)
		}
	})
}

func TestCreateAPIKeyRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "ADMIN"), acme.Join("bob@acme.example", "USER")
		foreigner := d.Tenant("Zeta").Owner
		addresses := slices.Repeat([]string{"192.0.2.1"}, doorward.APIKeyAddressesMax+1)
		for _, c := range []struct {
			values m
			faults []string
		}{
			{m{"name": ""}, []string{"/name", "required"}},
			{m{"name": strings.Repeat("x", 101)}, []string{"/name", "out_of_range"}},
			{m{"permissions": []string{}}, []string{"/permissions", "required"}},
			{m{"permissions": slices.Repeat([]string{"message.read"}, 101)}, []string{"/permissions", "out_of_range"}},
			{m{"permissions": []string{"message.read", "apikey.manage", "tenant.destroy"}}, []string{"/permissions/1", "not_for_keys", "/permissions/2", "not_for_keys"}},
			{m{"permissions": []string{"user.manage", "x", ""}}, []string{"/permissions/0", "not_granted", "/permissions/1", "not_granted", "/permissions/2", "not_granted"}},
			{m{"role": "VIEWER", "permissions": []string{"message.send"}}, []string{"/permissions/0", "not_granted"}},
			{m{"role": "user"}, []string{"/role", "invalid"}},
			{m{"role": "OWNER"}, []string{"/role", "invalid"}},
			{m{"expiresInDays": 0}, []string{"/expiresInDays", "out_of_range"}},
			{m{"expiresInDays": 366}, []string{"/expiresInDays", "out_of_range"}},
			{m{"allowedIps": addresses}, []string{"/allowedIps", "out_of_range"}},
			{m{"allowedIps": []string{"192.0.2.1", "localhost", "192.0.2.0/33", "192.0.2.1/24", "fe80::1%eth0"}}, []string{
				"/allowedIps/1", "invalid", "/allowedIps/2", "invalid", "/allowedIps/3", "invalid", "/allowedIps/4", "invalid",
			}},
			{m{"perSecond": 0}, []string{"/perSecond", "out_of_range"}},
			{m{"perSecond": 10001}, []string{"/perSecond", "out_of_range"}},
			{m{"ownerId": "usr_x"}, []string{"/ownerId", "invalid"}},
			{m{"ownerId": foreigner.ID}, []string{"/ownerId", "invalid"}},
		} {
			d.makeKey(t, acme.Owner, c.values).invalid(c.faults...)
		}
		d.makeKey(t, ann, m{"role": "OWNER"}).fails(http.StatusForbidden, "forbidden")
		d.makeKey(t, bob, nil).fails(http.StatusForbidden, "forbidden")
		d.suspend(t, acme.ID, bob.ID)
		d.makeKey(t, ann, m{"ownerId": bob.ID}).invalid("/ownerId", "invalid")
		if ids, _ := d.page(t, keysPath, "id", as(ann.Token())); len(ids) > 0 {
			t.Errorf("refused requests have created the keys %q", ids)
		}
	})
}

func TestTooManyAPIKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		var id string
		for range doorward.APIKeysMax {
			id, _ = d.newKey(t, acme.Owner, nil)
		}
		d.makeKey(t, acme.Owner, nil).fails(http.StatusConflict, "too_many_keys")
		d.patchKey(t, acme.Owner, id, m{"status": "disabled"}).ok(http.StatusOK)
		d.makeKey(t, acme.Owner, nil).fails(http.StatusConflict, "too_many_keys")
		d.send(t, "DELETE "+keysPath+"/"+id, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		d.makeKey(t, acme.Owner, nil).ok(http.StatusCreated)
	})
}

func TestAPIKeysAreListed(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		first, _ := d.newKey(t, acme.Owner, m{"name": "Shop reports"})
		d.Advance(time.Second)
		second, _ := d.newKey(t, ann, m{"name": "Newsletter", "expiresInDays": 1})
		d.Advance(time.Second)
		third, _ := d.newKey(t, ann, m{"name": "Reports of ANN"})
		d.patchKey(t, ann, first, m{"status": "disabled"}).ok(http.StatusOK)
		d.send(t, "DELETE "+keysPath+"/"+third, nil, as(ann.Token())).ok(http.StatusNoContent)
		d.Advance(25 * time.Hour)
		by := as(ann.Login())
		for query, want := range map[string][]string{
			"": {third, second, first}, "status=active": {}, "status=disabled": {first}, "status=expired": {second}, "status=revoked": {third},
			"q=reports": {third, first}, "q=": {third, second, first}, "owner=" + ann.ID: {third, second}, "owner=usr_x": {}, "owner=" + ann.ID + "&q=news&status=expired": {second},
		} {
			if got, _ := d.page(t, keysPath+"?"+query, "id", by); !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", query, got, want)
			}
		}
		for limit := 1; limit < 4; limit++ {
			if got := d.allPages(t, keysPath, "id", limit, func(int) {}, by); !slices.Equal(got, []string{third, second, first}) {
				t.Errorf("by pages of %d: %q", limit, got)
			}
		}
		d.send(t, "GET "+keysPath+"?stauts=active", nil, by).fails(http.StatusBadRequest, "invalid_query")
		d.send(t, "GET "+keysPath+"?status=live", nil, by).fails(http.StatusUnprocessableEntity, "validation_failed")
	})
}

func TestEditAPIKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob := acme.Join("bob@acme.example", "VIEWER")
		id, _ := d.newKey(t, acme.Owner, m{"perSecond": 5})
		before := d.getKey(t, acme.Owner, id).ok(http.StatusOK)
		d.Advance(time.Hour / 2)
		acme.Owner.Login()
		a := d.patchKey(t, acme.Owner, id, m{
			"name": "Bob's reports", "permissions": []string{"report.read", "message.send"}, "allowedIps": []string{"192.0.2.0/24"}, "perSecond": 7,
			"expiresInDays": 10, "ownerId": bob.ID, "status": "disabled",
		}, with("If-Match", before.header.Get("ETag"))).ok(http.StatusOK)
		a.is("name", "Bob's reports").is("perSecond", 7.0).is("ownerId", bob.ID).is("status", "disabled")
		if got := fmt.Sprint(a.at("permissions"), a.at("effectivePermissions"), a.at("allowedIps")); got != "[message.send report.read] [report.read] [192.0.2.0/24]" {
			t.Errorf("the key has %s; its owner may not send", got)
		}
		if life := a.instant("expiresAt").Sub(a.instant("createdAt")); life < 10*24*time.Hour+time.Hour/2 || life > 10*24*time.Hour+time.Hour {
			t.Errorf("the key ends after %v", life)
		}
		if again := d.getKey(t, acme.Owner, id); again.header.Get("ETag") != a.header.Get("ETag") || again.header.Get("ETag") == before.header.Get("ETag") {
			t.Errorf("the ETags are %q before the change, %q in its answer, %q afterwards", before.header.Get("ETag"), a.header.Get("ETag"), again.header.Get("ETag"))
		}
		d.patchKey(t, acme.Owner, id, m{"name": "X"}, with("If-Match", before.header.Get("ETag"))).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.patchKey(t, acme.Owner, id, m{"permissions": []string{}, "status": "revoked", "perSecond": -1}).invalid("/permissions", "required", "/status", "invalid", "/perSecond", "out_of_range")
		d.patchKey(t, acme.Owner, id, m{"allowedIps": []string{}, "status": "active"}).ok(http.StatusOK).is("status", "active")
		d.Advance(11 * 24 * time.Hour)
		acme.Owner.Login()
		d.patchKey(t, acme.Owner, id, m{"expiresInDays": 5}).fails(http.StatusConflict, "key_ended")
	})
}

// A caller whose role doesn't manage keys gets 403, and one of another tenant the 404 of an
// unknown key, both before the values are checked.
func TestWhoManagesAPIKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		ann, bob := acme.Join("ann@acme.example", "ADMIN"), acme.Join("bob@acme.example", "USER")
		id, _ := d.newKey(t, ann, m{"role": "ADMIN"})
		routes := map[string]any{
			"GET " + keysPath + "/%s": nil, "PATCH " + keysPath + "/%s": m{"status": "none"}, "POST " + keysPath + "/%s/rotate": m{"graceHours": -1},
			"DELETE " + keysPath + "/%s/previous": nil, "DELETE " + keysPath + "/%s": nil,
		}
		for route, body := range routes {
			d.send(t, fmt.Sprintf(route, id), body, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
			answers := map[string]bool{}
			for _, absent := range []string{id, "key_aaaaaaaaaaaaaaaaaaaaaaaaaa"} {
				a := d.send(t, fmt.Sprintf(route, absent), body, as(zeta.Owner.Token())).fails(http.StatusNotFound, "not_found")
				answers[strings.ReplaceAll(a.withoutIDs(), absent, "ID")] = true
			}
			if len(answers) != 1 {
				t.Errorf("%s: the answers for a foreign and an unknown key differ: %v", route, answers)
			}
		}
		d.getKey(t, ann, id).ok(http.StatusOK).is("status", "active")
	})
}

func TestRotateAPIKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		id, first := d.newKey(t, acme.Owner, nil)
		rotate := func(body m) answer {
			t.Helper()
			return d.send(t, "POST "+keysPath+"/"+id+"/rotate", body, as(acme.Owner.Token()))
		}
		rotate(m{"graceHours": 169}).invalid("/graceHours", "out_of_range")
		d.send(t, "DELETE "+keysPath+"/"+id+"/previous", nil, as(acme.Owner.Token())).fails(http.StatusNotFound, "not_found")
		began := d.clock.now()
		a := rotate(m{}).ok(http.StatusCreated).is("apiKey.id", id)
		second := a.text("key")
		if !keyForm.MatchString(second) || second == first || !strings.HasPrefix(second, a.text("apiKey.hint")[:8]) {
			t.Errorf("rotated to %q with the hint %q", second, a.text("apiKey.hint"))
		}
		if grace := a.instant("apiKey.previous.endsAt").Sub(began); grace < 23*time.Hour || grace > 25*time.Hour {
			t.Errorf("the replaced secret is valid for %v", grace)
		}
		d.send(t, "DELETE "+keysPath+"/"+id+"/previous", nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		d.getKey(t, acme.Owner, id).is("previous", nil).is("status", "active")
		if rotate(m{"graceHours": 0}).ok(http.StatusCreated).at("apiKey.previous") != nil {
			t.Error("with graceHours 0 the old secret is still valid")
		}
		d.patchKey(t, acme.Owner, id, m{"expiresInDays": 1}).ok(http.StatusOK)
		b := rotate(m{"graceHours": 168}).ok(http.StatusCreated)
		if b.text("apiKey.previous.endsAt") != b.text("apiKey.expiresAt") {
			t.Errorf("the earlier secret ends at %s, the key at %s", b.text("apiKey.previous.endsAt"), b.text("apiKey.expiresAt"))
		}
		d.send(t, "DELETE "+keysPath+"/"+id, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		rotate(m{}).fails(http.StatusConflict, "key_ended")
		other, _ := d.newKey(t, acme.Owner, nil)
		d.send(t, "POST "+keysPath+"/"+other+"/rotate", nil, as(acme.Owner.Token())).ok(http.StatusCreated) // the body may be absent
	})
}

func TestRevokeAPIKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		id, _ := d.newKey(t, acme.Owner, nil)
		a := d.send(t, "DELETE "+keysPath+"/"+id, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		if a.header.Get("X-Revocation-Nodes") == "" || a.header.Get("X-Revocation-Ms") == "" {
			t.Errorf("the headers are %v", a.header)
		}
		d.getKey(t, acme.Owner, id).ok(http.StatusOK).is("status", "revoked")
		d.send(t, "DELETE "+keysPath+"/"+id, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		d.patchKey(t, acme.Owner, id, m{"status": "active"}).fails(http.StatusConflict, "key_ended")
	})
}

const leakSubject = "An API key of Acme was found and revoked"

// A report of a key revokes it. Its owner and those who manage keys get one mail each.
func TestReportKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "ADMIN"), acme.Join("bob@acme.example", "USER")
		acme.Join("cat@acme.example", "USER")
		id, key := d.newKey(t, ann, m{"ownerId": bob.ID, "name": "Shop"})
		hint := d.getKey(t, ann, id).text("hint")
		newSubjects := map[string]func() string{}
		for _, who := range []string{acme.Owner.Email, ann.Email, bob.Email, "cat@acme.example"} {
			newMails := d.newMails(t, who)
			newSubjects[who] = func() string { return strings.Join(subjects(newMails()), ", ") }
		}
		newMailsToAnn := d.newMails(t, ann.Email)
		for range 2 {
			a := d.send(t, "POST "+reportPath, m{"key": key}, from203).ok(http.StatusNoContent)
			if a.header.Get("X-Revocation-Nodes") != "" {
				t.Error("the answer shows that the key was valid")
			}
		}
		d.getKey(t, ann, id).ok(http.StatusOK).is("status", "revoked")
		wantOneMail(t, newMailsToAnn(), leakSubject, "the API key Shop ("+hint+") of Acme", "Reported from: 203.0.113.9", "Owner: "+bob.Email, "Last used: never", "Look in the audit trail")
		for who, subjectsTo := range newSubjects {
			want := leakSubject
			if who == "cat@acme.example" {
				want = ""
			}
			if got := subjectsTo(); got != want {
				t.Errorf("%s got the mails %q, want %q", who, got, want)
			}
		}
		d.send(t, "POST "+reportPath, m{"key": secret.NewKey("dwk_").Reveal()}).ok(http.StatusNoContent)
		for _, invalid := range []string{"x", "dwk_", key[:52], key + "x", strings.ToUpper(key), secret.NewKey("dwx_").Reveal(), " " + key, forged} {
			d.send(t, "POST "+reportPath, m{"key": invalid}).invalid("/key", "invalid")
		}
	}, doorwardtest.TrustLoopback())
}

// A report of the secret that a rotation has replaced revokes the whole key if that secret
// is still valid.
func TestReportReplacedSecret(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		id, first := d.newKey(t, acme.Owner, nil)
		d.send(t, "POST "+keysPath+"/"+id+"/rotate", m{"graceHours": 0}, as(acme.Owner.Token())).ok(http.StatusCreated)
		d.send(t, "POST "+reportPath, m{"key": first}).ok(http.StatusNoContent)
		d.getKey(t, acme.Owner, id).is("status", "active")
		second := d.send(t, "POST "+keysPath+"/"+id+"/rotate", m{"graceHours": 0}, as(acme.Owner.Token())).ok(http.StatusCreated).text("key")
		d.send(t, "POST "+keysPath+"/"+id+"/rotate", m{"graceHours": 1}, as(acme.Owner.Token())).ok(http.StatusCreated)
		d.send(t, "POST "+reportPath, m{"key": second}).ok(http.StatusNoContent)
		d.getKey(t, acme.Owner, id).is("status", "revoked")
	})
}

func TestReportOperatorKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		newMails, key := d.newMails(t, doorwardtest.OperatorAddress), d.operatorKey(t)
		d.send(t, "GET /api/v2/tenants", nil, bearer(key)).ok(http.StatusOK)
		for range 2 {
			d.send(t, "POST "+reportPath, m{"key": key}, from203).ok(http.StatusNoContent)
		}
		d.send(t, "GET /api/v2/tenants", nil, bearer(key)).fails(http.StatusUnauthorized, "unauthenticated")
		site := strings.TrimPrefix(d.base, "http://")
		wantOneMail(t, newMails(), "An operator key of "+site+" was found and revoked", "the operator key test 1 of "+site, "Reported from: 203.0.113.9")
		d.send(t, "POST "+reportPath, m{"key": secret.NewKey("dwo_").Reveal()}).ok(http.StatusNoContent)
		d.send(t, "POST "+reportPath, m{"key": "dwo_" + forged}).ok(http.StatusNoContent)
		d.send(t, "POST "+reportPath, m{"key": "dwo_" + forged[1:]}).invalid("/key", "invalid")
	}, doorwardtest.TrustLoopback())
}

// A client address has 30 reports in ten minutes; those of others don't count for it.
func TestReportsAreLimited(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		id, key := d.newKey(t, acme.Owner, nil)
		for range 30 {
			d.send(t, "POST "+reportPath, m{"key": secret.NewKey("dwk_").Reveal()}, from203).ok(http.StatusNoContent)
		}
		a := d.send(t, "POST "+reportPath, m{"key": key}, from203).fails(http.StatusTooManyRequests, "too_many_attempts")
		if wait := a.retryAfter(); wait < 9*time.Minute || wait > 10*time.Minute {
			t.Errorf("Retry-After is %v", wait)
		}
		d.send(t, "POST "+reportPath, m{"key": secret.NewKey("dwk_").Reveal()}, from("198.51.100.7")).ok(http.StatusNoContent)
		d.getKey(t, acme.Owner, id).is("status", "active")
		d.Advance(10 * time.Minute)
		d.send(t, "POST "+reportPath, m{"key": key}, from203).ok(http.StatusNoContent)
		d.getKey(t, acme.Owner, id).is("status", "revoked")
	}, doorwardtest.TrustLoopback())
}

// An owner gets a mail 30 days, 7 days and one day before a key ends, each once.
func TestExpiringKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob := acme.Join("bob@acme.example", "USER")
		newMails := d.newMails(t, bob.Email)
		id, _ := d.newKey(t, acme.Owner, m{"name": "Shop", "ownerId": bob.ID, "expiresInDays": 40})
		a := d.getKey(t, acme.Owner, id)
		ends := a.instant("expiresAt")
		subject := "The API key Shop ends on " + ends.Format("2006-01-02 15:04 UTC")
		checkMailsAfter := func(wait time.Duration, want int) {
			t.Helper()
			d.Advance(wait)
			for range 2 {
				if err := d.Node.App.APIKeys.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got := newMails()
			if want == 0 {
				wantNoMail(t, got)
				return
			}
			wantOneMail(t, got, subject, "The API key Shop ("+a.text("hint")+") of Acme ends", "You are its owner", d.base+"/console/keys/"+id)
		}
		const day = 24 * time.Hour
		checkMailsAfter(9*day, 0)
		checkMailsAfter(2*day, 1)  // 29 days before
		checkMailsAfter(21*day, 0) // 8 days before
		checkMailsAfter(2*day, 1)  // 6 days before
		checkMailsAfter(5*day, 1)  // just under 1 day before
		checkMailsAfter(2*day, 0)  // it has ended
		acme.Owner.Login()
		d.getKey(t, acme.Owner, id).is("status", "expired")
	})
}

// A queued mail is not sent if the key has since been revoked or got a later end.
func TestExpiringMailIsObsolete(t *testing.T) {
	t.Parallel()
	sink := smtptest.Start(t, smtptest.Options{})
	d := start(t, doorwardtest.Mail(sink.URL()))
	acme := d.Tenant("Acme")
	d.emptyQueue(t)
	later, _ := d.newKey(t, acme.Owner, m{"name": "later", "expiresInDays": 2})
	revoked, _ := d.newKey(t, acme.Owner, m{"name": "revoked", "expiresInDays": 2})
	d.newKey(t, acme.Owner, m{"name": "kept", "expiresInDays": 2})
	d.clock.advance(24*time.Hour - time.Minute)
	acme.Owner.Login()
	d.emptyQueue(t)
	before := len(sink.Mails())
	sink.Refuse(smtptest.AtRecipient, 451)
	d.clock.advance(2 * time.Minute) // a day before the end, of which the node's own upkeep may write first
	if err := d.Node.App.APIKeys.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.waitUntilTried(t) // a mail in transit could still arrive
	d.patchKey(t, acme.Owner, later, m{"expiresInDays": 100}).ok(http.StatusOK)
	d.send(t, "DELETE "+keysPath+"/"+revoked, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
	sink.Behave()
	d.clock.advance(time.Minute)
	d.emptyQueue(t)
	var subjects []string
	for _, mail := range sink.Mails()[before:] {
		subjects = append(subjects, mail.Parse(t).Subject)
	}
	if len(subjects) != 1 || !strings.HasPrefix(subjects[0], "The API key kept ends on ") {
		t.Errorf("the mails are %q", subjects)
	}
}

func (r *recorder) keySteps() []step {
	id, key := "", ""
	return []step{
		{"an API key", func() {
			a := r.ask("POST "+keysPath, m{"name": "Shop", "permissions": []string{"message.send"}, "expiresInDays": 2}, r.as(r.ann)).ok(201)
			id, key = a.text("apiKey.id"), r.noteSecret(a.text("key"))
			r.names[id] = "KEY"
		}, []string{
			`Acme: ann done apikey.create key KEY, name "" "Shop", permissions "" "message.send", expiresAt "" "TIME", ownerId "" "ann", role "" "USER"`,
		}},
		{"an API key by a USER", func() {
			r.ask("POST "+keysPath, m{"name": "Shop", "permissions": []string{"message.send"}}, r.as(r.bob)).fails(403, "forbidden")
		}, []string{
			`Acme: bob refused apikey.create tenant Acme, reason "" "forbidden"`,
		}},
		{"an API key above one's role", func() {
			r.ask("POST "+keysPath, m{"name": "Shop", "permissions": []string{"message.send"}, "role": "OWNER"}, r.as(r.ann)).fails(403, "forbidden")
		}, []string{
			`Acme: ann refused apikey.create key key, reason "" "forbidden", role "" "OWNER"`,
		}},
		{"an API key changed", func() {
			for range 2 {
				r.ask("PATCH "+keysPath+"/"+id, m{"name": "Shop 2", "perSecond": 5, "allowedIps": []string{"192.0.2.0/24"}, "status": "disabled"}, r.as(r.ann)).ok(200)
			}
		}, []string{
			`Acme: ann done apikey.update key KEY, name "Shop" "Shop 2", allowedIps "" "192.0.2.0/24", perSecond "" "5", status "active" "disabled"`,
		}},
		{"an API key rotated", func() {
			r.ask("PATCH "+keysPath+"/"+id, m{"status": "active"}, r.as(r.ann)).ok(200)
			r.noteSecret(r.ask("POST "+keysPath+"/"+id+"/rotate", m{}, r.as(r.ann)).ok(201).text("key"))
			r.ask("DELETE "+keysPath+"/"+id+"/previous", nil, r.as(r.ann)).ok(204)
		}, []string{
			`Acme: ann done apikey.update key KEY, status "disabled" "active"`,
			`Acme: ann done apikey.rotate key KEY, hint "HINT" "HINT", previousEndsAt "" "TIME"`,
			`Acme: ann done apikey.rotate key KEY, previousEndsAt "TIME" "TIME"`,
		}},
		{"an API key revoked", func() {
			for range 2 {
				r.ask("DELETE "+keysPath+"/"+id, nil, r.as(r.ann)).ok(204)
			}
			r.ask("POST "+reportPath, m{"key": key}).ok(204)
		}, []string{
			`Acme: ann done apikey.revoke key KEY, status "active" "revoked"`,
		}},
		{"an API key that has ended", func() {
			r.ask("GET /api/v2/auth/key", nil, bearer(key)).fails(401, "unauthenticated")
		}, []string{
			`Acme: anonymous refused apikey.refuse key KEY, reason "" "unauthenticated", cause "" "revoked"`,
		}},
		{"an API key reported", func() {
			a := r.ask("POST "+keysPath, m{"name": "Shop", "permissions": []string{"message.send"}}, r.as(r.owner)).ok(201)
			r.names[a.text("apiKey.id")] = "KEY"
			r.newEvents()
			for range 2 {
				r.ask("POST "+reportPath, m{"key": r.noteSecret(a.text("key"))}).ok(204)
			}
		}, []string{
			`Acme: anonymous done apikey.leak key KEY, status "active" "revoked"`,
		}},
		{"an operator key reported", func() {
			spare := r.noteSecret(r.operatorKey(r.t))
			r.newEvents()
			for range 2 {
				r.ask("POST "+reportPath, m{"key": spare}).ok(204)
			}
		}, []string{
			`-: anonymous done apikey.leak key key, name "test 3" ""`,
		}},
	}
}

// keyExpirySteps move the clock past the end of all sessions.
func (r *recorder) keyExpirySteps() []step {
	var key string
	sweep := func() {
		r.Advance(25 * time.Hour)
		if err := r.Node.App.APIKeys.Sweep(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
	return []step{
		{"an API key that ends soon", func() {
			a := r.ask("POST "+keysPath, m{"name": "Short", "permissions": []string{"message.send"}, "expiresInDays": 2}, as(r.token)).ok(201)
			r.names[a.text("apiKey.id")] = "KEY"
			key = r.noteSecret(a.text("key"))
			r.newEvents()
			sweep()
		}, []string{
			`Acme: system done apikey.expiring key KEY, endsAt "" "TIME"`,
		}},
		{"an API key that has expired", sweep, []string{
			`Acme: system done apikey.expire key KEY, status "active" "expired"`,
		}},
		{"an expired API key used", func() { r.ask("GET /api/v2/users", nil, bearer(key)).fails(401, "unauthenticated") }, []string{
			`Acme: anonymous refused apikey.refuse key KEY, reason "" "unauthenticated", cause "" "expired"`,
		}},
	}
}
