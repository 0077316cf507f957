// Package refusal takes refusals: the first of a kind in a minute is a row of the inbox before the
// answer, and repetitions are counted in memory. app/inbox appends them to the audit trail. So a caller
// without permissions can neither delay others nor fill the trail.
package refusal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Limits of a node's memory and of the table.
const (
	inboxKeys     = 10_000  // kinds of refusals in memory; each further refusal is written at once
	inboxSubjects = 30      // subjects of one source in a minute; further ones are counted together
	inboxRows     = 100_000 // rows in the database; beyond them refusals are only counted
	inboxBatch    = 200     // rows written in one transaction
)

// inboxOthers is the subject for a source's refusals beyond inboxSubjects.
const inboxOthers = "others"

// Inbox takes refusals, so that a refusal neither waits for the lock on an event chain nor makes
// other requests wait. The first refusal of a kind in a minute is written to the database before
// the answer. Repetitions in that minute are counted in memory and written by Flush. A process
// that is killed loses their number.
type Inbox struct {
	db    *store.DB
	write func(context.Context, doorward.Action, func(*store.Tx) error) error

	mu       sync.Mutex
	minute   time.Time
	counted  map[inboxKey]*store.InboxRow // Hits counts what is not yet written
	subjects map[string]int               // the number of keys in counted, by source
	earlier  []store.InboxRow             // rows of earlier minutes, to be written

	rows    atomic.Int64 // number of rows in the database: the last count, and the rows added since
	dropped atomic.Uint64
}

// inboxKey is the key of a row within its minute.
type inboxKey struct {
	source  string
	action  doorward.Action
	reason  doorward.Code
	subject string
}

func keyOf(r store.InboxRow) inboxKey { return inboxKey{r.Source, r.Action, r.Reason, r.Subject} }

// New returns an inbox that writes by write, in a transaction that is traced as the action.
func New(db *store.DB, write func(context.Context, doorward.Action, func(*store.Tx) error) error) *Inbox {
	return &Inbox{db: db, write: write, counted: map[inboxKey]*store.InboxRow{}, subjects: map[string]int{}}
}

// IsFull reports whether the inbox takes no more rows.
func (i *Inbox) IsFull() bool { return i.rows.Load() >= inboxRows }

// Dropped returns how many refusals were not recorded since the start because the inbox was
// full, or the database refused a value in them.
func (i *Inbox) Dropped() uint64 { return i.dropped.Load() }

// CountFiled counts a row that a feature wrote itself, with store.Tx.FileInbox.
func (i *Inbox) CountFiled() { i.rows.Add(1) }

// Count reads how many rows the inbox has, up to a limit. Errors: unavailable.
func (i *Inbox) Count(ctx context.Context) (rows int, err error) {
	rows, err = i.db.Read().CountInbox(ctx, inboxRows)
	if err == nil {
		i.rows.Store(int64(rows))
	}
	return rows, err
}

// RecordFunc writes a refusal in a transaction. It is nil if nothing has to be written.
type RecordFunc func(context.Context, *store.Tx) error

// add counts the refusal, and calls write to store it in a transaction that may also write other
// rows. It sets the minute and hits of the row. If write fails, the row counts as not written.
func (i *Inbox) add(row store.InboxRow, write func(RecordFunc) error) error {
	row.Minute, row.Hits = row.Event.At.Truncate(store.InboxMinute), 1
	row, isRepetition := i.remember(row)
	switch {
	case isRepetition:
		return write(nil)
	case i.IsFull():
		i.dropped.Add(1)
		i.forget(row)
		return write(nil)
	}
	filed := false
	err := write(func(ctx context.Context, tx *store.Tx) (err error) {
		filed, err = i.fileFirst(ctx, tx, row)
		return err
	})
	switch {
	case err != nil:
		i.forget(row)
	case filed:
		i.CountFiled()
	default:
		i.countRepetition(row)
	}
	return err
}

