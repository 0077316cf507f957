package pgtest

import (
	"fmt"
	"testing"
)

// Pair is a primary and a hot standby with synchronous streaming replication: a commit
// is answered only when the standby has it too. So answered commits survive the loss of
// the primary; others may or may not.
type Pair struct {
	Primary *Cluster
	Standby *Cluster
}

// killable keeps all the server's files in its folder, which is removed also after
// [Cluster.Kill]; PostgreSQL's default leaves a file in /dev/shm.
func killable(settings map[string]string) { settings["dynamic_shared_memory_type"] = "mmap" }

// standbyName is the standby's name at the primary.
const standbyName = "standby"

// StartPair makes a pair for tb alone and removes it when tb ends.
func StartPair(tb testing.TB, options ...Option) *Pair {
	tb.Helper()
	p := &Pair{Primary: Start(tb, append(options, killable)...)}
	p.Primary.Stop(tb, Fast) // the copy is made of a stopped cluster
	if err := p.startStandby(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Standby.stopKeeper)
	p.Primary.Start(tb)
	// Only now: without a standby every commit would wait.
	p.Primary.exec(tb, "ALTER SYSTEM SET synchronous_standby_names = '"+standbyName+"'")
	p.Primary.exec(tb, "SELECT pg_reload_conf()")
	p.Primary.exec(tb, waitForSync)
	return p
}

// startStandby makes the standby from a copy of the stopped primary's data, which has the
// primary's settings, and adds its own.
func (p *Pair) startStandby() error {
	bin, err := locate()
	if err != nil {
		return err
	}
	own := fmt.Sprintf("cluster_name = '%s'\nprimary_conninfo = 'host=127.0.0.1 port=%d user=postgres'\nwal_retrieve_retry_interval = 100ms\n",
		standbyName, p.Primary.port)
	p.Standby, err = newCluster(bin, own, p.Primary.home)
	return err
}

// waitForSync returns when commits wait for the standby, or fails after 30 s.
const waitForSync = `DO $$
BEGIN
  FOR i IN 1..3000 LOOP
    PERFORM pg_stat_clear_snapshot();
    IF EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync') THEN RETURN; END IF;
    PERFORM pg_sleep(0.01);
  END LOOP;
  RAISE 'the standby does not follow';
END $$`

// DSN returns the URL of a new, empty database. It names both servers and asks
// for the one that takes writes, so that a client finds the promoted standby.
func (p *Pair) DSN(tb testing.TB) string {
	tb.Helper()
	name, _ := p.Primary.create(tb)
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable&target_session_attrs=read-write",
		p.Primary.port, p.Standby.port, name)
}

// Kill ends every process of the server by SIGKILL, like the loss of its machine:
// nothing more is written and no client is notified. Use it only on the clusters of a
// [Pair]; others leave a file in /dev/shm.
func (c *Cluster) Kill(tb testing.TB) {
	tb.Helper()
	c.run(tb, "kill")
}

// Asynchronous stops a primary's commits from waiting for the standby.
func (c *Cluster) Asynchronous(tb testing.TB) {
	tb.Helper()
	c.exec(tb, `ALTER SYSTEM SET synchronous_standby_names = ''`)
	c.exec(tb, `SELECT pg_reload_conf()`)
}

// Promote makes a standby a primary and returns when it accepts writes.
func (c *Cluster) Promote(tb testing.TB) {
	tb.Helper()
	c.run(tb, "promote")
}
