// Package cluster tells a current primary from a replaced one among the PostgreSQL
// servers that a DSN with several hosts names. A primary that was replaced without
// noticing still reports that it accepts writes. With synchronous replication it can't
// commit any more, but its data can be read, and is outdated. docs/lease.md has the
// argument; the rules are
//
//  1. Each promotion begins a timeline with a higher number (PostgreSQL's
//     documentation, "Continuous Archiving and Point-in-Time Recovery", Timelines).
//     Once a server with a higher number has been seen, none with a lower one is used.
//  2. Nothing is read after the lease has expired, and the lease is renewed by commits
//     alone (store/lease): a server that commits has not been replaced.
//  3. A newly promoted server is used only when the leases of all nodes that may still
//     read from the previous one have expired: a lease after the last commit that it has
//     from the previous one, or after this process has seen it first.
//  4. A process that can't commit probes all servers, and from then on tries first the one
//     that may be used: connecting to a machine that is gone takes the full timeout.
//  5. A commit is reported only if no newer server was seen since it began: the old
//     primary may be configured not to wait for a standby.
//
// It is below store, which opens the pool that the rules guard.
package cluster

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The bounds of the lease. A revoking call may have to wait for a whole one, and
// every request is answered within 3 s.
const (
	MinLease = time.Second
	MaxLease = 2 * time.Second
)

// Servers are the servers of one DSN. Nil stands for one server, which needs no
// guard: all exported methods except Guard and Connector accept nil.
type Servers struct {
	all       []*pgx.ConnConfig
	newest    atomic.Pointer[timeline]
	preferred atomic.Pointer[pgx.ConnConfig] // the server that may be used, by the last probe
	probedAt  atomic.Pointer[time.Time]      // when ProbeIfStale last probed
	mayRead   atomic.Pointer[func() bool]    // nil while no lease runs in this process
	renewal   atomic.Pointer[chan struct{}]  // closed by the next renewal of the lease
	password  atomic.Pointer[string]         // of new probes; nil: that of the DSN
}

// timeline is PostgreSQL's name for a history of the database. Each promotion begins one.
type timeline struct {
	number uint32
	seenAt time.Time // by this process
}

// FromConfig returns the servers of a DSN; nil if it names one, whose address the operator may
// point to any server.
func FromConfig(cfg *pgxpool.Config) *Servers {
	if !NamesSeveral(cfg.ConnConfig) {
		return nil
	}
	c := &Servers{}
	c.newest.Store(&timeline{})
	c.probedAt.Store(&time.Time{})
	c.renewal.Store(new(make(chan struct{})))
	for _, address := range addresses(cfg.ConnConfig) {
		c.add(cfg.ConnConfig, address)
	}
	return c
}

// NamesSeveral reports whether a DSN names several servers.
func NamesSeveral(cfg *pgx.ConnConfig) bool {
	return slices.ContainsFunc(cfg.Fallbacks, func(a *pgconn.FallbackConfig) bool { return rank(a, cfg) != 0 })
}

// add adds an address of a server: sslmode=prefer has two of each, with and without TLS.
func (c *Servers) add(template *pgx.ConnConfig, address *pgconn.FallbackConfig) {
	for _, s := range c.all {
		if rank(address, s) == 0 {
			s.Fallbacks = append(s.Fallbacks, address)
			return
		}
	}
	own := template.Copy()
	setAddresses(own, []*pgconn.FallbackConfig{address})
	c.all = append(c.all, own)
}

// addresses are those that a connection tries, one after the other.
func addresses(cfg *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, cfg.Fallbacks...)
}

func setAddresses(cfg *pgx.ConnConfig, all []*pgconn.FallbackConfig) {
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// Guard enforces the rules on the pool and on every connection with its settings, which must
// have a ValidateConnect that accepts only a server that takes writes.
func (c *Servers) Guard(cfg *pgxpool.Config) {
	for _, settings := range append(c.all, cfg.ConnConfig) {
		takesWrites := settings.ValidateConnect
		settings.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			if err := takesWrites(ctx, conn); err != nil {
				return err
			}
			return c.checkTimeline(ctx, conn)
		}
	}
	cfg.PrepareConn = c.prepare
	cfg.BeforeConnect = c.preferredFirst
}

