// Package access says who may what, and is the one door to a write.
//
// Can decides, for everybody who asks: gateways, guards of routes, pages, and Do.
//
// Nothing is written without a decision and a record: Do decides whether the
// caller may act, opens the transaction, lets the feature write its rows, adds
// the audit event, and commits all of it together. What happens to the object
// besides (mail to be sent) is a row that the feature writes in the same
// transaction.
//
// A refusal is recorded too, but not by the request: it goes to the Inbox, which
// counts what is alike, and package app/inbox adds it to the trail. So whoever may
// do nothing can't make others wait, nor fill the trail.
//
// An act of administration is decided a second time inside the transaction,
// with the role read again under a lock on the tenant: an ADMIN who is demoted
// while the request waits has lost, and two acts in one tenant never decide on
// the same past.
//
// Upkeep is the narrow door beside it, for what is nobody's act: noting that a
// session was used, counting attempts, the state of the mail queue. A test of
// the architecture names the packages that may use it.
package access

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// Door writes through one database. Make it with New.
type Door struct {
	db    *store.DB
	lease *lease.Lease
	inbox *Inbox
}

// New returns the door to db. What is written there and ends something holds
// everywhere, by way of the lease, when a method here returns.
func New(db *store.DB, l *lease.Lease) *Door {
	d := &Door{db: db, lease: l}
	d.inbox = newInbox(d)
	return d
}

// Tx is a transaction opened by Do.
type Tx struct {
	*store.Tx
	// By is the caller, the role as it is now.
	By doorward.Caller
	// event is what will be recorded, unless idle.
	event doorward.Event
	idle  bool
}

// Changed adds a field's values before and after to the event. Never a secret.
func (tx *Tx) Changed(field, from, to string) {
	tx.event.Changes = append(tx.event.Changes, doorward.Change{Field: field, From: from, To: to})
}

const fieldSessionsEnded = "sessionsEnded"

// RecordEnded adds to the event how many sessions and invitations the act has ended.
func (tx *Tx) RecordEnded(e doorward.Ended) {
	for _, n := range []struct {
		field string
		count int64
	}{{fieldSessionsEnded, e.Sessions}, {"invitationsRevoked", e.Invitations}} {
		if n.count > 0 {
			tx.Changed(n.field, "", strconv.FormatInt(n.count, 10))
		}
	}
}

// RecordEndedByTenant is Ended for sessions of a user in several tenants, by tenant: the event
// tells of those in its own one, and the trail of each other one has an end of its
// own. It is none of a tenant's business where else somebody signs in, so it is
// told nothing of another, and of the act only what has been done to the account.
func (tx *Tx) RecordEndedByTenant(ctx context.Context, userID string, sessions map[string]int64) error {
	tx.RecordEnded(doorward.Ended{Sessions: sessions[tx.event.Target.TenantID]})
	for _, tenantID := range slices.Sorted(maps.Keys(sessions)) {
		if tenantID == tx.event.Target.TenantID {
			continue
		}
		changes := []doorward.Change{{Field: fieldSessionsEnded, To: strconv.FormatInt(sessions[tenantID], 10)}}
		if ofAccount[tx.event.Action] {
			changes = append(changes, doorward.Change{Field: "cause", To: string(tx.event.Action)})
		}
		on := doorward.Object{Type: "user", ID: userID, TenantID: tenantID}
		if err := tx.RecordAlso(ctx, doorward.SessionEnd, on, changes...); err != nil {
			return err
		}
	}
	return nil
}

// ofAccount are the acts to an account, which its tenants share.
var ofAccount = map[doorward.Action]bool{doorward.PasswordChange: true, doorward.PasswordReset: true}

// SetTenant puts the event into the trail of a tenant that only the rows tell.
func (tx *Tx) SetTenant(tenantID string) {
	tx.event.Target.TenantID = tenantID
	tx.MailShare = share(tx.event)
}

// share is whose the mails of an act are: the tenant's, or the caller's where there
// is none.
func share(e doorward.Event) string {
	switch {
	case e.Target.TenantID != "":
		return e.Target.TenantID
	case e.Target.Type == "tenant" && e.Target.ID != "":
		return e.Target.ID
	case e.ActorID != "":
		return e.ActorID
	}
	return e.IP
}

// SkipEvent says that the act changes nothing, so that there is nothing to record.
func (tx *Tx) SkipEvent() { tx.idle = true }

// Notify queues a notice of the act to a canonical address. It says what the
// event says: who acted, when, from where, and what has changed. An act that
// changes nothing has no event and gives no notice.
func (tx *Tx) Notify(ctx context.Context, kind store.MailKind, to string) error {
	return tx.QueueMail(ctx, kind, to, tx.event.ID)
}

// ByBrowser adds the client's name for itself to the event, where the notice of
// the act, or whoever looks into it, needs it.
func (tx *Tx) ByBrowser() { tx.Changed(FieldUserAgent, "", tx.By.UserAgent) }

// FieldUserAgent is the field of events that ByBrowser fills.
const FieldUserAgent = "userAgent"

