package hosted_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
)

const (
	inbox         = "https://app.example.com/inbox"
	returnAddress = inbox + "/42?a=b&c=d#e"
)

// withReturn returns the path, which ends in ? or &, with the parameter return.
func withReturn(path, to string) string { return path + "return=" + url.QueryEscape(to) }

// A reset keeps the return address, from the login through mail and pages and back.
func TestReturningAfterAReset(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.ReturnTo(inbox))
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	const field = `name="return" value="https://app.example.com/inbox/42?a=b&amp;c=d#e"`
	link := func(path string) string { return `href="` + withReturn(path+"?", returnAddress) + `"` }
	b.get(withReturn("/login?", returnAddress)).is(t, 200, "", field, link("/forgot"))
	b.get(withReturn("/forgot?", returnAddress)).is(t, 200, "", field, link("/login"))
	b.send("/forgot", "email", "nonsense", "return", returnAddress).is(t, 422, "", field)
	b.send("/forgot", "email", ann, "return", returnAddress).is(t, 303, withReturn("/forgot/sent?", returnAddress))
	b.get(withReturn("/forgot/sent?", returnAddress)).is(t, 200, "", link("/login"))
	code := s.Code(ann)
	if text := s.Mails(ann)[0].Text; !strings.Contains(text, "\n"+s.URL+withReturn("/reset?", returnAddress)+"#token="+code+"\n") {
		t.Errorf("the link in the mail lacks the return address:\n%s", text)
	}
	b.get(withReturn("/reset?", returnAddress)).is(t, 200, "", field)
	b.send("/reset", "token", absent, "return", returnAddress).is(t, 404, "", field)
	b.send("/reset", "token", code, "return", returnAddress).is(t, 200, "", field)
	b.send("/reset/password", "token", code, "password", "short", "confirmPassword", "short", "return", returnAddress).is(t, 422, "", field)
	done := withReturn("/login?done=reset&", returnAddress)
	b.send("/reset/password", "token", code, "password", fresh, "confirmPassword", fresh, "return", returnAddress).is(t, 303, done)
	b.send("/reset", "token", code, "return", returnAddress).is(t, 410, "", "used before", link("/forgot"))
	page := b.get(done)
	page.is(t, 200, "", "Your password is changed", field)
	if strings.Contains(page.body, "Sign in to go on.") {
		t.Errorf("the login has two messages:\n%s", page.body)
	}
	b.send("/login", "email", ann, "password", fresh, "return", returnAddress).is(t, 303, returnAddress)
}

// Gateways append the requested address without escaping it. A login returns to all of it
// but the fragment, and no part of it is read as a parameter of the page.
func TestReturningToTheOriginal(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.ReturnTo("https://app.example.com"))
	s.Tenant("Acme").Join(ann, "USER")
	own := s.URL + "/messages"
	for original, want := range map[string]string{
		own:                               "/messages",
		own + "?a=b&c=d":                  "/messages?a=b&c=d",
		own + "?a=%26&b=%23&c=%3D":        "/messages?a=%26&b=%23&c=%3D",
		own + "?q=a+b%20c;d&empty=&e":     "/messages?q=a+b%20c;d&empty=&e",
		own + "?x=%zz&%":                  "/messages?x=%zz&%",
		own + "?original=/x&original=y":   "/messages?original=/x&original=y",
		own + "?return=/docs&lang=de":     "/messages?return=/docs&lang=de",
		own + "?done=reset&several=1#end": "/messages?done=reset&several=1",
		"https://app.example.com/m?a&b":   "https://app.example.com/m?a&b",
		"/messages?a&b":                   "/messages?a&b",

		"https://evil.example/?a":                      "/account",
		"//evil.example/":                              "/account",
		"/\\evil.example/":                             "/account",
		s.URL + "@evil.example/":                       "/account",
		s.URL + ".evil.example/":                       "/account",
		"javascript:alert(1)":                          "/account",
		"https://evil.example/?original=" + own:        "/account",
		"https://evil.example/?return=/docs":           "/account",
		"":                                             "/account",
		url.QueryEscape(own):                           "/account",
		"https://app.example.com@evil.example/?x=/y#z": "/account",
	} {
		b := open(t, s)
		at := "/login?original=" + original
		page := b.get(at)
		if page.is(t, 200, ""); strings.Contains(page.body, `<html lang="de"`) {
			t.Errorf("%q chooses the language of the page", original)
		}
		b.send(at, "email", ann, "password", secret).is(t, 303, want)
		b.get(at).is(t, 303, want) // signed in already
	}
	b := open(t, s)
	const field = `name="return" value="/messages?a=b&amp;c=d"`
	to := "original=" + own + "?a=b&c=d"
	b.get("/login?"+to).is(t, 200, "", field, `href="`+withReturn("/forgot?", "/messages?a=b&c=d")+`"`)
	b.get("/login?lang=de&"+to).is(t, 200, "", field, `<html lang="de"`)
	for _, page := range []string{"/forgot?", "/reset?", "/accept?"} {
		b.get(page+to).is(t, 200, "", field)
	}
	b.send("/login", "email", ann, "password", secret, "return", "/messages?a=b&c=d").is(t, 303, "/messages?a=b&c=d")
}

