package access

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

// What one node keeps in memory, and what all of them keep in the database.
const (
	inboxKeys     = 10_000  // in memory; what is beyond is written each time
	inboxSubjects = 30      // of one source in a minute; the rest is counted together
	inboxRows     = 100_000 // in the database; beyond it refusals are only counted
	inboxBatch    = 200     // rows that are written at once
)

// inboxOthers is the subject of what a source does beyond inboxSubjects.
const inboxOthers = "others"

// Inbox takes refusals, so that none of them waits for a chain of events, nor has
// anybody else wait for one. The first of its kind in a minute is in the database
// before the caller is answered. Those that follow in that minute are counted in
// memory and written by Flush: a process that is killed loses their number.
type Inbox struct {
	db    *store.DB
	write func(context.Context, doorward.Action, func(*store.Tx) error) error

	mu       sync.Mutex
	minute   time.Time
	counted  map[inboxKey]*store.InboxRow // Hits: not yet written
	subjects map[string]int               // by source
	late     []store.InboxRow             // of earlier minutes, to be written

	rows    atomic.Int64 // in the database, as counted last, and what was added since
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

func newInbox(d *Door) *Inbox {
	write := func(ctx context.Context, act doorward.Action, fn func(*store.Tx) error) error {
		_, _, err := d.write(ctx, act, fn)
		return err
	}
	return &Inbox{db: d.db, write: write, counted: map[inboxKey]*store.InboxRow{}, subjects: map[string]int{}}
}

// Full reports whether nothing more should be put in.
func (i *Inbox) Full() bool { return i.rows.Load() >= inboxRows }

// Dropped counts the refusals that were not recorded since the start, for the
// inbox was full.
func (i *Inbox) Dropped() uint64 { return i.dropped.Load() }

// Filed notes that a row was written past add.
func (i *Inbox) Filed() { i.rows.Add(1) }

// Count finds out how full the inbox is. Errors: unavailable.
func (i *Inbox) Count(ctx context.Context) error {
	n, err := i.db.Read().CountInbox(ctx, inboxRows)
	if err == nil {
		i.rows.Store(int64(n))
	}
	return err
}

// Record writes a refusal in a transaction. It is nil where nothing has to be
// written.
type Record func(context.Context, *store.Tx) error

// add counts the refusal of the row, whose minute and hits are filled in, and has
// write write it, in a transaction that does other things as well. Errors: those of
// write, and then the row isn't taken for written.
func (i *Inbox) add(row store.InboxRow, write func(Record) error) error {
	row.Minute, row.Hits = row.Event.At.Truncate(store.InboxMinute), 1
	row, again := i.remember(row)
	switch {
	case again:
		return write(nil)
	case i.Full():
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
		i.Filed()
	default:
		i.repeated(row)
	}
	return err
}

// fileFirst writes the row and reports true, unless another node has written its
// like: then the first is recorded already, and this one is counted in memory as a
// repetition. Counting it in the row would wait for the worker that has claimed it,
// and so for the chain that the worker waits for.
func (i *Inbox) fileFirst(ctx context.Context, tx *store.Tx, row store.InboxRow) (bool, error) {
	if i.remembers(row) {
		if there, err := tx.HasInbox(ctx, row); there || err != nil {
			return false, err
		}
	}
	return true, tx.FileInbox(ctx, row, false)
}

// remembers reports whether repetitions of the row are counted in memory.
func (i *Inbox) remembers(row store.InboxRow) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counted[keyOf(row)] != nil
}

// repeated counts the row in memory, which another node has written first.
func (i *Inbox) repeated(row store.InboxRow) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known := i.counted[keyOf(row)]; known != nil && known.Minute.Equal(row.Minute) {
		known.Hits++
		return
	}
	i.late = append(i.late, row) // its minute ended during the write
}

// remember counts the row in memory and reports whether that is enough, since its
// like has come before. It returns the row as it is to be written.
func (i *Inbox) remember(row store.InboxRow) (store.InboxRow, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.turn(row.Minute)
	if i.counted[keyOf(row)] == nil && i.subjects[row.Source] >= inboxSubjects {
		row = others(row)
	}
	if known := i.counted[keyOf(row)]; known != nil {
		known.Hits++
		return row, true
	}
	if len(i.counted) < inboxKeys {
		kept := row
		kept.Hits = 0
		i.counted[keyOf(row)] = &kept
		i.subjects[row.Source]++
	}
	return row, false
}

// others is the row for what a source does beyond its number of subjects.
func others(row store.InboxRow) store.InboxRow {
	row.Subject, row.Email = inboxOthers, ""
	row.Event.Target.ID = ""
	row.Event.Changes = row.Event.Changes[:1:1] // the reason
	return row
}

// turn begins a minute.
func (i *Inbox) turn(minute time.Time) {
	if minute.Equal(i.minute) {
		return
	}
	for _, r := range i.counted {
		if r.Hits > 0 {
			i.late = append(i.late, *r)
		}
	}
	i.minute = minute
	clear(i.counted)
	clear(i.subjects)
}

// forget has the next one like the row be written: this one wasn't.
func (i *Inbox) forget(row store.InboxRow) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.counted[keyOf(row)]
	if known == nil || !known.Minute.Equal(row.Minute) {
		return
	}
	if known.Hits > 0 {
		i.late = append(i.late, *known)
	}
	delete(i.counted, keyOf(row))
	i.subjects[row.Source]--
}

