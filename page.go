package doorward

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Position is a place in a list: that of the row with this number (an instant
// in Unix microseconds, or a sequence) and id. The zero Position is the
// beginning.
type Position struct {
	At int64
	ID string
}

// Window is the part of a list that is asked for.
type Window struct {
	After Position
	Limit int // rows at most
}

// Page is the part of a list that is given.
type Page[T any] struct {
	Items []T
	Next  *Position // where the list goes on; nil at its end
}

// version names a state by what it consists of, so that equal states have equal
// names and no column has to count.
func version(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", parts))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
