package mail_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/mail"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/smtp/smtptest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// fixture is a mail server, a database with people and tenants, and a node.
type fixture struct {
	*testing.T
	dsn  string
	sink *smtptest.Server
	node
	now func() time.Time
}

// node sends mail from the queue of the database.
type node struct {
	*mail.Mail
	db        *store.DB
	access    *access.Writer
	transport *countingTransport
}

var databases = map[string]func(testing.TB) string{
	"sqlite":   dbtest.SQLite,
	"postgres": dbtest.Postgres,
}

func onBoth(t *testing.T, test func(*fixture)) {
	t.Helper()
	for name, dsn := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newFixture(t, dsn(t)))
		})
	}
}

func onSQLite(t *testing.T, test func(*fixture)) {
	t.Helper()
	t.Parallel()
	test(newFixture(t, dbtest.SQLite(t)))
}

func newFixture(t *testing.T, dsn string) *fixture {
	t.Helper()
	f := &fixture{T: t, dsn: dsn, sink: smtptest.Start(t, smtptest.Options{}), now: time.Now}
	f.node = f.newNode()
	return f
}

func (f *fixture) newNode() node {
	f.Helper()
	db, err := store.Open(f.Context(), f.dsn, func() time.Time { return f.now() })
	f.noError(err)
	f.Cleanup(func() { db.Close() })
	writer := access.New(db, lease.New(db, lease.MinLease))
	transport, err := smtp.Open(f.sink.URL(), "Doorward <no-reply@example.com>", "", slog.New(slog.DiscardHandler))
	f.noError(err)
	counting := &countingTransport{Transport: transport, current: map[string]int{}, highest: map[string]int{}}
	return node{mail.New(writer, db, counting, "http://localhost:8080", nil, doorward.Brand{}, "Initech", slog.New(slog.DiscardHandler)), db, writer, counting}
}

func (f *fixture) noError(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// run lets a node send until the test ends, or stop is called.
func (f *fixture) run(n node) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	f.Cleanup(stop)
	return stop
}

func (f *fixture) write(fn func(tx *store.Tx) error) {
	f.Helper()
	f.noError(f.access.Upkeep(f.Context(), fn))
}

