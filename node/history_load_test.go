//go:build linux

package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store/lease"
)

// load is a concurrent, random load of many clients, and the history of their calls.
type load struct {
	t        *testing.T
	nodes    []*process
	operator *node.Node // acts on the database as a command does
	dsn      string     // the operator's
	program  string     // the operator's
	epoch    time.Time
	http     []*http.Client // for each node
	version  atomic.Int64   // of the last new password, which makes it unique
	targets  func() []int   // the nodes that clients are sent to
	actions  []string       // that are checked; "" is a check without an action
	roles    []string       // that operators give
	pause    time.Duration  // of each client after a check; other calls pause for a multiple

	unavailable atomic.Int64 // answers 503 to calls of the administrator

	running    sync.WaitGroup
	checkSlots chan struct{} // limits concurrent checks

	mu        sync.Mutex // guards the fields below and those of people
	history   history
	live      []*session // not known to have ended
	ended     []*session // the most recently ended ones
	timings   []revocation
	succeeded map[string]int // calls by operation
}

// revocation is how long an answer says that the revocation took to reach every node.
type revocation struct {
	span
	ms float64
}

// shortPause is the load's pause in make test: several tests share two cores with their nodes.
const shortPause = 4 * time.Millisecond

// The operator's calls are in the history under a node number of their own.
const operatorNode = -1

// newLoad creates the people and their tenant in the nodes' database.
func newLoad(t *testing.T, nodes []*process, dsn string, people int) *load {
	t.Helper()
	var all []int
	l := &load{
		t: t, nodes: nodes, dsn: dsn, program: nodes[0].program, epoch: time.Now(), checkSlots: make(chan struct{}, 400), succeeded: map[string]int{},
		pause:   shortPause,
		actions: []string{"", "message.read", "message.send", "user.invite"}, roles: []string{"ADMIN", "USER", "USER", "VIEWER"},
	}
	l.targets = func() []int { return all }
	for node := range nodes {
		all = append(all, node)
		l.http = append(l.http, &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 500, DisableCompression: true},
			Timeout:   waittest.Limit,
		})
	}
	if fulltest.On() {
		l.pause = time.Millisecond
	}
	server := doorwardtest.Start(t, doorwardtest.Database(dsn), func(c *node.Config) { c.Lease, c.Sessions.PerUser = lease.MaxLease, 0 })
	l.history.people = importPeople(t, server.Node, server.Tenant("Acme").ID, people)
	server.Stop()
	l.operator = openOperator(t, dsn)
	return l
}

// importPeople creates people without mail: the nodes under test would send it.
func importPeople(t *testing.T, n *node.Node, tenantID string, count int) (people []*person) {
	t.Helper()
	hash, err := argon.NewPool(quickHash, argon.Options{}).Hash(t.Context(), doorwardtest.Password)
	if err != nil {
		t.Fatal(err)
	}
	list := "email;role;passwordHash\n"
	for i := range count {
		people = append(people, newPerson(fmt.Sprintf("user%d@acme.example", i), "USER"))
		list += people[i].email + ";USER;" + hash + "\n"
	}
	const dryRun = false
	parsed, err := roster.Read(strings.NewReader(list), roster.CSV)
	if err == nil {
		_, err = n.App.Users.Import(t.Context(), doorward.OperatorAtTerminal(), tenantID, parsed, dryRun)
	}
	if err != nil {
		t.Fatal(err)
	}
	return people
}

// quickHash makes hashing cheap.
var quickHash = argon.Params{MemoryKiB: 1024, Time: 1, Parallelism: 1}

// newPerson returns a person with the password of doorwardtest.
func newPerson(email, role string) *person {
	initial := func(value string) register { return register{{mutation{succeeded: true}, value}} }
	return &person{email: email, role: initial(role), status: initial("active"), password: initial(doorwardtest.Password)}
}

