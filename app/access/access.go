// Package access is the only way to write.
//
// Nothing is written without a decision and a record: Do decides whether the
// caller may act, opens the transaction, lets the feature write its rows, adds the
// audit event, and commits all of it together. Side effects, such as mail to be
// sent, are rows that the feature writes in the same transaction.
//
// A refusal is recorded too, but not in the trail by the request: see app/refusal.
//
// An administrative action is decided a second time inside the transaction, with
// the role read again under a lock on the tenant: an ADMIN who is demoted while
// the request waits is refused, and two actions in one tenant never decide on the
// same stale state.
//
// Upkeep writes without a caller: the last use of a session, counters of attempts,
// the state of the mail queue. arch_test.go names the packages that may use it.
package access

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/decisionlog"
	"github.com/doorward/doorward/app/refusal"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// Writer writes through one database. Make it with New.
type Writer struct {
	*refusal.Inbox // records what was refused

	db    *store.DB
	lease *lease.Lease

	pauses    *pauseCache
	decisions *decisionlog.Log
}

// New returns a Writer to db. A method that ends something, such as a session, waits by the lease
// until it has ended on every node.
func New(db *store.DB, l *lease.Lease) *Writer {
	w := &Writer{db: db, lease: l, pauses: &pauseCache{db: db, lease: l}}
	l.Follow(w.pauses.apply, w.pauses.forget)
	w.Inbox = refusal.New(db, func(ctx context.Context, action doorward.Action, fn func(*store.Tx) error) error {
		_, _, err := w.write(ctx, action, fn)
		return err
	})
	w.decisions = decisionlog.New(db.Now, w.Upkeep, w.InBatches)
	return w
}

// Decisions returns the log of this node's decisions.
func (w *Writer) Decisions() *decisionlog.Log { return w.decisions }

// Tx is a transaction opened by Do.
type Tx struct {
	*store.Tx
	// By is the caller, with the role read again.
	By doorward.Caller
	// event will be recorded, unless noChange is set.
	event     doorward.Event
	noChange  bool
	isCounted bool // whether event counts in the quota of events a day
	// alsoIn are the tenants in whose trails the event's action was recorded, too.
	alsoIn map[string]bool
}

// Changed adds a field to the event, with its values before and after. Never pass a secret.
func (tx *Tx) Changed(field, from, to string) {
	tx.event.Changes = append(tx.event.Changes, doorward.Change{Field: field, From: from, To: to})
}

const fieldSessionsEnded = "sessionsEnded"

// RecordEnded adds to the event how many sessions, API keys and invitations the
// operation has ended.
func (tx *Tx) RecordEnded(e doorward.Ended) {
	tx.event.Changes = append(tx.event.Changes, EndedChanges(e)...)
}

// EndedChanges returns the changes that RecordEnded adds.
func EndedChanges(e doorward.Ended) (changes []doorward.Change) {
	for _, n := range []struct {
		field string
		count int64
	}{{fieldSessionsEnded, e.Sessions}, {doorward.FieldAPIKeysRevoked, e.APIKeys}, {"apiKeysTransferred", e.APIKeysTransferred}, {doorward.FieldInvitationsRevoked, e.Invitations}} {
		if n.count > 0 {
			changes = append(changes, doorward.Change{Field: n.field, To: strconv.FormatInt(n.count, 10)})
		}
	}
	return changes
}

// RecordEndedByTenant is RecordEnded for a user's sessions in several tenants; sessions
// has their number by tenant id. Each other tenant than that of the event gets an event
// of its own. A tenant must not learn where else a user signs in, so these events name
// the cause only if it concerns the account.
func (tx *Tx) RecordEndedByTenant(ctx context.Context, userID string, sessions map[string]int64) error {
	tx.RecordEnded(doorward.Ended{Sessions: sessions[tx.event.Target.TenantID]})
	for _, tenantID := range slices.Sorted(maps.Keys(sessions)) {
		if tenantID == tx.event.Target.TenantID {
			continue
		}
		changes := []doorward.Change{{Field: fieldSessionsEnded, To: strconv.FormatInt(sessions[tenantID], 10)}}
		if verb, _ := doorward.Lookup(tx.event.Action); verb.Scope == doorward.OfAccount {
			changes = append(changes, doorward.Change{Field: "cause", To: string(tx.event.Action)})
		}
		on := doorward.Object{Type: "user", ID: userID, TenantID: tenantID}
		if err := tx.RecordAlso(ctx, doorward.SessionEnd, on, changes...); err != nil {
			return err
		}
	}
	return nil
}