// invite makes a tenant, and queues an invitation to annN.TENANT at each host, where N is the
// host's index.
func (f *fixture) invite(tenant string, hosts ...string) {
	f.Helper()
	f.write(func(tx *store.Tx) error {
		if err := tx.InsertTenant(f.Context(), doorward.Tenant{ID: tenant, Name: tenant, Status: doorward.TenantActive}); err != nil {
			return err
		}
		tx.MailShare = tenant
		for i, host := range hosts {
			inv := doorward.Invitation{
				ID: fmt.Sprintf("inv_%s_%d", tenant, i), TenantID: tenant, Email: fmt.Sprintf("ann%d.%s@%s", i, tenant, host), Role: doorward.RoleUser,
				State: doorward.InvitationPending, CreatedAt: tx.Now, ExpiresAt: tx.Now.Add(30 * 24 * time.Hour),
			}
			if _, err := tx.InsertInvitation(f.Context(), inv); err != nil {
				return err
			}
			if err := tx.QueueMail(f.Context(), store.MailInvitation, inv.Email, inv.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// reset makes an account, and queues a reset of its password that was requested from the
// network.
func (f *fixture) reset(network, email string) {
	f.Helper()
	f.write(func(tx *store.Tx) error {
		if _, err := tx.InsertAccount(f.Context(), doorward.Account{ID: "usr_" + email, Email: email}); err != nil {
			return err
		}
		tx.MailShare = network
		return tx.QueueReset(f.Context(), email, "")
	})
}

// until waits for the condition.
func (f *fixture) until(condition string, holds func() bool) {
	f.Helper()
	waittest.Until(f, condition, holds)
}

func (f *fixture) count(state doorward.Delivery) int {
	f.Helper()
	n, err := storetest.CountMails(f.Context(), f.db.Read(), state)
	f.noError(err)
	return n
}

// isDead reports whether the server of an address never answers.
func isDead(address string) bool { return strings.Contains(address, "@dead") }

// hosts returns n host names.
func hosts(n int, name string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d.example", name, i))
	}
	return all
}

// countingTransport counts concurrent deliveries: in total, by host and by tenant. It also notes
// the order in which they began.
type countingTransport struct {
	smtp.Transport
	mu               sync.Mutex
	current, highest map[string]int
	began            []string // the recipients
}

func (c *countingTransport) Send(ctx context.Context, m smtp.Message) error {
	local, host, _ := strings.Cut(m.To, "@")
	_, tenant, _ := strings.Cut(local, ".")
	c.mu.Lock()
	c.began = append(c.began, m.To)
	c.mu.Unlock()
	c.count(1, "all", "host "+host, "tenant "+tenant)
	defer c.count(-1, "all", "host "+host, "tenant "+tenant)
	return c.Transport.Send(ctx, m)
}

func (c *countingTransport) count(by int, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.current[name] += by
		c.highest[name] = max(c.highest[name], c.current[name])
	}
}

// wantAtMost fails if there were ever more concurrent deliveries than allowed.
func (c *countingTransport) wantAtMost(t *testing.T, all, host, tenant int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.highest {
		allowed := map[string]int{"all": all, "host": host, "tenant": tenant}[strings.Fields(name)[0]]
		if n > allowed && name != "tenant " { // resets belong to no tenant
			t.Errorf("%s: %d at once, want %d at most", name, n, allowed)
		}
	}
}

// TestSlowHostDelaysNobody: a silent host has many mails. Mail of other tenants,
// and of the same tenant to another host, is sent in the meantime.
func TestSlowHostDelaysNobody(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		f.sink.StallTo(isDead)
		f.invite("acme", append(slices.Repeat([]string{"dead.example"}, 30), "good.example")...)
		f.run(f.node)
		f.until("the host is tried", func() bool { return f.sink.Stalled() > 0 })
		f.reset("192.0.2.1", "bob@good.example")
		f.sink.Wait(f, "bob@good.example", 1)
		f.sink.Wait(f, "ann30.acme@good.example", 1)
		if len(f.sink.Mails()) != 2 {
			t.Errorf("%d mails have arrived", len(f.sink.Mails()))
		}
		f.transport.wantAtMost(f.T, 32, 4, 12)
	})
}

// TestThousandDeadHosts: a reset and another tenant's invitation are sent although 1,000 mails
// to dead hosts are queued, by one tenant or by twenty.
func TestThousandDeadHosts(t *testing.T) {
	queuedBy := []int{1, 20} // tenants
	if testing.Short() {
		queuedBy = queuedBy[1:] // in TestTenantsTakeTurns one tenant queues many mails
	}
	for _, tenants := range queuedBy {
		t.Run(fmt.Sprint(tenants), func(t *testing.T) {
			onSQLite(t, func(f *fixture) {
				f.sink.StallTo(isDead)
				for i := range tenants {
					f.invite(fmt.Sprintf("tnt%d", i), hosts(1000/tenants, fmt.Sprintf("dead%d-", i))...)
				}
				f.run(f.node)
				f.until("as many as allowed are tried", func() bool { return f.sink.Stalled() >= min(8*tenants, 16) })
				start := time.Now()
				f.reset("192.0.2.1", "bob@good.example")
				f.sink.Wait(f, "bob@good.example", 1)
				f.Logf("the reset took %v", time.Since(start))
				f.until("dead hosts count as slow", func() bool { return f.Sending().SlowHosts > 40 })
				start = time.Now()
				f.invite("globex", "good.example")
				f.sink.Wait(f, "ann0.globex@good.example", 1)
				f.reset("192.0.2.1", "cat@fine.example")
				f.sink.Wait(f, "cat@fine.example", 1)
				f.Logf("an invitation and a reset took %v", time.Since(start))
				if n := f.sink.Stalled(); n == 0 {
					t.Error("no delivery hangs: the test proves nothing")
				}
				f.transport.wantAtMost(f.T, 32, 4, 12)
			})
		})
	}
}

// TestDeadHostsOfResets: a reset is sent although resets to dead hosts are queued, which many
// networks have requested.
func TestDeadHostsOfResets(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		f.sink.StallTo(isDead)
		for i := range 100 {
			f.reset(fmt.Sprint("192.0.2.", i), fmt.Sprintf("eve@dead%d.example", i))
		}
		f.run(f.node)
		f.until("as many as allowed are tried", func() bool { return f.sink.Stalled() >= 24 })
		f.reset("192.0.2.1", "bob@good.example") // from a network with earlier requests
		f.sink.Wait(f, "bob@good.example", 1)
		f.transport.wantAtMost(f.T, 32, 4, 32)
	})
}

