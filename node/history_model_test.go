package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// A history is what the clients of an installation observed: calls with their start, end
// and answer, by the test's clock. verify compares each answer with all writes to the
// person concerned. That is weaker than linearizability: while a change runs, a first check
// may see it and a second not. The guarantee begins with the answer to the change.

// span is the duration of a call. Its effect happened at some instant within.
type span struct{ from, to time.Duration }

func (s span) String() string {
	return fmt.Sprintf("%v..%v", s.from.Round(time.Millisecond), s.to.Round(time.Millisecond))
}

func (s span) before(other span) bool { return s.to < other.from }

// mutation is a call that changes something. If its outcome is unknown, it took effect
// within the span, or never; see history.resolve.
type mutation struct {
	span
	node      int
	succeeded bool // false: the outcome is unknown
}

// write gives a register a value.
type write struct {
	mutation
	value string
}

// register is all writes of one attribute: the role, the status or the password of a
// person, or a rule. Its first write is the initial value.
type register []write

// possible returns the values that a read may see: those of writes that began before
// the read ended, unless another write certainly followed and was answered before the
// read began.
func (r register) possible(read span) []string {
	followed := time.Duration(-1 << 62) // the latest start of a write that was answered before the read
	for _, w := range r {
		if w.succeeded && w.before(read) {
			followed = max(followed, w.from)
		}
	}
	var values []string
	for _, w := range r {
		if w.from <= read.to && w.to >= followed {
			values = append(values, w.value)
		}
	}
	return values
}

// session was opened by a login whose answer arrived.
type session struct {
	span
	person *person
	token  string
}

// ending is a call that ends one session, or all of the person's except one.
type ending struct {
	mutation
	only   *session // nil: all
	except *session // may be nil
	status int      // of the answer; 0: none, or not by request
}

func (e ending) String() string {
	sessions, outcome := "all sessions", "answered"
	if e.only != nil {
		sessions = "one session"
	}
	if !e.succeeded {
		outcome = "in doubt"
	}
	return fmt.Sprintf("%s by node %d at %v, %s", sessions, e.node, e.span, outcome)
}

// ends reports whether the call, if it succeeded, certainly ended the session, and
// whether it may have ended it.
func (e ending) ends(s *session) (surely, perhaps bool) {
	switch {
	case e.only != nil:
		return e.only == s, e.only == s
	case e.except == s || e.before(s.span):
		return false, false
	}
	return s.before(e.span), true
}

// person is a person with all calls that changed them.
type person struct {
	email    string
	sessions []*session
	endings  []ending
	role     register
	status   register
	password register
}

// probe is a call with a session. Its answer says whether the session is valid, and
// perhaps the role.
type probe struct {
	span
	session *session
	node    int
	action  string // the checked action, or empty
	status  int    // of HTTP; 0 without an answer
	role    string // as answered, or empty
}

// read is an answer that depends on a register.
type read struct {
	span
	description string
	register    *register
	value       string
	excluded    bool // the answer says that it is not this value
}

// fault is a time during which a node was faulty.
type fault struct {
	span
	node int
	name string
}

type history struct {
	people []*person
	probes []probe
	reads  []read
	faults []fault
	rules  map[string]register // by the action that depends on it
}

// deadAfter is how long after its end a failed call may still take effect if nothing
// delays it, such as a COMMIT in transit. It is generous.
const deadAfter = 5 * time.Second

// latestEffect returns until when a call of unknown outcome, which ended at an instant,
// may still take effect. Faults of the node delay it: a paused process continues, and a
// network retransmits.
func (h *history) latestEffect(node int, ended time.Duration) time.Duration {
	until := ended + deadAfter
	for again := true; again; {
		again = false
		for _, f := range h.faults {
			if f.node == node && f.from < until && f.to+deadAfter > until {
				until, again = f.to+deadAfter, true
			}
		}
	}
	return until
}

// resolve extends the spans of mutations of unknown outcome. It runs once, before verify.
func (h *history) resolve() {
	extend := func(m *mutation) {
		if !m.succeeded {
			m.to = h.latestEffect(m.node, m.to)
		}
	}
	for _, r := range h.rules {
		for i := range r {
			extend(&r[i].mutation)
		}
	}
	for _, p := range h.people {
		for i := range p.endings {
			extend(&p.endings[i].mutation)
		}
		for _, r := range []register{p.role, p.status, p.password} {
			for i := range r {
				extend(&r[i].mutation)
			}
		}
	}
}

