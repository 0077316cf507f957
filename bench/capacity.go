package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// capacity measures the inputs of docs/capacity.md: the size of rows and their indexes in
// PostgreSQL, the WAL and the processor time of each operation, and how many operations a
// second three nodes complete.
func (b *bench) capacity() error {
	n := 100_000
	if !b.long {
		n = 5000
	}
	pg, err := b.postgres()
	if err != nil {
		return err
	}
	defer pg.stop()
	if err := pg.create("capacity"); err != nil {
		return err
	}
	dsn := pg.dsn("capacity")
	if err := populate(dsn, 0, n, cheapParams); err != nil {
		return err
	}
	m, err := newMeter(pg, dsn)
	if err != nil {
		return err
	}
	defer m.conn.Close(m.ctx)
	for _, part := range []func(*meter, string, int) error{b.rowSizes, b.backgroundWork, b.operations} {
		if err := part(m, dsn, n); err != nil {
			return err
		}
	}
	return nil
}

// meter reads PostgreSQL's counters.
type meter struct {
	ctx  context.Context
	pg   *cluster
	conn *pgx.Conn
}

func newMeter(pg *cluster, dsn string) (*meter, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	return &meter{ctx, pg, conn}, err
}

// reading is the state of the counters at an instant.
type reading struct {
	at    time.Time
	wal   int64
	cpu   time.Duration
	sizes map[string]int64
}

// tables are the ones that grow with people and their operations.
var tables = []string{"users", "memberships", "sessions", "events", "devices", "changes", "invitations", "link_tokens", "mails"}

func (m *meter) read() (reading, error) {
	r := reading{at: time.Now(), cpu: m.pg.cpu(), sizes: map[string]int64{}}
	if err := m.conn.QueryRow(m.ctx, `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn`).Scan(&r.wal); err != nil {
		return r, err
	}
	for _, table := range tables {
		var size int64
		if err := m.conn.QueryRow(m.ctx, `SELECT pg_total_relation_size($1::regclass)`, table).Scan(&size); err != nil {
			return r, err
		}
		r.sizes[table] = size
	}
	return r, nil
}

// checkpoint runs before each measurement: the first change of a page after it writes
// the full page to the WAL, as happens every few minutes in production.
func (m *meter) checkpoint() error {
	_, err := m.conn.Exec(m.ctx, `CHECKPOINT`)
	return err
}

// cpu is the time that the server's live child processes have used (proc(5)).
func (c *cluster) cpu() (sum time.Duration) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		_, rest, ok := strings.Cut(string(text), ") ")
		if err != nil || !ok {
			continue
		}
		fields := strings.Fields(rest)
		if fields[1] != strconv.Itoa(c.cmd.Process.Pid) {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		sum += time.Duration(user+system) * 10 * time.Millisecond
	}
	return sum
}

// rowSizes measures the rows that populate made, and those of invitations, including
// indexes.
func (b *bench) rowSizes(m *meter, dsn string, n int) error {
	if err := invite(m.ctx, dsn, n); err != nil {
		return err
	}
	r, err := m.read()
	for _, table := range []string{"users", "memberships", "sessions", "invitations", "link_tokens", "mails"} {
		b.row("row of "+table+", with indexes", fmt.Sprintf("%d B", r.sizes[table]/int64(n)), fmt.Sprintf("%d rows", n), "", "")
	}
	return err
}

