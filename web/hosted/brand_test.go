package hosted_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// setBrand sets a colour and a logo of the OWNER's tenant, and returns the path of the
// image.
func setBrand(t *testing.T, s *doorwardtest.Server, owner *doorwardtest.Person, width int) string {
	t.Helper()
	var logo bytes.Buffer
	if err := png.Encode(&logo, image.NewGray(image.Rect(0, 0, width, 32))); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "PUT", s.URL+"/api/v2/tenant/logo", &logo)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "image/png")
	req.Header.Set("Cookie", "JSESSIONID="+owner.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile(`/assets/logos/[0-9a-f]{40}\.png`).FindString(answer.String())
	status, body := owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"accent":"#ffd400"}}`))
	if path == "" || status != http.StatusOK {
		t.Fatalf("setting the brand: %s, %d %s", answer.String(), status, body)
	}
	return path
}

// An invitation has its tenant's brand. A login and the account of a person in
// several tenants have the installation's.
func TestBrandIsOnPagesOfATenant(t *testing.T) {
	s := doorwardtest.Start(t)
	acme, globex := s.Tenant("Acme"), s.Tenant("Globex")
	ben := globex.Join("ben@globex.example", "USER")
	logo := setBrand(t, s, acme.Owner, 128)
	other := setBrand(t, s, globex.Owner, 64)
	const sheet = "/assets/accents/ffd400.css"
	code := invite(t, s, acme.Owner, ben.Email)

	b := open(t, s)
	for _, path := range []string{"/login", "/accept", "/forgot", "/reset"} {
		if page := b.get(path); strings.Contains(page.body, "/assets/logos/") || strings.Contains(page.body, sheet) {
			t.Errorf("%s has a tenant's brand:\n%s", path, page.body)
		}
	}
	b.send("/accept", "token", code).is(t, 200, "", logo, sheet, `alt="Acme"`, "· Doorward</title>", "Join Acme")
	b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh).is(t, 409, "", logo, sheet)
	b.send("/accept", "token", absent).is(t, 404, "")
	b.get(logo).is(t, 200, "")

	b.send("/login", "email", ben.Email, "password", secret).is(t, 303, "/account")
	b.get("/account").is(t, 200, "", other, sheet)
	b.send("/accept/join", "token", code).is(t, 303, "/account?tab=organisations&done=entered")
	if page := b.get("/account"); strings.Contains(page.body, "/assets/logos/") {
		t.Errorf("the account of a person in two tenants has the logo of one:\n%s", page.body)
	}

	owner := open(t, s)
	owner.send("/login", "email", acme.Owner.Email, "password", secret)
	closeTenant(t, owner, "Acme")
	owner.send("/login", "email", acme.Owner.Email, "password", secret)
	owner.get("/closing").is(t, 200, "", logo, sheet)
}
