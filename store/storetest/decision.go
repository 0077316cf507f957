package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// keptDecisions are read as they were kept, the newest first, within their tenant. They are
// deleted with their actor, with their tenant, and when they are old.
func keptDecisions(f *fixture) {
	ctx := f.Context()
	acme, other := f.tenant("Acme"), f.tenant("Other")
	gone := f.account("gone@example.com")
	var first, second store.KeptDecision
	keep := func(tenantID, actorID string, ago time.Duration) (k store.KeptDecision) {
		f.write(func(tx *store.Tx) {
			k = store.KeptDecision{
				ID: f.id(doorward.PrefixDecision), TenantID: tenantID, At: tx.Now.Add(-ago), Kind: doorward.ByUser, ActorID: actorID,
				Email: "b@acme.example", Role: doorward.RoleUser, AuthAt: tx.Now.Add(-time.Hour), Action: doorward.MessageSend, Granted: true,
				Request: doorward.Request{At: tx.Now, Now: tx.Now, Resource: &doorward.Resource{Type: "invoice", ID: "1", Attributes: map[string]any{"amount": json.Number("9007199254740993")}}},
				Refusal: &doorward.PolicyRefusal{PolicyID: "a", Reason: "No.", Line: 3, Version: 2, Needs: "ip"},
			}
			fits, err := tx.KeepDecision(ctx, k)
			equal(f, f.value(fits, err), true)
		})
		return k
	}
	read := func(tenantID string, since time.Time, before doorward.Position, limit int) (all []store.KeptDecision) {
		all, err := f.Read().Decisions(ctx, tenantID, since, before, limit)
		noError(f, err)
		return all
	}
	same := func(got []store.KeptDecision, want ...store.KeptDecision) {
		f.Helper()
		equal(f, texts(f, got), texts(f, want))
	}
	end := doorward.Position{At: f.Now().Add(time.Hour).UnixMicro()}
	first, second = keep(acme.ID, "usr_b", time.Minute), keep(acme.ID, gone.ID, time.Second)
	keep(other.ID, "usr_c", 0)
	keep("tnt_none", "usr_c", 0) // of a tenant that was destroyed
	same(read(acme.ID, time.Time{}, end, 10), second, first)
	same(read(acme.ID, first.At.Add(time.Microsecond), end, 10), second)
	same(read(acme.ID, time.Time{}, doorward.Position{At: second.At.UnixMicro(), ID: second.ID}, 10), first)
	same(read(acme.ID, time.Time{}, end, 1), second)
	equal(f, len(read("tnt_none", time.Time{}, end, 10)), 0)

	f.write(func(tx *store.Tx) {
		large := first
		large.Email = strings.Repeat("x", store.DecisionBytesMax)
		fits, err := tx.KeepDecision(ctx, large)
		equal(f, f.value(fits, err), false)
		noError(f, tx.DeleteAccount(ctx, gone))
	})
	same(read(acme.ID, time.Time{}, end, 10), first)
	ahead := keep(acme.ID, "usr_b", -2*store.ClockTolerance)
	f.write(func(tx *store.Tx) {
		n, err := tx.DropDecisions(ctx, first.At, 10) // those from before, and those of the future
		equal(f, f.value(n, err), int64(1))
	})
	same(read(acme.ID, time.Time{}, doorward.Position{At: ahead.At.UnixMicro() + 1}, 10), first)
	f.write(func(tx *store.Tx) {
		n, err := tx.DropDecisions(ctx, first.At.Add(time.Second), 10)
		equal(f, f.value(n, err), int64(1))
		n, err = tx.DropDecisionsOf(ctx, other.ID, 10)
		equal(f, f.value(n, err), int64(1))
	})
	equal(f, len(read(acme.ID, time.Time{}, end, 10))+len(read(other.ID, time.Time{}, end, 10)), 0)
}

// texts are the decisions as text, since netip.Addr can't be compared by go-cmp.
func texts(f *fixture, all []store.KeptDecision) (texts []string) {
	for _, k := range all {
		body, err := json.Marshal(k)
		noError(f, err)
		texts = append(texts, fmt.Sprint(k.ID, k.TenantID, k.ActorID, k.At.UnixMicro(), string(body)))
	}
	return texts
}