// TestTenantsTakeTurns: three mails of a tenant are sent among the first 61, although another
// tenant queued 600 earlier.
func TestTenantsTakeTurns(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		f.invite("acme", slices.Repeat([]string{"big.example", "small.example"}, 300)...)
		f.invite("globex", "big.example", "big.example", "big.example")
		f.run(f.node)
		f.until("all have arrived", func() bool { return len(f.sink.Mails()) == 603 })
		last := 0
		for i, m := range f.sink.Mails() {
			if strings.Contains(m.To[0], ".globex@") {
				last = i
			}
		}
		if last > 60 {
			t.Errorf("the other tenant's last mail has position %d, want 60 at most", last)
		}
		f.transport.wantAtMost(f.T, 32, 4, 8)
	})
}

// TestUrgentMailsGoFirst: a reset is sent before a tenant's invitations, even if
// it was queued last.
func TestUrgentMailsGoFirst(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		f.invite("acme", hosts(300, "good")...)
		f.reset("192.0.2.1", "bob@good.example")
		f.noError(f.Deliver(f.Context()))
		at := slices.Index(f.transport.began, "bob@good.example")
		if at < 0 || at > 32 {
			t.Errorf("the reset was number %d of %d", at, len(f.transport.began))
		}
	})
}

// TestNodesShareTheQueue: each mail is sent by only one of two nodes.
func TestNodesShareTheQueue(t *testing.T) {
	onBoth(t, func(f *fixture) {
		f.invite("acme", hosts(200, "good")...)
		other := f.newNode()
		f.run(f.node)
		f.run(other)
		f.until("all are recorded as sent", func() bool { return f.count(doorward.DeliverySent) == 200 })
		seen := map[string]int{}
		for _, m := range f.sink.Mails() {
			if seen[m.To[0]]++; seen[m.To[0]] > 1 {
				t.Errorf("%s has the mail twice", m.To[0])
			}
		}
		if len(seen) != 200 {
			t.Errorf("%d recipients have their mail", len(seen))
		}
	})
}

// TestResetsAtOnce: of two mails with a reset for one person, made at the same time on two
// nodes, only one works.
func TestResetsAtOnce(t *testing.T) {
	onBoth(t, func(f *fixture) {
		const id = "usr_ann@good.example"
		f.reset("", "ann@good.example")
		other := f.newNode()
		delivered := make(chan error, 1)
		f.write(func(tx *store.Tx) error { // makes the other mail
			if _, err := tx.LockAccount(f.Context(), id); err != nil {
				return err
			}
			if err := tx.ExpireResets(f.Context(), id); err != nil {
				return err
			}
			go func() { delivered <- other.Deliver(f.Context()) }()
			for end := time.Now().Add(time.Second); len(f.sink.Mails()) == 0 && time.Now().Before(end); {
				<-time.After(time.Millisecond)
			}
			return tx.InsertReset(f.Context(), store.Reset{ID: "rst_1", UserID: id, CreatedAt: tx.Now, ExpiresAt: tx.Now.Add(time.Hour)})
		})
		f.noError(<-delivered)
		resets, err := f.db.Read().ResetsOf(f.Context(), id)
		f.noError(err)
		open := slices.DeleteFunc(slices.Clone(resets), func(r store.Reset) bool { return !r.ExpiresAt.After(f.now()) })
		if len(resets) != 2 || len(open) != 1 {
			t.Errorf("%d resets, %d of them open", len(resets), len(open))
		}
	})
}

// TestNodeThatDies: mail that a dead node was sending is sent by another node when
// its claims have expired, not before.
func TestNodeThatDies(t *testing.T) {
	onBoth(t, func(f *fixture) {
		start := time.Now()
		var mu sync.Mutex
		var passed time.Duration
		f.now = func() time.Time { mu.Lock(); defer mu.Unlock(); return start.Add(passed) }
		f.sink.Stall(smtptest.AtRecipient)
		f.invite("acme", hosts(5, "good")...)
		stop := f.run(f.node)
		f.until("all are tried", func() bool { return f.sink.Stalled() == 5 })
		stop()
		f.sink.Behave()
		other := f.newNode()
		f.noError(other.Deliver(f.Context()))
		if n := len(f.sink.Mails()); n != 0 {
			t.Errorf("%d mails were tried twice at once", n)
		}
		mu.Lock()
		passed = 2 * time.Minute
		mu.Unlock()
		f.run(other)
		f.until("all are sent", func() bool { return f.count(doorward.DeliverySent) == 5 })
	})
}