// fileFirst writes the row and reports true. If another node has already written a row for the same
// refusal, it reports false, and the caller counts a repetition in memory: an update of that row
// would wait for the worker that has locked it, and so for the event chain.
func (i *Inbox) fileFirst(ctx context.Context, tx *store.Tx, row store.InboxRow) (bool, error) {
	if i.remembers(row) {
		if filed, err := tx.HasInbox(ctx, row); filed || err != nil {
			return false, err
		}
	}
	return true, tx.FileInbox(ctx, row)
}

// remembers reports whether repetitions of the row are counted in memory.
func (i *Inbox) remembers(row store.InboxRow) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counted[keyOf(row)] != nil
}

// countRepetition counts in memory a row that another node has written first.
func (i *Inbox) countRepetition(row store.InboxRow) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known := i.counted[keyOf(row)]; known != nil && known.Minute.Equal(row.Minute) {
		known.Hits++
		return
	}
	i.earlier = append(i.earlier, row) // the minute ended during the write
}

// remember counts the row in memory, and reports whether it repeats an earlier one. It returns the
// row to write: the one for further subjects if the source has too many.
func (i *Inbox) remember(row store.InboxRow) (store.InboxRow, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.startMinute(row.Minute)
	if i.counted[keyOf(row)] == nil && i.subjects[row.Source] >= inboxSubjects {
		row = otherSubjects(row)
	}
	if known := i.counted[keyOf(row)]; known != nil {
		known.Hits++
		return row, true
	}
	if len(i.counted) < inboxKeys {
		counter := row
		counter.Hits = 0 // row itself is written now
		i.counted[keyOf(row)] = &counter
		i.subjects[row.Source]++
	}
	return row, false
}

// otherSubjects returns the row that counts a source's refusals beyond inboxSubjects.
func otherSubjects(row store.InboxRow) store.InboxRow {
	row.Subject, row.Email = inboxOthers, ""
	row.Event.Target.ID = ""
	row.Event.Changes = row.Event.Changes[:1:1] // only the reason; an append must not change the array of the original row
	return row
}

// startMinute begins a new minute. The next Flush writes the counts of earlier ones.
func (i *Inbox) startMinute(minute time.Time) {
	if minute.Equal(i.minute) {
		return
	}
	for _, r := range i.counted {
		if r.Hits > 0 {
			i.earlier = append(i.earlier, *r)
		}
	}
	i.minute = minute
	clear(i.counted)
	clear(i.subjects)
}

// forget removes the row from memory after a failed write, so that the next refusal of the same
// kind is written.
func (i *Inbox) forget(row store.InboxRow) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.counted[keyOf(row)]
	if known == nil || !known.Minute.Equal(row.Minute) {
		return
	}
	if known.Hits > 0 {
		i.earlier = append(i.earlier, *known)
	}
	delete(i.counted, keyOf(row))
	i.subjects[row.Source]--
}

// Flush writes the counts in memory to the database. Errors: unavailable; then the rows stay in memory
// for the next flush.
func (i *Inbox) Flush(ctx context.Context) error {
	unwritten, err := store.WriteRows(i.take(), inboxBatch, func(rows []store.InboxRow) error { return i.file(ctx, rows) },
		func(r store.InboxRow) { i.drop([]store.InboxRow{r}) })
	i.giveBack(unwritten)
	return err
}

// take removes the rows to write from memory and returns them, in the order in which rows are
// locked.
func (i *Inbox) take() []store.InboxRow {
	i.mu.Lock()
	defer i.mu.Unlock()
	rows := i.earlier
	i.earlier = nil
	for _, r := range i.counted {
		if r.Hits > 0 {
			rows = append(rows, *r)
			r.Hits = 0
		}
	}
	for n := range rows { // a new id for each row, since the event of the first one may already be in the trail
		rows[n].Event.ID = doorward.NewID(doorward.PrefixEvent)
	}
	SortInbox(rows)
	return rows
}

// SortInbox sorts rows in the order in which they are written, so that transactions can't
// deadlock.
func SortInbox(rows []store.InboxRow) {
	slices.SortFunc(rows, func(a, b store.InboxRow) int {
		return cmp.Or(
			strings.Compare(a.Source, b.Source), strings.Compare(string(a.Action), string(b.Action)),
			strings.Compare(string(a.Reason), string(b.Reason)), strings.Compare(a.Subject, b.Subject), a.Minute.Compare(b.Minute),
		)
	})
}

