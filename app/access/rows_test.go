package access

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// TestRefusedValuesHoldNothingBack: when PostgreSQL refuses a value, only its row is lost.
func TestRefusedValuesHoldNothingBack(t *testing.T) {
	h := newFixtureOn(t, dbtest.Postgres(t))
	long := "d" + manyDigits()
	wantCode(t, h.refuse(h.owner, "usr_a"), doorward.CodeForbidden)
	for _, subject := range []string{long, "c"} {
		h.inbox.earlier = append(h.inbox.earlier, store.InboxRow{Source: "s", Subject: subject, Minute: h.db.Now().Truncate(store.InboxMinute), Hits: 2})
	}
	if err := h.Inbox().Flush(h.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.hits(); got["c"] != 2 || len(got) != 2 || h.Inbox().Dropped() != 2 {
		t.Errorf("written %v, %d dropped", got, h.Inbox().Dropped())
	}
}

// manyDigits returns a text that is too long for an index, however it is compressed.
func manyDigits() string {
	var b strings.Builder
	for range 10_000 {
		b.WriteByte('0' + byte(rand.IntN(10)))
	}
	return b.String()
}