// SetTenant puts the event into a tenant's trail, for an action whose tenant is
// known only after reading the row.
func (tx *Tx) SetTenant(tenantID string) {
	tx.event.Target.TenantID = tenantID
	tx.MailShare = share(tx.event)
}

// RecordAs records the transaction as another action, for one that is known only after reading rows:
// a sign-in that turns out to need a second factor. Both actions must be ByProof.
func (tx *Tx) RecordAs(action doorward.Action, on doorward.Object) {
	tx.event.Action, tx.event.Target, tx.isCounted = action, on, countsInQuota(tx.By, action)
	tx.MailShare = share(tx.event)
}

// share returns the id under which mails are dispatched fairly: of the event's tenant, or of the
// tenant that is its target; else the caller's id or IP address.
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

// OmitPersonal leaves the caller's e-mail and IP address out of the events, for an action such as
// the erasure of an account.
func (tx *Tx) OmitPersonal() { tx.event.ActorEmail, tx.event.IP = "", "" }

// RecordFor makes the caller the actor of the transaction's events: somebody who has asked in an earlier request for what
// Doorward does now.
func (tx *Tx) RecordFor(by doorward.Caller) {
	tx.event.ActorType, tx.event.ActorID, tx.event.ActorEmail = by.Kind, by.ID, by.Email
}

// SkipEvent marks the action as one that changed nothing, so no event is recorded.
func (tx *Tx) SkipEvent() { tx.noChange = true }

// IsSkipped reports whether SkipEvent was called.
func (tx *Tx) IsSkipped() bool { return tx.noChange }

// Notify queues a notice of the action to a canonical address. It says what the
// event says: who acted, when, from where, and what has changed. An action that
// changes nothing has no event and sends no notice.
func (tx *Tx) Notify(ctx context.Context, kind store.MailKind, to string) error {
	return tx.QueueMail(ctx, kind, to, tx.event.ID)
}

// EventID returns the id of the action's event, for notices that are queued later. An action that changes
// nothing has no such event.
func (tx *Tx) EventID() string { return tx.event.ID }

// RecordUserAgent adds the client's user agent to the event, for notices and
// investigations.
func (tx *Tx) RecordUserAgent() {
	if !slices.ContainsFunc(tx.event.Changes, func(c doorward.Change) bool { return c.Field == doorward.FieldUserAgent }) {
		tx.Changed(doorward.FieldUserAgent, "", tx.By.UserAgent)
	}
}

// RecordAlso records an event about another object. An action on many objects has an event for
// each, so that the trail of each object is complete.
func (tx *Tx) RecordAlso(ctx context.Context, action doorward.Action, on doorward.Object, changes ...doorward.Change) error {
	if action == tx.event.Action {
		if tx.alsoIn == nil {
			tx.alsoIn = map[string]bool{}
		}
		tx.alsoIn[on.TenantID] = true
	}
	return tx.InsertEvent(ctx, tx.alsoEvent(action, on, changes))
}

// NotifyAlso is RecordAlso with a notice of that event to each of the canonical addresses. The mails
// are dispatched as those of the event's tenant.
func (tx *Tx) NotifyAlso(ctx context.Context, kind store.MailKind, to []string, action doorward.Action, on doorward.Object, changes ...doorward.Change) error {
	return tx.insertAndNotify(ctx, kind, to, tx.alsoEvent(action, on, changes))
}

// NotifyAlsoBy is NotifyAlso for an event of another caller, such as of Doorward itself in the trail of a tenant
// that must not learn who has caused it.
func (tx *Tx) NotifyAlsoBy(ctx context.Context, by doorward.Caller, kind store.MailKind, to []string, action doorward.Action, on doorward.Object, changes ...doorward.Change) error {
	e := doorward.NewEvent(by, action, on, doorward.Done)
	e.Changes = append(e.Changes, changes...)
	e.AddTerminal(by)
	return tx.insertAndNotify(ctx, kind, to, e)
}

