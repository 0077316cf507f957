package web_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/front"
)

const tenantsPath = "POST /api/v2/tenants"

// idempotencyKey sets the header Idempotency-Key.
func idempotencyKey(key string) opt { return with(front.IdempotencyKey, key) }

// replays ends the test unless the answer is a replay of the first one.
func (a answer) replays(first answer) {
	a.t.Helper()
	if a.ok(first.status); !bytes.Equal(a.body, first.body) || a.header.Get(front.IdempotencyReplayed) != "true" {
		a.t.Fatalf("%s: replayed %q:\n%s\nwant the first answer:\n%s", a.route, a.header.Get(front.IdempotencyReplayed), a.body, first.body)
	}
}

// okFirst is ok, and ends the test if the answer is a replay.
func (a answer) okFirst(status int) answer {
	a.t.Helper()
	if a.ok(status).header.Get(front.IdempotencyReplayed) != "" {
		a.t.Fatalf("%s: the answer is a replay", a.route)
	}
	return a
}

// onBothRaw is onBoth on servers with a master key, with the test's own connection to the
// database.
func onBothRaw(t *testing.T, test func(*testing.T, *server, *sql.DB)) {
	t.Parallel()
	for driver, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "pgx": dbtest.Postgres} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			source := dsn(t)
			d := start(t, doorwardtest.Database(source), masterKey(t))
			if file, isSQLite := strings.CutPrefix(source, "sqlite:"); isSQLite {
				source = "file:" + file + "?_pragma=busy_timeout(10000)"
			}
			db, err := sql.Open(driver, source)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			test(t, d, db)
		})
	}
}

// creation is a request that makes something.
type creation struct {
	route string // with ids
	body  any    // nil if there is none
	other string // another body; empty if the endpoint takes none
	who   opt
}

// creations has a request for each route that takes an Idempotency-Key, by pattern.
func (s *server) creations(t *testing.T, acme *doorwardtest.Tenant) map[string]creation {
	t.Helper()
	owner := as(acme.Owner.Token())
	pending := s.sendInvitation(t, acme.Owner, "again@x.example", "USER", 3).text("id")
	keyPath := "POST /api/v2/api-keys"
	apiKey := m{"name": "shop", "permissions": []string{"message.send"}}
	rotated := s.send(t, keyPath, apiKey, owner).ok(http.StatusCreated).text("apiKey.id")
	hookPath, hook := "POST /api/v2/webhooks", m{"url": "http://localhost:1/", "events": []string{"webhook.test"}}
	hooked := s.send(t, hookPath, hook, owner).ok(http.StatusCreated).text("webhook.id")
	connectionPath, connection := "POST "+connectionsPath, m{"type": "oidc", "name": "Okta"}
	connected := s.send(t, connectionPath, connection, owner).ok(http.StatusCreated).text("id")
	s.Advance(2 * time.Minute)
	return map[string]creation{
		hookPath: {hookPath, hook, `{"url":"http://localhost:1/other"}`, owner},
		"POST /api/v2/webhooks/{id}/rotate-secret": {hookPath + "/" + hooked + "/rotate-secret", m{"graceHours": 0}, `{"graceHours":1}`, owner},
		connectionPath: {connectionPath, connection, `{"type":"oidc","name":"Other"}`, owner},
		"POST " + connectionsPath + "/{id}/secrets":      {connectionPath + "/" + connected + "/secrets", m{"clientSecret": "the client's own secret"}, `{"clientSecret":"another one"}`, owner},
		"POST " + connectionsPath + "/{id}/scim-secrets": {connectionPath + "/" + connected + "/scim-secrets", m{"expiresInDays": 1}, `{"expiresInDays":2}`, owner},
		"POST " + connectionsPath + "/{id}/setup-link":   {connectionPath + "/" + connected + "/setup-link", m{"days": 1}, `{"days":2}`, owner},
		invitePath:                             {invitePath, m{"email": "one@x.example", "role": "USER"}, `{"email":"one@x.example","role":"ADMIN"}`, owner},
		bulkPath:                               {bulkPath, m{"invitations": []m{{"email": "two@x.example", "role": "USER"}, {"email": "x", "role": "USER"}}}, `{"invitations":[]}`, owner},
		tenantsPath:                            {tenantsPath, m{"name": "Globex", "ownerEmail": "owner@globex.example"}, `{"name":"Globex"}`, bearer(s.operatorKey(t))},
		"POST /api/v2/invitations/{id}/resend": {"POST /api/v2/invitations/" + pending + "/resend", nil, "", owner},
		keyPath:                                {keyPath, apiKey, `{"name":"shop","permissions":["message.read"]}`, owner},
		"POST /api/v2/domains":                 {"POST /api/v2/domains", m{"domain": "acme.example"}, `{"domain":"other.example"}`, owner},
		"POST /api/v2/roles":                   {"POST /api/v2/roles", m{"name": "DESK", "permissions": []string{"user.read"}}, `{"name":"DESK","permissions":["tenant.read"]}`, owner},
		"POST /api/v2/api-keys/{id}/rotate":    {keyPath + "/" + rotated + "/rotate", m{"graceHours": 0}, `{"graceHours":1}`, owner},
	}
}