// openOperator opens the database as a command does, without starting a process for
// each operation.
func openOperator(t *testing.T, dsn string) *node.Node {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	transport, err := smtp.Open("log:", "Doorward <no-reply@localhost>", "", quiet)
	if err != nil {
		t.Fatal(err)
	}
	cfg := node.Defaults()
	cfg.Database, cfg.Transport, cfg.Hash, cfg.Log = dsn, transport, quickHash, quiet
	cfg.Clock, cfg.Sessions.PerUser = time.Now, 0 // it runs no lease, which would measure the database's clock again
	n, err := node.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func (l *load) now() time.Duration { return time.Since(l.epoch) }

// reply is the answer to a call; its status is 0 without one.
type reply struct {
	span
	status int
	header http.Header
	body   []byte
}

// call sends a request to a node, with a session unless token is empty.
func (l *load) call(node int, method, path, token string, body any) reply {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	req, err := http.NewRequest(method, l.nodes[node].url()+path, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPut {
		req.Header.Set("If-Match", "*")
	}
	if token != "" {
		req.Header.Set("Cookie", "JSESSIONID="+token)
	}
	r := reply{span: span{from: l.now()}}
	if res, err := l.http[node].Do(req); err == nil {
		if r.body, err = io.ReadAll(res.Body); err == nil {
			r.status, r.header = res.StatusCode, res.Header
		}
		res.Body.Close()
	}
	r.to = l.now()
	return r
}

// recordProbe adds to the history what the answer says about the session.
func (l *load) recordProbe(s *session, node int, action string, r reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	role := ""
	if r.header != nil {
		role = r.header.Get("X-Auth-Role")
	}
	l.history.probes = append(l.history.probes, probe{r.span, s, node, action, r.status, role})
	if r.status == http.StatusUnauthorized {
		l.markEnded(s)
	}
}

// markEnded removes a session from the live ones. The caller holds the lock.
func (l *load) markEnded(s *session) {
	if i := slices.Index(l.live, s); i >= 0 {
		l.live[i] = l.live[len(l.live)-1]
		l.live = l.live[:len(l.live)-1]
		l.ended = append(l.ended[max(0, len(l.ended)-63):], s)
	}
}

// pick returns a session to check: a live or a recently ended one.
func (l *load) pick() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.live
	if len(from) == 0 || len(l.ended) > 0 && rand.IntN(6) == 0 {
		from = l.ended
	}
	if len(from) == 0 {
		return nil
	}
	return from[rand.IntN(len(from))]
}

func (l *load) pickLive() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.live) == 0 {
		return nil
	}
	return l.live[rand.IntN(len(l.live))]
}

func (l *load) pickPerson() *person { return l.history.people[rand.IntN(len(l.history.people))] }

func (l *load) pickNode() int {
	targets := l.targets()
	return targets[rand.IntN(len(targets))]
}

func (l *load) check(node int, s *session) reply {
	return l.checkAction(node, s, l.actions[rand.IntN(len(l.actions))])
}

func (l *load) checkAction(node int, s *session, action string) reply {
	path := "/api/v2/access/check"
	if action != "" {
		path += "?action=" + action
	}
	r := l.call(node, http.MethodGet, path, s.token, nil)
	l.recordProbe(s, node, action, r)
	return r
}

// checkContinuously checks random sessions on one node.
func (l *load) checkContinuously(ctx context.Context, node int) {
	for ctx.Err() == nil {
		s := l.pick()
		if s == nil || l.check(node, s).status == 0 {
			wait(ctx, 20*time.Millisecond)
			continue
		}
		wait(ctx, l.pause)
	}
}

// checkEverywhere checks sessions on every node right after a call that may have ended
// them: a stale memory would fail these checks.
func (l *load) checkEverywhere(sessions ...*session) {
	for _, s := range sessions[:min(3, len(sessions))] {
		l.onEveryNode(func(node int) { l.check(node, s) })
	}
}

// onEveryNode calls check for every node, in the background; not while 400 such calls wait.
func (l *load) onEveryNode(check func(node int)) {
	for _, node := range l.targets() {
		select {
		case l.checkSlots <- struct{}{}:
		default:
			continue // a node is paused, and enough checks wait for it
		}
		l.running.Go(func() {
			check(node)
			<-l.checkSlots
		})
	}
}

// login opens a session with a current, possibly current, or former password.
func (l *load) login(node int, p *person) *session {
	l.mu.Lock()
	now := l.now()
	possible := p.password.possible(span{now, now})
	password := possible[rand.IntN(len(possible))]
	if rand.IntN(30) == 0 {
		password = p.password[rand.IntN(len(p.password))].value
	}
	l.mu.Unlock()
	r := l.call(node, http.MethodPost, "/api/v2/auth/login", "", map[string]string{"email": p.email, "password": password})
	l.mu.Lock()
	defer l.mu.Unlock()
	const has, hasNot = false, true
	// recordRead records that by the answer the register has the value or, if excluded, another one.
	recordRead := func(attribute string, values *register, value string, excluded bool) {
		description := fmt.Sprintf("login of %s on node %d answers %d (%s)", p.email, node, r.status, attribute)
		l.history.reads = append(l.history.reads, read{r.span, description, values, value, excluded})
	}
	switch r.status {
	case http.StatusOK:
		var answer struct {
			Token string
			User  struct{ Role string }
		}
		if err := json.Unmarshal(r.body, &answer); err != nil {
			l.t.Errorf("login: %v", err)
			return nil
		}
		recordRead("password", &p.password, password, has)
		recordRead("status", &p.status, "active", has)
		recordRead("role "+answer.User.Role, &p.role, answer.User.Role, has)
		s := &session{span: r.span, person: p, token: answer.Token}
		p.sessions, l.live = append(p.sessions, s), append(l.live, s)
		return s
	case http.StatusUnauthorized:
		recordRead("password", &p.password, password, hasNot)
	case http.StatusForbidden:
		recordRead("password", &p.password, password, has)
		recordRead("status", &p.status, "suspended", has)
	}
	return nil
}

