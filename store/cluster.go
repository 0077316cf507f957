package store

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

// cluster keeps apart the servers that a DSN with several hosts names. A primary
// that was replaced without noticing goes on saying that it takes writes. With
// synchronous replication it commits nothing any more, but it can be read, and
// what it says is the past. docs/lease.md has the argument; the rules are
//
//  1. Each promotion begins a timeline with a higher number (PostgreSQL's
//     documentation, "Continuous Archiving and Point-in-Time Recovery", Timelines).
//     Once a server of one is met, none of an older one is listened to.
//  2. Nothing is read while the lease is over, and the lease is renewed by
//     commits alone (see [Watch]): what commits has not been replaced.
//  3. A server that was just promoted waits until the leases of all nodes that
//     may still read from the one before are over: by its own word, or by the time
//     since this process met it.
//  4. Whoever can't commit looks at all the servers, and asks the one it finds before
//     the others: a machine that vanished takes all the time there is to connect.
//  5. Whoever has committed is told so only if no newer server was met meanwhile: the
//     one before may have been told not to wait for a standby any more.
//
// A nil cluster is one server: there is nothing to keep apart.
type cluster struct {
	servers []*pgx.ConnConfig
	newest  atomic.Pointer[timeline]
	found   atomic.Pointer[pgx.ConnConfig] // the one that looking found last
	looked  atomic.Pointer[time.Time]      // when a process without a lease did last
	mayRead atomic.Pointer[func() bool]    // nil in a process without a watch that runs
	renewal atomic.Pointer[chan struct{}]  // closed by the next one
}

// timeline is the history of a server since it was promoted, and the ones before
// that it continues.
type timeline struct {
	number uint32
	met    time.Time // by this process
}

// clusterOf returns nil for a DSN with one server, of which nothing is known but
// its name: who answers to it is for somebody else to say.
func clusterOf(cfg *pgxpool.Config) *cluster {
	c := &cluster{}
	c.newest.Store(&timeline{})
	c.looked.Store(&time.Time{})
	c.renewal.Store(new(make(chan struct{})))
	for _, way := range ways(cfg.ConnConfig) {
		c.add(cfg.ConnConfig, way)
	}
	if len(c.servers) < 2 {
		return nil
	}
	return c
}

// add takes a way to a server: sslmode=prefer has two to each.
func (c *cluster) add(like *pgx.ConnConfig, way *pgconn.FallbackConfig) {
	for _, s := range c.servers {
		if rank(way, s) == 0 {
			s.Fallbacks = append(s.Fallbacks, way)
			return
		}
	}
	own := like.Copy()
	take(own, []*pgconn.FallbackConfig{way})
	c.servers = append(c.servers, own)
}

// ways are those that a connection tries, one after the other; take has it try others.
func ways(cfg *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, cfg.Fallbacks...)
}

func take(cfg *pgx.ConnConfig, ways []*pgconn.FallbackConfig) {
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
}

// guard has the pool, and whatever is opened with its settings, follow the rules.
func (c *cluster) guard(cfg *pgxpool.Config) {
	for _, conn := range append(c.servers, cfg.ConnConfig) {
		takesWrites := conn.ValidateConnect
		conn.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			if err := takesWrites(ctx, conn); err != nil {
				return err
			}
			return c.checkTimeline(ctx, conn)
		}
	}
	cfg.PrepareConn = c.use
	cfg.BeforeConnect = c.foundFirst
}

// foundFirst has a connection try the server that was found before the others.
func (c *cluster) foundFirst(_ context.Context, cfg *pgx.ConnConfig) error {
	found := c.found.Load()
	if found == nil {
		return nil
	}
	all := ways(cfg)
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int {
		return cmp.Compare(rank(a, found), rank(b, found))
	})
	take(cfg, all)
	return nil
}

// rank is 0 for a way to the server, and 1 for others.
func rank(way *pgconn.FallbackConfig, server *pgx.ConnConfig) int {
	if way.Host == server.Host && way.Port == server.Port {
		return 0
	}
	return 1
}

const timelineOf = "doorward_timeline" // in the data of a connection

// checkTimeline judges a server that takes writes, by a new connection to it.
func (c *cluster) checkTimeline(ctx context.Context, conn *pgconn.PgConn) error {
	number, since, err := promotion(ctx, conn)
	if err != nil {
		return err
	}
	newest := c.raise(number)
	if number < newest.number {
		return fmt.Errorf("the primary was replaced: it is on timeline %d, another one on %d", number, newest.number)
	}
	if number > 1 && since < MaxLease && time.Since(newest.met) < MaxLease {
		return fmt.Errorf("the primary was promoted within the last %v: leases on the one before may not be over", MaxLease)
	}
	conn.CustomData()[timelineOf] = number
	return nil
}

