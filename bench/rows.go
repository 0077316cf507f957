package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/argon"
)

const clients = 16

// checks compares the check with a net/http server that answers the same bytes.
func (b *bench) checks() error {
	dsn := "sqlite:" + filepath.Join(b.dir, "check.db")
	if err := populate(dsn, 0, 1000, cheapParams); err != nil {
		return err
	}
	server, err := b.doorward(dsn)
	if err != nil {
		return err
	}
	defer server.stop()
	bare, err := b.bare()
	if err != nil {
		return err
	}
	defer bare.stop()
	requests := checkRequests(1000, 1000)
	ours, theirs, err := b.loadInTurns(server, bare, requests)
	if err != nil {
		return err
	}
	b.row("bare net/http, the same bytes", perSecond(theirs), "", "", theirs.cpuPer().String())
	b.row("check, 1,000 sessions", perSecond(ours), "bare, CPU", ratio(ours.cpuPer(), theirs.cpuPer()), ours.cpuPer().String())
	return nil
}

// signOn compares the check of sessions that a tenant's connection vouches for with that of sessions of
// Doorward's own.
func (b *bench) signOn() error {
	var servers [2]*process
	for i, issuer := range []doorward.Issuer{doorward.OwnIssuer, "con_7vkq2m5x3yh4n6rj7wd2c5tpae"} {
		dsn := "sqlite:" + filepath.Join(b.dir, fmt.Sprintf("signon%d.db", i))
		if err := populateBy(issuer, dsn, 0, 1000, cheapParams); err != nil {
			return err
		}
		server, err := b.doorward(dsn)
		if err != nil {
			return err
		}
		defer server.stop()
		servers[i] = server
	}
	own, vouched, err := b.loadInTurns(servers[0], servers[1], checkRequests(1000, 1000))
	if err != nil {
		return err
	}
	b.row("check, sessions of Doorward's own", perSecond(own), "", "", own.cpuPer().String())
	b.row("check, sessions of a connection", perSecond(vouched), "Doorward's own, CPU", ratio(vouched.cpuPer(), own.cpuPer()), vouched.cpuPer().String())
	return nil
}

// cheapParams are parameters that hash fast, to shorten the filling of databases. Rows that
// measure hashing use the parameters of production.
var cheapParams = argon.Params{MemoryKiB: 1024, Time: 1, Parallelism: 1}

// loadInTurns loads two servers alternately, several times.
func (b *bench) loadInTurns(one, other *process, requests [][]byte) (r1, r2 result, err error) {
	next := func(client, n int) []byte { return requests[(client*len(requests)/clients+n)%len(requests)] }
	for range b.turns {
		for p, sum := range map[*process]*result{one: &r1, other: &r2} {
			r, err := load(p, clients, b.slice, 200, next)
			if err != nil {
				return r1, r2, err
			}
			sum.add(r)
		}
	}
	return r1, r2, nil
}

// sessions measures the check with a growing number of sessions in memory, and the
// memory that they take.
func (b *bench) sessions() error {
	counts := []int{10_000, 100_000, 1_000_000}
	if !b.long {
		counts = []int{1000, 10_000}
	}
	var servers []*process
	defer func() {
		for _, p := range servers {
			p.stop()
		}
	}()
	for i, n := range counts {
		dsn := fmt.Sprintf("sqlite:%s", filepath.Join(b.dir, fmt.Sprintf("sessions%d.db", i)))
		if err := populate(dsn, 0, n, cheapParams); err != nil {
			return err
		}
		p, err := b.doorward(dsn, "--sessions-in-memory", "1100000")
		if err != nil {
			return err
		}
		servers = append(servers, p)
		idle := p.memory("VmRSS")
		if err := warm(p, n); err != nil {
			return err
		}
		grown := p.memory("VmRSS") - idle
		b.row(fmt.Sprintf("memory, %d sessions loaded", n), fmt.Sprintf("%d B a session", grown/int64(n)), "resident, all of it", "", "")
	}
	return b.compareSizes(servers, counts)
}

// warm checks every session once.
func warm(p *process, n int) error {
	c, err := dial(p.address)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	for i := range n {
		if status, body, err := c.ask(checkRequest(i)); err != nil || status != 200 {
			return fmt.Errorf("session %d: %d %s: %v", i, status, body, err)
		}
	}
	return nil
}

// compareSizes measures the check on servers with different numbers of sessions in memory,
// in turns. A first turn, shown in a row of its own, includes writing the uses to the
// database: that happens once a minute for each session, and the other turns take less.
func (b *bench) compareSizes(servers []*process, counts []int) error {
	first, sums := make([]result, len(servers)), make([]result, len(servers))
	turn := func(i int, sum *result) error {
		requests := checkRequests(counts[i], 200_000)
		r, err := load(servers[i], clients, b.slice, 200, func(client, n int) []byte { return requests[(client*len(requests)/clients+n)%len(requests)] })
		sum.add(r)
		return err
	}
	for i, p := range servers {
		if err := turn(i, &first[i]); err != nil {
			return err
		}
		waitUntilIdle(p)
	}
	for range b.turns {
		for i := range servers {
			if err := turn(i, &sums[i]); err != nil {
				return err
			}
		}
	}
	for i, n := range counts {
		b.row(fmt.Sprintf("check, %d sessions", n), perSecond(sums[i]), fmt.Sprintf("%d sessions, CPU", counts[0]),
			ratio(sums[i].cpuPer(), sums[0].cpuPer()), sums[i].cpuPer().String())
		b.row("  first uses in a minute among them", perSecond(first[i]), "", ratio(first[i].cpuPer(), sums[0].cpuPer()), first[i].cpuPer().String())
	}
	return nil
}

