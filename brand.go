package doorward

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode"
)

// Brand is the appearance of a tenant or an installation, besides its name. Zero values mean
// those of the installation, or the default.
type Brand struct {
	Accent string // a colour like "#3b4ccf"
	Logo   Logo
}

// DefaultAccent is the colour of pages and mails without a brand, as in web/ui/assets/ui.css.
const DefaultAccent = "#3b4ccf"

// Header is the top of a page or mail: a logo, a monogram or Doorward's mark, then a name. All of it is of one
// owner, the tenant or the installation.
type Header struct {
	Logo
	Monogram Monogram // of a tenant without a logo; zero: none
	Mark     bool     // the installation has no logo, so pages draw Doorward's mark
	Alt      string   // the text of a logo that contains the name; empty if the name is beside it
	Name     string   // the text beside the logo; empty if the logo contains it
}

// HeaderOf returns the header of the tenant, or that of the installation with that name for the zero tenant.
// A logo that is wide enough to contain its owner's name stands alone.
//
// A tenant never has the logo of the installation: anybody can name a tenant "Doorward Security", which
// beside that logo would seem to speak for the installation.
func HeaderOf(tenant Tenant, installation Brand, name string) Header {
	h, ofTenant := Header{Logo: installation.Logo, Name: name}, tenant.Name != ""
	if ofTenant {
		h.Logo, h.Name = tenant.Brand.Logo, tenant.Name
	}
	switch {
	case h.Hash == "" && ofTenant:
		h.Monogram = MonogramOf(tenant)
	case h.Hash == "":
		h.Mark = true
	case h.IsWordmark():
		h.Alt, h.Name = h.Name, ""
	}
	return h
}

// Monogram is what stands for a tenant in place of a logo: the first letter of its name.
type Monogram struct {
	Letter string // see Initial
	Colour string // the tenant's own, like "#3b4ccf"; empty: a neutral one, not the installation's
}

// MonogramOf returns the monogram of a tenant.
func MonogramOf(t Tenant) Monogram { return Monogram{Initial(t.Name), t.Brand.Accent} }

// noInitial is the sign of names that begin with no letter.
const noInitial = "•"

// maxMarks are the marks that Initial keeps: a vowel and a tone, as in Thai. More of them would cover what is
// above and below.
const maxMarks = 2

// Initial returns the letter or digit with which a name begins, as a title has it ("É" for "école"), with
// the marks on it; "•" if the name begins with something else, such as an emoji.
func Initial(name string) string {
	text := []rune(CleanName(name))
	if len(text) == 0 || !unicode.IsLetter(text[0]) && !unicode.IsDigit(text[0]) {
		return noInitial
	}
	end := 1
	for end < len(text) && end <= maxMarks && unicode.In(text[end], unicode.Mn, unicode.Mc) && !unicode.Is(unicode.Variation_Selector, text[end]) {
		end++
	}
	text[0] = unicode.ToTitle(text[0])
	return string(text[:end])
}

// Logo describes a logo, a PNG. The zero value is no logo.
type Logo struct {
	Hash          string // HashLogo of the bytes
	Width, Height int    // pixels
	Background    string // "light" or "dark" if it is invisible on the other, else empty
}

// Limits of a logo: the upload, in bytes; the stored image, scaled to fit, in
// pixels and bytes. Pages show it at a quarter of this width and height at most, so
// it is sharp on every screen.
const (
	MaxLogoSent   = 256 << 10
	MaxLogoWidth  = 512
	MaxLogoHeight = 128
	MaxLogoStored = 64 << 10
)

// HashLogo returns the name of a logo: the SHA-256 of its bytes, cut to 160 bits, in
// hexadecimal. That is enough against collisions, and the log redacts longer names as tokens.
func HashLogo(png []byte) string {
	sum := sha256.Sum256(png)
	return hex.EncodeToString(sum[:20])
}

// IsLogoHash reports whether the text has the form of a HashLogo.
func IsLogoHash(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 20 && hex.EncodeToString(raw) == text
}

// Path is where the pages serve the logo, below the base URL; the bytes at a path
// never change.
func (l Logo) Path() string { return "/assets/logos/" + l.Hash + ".png" }

// IsWordmark reports whether the logo is so wide that it probably contains the name,
// which pages then don't show beside it.
func (l Logo) IsWordmark() bool { return l.Width >= 2*l.Height }