// A stranger can request a mail to anybody. Its link must lead only to places that
// the operator allows, and must not break in the mail.
func TestMailsLeadToAllowedAddressesOnly(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.ReturnTo(inbox))
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	links := regexp.MustCompile(`(?m)^https?://.*$`)
	foreign := []string{
		"https://evil.example/", "//evil.example/", "/\\evil.example/", "https://app.example.com@evil.example/inbox", "https://app.example.com.evil.example/inbox",
		inbox + "es", inbox + "/%2e%2e/admin", "http://app.example.com/inbox", "javascript:alert(1)", "/docs#token=" + absent + "\n", inbox + strings.Repeat("/x", 2000),
	}
	for i, wanted := range append([]string{"/docs?\xff", "/docs?" + strings.Repeat("x", 700)}, foreign...) {
		if i%3 == 0 {
			s.Advance(61 * time.Minute) // three mails an hour
		}
		b.send(withReturn("/forgot?", wanted), "email", ann)
		code := s.Code(ann)
		if got := links.FindAllString(s.Mails(ann)[0].Text, -1); len(got) != 1 || got[0] != s.URL+"/reset#token="+code {
			t.Errorf("return=%.60q: the mail has the links %q", wanted, got)
		}
	}
	for _, wanted := range foreign {
		for page, a := range map[string]answer{
			"login": b.get(withReturn("/login?", wanted)), "forgot": b.get(withReturn("/forgot?", wanted)), "sent": b.get(withReturn("/forgot/sent?", wanted)),
			"refused": b.send("/forgot", "email", "nonsense", "return", wanted), "reset": b.get(withReturn("/reset?", wanted)),
			"code": b.send("/reset", "token", absent, "return", wanted), "accept": b.send("/accept", "token", absent, "return", wanted),
		} {
			main, _, _ := strings.Cut(a.body, "<footer") // which repeats the form, for another language
			if strings.Contains(main, `name="return"`) || strings.Contains(main, "?return=") {
				t.Errorf("%s keeps return=%.60q:\n%s", page, wanted, main)
			}
		}
	}
}

func TestReturningAfterAnInvitation(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.ReturnTo(inbox))
	acme, globex := s.Tenant("Acme"), s.Tenant("Globex")
	owner := acme.Join(ann, "OWNER")
	const field = `name="return" value="https://app.example.com/inbox/42?a=b&amp;c=d#e"`

	code := invite(t, s, owner, "ben@acme.example")
	b := open(t, s)
	b.get(withReturn("/accept?", returnAddress)).is(t, 200, "", field)
	b.send("/accept", "token", absent, "return", returnAddress).is(t, 404, "", field)
	b.send("/accept", "token", code, "return", returnAddress).is(t, 200, "", field)
	b.send("/accept/register", "token", code, "password", "short", "confirmPassword", "short", "return", returnAddress).is(t, 422, "", field)
	b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh, "return", returnAddress).is(t, 303, returnAddress)
	b.send("/logout").is(t, 303, "/login?done=signed-out")
	b.send("/accept", "token", code, "return", returnAddress).is(t, 410, "", `href="`+withReturn("/login?", returnAddress)+`"`)
	b.send("/login", "email", "ben@acme.example", "password", fresh, "return", returnAddress).is(t, 303, returnAddress)

	globex.Join("cid@globex.example", "USER")
	code = invite(t, s, owner, "cid@globex.example")
	c := open(t, s)
	c.send("/accept", "token", code, "return", returnAddress).is(t, 200, "", field, `href="`+withReturn("/forgot?", returnAddress)+`"`)
	c.send("/accept/join", "token", code, "password", secret, "return", inbox+"es").is(t, 303, "/login?done=joined")

	globex.Join("dan@globex.example", "USER")
	code = invite(t, s, owner, "dan@globex.example")
	d := open(t, s)
	d.send("/login", "email", "dan@globex.example", "password", secret).is(t, 303, "/account")
	d.send("/accept/join", "token", code, "return", returnAddress).is(t, 303, withReturn("/login/tenant?done=choose&", returnAddress))
	d.get(withReturn("/login/tenant?done=choose&", returnAddress)).is(t, 200, "", "Choose where to go on.", field)
	d.send("/login/tenant", "tenantId", acme.ID, "return", returnAddress).is(t, 303, returnAddress)
}

// A person invited without a return address is redirected to the application, but not
// in a tenant that is being closed.
func TestHome(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.ReturnTo(inbox), doorwardtest.Home(inbox))
	acme, globex := s.Tenant("Acme"), s.Tenant("Globex")
	acme.Join(ann, "OWNER")
	b := open(t, s)
	code := invite(t, s, globex.Owner, "ben@globex.example")
	b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh).is(t, 303, inbox)
	b.get("/account").is(t, 200, "", `<a href="`+inbox+`">Back to Doorward</a>`)
	b.send("/accept/join", "token", invite(t, s, acme.Owner, "ben@globex.example")).is(t, 303, "/login/tenant?done=choose")
	page := b.get("/login/tenant?done=choose")
	if got := page.header.Get("Content-Security-Policy"); !strings.Contains(got, "form-action 'self' https://app.example.com;") {
		t.Errorf("the policy of the choice is %q", got)
	}
	b.send("/login/tenant", "tenantId", acme.ID).is(t, 303, inbox)
	b.get("/account?tab=organisations").is(t, 200, "", `<input type="hidden" name="return" value="/account?tab=organisations">`) // switching the tenant returns here
	b.send("/login/tenant", "tenantId", globex.ID, "return", "/account?tab=organisations").is(t, 303, "/account?tab=organisations")

	owner := open(t, s)
	owner.send("/login", "email", ann, "password", secret).is(t, 303, inbox)
	closeTenant(t, owner, "Acme")
	owner.send("/login", "email", ann, "password", secret, "return", returnAddress).is(t, 303, "/closing")
	owner.get("/login").is(t, 303, "/closing")
	owner.send("/login/tenant", "tenantId", acme.ID).is(t, 303, "/closing")
}
