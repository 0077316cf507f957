package doorward

import (
	"crypto/sha256"
	"encoding/hex"
)

// Brand is how a tenant presents itself to people, or an installation, besides
// its name. A zero value leaves what is above: the installation's, or ours.
type Brand struct {
	Accent string // a colour like "#3b4ccf"
	Logo   Logo
}

// Over returns the brand with the gaps filled by the one below it.
func (b Brand) Over(below Brand) Brand {
	if b.Accent == "" {
		b.Accent = below.Accent
	}
	if b.Logo == (Logo{}) {
		b.Logo = below.Logo
	}
	return b
}

// Logo is what is known of a logo besides its bytes, which are a PNG. The zero
// value is no logo.
type Logo struct {
	Hash          string // HashLogo of the bytes
	Width, Height int    // pixels
	Ground        string // "light" or "dark" if it vanishes on others, else empty
}

// The most that a logo is: what is sent, in bytes; and what is kept, scaled to
// fit, in pixels and bytes. The largest that a page shows is a quarter as wide
// and high, so it is sharp on every screen.
const (
	MaxLogoSent   = 256 << 10
	MaxLogoWidth  = 512
	MaxLogoHeight = 128
	MaxLogoKept   = 64 << 10
)

// HashLogo names a logo by its bytes: SHA-256, cut to 160 bits in hexadecimal.
// That nobody finds other bytes with the name of a logo needs no more, and the
// log takes what is longer for a token.
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

// Wordmark reports whether the logo is wide enough to be taken for the name
// itself, so that the name needn't stand beside it.
func (l Logo) Wordmark() bool { return l.Width >= 2*l.Height }
