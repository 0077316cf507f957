// Package audit reads the trail that access writes, and detects tampering.
//
// List is for the administrators of a tenant, ListAll for the operator, Feed and FeedAll are for programs that
// follow what happens, and Sweep deletes old events. Verify is for the operator: it walks a
// chain from its first event, or from the last one that Sweep has deleted, and compares
// every hash (see store/chain.go).
//
// A chain reveals a change unless all hashes after it were recomputed. An attacker who can
// write to the database can do that, or delete the last events. Only a Mark, the number and hash
// of an event, that was taken earlier and stored elsewhere reveals this; ContainsMark compares the
// chain with it.
package audit

import (
	"context"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Trail is the feature. Make it with New.
type Trail struct {
	writer *access.Writer
	db     *store.DB
	keep   time.Duration // how long events are kept; 0: for ever

	recordPending func(context.Context)
}

// New returns the feature for List, Feed and Verify. recordPending records the refusals that are still
// in the inbox.
func New(db *store.DB, recordPending func(context.Context)) *Trail {
	return &Trail{db: db, recordPending: recordPending}
}

// WithRetention sets the writer and how long events are kept (0: for ever), and returns the
// feature. FeedAll, Export of all trails and Sweep need them.
func (t *Trail) WithRetention(writer *access.Writer, keep time.Duration) *Trail {
	t.writer, t.keep = writer, keep
	return t
}

// Filter selects events. It has not been checked yet; empty fields select all.
type Filter struct {
	Action string
	Actor  string // id, address, "operator", or who ran the operator's command, as in root@db1
	Target string // id
	From   string // RFC 3339
	To     string // RFC 3339, exclusive

	Outcome string // done or refused
	Request string // id
	IP      string // address of the client
}

// List returns events of the caller's tenant, or for the operator those of the installation, the
// newest first. An actor that there can't be is refused; in a tenant an address of nobody is not, since the answer would tell
// who has an account. Before it reads the first page, it records the refusals that are pending on this
// node. Errors: validation_failed.
func (t *Trail) List(ctx context.Context, by doorward.Caller, f Filter, w doorward.Window) (doorward.Page[doorward.Event], error) {
	if !w.IsBackward() && w.After == (doorward.Position{}) { // further pages show older events
		t.recordPending(ctx)
	}
	chosen, err := t.choose(ctx, by, f, t.searchIn(by.TenantID))
	if err != nil {
		return doorward.Page[doorward.Event]{}, err
	}
	return t.db.Read().EventPage(ctx, by.TenantID, chosen, w)
}

// ListAll returns events of all tenants and of the installation, by time, the newest first, to the operator. An
// actor's address is that of the present account; an earlier address finds the events that have it. One that is
// neither is refused. A limited operator key needs events.read. Errors: validation_failed, forbidden.
func (t *Trail) ListAll(ctx context.Context, by doorward.Caller, f Filter, w doorward.Window) (doorward.Page[doorward.Event], error) {
	none := doorward.Page[doorward.Event]{}
	if err := t.writer.Require(ctx, by, doorward.ServiceEventsRead, doorward.Object{}); err != nil {
		return none, err
	}
	if !w.IsBackward() && w.After == (doorward.Position{}) {
		t.recordPending(ctx)
	}
	chosen, err := t.choose(ctx, by, f, t.db.Read().EventPageOfAll)
	if err != nil {
		return none, err
	}
	return t.db.Read().EventPageOfAll(ctx, chosen, w)
}

// parse checks each field by itself; choose looks for the actor.
func (f Filter) parse() (store.EventFilter, []doorward.FieldError) {
	var faults []doorward.FieldError
	fault := func(parameter, message string) {
		faults = append(faults, doorward.FieldError{Parameter: parameter, Code: "invalid", Message: message})
	}
	chosen := store.EventFilter{Action: doorward.Action(f.Action), Target: f.Target, Outcome: doorward.Outcome(f.Outcome), Request: f.Request}
	if _, known := doorward.Lookup(chosen.Action); f.Action != "" && !known {
		fault("action", "There is no such action. docs/events.md lists them, such as user.invite.")
	}
	if f.Target != "" && !hasIDForm(f.Target) {
		fault("target", "Write the id of an object, such as usr_7vkq2m5x3yh4n6rj7wd2c5tpae: an address or a name finds nothing.")
	}
	if o := chosen.Outcome; o != "" && o != doorward.Done && o != doorward.Refused {
		fault("outcome", "An event is done or refused.")
	}
	if f.IP != "" {
		ip, err := netip.ParseAddr(f.IP)
		chosen.IP = ip.Unmap().String()
		if err != nil || ip.Zone() != "" {
			fault("ip", "Write one address, as in 192.0.2.7 or 2001:db8::7.")
		}
	}
	instant := func(parameter, text string, to **time.Time) {
		if text == "" {
			return
		}
		at, err := doorward.ParseTime(text)
		*to = &at
		if err != nil {
			fault(parameter, "Write the time as in 2031-05-06T12:00:00Z (RFC 3339), and a + in it as %2B.")
		}
	}
	instant("from", f.From, &chosen.From)
	instant("to", f.To, &chosen.To)
	return chosen, faults
}

// hasIDForm reports whether the text has the form of an id: three letters, an underscore, and more without blanks.
func hasIDForm(text string) bool {
	prefix, rest, found := strings.Cut(text, "_")
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' }
	return found && len(prefix) == 3 && strings.TrimFunc(prefix, isLetter) == "" && rest != "" && !strings.ContainsFunc(rest, unicode.IsSpace) && !strings.Contains(rest, "@")
}
