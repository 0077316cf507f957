package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
)

const invitePath = "POST /api/v2/auth/invite"

func TestInvite(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		a := d.send(t, invitePath, m{"email": "Ann.Lee+x@Acme.Example", "role": "USER", "name": "Ann Lee", "expiresInDays": 3, "locale": "de-CH"}, as(acme.Owner.Token()))
		a.ok(http.StatusCreated).members("", "id", "email", "role", "name", "status", "tenantId", "invitedBy", "createdAt", "expiresAt", "delivery")
		a.is("email", "ann.lee+x@acme.example").is("role", "USER").is("name", "Ann Lee").is("status", "PENDING")
		a.is("tenantId", acme.ID).is("invitedBy", acme.Owner.ID).is("delivery", "queued")
		if id := a.text("id"); !strings.HasPrefix(id, "inv_") || len(id) < 26 {
			t.Errorf("the id is %q", id)
		}
		if life := a.instant("expiresAt").Sub(a.instant("createdAt")); life != 3*24*time.Hour {
			t.Errorf("valid for %v, want 3 days", life)
		}
		plain := d.send(t, invitePath, m{"email": "bob@acme.example", "role": "VIEWER"}, as(acme.Owner.Token())).ok(http.StatusCreated).is("name", "")
		if life := plain.instant("expiresAt").Sub(plain.instant("createdAt")); life != 7*24*time.Hour {
			t.Errorf("valid for %v by default, want 7 days", life)
		}
	})
}

// The mail has a link with the token in the fragment, and the token alone on a line.
func TestInvitationMail(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		code := d.invite(t, acme.Owner, "ann@acme.example", "USER")
		mails := d.Mails("ann@acme.example")
		if len(mails) != 1 || len(code) != 43 || mails[0].Subject == "" {
			t.Fatalf("%d mails, code %q", len(mails), code)
		}
		link := d.base + "/accept#token=" + code
		lines := strings.Split(mails[0].Text, "\n")
		if !slices.Contains(lines, link) || !slices.Contains(lines, code) {
			t.Errorf("the text has no line %q or %q:\n%s", link, code, mails[0].Text)
		}
		if !strings.Contains(mails[0].HTML, link) {
			t.Errorf("the HTML has no link %q:\n%s", link, mails[0].HTML)
		}
		d.complete(t, code, password).ok(http.StatusOK)
	})
}

// Only an OWNER or ADMIN can invite, and at most to their own role.
func TestWhoMayInviteToWhat(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		roles := []string{"OWNER", "ADMIN", "USER", "VIEWER"}
		may := map[string][]string{"OWNER": roles, "ADMIN": roles[1:], "USER": nil, "VIEWER": nil}
		for _, by := range roles {
			inviter := acme.Join(strings.ToLower(by)+"2@acme.example", by)
			for _, role := range roles {
				a := d.send(t, invitePath, m{"email": strings.ToLower(by + "-" + role + "@acme.example"), "role": role}, as(inviter.Token()))
				if slices.Contains(may[by], role) {
					a.ok(http.StatusCreated).is("role", role).is("invitedBy", inviter.ID)
				} else {
					a.fails(http.StatusForbidden, "forbidden")
				}
			}
		}
		d.send(t, invitePath, m{"email": "x@acme.example", "role": "USER"}).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, invitePath, m{"email": "x@acme.example", "role": "USER"}, bearer(d.operatorKey(t))).fails(http.StatusForbidden, "forbidden")
	})
}

func TestInviteTwice(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		first := d.send(t, invitePath, m{"email": "ann@acme.example", "role": "USER", "expiresInDays": 1}, as(acme.Owner.Token())).ok(http.StatusCreated)
		old := d.code(t, "ann@acme.example")
		for _, email := range []string{"ann@acme.example", "ANN@ACME.EXAMPLE"} {
			d.send(t, invitePath, m{"email": email, "role": "VIEWER"}, as(acme.Owner.Token())).fails(http.StatusConflict, "invitation_pending").is("invitationId", first.at("id"))
		}
		d.Advance(24*time.Hour - time.Second)
		owner := d.token(t, acme.Owner.Email)
		d.send(t, invitePath, m{"email": "ann@acme.example", "role": "VIEWER"}, as(owner)).fails(http.StatusConflict, "invitation_pending")
		d.Advance(time.Second)
		second := d.send(t, invitePath, m{"email": "ann@acme.example", "role": "VIEWER"}, as(owner)).ok(http.StatusCreated)
		if second.at("id") == first.at("id") {
			t.Error("the second invitation is the first")
		}
		d.complete(t, old, password).fails(http.StatusGone, "invitation_expired")
		d.complete(t, d.code(t, "ann@acme.example"), password).ok(http.StatusOK).is("user.role", "VIEWER")
		d.complete(t, old, password).fails(http.StatusGone, "invitation_expired")
	})
}

