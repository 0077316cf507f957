package access

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// TestRefusedValuesHoldNothingBack: when PostgreSQL refuses a value, only its row is lost.
func TestRefusedValuesHoldNothingBack(t *testing.T) {
	h := newFixtureOn(t, dbtest.Postgres(t))
	h.prepare(func(tx *store.Tx) error {
		return tx.InsertPolicy(h.Context(), store.PolicyVersion{TenantID: tenantID, Version: 1, Mode: store.PolicyObserves})
	})
	nul, long := "b\x00", "d"+manyDigits()
	for _, id := range []string{"a", nul, "c", long, "e"} {
		h.decisions.add(store.ObservedPolicy{TenantID: tenantID, Version: 1, PolicyID: id}, 2)
	}
	if err := h.decisions.Flush(h.Context()); err != nil {
		t.Fatal(err)
	}
	observed, err := h.db.Read().ObservedCounts(h.Context(), tenantID, 1)
	if err != nil || !maps.Equal(observed, map[string]int64{"a": 2, "c": 2, "e": 2}) || h.decisions.Dropped() != 4 {
		t.Errorf("observed %v, %d dropped, %v", observed, h.decisions.Dropped(), err)
	}

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

var errBroken = errors.New("broken")

// TestWriteRows: what is not written is returned once, and nothing is written twice.
func TestWriteRows(t *testing.T) {
	var written []int
	write := func(rows []int) error {
		if slices.Contains(rows, 7) {
			return errBroken
		}
		written = append(written, rows...)
		return nil
	}
	unwritten, err := writeRows([]int{1, 2, 3, 4, 5, 6, 7, 8}, 3, write, nil)
	if !errors.Is(err, errBroken) || !slices.Equal(unwritten, []int{7, 8}) || !slices.Equal(written, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("written %v, unwritten %v, %v", written, unwritten, err)
	}
}
