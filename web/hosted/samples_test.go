package hosted

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// renderInto is where "make pages" puts every page, to be opened in a browser.
var renderInto = flag.String("render", "", "folder to write every page to")

// sample is a page in a state, with canned data.
type sample struct {
	name  string
	view  ui.View
	frame ui.Frame // what differs
}

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	acme = doorward.User{
		ID: "usr_ann", Email: "ann.lee@acme.example", Name: "Ann Lee", Role: doorward.RoleAdmin, Status: doorward.UserActive,
		TenantID: "tnt_acme", TenantName: "Acme", TenantStatus: doorward.TenantActive, CreatedAt: noon.AddDate(0, -7, 0),
	}
	globex = doorward.User{
		ID: "usr_ann", Email: acme.Email, Role: doorward.RoleViewer, Status: doorward.UserActive,
		TenantID: "tnt_globex", TenantName: "Globex Internationale Handelsgesellschaft mbH & Co. KG", TenantStatus: doorward.TenantActive,
		CreatedAt: noon.AddDate(0, -1, 0),
	}
	initech = doorward.User{
		ID: "usr_ann", Email: acme.Email, Role: doorward.RoleUser, Status: doorward.UserSuspended,
		TenantID: "tnt_initech", TenantName: "Initech", TenantStatus: doorward.TenantActive, CreatedAt: noon.AddDate(-1, 0, 0),
	}
	ann   = doorward.Caller{Session: doorward.Session{ID: "ses_1"}}.As(acme)
	token = "3q2-7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWc"
)