func TestInviteMembers(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.send(t, invitePath, m{"email": "Ann@acme.example", "role": "USER"}, as(acme.Owner.Token())).fails(http.StatusConflict, "already_member")
		d.suspend(t, acme.ID, ann.ID)
		d.send(t, invitePath, m{"email": "ann@acme.example", "role": "USER"}, as(acme.Owner.Token())).fails(http.StatusConflict, "already_member")
		d.send(t, invitePath, m{"email": acme.Owner.Email, "role": "OWNER"}, as(acme.Owner.Token())).fails(http.StatusConflict, "already_member")
	})
}

// The answer doesn't reveal whether the address has an account elsewhere, and a
// pending invitation of one tenant doesn't affect another.
func TestInviteAcrossTenants(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		globex.Join("known@else.example", "USER")
		d.invite(t, globex.Owner, "asked@else.example", "USER")
		want := d.send(t, invitePath, m{"email": "stranger@else.example", "role": "USER"}, as(acme.Owner.Token())).ok(http.StatusCreated)
		for _, email := range []string{"known@else.example", "asked@else.example", globex.Owner.Email} {
			got := d.send(t, invitePath, m{"email": email, "role": "USER"}, as(acme.Owner.Token())).ok(http.StatusCreated)
			for _, name := range []string{"role", "name", "status", "tenantId", "invitedBy", "delivery"} {
				got.is(name, want.at(name))
			}
			if diff := cmp.Diff(headerNames(want), headerNames(got)); diff != "" {
				t.Errorf("other headers for %s:\n%s", email, diff)
			}
		}
	})
}

func headerNames(a answer) (names []string) {
	for name := range a.header {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestInviteValues(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		body := func(name string, value any) m { return m{"email": "x@acme.example", "role": "USER", name: value} }
		for _, days := range []any{0, -1, 31, 1 << 40, -1 << 62} {
			d.send(t, invitePath, body("expiresInDays", days), as(owner.Token())).invalid("/expiresInDays", "out_of_range")
		}
		for _, days := range []string{"99999999999999999999999999", "-99999999999999999999999999"} {
			d.send(t, invitePath, `{"email":"x@acme.example","role":"USER","expiresInDays":`+days+`}`, as(owner.Token())).invalid("/expiresInDays", "out_of_range")
		}
		for _, days := range []string{"1.0", "1.5", "1e1", "1E0", `"7"`, "true", "null", "[7]", "{}", "-", "+1", "01", "0x7", "NaN"} {
			d.send(t, invitePath, `{"email":"x@acme.example","role":"USER","expiresInDays":`+days+`}`, as(owner.Token())).fails(http.StatusBadRequest, "invalid_body")
		}
		for _, role := range []string{"owner", "User", "NONE", "USER ", " USER", "ROOT", "SYSTEM", "ÜSER"} {
			d.send(t, invitePath, body("role", role), as(owner.Token())).invalid("/role", "invalid")
		}
		for _, locale := range []string{"english", "e", "en_US", "en-", "-en", "en us", "../en", "<en>", strings.Repeat("en-", 30)} {
			d.send(t, invitePath, body("locale", locale), as(owner.Token())).invalid("/locale", "invalid")
		}
		for _, name := range []string{"a\nb", "a\x7fb", "\u202eevil", "a\u2066b", "\x1b[31m", " ", "\u200b\u2060", "\u3164"} {
			d.send(t, invitePath, body("name", name), as(owner.Token())).invalid("/name", "invalid")
		}
		d.send(t, invitePath, body("name", strings.Repeat("ä", 101)), as(owner.Token())).invalid("/name", "out_of_range")
		d.send(t, invitePath, m{"email": "@", "role": "x", "expiresInDays": 0, "name": "\n", "locale": "?"}, as(owner.Token())).
			invalid("/email", "invalid", "/role", "invalid", "/name", "invalid", "/expiresInDays", "out_of_range", "/locale", "invalid")

		d.send(t, invitePath, m{"email": "one@acme.example", "role": "USER", "expiresInDays": 1}, as(owner.Token())).ok(http.StatusCreated)
		d.send(t, invitePath, m{"email": "thirty@acme.example", "role": "USER", "expiresInDays": 30, "name": strings.Repeat("ä", 100)}, as(owner.Token())).
			ok(http.StatusCreated).is("name", strings.Repeat("ä", 100))
		d.send(t, invitePath, m{"email": "name@acme.example", "role": "USER", "name": `<b>"Ann" & 李 😀</b>`}, as(owner.Token())).
			ok(http.StatusCreated).is("name", `<b>"Ann" & 李 😀</b>`)
	})
}