// Each route that makes something answers a repetition with the first answer.
func TestCreationsAreRepeatable(t *testing.T) {
	onBothRaw(t, func(t *testing.T, d *server, db *sql.DB) {
		all := d.creations(t, d.Tenant("Acme"))
		for _, r := range api.Routes(nil) {
			pattern := r.Method + " " + r.Path
			c, has := all[pattern]
			if has != r.Endpoint.Creates {
				t.Errorf("%s takes an Idempotency-Key: %v, and is tried: %v", pattern, r.Endpoint.Creates, has)
			}
			if has {
				d.checkRepetition(t, db, c)
			}
		}
	})
}

// checkRepetition requires that a repetition gets the first answer, one with another body a
// refusal, and one during the first request a 409.
func (s *server) checkRepetition(t *testing.T, db *sql.DB, c creation) {
	t.Helper()
	for _, bad := range []string{"", "two words", "tab\tbed", "ümlaut", strings.Repeat("k", front.MaxIdempotencyKey+1)} {
		s.send(t, c.route, c.body, c.who, idempotencyKey(bad)).fails(http.StatusBadRequest, "invalid_idempotency_key")
	}
	s.send(t, c.route, c.body, c.who, idempotencyKey("a"), idempotencyKey("a")).fails(http.StatusBadRequest, "invalid_idempotency_key")
	longest := idempotencyKey(strings.Repeat("~", front.MaxIdempotencyKey))
	first := s.send(t, c.route, c.body, c.who, longest).okFirst(successOf(c.route))
	for range 2 {
		s.send(t, c.route, c.body, c.who, longest).replays(first)
	}
	if c.other != "" {
		s.send(t, c.route, c.other, c.who, longest).fails(http.StatusUnprocessableEntity, "idempotency_key_reused")
		s.send(t, c.route, c.body, c.who, longest).replays(first)
	}

	// As if another node were still processing the request.
	if _, err := db.ExecContext(t.Context(), `UPDATE idempotency SET answer = NULL`); err != nil {
		t.Fatal(err)
	}
	a := s.send(t, c.route, c.body, c.who, longest).fails(http.StatusConflict, "idempotency_in_progress")
	if got := a.header.Get("Retry-After"); got != "1" {
		t.Errorf("%s: Retry-After is %q", c.route, got)
	}
}

func successOf(route string) int {
	if route == bulkPath || strings.HasSuffix(route, "/resend") {
		return http.StatusOK
	}
	return http.StatusCreated
}