// insertAndNotify records the event and queues a notice of it to each of the addresses.
func (tx *Tx) insertAndNotify(ctx context.Context, kind store.MailKind, to []string, also doorward.Event) error {
	err := tx.InsertEvent(ctx, also)
	was := tx.MailShare
	defer func() { tx.MailShare = was }()
	tx.MailShare = share(also)
	for _, address := range to {
		err = errors.Join(err, tx.QueueMail(ctx, kind, address, also.ID))
	}
	return err
}

func (tx *Tx) alsoEvent(action doorward.Action, on doorward.Object, changes []doorward.Change) doorward.Event {
	also := tx.event
	also.ID, also.Action, also.Target = doorward.NewID(doorward.PrefixEvent), action, on
	also.Changes = append([]doorward.Change{}, changes...)
	also.AddTerminal(tx.By)
	return also
}

// recordEverywhere records what an account's owner has done to it in the trail of each active tenant in
// which they are an active member, since all of them rely on the account. The events don't say what was
// done in another tenant. Where the feature has recorded it itself, it adds nothing.
func (tx *Tx) recordEverywhere(ctx context.Context) error {
	if verb, _ := doorward.Lookup(tx.event.Action); !isOnAccount(verb) || tx.event.Target.Type != "user" {
		return nil
	}
	changes := slices.DeleteFunc(slices.Clone(tx.event.Changes), func(c doorward.Change) bool { return c.Field == fieldSessionsEnded })
	return tx.RecordElsewhere(ctx, tx.event.Action, tx.event.Target, changes...)
}

// RecordElsewhere is RecordAlso in the trail of each other tenant in which the user on is active. It
// leaves out those in which the transaction has recorded its own action already.
func (tx *Tx) RecordElsewhere(ctx context.Context, action doorward.Action, on doorward.Object, changes ...doorward.Change) error {
	memberships, err := tx.Memberships(ctx, on.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		isRecorded := m.TenantID == on.TenantID || action == tx.event.Action && tx.alsoIn[m.TenantID]
		if isRecorded || !m.IsActive() {
			continue
		}
		if err := tx.RecordAlso(ctx, action, doorward.Object{Type: "user", ID: m.ID, TenantID: m.TenantID}, changes...); err != nil {
			return err
		}
	}
	return nil
}

// RecordAlsoBy is RecordAlso for an action of another caller, who must have proved their identity
// with a credential of their own.
func (tx *Tx) RecordAlsoBy(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object, changes ...doorward.Change) error {
	also := doorward.NewEvent(by, action, on, doorward.Done)
	also.Changes = append(also.Changes, changes...)
	also.AddTerminal(by)
	return tx.InsertEvent(ctx, also)
}

// Operation is an action on an object, and the function that writes its rows.
type Operation struct {
	Action doorward.Action
	On     doorward.Object
	// ReadObject, unless nil, reads the object under the lock on its tenant, for the second
	// decision. An object that has a role needs it: the role may have changed since On was read.
	ReadObject func(*store.Tx) (doorward.Object, error)
	// Began, unless zero, is when an earlier call has begun the action with its proof, such as an
	// enrolment. The proof is judged as of then, for proofHolds.
	Began time.Time
	Write func(*Tx) error
}

// proofHolds is how long a proof holds for the action that it has begun, so that a tenant that accepts
// proofs for a minute doesn't break an enrolment.
const proofHolds = 10 * time.Minute

// judgedAt returns the instant at which the age of the caller's proof is judged.
func (o Operation) judgedAt(clock doorward.Clock) doorward.Clock {
	if o.Began.IsZero() || clock().Sub(o.Began) > proofHolds {
		return clock
	}
	return func() time.Time { return o.Began }
}

// Do decides, runs fn in a transaction, records the event, and commits. It returns an error of
// the decision or of fn unchanged; then it writes nothing but the record of a refusal. fn may run
// more than once.
//
// The Revocation says how the nodes confirmed the end of sessions. It is also set with the error
// not_found, if another call has ended them. If the confirmation times out, the error is
// unavailable although the transaction is committed: the caller retries.
func (w *Writer) Do(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object, fn func(*Tx) error) (doorward.Revocation, error) {
	return w.DoAll(ctx, by, Operation{Action: action, On: on, Write: fn})
}

