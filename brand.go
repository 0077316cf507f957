package doorward

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
)

// Brand is the appearance of a tenant or an installation, besides its name. Zero values mean
// those of the installation, or the default.
type Brand struct {
	Accent string // a colour like "#3b4ccf"
	Logo   Logo
}

// DefaultAccent is the colour of pages and mails without a brand, as in web/ui/assets/ui.css.
const DefaultAccent = "#3b4ccf"

// Header is the top of a page or mail: a logo, a name, or both in this order.
type Header struct {
	Logo
	Alt  string // what the logo says that Name doesn't: whose it is, or empty
	Name string // the text beside the logo; empty if the logo contains it
	Mark bool   // neither a tenant's nor an installation's logo is known, so pages draw Doorward's own
}

// HeaderOf has the logo and the name of the tenant. Without a logo of its own the tenant has that of the
// installation, whose name is then the text of the image. For the zero tenant it has those of the
// installation, which name is of. A logo that is wide enough to contain its owner's name stands alone.
func HeaderOf(tenant Tenant, installation Brand, name string) Header {
	owner := name // of the logo
	if tenant.Brand.Logo.Hash != "" {
		owner = tenant.Name
	}
	h := Header{Logo: tenant.Brand.WithDefaults(installation).Logo, Name: cmp.Or(tenant.Name, name)}
	switch {
	case h.Hash == "":
		h.Mark = tenant.Name == ""
	case h.Name != owner:
		h.Alt = owner
	case h.IsWordmark():
		h.Alt, h.Name = owner, ""
	}
	return h
}

// WithDefaults returns the brand with its zero values replaced by those of defaults.
func (b Brand) WithDefaults(defaults Brand) Brand {
	if b.Accent == "" {
		b.Accent = defaults.Accent
	}
	if b.Logo == (Logo{}) {
		b.Logo = defaults.Logo
	}
	return b
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