// file writes the rows in one transaction. A full inbox drops them.
func (i *Inbox) file(ctx context.Context, rows []store.InboxRow) error {
	if i.IsFull() {
		i.drop(rows)
		return nil
	}
	err := i.write(ctx, "upkeep", func(tx *store.Tx) error {
		for _, r := range rows {
			if err := tx.FileInboxLater(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		i.rows.Add(int64(len(rows)))
	}
	return err
}

// giveBack puts rows that could not be written back into memory, up to inboxKeys, and drops the
// others.
func (i *Inbox) giveBack(rows []store.InboxRow) {
	i.mu.Lock()
	free := min(max(0, inboxKeys-len(i.earlier)), len(rows))
	i.earlier = append(i.earlier, rows[:free]...)
	i.mu.Unlock()
	i.drop(rows[free:])
}

func (i *Inbox) drop(rows []store.InboxRow) {
	for _, r := range rows {
		i.dropped.Add(uint64(r.Hits))
	}
}

// Refuse records that the action was refused, and returns the reason. If that fails, the request fails:
// each refusal must be recorded. Errors: the reason, unavailable.
func (i *Inbox) Refuse(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object, reason *doorward.Error) error {
	return i.fileRefusal(by, refusal(by, action, on, reason), reason, i.inOwnTransaction(ctx, action))
}

// RecordIfRefusal records err if it is of KindForbidden, or is last_owner, and returns it. It
// doesn't record conflicts, absent objects, or requests for another proof, which are normal.
func (i *Inbox) RecordIfRefusal(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object, err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || e.Kind() != doorward.KindForbidden && e.Code != doorward.CodeLastOwner || asksForProof[e.Code] {
		return err
	}
	return i.Refuse(ctx, by, action, on, e)
}

// asksForProof are the codes that ask for another proof.
var asksForProof = map[doorward.Code]bool{doorward.CodeMFARequired: true, doorward.CodeMFAEnrolmentRequired: true, doorward.CodeStepUpRequired: true, doorward.CodeSignInRequired: true}

// inOwnTransaction returns a function that writes a refusal in a transaction of its own.
func (i *Inbox) inOwnTransaction(ctx context.Context, action doorward.Action) func(RecordFunc) error {
	return func(record RecordFunc) error {
		if record == nil {
			return nil
		}
		return i.write(ctx, action, func(tx *store.Tx) error { return record(ctx, tx) })
	}
}

// RefuseKey records that an API key was refused, and returns the reason. Refusals are
// counted by client network (doorward.Site), key and cause, for every kind of caller.
func (i *Inbox) RefuseKey(ctx context.Context, by doorward.Caller, on doorward.Object, cause string, reason *doorward.Error) error {
	row := refusal(by, doorward.APIKeyRefuse, on, reason)
	row.Source, row.Subject = doorward.Site(by.IP), row.Subject+" "+cause
	row.Event.Changes = append(row.Event.Changes, doorward.Change{Field: "cause", To: cause})
	return i.fileRefusal(by, row, reason, i.inOwnTransaction(ctx, doorward.APIKeyRefuse))
}

// RefuseSignOn records that a sign-in by the connection on was refused, and returns the reason. Refusals are
// counted by connection, not by caller and check: its protocol has those.
func (i *Inbox) RefuseSignOn(ctx context.Context, by doorward.Caller, on doorward.Object, reason *doorward.Error) error {
	by.ViewOnly = false // a callback is no view of a page
	row := refusal(by, doorward.SSORefuse, on, &doorward.Error{Code: doorward.CodeSignOnRefused})
	row.Source, row.Subject = on.ID, on.ID
	return i.fileRefusal(by, row, reason, i.inOwnTransaction(ctx, doorward.SSORefuse))
}

// RefuseWith is Refuse in a transaction that write opens. write may also write other rows in it, so
// that a refused caller waits for one commit only. If write fails, nothing is recorded, and
// RefuseWith returns the error.
func (i *Inbox) RefuseWith(by doorward.Caller, action doorward.Action, on doorward.Object, reason *doorward.Error, write func(RecordFunc) error) error {
	return i.fileRefusal(by, refusal(by, action, on, reason), reason, write)
}

// RefuseAccount is Refuse for a request that must not reveal whether the address has an account.
// The worker looks the canonical address up later, so the request does the same work for every
// address. Refusals are grouped by counter; by caller if counter is empty.
func (i *Inbox) RefuseAccount(ctx context.Context, by doorward.Caller, action doorward.Action, email, counter string, reason *doorward.Error) error {
	row := addressRefusal(by, action, email, reason)
	if counter != "" {
		row.Source, row.Subject = counter, ""
	}
	return i.fileRefusal(by, row, reason, i.inOwnTransaction(ctx, action))
}

// RefuseAccountWith is RefuseAccount without a counter, in a transaction that write opens, as in
// RefuseWith.
func (i *Inbox) RefuseAccountWith(by doorward.Caller, action doorward.Action, email string, reason *doorward.Error, write func(RecordFunc) error) error {
	return i.fileRefusal(by, addressRefusal(by, action, email, reason), reason, write)
}

func addressRefusal(by doorward.Caller, action doorward.Action, email string, reason *doorward.Error) store.InboxRow {
	row := refusal(by, action, doorward.Object{Type: "user", TenantID: by.TenantID}, reason)
	row.Email, row.Subject = email, email
	return row
}

// fileRefusal records the row through write, and returns the reason. The view of a page
// (ViewOnly) is not an attempt and is not recorded.
func (i *Inbox) fileRefusal(by doorward.Caller, row store.InboxRow, reason *doorward.Error, write func(RecordFunc) error) error {
	var err error
	if by.ViewOnly {
		err = write(nil)
	} else {
		row.Event.At = i.db.Now()
		err = i.add(row, write)
	}
	if err != nil {
		return err
	}
	return reason
}

// maxRoleBytes is how many bytes of a role are recorded. A caller may ask for any text, and a key of an
// index of PostgreSQL has 2,704 bytes at most. Names of existing roles have up to 32.
const maxRoleBytes = 64

func refusal(by doorward.Caller, action doorward.Action, on doorward.Object, reason *doorward.Error) store.InboxRow {
	on.Granted = doorward.Role(strings.ToValidUTF8(string(on.Granted[:min(len(on.Granted), maxRoleBytes)]), ""))
	ev := doorward.NewEvent(by, action, on, doorward.Refused)
	ev.Changes = []doorward.Change{{Field: doorward.FieldReason, To: string(reason.Code)}}
	if on.Granted != "" {
		ev.Changes = append(ev.Changes, doorward.Change{Field: doorward.FieldRole, From: string(on.Held), To: string(on.Granted)})
	}
	if reason.Policy != nil {
		ev.Changes = append(ev.Changes, doorward.Change{Field: "policy", To: reason.Policy.PolicyID})
	}
	if action == doorward.MFARefuse { // the person looks for browsers they don't recognise
		ev.Changes = append(ev.Changes, doorward.Change{Field: doorward.FieldUserAgent, To: by.UserAgent})
	}
	ev.AddTerminal(by)
	subject := strings.Join([]string{on.TenantID, on.Type, on.ID, string(on.Held), string(on.Granted)}, " ")
	return store.InboxRow{Source: sourceOf(by), Action: action, Reason: reason.Code, Subject: subject, Event: ev}
}

// sourceOf returns the key under which the refusals of a caller are counted: for an anonymous
// caller the client network (doorward.Site: the clients of an IPv6 /48 take turns as one), else the
// caller's id, or the kind if there is no id.
func sourceOf(by doorward.Caller) string {
	if by.Kind == doorward.Anonymous {
		return doorward.Site(by.IP)
	}
	return cmp.Or(by.ID, string(by.Kind))
}

// ErrInboxFull is the error if refusals can't be recorded at present.
var ErrInboxFull = errors.New("refusal: the inbox is full: too many unrecorded refusals")
