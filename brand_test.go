package doorward_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/doorward/doorward"
)

// The header names the tenant wherever one is known. A logo has the name of its owner beside it, unless it
// contains it. A tenant never has the installation's logo or Doorward's mark, whatever it is called.
func TestHeaderOf(t *testing.T) {
	wide, square := doorward.Logo{Hash: "wide", Width: 400, Height: 80}, doorward.Logo{Hash: "square", Width: 80, Height: 80}
	acme := func(logo doorward.Logo) doorward.Tenant {
		return doorward.Tenant{Name: "Acme", Brand: doorward.Brand{Logo: logo}}
	}
	named := func(name string) doorward.Tenant {
		return doorward.Tenant{Name: name, Brand: doorward.Brand{Accent: "#d63a2f"}}
	}
	var nobody doorward.Tenant
	var none doorward.Logo
	for name, c := range map[string]struct {
		tenant doorward.Tenant
		own    doorward.Logo // of the installation
		want   doorward.Header
	}{
		"neither":                               {nobody, none, doorward.Header{Name: "Initech", Mark: true}},
		"the installation's wide logo":          {nobody, wide, doorward.Header{Logo: wide, Alt: "Initech"}},
		"the installation's square logo":        {nobody, square, doorward.Header{Logo: square, Name: "Initech"}},
		"a tenant without a logo":               {acme(none), none, doorward.Header{Monogram: doorward.Monogram{Letter: "A"}, Name: "Acme"}},
		"a tenant by a wide logo":               {acme(none), wide, doorward.Header{Monogram: doorward.Monogram{Letter: "A"}, Name: "Acme"}},
		"a tenant by a square logo":             {acme(none), square, doorward.Header{Monogram: doorward.Monogram{Letter: "A"}, Name: "Acme"}},
		"a tenant with a colour":                {named("Globex"), square, doorward.Header{Monogram: doorward.Monogram{Letter: "G", Colour: "#d63a2f"}, Name: "Globex"}},
		"a tenant with a wide logo":             {acme(wide), square, doorward.Header{Logo: wide, Alt: "Acme"}},
		"a tenant with a square logo":           {acme(square), wide, doorward.Header{Logo: square, Name: "Acme"}},
		"a tenant named as the installation":    {named("Initech"), wide, doorward.Header{Monogram: doorward.Monogram{Letter: "I", Colour: "#d63a2f"}, Name: "Initech"}},
		"a tenant that seems to be its support": {named("Initech Security"), square, doorward.Header{Monogram: doorward.Monogram{Letter: "I", Colour: "#d63a2f"}, Name: "Initech Security"}},
	} {
		if got := doorward.HeaderOf(c.tenant, doorward.Brand{Accent: "#3b4ccf", Logo: c.own}, "Initech"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A monogram has one character, with its accents, in every script.
func TestInitial(t *testing.T) {
	for name, want := range map[string]string{
		"Acme": "A", "acme": "A", "école": "É", "e\u0301cole": "É", "ß": "ß", "ǆungla": "ǅ", "ილია": "ი", // Georgian has no capitals in titles
		"شركة": "ش", "שלום": "ש", "中文公司": "中", "株式会社": "株", "한국": "한", "\u1112\u1161\u11ab": "한", "ไทย": "ไ", "ที่": "ที่", "हिन्दी": "हि", "и\u0306од": "Й",
		"123": "1", "٣ أيام": "٣", "1️⃣ One": "1",
		"🚀 Rocket": "•", "👩🏽‍🚀": "•", "🇩🇪": "•", "(Acme)": "•", "@acme": "•", "½": "•", "<script>": "•", "\u0301x": "•", "": "•",
		"  acme": "A", "\u200f\u200bacme": "A", "\u202eacme": "•", "\u3164acme": "A", "\ufdfa": "\ufdfa",
		"x" + strings.Repeat("\u0300", 50): "X\u0300\u0300", strings.Repeat("w", 200): "W",
	} {
		got := doorward.Initial(name)
		if got != want {
			t.Errorf("%q begins with %q, want %q", name, got, want)
		}
		if n := utf8.RuneCountInString(got); n < 1 || n > 3 {
			t.Errorf("%q begins with %d characters", name, n)
		}
	}
}