// verdict counts violations. A run is good when all three are 0.
type verdict struct {
	stale    int // an ended session was accepted
	refused  int // a live session was answered 401
	old      int // an answer used a replaced role, status or password
	examples []string
}

func (v verdict) isGood() bool { return v.stale+v.refused+v.old == 0 }

func (v *verdict) add(counter *int, format string, args ...any) {
	*counter++
	if len(v.examples) < 20 {
		v.examples = append(v.examples, fmt.Sprintf(format, args...))
	}
}

// verify compares every answer with what Doorward guarantees:
//
//   - a check that began after the answer to a call that ended its session is not
//     accepted;
//   - a check is answered 401 only if a call that began before the check's end may
//     have ended its session;
//   - no answer depends on a value that an answered call had replaced before the
//     question was asked.
//
// No answer, and 503, are always allowed here.
func (h *history) verify() verdict {
	var v verdict
	for _, c := range h.probes {
		h.verifySession(&v, c)
		h.verifyRole(&v, c)
	}
	for _, r := range h.reads {
		possible := r.register.possible(r.span)
		seen := slices.Contains(possible, r.value)
		if !r.excluded && !seen || r.excluded && seen && len(slices.Compact(possible)) == 1 {
			v.add(&v.old, "at %v: %s, but only %q was possible", r.span, r.description, possible)
		}
	}
	return v
}

func (h *history) verifySession(v *verdict, c probe) {
	surely, perhaps := false, false
	for _, e := range c.session.person.endings {
		ended, may := e.ends(c.session)
		surely = surely || ended && e.succeeded && e.before(c.span)
		perhaps = perhaps || may && e.from <= c.to
	}
	switch {
	case c.isAccepted() && surely:
		endings := slices.DeleteFunc(slices.Clone(c.session.person.endings), func(e ending) bool { surely, _ := e.ends(c.session); return !surely })
		v.add(&v.stale, "at %v node %d answers %d to a session of %s that was ended before: %v", c.span, c.node, c.status, c.session.person.email, endings)
	case c.status == http.StatusUnauthorized && !perhaps:
		v.add(&v.refused, "at %v node %d answers 401 to a live session of %s, opened at %v", c.span, c.node, c.session.person.email, c.session.span)
	}
}

func (h *history) verifyRole(v *verdict, c probe) {
	possible := c.session.person.role.possible(c.span)
	switch {
	case c.role != "" && !slices.Contains(possible, c.role):
		v.add(&v.old, "at %v node %d answers the role %s to %s, possible: %q", c.span, c.node, c.role, c.session.person.email, possible)
	case c.role != "" && !h.mayAnswer(granted, c.role, c),
		c.status == http.StatusForbidden && !slices.ContainsFunc(possible, func(role string) bool { return h.mayAnswer(refused, role, c) }):
		v.add(&v.old, "at %v node %d answers %d to %s by %s, possible roles: %q", c.span, c.node, c.status, c.action, c.session.person.email, possible)
	}
}

// isAccepted reports whether the answer accepts the session.
func (c probe) isAccepted() bool {
	return c.isConclusive() && c.status != http.StatusUnauthorized
}

// isConclusive reports whether the answer says if the session is valid.
func (c probe) isConclusive() bool {
	return c.status != 0 && c.status < http.StatusInternalServerError
}

// What an action of the load's model depends on.
const (
	byModel    = "depends.on.model"  // whether the model grants it to all four roles
	byPolicy   = "depends.on.policy" // whether the tenant's policies refuse it
	byRole     = "depends.on.role"   // whether customRole grants it; no other role does
	customRole = "DISPATCH"
)

// The values of the registers of history.rules.
const (
	granted = "granted"
	refused = "refused"
)

// mayAnswer reports whether the check may have been answered with granted or refused, given the
// role.
func (h *history) mayAnswer(answer, role string, c probe) bool {
	depends := c.action == byPolicy ||
		c.action == byRole && role == customRole ||
		c.action == byModel && role != customRole && role != "OWNER"
	if depends {
		return slices.Contains(h.rules[c.action].possible(c.span), answer)
	}
	return grants(role, c.action) == (answer == granted)
}

// grants is the table of docs/permissions.md, as far as the load uses it.
func grants(role, action string) bool {
	switch action {
	case byRole:
		return role == "OWNER"
	case "message.send":
		return role != "VIEWER"
	case "user.invite":
		return role == "ADMIN" || role == "OWNER"
	}
	return true
}