// The mail is in German if that was requested in any form, else in English.
func TestInvitationLanguages(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		texts := map[string]string{}
		for locale, email := range map[string]string{"": "none", "en": "en", "de": "de", "de-AT": "at", "DE": "upper", "xx": "xx", "zh-Hant-TW": "tw"} {
			body := m{"email": email + "@acme.example", "role": "USER"}
			if locale != "" {
				body["locale"] = locale
			}
			d.send(t, invitePath, body, as(owner.Token())).ok(http.StatusCreated)
			texts[locale] = strings.ReplaceAll(strings.ReplaceAll(firstLine(d.newestText(t, email+"@acme.example")), email, "X"), "\r", "")
		}
		for locale, text := range texts {
			if german := strings.HasPrefix(strings.ToLower(locale), "de"); (text == texts["de"]) != german || (text == texts["en"]) == german {
				t.Errorf("the mail for %q begins %q", locale, text)
			}
		}
	})
}

// newestText delivers all mail and returns the text of the newest to the address. One with a
// code must have been sent there.
func (s *server) newestText(t *testing.T, to string) string {
	t.Helper()
	s.code(t, to)
	return s.Mails(to)[0].Text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// addresses maps typed addresses to their canonical form; invalid ones have none.
var addresses = map[string]string{
	"ann@acme.example":                        "ann@acme.example",
	"ANN@ACME.EXAMPLE":                        "ann@acme.example",
	"ann.lee+tag@acme.example":                "ann.lee+tag@acme.example",
	"a!#$%&'*+-/=?^_`{|}~b@acme.example":      "a!#$%&'*+-/=?^_`{|}~b@acme.example",
	"x@sub.domain.acme.example":               "x@sub.domain.acme.example",
	"x@bücher.example":                        "x@xn--bcher-kva.example",
	"x@BÜCHER.example":                        "x@xn--bcher-kva.example",
	"x@xn--bcher-kva.example":                 "x@xn--bcher-kva.example",
	"x@XN--BCHER-KVA.EXAMPLE":                 "x@xn--bcher-kva.example",
	"x@例え.example":                            "x@xn--r8jz45g.example",
	strings.Repeat("a", 64) + "@acme.example": strings.Repeat("a", 64) + "@acme.example",
	strings.Repeat("a", 65) + "@acme.example": "",
	longAddress(254):                          longAddress(254),
	longAddress(255):                          "",
	"ann":                                     "", "@acme.example": "", "ann@": "", "@": "", "ann@@acme.example": "", "a@b@acme.example": "",
	"ann@acme": "", "ann@localhost": "", "ann@acme.example.": "", "ann@.acme.example": "", "ann@acme..example": "", "ann@-acme.example": "",
	"ann@acme-.example": "", "ann@[192.0.2.1]": "", "ann@[IPv6:::1]": "", "ann@192.0.2.1": "", "ann@acme.123": "",
	" ann@acme.example": "", "ann@acme.example ": "", "ann @acme.example": "", "ann@ acme.example": "", "ann\t@acme.example": "",
	"ann@acme.example\n": "", "ann@acme.example\r\nBcc: x@evil.example": "", ".ann@acme.example": "", "ann.@acme.example": "",
	"a..b@acme.example": "", `"ann"@acme.example`: "", `"a b"@acme.example`: "", "ann(comment)@acme.example": "", "ann@acme.example(comment)": "",
	"Ann <ann@acme.example>": "", "<ann@acme.example>": "", "ann@acme.example,bob@acme.example": "", "ann@acme.example;": "",
	"mailto:ann@acme.example": "", "änn@acme.example": "", "ann\u200b@acme.example": "", "ann@acme\u200b.example": "",
	"ann@acme\u00ad.example": "", "\ufeffann@acme.example": "", "ann\u202e@acme.example": "", "ａnn@acme.example": "", "ann@ａcme.example": "",
	"ann＠acme.example": "", "ann@acme。example": "", "ann@acme．example": "", "ann@\u212aelvin.example": "", "ann@acme_x.example": "",
	"ann@acme.exam ple": "", "ann@😀.example": "", "ann@xn--.example": "", "ann@xn--a.example": "", "a:b@acme.example": "",
}

// longAddress returns an address of n bytes.
func longAddress(n int) string {
	domain := strings.Repeat("d", 60) + "." + strings.Repeat("e", 60) + "." + strings.Repeat("f", 60) + ".example"
	local := n - len("@") - len(domain)
	if local <= 64 {
		return strings.Repeat("l", local) + "@" + domain
	}
	return strings.Repeat("l", 60) + "@" + strings.Repeat("g", local-60-1) + "." + domain
}

func TestAddresses(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		invited := map[string]bool{}
		for typed, canonical := range addresses {
			switch a := d.send(t, invitePath, m{"email": typed, "role": "USER"}, as(owner.Token())); {
			case canonical == "":
				a.invalid("/email", "invalid")
				d.send(t, "POST /api/v2/auth/forgot-password", m{"email": typed}).invalid("/email", "invalid")
				d.login(t, typed, password).fails(http.StatusUnauthorized, "invalid_credentials")
			case invited[canonical]:
				a.fails(http.StatusConflict, "invitation_pending")
			default:
				a.ok(http.StatusCreated).is("email", canonical)
				invited[canonical] = true
			}
		}
		d.deliver(t)
		for canonical := range invited {
			if n := len(d.Mails(canonical)); n != 1 {
				t.Errorf("%d mails to %s", n, canonical)
			}
		}
		if n := len(d.Mails("")) - len(d.Mails(owner.Email)); n != len(invited) {
			t.Errorf("%d mails were sent, want %d", n, len(invited))
		}
	})
}

