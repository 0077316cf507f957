package oidcrp_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// claim returns lies about one claim; nil as the value takes it away.
func claim(name string, value any) func(*site) oidctest.Lies {
	return func(*site) oidctest.Lies {
		return oidctest.Lies{Claims: func(c map[string]any) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}}
	}
}

// at returns lies about a time, from now.
func at(name string, from time.Duration) func(*site) oidctest.Lies {
	return func(s *site) oidctest.Lies { return claim(name, s.now().Add(from).Unix())(s) }
}

// header returns lies about the header of the ID token.
func header(name string, value any) func(*site) oidctest.Lies {
	return func(*site) oidctest.Lies {
		return oidctest.Lies{Header: func(h map[string]any) {
			if h[name] = value; value == nil {
				delete(h, name)
			}
		}}
	}
}

// callback returns lies about a parameter of the callback; without values it is taken away.
func callback(name string, values ...string) func(*site) oidctest.Lies {
	return func(*site) oidctest.Lies {
		return oidctest.Lies{Callback: func(q url.Values) {
			if q[name] = values; values == nil {
				q.Del(name)
			}
		}}
	}
}

// twice repeats a parameter of the callback.
func twice(name string) func(*site) oidctest.Lies {
	return func(*site) oidctest.Lies {
		return oidctest.Lies{Callback: func(q url.Values) { q.Add(name, q.Get(name)) }}
	}
}

// payload returns lies about the text of the claims.
func payload(change func(string) string) func(*site) oidctest.Lies {
	return func(*site) oidctest.Lies {
		return oidctest.Lies{Payload: func(text []byte) []byte { return []byte(change(string(text))) }}
	}
}

// token returns lies about a member of the token endpoint's answer.
func token(name string, value any) func(*site) oidctest.Lies {
	return func(*site) oidctest.Lies {
		return oidctest.Lies{Token: func(body map[string]any) { body[name] = value }}
	}
}