// preferredFirst makes a connection try the preferred server first.
func (c *Servers) preferredFirst(_ context.Context, cfg *pgx.ConnConfig) error {
	preferred := c.preferred.Load()
	if preferred == nil {
		return nil
	}
	all := addresses(cfg)
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int {
		return cmp.Compare(rank(a, preferred), rank(b, preferred))
	})
	setAddresses(cfg, all)
	return nil
}

// rank is 0 for an address of the server, and 1 for others.
func rank(address *pgconn.FallbackConfig, server *pgx.ConnConfig) int {
	if address.Host == server.Host && address.Port == server.Port {
		return 0
	}
	return 1
}

const timelineKey = "doorward_timeline" // in the data of a connection

// checkTimeline decides by a new connection whether a server that takes writes may be
// used: rules 1 and 3.
func (c *Servers) checkTimeline(ctx context.Context, conn *pgconn.PgConn) error {
	number, since, err := promotion(ctx, conn)
	if err != nil {
		return err
	}
	newest := c.raise(number)
	if number < newest.number {
		return fmt.Errorf("the primary was replaced: it is on timeline %d, another one on %d", number, newest.number)
	}
	// Timeline 1 begins with the database, not with a promotion.
	if number > 1 && since < MaxLease && time.Since(newest.seenAt) < MaxLease {
		return fmt.Errorf("the primary was promoted within the last %v: leases on the previous one may still be valid", MaxLease)
	}
	conn.CustomData()[timelineKey] = number
	return nil
}

// raise records that a timeline with the number was seen, and returns the newest one.
func (c *Servers) raise(number uint32) *timeline {
	for {
		newest := c.newest.Load()
		if number <= newest.number {
			return newest
		}
		c.newest.CompareAndSwap(newest, &timeline{number, time.Now()})
	}
}

// The timeline is the beginning of a WAL file's name: pg_control_checkpoint has the old
// one until the first checkpoint after a promotion. A server that was restarted no
// longer knows the last commit of the previous primary, but was promoted before its start.
const promotionQuery = `SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
  extract(epoch FROM clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))`

// promotion returns the number of a server's timeline, and how long ago the previous primary
// committed the last transaction that this server has from it. Each server has a clock of its
// own: if that of the new one is ahead, rule 3 waits less by as much.
func promotion(ctx context.Context, conn *pgconn.PgConn) (number uint32, since time.Duration, err error) {
	results, err := conn.Exec(ctx, promotionQuery).ReadAll()
	if err != nil {
		return 0, 0, fmt.Errorf("read the timeline: %w", err)
	}
	row := results[0].Rows[0]
	n, numberErr := strconv.ParseUint(string(row[0]), 16, 32)
	seconds, sinceErr := strconv.ParseFloat(string(row[1]), 64)
	return uint32(n), time.Duration(seconds * float64(time.Second)), errors.Join(numberErr, sinceErr)
}

var errLeaseOver = errors.New("nothing could be committed for a lease: the primary may have been replaced, or its synchronous standby is gone")

// Gate permits connections from the pool, except under a context of Renewal, only while mayRead
// returns true; nil permits them always.
func (c *Servers) Gate(mayRead func() bool) {
	switch {
	case c == nil:
	case mayRead == nil:
		c.mayRead.Store(nil)
	default:
		c.mayRead.Store(&mayRead)
	}
}

// isOpen reports whether the servers may be used with this context.
func (c *Servers) isOpen(ctx context.Context) bool {
	mayRead := c.mayRead.Load()
	return mayRead == nil || (*mayRead)() || IsRenewal(ctx)
}