// A key belongs to one credential, tenant and path: if one of them differs, or the header is
// absent, nothing is replayed.
func TestIdempotencyKeyBelongsToItsCaller(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		bob := m{"email": "bob@x.example", "role": "USER"}
		key := idempotencyKey("one-for-all")
		first := d.send(t, invitePath, bob, as(acme.Owner.Token()), key).okFirst(http.StatusCreated)
		d.send(t, invitePath, bob, bearer(acme.Owner.Token()), key).replays(first) // the same session
		d.send(t, invitePath, bob, as(acme.Owner.Token())).fails(http.StatusConflict, "invitation_pending")
		d.send(t, invitePath, bob, as(d.token(t, acme.Owner.Email)), key).fails(http.StatusConflict, "invitation_pending")
		d.send(t, invitePath, bob, as(acme.Owner.Token()), idempotencyKey("another")).fails(http.StatusConflict, "invitation_pending")
		d.send(t, invitePath, bob, as(globex.Owner.Token()), key).okFirst(http.StatusCreated)
		d.send(t, bulkPath, m{"invitations": []m{bob}}, as(acme.Owner.Token()), key).okFirst(http.StatusOK)
		// Other endpoints ignore the header.
		for range 2 {
			d.send(t, loginPath, m{"email": acme.Owner.Email, "password": password}, key).okFirst(http.StatusOK)
		}
		d.send(t, "GET /api/v2/users", nil, as(acme.Owner.Token()), idempotencyKey("not a key")).ok(http.StatusOK)
	})
}

// A replay is authorized like any request: by the credential and the role as they are now.
func TestReplayIsAuthorized(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, key := acme.Join("ann@acme.example", "ADMIN"), idempotencyKey("authorized")
		bob := m{"email": "bob@x.example", "role": "USER"}
		first := d.send(t, invitePath, bob, as(ann.Token()), key).okFirst(http.StatusCreated)
		d.patchUser(t, acme.Owner, ann.ID, m{"role": "USER"}).ok(http.StatusOK)
		d.send(t, invitePath, bob, as(ann.Token()), key).fails(http.StatusForbidden, "forbidden")
		d.send(t, invitePath, bob, as(ann.Token()), key, with("Origin", "https://evil.example")).fails(http.StatusForbidden, "cross_origin")
		d.patchUser(t, acme.Owner, ann.ID, m{"role": "ADMIN"}).ok(http.StatusOK)
		d.send(t, invitePath, bob, as(ann.Token()), key).replays(first)
		d.send(t, invitePath, "{", as(ann.Token()), key).fails(http.StatusBadRequest, "invalid_body")
		d.send(t, "POST /api/v2/auth/logout", nil, as(ann.Token())).ok(http.StatusNoContent)
		d.send(t, invitePath, bob, as(ann.Token()), key).fails(http.StatusUnauthorized, "unauthenticated")
	})
}

// A replay of what needed a recent proof of identity needs one, too: the answer may have a secret. So does
// a replay of what needed it by its effect.
func TestReplayNeedsTheProof(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		key := m{"name": "billing", "permissions": []string{"message.send"}}
		again := idempotencyKey("proof")
		first := d.send(t, "POST /api/v2/api-keys", key, as(owner.Token()), again).okFirst(http.StatusCreated)
		invited := d.send(t, invitePath, m{"email": "bob@x.example", "role": "USER"}, as(owner.Token()), again).okFirst(http.StatusCreated)
		d.send(t, "POST /api/v2/api-keys", key, as(owner.Token()), again).replays(first)
		d.send(t, "PATCH /api/v2/tenant", m{"settings": m{"mfa": "required", "mfaGraceDays": 30}}, as(owner.Token()), with("If-Match", "*")).ok(http.StatusOK)
		raising := m{"email": "carl@x.example", "role": "ADMIN"}
		several := m{"invitations": []m{{"email": "dora@x.example", "role": "ADMIN"}}}
		byEffect := idempotencyKey("by-effect")
		d.send(t, invitePath, raising, as(owner.Token()), byEffect).okFirst(http.StatusCreated)
		d.send(t, invitePath+"/bulk", several, as(owner.Token()), byEffect).okFirst(http.StatusOK)
		d.Advance(11 * time.Minute)
		d.send(t, "POST /api/v2/api-keys", key, as(owner.Token()), again).fails(http.StatusForbidden, "step_up_required")
		d.send(t, invitePath, raising, as(owner.Token()), byEffect).fails(http.StatusForbidden, "step_up_required")
		d.send(t, invitePath+"/bulk", several, as(owner.Token()), byEffect).fails(http.StatusForbidden, "step_up_required")
		d.send(t, invitePath, m{"email": "bob@x.example", "role": "USER"}, as(owner.Token()), again).replays(invited)
	})
}