// spanOf returns the span between two instants in seconds.
func spanOf(from, to int) span {
	return span{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
}

var verifyCases = []struct {
	name string
	make func(h *history, p *person, s *session)
	want verdict
}{
	{"a check of a live session is accepted", func(h *history, _ *person, s *session) {
		h.probes = []probe{{span: spanOf(3, 4), session: s, status: 200}}
	}, verdict{}},
	{"an ended session is accepted", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 4), 0, true}, only: s}}
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 200}}
	}, verdict{stale: 1}},
	{"an ended session is refused for its role, not because it ended", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 4), 0, true}, only: s}}
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 403, action: "user.invite"}}
	}, verdict{stale: 1}},
	{"a check that began before the answer of the ending call may be accepted", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 5), 0, true}, only: s}}
		h.probes = []probe{{span: spanOf(4, 6), session: s, status: 200}, {span: spanOf(4, 6), session: s, status: 401}}
	}, verdict{}},
	{"a session is accepted after all were ended", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 4), 0, true}}}
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 200}}
	}, verdict{stale: 1}},
	{"the session that was kept when all others were ended may go on, and must", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 4), 0, true}, except: s}}
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 200}, {span: spanOf(5, 6), session: s, status: 401}}
	}, verdict{refused: 1}},
	{"a login at the same time as the end of all sessions may be on either side", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(2, 4), 0, true}}}
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 200}, {span: spanOf(5, 6), session: s, status: 401}}
	}, verdict{}},
	{"a login after the end of all sessions is not concerned", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(-1, 0), 0, true}}}
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 401}}
	}, verdict{refused: 1}},
	{"a live session gets 401", func(h *history, _ *person, s *session) {
		h.probes = []probe{{span: spanOf(3, 4), session: s, status: 401}}
	}, verdict{refused: 1}},
	{"401 before anybody asked for the end", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(5, 6), 0, true}, only: s}}
		h.probes = []probe{{span: spanOf(3, 4), session: s, status: 401}}
	}, verdict{refused: 1}},
	{"401 for the end of another session", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 4), 0, true}, only: &session{person: p}}}
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 401}}
	}, verdict{refused: 1}},
	{"an ending without an answer allows both and goes on doing so", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 9), 0, false}, only: s}}
		h.probes = []probe{{span: spanOf(4, 5), session: s, status: 401}, {span: spanOf(20, 21), session: s, status: 200}, {span: spanOf(22, 23), session: s, status: 401}}
	}, verdict{}},
	{"503 and no answer are allowed always", func(h *history, p *person, s *session) {
		p.endings = []ending{{mutation: mutation{spanOf(3, 4), 0, true}, only: s}}
		h.probes = []probe{{span: spanOf(1, 2), session: s, status: 503}, {span: spanOf(5, 6), session: s, status: 503}, {span: spanOf(5, 6), session: s}}
	}, verdict{}},
	{"the old role is answered", func(h *history, p *person, s *session) {
		p.role = append(p.role, write{mutation{spanOf(3, 4), 0, true}, "VIEWER"})
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 200, role: "USER"}, {span: spanOf(5, 6), session: s, status: 200, role: "VIEWER"}}
	}, verdict{old: 1}},
	{"the old role's right is granted", func(h *history, p *person, s *session) {
		p.role = append(p.role, write{mutation{spanOf(3, 4), 0, true}, "VIEWER"})
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 200, role: "VIEWER", action: "message.send"}}
	}, verdict{old: 1}},
	{"the new role's right is refused", func(h *history, p *person, s *session) {
		p.role = append(p.role, write{mutation{spanOf(3, 4), 0, true}, "ADMIN"})
		h.probes = []probe{{span: spanOf(5, 6), session: s, status: 403, action: "user.invite"}}
	}, verdict{old: 1}},
	{"roles given at the same time may be in either order", func(h *history, p *person, s *session) {
		p.role = append(p.role, write{mutation{spanOf(3, 5), 0, true}, "VIEWER"}, write{mutation{spanOf(4, 6), 0, true}, "ADMIN"})
		h.probes = []probe{{span: spanOf(7, 8), session: s, status: 200, role: "VIEWER"}, {span: spanOf(7, 8), session: s, status: 200, role: "ADMIN"}, {span: spanOf(7, 8), session: s, status: 200, role: "USER"}}
	}, verdict{old: 1}},
	{"a role that may have been given may be answered, until one is given for certain", func(h *history, p *person, s *session) {
		p.role = append(p.role, write{mutation{spanOf(3, 5), 0, false}, "VIEWER"}, write{mutation{spanOf(7, 8), 0, true}, "ADMIN"})
		h.probes = []probe{{span: spanOf(6, 6), session: s, status: 200, role: "VIEWER"}, {span: spanOf(6, 6), session: s, status: 200, role: "USER"}, {span: spanOf(9, 9), session: s, status: 200, role: "VIEWER"}}
	}, verdict{old: 1}},
	{"a policy refuses, and then no longer", func(h *history, _ *person, s *session) {
		h.rules = map[string]register{byPolicy: {{mutation{succeeded: true}, granted}, {mutation{spanOf(3, 4), 0, true}, refused}, {mutation{spanOf(7, 8), 0, true}, granted}}}
		h.probes = []probe{
			{span: spanOf(5, 6), session: s, status: 200, role: "USER", action: byPolicy}, // old
			{span: spanOf(5, 6), session: s, status: 403, action: byPolicy},
			{span: spanOf(7, 9), session: s, status: 403, action: byPolicy},
			{span: spanOf(9, 9), session: s, status: 403, action: byPolicy}, // old
		}
	}, verdict{old: 2}},
	{"a custom role grants what others don't", func(h *history, p *person, s *session) {
		h.rules = map[string]register{byRole: {{mutation{succeeded: true}, granted}, {mutation{spanOf(5, 6), 0, true}, refused}}}
		p.role = append(p.role, write{mutation{spanOf(3, 4), 0, true}, customRole})
		h.probes = []probe{
			{span: spanOf(1, 2), session: s, status: 200, role: "USER", action: byRole}, // old
			{span: spanOf(4, 4), session: s, status: 403, action: byRole},               // as USER
			{span: spanOf(5, 5), session: s, status: 200, role: customRole, action: byRole},
			{span: spanOf(7, 8), session: s, status: 200, role: customRole, action: byRole}, // old
		}
	}, verdict{old: 2}},
	{"the old password lets in", func(h *history, p *person, _ *session) {
		p.password = append(p.password, write{mutation{spanOf(3, 4), 0, true}, "new"})
		h.reads = []read{{spanOf(5, 6), "login", &p.password, "old", false}, {spanOf(5, 6), "login", &p.password, "new", false}}
	}, verdict{old: 1}},
	{"the right password is refused", func(h *history, p *person, _ *session) {
		p.password = append(p.password, write{mutation{spanOf(3, 4), 0, true}, "new"})
		h.reads = []read{{spanOf(5, 6), "login", &p.password, "new", true}, {spanOf(5, 6), "login", &p.password, "old", true}}
	}, verdict{old: 1}},
}

