package web_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

const logoPath = "PUT /api/v2/tenant/logo"

// painted returns a PNG of one colour.
func painted(w, h int, c color.Color) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.Set(i%w, i/w, c)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression} // as logos are stored
	_ = encoder.Encode(&out, img)                                 // a buffer never fails
	return out.Bytes()
}

// dot is the smallest image; encoding it again gives the same bytes.
var (
	dot     = painted(1, 1, color.NRGBA{200, 30, 40, 255})
	dotHash = doorward.HashLogo(dot)
)

// setLogo sets a logo and returns the path of its image.
func (s *server) setLogo(t *testing.T, token, mediaType string, body []byte) string {
	t.Helper()
	url := s.send(t, logoPath, string(body), as(token), typed(mediaType)).ok(http.StatusOK).text("logo.url")
	path, isBelow := strings.CutPrefix(url, s.base)
	if !isBelow {
		t.Fatalf("the logo is at %s, not below %s", url, s.base)
	}
	return path
}

// getImage gets an image. Being cacheable, it isn't checked like other answers.
func (s *server) getImage(t *testing.T, path string) (*http.Response, []byte) {
	t.Helper()
	res, err := s.client.Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res, body.Bytes()
}

// A logo is public at an address that never serves another one, until no tenant has it.
func TestLogo(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		admin := acme.Join("admin@acme.example", "ADMIN").Token()
		before := d.send(t, "GET /api/v2/tenant", nil, as(admin)).header.Get("ETag")

		path := d.setLogo(t, admin, "image/png", painted(1024, 128, color.NRGBA{30, 40, 200, 255}))
		shown := d.send(t, "GET /api/v2/tenant", nil, as(admin)).ok(http.StatusOK).is("logo.width", 512.0).is("logo.height", 64.0)
		if shown.header.Get("ETag") == before {
			t.Error("a new logo leaves the ETag of the tenant unchanged")
		}
		d.patchTenant(t, admin, m{"name": "Acme"}, with("If-Match", before)).fails(http.StatusPreconditionFailed, "precondition_failed")
		res, body := d.getImage(t, path)
		found, err := png.DecodeConfig(bytes.NewReader(body))
		if res.StatusCode != http.StatusOK || err != nil || found.Width != 512 || found.Height != 64 || path != "/assets/logos/"+doorward.HashLogo(body)+".png" {
			t.Errorf("%s is %d, %v, %dx%d", path, res.StatusCode, err, found.Width, found.Height)
		}
		for name, want := range map[string]string{
			"Content-Type": "image/png", "Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
		} {
			if got := res.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}

		// A request with an outdated version changes nothing.
		d.send(t, "DELETE /api/v2/tenant/logo", nil, as(admin), with("If-Match", before)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.send(t, logoPath, string(painted(40, 40, color.NRGBA{1, 2, 3, 255})), as(admin), typed("image/png"), with("If-Match", before)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.send(t, logoPath, string(body), as(admin), typed("image/png"), with("If-Match", before)).ok(http.StatusOK) // no change

		// Another tenant has the same logo and keeps it.
		d.setLogo(t, zeta.Owner.Token(), "image/png", body)
		d.send(t, "DELETE /api/v2/tenant/logo", nil, as(admin)).ok(http.StatusNoContent)
		d.send(t, "DELETE /api/v2/tenant/logo", nil, as(admin)).ok(http.StatusNoContent)
		if logo := d.send(t, "GET /api/v2/tenant", nil, as(admin)).at("logo"); logo != nil {
			t.Errorf("the tenant has the logo %v", logo)
		}
		if res, _ := d.getImage(t, path); res.StatusCode != http.StatusOK {
			t.Errorf("the logo that one tenant still has is %d", res.StatusCode)
		}
		d.send(t, "DELETE /api/v2/tenant/logo", nil, as(zeta.Owner.Token())).ok(http.StatusNoContent)
		d.send(t, "GET "+path, nil).fails(http.StatusNotFound, "not_found")
		for _, unknown := range []string{dotHash, dotHash + ".jpg", strings.ToUpper(dotHash) + ".png", dotHash[:38] + ".png", "x.png", ".png", acme.ID + ".png"} {
			d.send(t, "GET /assets/logos/"+unknown, nil).fails(http.StatusNotFound, "not_found")
		}
	})
}

