package inbox

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/refusal"
	"github.com/doorward/doorward/store"
)

// recorder records rows in one transaction.
type recorder struct {
	tx        *store.Tx
	tenants   map[string]bool // whether they have a trail
	events    []doorward.Event
	anonymous map[anonymousKey]store.InboxRow
}

func newRecorder(tx *store.Tx) *recorder {
	return &recorder{tx: tx, tenants: map[string]bool{}, anonymous: map[anonymousKey]store.InboxRow{}}
}

// anonymousKey groups rows by anonymous callers of one network without a known
// account, in one minute.
type anonymousKey struct {
	network string
	action  doorward.Action
	reason  doorward.Code
	minute  time.Time
}

// anonymousSubject is the subject of rows that count anonymous callers.
const anonymousSubject = "nobody"

// maxAnonymousSources is how many networks have a row of their own in a minute.
// Further ones are counted together, so that an attack from many networks leaves
// few events.
const maxAnonymousSources = 10

// maxForgotAge is how long after a request for a reset its mail is still sent.
const maxForgotAge = time.Hour

// take claims the row and records the part of it that isn't in the trail yet.
func (r *recorder) take(ctx context.Context, row store.InboxRow) error {
	// Each request for a reset has a row of its own, which gets no more hits.
	isResetRequest := row.Action == doorward.PasswordForgot && row.Email != ""
	claimed, err := r.tx.ClaimInbox(ctx, row, isResetRequest)
	if err != nil || !claimed || row.Hits == row.Recorded {
		return err
	}
	if row.Recorded > 0 {
		row.Event.ID = doorward.NewID(doorward.PrefixEvent)
	}
	if row.Email != "" {
		if err := r.resolve(ctx, &row); err != nil {
			return err
		}
	}
	if isUnknown(row) {
		r.count(row)
		return nil
	}
	return r.append(ctx, row)
}

// resolve looks up the account of the address, and queues the mail of a reset.
func (r *recorder) resolve(ctx context.Context, row *store.InboxRow) error {
	account, err := r.tx.AccountByEmail(ctx, row.Email)
	if errors.Is(err, store.ErrNone) {
		row.Event.Target = doorward.Object{Type: "user"}
		return nil
	}
	if err != nil {
		return err
	}
	own := "" // the caller's tenant, if the account is the caller's own
	if row.Event.ActorID == account.ID {
		own = row.Event.Target.TenantID
	}
	home, err := proof.HomeTenant(ctx, r.tx.Reader, account.ID, own)
	row.Event.Target = doorward.Object{Type: "user", ID: account.ID, TenantID: home}
	if err != nil || row.Action != doorward.PasswordForgot || r.tx.Now.Sub(row.Event.At) > maxForgotAge {
		return err
	}
	r.tx.MailShare = row.Source // the mail counts in the share of the network that asked
	return r.tx.QueueReset(ctx, row.Email, row.ReturnTo)
}

// isUnknown reports whether the row is of an anonymous caller and without an
// account, and isn't itself a count of such rows.
func isUnknown(row store.InboxRow) bool {
	e := row.Event
	return row.Subject != anonymousSubject && e.ActorType == doorward.Anonymous && e.Target.Type == "user" && e.Target.ID == "" && e.Target.TenantID == ""
}

// append adds the row's event to those to be written, unless its trail was
// destroyed.
func (r *recorder) append(ctx context.Context, row store.InboxRow) error {
	exists, err := r.hasTrail(ctx, row.Event.Target.TenantID)
	if err != nil || !exists {
		return err
	}
	if n := row.Hits - row.Recorded; n > 1 {
		row.Event.Changes = append(slices.Clip(row.Event.Changes), doorward.Change{Field: doorward.FieldCount, To: strconv.Itoa(n)})
	}
	r.events = append(r.events, row.Event)
	return nil
}

// write adds the events in the order of their time; rows are claimed in another
// order.
func (r *recorder) write() {
	slices.SortStableFunc(r.events, func(a, b doorward.Event) int { return a.At.Compare(b.At) })
	for _, e := range r.events {
		r.tx.InsertPastEvent(e)
	}
}

// hasTrail reports whether the tenant exists, or is the installation. A closing
// one is locked until the commit: a destroyed tenant must not get events.
func (r *recorder) hasTrail(ctx context.Context, tenantID string) (bool, error) {
	if exists, known := r.tenants[tenantID]; known || tenantID == "" {
		return exists || tenantID == "", nil
	}
	tenant, err := r.tx.Tenant(ctx, tenantID)
	if err == nil && tenant.Status == doorward.TenantClosing {
		if err = r.tx.LockTenant(ctx, tenantID); err == nil {
			_, err = r.tx.Tenant(ctx, tenantID)
		}
	}
	if err != nil && !errors.Is(err, store.ErrNone) {
		return false, err
	}
	r.tenants[tenantID] = err == nil
	return err == nil, nil
}

// count adds the row to the count of its network.
func (r *recorder) count(row store.InboxRow) {
	if row.Fault != nil { // its event is unreadable
		row.Event = doorward.Event{
			At: row.Minute, Action: row.Action, Outcome: doorward.Done, ActorType: doorward.Anonymous,
			Target: doorward.Object{Type: "user"}, IP: row.Source, Changes: []doorward.Change{},
		}
	}
	key := anonymousKey{doorward.Site(row.Event.IP), row.Action, row.Reason, row.Minute}
	sum, has := r.anonymous[key]
	if !has {
		sum = row
		sum.Source, sum.Subject, sum.Email, sum.ReturnTo = key.network, anonymousSubject, "", ""
		sum.IsSetAside, sum.Fault = false, nil
		sum.Hits, sum.Recorded, sum.Event.ID = 0, 0, doorward.NewID(doorward.PrefixEvent)
	}
	sum.Hits += row.Hits - row.Recorded
	r.anonymous[key] = sum
}

// fileAnonymous puts the counts back into the inbox, to be recorded at the end of
// the minute.
func (r *recorder) fileAnonymous(ctx context.Context) error {
	groups := map[anonymousKey][]store.InboxRow{} // rows of a group differ only in their network
	for key, row := range r.anonymous {
		key.network = ""
		groups[key] = append(groups[key], row)
	}
	var rows []store.InboxRow
	for _, group := range groups {
		merged, err := r.mergeBeyondLimit(ctx, group)
		if err != nil {
			return err
		}
		rows = append(rows, merged...)
	}
	refusal.SortInbox(rows)
	for _, row := range rows {
		if err := r.tx.FileInboxLater(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// mergeBeyondLimit keeps the rows of maxAnonymousSources networks and merges the others into
// one row without a source. Networks that already have a row in the inbox are kept first.
func (r *recorder) mergeBeyondLimit(ctx context.Context, group []store.InboxRow) ([]store.InboxRow, error) {
	sources, err := r.tx.InboxSources(ctx, group[0], maxAnonymousSources+1) // +1: the merged row, which has none
	if err != nil {
		return nil, err
	}
	sources = slices.DeleteFunc(sources, func(s string) bool { return s == "" })
	refusal.SortInbox(group)
	var rows, rest []store.InboxRow
	for _, row := range group {
		switch {
		case slices.Contains(sources, row.Source):
			rows = append(rows, row)
		case len(sources) < maxAnonymousSources:
			sources = append(sources, row.Source)
			rows = append(rows, row)
		case len(rest) == 0:
			row.Source = ""
			rest = append(rest, row)
		default:
			rest[0].Hits += row.Hits
		}
	}
	return append(rows, rest...), nil
}