// RecordAlso records what the act has done to another object, with the fields before
// and after: what an act does to many has a record for each, so that the trail of
// any of them is whole.
func (tx *Tx) RecordAlso(ctx context.Context, done doorward.Action, on doorward.Object, changes ...doorward.Change) error {
	also := tx.event
	also.ID, also.Action, also.Target = doorward.NewID(doorward.PrefixEvent), done, on
	also.Changes = append([]doorward.Change{}, changes...)
	return tx.InsertEvent(ctx, also)
}

// RecordAlsoBy is Also for the act of somebody else than the caller, who has proved to
// be there by a credential of their own.
func (tx *Tx) RecordAlsoBy(ctx context.Context, by doorward.Caller, done doorward.Action, on doorward.Object) error {
	return tx.InsertEvent(ctx, event(by, done, on, doorward.Done))
}

// Operation is an act to an object, and what it writes.
type Operation struct {
	Action doorward.Action
	On     doorward.Object
	// Look, unless nil, returns the object as it is under the lock on its tenant,
	// for the second judgement.
	Look  func(*store.Tx) (doorward.Object, error)
	Write func(*Tx) error
}

// Do decides, runs fn in a transaction, records, and commits. It returns the
// decision's or fn's error as it is; either way nothing is then written but
// the record of a refusal. fn may run more than once.
//
// The result says how what has ended was made to hold on every node. It may come
// with not_found, since somebody else may have ended it. When that isn't known on
// every node in time, the error is unavailable although it is committed: to be tried
// again.
func (d *Door) Do(ctx context.Context, by doorward.Caller, act doorward.Action, on doorward.Object, fn func(*Tx) error) (doorward.Revocation, error) {
	return d.DoAll(ctx, by, Operation{Action: act, On: on, Write: fn})
}

// DoAll is Do for several operations as one: all of them, each with its own decision
// and record, or none. They are judged before any is done, so that one who gives
// up a role may do something else with it in the same breath.
//
// While the clock is wrong nothing is done: the error is unavailable.
func (d *Door) DoAll(ctx context.Context, by doorward.Caller, operations ...Operation) (doorward.Revocation, error) {
	if err := d.db.Clock().Err(); err != nil {
		return doorward.Revocation{}, err
	}
	at, err := authorizeAll(by, operations)
	var held doorward.Revocation
	idle, ended := false, false
	if err == nil {
		held, ended, err = d.write(ctx, at.Action, func(tx *store.Tx) (err error) {
			if at, idle, err = performAll(ctx, tx, by, operations); idle {
				tx.ForceDurable()
			}
			return err
		})
	}
	// Who is told that it is so already, or gone, relies on that as much as the
	// one who did it, who may still be waiting.
	switch {
	case err == nil && idle && !ended:
		_, err = d.settled(ctx, d.lease.SettleAll) // the answer says nothing of it: this call has revoked nothing
	case doorward.HasCode(err, doorward.CodeNotFound):
		var gone error
		held, gone = d.ConfirmGone(ctx, func(tx *store.Tx) (bool, error) {
			_, _, err := performAll(ctx, tx, by, operations)
			return doorward.HasCode(err, doorward.CodeNotFound), nil
		})
		err = cmp.Or(gone, err)
	}
	return held, d.Refused(ctx, by, at.Action, at.On, err)
}

// authorizeAll returns the operation that is refused and why.
func authorizeAll(by doorward.Caller, operations []Operation) (at Operation, err error) {
	for _, at = range operations {
		if err = Can(&by.Principal, at.Action, at.On).Err(); err != nil {
			return at, err
		}
	}
	return at, nil
}

// performAll returns the operation that failed and why, and whether one of them changed
// nothing.
func performAll(ctx context.Context, tx *store.Tx, by doorward.Caller, operations []Operation) (at Operation, idle bool, err error) {
	callers := make([]doorward.Caller, len(operations))
	for i, d := range operations {
		if callers[i], err = decideAgain(ctx, tx, by, d); err != nil {
			return d, false, err
		}
	}
	for i, d := range operations {
		nothing, err := perform(ctx, tx, callers[i], d)
		if err != nil {
			return d, false, err
		}
		idle = idle || nothing
	}
	return at, idle, nil
}

// ConfirmGone returns once what absent finds to be gone is so for good, and has ended on
// every node with everything else that has ended so far. Whoever is told that
// something is gone, and didn't end it, may rely on that as much as the one who
// did. The error is unavailable.
func (d *Door) ConfirmGone(ctx context.Context, absent func(*store.Tx) (bool, error)) (doorward.Revocation, error) {
	if err := d.db.ConfirmAbsent(ctx, absent); err != nil {
		return doorward.Revocation{}, err
	}
	return d.settled(ctx, d.lease.SettleAll)
}

func perform(ctx context.Context, tx *store.Tx, by doorward.Caller, d Operation) (idle bool, err error) {
	act := &Tx{Tx: tx, By: by, event: event(by, d.Action, d.On, doorward.Done)}
	tx.MailShare = share(act.event)
	if err := d.Write(act); err != nil || act.idle {
		return act.idle, err
	}
	return false, tx.InsertEvent(ctx, act.event)
}