// An invalid logo is refused with the reason and changes nothing.
func TestHostileLogos(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner.Token()
		path := d.setLogo(t, owner, "image/png", dot)
		refused := func(mediaType, body, code string) {
			t.Helper()
			a := d.send(t, logoPath, body, as(owner), typed(mediaType)).fails(http.StatusUnprocessableEntity, "logo_refused")
			if faults, _ := a.at("errors").([]any); len(faults) != 1 || faults[0].(m)["pointer"] != "/logo" || faults[0].(m)["code"] != code {
				t.Errorf("the faults are %v, want %s", a.at("errors"), code)
			}
		}
		var photo bytes.Buffer
		if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 20, 20)), nil); err != nil {
			t.Fatal(err)
		}
		refused("image/png", photo.String(), "invalid")
		refused("image/jpeg", string(dot), "invalid")
		refused("image/webp", string(dot), "invalid")
		refused("image/png", string(dot[:len(dot)-20]), "invalid")
		refused("image/png", "GIF89a"+string(dot), "invalid")
		refused("image/png", "", "invalid")
		refused("image/png", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "svg")
		refused("image/png", bomb(60000, 60000), "out_of_range")

		for _, unsupported := range []string{"image/svg+xml", "image/gif", "application/json", "text/html", "image/png; charset=utf-8", "image/png, image/jpeg", "", "*/*", "multipart/form-data; boundary=x"} {
			d.send(t, logoPath, string(dot), as(owner), typed(unsupported)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
		if svg := d.send(t, logoPath, "<svg/>", as(owner), typed("image/svg+xml")); !strings.Contains(svg.text("detail"), "export it as a PNG") {
			t.Errorf("the refusal has no advice: %s", svg.body)
		}
		d.send(t, logoPath, string(dot), as(owner), typed("image/png"), with("Content-Encoding", "gzip")).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		d.send(t, logoPath, string(dot), as(owner), without("Content-Type")).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		chunked := func(r *http.Request) { r.ContentLength = -1 }
		large := string(dot) + strings.Repeat("\x00", doorward.MaxLogoSent+1-len(dot))
		d.send(t, logoPath, large, as(owner), typed("image/png")).fails(http.StatusRequestEntityTooLarge, "body_too_large")
		d.send(t, logoPath, large, as(owner), typed("image/png"), chunked).fails(http.StatusRequestEntityTooLarge, "body_too_large")

		if res, body := d.getImage(t, path); res.StatusCode != http.StatusOK || !bytes.Equal(body, dot) {
			t.Errorf("after the refusals the logo is %d, %d bytes", res.StatusCode, len(body))
		}
		// The largest allowed body; bytes after the image are dropped.
		again := d.setLogo(t, owner, "image/png", []byte(large[:doorward.MaxLogoSent]))
		if again != path {
			t.Errorf("an image with trailing bytes has another address, %s", again)
		}
	})
}

// bomb returns the beginning of a PNG that claims to be large.
func bomb(w, h uint32) string {
	head := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), w), h), 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return string(binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head)))
}

// Only a tenant's own administrators can change its logo.
func TestWhoseLogo(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		owner := acme.Owner.Token()
		path := d.setLogo(t, owner, "image/png", dot)
		key := d.operatorKey(t)
		for _, role := range []string{"USER", "VIEWER"} {
			who := as(acme.Join(strings.ToLower(role)+"@acme.example", role).Token())
			d.send(t, logoPath, string(dot), who, typed("image/png")).fails(http.StatusForbidden, "forbidden")
			d.send(t, "DELETE /api/v2/tenant/logo", nil, who).fails(http.StatusForbidden, "forbidden")
			d.send(t, "PATCH /api/v2/tenant", settings("accent", "#000000"), who).fails(http.StatusForbidden, "forbidden")
			d.send(t, "GET /api/v2/tenant", nil, who).ok(http.StatusOK).is("logo.url", d.base+path)
		}
		d.send(t, logoPath, string(dot), typed("image/png")).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, logoPath, string(dot), typed("image/png"), bearer(key)).fails(http.StatusForbidden, "forbidden")
		d.send(t, logoPath, string(dot), typed("image/png"), as(owner), with("Sec-Fetch-Site", "cross-site")).fails(http.StatusForbidden, "cross_origin")

		// Another tenant's OWNER changes only that tenant's logo, whatever the query.
		for _, query := range []string{"", "?tenantId=" + acme.ID, "?id=" + acme.ID} {
			d.send(t, "DELETE /api/v2/tenant/logo"+query, nil, as(zeta.Owner.Token())).ok(http.StatusNoContent)
			d.send(t, "PUT /api/v2/tenant/logo"+query, string(painted(2, 1, color.Black)), as(zeta.Owner.Token()), typed("image/png")).ok(http.StatusOK).is("id", zeta.ID)
		}
		for _, unknown := range []string{"/api/v2/tenants/" + acme.ID + "/logo", "/api/v2/tenant/logo/" + acme.ID} {
			d.send(t, "PUT "+unknown, string(dot), as(zeta.Owner.Token()), typed("image/png")).fails(http.StatusNotFound, "not_found")
		}
		d.send(t, "GET /api/v2/tenant", nil, as(owner)).ok(http.StatusOK).is("logo.url", d.base+path)

		d.send(t, "DELETE /api/v2/tenant", m{"confirm": "Acme"}, as(owner)).ok(http.StatusAccepted)
		d.send(t, logoPath, string(dot), as(acme.Owner.Login()), typed("image/png")).fails(http.StatusForbidden, "tenant_closing")
		d.send(t, "DELETE /api/v2/tenant/logo", nil, as(acme.Owner.Login())).fails(http.StatusForbidden, "tenant_closing")
	})
}

