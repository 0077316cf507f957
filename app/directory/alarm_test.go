package directory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/scim"
)

func countSubjects(f *apptest.Fixture, email, part string) int {
	f.Helper()
	return len(slices.DeleteFunc(f.Subjects(email), func(s string) bool { return !strings.Contains(s, part) }))
}

// A directory that switches off a fifth of the people, by several nodes at once, is reported to the OWNERs once.
func TestRaceAlarm(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, by := directoryOf(f, owner, "acme.example")
		var ids []string
		for i := range 13 {
			u, err := f.Node(0).Directories.Make(f.Context(), by(0), said(fmt.Sprintf("p%d@acme.example", i), true))
			f.NoError(err)
			ids = append(ids, u.ID)
		}
		callers := []doorward.Caller{by(0), by(1), by(2)}
		off := func(i int) error {
			return f.Node(i).Directories.Remove(f.Context(), callers[i%3], ids[i])
		}
		for i := range 9 {
			f.NoError(off(i))
		}
		if n := countSubjects(f, owner.User.Email, "access of many"); n > 0 {
			t.Fatalf("%d mails about nine people", n)
		}
		for _, err := range apptest.Concurrently(4, func(i int) error { return off(9 + i) }) {
			f.NoError(err)
		}
		if n := countSubjects(f, owner.User.Email, "access of many"); n != 1 {
			t.Errorf("%d mails about thirteen people, want 1", n)
		}
		if n := f.Int(`SELECT count(*) FROM events WHERE action = 'directory.alarm'`); n != 1 {
			t.Errorf("%d events", n)
		}
		if text := f.Texts(owner.User.Email); !strings.Contains(text, "/runs/run_") {
			t.Errorf("the mail doesn't lead to the run: %s", text)
		}
	})
}

// A fifth of the people is an alarm, less isn't.
func TestNoAlarm(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, by := directoryOf(f, owner, "acme.example")
		var ids []string
		for i := range 60 {
			u, err := f.Node(0).Directories.Make(f.Context(), by(0), said(fmt.Sprintf("p%d@acme.example", i), true))
			f.NoError(err)
			ids = append(ids, u.ID)
		}
		f.Exec(`UPDATE directory_effects SET at = at - 7200000000`)
		for _, id := range ids[:12] {
			f.NoError(f.Node(0).Directories.Remove(f.Context(), by(0), id))
		}
		if n := f.Int(`SELECT count(*) FROM events WHERE action = 'directory.alarm'`); n != 0 {
			t.Errorf("%d events about 12 of 61 people", n)
		}
		f.NoError(f.Node(0).Directories.Remove(f.Context(), by(0), ids[12]))
		if n := f.Int(`SELECT count(*) FROM events WHERE action = 'directory.alarm'`); n != 1 {
			t.Errorf("%d events about 13 of 61 people", n)
		}
	})
}

// Nobody is told twice of the same people, in the next run, nor of those whom an undo has brought back.
func TestAlarmOfTheNextRun(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		con, by := directoryOf(f, owner, "acme.example")
		var ids []string
		names := map[string]string{}
		for i := range 33 {
			u, err := f.Node(0).Directories.Make(f.Context(), by(0), said(fmt.Sprintf("p%d@acme.example", i), true))
			f.NoError(err)
			ids, names[u.ID] = append(ids, u.ID), u.UserName
		}
		f.Exec(`UPDATE directory_effects SET at = at - 7200000000`)
		off := func(ids []string, want int) {
			f.Helper()
			f.Exec(`UPDATE directory_runs SET began_at = began_at - 660000000, last_at = last_at - 660000000`)
			for _, id := range ids {
				_, err := f.Node(0).Directories.Replace(f.Context(), by(0), id, said(names[id], false))
				f.NoError(err)
			}
			if n := f.Int(`SELECT count(*) FROM events WHERE action = 'directory.alarm'`); n != want {
				f.Errorf("%d events, want %d", n, want)
			}
		}
		off(ids[:10], 1)
		off(ids[10:11], 1)
		off(ids[11:19], 1)
		page, err := f.Node(0).DirectoryRuns.List(f.Context(), owner.Caller, con, doorward.Window{Limit: 2})
		f.NoError(err)
		for _, run := range page.Items {
			_, err := f.Node(0).DirectoryRuns.Undo(f.Context(), owner.Caller, con, run.ID)
			f.NoError(err)
		}
		f.NoError(f.Node(0).DirectoryRuns.Sweep(f.Context()))
		off(ids[19:28], 1) // nine that are off by runs of which nobody was told
		off(ids[28:29], 2)
	})
}