// DoAll is Do for several operations in one transaction, each with its own decision and event.
// All are decided before any is performed, so that a caller who gives up a role can use it in
// another operation of the same call.
//
// While the clock is wrong, the error is unavailable. While the operator has paused changes, it
// is maintenance, except for the operations that areAllowedWhilePaused names.
func (w *Writer) DoAll(ctx context.Context, by doorward.Caller, operations ...Operation) (doorward.Revocation, error) {
	if err := w.db.Clock().Err(); err != nil {
		return doorward.Revocation{}, err
	}
	by, at, err := w.authorizeAll(ctx, by, operations)
	generation := w.pauses.currentGeneration()
	if err == nil {
		err = w.refuseIfPaused(ctx, by, operations)
	}
	var revocation doorward.Revocation
	noChange, announced := false, false
	if err == nil {
		revocation, announced, err = w.write(ctx, at.Action, func(tx *store.Tx) (err error) {
			if at, noChange, err = performAll(ctx, tx, by, operations); noChange {
				tx.ForceDurable()
			}
			if err == nil && generation != w.pauses.currentGeneration() {
				err = w.refuseIfPausedSince(ctx, tx, by, operations)
			}
			return err
		})
	}
	// If nothing had to be changed, the call that made the change may still be waiting for the
	// nodes. The answer to this call must also be true on every node.
	switch {
	case err == nil && noChange && !announced:
		_, err = w.waitForNodes(ctx, w.lease.SettleAll) // not in the result: this call has revoked nothing
	case doorward.HasCode(err, doorward.CodeNotFound):
		revocation, err = w.confirmNotFound(ctx, by, operations, err)
	}
	return revocation, w.RecordIfRefusal(ctx, by, at.Action, at.On, err)
}

// confirmNotFound waits until the objects that the operations didn't find are gone on every node,
// and returns notFound; or unavailable if that isn't confirmed. If the operations are refused for
// another reason by then, as when the caller's session has ended, it returns that.
func (w *Writer) confirmNotFound(ctx context.Context, by doorward.Caller, operations []Operation, notFound error) (doorward.Revocation, error) {
	var since error
	revocation, err := w.ConfirmGone(ctx, func(tx *store.Tx) (bool, error) {
		_, _, since = performAll(ctx, tx, by, operations)
		return doorward.HasCode(since, doorward.CodeNotFound), nil
	})
	var refusal *doorward.Error
	if errors.As(since, &refusal) && refusal.Code != doorward.CodeNotFound {
		return revocation, since
	}
	return revocation, cmp.Or(err, notFound)
}

// authorizeAll decides on the operations. It returns the first one that is refused and the error,
// else the last one; and the caller as mayByConnection returns it.
func (w *Writer) authorizeAll(ctx context.Context, by doorward.Caller, operations []Operation) (_ doorward.Caller, at Operation, err error) {
	for _, at = range operations {
		var d decide.Decision
		if by, d, err = w.decide(ctx, by, at.Action, at.On, at.judgedAt(w.db.Now)); err == nil {
			err = d.Err()
		}
		if err != nil {
			return by, at, err
		}
	}
	return by, at, nil
}

// performAll decides again on the operations and performs them. It returns the one that failed
// (zero if none did) and its error, and whether one of them changed nothing.
func performAll(ctx context.Context, tx *store.Tx, by doorward.Caller, operations []Operation) (failed Operation, noChange bool, err error) {
	callers := make([]doorward.Caller, len(operations))
	for i, op := range operations {
		if callers[i], err = decideAgain(ctx, tx, by, op); err != nil {
			return op, false, err
		}
	}
	for i, op := range operations {
		unchanged, err := perform(ctx, tx, callers[i], op)
		if err != nil {
			return op, false, err
		}
		noChange = noChange || unchanged
	}
	if last := len(operations) - 1; last >= 0 {
		if err := judge(ctx, tx, callers[last]); err != nil {
			return operations[last], false, err
		}
	}
	return Operation{}, noChange, nil
}

// ConfirmGone is called before an answer that an object is gone, which must be true on every
// node. It calls absent in a transaction, and waits until that state is durable and every node
// has applied all changes so far. Errors: unavailable.
func (w *Writer) ConfirmGone(ctx context.Context, absent func(*store.Tx) (bool, error)) (doorward.Revocation, error) {
	if err := w.db.ConfirmAbsent(ctx, absent); err != nil {
		return doorward.Revocation{}, err
	}
	return w.waitForNodes(ctx, w.lease.SettleAll)
}