// loginOwner opens a session that the load doesn't end. Call it before run. A node that has just
// started may answer 503 on a busy machine, so it tries for a while.
func (l *load) loginOwner() *session {
	l.t.Helper()
	owner := newPerson("owner@acme.example", "OWNER")
	for began := time.Now(); time.Since(began) < waittest.Limit; wait(l.t.Context(), 50*time.Millisecond) {
		if s := l.login(0, owner); s != nil {
			l.markEnded(s)
			return s
		}
	}
	l.t.Fatal("the owner cannot sign in")
	return nil
}

// recordEnding records a call that ends the session only, or if that is nil, all sessions of
// the person but except. It starts checks of the sessions that the call has certainly ended,
// and reports whether the call succeeded.
func (l *load) recordEnding(node int, r reply, p *person, only, except *session) bool {
	succeeded := r.status == http.StatusNoContent
	if refused := r.status >= 400 && r.status < 500; refused {
		return false // it did nothing
	}
	l.mu.Lock()
	e := ending{mutation{r.span, node, succeeded}, only, except, r.status}
	p.endings = append(p.endings, e)
	var affected []*session
	for _, s := range p.sessions {
		if surely, _ := e.ends(s); surely && succeeded {
			if slices.Contains(l.live, s) {
				affected = append(affected, s)
			}
			l.markEnded(s)
		}
	}
	if ms, err := strconv.ParseFloat(r.header.Get("X-Revocation-Ms"), 64); succeeded && err == nil {
		l.timings = append(l.timings, revocation{r.span, ms})
	}
	l.mu.Unlock()
	l.checkEverywhere(affected...)
	return succeeded
}

// logout ends a session and, like a client, tries again, perhaps on another node, if that did
// not succeed.
func (l *load) logout(s *session) {
	for range 4 {
		node := l.pickNode()
		r := l.call(node, http.MethodPost, "/api/v2/auth/logout", s.token, nil)
		if l.countSuccess("logout", l.recordEnding(node, r, s.person, s, nil)) {
			return
		}
	}
}

// endAtFirstUse opens a session and ends it while every node reads it from the database
// for the first time: no node may keep the row that it read.
func (l *load) endAtFirstUse(node int, p *person) {
	if s := l.login(node, p); s != nil {
		l.checkEverywhere(s)
		l.logout(s)
	}
}

// callWith makes a call with a session. The answer also says whether the session is valid.
func (l *load) callWith(s *session, node int, method, path string, body any) reply {
	r := l.call(node, method, path, s.token, body)
	l.recordProbe(s, node, "", r)
	return r
}

func (l *load) endOthers(s *session, node int) {
	l.countSuccess("end others", l.recordEnding(node, l.callWith(s, node, http.MethodDelete, "/api/v2/sessions", nil), s.person, nil, s))
}

// endOneOfOwn ends another session of the same person, by its id.
func (l *load) endOneOfOwn(s *session, node int) {
	l.mu.Lock()
	other := s.person.sessions[rand.IntN(len(s.person.sessions))]
	l.mu.Unlock()
	id := l.check(node, other).header.Get("X-Auth-Session")
	if id != "" {
		l.countSuccess("end one of own", l.recordEnding(node, l.callWith(s, node, http.MethodDelete, "/api/v2/sessions/"+id, nil), s.person, other, nil))
	}
}

func (l *load) changePassword(s *session, node int) {
	p := s.person
	next := fmt.Sprintf("llama %d grazes quietly", l.version.Add(1))
	l.mu.Lock()
	now := l.now()
	possible := p.password.possible(span{now, now})
	l.mu.Unlock()
	r := l.callWith(s, node, http.MethodPost, "/api/v2/auth/change-password",
		map[string]string{"currentPassword": possible[rand.IntN(len(possible))], "password": next, "confirmPassword": next})
	if r.status >= 400 && r.status < 500 {
		return
	}
	l.mu.Lock()
	p.password = append(p.password, write{mutation{r.span, node, r.status == http.StatusNoContent}, next})
	l.mu.Unlock()
	l.countSuccess("change password", l.recordEnding(node, r, p, nil, s))
}

// countSuccess counts the call if it succeeded, and returns ok.
func (l *load) countSuccess(operation string, ok bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok {
		l.succeeded[operation]++
	}
	return ok
}