// A person is told once that a directory has asked for another address of their own account.
func TestRaceAddressRefused(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, by := directoryOf(f, owner, "acme.example")
		bob := f.Join(owner, doorward.RoleUser)
		callers := []doorward.Caller{by(0), by(1), by(2)}
		for _, err := range apptest.Concurrently(6, func(i int) error {
			_, err := f.Node(i).Directories.Replace(f.Context(), callers[i%3], bob.User.ID, said("bob@acme.example", true))
			return err
		}) {
			if refused, is := err.(*scim.Error); !is || refused.Type != scim.Mutability {
				t.Errorf("it is answered with %v", err)
			}
		}
		if n := countSubjects(f, bob.User.Email, "wanted to change"); n != 1 {
			t.Errorf("%d mails, want 1", n)
		}
	})
}

// A directory that asks for many addresses doesn't fill somebody's mailbox: one mail a day is sent, for whatever address,
// and by whichever of the tenant's connections.
func TestAddressRefusedOnceADay(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, by := directoryOf(f, owner, "acme.example")
		_, other := directoryOf(f, owner, "zeta.example")
		bob := f.Join(owner, doorward.RoleUser)
		ask := func(by func(int) doorward.Caller, address string, want int) {
			f.Helper()
			_, _ = f.Node(0).Directories.Replace(f.Context(), by(0), bob.User.ID, said(address, true))
			if n := countSubjects(f, bob.User.Email, "wanted to change"); n != want {
				f.Errorf("%d mails after %s was asked for, want %d", n, address, want)
			}
		}
		ask(by, "bob@acme.example", 1)
		ask(by, "rob@acme.example", 1)
		ask(other, "rob@acme.example", 1)
		f.Exec(`UPDATE throttles SET since = since - 90000000000`)
		ask(by, "bob@acme.example", 1)
		ask(by, "rob@acme.example", 2)
	})
}

// A directory that switches somebody off and on who was invited sends as many mails a day as by hand are sent at most.
func TestInvitationsToOneAddress(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, by := directoryOf(f, owner, "acme.example")
		made, err := f.Node(0).Directories.Make(f.Context(), by(0), said("ann@elsewhere.example", true))
		f.NoError(err)
		n := 1
		for ; n < 30 && err == nil; n++ {
			_, err = f.Node(0).Directories.Replace(f.Context(), by(0), made.ID, said("ann@elsewhere.example", false))
			f.NoError(err)
			_, err = f.Node(0).Directories.Replace(f.Context(), by(0), made.ID, said("ann@elsewhere.example", true))
		}
		if apptest.Code(err) != doorward.CodeResendTooSoon || n > 10 {
			t.Errorf("the invitation %d is answered with %v", n, err)
		}
	})
}

// OWNERs are told of a leaked secret, which no node accepts any more.
func TestLeakedSecret(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		con := f.Connection(owner)
		made, err := f.Node(0).Directories.AddSecret(f.Context(), owner.Caller, con, nil)
		f.NoError(err)
		for range 2 {
			f.NoError(f.Node(1).Leaks.Report(f.Context(), apptest.Anonymous(1), made.Text))
		}
		if _, err := f.Node(0).Directories.Check(f.Context(), apptest.Anonymous(0), made.Text); apptest.Code(err) != doorward.CodeUnauthenticated {
			t.Errorf("the secret is answered with %v", err)
		}
		if n := countSubjects(f, owner.User.Email, "was found and ended"); n != 1 {
			t.Errorf("%d mails, want 1", n)
		}
	})
}