// TestMailServerThatHangs: while the mail server doesn't answer, no mail is given
// up; when it answers again, all are sent.
func TestMailServerThatHangs(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		f.sink.Stall(smtptest.AtConnect)
		f.invite("acme", hosts(40, "good")...)
		f.run(f.node)
		f.until("hosts turn out to be slow", func() bool { return f.Sending().SlowHosts >= 8 })
		f.reset("192.0.2.1", "bob@good.example")
		f.until("the reset is tried", func() bool { return f.Sending().Fast+f.Sending().Slow > 8 })
		f.sink.Stop() // closes the silent connections
		f.sink.Behave()
		f.sink.Restart(f)
		f.until("all are sent", func() bool { return f.count(doorward.DeliverySent) == 41 })
	})
}

// TestOldMailsKeepNoAddress: a day after a mail was finished, its row no longer has the
// address, and the invitation still shows whether it was delivered.
func TestOldMailsKeepNoAddress(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		start := time.Now()
		var passed time.Duration
		f.now = func() time.Time { return start.Add(passed) }
		f.sink.Refuse(smtptest.AtRecipient, 550) // an error that repeats the address
		f.invite("acme", hosts(600, "good")...)
		f.reset("192.0.2.1", "bob@good.example")
		f.noError(f.Deliver(f.Context()))
		f.sink.Behave()
		f.invite("globex", "good.example")
		f.noError(f.Deliver(f.Context()))
		for _, step := range []struct {
			later       time.Duration
			withAddress int // mails that still have an address
		}{{24*time.Hour - time.Minute, 602}, {time.Minute, 0}} {
			passed += step.later
			f.noError(f.Sweep(f.Context()))
			if n := f.countWithAddress(); n != step.withAddress {
				t.Errorf("after %v %d mails have an address, want %d", passed, n, step.withAddress)
			}
		}
		for id, want := range map[string]doorward.Delivery{"inv_acme_599": doorward.DeliveryFailed, "inv_globex_0": doorward.DeliverySent} {
			inv, err := f.db.Read().Invitation(f.Context(), id)
			if err != nil || inv.Delivery != want || inv.Email == "" {
				t.Errorf("%s to %s is %s, %v; want %s", id, inv.Email, inv.Delivery, err, want)
			}
		}
	})
}

// countWithAddress counts the mails that still contain an address.
func (f *fixture) countWithAddress() (n int) {
	f.Helper()
	driver, dsn := "pgx", f.dsn
	if path, isSQLite := strings.CutPrefix(dsn, "sqlite:"); isSQLite {
		driver, dsn = "sqlite", path
	}
	db, err := sql.Open(driver, dsn)
	f.noError(err)
	defer db.Close()
	f.noError(db.QueryRowContext(f.Context(), `SELECT count(*) FROM mails WHERE recipient LIKE '%@%' OR last_error LIKE '%@%'`).Scan(&n))
	return n
}

// TestOneSubjectAlone: mail about one subject is sent even if many dead hosts are
// queued before it, and no other mail is touched. If its own host is dead, the try
// times out and is repeated later.
func TestOneSubjectAlone(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		f.sink.StallTo(func(to string) bool { return !strings.HasSuffix(to, "@good.example") })
		f.invite("dead", hosts(100, "dead-")...)
		f.invite("good", "good.example")
		f.noError(f.DeliverForSubject(f.Context(), "inv_good_0", time.Minute))
		f.sink.Wait(f.T, "ann0.good@good.example", 1)
		if n := f.sink.Stalled(); n > 0 {
			f.Errorf("%d mails of others were tried", n)
		}
		queued := func() (all []store.Mail) {
			all, err := f.db.Read().DueMails(f.Context(), store.Mail{}, f.db.Now().Add(time.Minute), 1000)
			f.noError(err)
			return all
		}
		if n := len(queued()); n != 100 {
			f.Errorf("%d mails are queued, want those of the others", n)
		}
		f.noError(f.DeliverForSubject(f.Context(), "inv_dead_7", 50*time.Millisecond))
		tried := 0
		for _, m := range queued() {
			if tried += m.Tries; m.Tries > 0 && (m.SubjectID != "inv_dead_7" || m.LastError == "") {
				f.Errorf("the mail is %+v", m)
			}
		}
		if tried != 1 {
			f.Errorf("the mail has %d tries, want 1", tried)
		}
	})
}
