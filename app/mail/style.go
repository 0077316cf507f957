package mail

import (
	"cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/colour"
)

// style is what the HTML of a mail takes from a brand. In dark mode, mail programs keep all
// colours or invert all. So the button sets its text and its background, and the mail leaves
// its own background to the program.
type style struct {
	Accent, OnAccent string
	Logo             *mailLogo     // nil: none
	Monogram         *mailMonogram // nil: none
	Name             string        // beside the logo or the monogram, or alone; empty: none
}

// mailMonogram is a doorward.Monogram: a cell of a table, since mail programs load images only on request.
type mailMonogram struct{ Letter, Text, Background string }

type mailLogo struct {
	URL, Name     string // Name is what is shown if the image isn't
	Width, Height int    // as shown
	Background    string
}

// brand is the appearance of an installation.
type brand struct {
	doorward.Brand
	name string
}

var defaultStyle = styleWith(doorward.DefaultAccent)

// styleWith returns the style with an accent, darkened until it can be read on white, or with
// doorward.DefaultAccent if the accent is no colour.
func styleWith(accent string) style {
	c, ok := colour.Parse(accent)
	if !ok {
		c = colour.Must(doorward.DefaultAccent)
	}
	fitted, _ := colour.Light.Fit(c)
	return style{Accent: fitted.String(), OnAccent: colour.TextOn(fitted).String()}
}

// styleOf returns the style of a tenant, or of the installation for the zero tenant, with the header
// of pages. A logo has one URL for all recipients, so that loading it identifies nobody.
func (m *Mail) styleOf(t doorward.Tenant) style {
	own := m.brand.Load()
	s := styleWith(cmp.Or(t.Brand.Accent, own.Accent))
	header := doorward.HeaderOf(t, own.Brand, own.name)
	s.Monogram = s.monogramOf(header.Monogram)
	if s.Name = unlinked(header.Name); header.Hash == "" {
		return s
	}
	s.Logo = &mailLogo{URL: m.baseURL + header.Path(), Name: unlinked(header.Alt), Background: backgrounds[header.Background]}
	s.Logo.Width, s.Logo.Height = logoSize(header.Logo)
	return s
}

// monogramOf returns the monogram, on the colour of the button if that is the tenant's, else on a neutral one: --ink
// and --line of web/ui/assets/ui.css.
func (s style) monogramOf(t doorward.Monogram) *mailMonogram {
	switch {
	case t.Letter == "":
		return nil
	case t.Colour == "":
		return &mailMonogram{t.Letter, "#14171f", "#e4e7ec"}
	}
	return &mailMonogram{t.Letter, s.OnAccent, s.Accent}
}

// backgrounds are the colours behind logos that need one.
var backgrounds = map[string]string{"light": "#ffffff", "dark": "#171a21"}

// logoSize returns the size of a logo in a mail, in CSS pixels: at most 256 by 48.
func logoSize(l doorward.Logo) (width, height int) {
	height = min(l.Height, 48)
	width = max(1, l.Width*height/l.Height)
	if width > 256 {
		width, height = 256, max(1, l.Height*256/l.Width)
	}
	return width, height
}
