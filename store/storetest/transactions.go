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

// nested: what fails in a transaction is taken back, also around what has failed before, and the rest stays.
func nested(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	rename := func(tx *store.Tx, name string, err error) error {
		acme.Name = name
		return tx.Nested(ctx, func() error { return errors.Join(tx.EditTenant(ctx, acme), err) })
	}
	failure := errors.New("failure")
	f.write(func(tx *store.Tx) {
		noError(f, rename(tx, "Globex", nil))
		equal(f, errors.Is(rename(tx, "Initech", failure), failure), true)
		outer := tx.Nested(ctx, func() error {
			noError(f, rename(tx, "Umbrella", nil))
			equal(f, errors.Is(rename(tx, "Hooli", failure), failure), true)
			return failure
		})
		equal(f, errors.Is(outer, failure), true)
	})
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)).(doorward.Tenant).Name, "Globex")
}

// oneInstant: all rows written by a transaction have the same time, even if the
// clock advances.
func oneInstant(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	inv := f.invitation(acme, "bob@acme.example")
	began := f.clock.move(time.Second)
	f.write(func(tx *store.Tx) {
		equal(f, tx.Now, began)
		f.clock.move(time.Hour)
		noError(f, tx.InsertEvent(ctx, doorward.Event{ID: "evt_1", At: noon}))
		f.clock.move(time.Hour)
		f.wantChange(tx.RecordLogin(ctx, acme.ID, ann.ID))
		f.wantChange(tx.AcceptInvitation(ctx, inv.ID))
		noError(f, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", ""))
		equal(f, tx.Now, began)
	})
	events, err := Events(ctx, f.Read(), "")
	noError(f, err)
	inv, err = f.Read().Invitation(ctx, inv.ID)
	noError(f, err)
	ann, err = f.Read().User(ctx, acme.ID, ann.ID)
	noError(f, err)
	mail := f.due()[0]
	for _, when := range []time.Time{events[0].At, *inv.AcceptedAt, *ann.LastLoginAt, mail.CreatedAt, mail.NextAt} {
		equal(f, when, began)
	}
}

// allOrNothing: a failed transaction leaves no rows, and its error is returned
// unchanged.
func allOrNothing(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	before := f.state()
	refusal := doorward.Fail(doorward.CodeLastOwner, "")
	half := func(tx *store.Tx) {
		noError(f, tx.InsertTenant(ctx, doorward.Tenant{ID: "tnt_x", CreatedAt: noon}))
		f.wantChange(tx.SetUserRole(ctx, acme.ID, ann.ID, doorward.RoleViewer))
		f.wantChange(tx.DeleteMembership(ctx, acme.ID, ann.ID))
		noError(f, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", ""))
		f.wantNone(tx.User(ctx, acme.ID, ann.ID)) // the transaction sees its own writes
	}
	runs := 0
	err := f.try(ctx, func(tx *store.Tx) error { runs++; half(tx); return refusal })
	if err != error(refusal) || runs != 1 {
		f.Errorf("got %v after %d runs: want the function's own error after one", err, runs)
	}
	equal(f, f.state(), before)

	// A fault halfway, and a panic.
	err = f.try(ctx, func(tx *store.Tx) error {
		half(tx)
		return tx.InsertTenant(ctx, acme) // the id is taken
	})
	wantUnavailable(f, err)
	equal(f, f.state(), before)
	func() {
		defer func() { _ = recover() }()
		_ = f.try(ctx, func(tx *store.Tx) error { half(tx); panic("a defect") })
	}()
	equal(f, f.state(), before)
}

// triedWrites leave nothing behind.
func triedWrites(f *fixture) {
	before := f.value(f.Read().Vitals(f.Context(), f.clock.read()))
	noError(f, f.TryWrite(f.Context()))
	equal(f, f.value(f.Read().Vitals(f.Context(), f.clock.read())), before)
}

// state returns everything that a failed transaction could have changed.
func (f *fixture) state() []any {
	f.Helper()
	ctx := f.Context()
	tenants, err := allTenants(ctx, f.Read())
	noError(f, err)
	users, err := allUsers(ctx, f.Read())
	noError(f, err)
	return []any{tenants, users, f.due()}
}

// conflictSpoilsNothing: an existing row is a result, not an error; after an error
// PostgreSQL would refuse every statement.
func conflictSpoilsNothing(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	inv := f.invitation(acme, "bob@acme.example")
	hit := func(tx *store.Tx) { _, err := tx.HitThrottle(ctx, "ann", day); noError(f, err) }
	f.write(hit)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.InsertAccount(ctx, doorward.Account{ID: "usr_x", Email: ann.Email, CreatedAt: noon}))
		f.wantNoChange(tx.InsertMembership(ctx, ann))
		f.wantNoChange(tx.InsertInvitation(ctx, f.draft(acme, inv.Email)))
		hit(tx)
		f.wantNone(tx.Tenant(ctx, "tnt_none"))
		noError(f, tx.InsertTenant(ctx, doorward.Tenant{ID: "tnt_after", Name: "after", CreatedAt: noon}))
	})
	equal(f, f.value(f.Read().Tenant(ctx, "tnt_after")), doorward.Tenant{ID: "tnt_after", Name: "after", CreatedAt: noon})
}

