package hosted_test

import (
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// formOrigin is the header Origin that a browser sends with a form of a page of the origin, to that origin
// (Fetch Standard, "append a request Origin header").
func formOrigin(page answer, origin string) string {
	if page.header.Get("Referrer-Policy") == "no-referrer" {
		return "null"
	}
	return origin
}

// Safari before 16.4 sends no Sec-Fetch-Site, and some proxies drop it: Origin decides.
func TestFormsWithoutFetchMetadata(t *testing.T) {
	s := doorwardtest.Start(t)
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	b.origin = formOrigin(b.get("/login"), s.URL)
	b.send("/login", "email", ann, "password", "wrong wrong wrong").is(t, 401, "")
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/account")
	b.origin = formOrigin(b.get("/account"), s.URL)
	b.send("/account/name", "name", "Ann").is(t, 303, "/account?done=name")
	b.send("/logout").is(t, 303, "/login?done=signed-out")
}

// A form of another site is refused, also with --allowed-origins, and the page names both origins in the
// language of the person.
func TestFormsFromOtherOrigins(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.BaseURL("http://localhost:8080"), doorwardtest.AllowedOrigins("http://127.0.0.1:8080"))
	for path, words := range map[string]string{
		"/login?lang=en":  "sent from http://127.0.0.1:8080; our pages are at http://localhost:8080.",
		"/login?lang=de":  "kam von http://127.0.0.1:8080; unsere Seiten sind unter http://localhost:8080.",
		"/logout?lang=en": "sent from http://127.0.0.1:8080; our pages are at http://localhost:8080.",
	} {
		b := open(t, s)
		b.origin = "http://127.0.0.1:8080"
		if a := b.send(path).is(t, 403, "", words); a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is shared: %v", path, a.header)
		}
		b.origin = "null"
		b.send(path).is(t, 403, "")
	}
}
