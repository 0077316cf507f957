package web_test

import (
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/internal/trace/tracetest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/routetest"
)

// canary returns a text that occurs nowhere else, for a test to search for.
func canary(name string) string { return "canary-" + name + "-0Jx7QmW2vK5t" }

// No secret appears in the log, at any level, in a trace or as plain text in the database,
// whether requests succeed, have malformed bodies or find no database. (Every test of this
// package checks the answers.)
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	log := &logtest.Journal{}
	path := filepath.Join(t.TempDir(), "doorward.db")
	collector := tracetest.Start(t)
	d := start(t, doorwardtest.Database("sqlite:"+path), withPasskeys(), func(c *node.Config) {
		c.Trace = trace.Options{Collector: collector.URL, Sample: 1}
		c.Audiences = []string{"https://messages.example"}
		c.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	acme := d.Tenant("Acme")
	secrets := append(d.callOperationsWithSecrets(t, acme), masterKeyOf(t, path))
	secrets = append(secrets, d.signingKeys(t)...)
	secrets = append(secrets, d.misplaceSecrets(t, acme.Owner)...)
	database, callers := databaseContent(t, path), d.callers(t, acme.Owner)
	if err := d.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	d.requireUnavailable(t, "database closed", d.operations(t, needsNoDatabase...), callers)
	secrets = append(secrets, d.misplaceSecrets(t, acme.Owner)...)
	d.Stop() // flushes the last spans
	traces := collector.Raw()
	for _, secret := range append(secrets, acme.Owner.Token(), password, routetest.Password) {
		if at := strings.Index(log.String(), secret); at >= 0 {
			t.Errorf("the log has %q in %q", secret, log.String()[max(0, at-300):at+len(secret)])
		}
		if strings.Contains(database, secret) {
			t.Errorf("the database has %q", secret)
		}
		if strings.Contains(traces, secret) {
			t.Errorf("the traces have %q", secret)
		}
	}
	for _, personal := range []string{acme.Owner.Email, acme.Owner.ID, acme.ID, "ann@lakeside.example", "127.0.0.1"} {
		if strings.Contains(traces, personal) {
			t.Errorf("the traces have %q, which is personal data", personal)
		}
	}
	if !strings.Contains(traces, "/api/v2/auth/login") {
		t.Error("the traces have no login: they are not those of this test")
	}
	if !strings.Contains(log.String(), `"/api/v2/auth/login"`) || !strings.Contains(database, acme.Owner.Email) {
		t.Error("the log has no login, or the database no OWNER: they are not those of this test")
	}
}

// signingKeys returns the private keys that are stored sealed, in each form that might leak.
func (s *server) signingKeys(t *testing.T) (all []string) {
	t.Helper()
	rows, err := s.Node.DB.Read().SigningKeys(t.Context())
	if err != nil || len(rows) == 0 {
		t.Fatalf("there is no signing key: %v", err)
	}
	for _, row := range rows {
		plain, err := s.Node.App.MasterKey.Open(t.Context(), seal.Place{Table: "signing_keys", ID: row.ID, Column: "private_sealed"}, row.Sealed)
		if err != nil {
			t.Fatal(err)
		}
		private := plain[36:68] // the private number in the PKCS #8 form
		all = append(all, string(plain), string(private), base64.RawURLEncoding.EncodeToString(private))
	}
	return all
}

// masterKeyOf returns the master key of the database, as its file has it.
func masterKeyOf(t *testing.T, path string) string {
	t.Helper()
	key, err := masterkey.File{Path: path + ".key"}.Read()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(key.Reveal())
}

// databaseContent returns the content of the database's files.
func databaseContent(t *testing.T, path string) (all string) {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".key") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// callOperationsWithSecrets calls every operation that takes secrets, and returns them.
func (s *server) callOperationsWithSecrets(t *testing.T, acme *doorwardtest.Tenant) (secrets []string) {
	t.Helper()
	first, second, third := canary("first"), canary("second"), canary("third")
	invitation := s.invite(t, acme.Owner, "ann@lakeside.example", "USER")
	s.complete(t, invitation, first).ok(http.StatusOK)
	login := s.login(t, "ann@lakeside.example", first).ok(http.StatusOK)
	token := login.text("token")
	device, _, _ := strings.Cut(strings.TrimPrefix(cookieNamed(login, "doorward_device"), "doorward_device="), ";")
	s.login(t, "ann@lakeside.example", first, cookie("doorward_device="+device), as(token)).ok(http.StatusOK)
	s.login(t, "ann@lakeside.example", canary("wrong"))
	s.login(t, canary("address"), canary("no-address"))
	s.send(t, changePath, m{"currentPassword": first, "password": second, "confirmPassword": second}, as(token)).ok(http.StatusNoContent)
	s.send(t, changePath, m{"currentPassword": canary("wrong"), "password": second, "confirmPassword": canary("mismatch")}, as(token))
	switched := s.send(t, switchPath, m{"tenantId": acme.ID}, as(token)).ok(http.StatusOK).text("token")
	s.Advance(time.Minute)
	reset := s.forgot(t, "ann@lakeside.example")
	s.reset(t, reset, third).ok(http.StatusNoContent)
	s.reset(t, reset, canary("late")).fails(http.StatusGone, "reset_used")
	s.send(t, "POST /api/v2/auth/logout", nil, as(switched), as(token)).ok(http.StatusNoContent)
	factor := s.useFactors(t, acme)
	key := s.operatorKey(t)
	s.send(t, "GET /api/v2/auth/session", nil, bearer(key)).fails(http.StatusForbidden, "forbidden")
	return append(factor, []string{
		first, second, third, invitation, token, device, switched, reset, key, strings.TrimPrefix(key, "dwo_"),
		canary("wrong"), canary("no-address"), canary("mismatch"), canary("late"),
	}...)
}

// useFactors uses second factors, and returns their seeds, codes, challenges and tokens.
func (s *server) useFactors(t *testing.T, acme *doorwardtest.Tenant) []string {
	t.Helper()
	eve := acme.Join("eve@lakeside.example", "VIEWER")
	unconfirmed := s.send(t, totpPath, m{}, as(eve.Token())).ok(http.StatusCreated).text("secret")
	a := s.enrolTOTP(t, eve.Token())
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(a.secret)
	if err != nil {
		t.Fatal(err)
	}
	challenge := s.login(t, eve.Email, password).fails(http.StatusForbidden, "mfa_required").text("challenge")
	wrong := "WRNG-" + a.recovery[0][5:]
	s.send(t, secondPath, m{"challenge": challenge, "recoveryCode": wrong}).fails(http.StatusUnauthorized, "invalid_code")
	token := s.send(t, secondPath, m{"challenge": challenge, "recoveryCode": a.recovery[0]}).ok(http.StatusOK).text("token")
	stepUp := s.send(t, beginStepUpPath, nil, as(token)).ok(http.StatusOK).text("challenge")
	s.send(t, finishStepUpPath, m{"challenge": stepUp, "code": "000000"}, as(token)).invalid("/code", "wrong")
	renewed := s.send(t, finishStepUpPath, m{"challenge": stepUp, "code": a.code(t)}, as(token)).ok(http.StatusOK).text("token")
	passkeyLogin := s.send(t, beginPasskeyLoginPath, nil).ok(http.StatusOK)
	pending := s.login(t, eve.Email, password).text("challenge")
	s.send(t, "POST /api/v2/users/"+eve.ID+"/mfa/reset", nil, as(acme.Owner.Token())).ok(http.StatusAccepted)
	reset := s.code(t, eve.Email)
	secrets := []string{unconfirmed, a.secret, string(seed), challenge, pending, token, wrong, reset, stepUp, renewed, passkeyLogin.text("challenge"), passkeyLogin.text("publicKey.challenge")}
	secrets = append(secrets, s.beginFirstFactor(t, acme)...)
	for _, code := range a.recovery {
		secrets = append(secrets, code, strings.ReplaceAll(code, "-", ""))
	}
	return secrets
}

// beginFirstFactor begins a first factor at a login, and returns the challenge and the seed.
func (s *server) beginFirstFactor(t *testing.T, acme *doorwardtest.Tenant) []string {
	t.Helper()
	fay := acme.Join("fay@lakeside.example", "USER")
	s.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"USER"}}}).ok(http.StatusOK)
	challenge := s.login(t, fay.Email, password).fails(http.StatusForbidden, "mfa_enrolment_required").text("challenge")
	e := s.send(t, totpPath, m{"challenge": challenge}).ok(http.StatusCreated)
	s.send(t, confirmPath, m{"challenge": challenge, "id": e.text("id"), "code": "000000"}).fails(http.StatusUnauthorized, "invalid_code")
	return []string{challenge, e.text("secret")}
}

