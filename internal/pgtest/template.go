package pgtest

import (
	"sync"
	"testing"
)

// Template makes copies of one database, which is prepared when the first copy is
// requested. A copy takes a fraction of the time of migrations.
type Template struct {
	// Prepare fills a new, empty database and leaves no connection to it open.
	Prepare func(dsn string) error
	// Name, if not empty, is the same in all test binaries of a run, which share the database.
	Name string
	// Options are added to CREATE DATABASE, such as a collation.
	Options string

	once sync.Once
	name string
	err  error
}

// DSN returns the URL of a new copy, as the function [DSN] does of an empty
// database.
func (t *Template) DSN(tb testing.TB) string {
	tb.Helper()
	s := shared(tb)
	t.once.Do(func() { t.name, t.err = t.find(tb, s) })
	if t.err != nil || t.name == "" { // no name: create has ended the test that came first
		tb.Fatalf("pgtest: the template %s: %v", t.name, t.err)
	}
	return s.lend(tb, s.create(tb, t.name, ""))
}

// find returns the name of the prepared database, which it makes unless another binary has.
func (t *Template) find(tb testing.TB, s *sharedCluster) (name string, err error) {
	tb.Helper()
	if t.Name == "" {
		return t.make(tb, s)
	}
	s.exec(tb, "SELECT pg_advisory_lock(1)") // released also when the binary ends
	defer s.exec(tb, "SELECT pg_advisory_unlock(1)")
	if s.has(tb, t.Name) {
		return t.Name, nil
	}
	if name, err = t.make(tb, s); err != nil {
		return name, err
	}
	s.exec(tb, "ALTER DATABASE "+name+" RENAME TO "+t.Name) // complete, or absent
	return t.Name, nil
}

func (t *Template) make(tb testing.TB, s *sharedCluster) (name string, err error) {
	tb.Helper()
	name = s.create(tb, "template0", t.Options)
	return name, t.Prepare(s.url(name))
}
