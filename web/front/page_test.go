package front

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// During an upgrade two versions serve one list, and the newer has one more filter:
// the cursors of each are valid at the other unless that filter is used.
func TestNewFilterKeepsCursorsValid(t *testing.T) {
	older := []Parameter{{Name: "status"}, {Name: "q"}}
	newer := append([]Parameter{{Name: "label"}}, older...)
	for query, same := range map[string]bool{"": true, "status=active&label=": true, "status=active&label=red": false} {
		r := httptest.NewRequest(http.MethodGet, "/x?"+query, nil)
		a, b := (&Call{R: r, query: older}).filters(), (&Call{R: r, query: newer}).filters()
		if (a == b) != same {
			t.Errorf("%q: a cursor is bound to %q by the older version and to %q by the newer", query, a, b)
		}
	}
}
