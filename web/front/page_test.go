package front

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Two versions serve one list while nodes are replaced, and the newer one knows
// one filter more: the cursors of either are good at the other, unless it is used.
func TestAFilterMoreLeavesCursorsAlone(t *testing.T) {
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
