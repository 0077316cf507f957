package console_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

// solidPNG returns an image of one colour as a PNG.
func solidPNG(w, h int) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.Set(i%w, i/w, color.NRGBA{200, 30, 40, 255})
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // into memory
	return out.Bytes()
}

// part is a field of a form with files.
type part struct{ name, file, text string }

// upload sends a form with files and follows no redirect.
func (b *browser) upload(path string, parts []part, header ...string) (*http.Response, string) {
	b.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, p := range parts {
		var w io.Writer
		var err error
		if p.file != "" {
			w, err = form.CreateFormFile(p.name, p.file)
		} else {
			w, err = form.CreateFormField(p.name)
		}
		if err == nil {
			_, err = io.WriteString(w, p.text)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	_ = form.Close() // into memory
	return b.send("POST", path, &body, append([]string{"Content-Type", form.FormDataContentType()}, header...)...)
}

const logoForm, removeForm = "/console/settings/logo?tab=appearance", "/console/settings/logo/remove?tab=appearance"

func logoOf(image []byte) []part { return []part{{"logo", "logo.png", string(image)}} }

func TestLogoForm(t *testing.T) {
	h := newFixture(t)
	admin := h.browserOf(t, "ADMIN")
	res, page := admin.upload(logoForm, logoOf(solidPNG(400, 80)))
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("uploading: %d\n%s", res.StatusCode, page)
	}
	page = admin.get(res.Header.Get("Location"), http.StatusOK, "The logo is saved.", "Remove the logo", `width="400" height="80" alt="Acme"`)
	path := regexp.MustCompile(`/assets/logos/[0-9a-f]{40}\.png`).FindString(page)
	if res, _ := admin.ask("GET", path, nil); res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "image/png" {
		t.Errorf("%s is %d %s", path, res.StatusCode, res.Header.Get("Content-Type"))
	}
	res, _ = admin.ask("GET", "/console/settings", nil)
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "img-src 'self';") {
		t.Errorf("the policy of the page is %q", policy)
	}
	// Only people in the tenant see the logo.
	h.browserOf(t, "VIEWER").get("/console", http.StatusOK, path)
	h.browserOf(t, "USER").get("/account", http.StatusOK, path)
	lacks(t, open(t, h.Server, h.other).get("/console", http.StatusOK), "/assets/logos/")
	lacks(t, (&browser{T: t, server: h.Server, token: ""}).get("/login", http.StatusOK), "/assets/logos/")

	// A square logo is a symbol with the name beside it.
	if res, page = admin.upload(logoForm, logoOf(solidPNG(50, 50))); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("uploading another: %d\n%s", res.StatusCode, page)
	}
	admin.get("/console", http.StatusOK, `width="50" height="50" alt=""> <bdi>Acme</bdi>`)
	// Two people open the page; the second form must not undo the first.
	page = admin.get("/console/settings?tab=appearance", http.StatusOK)
	if n := len(versionField.FindAllString(page, -1)); n != 3 {
		t.Errorf("%d forms carry a version, want all 3", n)
	}
	old := part{"version", "", admin.version(page)}
	if res, page = admin.upload(logoForm, append(logoOf(solidPNG(60, 50)), old)); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("uploading a third: %d\n%s", res.StatusCode, page)
	}
	if res, page = admin.upload(logoForm, append(logoOf(solidPNG(60, 50)), old)); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a second click: %d\n%s", res.StatusCode, page)
	}
	res, page = admin.upload(logoForm, append(logoOf(solidPNG(70, 50)), old))
	admin.shows("a fourth", res, page, http.StatusPreconditionFailed, []string{"Somebody else has saved these settings", `width="60" height="50"`})
	admin.post(removeForm, url.Values{"version": {old.text}}, http.StatusPreconditionFailed, "Somebody else has saved these settings", "Remove the logo")
	// Refused for another fault, the form keeps its old version.
	res, page = admin.upload(logoForm, append(logoOf([]byte("<svg/>")), old))
	admin.shows("a vector", res, page, http.StatusUnprocessableEntity, []string{`name="version" value="` + old.text})
	admin.submit(removeForm, url.Values{"version": {admin.version(admin.get("/console/settings?tab=appearance", http.StatusOK))}}, "The logo is removed.", `<p class="brand"><span class="monogram" aria-hidden="true">A</span> <bdi>Acme</bdi></p>`)
	admin.submit(removeForm, url.Values{}) // a second click
	lacks(t, admin.get("/console/settings?tab=appearance", http.StatusOK), "/assets/logos/", "Remove the logo")
}

