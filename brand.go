package doorward

import (
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

// Header is the top of a page or mail: a logo, a name, or both.
type Header struct {
	Logo
	Name string
}

// HeaderOf has the tenant's logo and name if the tenant has a logo, else those of the installation.
// A tenant's name without a logo would look like the name of the service; pages and mails show it
// elsewhere.
func HeaderOf(tenant Tenant, installation Brand, name string) Header {
	if tenant.Brand.Logo.Hash != "" {
		return Header{tenant.Brand.Logo, tenant.Name}
	}
	return Header{installation.Logo, name}
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
