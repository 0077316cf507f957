package pgtest

import (
	"fmt"
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
	requirePostgres(tb)
	c, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	t.once.Do(func() {
		t.name = c.newName()
		c.exec(tb, "CREATE DATABASE "+t.name+" TEMPLATE template0 "+t.Options)
		t.err = t.Prepare(c.url(t.name))
	})
	if t.err != nil || t.name == "" {
		tb.Fatalf("pgtest: the template %s: %v", t.name, t.err)
	}
	name := c.newName()
	c.exec(tb, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, t.name))
	tb.Cleanup(func() { c.drop(tb, name) })
	return c.url(name)
}