func perform(ctx context.Context, tx *store.Tx, by doorward.Caller, op Operation) (noChange bool, err error) {
	opTx := &Tx{Tx: tx, By: by, event: doorward.NewEvent(by, op.Action, op.On, doorward.Done), isCounted: countsInQuota(by, op.Action)}
	tx.MailShare = share(opTx.event)
	if err := op.Write(opTx); err != nil || opTx.noChange {
		return opTx.noChange, err
	}
	if err := opTx.recordEverywhere(ctx); err != nil {
		return false, err
	}
	opTx.event.AddTerminal(by)
	if opTx.isCounted {
		return false, tx.InsertCountedEvent(ctx, opTx.event)
	}
	return false, tx.InsertEvent(ctx, opTx.event)
}

// Require decides on a read, or for the guard of a route. It writes nothing but a refusal. Errors: those of
// the decision, unavailable.
func (w *Writer) Require(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object) error {
	if verb, _ := by.Rules.Model().Lookup(action); isOnAccount(verb) {
		var err error
		if by, err = asStrictest(ctx, w.db.Read(), by); err != nil {
			return err
		}
	}
	by, d, err := w.decide(ctx, by, action, on, w.db.Now)
	if err != nil {
		return err
	}
	return w.RecordIfRefusal(ctx, by, action, on, d.Err())
}

// decide decides on an action of the caller, and records the decision if that is due. It doesn't
// record the view of a page (ViewOnly), which isn't an attempt. proofAt is that of may. It returns the
// caller as mayByConnection does. Errors: unavailable.
func (w *Writer) decide(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object, proofAt doorward.Clock) (doorward.Caller, decide.Decision, error) {
	by, d, err := mayByConnection(ctx, w.db.Read(), by, w.db.Now(), action, on, proofAt)
	if err != nil {
		return by, d, err
	}
	if due := w.decisions.Due(&by.Principal, d.BeforeProof()); due.Any() && !by.ViewOnly {
		w.decisions.Record(due, &by.Principal, action, by.Decided, by.RequestAt(w.db.Now()), d.BeforeProof())
	}
	return by, d, nil
}

// mayByConnection is may, after reading what a refusal depends on: a person whose session a connection
// vouches for, and to whom no active tenant opens a session by the password, may do what belongs to the
// account after proving it. The caller that it returns has that noted. It reads nothing in other cases.
func mayByConnection(ctx context.Context, read store.Reader, by doorward.Caller, now time.Time, action doorward.Action, on doorward.Object, proofAt doorward.Clock) (doorward.Caller, decide.Decision, error) {
	d := may(&by, now, action, on, proofAt)
	if d.Reason != decide.ReasonIssuer || !decide.CanProve(&by.Principal, action) {
		return by, d, nil
	}
	opens, err := opensByPassword(ctx, read, by.ID, now)
	if err != nil || opens {
		return by, d, err
	}
	by.HasNoOwnSession = true
	return by, may(&by, now, action, on, proofAt), nil
}

// may is decide.May for a request of the caller at now; proofAt is Question.Proof. No proof is demanded of
// people without a session: what a mailed link does has its proof in the link. It notes the demand for
// replays of the call.
func may(by *doorward.Caller, now time.Time, action doorward.Action, on doorward.Object, proofAt doorward.Clock) decide.Decision {
	q := decide.Question{Action: action, On: on}
	if by.Policy != nil { // else there is none that could read the request
		q.Request = by.RequestAt(now)
	}
	if by.SessionID != "" {
		q.Proof = proofAt
	}
	d := decide.May(&by.Principal, &q)
	if d.DemandsProof && by.Idempotent != nil {
		by.Idempotent.NeededProof = true
	}
	return d
}

// Check decides for a service that asks what the principal may do in its tenant, and records the
// decision. r may be nil if no policy reads the request.
func (w *Writer) Check(p *doorward.Principal, action doorward.Action, r *doorward.Request) decide.Decision {
	d := decide.May(p, &decide.Question{Action: action, On: p.Tenant(), Request: r, Proof: w.db.Now, ForService: true})
	if due := w.decisions.Due(p, d); due.Any() {
		w.decisions.Record(due, p, action, "", r, d)
	}
	return d
}