// TestHistoryModel: verify finds violations. Each case is a history of one person, with
// instants in seconds.
func TestHistoryModel(t *testing.T) {
	for _, c := range verifyCases {
		t.Run(c.name, func(t *testing.T) {
			initial := func(value string) register { return register{{mutation{succeeded: true}, value}} }
			p := &person{email: "ann", role: initial("USER"), password: initial("old")}
			s := &session{span: spanOf(1, 2), person: p}
			h := &history{people: []*person{p}}
			c.make(h, p, s)
			got := h.verify()
			if got.stale != c.want.stale || got.refused != c.want.refused || got.old != c.want.old {
				t.Errorf("stale %d, refused %d, old %d; want %d, %d, %d\n%s", got.stale, got.refused, got.old,
					c.want.stale, c.want.refused, c.want.old, strings.Join(got.examples, "\n"))
			}
		})
	}
}

// TestFaultsDelayUnknownOutcomes: a fault of the node extends the time in which a call of
// unknown outcome may take effect.
func TestFaultsDelayUnknownOutcomes(t *testing.T) {
	h := &history{faults: []fault{
		{span{10 * time.Second, 20 * time.Second}, 1, ""},
		{span{24 * time.Second, 30 * time.Second}, 1, ""},
		{span{24 * time.Second, 90 * time.Second}, 2, ""},
	}}
	for ended, want := range map[time.Duration]time.Duration{
		time.Second:      time.Second + deadAfter,    // before any fault
		6 * time.Second:  30*time.Second + deadAfter, // delayed by one fault and then by the next
		26 * time.Second: 30*time.Second + deadAfter, // within
		40 * time.Second: 40*time.Second + deadAfter, // after
	} {
		if got := h.latestEffect(1, ended); got != want {
			t.Errorf("a call that ended at %v may take effect until %v, want %v", ended, got, want)
		}
	}
}
