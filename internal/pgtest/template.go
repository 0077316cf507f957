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
	t.once.Do(func() {
		t.name = s.create(tb, "template0", t.Options)
		t.err = t.Prepare(s.url(t.name))
	})
	if t.err != nil || t.name == "" { // no name: create has ended the test that came first
		tb.Fatalf("pgtest: the template %s: %v", t.name, t.err)
	}
	return s.lend(tb, s.create(tb, t.name, ""))
}