// An answer other than a success isn't stored: the next request with the key is
// processed as the first one, whatever its body.
func TestOnlySuccessesAreStored(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, key := d.Tenant("Acme"), idempotencyKey("only-successes")
		who := as(acme.Owner.Token())
		d.send(t, invitePath, m{"email": "x", "role": "USER"}, who, key).invalid("/email", "invalid")
		d.send(t, invitePath, m{"email": acme.Owner.Email, "role": "USER"}, who, key).fails(http.StatusConflict, "already_member")
		first := d.send(t, invitePath, m{"email": "bob@x.example", "role": "USER"}, who, key).okFirst(http.StatusCreated)
		d.send(t, "DELETE /api/v2/invitations/"+first.text("id"), nil, who).ok(http.StatusNoContent)
		d.send(t, invitePath, m{"email": "bob@x.example", "role": "USER"}, who, key).replays(first)
	})
}

// Rows of a bulk request that fail are part of its answer, also when nothing was
// written.
func TestBulkAnswersAreReplayed(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		for name, rows := range map[string][]m{
			"refused": {{"email": "a@x.example", "role": "OWNER"}, {"email": "b@x.example", "role": "OWNER"}},
			"wrong":   {{"email": "x", "role": "USER"}},
			"mixed":   {{"email": "a@x.example", "role": "OWNER"}, {"email": "c@x.example", "role": "USER"}, {"email": "c@x.example", "role": "USER"}},
		} {
			first := d.send(t, bulkPath, m{"invitations": rows}, as(ann.Token()), idempotencyKey(name)).okFirst(http.StatusOK)
			d.send(t, bulkPath, m{"invitations": rows}, as(ann.Token()), idempotencyKey(name)).replays(first)
		}
	})
}

