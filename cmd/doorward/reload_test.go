package main

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/node"
)

// TestReloadOfTheDatabase: SIGHUP puts another password into force, and nothing else of --database.
func TestReloadOfTheDatabase(t *testing.T) {
	const start = "postgres://door:first@db1,db2/doorward?sslmode=verify-full"
	for next, isTaken := range map[string]bool{
		"postgres://door:second@db1,db2/doorward?sslmode=verify-full":  true,
		"postgres://door:a%40b@db1,db2/doorward?sslmode=verify-full":   true,
		"postgres://other:second@db1,db2/doorward?sslmode=verify-full": false,
		"postgres://door:second@db1/doorward?sslmode=verify-full":      false,
		"postgres://door:second@db1,db2/other?sslmode=verify-full":     false,
		"postgres://door:second@db1,db2/doorward?sslmode=disable":      false,
		"postgres://door@db1,db2/doorward?sslmode=verify-full":         false,
		"sqlite:doorward.db": false,
	} {
		r := &reloader{started: newSettings()}
		r.started.cfg.Database = start
		r.remember()
		s := newSettings()
		s.cfg.Database = next
		want := start
		if isTaken {
			want = next
		}
		if got := r.withDatabase(node.Config{Database: next}).Database; got != want {
			t.Errorf("%s: the node gets %s, want %s", next, got, want)
		}
		changed, needRestart := r.compare(s)
		if slices.Contains(changed, "database") != isTaken || slices.Contains(needRestart, "database") == isTaken {
			t.Errorf("%s: changed are %q, a restart need %q", next, changed, needRestart)
		}
	}
}