// lies has one lie in each row, and the check that finds it.
var lies = []struct {
	name  string
	lies  func(*site) oidctest.Lies
	check string
}{
	{"state of another browser", callback("state", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "state"},
	{"no state", callback("state"), "state"},
	{"empty state", callback("state", ""), "state"},
	{"state twice", twice("state"), "state"},
	{"iss of another provider", callback("iss", "https://other.example.com"), "iss_parameter"},
	{"iss with a slash", func(s *site) oidctest.Lies { return callback("iss", s.config.Issuer+"/")(s) }, "iss_parameter"},
	{"no iss, though promised", callback("iss"), "iss_parameter"},
	{"empty iss", callback("iss", ""), "iss_parameter"},
	{"iss twice", twice("iss"), "iss_parameter"},
	{"access denied", callback("error", "access_denied"), "provider_error"},
	{"no code", callback("code"), "provider_error"},
	{"empty code", callback("code", ""), "provider_error"},
	{"two codes", twice("code"), "provider_error"},
	{"a code that isn't one", callback("code", "one"), "provider_error"},

	{"no ID token", token("id_token", nil), "provider_error"},
	{"an ID token that is a number", token("id_token", 7), "provider_error"},
	{"an empty ID token", token("id_token", ""), "provider_error"},
	{"an error with status 200", token("error", "invalid_grant"), "provider_error"},
	{"an ID token that isn't one", token("id_token", "abc"), "signature"},
	{"an ID token of dots", token("id_token", ".."), "signature"},
	{"an ID token as JSON", token("id_token", `{"payload":"e30","protected":"e30","signature":"e30"}`), "signature"},
	{"an encrypted ID token", token("id_token", "a.b.c.d.e"), "alg"},
	{"an ID token of great length", token("id_token", strings.Repeat("a", 100_000)), "signature"},

	{"alg none", header("alg", "none"), "alg"},
	{"alg None", header("alg", "None"), "alg"},
	{"HS256 by the public key", header("alg", "HS256"), "alg"},
	{"an algorithm that isn't announced", header("alg", "ES384"), "alg"},
	{"another algorithm than the key's", header("alg", "RS256"), "signature"},
	{"no alg", header("alg", nil), "alg"},
	{"an alg that is a list", header("alg", []string{"ES256"}), "signature"},
	{"a critical header", header("crit", []string{"b64"}), "signature"},
	{"an unknown kid", header("kid", "other"), "kid"},
	{"a kid that is a number", header("kid", 7), "signature"},
	{"a signature with a bit changed", func(*site) oidctest.Lies {
		return oidctest.Lies{Signature: func(s []byte) []byte { s[5] ^= 1; return s }}
	}, "signature"},
	{"no signature", func(*site) oidctest.Lies {
		return oidctest.Lies{Signature: func([]byte) []byte { return nil }}
	}, "signature"},
	{"claims that aren't JSON", payload(func(string) string { return "claims" }), "provider_error"},
	{"claims that are null", payload(func(string) string { return "null" }), "provider_error"},
	{"claims that are a list", payload(func(string) string { return "[]" }), "provider_error"},
	{"nothing", payload(func(string) string { return "" }), "provider_error"},
	{"a claim twice", payload(func(t string) string { return `{"sub":"admin",` + t[1:] }), "provider_error"},
	{"a claim twice, escaped", payload(func(t string) string { return `{"s\u0075b":"admin",` + t[1:] }), "provider_error"},
	{"a claim twice, deep inside", payload(func(t string) string { return `{"x":{"a":1,"a":2},` + t[1:] }), "provider_error"},
	{"no UTF-8", payload(func(t string) string { return "{\"x\":\"\xff\"," + t[1:] }), "provider_error"},
	{"something behind the claims", payload(func(t string) string { return t + "{}" }), "provider_error"},
	{"deep nesting", payload(func(t string) string {
		return `{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "," + t[1:]
	}), "provider_error"},

	{"iss of another provider in the token", claim("iss", "https://other.example.com"), "iss"},
	{"iss with a slash in the token", func(s *site) oidctest.Lies { return claim("iss", s.config.Issuer+"/")(s) }, "iss"},
	{"iss in other letters", func(s *site) oidctest.Lies { return claim("iss", strings.ToUpper(s.config.Issuer))(s) }, "iss"},
	{"no iss in the token", claim("iss", nil), "iss"},
	{"a list as iss", func(s *site) oidctest.Lies { return claim("iss", []string{s.config.Issuer})(s) }, "iss"},
	{"ISS", payload(func(t string) string { return strings.Replace(t, `"iss"`, `"ISS"`, 1) }), "iss"},
	{"another audience", claim("aud", "other"), "aud"},
	{"the audience in other letters", claim("aud", "Doorward"), "aud"},
	{"no audience", claim("aud", nil), "aud"},
	{"an empty list of audiences", claim("aud", []string{}), "aud"},
	{"null among the audiences", claim("aud", []any{clientID, nil}), "aud"},
	{"a number among the audiences", claim("aud", []any{clientID, 1}), "aud"},
	{"an object as the audience", claim("aud", map[string]any{clientID: true}), "aud"},
	{"several audiences without azp", claim("aud", []string{clientID, "other"}), "azp"},
	{"another azp", claim("azp", "other"), "azp"},
	{"an empty azp", claim("azp", ""), "azp"},
	{"a list as azp", claim("azp", []string{clientID}), "azp"},
	{"another nonce", claim("nonce", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "nonce"},
	{"no nonce", claim("nonce", nil), "nonce"},
	{"an empty nonce", claim("nonce", ""), "nonce"},
	{"a number as the nonce", claim("nonce", 0), "nonce"},
	{"an end a minute ago", at("exp", -time.Minute), "exp"},
	{"no end", claim("exp", nil), "exp"},
	{"an end as a text", claim("exp", "4102444800"), "exp"},
	{"an end in milliseconds", claim("exp", time.Now().UnixMilli()), "exp"},
	{"an end beyond all numbers", payload(func(t string) string { return strings.Replace(t, `"exp":`, `"exp":1e400,"x":`, 1) }), "exp"},
	{"a negative end", claim("exp", -1), "exp"},
	{"issued more than a minute ahead", at("iat", 61*time.Second), "iat"},
	{"no time of issue", claim("iat", nil), "iat"},
	{"a time of issue that is true", claim("iat", true), "iat"},
	{"not good before two minutes are over", at("nbf", 2*time.Minute), "iat"},
	{"nbf as a text", claim("nbf", "0"), "iat"},
	{"good for more than a day", at("exp", 24*time.Hour+time.Second), "lifetime"},
	{"issued more than a day ago", at("iat", -25*time.Hour), "lifetime"},
	{"ended before it was issued", func(s *site) oidctest.Lies {
		return oidctest.Lies{Claims: func(c map[string]any) {
			c["exp"], c["iat"] = s.now().Add(-time.Second).Unix(), s.now().Unix()
		}}
	}, "lifetime"},
	{"no subject", claim("sub", nil), "sub"},
	{"an empty subject", claim("sub", ""), "sub"},
	{"a number as the subject", claim("sub", 7), "sub"},
	{"null as the subject", payload(func(t string) string { return strings.Replace(t, `"sub":`, `"sub":null,"x":`, 1) }), "sub"},
	{"a subject of 256 bytes", claim("sub", strings.Repeat("ü", 128)), "sub"},
	{"a subject with NUL", claim("sub", "1\x00"), "sub"},
	{"a subject with a line's end", claim("sub", "1\n"), "sub"},
	{"a subject with a control character of Unicode", claim("sub", "1\u0085"), "sub"},
}

// secretsOf are what no fault may hold.
func secretsOf(s *site, f oidcrp.Flow) []string {
	return []string{secret, url.QueryEscape(secret), f.State, f.Nonce, f.Verifier, "eyJ"}
}

func TestEachLieIsFound(t *testing.T) {
	s := newSite(t, "")
	for _, lie := range lies {
		t.Run(lie.name, func(t *testing.T) {
			s.lie(lie.lies(s))
			flow := oidcrp.Begin(s.now())
			got, err := s.finish(t.Context(), flow)
			checkText(t, wantFault(t, err, lie.check), secretsOf(s, flow))
			if got.Subject != "" || got.Address != "" || got.Groups.State != oidcrp.GroupsAbsent {
				t.Errorf("a refused sign-in asserts %+v", got)
			}
		})
	}
	s.lie(oidctest.Lies{})
	if _, err := s.signIn(t.Context()); err != nil {
		t.Errorf("without a lie: %v", err)
	}
}

// checkText checks that a fault can be shown.
func checkText(t *testing.T, f *oidcrp.Fault, secrets []string) {
	t.Helper()
	for _, text := range []string{f.Seen, f.Wanted} {
		if utf8.RuneCountInString(text) > 200 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%q can't be shown", text)
		}
	}
	for _, hidden := range secrets {
		if strings.Contains(f.Error(), hidden) {
			t.Errorf("%q has a secret", f.Error())
		}
	}
	if f.Seen == "" {
		t.Error("the fault doesn't say what was seen")
	}
}

// What only looks like a lie is taken.
func TestOddTruthsAreTaken(t *testing.T) {
	s := newSite(t, "")
	for name, lies := range map[string]func(*site) oidctest.Lies{
		"a list with the one audience":  claim("aud", []string{clientID}),
		"azp with the one audience":     claim("azp", clientID),
		"no kid":                        header("kid", nil),
		"a subject of 255 bytes":        claim("sub", strings.Repeat("s", 255)),
		"a subject of other letters":    claim("sub", "Ünïcödé 日本 \\ \" '"),
		"an end 59 s ago":               at("exp", -59*time.Second),
		"issued 60 s ahead":             at("iat", 60*time.Second),
		"good for a day":                at("exp", 24*time.Hour),
		"times with fractions":          payload(func(t string) string { return strings.Replace(t, `,"iat":`, `.5,"iat":`, 1) }),
		"nbf that has passed":           at("nbf", -time.Hour),
		"keys and addresses of a liar":  header("jku", "https://other.example.com/keys"),
		"a type of its own":             header("typ", "id+jwt"),
		"auth_time, though nobody asks": claim("auth_time", "yesterday"),
		"many audiences with azp": func(*site) oidctest.Lies {
			return oidctest.Lies{Claims: func(c map[string]any) { c["aud"], c["azp"] = []string{"other", clientID}, clientID }}
		},
	} {
		s.lie(lies(s))
		// An end before the time of issue would be a lie about the lifetime.
		if name == "an end 59 s ago" {
			exp := s.now().Add(-59 * time.Second).Unix()
			s.lie(oidctest.Lies{Claims: func(c map[string]any) { c["exp"], c["iat"] = exp, exp-300 }})
		}
		if _, err := s.signIn(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A provider that doesn't promise iss may leave it out, but not name another.
func TestIssWithoutPromise(t *testing.T) {
	s := newSite(t, "")
	s.discovery.PromisesIss = false
	s.lie(callback("iss")(s))
	if _, err := s.signIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.lie(callback("iss", "https://other.example.com")(s))
	_, err := s.signIn(t.Context())
	wantFault(t, err, oidcrp.CheckIssParameter)
}

// Nothing is sent before the callback is known to be the browser's own, and from the provider.
func TestNothingIsSentForAForeignCallback(t *testing.T) {
	s := newSite(t, "")
	for _, lie := range []func(*site) oidctest.Lies{callback("state", "x"), callback("iss", "x"), callback("error", "x"), callback("code")} {
		s.lie(lie(s))
		if _, err := s.signIn(t.Context()); err == nil {
			t.Error("it is taken")
		}
	}
	for _, query := range []url.Values{{"iss": {s.config.Issuer}, "state": {""}, "code": {"x"}}, {"iss": {s.config.Issuer}, "code": {"x"}}} {
		_, err := s.client.Finish(t.Context(), s.discovery, s.config, oidcrp.Flow{}, query)
		wantFault(t, err, oidcrp.CheckState)
	}
	if n := s.provider.Count(oidctest.TokenPath); n > 0 {
		t.Errorf("%d codes were sent", n)
	}
}

// A key in the header would let anybody sign.
func TestKeyInTheHeaderIsIgnored(t *testing.T) {
	s, liar := newSite(t, ""), oidctest.New("")
	t.Cleanup(liar.Close)
	var set struct{ Keys []map[string]any }
	answer, err := liar.Client().Get(liar.Issuer() + oidctest.KeysPath)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		t.Fatal(err)
	}
	liar.Change(func(o *oidctest.Settings) {
		o.Lies.Header = func(h map[string]any) { h["jwk"], h["jku"] = set.Keys[0], liar.Issuer()+oidctest.KeysPath }
	})
	for _, name := range []string{"with the kid", "without"} {
		var claims []byte
		s.lie(oidctest.Lies{
			Payload: func(text []byte) []byte { claims = text; return text },
			Token: func(body map[string]any) {
				body["id_token"] = liar.Sign("ES256", claims)
			},
		})
		if name == "without" {
			liar.Change(func(o *oidctest.Settings) {
				o.Lies.Header = func(h map[string]any) { h["jwk"] = set.Keys[0]; delete(h, "kid") }
			})
		}
		_, err := s.signIn(t.Context())
		wantFault(t, err, oidcrp.CheckSignature)
	}
	if n := liar.Count(oidctest.KeysPath); n != 1 {
		t.Errorf("the liar's keys were read %d times, by this test once", n)
	}
}

func TestEntra(t *testing.T) {
	const directory = "72f988bf-86f1-41af-91ab-2d7cd011db47"
	s := newSite(t, "/"+directory+"/v2.0")
	s.config.Entra = true
	for tid, isTaken := range map[string]bool{directory: true, strings.ToUpper(directory): true, "9188040d-6c67-4c5b-b112-36a304b66dad": false, "": false} {
		s.lie(claim("tid", tid)(s))
		if _, err := s.signIn(t.Context()); isTaken != (err == nil) {
			t.Errorf("tid %q: %v", tid, err)
		} else if !isTaken {
			wantFault(t, err, oidcrp.CheckTid)
		}
	}
	s.lie(claim("tid", nil)(s))
	_, err := s.signIn(t.Context())
	wantFault(t, err, oidcrp.CheckTid)
}

func TestGoogle(t *testing.T) {
	s := newSite(t, "")
	s.config.Google, s.config.HostedDomains = true, []string{"example.com", "xn--mller-kva.example"}
	for hd, isTaken := range map[string]bool{
		"example.com": true, "Example.COM": true, "müller.example": true, "other.example.com": false, "": false, "example.com.": false, "*": false,
	} {
		s.lie(claim("hd", hd)(s))
		if _, err := s.signIn(t.Context()); isTaken != (err == nil) {
			t.Errorf("hd %q: %v", hd, err)
		} else if !isTaken {
			wantFault(t, err, oidcrp.CheckHd)
		}
	}
	s.lie(claim("hd", nil)(s)) // a person's own account
	_, err := s.signIn(t.Context())
	wantFault(t, err, oidcrp.CheckHd)
	for _, one := range []struct {
		domains []string
		hd      string
	}{{nil, "example.com"}, {nil, ""}, {[]string{""}, ""}} {
		s.config.HostedDomains = one.domains
		s.lie(claim("hd", one.hd)(s))
		_, err = s.signIn(t.Context())
		wantFault(t, err, oidcrp.CheckHd)
	}
}

func TestAddress(t *testing.T) {
	s := newSite(t, "")
	for _, one := range []struct {
		claims     map[string]any
		from, want string
		isVerified bool
	}{
		{map[string]any{"email": "ann@example.com", "email_verified": true}, "", "ann@example.com", true},
		{map[string]any{"email": "ann@example.com", "email_verified": "true"}, "email", "ann@example.com", false},
		{map[string]any{"email": "ann@example.com", "email_verified": 1}, "email", "ann@example.com", false},
		{map[string]any{"email": "ann@example.com", "email_verified": []bool{true}}, "email", "ann@example.com", false},
		{map[string]any{"email": nil, "email_verified": true}, "email", "", false},
		{map[string]any{"email": []string{"ann@example.com"}, "email_verified": true}, "email", "", false},
		{map[string]any{"email": "ann@example.com\n", "email_verified": true}, "email", "", false},
		{map[string]any{"email": strings.Repeat("a", 255), "email_verified": true}, "email", "", false},
		// email_verified says nothing of another claim.
		{map[string]any{"upn": "ann@example.org", "email_verified": true}, "upn", "ann@example.org", false},
	} {
		s.config.EmailClaim = one.from
		s.lie(oidctest.Lies{Claims: func(c map[string]any) {
			for name, value := range one.claims {
				c[name] = value
			}
		}})
		got, err := s.signIn(t.Context())
		if err != nil || got.Address != one.want || got.AddressVerified != one.isVerified {
			t.Errorf("%v: got %q, verified %t, %v", one.claims, got.Address, got.AddressVerified, err)
		}
	}
}

func TestGroups(t *testing.T) {
	s := newSite(t, "")
	many := make([]string, 10_000)
	for i := range many {
		many[i] = "group " + strings.Repeat("g", 8)
	}
	for name, one := range map[string]struct {
		claims map[string]any
		state  oidcrp.GroupsState
		n      int
	}{
		"none":                   {nil, oidcrp.GroupsAbsent, 0},
		"a list":                 {map[string]any{"groups": []string{"a", "b", ""}}, oidcrp.GroupsList, 3},
		"an empty list":          {map[string]any{"groups": []string{}}, oidcrp.GroupsList, 0},
		"very many":              {map[string]any{"groups": many}, oidcrp.GroupsList, len(many)},
		"a text":                 {map[string]any{"groups": "a"}, oidcrp.GroupsMalformed, 0},
		"null":                   {map[string]any{"groups": nil}, oidcrp.GroupsMalformed, 0},
		"null inside":            {map[string]any{"groups": []any{"a", nil}}, oidcrp.GroupsMalformed, 0},
		"the text null":          {map[string]any{"groups": []any{"a", "null"}}, oidcrp.GroupsList, 2},
		"a number inside":        {map[string]any{"groups": []any{"a", 1}}, oidcrp.GroupsMalformed, 0},
		"a list inside":          {map[string]any{"groups": []any{[]any{"a"}}}, oidcrp.GroupsMalformed, 0},
		"an object":              {map[string]any{"groups": map[string]any{"a": 1}}, oidcrp.GroupsMalformed, 0},
		"_claim_names":           {map[string]any{"_claim_names": map[string]any{"groups": "src1"}}, oidcrp.GroupsOverage, 0},
		"_claim_names of others": {map[string]any{"_claim_names": map[string]any{"roles": "src1"}}, oidcrp.GroupsAbsent, 0},
		"_claim_names, a text":   {map[string]any{"_claim_names": "groups"}, oidcrp.GroupsAbsent, 0},
		"hasgroups":              {map[string]any{"hasgroups": true}, oidcrp.GroupsOverage, 0},
		"hasgroups as a text":    {map[string]any{"hasgroups": "true", "groups": []string{}}, oidcrp.GroupsOverage, 0},
		"hasgroups, false":       {map[string]any{"hasgroups": false}, oidcrp.GroupsAbsent, 0},
		"groups.link":            {map[string]any{"groups.link": "https://other.example.com"}, oidcrp.GroupsOverage, 0},
	} {
		s.provider.Change(func(o *oidctest.Settings) { o.Person.Claims = one.claims })
		got, err := s.signIn(t.Context())
		if err != nil || got.Groups.State != one.state || len(got.Groups.Names) != one.n {
			t.Errorf("%s: got %q with %d names, %v", name, got.Groups.State, len(got.Groups.Names), err)
		}
	}
	s.config.GroupsClaim = ""
	s.provider.Change(func(o *oidctest.Settings) {
		o.Person.Claims = map[string]any{"groups": []string{"a"}, "hasgroups": true}
	})
	if got, err := s.signIn(t.Context()); err != nil || got.Groups.State != oidcrp.GroupsAbsent {
		t.Errorf("got %+v, %v, though no claim is asked for", got.Groups, err)
	}
}

// A test shows the claims of a sign-in that is refused, too, bounded, and values of mapped claims only.
func TestClaimsOfARefusedSignIn(t *testing.T) {
	s := newSite(t, "")
	s.config.EmailClaim = "upn"
	long := strings.Repeat("x", 10_000)
	s.lie(oidctest.Lies{Claims: func(c map[string]any) {
		c["sub"], c["upn"], c["hidden"], c["name"] = "", "ann@example.com", "hidden", long
		c["groups"], c["amr"] = make([]string, 5_000), map[string]any{"deep": []any{long}}
		c["\u202egnp\x00"] = true
	}})
	got, err := s.signIn(t.Context())
	wantFault(t, err, oidcrp.CheckSub)
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 4096 || strings.Contains(string(text), `"hidden":`) || got.Claims["upn"] != "ann@example.com" {
		t.Errorf("got %d bytes: %.300s", len(text), text)
	}
	for _, want := range []string{"hidden", "upn", "gnp"} {
		if !strings.Contains(strings.Join(got.Names, " "), want) {
			t.Errorf("no %s in %q", want, got.Names)
		}
	}
	s.lie(header("alg", "none")(s))
	if got, err := s.signIn(t.Context()); err == nil || got.Claims != nil || got.Names != nil {
		t.Errorf("claims that nobody signed are shown: %v", got.Claims)
	}
}

func TestErrorsOfTheProvider(t *testing.T) {
	s := newSite(t, "")
	for _, one := range []struct{ code, description, advice string }{
		{"access_denied", "", oidcrp.AdviceAssignment},
		{"access_denied", "AADSTS65001: The user or administrator has not consented", oidcrp.AdviceConsent},
		{"consent_required", "", oidcrp.AdviceConsent},
		{"invalid_scope", "", oidcrp.AdviceScope},
		{"unauthorized_client", "", oidcrp.AdviceClientID},
		{"invalid_request", "The redirect URI does not match", oidcrp.AdviceRedirectURI},
		{"invalid_request", "code_challenge missing", oidcrp.AdvicePKCE},
		{"login_required", "", oidcrp.AdviceStartAgain},
		{"something_new", "", oidcrp.AdviceProvider},
	} {
		s.lie(oidctest.Lies{Callback: func(q url.Values) { q.Set("error", one.code); q.Set("error_description", one.description) }})
		_, err := s.signIn(t.Context())
		if fault := wantFault(t, err, oidcrp.CheckProvider); fault.Advice != one.advice || !strings.HasPrefix(fault.Seen, one.code) {
			t.Errorf("%s: the advice is %s, seen %q", one.code, fault.Advice, fault.Seen)
		}
	}
	for _, code := range []string{"server_error", "temporarily_unavailable"} {
		s.lie(callback("error", code)(s))
		_, err := s.signIn(t.Context())
		wantUnavailable(t, err)
	}
	s.lie(oidctest.Lies{Callback: func(q url.Values) {
		q.Set("error", "x\r\nSet-Cookie: a=b\x1b[31m\u202e")
		q.Set("error_description", q.Get("state")+" "+strings.Repeat("ü ", 500)+"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl")
	}})
	flow := oidcrp.Begin(s.now())
	_, err := s.finish(t.Context(), flow)
	checkText(t, wantFault(t, err, oidcrp.CheckProvider), secretsOf(s, flow))
}

// respond answers the requests of a path in place of the provider.
func respond(path string, answer http.HandlerFunc) oidctest.Lies {
	return oidctest.Lies{Answer: func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, path) {
			answer(w, r)
			return true
		}
		return false
	}}
}
