package storetest

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// oneInstant: everything written by one transaction bears the same time, even
// if the clock goes on meanwhile.
func oneInstant(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	inv := w.invitation(acme, "bob@acme.example")
	began := w.clock.move(time.Second)
	w.write(func(tx *store.Tx) {
		same(w, began)(tx.Now, nil)
		w.clock.move(time.Hour)
		ok(w, tx.InsertEvent(ctx, doorward.Event{ID: "evt_1", At: noon}))
		w.clock.move(time.Hour)
		yes(w)(tx.RecordLogin(ctx, acme.ID, ann.ID))
		yes(w)(tx.AcceptInvitation(ctx, inv.ID))
		ok(w, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", ""))
		same(w, began)(tx.Now, nil)
	})
	event, err := Events(ctx, w.Read(), "")
	ok(w, err)
	inv, err = w.Read().Invitation(ctx, inv.ID)
	ok(w, err)
	ann, err = w.Read().User(ctx, acme.ID, ann.ID)
	ok(w, err)
	mail := w.due()[0]
	for _, when := range []time.Time{event[0].At, *inv.AcceptedAt, *ann.LastLoginAt, mail.CreatedAt, mail.NextAt} {
		same(w, began)(when, nil)
	}
}

// allOrNothing: what a transaction that fails has written is nowhere, and its
// error comes back as it is.
func allOrNothing(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	before := w.picture()
	refusal := doorward.Fail(doorward.CodeLastOwner, "")
	half := func(tx *store.Tx) {
		ok(w, tx.InsertTenant(ctx, doorward.Tenant{ID: "tnt_x", CreatedAt: noon}))
		yes(w)(tx.SetUserRole(ctx, acme.ID, ann.ID, doorward.RoleViewer))
		yes(w)(tx.DeleteMembership(ctx, acme.ID, ann.ID))
		ok(w, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", ""))
		none(w)(tx.User(ctx, acme.ID, ann.ID)) // it sees what it has written itself
	}
	runs := 0
	err := w.try(ctx, func(tx *store.Tx) error { runs++; half(tx); return refusal })
	if err != error(refusal) || runs != 1 {
		w.Errorf("got %v after %d runs: want the function's own error after one", err, runs)
	}
	same(w, before)(w.picture(), nil)

	// A fault after half of it, and a panic.
	err = w.try(ctx, func(tx *store.Tx) error {
		half(tx)
		return tx.InsertTenant(ctx, acme) // the id is taken
	})
	unavailable(w, err)
	same(w, before)(w.picture(), nil)
	func() {
		defer func() { _ = recover() }()
		_ = w.try(ctx, func(tx *store.Tx) error { half(tx); panic("a defect") })
	}()
	same(w, before)(w.picture(), nil)
}

// picture is everything that a failed transaction could have changed.
func (w *world) picture() []any {
	w.Helper()
	ctx := w.Context()
	tenants, err := w.Read().Tenants(ctx)
	ok(w, err)
	users, err := w.Read().AllUsers(ctx)
	ok(w, err)
	return []any{tenants, users, w.due()}
}

// conflictSpoilsNothing: a row that is there already is an answer, not an
// error; PostgreSQL would refuse every statement after an error.
func conflictSpoilsNothing(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	inv := w.invitation(acme, "bob@acme.example")
	bucket := func(tx *store.Tx) { _, err := tx.HitThrottle(ctx, "ann", day); ok(w, err) }
	w.write(bucket)
	w.write(func(tx *store.Tx) {
		no(w)(tx.InsertAccount(ctx, doorward.Account{ID: "usr_x", Email: ann.Email, CreatedAt: noon}))
		no(w)(tx.InsertMembership(ctx, ann))
		no(w)(tx.InsertInvitation(ctx, w.draft(acme, inv.Email)))
		bucket(tx)
		none(w)(tx.Tenant(ctx, "tnt_none"))
		ok(w, tx.InsertTenant(ctx, doorward.Tenant{ID: "tnt_after", Name: "after", CreatedAt: noon}))
	})
	same(w, doorward.Tenant{ID: "tnt_after", Name: "after", CreatedAt: noon})(w.Read().Tenant(ctx, "tnt_after"))
}

func mailWakes(w *world) {
	ctx := w.Context()
	awake := func() bool {
		select {
		case <-w.MailQueued():
			return true
		default:
			return false
		}
	}
	queue := func(tx *store.Tx) error { return tx.QueueMail(ctx, store.MailReset, "ann@acme.example", "") }
	w.write(func(tx *store.Tx) { ok(w, queue(tx)); same(w, false)(awake(), nil) })
	same(w, true)(awake(), nil)
	same(w, false)(awake(), nil)
	_ = w.try(ctx, func(tx *store.Tx) error { ok(w, queue(tx)); return errors.New("no") })
	same(w, false)(awake(), nil)
	w.write(func(tx *store.Tx) { ok(w, tx.DeleteMail(ctx, "msg_none")) })
	same(w, false)(awake(), nil)
	for range 3 { // with nobody listening nothing blocks
		w.write(func(tx *store.Tx) { ok(w, queue(tx)) })
	}
	same(w, true)(awake(), nil)
	same(w, false)(awake(), nil)
}

// crossingLocks: two transactions take two locks in opposite order. Where both
// run at once one of them is aborted for the other's sake, and runs again.
func crossingLocks(w *world) {
	ctx := w.Context()
	tenants := []string{w.tenant("Acme").ID, w.tenant("Zeta").ID}
	var met sync.WaitGroup
	met.Add(2)
	var runs atomic.Int64
	errs := together(2, func(i int) error {
		first := sync.OnceFunc(func() {
			met.Done()
			if w.Engine() != "sqlite" { // which lets one in at a time
				met.Wait()
			}
		})
		return w.try(ctx, func(tx *store.Tx) error {
			runs.Add(1)
			if err := tx.LockTenant(ctx, tenants[i]); err != nil {
				return err
			}
			first()
			if err := tx.LockTenant(ctx, tenants[1-i]); err != nil {
				return err
			}
			return tx.InsertEvent(ctx, doorward.Event{ID: "evt_" + strconv.Itoa(i)})
		})
	})
	ok(w, errors.Join(errs...))
	all, err := Events(ctx, w.Read(), "")
	same(w, 2)(len(all), err)
	if w.Engine() != "sqlite" && runs.Load() < 3 {
		w.Errorf("%d runs: nothing was aborted, so nothing was tested", runs.Load())
	}
}

func closedDatabase(w *world) {
	w.tenant("Acme")
	ok(w, w.Close())
	Broken(w, w.DB)
	unavailable(w, w.Ping(w.Context()))
	unavailable(w, w.CheckSchema(w.Context()))
	_, err := w.ClockDrift(w.Context())
	unavailable(w, err)
}

// Broken wants every query of the database and every statement of a transaction
// to fail as a fault of ours.
func Broken(t testing.TB, db *store.DB) {
	t.Helper()
	queries, ctx := reflect.ValueOf(db.Read()), t.Context()
	for m := range queries.Type().Methods() {
		isFault(t, m.Name, call(ctx, queries.MethodByName(m.Name)))
	}
	for m := range reflect.TypeFor[*store.Tx]().Methods() {
		if m.Type.NumOut() == 0 { // says how the transaction is run, and runs nothing
			continue
		}
		_, err := db.Write(ctx, func(tx *store.Tx) error { return call(ctx, reflect.ValueOf(tx).MethodByName(m.Name)) })
		isFault(t, m.Name, err)
	}
}

// call calls a method with the context and values that say nothing, and returns
// its error.
func call(ctx context.Context, method reflect.Value) error {
	var args []reflect.Value
	for in := range method.Type().Ins() {
		switch {
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(ctx))
		case in.Kind() == reflect.Slice:
			args = append(args, reflect.MakeSlice(in, 1, 1))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	results := method.Call(args)
	if len(results) == 0 {
		return nil
	}
	err, _ := results[len(results)-1].Interface().(error)
	return err
}

// cancelledRequest: whoever hangs up in the middle, at whichever statement, has
// done nothing.
func cancelledRequest(w *world) {
	gone, cancel := context.WithCancel(w.Context())
	cancel()
	queries := reflect.ValueOf(w.Read())
	for m := range queries.Type().Methods() {
		isFault(w, m.Name, call(gone, queries.MethodByName(m.Name)))
	}
	unavailable(w, w.try(gone, func(*store.Tx) error { w.Error("it got in"); return nil }))
	unavailable(w, w.Ping(gone))

	before := w.picture()
	hangUp := func(last func(ctx context.Context, tx reflect.Value) error) error {
		ctx, cancel := context.WithCancel(w.Context())
		return w.try(ctx, func(tx *store.Tx) error {
			ok(w, tx.InsertTenant(ctx, doorward.Tenant{ID: "tnt_half", CreatedAt: noon}))
			cancel()
			return last(ctx, reflect.ValueOf(tx))
		})
	}
	for m := range reflect.TypeFor[*store.Tx]().Methods() {
		if m.Type.NumOut() == 0 { // says how the transaction is run, and runs nothing
			continue
		}
		err := hangUp(func(ctx context.Context, tx reflect.Value) error { return call(ctx, tx.MethodByName(m.Name)) })
		isFault(w, m.Name, err)
	}
	unavailable(w, hangUp(func(context.Context, reflect.Value) error { return nil })) // just before the commit
	same(w, before)(w.picture(), nil)
	w.tenant("Acme") // and the connection is of use again
}
