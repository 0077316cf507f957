package mail

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/colour"
)

// look is what the HTML of a mail has of a brand. Programs that show mails keep
// to the colours they are told or turn them round whole, so the button says both
// of its own; the page behind is theirs.
type look struct {
	Accent, OnAccent string
	Logo             *mailLogo // nil: none
}

type mailLogo struct {
	URL, Name     string
	Width, Height int // as shown
	Ground        string
}

// usualAccent is the colour of buttons where nobody has chosen one.
const usualAccent = "#1f4fd8"

var plainLook = lookIn(usualAccent)

// lookIn is the look with an accent, darkened until it can be read on white.
func lookIn(accent string) look {
	c, ok := colour.Parse(accent)
	if !ok {
		c = colour.Must(usualAccent)
	}
	fitted, _ := colour.Light.Fit(c)
	return look{Accent: fitted.String(), OnAccent: colour.On(fitted).String()}
}

// lookOf is that of a tenant; of the zero one, that of the installation. An image
// has the same address for everybody who gets it, which tells nothing about them.
func (m *Mail) lookOf(t doorward.Tenant) look {
	brand := t.Brand.Over(m.brand)
	l := lookIn(brand.Accent)
	if brand.Logo.Hash == "" {
		return l
	}
	l.Logo = &mailLogo{URL: m.baseURL + brand.Logo.Path(), Ground: grounds[brand.Logo.Ground]}
	if brand.Logo == t.Brand.Logo {
		l.Logo.Name = oneLine(t.Name)
	}
	l.Logo.Width, l.Logo.Height = shown(brand.Logo)
	return l
}

// grounds are the colours behind logos that need one.
var grounds = map[string]string{"light": "#ffffff", "dark": "#171a21"}

// shown is the size of a logo in a mail, in CSS pixels.
func shown(l doorward.Logo) (width, height int) {
	height = min(l.Height, 48)
	width = max(1, l.Width*height/l.Height)
	if width > 256 {
		width, height = 256, max(1, l.Height*256/l.Width)
	}
	return width, height
}