// decideAgain judges a user by the role that the membership has now, and the
// object as it is now.
func decideAgain(ctx context.Context, tx *store.Tx, by doorward.Caller, d Operation) (doorward.Caller, error) {
	verb, _ := doorward.Lookup(d.Action)
	if verb.By == doorward.ByProof || d.On.TenantID == "" {
		return by, nil
	}
	if err := tx.LockTenant(ctx, d.On.TenantID); err != nil {
		return by, err
	}
	by, err := asNow(ctx, tx, by)
	if err != nil {
		return by, err
	}
	on := d.On
	if d.Look != nil {
		if on, err = d.Look(tx); err != nil {
			return by, err
		}
	}
	return by, Can(&by.Principal, d.Action, on).Err()
}

// asNow is the caller as the session and the membership are now, if the session
// still is one.
func asNow(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	if by.Kind != doorward.ByUser {
		return by, nil
	}
	now, err := tx.Session(ctx, by.SessionID)
	if errors.Is(err, store.ErrNone) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	if err != nil {
		return by, err
	}
	by.Principal = doorward.PrincipalOf(now.User, now.Session)
	return by, nil
}

// Require decides without writing anything but a refusal: the gate in front of
// reads and of whole endpoints.
func (d *Door) Require(ctx context.Context, by doorward.Caller, act doorward.Action, on doorward.Object) error {
	return d.Refused(ctx, by, act, on, Can(&by.Principal, act, on).Err())
}

// Refuse records that the act was refused for a reason that only the feature
// knows, and returns the reason.
func (d *Door) Refuse(ctx context.Context, by doorward.Caller, act doorward.Action, on doorward.Object, reason *doorward.Error) error {
	return d.record(ctx, by, act, on, reason)
}

// Refused records err if it says that the caller may not, and returns it. An
// OWNER who may not go because no other one is left is refused like one whose
// role doesn't do; that something is over, absent or otherwise than thought is
// no refusal.
func (d *Door) Refused(ctx context.Context, by doorward.Caller, act doorward.Action, on doorward.Object, err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || e.Kind() != doorward.KindForbidden && e.Code != doorward.CodeLastOwner {
		return err
	}
	return d.record(ctx, by, act, on, e)
}

// Upkeep writes without a decision or a record. Not for anybody's act.
func (d *Door) Upkeep(ctx context.Context, fn func(*store.Tx) error) error {
	_, _, err := d.write(ctx, "upkeep", fn)
	return err
}

// write commits and, when that has ended something, returns once no node
// answers from the memory of it any more, or of anything that ended before.
func (d *Door) write(ctx context.Context, act doorward.Action, fn func(*store.Tx) error) (held doorward.Revocation, ended bool, err error) {
	changes, err := d.commit(ctx, act, fn)
	if err != nil || len(changes) == 0 {
		return held, false, err
	}
	held, err = d.settled(ctx, func(ctx context.Context) (lease.Settled, error) { return d.lease.Settle(ctx, changes) })
	return held, true, err
}

// commit writes. What is followed shows the name of the act and when its turn
// had come.
func (d *Door) commit(ctx context.Context, act doorward.Action, fn func(*store.Tx) error) ([]store.Change, error) {
	ctx, span := trace.Transaction(ctx, systems[d.db.Engine()], string(act))
	defer span.End()
	changes, err := d.db.Write(ctx, fn)
	failed(span, err)
	return changes, err
}

// systems are the names that OpenTelemetry has for databases.
var systems = map[string]string{"sqlite": "sqlite", "postgres": "postgresql"}

// settled waits for the other nodes.
func (d *Door) settled(ctx context.Context, wait func(context.Context) (lease.Settled, error)) (doorward.Revocation, error) {
	ctx, span := trace.Start(ctx, "revocation.wait")
	defer span.End()
	settled, err := wait(ctx)
	span.SetCount("doorward.nodes", settled.Nodes)
	failed(span, err)
	if err != nil {
		return doorward.Revocation{}, err
	}
	return doorward.Revocation{Nodes: settled.Nodes, Took: settled.Took}, nil
}

// failed tells of an error by its code alone: its text may say anything. What is
// no error of ours is how a feature leaves its transaction.
func failed(span *trace.Span, err error) {
	var e *doorward.Error
	switch {
	case errors.As(err, &e):
		span.Fail(string(e.Code))
	case err != nil:
		span.Fail("_OTHER")
	}
}

func event(by doorward.Caller, act doorward.Action, on doorward.Object, outcome doorward.Outcome) doorward.Event {
	return doorward.Event{
		ID: doorward.NewID(doorward.PrefixEvent), Action: act, Outcome: outcome,
		ActorType: by.Kind, ActorID: by.ID, ActorEmail: by.Email,
		Target: on, IP: by.IP, RequestID: by.RequestID, Changes: []doorward.Change{},
	}
}
