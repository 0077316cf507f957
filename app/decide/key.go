package decide

import (
	"time"

	"github.com/doorward/doorward"
)

// KeyCause is why an API key is not valid. It is recorded in the trail; callers don't see it.
type KeyCause string

// The causes of an invalid key.
const (
	KeyUnknown  KeyCause = "unknown"
	KeyRevoked  KeyCause = "revoked"
	KeyExpired  KeyCause = "expired"
	KeyRotated  KeyCause = "rotated" // a newer secret has replaced this one
	KeyDisabled KeyCause = "disabled"
	KeyOwner    KeyCause = "owner" // the owner is not an active member
)

// KeyRefusal returns why a secret of an API key is not valid at now; empty if it is valid.
// secretEndsAt is nil for the key's current secret.
func KeyRefusal(k *doorward.APIKey, secretEndsAt *time.Time, now time.Time) KeyCause {
	switch status := k.StatusAt(now); {
	case status == doorward.APIKeyExpired:
		return KeyExpired
	case status == doorward.APIKeyDisabled:
		return KeyDisabled
	case status != doorward.APIKeyActive:
		return KeyRevoked // or a status of a newer version
	case secretEndsAt != nil && !now.Before(*secretEndsAt):
		return KeyRotated
	case k.OwnerRole == "":
		return KeyOwner
	}
	return ""
}