// invite adds the rows of n invitations: each has a token and a mail.
func invite(ctx context.Context, dsn string, n int) error {
	db, err := store.Open(ctx, dsn, time.Now)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Write(ctx, func(tx *store.Tx) error {
		for i := range n {
			inv := doorward.Invitation{
				ID: fmt.Sprintf("inv_%026d", i), TenantID: fmt.Sprintf("tnt_%026d", i%tenants), Email: "new" + email(i), Role: doorward.RoleUser,
				Name: "Ada Lovelace", State: doorward.InvitationPending, InvitedBy: fmt.Sprintf("usr_%026d", i%tenants),
				CreatedAt: tx.Now, ExpiresAt: tx.Now.Add(7 * 24 * time.Hour), Days: 7,
			}
			_, invited := tx.InsertInvitation(ctx, inv)
			h := hash(i)
			if err := errors.Join(invited, tx.InsertLinkToken(ctx, h[:], inv.ID), tx.QueueMail(ctx, store.MailInvitation, inv.Email, inv.ID)); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// measure runs work between two readings and prints a row: the rate, and the WAL and
// PostgreSQL's processor time per operation. work returns the number of operations.
func (b *bench) measure(m *meter, name string, work func() (int, error)) error {
	if err := m.checkpoint(); err != nil {
		return err
	}
	before, err := m.read()
	if err != nil {
		return err
	}
	n, err := work()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if n == 0 {
		return fmt.Errorf("%s: nothing was done", name)
	}
	after, err := m.read()
	if err != nil {
		return err
	}
	var grown []string
	for _, table := range tables {
		if more := (after.sizes[table] - before.sizes[table]) / int64(n); more > 0 {
			grown = append(grown, fmt.Sprintf("%s %d B", table, more))
		}
	}
	b.row(name, fmt.Sprintf("%.0f/s", float64(n)/after.at.Sub(before.at).Seconds()),
		fmt.Sprintf("WAL %d B each", (after.wal-before.wal)/int64(n)), strings.Join(grown, ", "), ((after.cpu - before.cpu) / time.Duration(n)).String())
	return nil
}

// backgroundWork measures the nodes' background work, and reads that can't be served from
// memory.
func (b *bench) backgroundWork(m *meter, dsn string, n int) error {
	db, err := store.Open(m.ctx, dsn, time.Now)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := b.measure(m, "uses written, one node's writer", func() (int, error) { return writeUses(m.ctx, db, n, 200) }); err != nil {
		return err
	}
	if err := b.measure(m, "sessions read, 16 at once", func() (int, error) { return readSessions(m.ctx, db, n, b.slice) }); err != nil {
		return err
	}
	began := time.Now()
	life := store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: time.Hour, Absolute: 24 * time.Hour}}
	_, err = db.Read().OverdueSessions(m.ctx, life, began, 1000)
	b.row(fmt.Sprintf("sweep over %d sessions, none overdue", n), time.Since(began).Round(time.Millisecond).String(), "", "", "")
	return err
}

func hash(n int) [32]byte {
	t := token(n)
	return sha256.Sum256(t[:])
}

// writeUses writes one use of each session as a node does, in transactions of batch uses.
func writeUses(ctx context.Context, db *store.DB, n, batch int) (int, error) {
	for from := 0; from < n; from += batch {
		var all []store.Use
		for i := from; i < min(from+batch, n); i++ {
			all = append(all, store.Use{Hash: hash(i), At: db.Now()})
		}
		if _, err := db.Write(ctx, func(tx *store.Tx) error { _, err := tx.TouchSessions(ctx, all); return err }); err != nil {
			return from, err
		}
	}
	return n, nil
}

func readSessions(ctx context.Context, db *store.DB, n int, duration time.Duration) (int, error) {
	var count atomic.Int64
	var readers sync.WaitGroup
	results := make(chan error, clients)
	end := time.Now().Add(duration)
	for c := range clients {
		readers.Go(func() {
			for i := c; time.Now().Before(end); i += 7919 {
				h := hash(i % n)
				if _, err := db.Read().SessionByToken(ctx, h[:]); err != nil {
					results <- err
					return
				}
				count.Add(1)
			}
			results <- nil
		})
	}
	readers.Wait()
	for range clients {
		if err := <-results; err != nil {
			return 0, err
		}
	}
	return int(count.Load()), nil
}

// browser is a User-Agent; it is stored with the session.
const browser = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"

func browserLoginRequest(n int) []byte {
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, email(n), password)
	return fmt.Appendf(nil, "POST /api/v2/auth/login HTTP/1.1\r\nHost: localhost\r\nUser-Agent: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		browser, len(body), body)
}

func logoutRequest(n int) []byte {
	t := token(n)
	return fmt.Appendf(nil, "POST /api/v2/auth/logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nCookie: JSESSIONID=%s\r\n\r\n",
		base64.RawURLEncoding.EncodeToString(t[:]))
}

// operations measures logins and logouts on three nodes. The hashes are cheap, so that the
// database's share of the cost is visible.
func (b *bench) operations(m *meter, dsn string, n int) error {
	var nodes []*process
	defer func() {
		for _, p := range nodes {
			p.stop()
		}
	}()
	for range 3 {
		p, err := b.doorward(dsn, "--password-memory-kib", "1024", "--password-time", "1")
		if err != nil {
			return err
		}
		nodes = append(nodes, p)
	}
	if err := b.measure(m, "three nodes at rest, a second of one", func() (int, error) {
		time.Sleep(5 * b.slice)
		return int(5*b.slice.Seconds()) * len(nodes), nil
	}); err != nil {
		return err
	}
	for _, op := range []struct {
		name    string
		clients int // per node
		want    int
		next    func(i int) []byte
	}{
		{"logins, cheap hash, a hundred tenants", 8, 200, func(i int) []byte { return browserLoginRequest(i % n) }},
		{"logins, cheap hash, one tenant", 2, 200, func(i int) []byte { return browserLoginRequest(i * tenants % n) }},
		{"logouts, a hundred tenants", 8, 204, func(i int) []byte { return logoutRequest(i % n) }},
	} {
		if err := b.measure(m, op.name, func() (int, error) {
			return loadAll(nodes, op.clients, b.slice*time.Duration(b.turns), op.want, op.next)
		}); err != nil {
			return err
		}
	}
	return nil
}

// loadAll runs clients against each node and returns the number of requests; no request is
// sent twice.
func loadAll(nodes []*process, clients int, duration time.Duration, want int, request func(i int) []byte) (int, error) {
	var next atomic.Int64
	sums, errs := make([]result, len(nodes)), make([]error, len(nodes))
	var all sync.WaitGroup
	for i, p := range nodes {
		all.Go(func() {
			sums[i], errs[i] = load(p, clients, duration, want, func(int, int) []byte { return request(int(next.Add(1))) })
		})
	}
	all.Wait()
	count := 0
	for i := range nodes {
		if errs[i] != nil {
			return 0, errs[i]
		}
		count += sums[i].requests
	}
	return count, nil
}