// misplaceSecrets sends secrets where they don't belong, and returns them.
func (s *server) misplaceSecrets(t *testing.T, owner *doorwardtest.Person) (secrets []string) {
	t.Helper()
	for n, form := range []string{
		`{"email":"x@acme.example","password":%q`, `{"email":%q}x`, `{%q:1}`, `{"email":[%q]}`, `[%q]`, `%q`, `{"email":{%q:{"a":null}}}`,
		`{"email":"a","email":%q}`, `{"expiresInDays":%q}`, `{"password":"%s` + "\xff" + `"}`, `{"tenantId":%q,"tenantId":1}`, `{"role":%q,"a":1}`,
	} {
		secret := canary(fmt.Sprint("misplaced", n))
		secrets = append(secrets, secret)
		for _, e := range s.operations(t) {
			if !e.takesJSON() {
				continue
			}
			a := s.try(t, e, fmt.Sprintf(form, secret), as(owner.Token()))
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s repeats what it was sent: %s", a.route, a.body)
			}
		}
	}
	for _, more := range []opt{
		bearer(canary("bearer")), with("Authorization", "Basic "+canary("bearer")), cookie("JSESSIONID=" + canary("cookie")), cookie("doorward_device=" + canary("cookie")),
		typed(canary("type")), with("Origin", "https://"+canary("origin")),
	} {
		s.send(t, "POST /api/v2/auth/login?password="+canary("query")+"&token="+canary("query"), m{"email": owner.Email, "password": canary("wrong")}, more)
	}
	// A link edited by hand, with an escaped character in its token.
	left, right := "0neHalf0fTheT0ken0fALink", "An0therHalf0fTheT0ken"
	s.send(t, "GET /accept/"+left+"%2D"+right, nil)
	return append(secrets, canary("bearer"), canary("cookie"), canary("query"), left, right)
}
