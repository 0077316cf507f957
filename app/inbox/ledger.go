package inbox

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/store"
)

// ledger records rows in one transaction.
type ledger struct {
	tx        *store.Tx
	tenants   map[string]bool // whether they have a trail
	events    []doorward.Event
	strangers map[strangers]store.InboxRow
}

func newLedger(tx *store.Tx) *ledger {
	return &ledger{tx: tx, tenants: map[string]bool{}, strangers: map[strangers]store.InboxRow{}}
}

// strangers are anonymous callers of one network who named no known account, in one
// minute.
type strangers struct {
	network string
	action  doorward.Action
	reason  doorward.Code
	minute  time.Time
}

// nobody is the subject of rows that count strangers.
const nobody = "nobody"

// strangerSources is how many networks of strangers have a row of their own in a
// minute. The others are counted together: a flood from many leaves few events.
const strangerSources = 10

// forgotWithin is how long after a request for a reset its mail still leaves.
const forgotWithin = time.Hour

// take claims the row and records what of it isn't in the trail yet.
func (l *ledger) take(ctx context.Context, row store.InboxRow) error {
	claimed, err := l.tx.ClaimInbox(ctx, row, row.Action == doorward.PasswordForgot && row.Email != "")
	if err != nil || !claimed || row.Hits == row.Recorded {
		return err
	}
	if row.Recorded > 0 {
		row.Event.ID = doorward.NewID(doorward.PrefixEvent)
	}
	if row.Email != "" {
		if err := l.resolve(ctx, &row); err != nil {
			return err
		}
	}
	if isUnknown(row) {
		l.count(row)
		return nil
	}
	return l.append(ctx, row)
}

// resolve looks the account of the address up, and queues the mail of a reset.
func (l *ledger) resolve(ctx context.Context, row *store.InboxRow) error {
	account, err := l.tx.AccountByEmail(ctx, row.Email)
	if errors.Is(err, store.ErrNone) {
		row.Event.Target = doorward.Object{Type: "user"}
		return nil
	}
	if err != nil {
		return err
	}
	own := "" // the tenant that the caller is in
	if row.Event.ActorID == account.ID {
		own = row.Event.Target.TenantID
	}
	home, err := credential.Home(ctx, l.tx.Reader, account.ID, own)
	row.Event.Target = doorward.Object{Type: "user", ID: account.ID, TenantID: home}
	if err != nil || row.Action != doorward.PasswordForgot || l.tx.Now.Sub(row.Event.At) > forgotWithin {
		return err
	}
	l.tx.MailShare = row.Source // the network that asked
	return l.tx.QueueReset(ctx, row.Email, row.ReturnTo)
}

// isUnknown reports whether the row is about no account and by an anonymous caller, and
// isn't itself a count of such rows.
func isUnknown(row store.InboxRow) bool {
	e := row.Event
	return row.Subject != nobody && e.ActorType == doorward.Anonymous && e.Target.Type == "user" && e.Target.ID == "" && e.Target.TenantID == ""
}

// append keeps the row's event for its trail, if there still is one.
func (l *ledger) append(ctx context.Context, row store.InboxRow) error {
	there, err := l.hasTrail(ctx, row.Event.Target.TenantID)
	if err != nil || !there {
		return err
	}
	if n := row.Hits - row.Recorded; n > 1 {
		row.Event.Changes = append(slices.Clip(row.Event.Changes), doorward.Change{Field: doorward.FieldCount, To: strconv.Itoa(n)})
	}
	l.events = append(l.events, row.Event)
	return nil
}

// write adds the events in the order in which they happened: rows are claimed in
// another one.
func (l *ledger) write() {
	slices.SortStableFunc(l.events, func(a, b doorward.Event) int { return a.At.Compare(b.At) })
	for _, e := range l.events {
		l.tx.InsertPastEvent(e)
	}
}

// hasTrail reports whether the tenant is there, or is the installation. One that
// closes is held until the commit: a tenant that is destroyed leaves no trail.
func (l *ledger) hasTrail(ctx context.Context, tenantID string) (bool, error) {
	if there, known := l.tenants[tenantID]; known || tenantID == "" {
		return there || tenantID == "", nil
	}
	tenant, err := l.tx.Tenant(ctx, tenantID)
	if err == nil && tenant.Status == doorward.TenantClosing {
		if err = l.tx.LockTenant(ctx, tenantID); err == nil {
			_, err = l.tx.Tenant(ctx, tenantID)
		}
	}
	if err != nil && !errors.Is(err, store.ErrNone) {
		return false, err
	}
	l.tenants[tenantID] = err == nil
	return err == nil, nil
}

// count adds the row to those of its network.
func (l *ledger) count(row store.InboxRow) {
	if row.Fault != nil { // its event can't be read
		row.Event = doorward.Event{
			At: row.Minute, Action: row.Action, Outcome: doorward.Done, ActorType: doorward.Anonymous,
			Target: doorward.Object{Type: "user"}, IP: row.Source, Changes: []doorward.Change{},
		}
	}
	key := strangers{doorward.Network(row.Event.IP), row.Action, row.Reason, row.Minute}
	sum, has := l.strangers[key]
	if !has {
		sum = row
		sum.Source, sum.Subject, sum.Email, sum.ReturnTo = key.network, nobody, "", ""
		sum.Aside, sum.Fault = false, nil
		sum.Hits, sum.Recorded, sum.Event.ID = 0, 0, doorward.NewID(doorward.PrefixEvent)
	}
	sum.Hits += row.Hits - row.Recorded
	l.strangers[key] = sum
}

// fileStrangers puts what was counted back into the inbox, to be recorded when the
// minute is over.
func (l *ledger) fileStrangers(ctx context.Context) error {
	var rows []store.InboxRow
	for _, row := range l.strangers {
		rows = append(rows, row)
	}
	access.SortInbox(rows)
	rows, err := l.mergeBeyondLimit(ctx, rows)
	for _, row := range rows {
		if err == nil {
			err = l.tx.FileInbox(ctx, row, true)
		}
	}
	return err
}

// mergeBeyondLimit counts rows beyond strangerSources in a minute together.
func (l *ledger) mergeBeyondLimit(ctx context.Context, rows []store.InboxRow) ([]store.InboxRow, error) {
	sources := map[strangers][]string{}
	rest := map[strangers]int{}
	var all []store.InboxRow
	for _, row := range rows {
		like := strangers{"", row.Action, row.Reason, row.Minute}
		if _, asked := sources[like]; !asked {
			known, err := l.tx.InboxSources(ctx, row, strangerSources+1)
			if err != nil {
				return nil, err
			}
			sources[like] = slices.DeleteFunc(known, func(s string) bool { return s == "" })
		}
		known := slices.Contains(sources[like], row.Source)
		if n, joined := rest[like]; !known && joined {
			all[n].Hits += row.Hits
			continue
		}
		switch {
		case known:
		case len(sources[like]) < strangerSources:
			sources[like] = append(sources[like], row.Source)
		default:
			rest[like] = len(all)
			row.Source = ""
		}
		all = append(all, row)
	}
	access.SortInbox(all)
	return all, nil
}