// Flush writes what was counted in memory. Errors: unavailable; what wasn't
// written then is written the next time.
func (i *Inbox) Flush(ctx context.Context) error {
	rows := i.take()
	for len(rows) > 0 {
		n := min(len(rows), inboxBatch)
		if i.Full() {
			i.drop(rows)
			return nil
		}
		if err := i.file(ctx, rows[:n]); err != nil {
			i.giveBack(rows)
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// take returns what is to be written, in the order in which rows are locked.
func (i *Inbox) take() []store.InboxRow {
	i.mu.Lock()
	defer i.mu.Unlock()
	rows := i.late
	i.late = nil
	for _, r := range i.counted {
		if r.Hits > 0 {
			rows = append(rows, *r)
			r.Hits = 0
		}
	}
	for n := range rows { // the first one's event may be recorded, and its row gone
		rows[n].Event.ID = doorward.NewID(doorward.PrefixEvent)
	}
	SortInbox(rows)
	return rows
}

// SortInbox puts rows into the order in which they are written, so that no two
// transactions wait for each other.
func SortInbox(rows []store.InboxRow) {
	slices.SortFunc(rows, func(a, b store.InboxRow) int {
		return cmp.Or(
			strings.Compare(a.Source, b.Source), strings.Compare(string(a.Action), string(b.Action)),
			strings.Compare(string(a.Reason), string(b.Reason)), strings.Compare(a.Subject, b.Subject), a.Minute.Compare(b.Minute),
		)
	})
}

func (i *Inbox) file(ctx context.Context, rows []store.InboxRow) error {
	err := i.write(ctx, "upkeep", func(tx *store.Tx) error {
		for _, r := range rows {
			if err := tx.FileInbox(ctx, r, true); err != nil {
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

// giveBack keeps what could not be written, as far as there is room.
func (i *Inbox) giveBack(rows []store.InboxRow) {
	i.mu.Lock()
	room := min(max(0, inboxKeys-len(i.late)), len(rows))
	i.late = append(i.late, rows[:room]...)
	i.mu.Unlock()
	i.drop(rows[room:])
}

func (i *Inbox) drop(rows []store.InboxRow) {
	for _, r := range rows {
		i.dropped.Add(uint64(r.Hits))
	}
}

// Inbox is where refusals wait for their record.
func (d *Door) Inbox() *Inbox { return d.inbox }

// record puts the refusal into the inbox. If that fails the caller is told so: a
// refusal that nobody can see later hasn't happened. Looking at a page is no try
// to do anything, so that it isn't let in there is not recorded.
func (d *Door) record(ctx context.Context, by doorward.Caller, act doorward.Action, on doorward.Object, reason *doorward.Error) error {
	return d.file(by, refusal(by, act, on, reason), reason, d.alone(ctx, act))
}

// alone writes a refusal in a transaction of its own.
func (d *Door) alone(ctx context.Context, act doorward.Action) func(Record) error {
	return func(record Record) error {
		if record == nil {
			return nil
		}
		return d.inbox.write(ctx, act, func(tx *store.Tx) error { return record(ctx, tx) })
	}
}

// RefuseWith is Refuse where something else is written along with the record, in
// the transaction that write opens: a caller who is refused waits for one commit
// less. If write fails, nothing is recorded and its error is returned.
func (d *Door) RefuseWith(by doorward.Caller, act doorward.Action, on doorward.Object, reason *doorward.Error, write func(Record) error) error {
	return d.file(by, refusal(by, act, on, reason), reason, write)
}

// RefuseAccount is Refuse where it isn't known whose account it is about, nor
// whether there is one: whoever records it looks the canonical address up. So the
// request does the same for every address. Refusals that are counted together have
// one counter, if it isn't empty, else they are those of one caller.
func (d *Door) RefuseAccount(ctx context.Context, by doorward.Caller, act doorward.Action, email, counter string, reason *doorward.Error) error {
	row := ofAddress(by, act, email, reason)
	if counter != "" {
		row.Source, row.Subject = counter, ""
	}
	return d.file(by, row, reason, d.alone(ctx, act))
}

// RefuseAccountWith is RefuseAccount for one caller, and RefuseWith.
func (d *Door) RefuseAccountWith(by doorward.Caller, act doorward.Action, email string, reason *doorward.Error, write func(Record) error) error {
	return d.file(by, ofAddress(by, act, email, reason), reason, write)
}

func ofAddress(by doorward.Caller, act doorward.Action, email string, reason *doorward.Error) store.InboxRow {
	row := refusal(by, act, doorward.Object{Type: "user", TenantID: by.TenantID}, reason)
	row.Email, row.Subject = email, email
	return row
}

func (d *Door) file(by doorward.Caller, row store.InboxRow, reason *doorward.Error, write func(Record) error) error {
	var err error
	if by.Looking {
		err = write(nil)
	} else {
		row.Event.At = d.db.Now()
		err = d.inbox.add(row, write)
	}
	if err != nil {
		return err
	}
	return reason
}

func refusal(by doorward.Caller, act doorward.Action, on doorward.Object, reason *doorward.Error) store.InboxRow {
	ev := event(by, act, on, doorward.Refused)
	ev.Changes = []doorward.Change{{Field: "reason", To: string(reason.Code)}}
	if on.Granted != "" {
		ev.Changes = append(ev.Changes, doorward.Change{Field: "role", From: string(on.Held), To: string(on.Granted)})
	}
	subject := strings.Join([]string{on.TenantID, on.Type, on.ID, string(on.Held), string(on.Granted)}, " ")
	return store.InboxRow{Source: SourceOf(by), Action: act, Reason: reason.Code, Subject: subject, Event: ev}
}

// SourceOf is whose acts are counted together: those of a user or a key, else
// those of a client network.
func SourceOf(by doorward.Caller) string {
	if by.Kind == doorward.Anonymous {
		return doorward.Network(by.IP)
	}
	return cmp.Or(by.ID, string(by.Kind))
}

// ErrInboxFull says that a request can't be taken now.
var ErrInboxFull = errors.New("access: the inbox is full: too much of what strangers have sent waits to be recorded")