// The accent is a colour or empty.
func TestAccent(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner.Token()
		d.patchTenant(t, owner, settings("accent", "#FFD400")).ok(http.StatusOK).is("settings.accent", "#ffd400")
		for _, wrong := range []string{"red", "#fff", "ffd400", "#ffd40", "#ffd4000", "#ffd40g", " #ffd400", "#ffd400;", "url(x)", "#+1+1+1"} {
			d.patchTenant(t, owner, settings("accent", wrong)).invalid("/settings/accent", "invalid")
		}
		for _, form := range []string{`{"settings":{"accent":null}}`, `{"settings":{"accent":7}}`, `{"settings":{"Accent":""}}`} {
			d.patchTenant(t, owner, form).fails(http.StatusBadRequest, "invalid_body")
		}
		d.patchTenant(t, owner, m{"name": "Acme"}).ok(http.StatusOK).is("settings.accent", "#ffd400")
		d.patchTenant(t, owner, settings("accent", "")).ok(http.StatusOK).is("settings.accent", "")
	})
}

// The mails of a tenant have its colour and logo, with the same address for all recipients, and the
// name beside a logo that is not wide. Those of a tenant without a logo have its monogram and name above the text,
// and mails about the account the name of the installation.
func TestMailsHaveTheBrand(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := acme.Owner.Token()
		path := d.setLogo(t, owner, "image/png", painted(200, 50, color.NRGBA{200, 30, 40, 255}))
		d.patchTenant(t, owner, m{"name": "Acme & <Sons>", "settings": m{"accent": "#ffd400"}}).ok(http.StatusOK)
		d.invite(t, acme.Owner, "ann@acme.example", "USER")
		mail := d.Mails("ann@acme.example")[0]
		for _, part := range []string{`<img src="` + d.base + path + `" alt="Acme &amp; &lt;Sons&gt;" width="192" height="48"`, "background:#7f6a00;color:#ffffff", `"></p>`} {
			if !strings.Contains(mail.HTML, part) {
				t.Errorf("no %s in\n%s", part, mail.HTML)
			}
		}
		if strings.Contains(mail.HTML, "ZgotmplZ") {
			t.Errorf("the template engine replaced an unsafe value:\n%s", mail.HTML)
		}
		d.send(t, "POST /api/v2/auth/change-password", m{"currentPassword": password, "password": "three old paper boats", "confirmPassword": "three old paper boats"}, as(owner)).ok(http.StatusNoContent)
		d.deliver(t)
		if notice := d.Mails(acme.Owner.Email)[0]; strings.Contains(notice.HTML, "<img") || strings.Contains(notice.HTML, "ffd400") || !strings.Contains(notice.HTML, `text-align:center">Doorward</p>`) {
			t.Errorf("a notice about the account has a brand, or no name:\n%s", notice.HTML)
		}
		d.setLogo(t, owner, "image/png", painted(50, 50, color.NRGBA{200, 30, 40, 255}))
		other := d.Tenant("Other")
		for tenant, want := range map[*doorwardtest.Tenant]string{acme: `">&nbsp; Acme &amp; &lt;Sons&gt;</p>`, other: `">O</td></tr></table></td>`} {
			address := fmt.Sprintf("bob%d@example.com", len(want))
			d.invite(t, tenant.Owner, address, "USER")
			if mail := d.Mails(address)[0]; !strings.Contains(mail.HTML, want) {
				t.Errorf("no %s in\n%s", want, mail.HTML)
			}
		}
	})
}

// An export contains the colour and the logo.
func TestExportOfTheBrand(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		d.setLogo(t, acme.Owner.Token(), "image/png", dot)
		d.patchTenant(t, acme.Owner.Token(), settings("accent", "#ffd400")).ok(http.StatusOK)
		var out bytes.Buffer
		if err := d.Node.App.Tenants.Export(t.Context(), doorward.OperatorAtTerminal(), acme.ID, false, &out); err != nil {
			t.Fatal(err)
		}
		var document struct {
			Tenant struct {
				Settings struct{ Accent string }
				Logo     struct {
					MediaType string
					Data      []byte
				}
			}
		}
		if err := json.Unmarshal(out.Bytes(), &document); err != nil {
			t.Fatal(err)
		}
		if got := document.Tenant; got.Settings.Accent != "#ffd400" || got.Logo.MediaType != "image/png" || !bytes.Equal(got.Logo.Data, dot) {
			t.Errorf("the export has %+v", got)
		}
	})
}