// An invalid logo or form is reported at the field.
func TestLogoFormRefuses(t *testing.T) {
	h := newFixture(t)
	admin := h.browserOf(t, "ADMIN")
	for _, c := range []struct {
		name, file, want string
		status           int
	}{
		{"no file", "", "Choose a file.", http.StatusUnprocessableEntity},
		{"a vector", "<svg/>", "An SVG can contain scripts", http.StatusUnprocessableEntity},
		{"a text", "logo", "This is no PNG, JPEG or WebP", http.StatusUnprocessableEntity},
		{"one byte too many", strings.Repeat("x", doorward.MaxLogoSent+1), "256 KiB at most", http.StatusRequestEntityTooLarge},
		{"a photo", strings.Repeat("x", 3<<20), "256 KiB at most", http.StatusRequestEntityTooLarge},
		{"too many pixels", string(solidPNG(4097, 1)), "too many pixels", http.StatusUnprocessableEntity},
	} {
		res, page := admin.upload(logoForm, []part{{"logo", "logo.png", c.file}})
		const otherForm = `id="accent"`
		admin.shows(c.name, res, page, c.status, []string{c.want, `id="logo-fault"`, otherForm})
	}
	// The refusal can be shown in another language, by a form with a file.
	for _, file := range []string{"<svg/>", strings.Repeat("x", doorward.MaxLogoSent+1)} {
		res, page := admin.upload(logoForm, []part{{"logo", "logo.png", file}})
		admin.shows("refused", res, page, res.StatusCode, []string{`<form method="post" enctype="multipart/form-data">`, `name="lang" value="de"`})
	}
	res, page := admin.upload(logoForm, []part{{"lang", "", "de"}})
	admin.shows("in German", res, page, http.StatusOK, []string{"Einstellungen"})
	good := string(solidPNG(3, 2))
	var many []part
	for range 20 {
		many = append(many, part{"x", "", "y"})
	}
	for name, parts := range map[string][]part{"too many fields": many, "bytes that are no text": {{"name", "", "\xff"}, {"logo", "logo.png", good}}, "NUL in a name": {{"a\x00b", "", "c"}}} {
		if res, page := admin.upload(logoForm, parts); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d\n%s", name, res.StatusCode, page)
		}
	}
	for _, media := range []string{"application/x-www-form-urlencoded", "image/png", "multipart/mixed; boundary=x", ""} {
		if res, _ := admin.send("POST", logoForm, strings.NewReader(good), "Content-Type", media); res.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("a body of the type %q: %d", media, res.StatusCode)
		}
	}
	for name, body := range map[string]string{"cut off": "--x\r\nContent-Disposition: form-data; name=\"logo\"\r\n\r\n" + good} {
		if res, _ := admin.send("POST", logoForm, strings.NewReader(body), "Content-Type", "multipart/form-data; boundary=x"); res.StatusCode != http.StatusBadRequest {
			t.Errorf("a form with %s: %d", name, res.StatusCode)
		}
	}
	if res, _ := admin.send("POST", logoForm, strings.NewReader("--\r\n"), "Content-Type", "multipart/form-data"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a form without a boundary: %d", res.StatusCode)
	}
	for _, role := range []string{"USER", "VIEWER"} {
		if res, _ := h.browserOf(t, role).upload(logoForm, logoOf(solidPNG(3, 2))); res.StatusCode != http.StatusForbidden {
			t.Errorf("a %s uploads: %d", role, res.StatusCode)
		}
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		if res, _ := admin.upload(logoForm, logoOf(solidPNG(3, 2)), header...); res.StatusCode != http.StatusForbidden {
			t.Errorf("an upload with %q: %d", header, res.StatusCode)
		}
	}
	if status, body := h.tenant.Owner.Get("/api/v2/tenant"); status != http.StatusOK || strings.Contains(string(body), `"logo"`) {
		t.Errorf("after all that the tenant is %s", body)
	}
}

// The field and the picker set the same colour: the changed one counts, and the field
// if both were changed.
func TestAccentForm(t *testing.T) {
	h := newFixture(t)
	admin := h.browserOf(t, "ADMIN")
	checkShown := func(accent, picked string) {
		t.Helper()
		page := admin.get("/console/settings?tab=appearance", http.StatusOK, `name="picked" type="color" value="`+picked+`"`)
		if !regexp.MustCompile(`name="accent"[^>]* value="` + accent + `"`).MatchString(page) {
			t.Errorf("the field has another value than %q:\n%s", accent, page)
		}
		if linked := strings.Contains(page, "/assets/accents/"); linked != (accent != "") {
			t.Errorf("with the accent %q there is a sheet: %v", accent, linked)
		}
	}
	choose := func(accent, picked string) {
		t.Helper()
		version := admin.version(admin.get("/console/settings?tab=appearance", http.StatusOK))
		admin.submit("/console/settings/accent?tab=appearance", url.Values{"accent": {accent}, "picked": {picked}, "version": {version}}, "The colour is saved.")
	}
	checkShown("", "#3b4ccf")
	choose("", "#3b4ccf") // unchanged
	checkShown("", "#3b4ccf")
	choose("", "#ffd400")
	checkShown("#ffd400", "#ffd400")
	choose("00ff00", "#ffd400")
	checkShown("#00ff00", "#00ff00")
	choose(" #112233 ", "#445566")
	checkShown("#112233", "#112233")
	admin.get("/assets/accents/112233.css", http.StatusOK, "--accent: #112233")
	choose("", "#112233")
	checkShown("", "#3b4ccf")

	old := admin.version(admin.get("/console/settings?tab=appearance", http.StatusOK))
	choose("#ffd400", "#3b4ccf")
	admin.post("/console/settings/accent?tab=appearance", url.Values{"accent": {"#000000"}, "version": {old}}, http.StatusPreconditionFailed, "Somebody else has saved these settings")
	for _, wrong := range []string{"red", "#fff", "#12345g", "}*{color:red", strings.Repeat("9", 7)} {
		admin.post("/console/settings/accent?tab=appearance", url.Values{"accent": {wrong}}, http.StatusUnprocessableEntity, "Write # and six digits")
	}
	for _, invalid := range []string{"112233", "11223g.css", "1122334.css", ".css", "%23112233.css", "112233.css.css"} {
		admin.get("/assets/accents/"+invalid, http.StatusNotFound)
	}
	// A tenant's accent stays on its pages.
	lacks(t, open(t, h.Server, h.other).get("/console", http.StatusOK), "/assets/accents/")
	lacks(t, (&browser{T: t, server: h.Server, token: ""}).get("/login", http.StatusOK), "/assets/accents/")
}