// All spellings of an address belong to one account.
func TestOneAccountPerAddress(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		code := d.invite(t, acme.Owner, "x@xn--bcher-kva.example", "USER")
		d.complete(t, code, password).ok(http.StatusOK).is("user.email", "x@xn--bcher-kva.example")
		for _, typed := range []string{"x@bücher.example", "X@BÜCHER.EXAMPLE", "X@xn--BCHER-kva.example"} {
			d.login(t, typed, password).ok(http.StatusOK).is("user.email", "x@xn--bcher-kva.example")
			d.send(t, invitePath, m{"email": typed, "role": "USER"}, as(acme.Owner.Token())).fails(http.StatusConflict, "already_member")
		}
	})
}

// An invitation is valid only while its sender may invite to its role.
func TestInvitationsOfSuspendedSenders(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin := acme.Join("admin@acme.example", "ADMIN")
		pending := d.invite(t, admin, "ann@acme.example", "USER")
		d.suspend(t, acme.ID, admin.ID)
		d.complete(t, pending, password).fails(http.StatusGone, "invitation_revoked")
		d.send(t, "POST /api/v2/auth/accept-invitation", m{"token": pending, "password": password}).fails(http.StatusGone, "invitation_revoked")
		d.invite(t, acme.Owner, "ann@acme.example", "USER") // the address is free again
	})
}

// Nobody can join a frozen or closing tenant. When it is active again, the invitation is
// still valid.
func TestInvitationsToFrozenOrClosingTenants(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		stranger := d.invite(t, acme.Owner, "ann@acme.example", "USER")
		known := d.invite(t, acme.Owner, globex.Owner.Email, "USER")
		for status, code := range map[doorward.TenantStatus]string{"frozen": "tenant_frozen", "closing": "tenant_closing"} {
			d.setTenantStatus(t, acme, status)
			d.complete(t, stranger, password).fails(http.StatusForbidden, code)
			d.accept(t, known, m{"password": password}).fails(http.StatusForbidden, code)
		}
		d.setTenantStatus(t, acme, "active")
		d.complete(t, stranger, password).ok(http.StatusOK)
		d.accept(t, known, m{"password": password}).ok(http.StatusOK)
	})
}