// operations are the names of the load's calls. A call that never succeeds would
// silently weaken the history: all its outcomes would be in doubt.
var operations = []string{"logout", "end others", "end one of own", "change password", "in process", "by command", byModel, byPolicy, byRole}

// change has a random person sign in, end sessions or change the password.
func (l *load) change() {
	s, node := l.pickLive(), l.pickNode()
	if p := l.pickPerson(); s == nil || l.countLive(p) < 4 {
		l.login(node, p)
		return
	}
	switch n := rand.IntN(20); {
	case n < 10:
		l.logout(s)
	case n < 14:
		l.endAtFirstUse(node, s.person)
	case n < 16:
		l.endOneOfOwn(s, node)
	case n < 18:
		l.endOthers(s, node)
	default:
		l.changePassword(s, node)
	}
}

func (l *load) countLive(p *person) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.live {
		if s.person == p {
			n++
		}
	}
	return n
}

// operateAtRandom runs a random operation of an operator on a person.
func (l *load) operateAtRandom(do func(email, operation string) error) {
	choices := append([]string{"suspend", "resume", "resume"}, l.roles...)
	l.operate(do, l.pickPerson(), choices[rand.IntN(len(choices))])
}

// operate suspends p, resumes p, or sets the role that the operation names; do makes the call.
func (l *load) operate(do func(email, operation string) error, p *person, operation string) {
	during := span{from: l.now()}
	err := do(p.email, operation)
	during.to = l.now()
	m := mutation{during, operatorNode, err == nil}
	l.mu.Lock()
	switch operation {
	case "suspend":
		p.status = append(p.status, write{m, "suspended"})
	case "resume":
		p.status = append(p.status, write{m, "active"})
	default:
		p.role = append(p.role, write{m, operation})
	}
	var affected []*session
	for _, s := range l.live {
		if s.person == p {
			affected = append(affected, s)
		}
	}
	if operation == "suspend" {
		p.endings = append(p.endings, ending{mutation: m})
		for _, s := range affected {
			l.markEnded(s)
		}
	}
	l.mu.Unlock()
	l.checkEverywhere(affected...)
}

// operateInProcess runs the operator's operation in this process.
func (l *load) operateInProcess(email, operation string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	found, err := l.operator.App.Users.Find(ctx, email, "")
	if err != nil {
		return err
	}
	switch by := doorward.OperatorAtTerminal(); operation {
	case "suspend":
		_, err = l.operator.App.Users.Suspend(ctx, by, found[0])
	case "resume":
		err = l.operator.App.Users.Resume(ctx, by, found[0])
	default:
		err = l.operator.App.Users.SetRole(ctx, by, found[0], doorward.Role(operation))
	}
	l.countSuccess("in process", err == nil)
	return err
}

// operateByCommand runs the operator's command.
func (l *load) operateByCommand(email, operation string) error {
	args := []string{"user", "set-role", email, "--role", operation}
	if operation == "suspend" || operation == "resume" {
		args = []string{"user", operation, email}
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	err := exec.CommandContext(ctx, l.program, append(args, "--database", l.dsn)...).Run()
	l.countSuccess("by command", err == nil)
	return err
}

// run starts this many checkers on each node, this many people who change something, and the
// operations of operators. They go on until ctx ends.
func (l *load) run(ctx context.Context, checkers, changers int) {
	repeat := func(pauses int, do func()) {
		l.running.Go(func() {
			for ctx.Err() == nil {
				do()
				wait(ctx, time.Duration(pauses)*l.pause)
			}
		})
	}
	for node := range l.nodes {
		for range checkers {
			l.running.Go(func() { l.checkContinuously(ctx, node) })
		}
	}
	for range changers {
		repeat(5, l.change)
	}
	repeat(30, func() { l.operateAtRandom(l.operateInProcess) })
	repeat(500, func() { l.operateAtRandom(l.operateByCommand) })
}

// checkAllSessions checks every session on every node, when the load has stopped: nothing
// may be lost or come back.
func (l *load) checkAllSessions() {
	l.t.Helper()
	shortages := l.countShortages()
	for node := range l.nodes {
		for _, p := range l.history.people {
			for _, s := range p.sessions {
				isAnswered := func(r reply) bool { return probe{status: r.status}.isConclusive() }
				if r := l.check(node, s); !isAnswered(r) {
					if r.status != http.StatusServiceUnavailable || l.countShortages() == shortages {
						l.t.Fatalf("after all faults node %d answers %d to a check", node, r.status)
					}
					waittest.Until(l.t, "the end of a shortage", func() bool { return isAnswered(l.check(node, s)) })
				}
			}
		}
	}
}

// countShortages returns how often the running nodes were short of CPU. A node that doesn't
// answer, and a gateway, have no such count.
func (l *load) countShortages() (all int) {
	for _, n := range l.nodes {
		all += n.countShortages()
	}
	return all
}