// An answer is stored for 24 hours, and the mark of an attempt in progress for 4 seconds.
func TestAnswersExpire(t *testing.T) {
	onBothRaw(t, func(t *testing.T, d *server, db *sql.DB) {
		createGlobex := func(key string) answer {
			t.Helper()
			return d.send(t, tenantsPath, m{"name": "Globex", "ownerEmail": "owner@globex.example"}, bearer(key), idempotencyKey("a-day"))
		}
		rowsAfterSweep := func() (n int) {
			t.Helper()
			if err := d.Node.App.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM idempotency`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		key := d.operatorKey(t)
		first := createGlobex(key).okFirst(http.StatusCreated)
		d.Advance(24*time.Hour - time.Minute)
		if createGlobex(key).replays(first); rowsAfterSweep() != 1 {
			t.Error("the sweep has deleted an answer too early")
		}
		d.Advance(time.Minute)
		if second := createGlobex(key).okFirst(http.StatusCreated); second.text("tenant.id") == first.text("tenant.id") {
			t.Error("after a day the same tenant was answered")
		}
		d.Advance(24 * time.Hour)
		if n := rowsAfterSweep(); n != 0 {
			t.Errorf("the sweep has left %d rows", n)
		}

		createGlobex(key).okFirst(http.StatusCreated)
		// As of an attempt in progress: without an answer, for 4 s instead of 24 h (in µs).
		if _, err := db.ExecContext(t.Context(), `UPDATE idempotency SET answer = NULL, expires_at = expires_at - 86400000000 + 4000000`); err != nil {
			t.Fatal(err)
		}
		d.clock.advance(3500 * time.Millisecond)
		createGlobex(key).fails(http.StatusConflict, "idempotency_in_progress")
		d.clock.advance(1500 * time.Millisecond)
		createGlobex(key).okFirst(http.StatusCreated)
	})
}

// Of 16 concurrent requests with one key, one creates the tenant. All get its answer in the end.
func TestRaceConcurrentRequestsWithOneKey(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		key := bearer(d.operatorKey(t))
		var all sync.WaitGroup
		answers := make([]answer, 16)
		for i := range answers {
			all.Go(func() {
				waittest.Until(t, "an answer to all", func() bool {
					answers[i] = d.send(t, tenantsPath, m{"name": "Globex", "ownerEmail": "owner@globex.example"}, key, idempotencyKey("many"))
					return answers[i].status != http.StatusConflict && answers[i].status != http.StatusServiceUnavailable
				})
			})
		}
		all.Wait()
		firsts := 0
		for _, a := range answers {
			if a.status != http.StatusCreated || !bytes.Equal(a.body, answers[0].body) {
				t.Errorf("answered %d %s, and elsewhere %s", a.status, a.body, answers[0].body)
			}
			if a.header.Get(front.IdempotencyReplayed) == "" {
				firsts++
			}
		}
		made := d.send(t, "GET /api/v2/tenants", nil, key).ok(http.StatusOK).at("items").([]any)
		d.deliver(t)
		// The first answer may be lost behind a 503.
		if mails := d.Mails("owner@globex.example"); firsts > 1 || len(made) != 1 || len(mails) != 1 {
			t.Errorf("%d first answers, %d tenants and %d mails, want one", firsts, len(made), len(mails))
		}
	})
}

// Neither the credential, nor the key, nor the answer can be read in the database.
func TestStoredAnswersAreSealed(t *testing.T) {
	onBothRaw(t, func(t *testing.T, d *server, db *sql.DB) {
		acme := d.Tenant("Acme")
		key := canary("idempotency")
		body := m{"email": "bob@x.example", "role": "USER", "name": "Bob"}
		first := d.send(t, invitePath, body, as(acme.Owner.Token()), idempotencyKey(key)).okFirst(http.StatusCreated)
		var id, bodyHMAC, sealed []byte
		var tenant, attempt string
		row := db.QueryRowContext(t.Context(), `SELECT id, tenant_id, body, attempt, answer FROM idempotency`)
		if err := row.Scan(&id, &tenant, &bodyHMAC, &attempt, &sealed); err != nil {
			t.Fatal(err)
		}
		if len(sealed) < len(first.body) || tenant != acme.ID {
			t.Fatalf("the row holds %d bytes of tenant %q, want %d or more: this test proves nothing", len(sealed), tenant, len(first.body))
		}
		all := fmt.Sprintf("%s %s %s %s", id, bodyHMAC, attempt, sealed)
		for _, secret := range []string{key, acme.Owner.Token(), first.text("id"), "bob@x.example", "Bob", "delivery"} {
			if strings.Contains(all, secret) {
				t.Errorf("the row has %q", secret)
			}
		}
		// An answer that was changed can't be opened, and the request isn't processed again.
		if _, err := db.ExecContext(t.Context(), `UPDATE idempotency SET answer = $1`, append(sealed[:len(sealed)-1], sealed[len(sealed)-1]^1)); err != nil {
			t.Fatal(err)
		}
		d.send(t, invitePath, body, as(acme.Owner.Token()), idempotencyKey(key)).fails(http.StatusServiceUnavailable, "unavailable")
	})
}

// Without the database a request with a key gets 503, whether or not its answer is stored.
func TestIdempotencyWithoutDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		who, bob := as(acme.Owner.Token()), m{"email": "bob@x.example", "role": "USER"}
		d.send(t, invitePath, bob, who, idempotencyKey("stored")).okFirst(http.StatusCreated)
		if err := d.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"stored", "new"} {
			d.send(t, invitePath, bob, who, idempotencyKey(key)).fails(http.StatusServiceUnavailable, "unavailable")
		}
	})
}