// NeedProof demands a recent proof for one case of an action that isn't always sensitive, such as
// an edit of an API key that adds permissions. Errors: step_up_required.
func (tx *Tx) NeedProof() error { return needProof(&tx.By, tx.Now) }

// NeedProof is Tx.NeedProof for sensitive reads, such as an export of people.
func (w *Writer) NeedProof(by doorward.Caller) error { return needProof(&by, w.db.Now()) }

// needProof demands a proof as recent as the tenant says, of people with a session. It notes the demand
// for replays of the call.
func needProof(by *doorward.Caller, now time.Time) error {
	if by.SessionID == "" {
		return nil
	}
	if by.Idempotent != nil {
		by.Idempotent.NeededProof = true
	}
	return decide.Proved(&by.Principal, 1, by.MaxProofAge, now).Err()
}

// needOwnProof is needProof for what the word of a connection is no proof of.
func needOwnProof(by *doorward.Caller, now time.Time) error {
	if by.SessionID == "" {
		return nil
	}
	if by.Idempotent != nil {
		by.Idempotent.NeededProof = true
	}
	return decide.ProvedOwn(&by.Principal, now).Err()
}

// Upkeep writes without a decision or a record. Don't use it for an action of a caller.
func (w *Writer) Upkeep(ctx context.Context, fn func(*store.Tx) error) error {
	_, _, err := w.write(ctx, "upkeep", fn)
	return err
}

// batchSize is how many rows one transaction of InBatches changes, so that others wait for
// it only briefly: SQLite has one writer.
const batchSize = 500

// InBatches is Upkeep for a change of many rows. It calls batch repeatedly, each time in a
// transaction of its own, until batch changes fewer rows than its limit. batch returns how many
// rows it has changed.
func (w *Writer) InBatches(ctx context.Context, batch func(tx *store.Tx, limit int) (int64, error)) error {
	for n := int64(batchSize); n == batchSize; {
		err := w.Upkeep(ctx, func(tx *store.Tx) (err error) {
			n, err = batch(tx, batchSize)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write commits a transaction. If it announces changes to the nodes, write waits until no node
// answers from memory of an older state, and reports announced.
func (w *Writer) write(ctx context.Context, action doorward.Action, fn func(*store.Tx) error) (revocation doorward.Revocation, announced bool, err error) {
	changes, err := w.commit(ctx, action, fn)
	if err != nil || len(changes) == 0 {
		return revocation, false, err
	}
	revocation, err = w.waitForNodes(ctx, func(ctx context.Context) (lease.Settled, error) { return w.lease.Settle(ctx, changes) })
	return revocation, true, err
}

// commit commits a transaction in a trace span, which names the action and includes the wait for
// the database.
func (w *Writer) commit(ctx context.Context, action doorward.Action, fn func(*store.Tx) error) ([]store.Change, error) {
	ctx, span := trace.Transaction(ctx, systems[w.db.Engine()], string(action))
	defer span.End()
	changes, err := w.db.Write(ctx, fn)
	markFailed(span, err)
	return changes, err
}

// systems has OpenTelemetry's names of the engines.
var systems = map[string]string{"sqlite": "sqlite", "postgres": "postgresql"}

// waitForNodes calls wait in a trace span, and returns its result as a Revocation.
func (w *Writer) waitForNodes(ctx context.Context, wait func(context.Context) (lease.Settled, error)) (doorward.Revocation, error) {
	ctx, span := trace.Start(ctx, "revocation.wait")
	defer span.End()
	settled, err := wait(ctx)
	span.SetCount("doorward.nodes", settled.Nodes)
	markFailed(span, err)
	if err != nil {
		return doorward.Revocation{}, err
	}
	return doorward.Revocation{Nodes: settled.Nodes, Took: settled.Took}, nil
}

// markFailed puts an error's code on the span, never its text, which may hold personal
// data. Errors without a code are marked _OTHER.
func markFailed(span *trace.Span, err error) {
	var e *doorward.Error
	switch {
	case errors.As(err, &e):
		span.Fail(string(e.Code))
	case err != nil:
		span.Fail("_OTHER")
	}
}
