package mail

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/colour"
)

// style is what the HTML of a mail takes from a brand. Mail programs keep colours or
// invert them together, so the button sets both of its own; the background is theirs.
type style struct {
	Accent, OnAccent string
	Logo             *mailLogo // nil: none
}

type mailLogo struct {
	URL, Name     string
	Width, Height int // as shown
	Background    string
}

// defaultAccent is the colour of buttons without a brand.
const defaultAccent = "#1f4fd8"

var defaultStyle = styleWith(defaultAccent)

// styleWith is the style with an accent, darkened until it can be read on white.
func styleWith(accent string) style {
	c, ok := colour.Parse(accent)
	if !ok {
		c = colour.Must(defaultAccent)
	}
	fitted, _ := colour.Light.Fit(c)
	return style{Accent: fitted.String(), OnAccent: colour.On(fitted).String()}
}

// styleOf returns the style of a tenant, or of the installation for the zero tenant. A
// logo has one URL for all recipients, so that loading it identifies nobody.
func (m *Mail) styleOf(t doorward.Tenant) style {
	brand := t.Brand.Over(*m.brand.Load())
	s := styleWith(brand.Accent)
	if brand.Logo.Hash == "" {
		return s
	}
	s.Logo = &mailLogo{URL: m.baseURL + brand.Logo.Path(), Background: backgrounds[brand.Logo.Background]}
	if brand.Logo == t.Brand.Logo {
		s.Logo.Name = oneLine(t.Name)
	}
	s.Logo.Width, s.Logo.Height = logoSize(brand.Logo)
	return s
}

// backgrounds are the colours behind logos that need one.
var backgrounds = map[string]string{"light": "#ffffff", "dark": "#171a21"}

// logoSize is the size of a logo in a mail, in CSS pixels.
func logoSize(l doorward.Logo) (width, height int) {
	height = min(l.Height, 48)
	width = max(1, l.Width*height/l.Height)
	if width > 256 {
		width, height = 256, max(1, l.Height*256/l.Width)
	}
	return width, height
}
