package provider

import (
	"crypto/sha256"
	"encoding/base64"
)

// SessionOf returns what is kept of a provider's session (its claim sid), doorward.Assurance.ProviderSession: a hash,
// since providers may write anything there, of any length. Empty stays empty.
func SessionOf(sid string) string {
	if sid == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(sid))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
