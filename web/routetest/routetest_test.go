package routetest

import (
	"strings"
	"testing"
)

// A route without a row and a row without a route are both reported. An exact path goes before
// one with a parameter.
func TestGroup(t *testing.T) {
	samples := []Sample{{Request: "GET /users/usr_x?limit=1"}, {Request: "GET /users/bulk"}, {Request: "GET /gone"}}
	rows, faults := group(samples, []string{"GET /users/{id}", "GET /users/bulk", "POST /new"})
	if len(rows["GET /users/{id}"]) != 1 || len(rows["GET /users/bulk"]) != 1 {
		t.Errorf("the rows are %v", rows)
	}
	if len(faults) != 2 || !strings.HasPrefix(faults[0], "GET /gone: ") || !strings.HasPrefix(faults[1], "POST /new has no row: ") {
		t.Errorf("the faults are %q", faults)
	}
}