// Renewed wakes all callers that wait for the lease.
func (c *Servers) Renewed() {
	if c != nil {
		close(*c.renewal.Swap(new(make(chan struct{}))))
	}
}

// await waits up to MinLease for a late lease: a commit that takes a second on a
// busy machine is not yet a fault.
func (c *Servers) await(ctx context.Context) error {
	if c.isOpen(ctx) {
		return nil
	}
	timeout := time.NewTimer(MinLease)
	defer timeout.Stop()
	for renewal := *c.renewal.Load(); !c.isOpen(ctx); renewal = *c.renewal.Load() {
		select {
		case <-renewal:
		case <-timeout.C:
			return errLeaseOver
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Connector waits for the lease before it takes a connection from the pool: a
// waiter that held one would keep it from the poll that renews the lease.
func (c *Servers) Connector(pool driver.Connector) driver.Connector { return waitingConnector{pool, c} }

type waitingConnector struct {
	driver.Connector
	servers *Servers
}

// Connect implements driver.Connector.
func (w waitingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := w.servers.await(ctx); err != nil {
		return nil, err
	}
	return w.Connector.Connect(ctx)
}

// prepare decides whether a pooled connection may be used; false closes it and
// takes another one, true with an error returns it to the pool. The lease is tested
// first. In the other order a connection to the old primary could pass, the node pause,
// see the new primary and renew its lease there, and then read outdated data.
func (c *Servers) prepare(ctx context.Context, conn *pgx.Conn) (bool, error) {
	if !c.isOpen(ctx) {
		return true, errLeaseOver
	}
	return c.IsCurrent(conn.PgConn()), nil
}

// IsCurrent reports whether no newer timeline was seen since the connection was
// opened.
func (c *Servers) IsCurrent(conn *pgconn.PgConn) bool {
	if c == nil {
		return true
	}
	number, _ := conn.CustomData()[timelineKey].(uint32)
	return number >= c.newest.Load().number
}

// SetPassword sets the password with which probes log in from now on.
func (c *Servers) SetPassword(password string) {
	if c != nil {
		c.password.Store(&password)
	}
}

// withPassword returns the settings of a server with the present password.
func (c *Servers) withPassword(server *pgx.ConnConfig) *pgx.ConnConfig {
	password := c.password.Load()
	if password == nil {
		return server
	}
	own := server.Copy()
	own.Password = *password
	return own
}

// probeTimeout bounds a probe of all servers.
const probeTimeout = time.Second

// Probe connects to every server once, so that the newest timeline is known, and prefers
// from then on the server that may be used.
func (c *Servers) Probe(ctx context.Context) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, server := range c.all {
		wg.Go(func() {
			if conn, err := pgx.ConnectConfig(ctx, c.withPassword(server)); err == nil {
				c.preferred.Store(server)
				conn.Close(ctx) //nolint:errcheck // only the connection attempt matters
			}
		})
	}
	wg.Wait()
}

// ProbeIfStale is Probe for a process without a lease, such as a command, and at most
// once in MinLease.
func (c *Servers) ProbeIfStale(ctx context.Context) {
	if c == nil || c.mayRead.Load() != nil {
		return
	}
	now, last := time.Now(), c.probedAt.Load()
	if now.Sub(*last) >= MinLease && c.probedAt.CompareAndSwap(last, &now) {
		c.Probe(ctx)
	}
}

// Timeline is the number of the newest timeline seen; 0 for one server, and before any was
// seen.
func (c *Servers) Timeline() uint32 {
	if c == nil {
		return 0
	}
	return c.newest.Load().number
}

type renewalKey struct{} // of a context

// Renewal marks a context as that of work for the lease, which must not wait for it: to join,
// renew and give it back, and to listen for changes.
func Renewal(ctx context.Context) context.Context {
	return context.WithValue(ctx, renewalKey{}, true)
}

// IsRenewal reports whether the context was marked by Renewal.
func IsRenewal(ctx context.Context) bool { return ctx.Value(renewalKey{}) != nil }