// waitUntilIdle returns when the process is idle and the uses of its sessions are written.
func waitUntilIdle(p *process) {
	for last := p.cpu(); ; {
		time.Sleep(1500 * time.Millisecond) // uses are written every second
		now := p.cpu()
		if now-last < 100*time.Millisecond {
			return
		}
		last = now
	}
}

func loginRequest(n int) []byte {
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, email(n), password)
	return fmt.Appendf(nil, "POST /api/v2/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// storm measures the rate and latency of checks while logins saturate the machine.
func (b *bench) storm() error {
	dsn := "sqlite:" + filepath.Join(b.dir, "storm.db")
	if err := populate(dsn, 0, 10_000, argon.Default); err != nil {
		return err
	}
	p, err := b.doorward(dsn)
	if err != nil {
		return err
	}
	defer p.stop()
	requests := checkRequests(10_000, 10_000)
	next := func(client, n int) []byte { return requests[(client*len(requests)/clients+n)%len(requests)] }
	var alone, underLogins, logins result
	highest := p.watchMemory()
	for range b.turns {
		r, err := load(p, clients, b.slice, 200, next)
		if err != nil {
			return err
		}
		alone.add(r)
		ended := make(chan error, 1)
		go func() {
			l, err := load(p, 8, b.slice+b.slice/4, 200, func(client, n int) []byte { return loginRequest(client*1000 + n%1000) })
			logins.add(l)
			ended <- err
		}()
		time.Sleep(b.slice / 8)
		if r, err = load(p, clients, b.slice, 200, next); err != nil {
			return err
		}
		underLogins.add(r)
		if err := <-ended; err != nil {
			return err
		}
	}
	b.row("check, nothing else", perSecond(alone), "", "", alone.cpuPer().String())
	b.row("check, 8 clients logging in", perSecond(underLogins), "nothing else, rate", fmt.Sprintf("%.2f", underLogins.rate()/alone.rate()), "")
	b.row("  its p50", underLogins.percentile(.5).String(), alone.percentile(.5).String(), ratio(underLogins.percentile(.5), alone.percentile(.5)), "")
	b.row("  its p99", underLogins.percentile(.99).String(), alone.percentile(.99).String(), ratio(underLogins.percentile(.99), alone.percentile(.99)), "")
	b.row("  logins at the same time", perSecond(logins), "", "", "")
	b.row("memory at its highest, hashing included", fmt.Sprintf("%.0f MB", float64(highest())/1e6), "", "", "")
	return nil
}

// logins compares logins, without checks, with hashing alone on every core.
func (b *bench) logins() error {
	dsn := "sqlite:" + filepath.Join(b.dir, "login.db")
	if err := populate(dsn, 0, 10_000, argon.Default); err != nil {
		return err
	}
	p, err := b.doorward(dsn)
	if err != nil {
		return err
	}
	defer p.stop()
	var sum result
	hashes, hashing := 0, time.Duration(0)
	for range b.turns {
		n, took := rawHashes(b.slice)
		hashes, hashing = hashes+n, hashing+took
		r, err := load(p, 8, b.slice, 200, func(client, n int) []byte { return loginRequest(client*1000 + n%1000) })
		if err != nil {
			return err
		}
		sum.add(r)
	}
	raw := float64(hashes) / hashing.Seconds()
	b.row("Argon2id alone, every core", fmt.Sprintf("%.1f/s", raw), "", "", "")
	b.row("login, 8 clients", perSecond(sum), "Argon2id alone, rate", fmt.Sprintf("%.2f", sum.rate()/raw), sum.cpuPer().String())
	return nil
}

// rawHashes hashes on every core for a while.
func rawHashes(duration time.Duration) (int, time.Duration) {
	began := time.Now()
	counts := make(chan int)
	for range runtime.NumCPU() {
		go func() {
			n := 0
			for ; time.Since(began) < duration; n++ {
				argon2.IDKey([]byte(password), []byte("sixteen bytes of"), argon.Default.Time, argon.Default.MemoryKiB, 1, 32)
			}
			counts <- n
		}()
	}
	sum := 0
	for range runtime.NumCPU() {
		sum += <-counts
	}
	return sum, time.Since(began)
}

// starts measures the start on a database with many sessions, the memory of an idle process,
// and the size of the binary.
func (b *bench) starts() error {
	n := 1_000_000
	if !b.long {
		n = 10_000
	}
	dsn := "sqlite:" + filepath.Join(b.dir, "start.db")
	if err := populate(dsn, 0, n, cheapParams); err != nil {
		return err
	}
	var took []time.Duration
	var idleMemory int64
	for range 11 {
		p, err := b.doorward(dsn)
		if err != nil {
			return err
		}
		took, idleMemory = append(took, p.ready), p.memory("VmRSS")
		p.stop()
	}
	slices.Sort(took)
	b.row(fmt.Sprintf("start to first answer, %d sessions stored", n), took[len(took)/2].Round(10*time.Microsecond).String(), "", "", "")
	b.row("memory at rest", fmt.Sprintf("%.1f MB", float64(idleMemory)/1e6), "", "", "")
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	b.row("binary", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "", "", "")
	return nil
}

func perSecond(r result) string { return fmt.Sprintf("%.0f/s", r.rate()) }

func ratio(a, b time.Duration) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}