// drawn is a logo: a disc, and bars where the letters would be.
func drawn(width, height int) (l doorward.Logo, kept []byte) {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		x, y := i%width, i/width
		switch dx, dy := x-height/2, y-height/2; {
		case dx*dx+dy*dy < height*height/5:
			img.Set(x, y, color.NRGBA{214, 58, 47, 255})
		case x > height*6/5 && x < width-4 && y > height/4 && y < height*3/4 && (x/(height/4))%2 == 0:
			img.Set(x, y, color.NRGBA{24, 26, 34, 255})
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // into memory
	l, kept, _ = tenant.DrawLogo(out.Bytes())
	return l, kept
}

var (
	wordmark, wordmarkPNG = drawn(512, 128)
	sign, signPNG         = drawn(128, 128)
	// branded has a logo that is the name, signed one beside it, and a colour that
	// nobody could read as it is.
	branded = doorward.Tenant{Name: "Acme", Brand: doorward.Brand{Accent: "#d63a2f", Logo: wordmark}}
	signed  = doorward.Tenant{Name: globex.TenantName, Brand: doorward.Brand{Accent: "#ffd400", Logo: sign}}
)

func samples() []sample {
	shown := invite.Shown{
		Invitation: doorward.Invitation{Email: "ben@globex.example", Role: doorward.RoleUser, TenantID: "tnt_acme"},
		TenantName: "Acme", Inviter: "Ann Lee",
	}
	newcomer := invited{Shown: shown, Token: token, Shortest: 12, Words: identity(shown.Email, shown.TenantName)}
	member, self := newcomer, newcomer
	member.HasAccount, member.Other = true, "ann.lee@acme.example"
	self.HasAccount, self.Self, self.Inviter = true, true, ""
	refused := ui.Frame{
		Alert: true, Form: url.Values{"email": {"ann.lee@acme.example"}},
		Fault: "Address and password don’t match an account here. Check both and try again.",
	}
	faults := ui.Frame{Alert: true, Faults: map[string]string{
		"password": "The password needs at least 12 characters.", "confirmPassword": "This is not the same as above.",
	}}
	return append([]sample{
		{"login", ui.View{Page: "login"}, ui.Frame{Return: "/docs"}},
		{"login-refused", ui.View{Page: "login"}, refused},
		{"login-registered", ui.View{Page: "login", Done: "done.registered"}, ui.Frame{Form: refused.Form}},
		{"tenants", ui.View{Page: "tenants", Body: tenants{acme.Email, acme.TenantID, []doorward.User{acme, globex}}}, ui.Frame{}},
		{"forgot", ui.View{Page: "forgot"}, ui.Frame{}},
		{"sent", ui.View{Page: "sent"}, ui.Frame{}},
		{"code-reset", askCode("reset"), ui.Frame{}},
		{"code-accept", askCode("accept"), ui.Frame{}},
		{"reset", ui.View{Page: "reset", Body: resetting{token, acme.Email, 12, identity(acme.Email, "Acme")}}, ui.Frame{}},
		{"accept-new", ui.View{Page: "accept", Body: newcomer}, ui.Frame{}},
		{"accept-new-refused", ui.View{Page: "accept", Body: newcomer}, faults},
		{"accept-brand", ui.View{Page: "accept", Body: newcomer, Tenant: branded}, ui.Frame{}},
		{"accept-brand-sign", ui.View{Page: "accept", Body: newcomer, Tenant: signed}, ui.Frame{}},
		{"accept-member", ui.View{Page: "accept", Body: member}, ui.Frame{}},
		{"accept-self", ui.View{Page: "accept", Body: self}, ui.Frame{}},
		{"account", ui.View{Page: "account", Wide: true, Body: sampleAccount()}, ui.Frame{Caller: ann}},
		{"account-saved", ui.View{Page: "account", Wide: true, Body: sampleAccount(), Done: "done.name"}, ui.Frame{Caller: ann}},
		{"account-brand", ui.View{Page: "account", Wide: true, Body: sampleAccount(), Tenant: branded}, ui.Frame{Caller: ann}},
		{"leave", ui.View{Page: "leave", Body: acme}, ui.Frame{}},
		{"error", ui.View{Page: "error", Title: "error.title", Body: trouble}, ui.Frame{RequestID: "req_7d2c5tpae7kq2m5x3yh4n6rj7w"}},
		{"closing", ui.View{Page: "closing", Body: closing{doorward.Tenant{Name: "Acme"}, noon.AddDate(0, 0, 14), true}}, ui.Frame{}},
	}, overs()...)
}

// trouble is what the kit makes of a fault.
var trouble = struct {
	Title, Text          string
	Again, Support, Home bool
}{"One moment, please", "We can’t answer right now. Load the page again in 1 second.", true, true, false}

func overs() (all []sample) {
	for code, next := range map[doorward.Code]string{
		doorward.CodeResetExpired: "/forgot", doorward.CodeResetUsed: "/forgot",
		doorward.CodeInvitationUsed: "/login", doorward.CodeAlreadyMember: "/login",
		doorward.CodeInvitationExpired: "", doorward.CodeInvitationRevoked: "", doorward.CodeTenantFrozen: "", doorward.CodeTenantClosing: "",
	} {
		all = append(all, sample{"over-" + string(code), ended(code, next), ui.Frame{}})
	}
	return all
}

func sampleAccount() account {
	a := newAccount(ann, []doorward.User{acme, globex, initech}, []doorward.Session{
		{ID: "ses_2", TenantID: "tnt_globex", CreatedAt: noon.Add(-26 * time.Hour), LastSeenAt: noon.Add(-3 * time.Hour), IP: "2001:db8:4a1c:12::7f", UserAgent: "Mozilla/5.0 (iPhone) Version/18.0 Mobile Safari/604.1"},
		{ID: "ses_1", TenantID: "tnt_acme", CreatedAt: noon.Add(-time.Hour), LastSeenAt: noon, IP: "203.0.113.9", UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"},
		{ID: "ses_3", TenantID: "tnt_acme", CreatedAt: noon.Add(-9 * 24 * time.Hour), LastSeenAt: noon.Add(-8 * 24 * time.Hour), IP: "203.0.113.9", UserAgent: ""},
	})
	a.Shortest = 12
	return a
}

// TestPagesRender makes every page of canned data, in every language, without a
// server. With -render they stay.
func TestPagesRender(t *testing.T) {
	index := "<!doctype html><title>Pages</title><ul>"
	for _, l := range ui.Languages {
		for _, s := range samples() {
			f := s.frame
			f.View, f.Language, f.Brand, f.Now, f.Base = s.view, l, front.Brand{Name: "Doorward"}, noon, ""
			for _, other := range ui.Languages {
				c := ui.Choice{Language: other, Link: "?lang=" + other.Tag}
				if other == l {
					c.Link = ""
				}
				f.Languages = append(f.Languages, c)
			}
			var page bytes.Buffer
			if err := set.Render(&page, f); err != nil {
				t.Errorf("%s in %s: %v", s.name, l.Tag, err)
				continue
			}
			name := l.Tag + "-" + s.name + ".html"
			keep(t, name, page.String())
			index += `<li><a href="` + name + `">` + name + "</a>"
		}
	}
	keep(t, "index.html", index)
}

// keep writes the page so that a browser finds its style beside it.
func keep(t *testing.T, name, page string) {
	t.Helper()
	if *renderInto == "" {
		return
	}
	page = strings.NewReplacer(`="/assets/`, `="assets/`, `href="?lang=de"`, `href="de-`+name[3:]+`"`, `href="?lang=en"`, `href="en-`+name[3:]+`"`).Replace(page)
	write(t, name, []byte(page))
	for _, folder := range []string{"assets", "../ui/assets"} {
		names, err := fs.Glob(os.DirFS(folder), "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, asset := range names {
			body, err := os.ReadFile(filepath.Join(folder, asset))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join("assets", asset), body)
		}
	}
	write(t, wordmark.Path(), wordmarkPNG)
	write(t, sign.Path(), signPNG)
	for _, accent := range []string{branded.Brand.Accent, signed.Brand.Accent} {
		write(t, "assets/accents/"+accent[1:]+".css", []byte(ui.AccentSheet(accent)))
	}
}

func write(t *testing.T, name string, body []byte) {
	t.Helper()
	path := filepath.Join(*renderInto, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPasswordFields: a password is typed unseen and may be pasted or filled in by
// a password manager, which is told which password is meant; there is no hint
// and no secret question. A field for an address says so as well; one that nobody
// types in is there for the password manager alone.
func TestPasswordFields(t *testing.T) {
	input := regexp.MustCompile(`<input [^>]*>`)
	wants := map[string]string{
		`name="password"`: ` type="password"`, `name="confirmPassword"`: ` type="password"`, `name="currentPassword"`: ` type="password"`, `name="email"`: ` type="email"`,
	}
	seen := map[string]int{}
	for _, s := range samples() {
		var page bytes.Buffer
		f := s.frame
		f.View, f.Language, f.Brand, f.Now = s.view, ui.Languages[0], front.Brand{Name: "Doorward"}, noon
		if err := set.Render(&page, f); err != nil {
			t.Fatal(err)
		}
		for _, field := range input.FindAllString(page.String(), -1) {
			for name, kind := range wants {
				if !strings.Contains(field, name) || strings.Contains(field, `type="hidden"`) || strings.Contains(field, "readonly") {
					continue
				}
				seen[name]++
				if !strings.Contains(field, kind) || !strings.Contains(field, ` autocomplete="`) || strings.Contains(field, ` autocomplete="off"`) {
					t.Errorf("%s: %s isn't fit for a password manager", s.name, field)
				}
			}
		}
		if strings.Contains(page.String(), "onpaste") {
			t.Errorf("%s hinders pasting", s.name)
		}
	}
	if len(seen) < len(wants) {
		t.Errorf("looked at %v only", seen)
	}
}