// raise returns the newest timeline there is with the one of the number.
func (c *cluster) raise(number uint32) *timeline {
	for {
		newest := c.newest.Load()
		if number <= newest.number {
			return newest
		}
		c.newest.CompareAndSwap(newest, &timeline{number, time.Now()})
	}
}

// The timeline is the beginning of a WAL file's name. What pg_control_checkpoint
// says of it is late after a promotion, until the next checkpoint. A server that was
// restarted doesn't know the last commit of the one before any more, but was
// promoted no later than it began.
const promotionOf = `SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
  extract(epoch FROM clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))`

// promotion is the number of a server's timeline, and how long ago the server
// before it committed the last transaction that this one has from there. The two
// have a clock each, so a second by which the clock of the new one is ahead is a
// second less that rule 3 waits.
func promotion(ctx context.Context, conn *pgconn.PgConn) (number uint32, since time.Duration, err error) {
	results, err := conn.Exec(ctx, promotionOf).ReadAll()
	if err != nil {
		return 0, 0, fmt.Errorf("asked for its timeline: %w", err)
	}
	row := results[0].Rows[0]
	n, err := strconv.ParseUint(string(row[0]), 16, 32)
	seconds, unread := strconv.ParseFloat(string(row[1]), 64)
	return uint32(n), time.Duration(seconds * float64(time.Second)), errors.Join(err, unread)
}

var errLeaseOver = errors.New("nothing could be committed for a lease: the primary may have been replaced, or its synchronous standby is gone")

// gate has the servers asked only while mayRead says so; nil takes that away.
func (c *cluster) gate(mayRead func() bool) {
	switch {
	case c == nil:
	case mayRead == nil:
		c.mayRead.Store(nil)
	default:
		c.mayRead.Store(&mayRead)
	}
}

// leased reports whether the servers may be asked in that context.
func (c *cluster) leased(ctx context.Context) bool {
	mayRead := c.mayRead.Load()
	return mayRead == nil || (*mayRead)() || renewing(ctx)
}

// renewed lets those go on who wait for a lease.
func (c *cluster) renewed() {
	if c != nil {
		close(*c.renewal.Swap(new(make(chan struct{}))))
	}
}

// await waits for a lease that is late: a commit that takes a second on a busy
// machine is no fault yet.
func (c *cluster) await(ctx context.Context) error {
	if c.leased(ctx) {
		return nil
	}
	late := time.NewTimer(MinLease)
	defer late.Stop()
	for renewal := *c.renewal.Load(); !c.leased(ctx); renewal = *c.renewal.Load() {
		select {
		case <-renewal:
		case <-late.C:
			return errLeaseOver
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// patient awaits a lease before it takes a connection. With one in hand it would
// have the poll that renews the lease wait for it in turn.
type patient struct {
	driver.Connector
	*cluster
}

func (p patient) Connect(ctx context.Context) (driver.Conn, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	return p.Connector.Connect(ctx)
}

// use decides about a connection of the pool that is to be used: false has it
// closed and another one taken. The lease comes first. The other way round a
// connection to the old primary could pass, a pause follow in which the new one is
// met and renews the lease, and the past be read.
func (c *cluster) use(ctx context.Context, conn *pgx.Conn) (bool, error) {
	if !c.leased(ctx) {
		return true, errLeaseOver
	}
	return c.current(conn.PgConn()), nil
}

// current reports whether no server of a newer timeline was met since.
func (c *cluster) current(conn *pgconn.PgConn) bool {
	if c == nil {
		return true
	}
	number, _ := conn.CustomData()[timelineOf].(uint32)
	return number >= c.newest.Load().number
}

// lookFor is how long servers are given to show themselves.
const lookFor = time.Second

// look asks every server once, so that the newest timeline is known.
func (c *cluster) look(ctx context.Context) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	var wg sync.WaitGroup
	for _, server := range c.servers {
		wg.Go(func() {
			if conn, err := pgx.ConnectConfig(ctx, server); err == nil {
				c.found.Store(server)
				conn.Close(ctx) //nolint:errcheck // it was only to be met
			}
		})
	}
	wg.Wait()
}

// probeIfStale looks for a process without a lease, such as a command: once in MinLease.
func (c *cluster) probeIfStale(ctx context.Context) {
	if c == nil || c.mayRead.Load() != nil {
		return
	}
	now, last := time.Now(), c.looked.Load()
	if now.Sub(*last) >= MinLease && c.looked.CompareAndSwap(last, &now) {
		c.look(ctx)
	}
}

// newestTimeline is the newest timeline there is; 0 of one server.
func (c *cluster) newestTimeline() uint32 {
	if c == nil {
		return 0
	}
	return c.newest.Load().number
}

type unleased struct{} // the key of a context

// renews marks what renews the lease, and so can't wait for it.
func renews(ctx context.Context) context.Context { return context.WithValue(ctx, unleased{}, true) }

func renewing(ctx context.Context) bool { return ctx.Value(unleased{}) != nil }
