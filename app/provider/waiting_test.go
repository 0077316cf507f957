package provider

import (
	"strconv"
	"testing"
)

// TestPlacesOfWaiting: one client takes not all places of its connection, nor that one all of the node, and all are given
// back.
func TestPlacesOfWaiting(t *testing.T) {
	var w waiting
	var leaves []func()
	fill := func(con string, client func(int) string) (n int) {
		for {
			leave, ok := w.enter(con, client(n))
			if !ok {
				return n
			}
			leaves = append(leaves, leave)
			n++
		}
	}
	one := func(client string) func(int) string { return func(int) string { return client } }
	if n := fill("con_a", one("192.0.2.1")); n != 86 {
		t.Errorf("one client takes %d places, want a third", n)
	}
	if n := fill("con_a", one("192.0.2.2")); n == 0 {
		t.Error("one client leaves no place to another of its connection")
	}
	fill("con_a", strconv.Itoa) // each of another client
	if n := w.of["con_a"]; n != againWaiting/2 {
		t.Errorf("one connection takes %d places, want half of them", n)
	}
	for _, con := range []string{"con_b", "con_c", "con_d"} {
		if fill(con, one("192.0.2.1")) == 0 {
			t.Errorf("%s has no place", con)
		}
	}
	for _, leave := range leaves {
		leave()
	}
	if w.all != 0 || len(w.of) != 0 {
		t.Errorf("%d places are left taken, of %v", w.all, w.of)
	}
}