// initech is the option of an installation with that name, a colour and a logo.
func initech(t *testing.T, accent string) func(*node.Config) {
	t.Helper()
	logo, img, err := tenant.MakeLogo(dot)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *node.Config) {
		c.Brand = front.Brand{Name: "Initech", Brand: doorward.Brand{Accent: accent, Logo: logo}, Image: img}
	}
}

// Pages and mails of a tenant without a logo have its monogram, on its own colour alone, and never the
// installation's logo, whatever the tenant is called. A hostile name is one line of text.
func TestTenantWithoutALogo(t *testing.T) {
	t.Parallel()
	d := start(t, initech(t, "#00804c"))
	for i, c := range []struct{ name, letter, shown, mailed string }{
		{"Initech Security", "I", "Initech Security", "Initech Security"},
		{"<script>alert(1)</script>", "•", "&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;script&gt;alert(1)&lt;/script&gt;"},
		{strings.Repeat("w", doorward.MaxNameLength), "W", strings.Repeat("w", doorward.MaxNameLength), strings.Repeat("w", doorward.MaxNameLength)},
		{"\u200f\u200bevil.example", "E", "evil.example", "evil. example"},
		{"שלום", "ש", "שלום", "\u2068שלום\u2069"},
	} {
		own := d.Tenant(fmt.Sprint("Acme ", i))
		d.patchTenant(t, own.Owner.Token(), m{"name": c.name}).ok(http.StatusOK)
		address := fmt.Sprintf("ann%d@initech.example", i)
		check := func(state, page, mail string) {
			d.invite(t, own.Owner, state+address, "USER")
			for where, wants := range map[string][]string{
				d.pageHTML(t, "/console", as(own.Owner.Token())): {page + c.letter + "</span> <bdi>" + c.shown + "</bdi>"},
				d.Mails(state + address)[0].HTML:                 {mail + ";font:600 16px", `">` + c.letter + "</td>", `">` + c.mailed + "</td></tr></table>"},
			} {
				if strings.Contains(where, dotHash) || strings.Contains(where, `class="mark"`) {
					t.Errorf("%q has the logo of the installation:\n%s", c.name, where)
				}
				for _, want := range wants {
					if !strings.Contains(where, want) {
						t.Errorf("%q: no %s in\n%s", c.name, want, where)
					}
				}
			}
		}
		check("plain", `<span class="monogram" aria-hidden="true">`, "background:#e4e7ec;color:#14171f")
		d.patchTenant(t, own.Owner.Token(), settings("accent", "#ffd400")).ok(http.StatusOK)
		check("coloured", `<span class="monogram own" aria-hidden="true">`, "background:#7f6a00;color:#ffffff")
	}
	owner := d.Tenant("Acme").Owner.Token()
	for _, refused := range []string{strings.Repeat("w", 200), "Acme\u202eytiruceS", "a\nb"} {
		d.patchTenant(t, owner, m{"name": refused}).fails(http.StatusUnprocessableEntity, "validation_failed")
	}
}

// The logo of the installation is served like that of a tenant, and pages have it.
func TestLogoOfTheInstallation(t *testing.T) {
	t.Parallel()
	d := start(t, initech(t, "#3b4ccf"))
	if res, body := d.getImage(t, "/assets/logos/"+dotHash+".png"); res.StatusCode != http.StatusOK || !bytes.Equal(body, dot) {
		t.Errorf("the logo is %d, %d bytes", res.StatusCode, len(body))
	}
	page := d.pageHTML(t, "/login")
	if !strings.Contains(page, `src="/assets/logos/`+dotHash+`.png"`) || !strings.Contains(page, "<bdi>Initech</bdi>") || !strings.Contains(page, "/assets/accents/3b4ccf.css") {
		t.Errorf("the login has another brand:\n%s", page)
	}
}

// pageHTML returns a page as a browser gets it.
func (s *server) pageHTML(t *testing.T, path string, opts ...opt) string {
	t.Helper()
	return string(s.send(t, "GET "+path, nil, append(opts, with("Accept", "text/html"))...).ok(http.StatusOK).body)
}

// Without the database, setting, removing and reading a logo fail with 503, and never
// with 404.
func TestLogoWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	d := start(t)
	owner := d.Tenant("Acme").Owner.Token()
	if err := d.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	d.send(t, logoPath, string(dot), as(owner), typed("image/png")).fails(http.StatusServiceUnavailable, "unavailable")
	d.send(t, "DELETE /api/v2/tenant/logo", nil, as(owner)).fails(http.StatusServiceUnavailable, "unavailable")
	d.send(t, "GET /assets/logos/"+dotHash+".png", nil).fails(http.StatusServiceUnavailable, "unavailable")
}