func mailWakes(f *fixture) {
	ctx := f.Context()
	awake := func() bool {
		select {
		case <-f.MailQueued():
			return true
		default:
			return false
		}
	}
	queue := func(tx *store.Tx) error { return tx.QueueMail(ctx, store.MailReset, "ann@acme.example", "") }
	f.write(func(tx *store.Tx) { noError(f, queue(tx)); equal(f, awake(), false) })
	equal(f, awake(), true)
	equal(f, awake(), false)
	_ = f.try(ctx, func(tx *store.Tx) error { noError(f, queue(tx)); return errors.New("no") })
	equal(f, awake(), false)
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteMail(ctx, "msg_none")) })
	equal(f, awake(), false)
	for range 3 { // without a listener nothing blocks
		f.write(func(tx *store.Tx) { noError(f, queue(tx)) })
	}
	equal(f, awake(), true)
	equal(f, awake(), false)
}

// crossingLocks: two transactions take two locks in opposite orders. Where both
// run at once, one is aborted and runs again.
func crossingLocks(f *fixture) {
	ctx := f.Context()
	tenants := []string{f.tenant("Acme").ID, f.tenant("Zeta").ID}
	var met sync.WaitGroup
	met.Add(2)
	var runs atomic.Int64
	errs := together(2, func(i int) error {
		first := sync.OnceFunc(func() {
			met.Done()
			if f.Engine() != "sqlite" { // which has one writer at a time
				met.Wait()
			}
		})
		return f.try(ctx, func(tx *store.Tx) error {
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
	noError(f, errors.Join(errs...))
	all, err := Events(ctx, f.Read(), "")
	equal(f, f.value(len(all), err), 2)
	if f.Engine() != "sqlite" && runs.Load() < 3 {
		f.Errorf("%d runs: nothing was aborted, so nothing was tested", runs.Load())
	}
}

func closedDatabase(f *fixture) {
	f.tenant("Acme")
	noError(f, f.Close())
	WantBroken(f, f.DB)
	wantUnavailable(f, f.Ping(f.Context()))
	wantUnavailable(f, f.CheckSchema(f.Context()))
	_, err := f.ClockDrift(f.Context())
	wantUnavailable(f, err)
}

// WantBroken fails unless every query of the database and every statement of a
// transaction returns unavailable.
func WantBroken(t testing.TB, db *store.DB) {
	t.Helper()
	queries, ctx := reflect.ValueOf(db.Read()), t.Context()
	for m := range queries.Type().Methods() {
		wantFault(t, m.Name, call(ctx, queries.MethodByName(m.Name)))
	}
	for m := range reflect.TypeFor[*store.Tx]().Methods() {
		if m.Type.NumOut() == 0 || m.Name == "Nested" { // configures the transaction, or reads and writes nothing itself
			continue
		}
		_, err := db.Write(ctx, func(tx *store.Tx) error { return call(ctx, reflect.ValueOf(tx).MethodByName(m.Name)) })
		wantFault(t, m.Name, err)
	}
}

// call calls a method with the context, zero values and an id in each list of texts, and
// returns its error.
func call(ctx context.Context, method reflect.Value) error {
	var args []reflect.Value
	for in := range method.Type().Ins() {
		switch {
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(ctx))
		case in.Kind() == reflect.Slice:
			slice := reflect.MakeSlice(in, 1, 1)
			if in.Elem().Kind() == reflect.String {
				slice.Index(0).SetString("usr_none") // an id of a person, so that Names runs a statement
			}
			args = append(args, slice)
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

// cancelledRequest: if the client disconnects, at whichever statement, nothing is written.
func cancelledRequest(f *fixture) {
	gone, cancel := context.WithCancel(f.Context())
	cancel()
	queries := reflect.ValueOf(f.Read())
	for m := range queries.Type().Methods() {
		wantFault(f, m.Name, call(gone, queries.MethodByName(m.Name)))
	}
	wantUnavailable(f, f.try(gone, func(*store.Tx) error { f.Error("the function ran"); return nil }))
	wantUnavailable(f, f.Ping(gone))

	before := f.state()
	hangUp := func(last func(ctx context.Context, tx reflect.Value) error) error {
		ctx, cancel := context.WithCancel(f.Context())
		return f.try(ctx, func(tx *store.Tx) error {
			noError(f, tx.InsertTenant(ctx, doorward.Tenant{ID: "tnt_half", CreatedAt: noon}))
			cancel()
			return last(ctx, reflect.ValueOf(tx))
		})
	}
	for m := range reflect.TypeFor[*store.Tx]().Methods() {
		if m.Type.NumOut() == 0 || m.Name == "Nested" { // configures the transaction, or reads and writes nothing itself
			continue
		}
		err := hangUp(func(ctx context.Context, tx reflect.Value) error { return call(ctx, tx.MethodByName(m.Name)) })
		wantFault(f, m.Name, err)
	}
	wantUnavailable(f, hangUp(func(context.Context, reflect.Value) error { return nil })) // just before the commit
	equal(f, f.state(), before)
	f.tenant("Acme") // the connection still works
}
