package domain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// watch has all nodes look at what is due.
func watch(f *apptest.Fixture) {
	f.Helper()
	for i := range f.Nodes {
		f.NoError(f.Node(i).Domains.Watch(f.Context()))
	}
}

// lapse takes the domain's record away and waits until the domain has lapsed.
func lapse(f *apptest.Fixture, clock *apptest.StoppedClock, d doorward.Domain) {
	f.Helper()
	name, _ := d.Record()
	f.DNS.TXT(name)
	for range 4 {
		clock.Move(24 * time.Hour)
		watch(f)
	}
	if got := get(f, d); got.Status != doorward.DomainLapsed {
		f.Fatalf("after four days without a record it is %+v", got)
	}
}

// A held domain is looked at once a day. When its record has been missing for 72 h it lapses, with one event and
// one mail to each OWNER; when the record is seen again, it is verified again.
func TestLapse(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		acme, owner := f.Tenant()
		admin := f.Join(owner, doorward.RoleAdmin)
		d := proved(f, owner, "acme.example")
		f.Subjects(owner.User.Email)
		asked := f.DNS.Asked(record)
		clock.Move(24*time.Hour - time.Microsecond)
		watch(f)
		wantEqual(f, f.DNS.Asked(record), asked)
		clock.Move(time.Microsecond)
		watch(f)
		wantEqual(f, f.DNS.Asked(record), asked+1)
		f.DNS.TXT(record, "v=spf1 -all")
		for range 3 { // at 0, 24 and 48 h
			clock.Move(24 * time.Hour)
			watch(f)
			if got := get(f, d); got.Status != doorward.DomainVerified || got.MissingSince == nil {
				f.Fatalf("it is %+v", got)
			}
		}
		clock.Move(24 * time.Hour)
		watch(f)
		watch(f)
		got := get(f, d)
		if got.Status != doorward.DomainLapsed || !got.LapsedAt.Equal(doorward.Instant(clock.Now())) || got.LapsedAt.Sub(*got.MissingSince) != 72*time.Hour {
			f.Fatalf("after 72 h it is %+v", got)
		}
		if subjects := f.Subjects(owner.User.Email); len(subjects) != 1 || !strings.HasSuffix(subjects[0], "of "+acme.Name+" is no longer proved") {
			f.Errorf("the OWNER has %q", subjects)
		}
		if texts := f.Texts(admin.User.Email); strings.Contains(texts, "proved") {
			f.Errorf("the ADMIN has %s", texts)
		}
		clock.Move(24 * time.Hour)
		publish(f, d)
		watch(f)
		if got := get(f, d); got.Status != doorward.DomainVerified || got.MissingSince != nil || got.LapsedAt != nil {
			f.Errorf("with its record again it is %+v", got)
		}
		wantEqual(f, trail(f, acme.ID)[2:], []string{
			`system domain.lapse, domain "" "acme.example", status "verified" "lapsed"`,
			`system domain.verify, domain "" "acme.example", status "lapsed" "verified"`,
		})
	})
}

// Silence lets nothing lapse: not for years, and not with a record that was missing before.
func TestSilenceLapsesNothing(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		d := proved(f, owner, "acme.example")
		f.DNS.TXT(record)
		clock.Move(24 * time.Hour)
		watch(f)
		if get(f, d).MissingSince == nil {
			f.Fatal("the record isn't missing")
		}
		f.DNS.Fail(record, true)
		for range 100 {
			clock.Move(24 * time.Hour)
			watch(f)
		}
		asked := f.DNS.Asked(record)
		if got := get(f, d); got.Status != doorward.DomainVerified {
			f.Fatalf("without an answer it is %+v", got)
		}
		clock.Move(59 * time.Minute)
		watch(f)
		wantEqual(f, f.DNS.Asked(record), asked)
		clock.Move(time.Minute)
		watch(f)
		if f.DNS.Asked(record) == asked {
			f.Error("an hour after a look without an answer there was no other")
		}
		f.DNS.Fail(record, false)
		publish(f, d)
		clock.Move(time.Hour)
		watch(f)
		if got := get(f, d); got.MissingSince != nil {
			f.Errorf("its record is seen again, and it is %+v", got)
		}
	})
}

// A look by "verify" counts like a daily one.
func TestLookByVerify(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		acme, owner := f.Tenant()
		d := proved(f, owner, "acme.example")
		f.DNS.TXT(record)
		try := func() {
			f.Helper()
			owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
			_, err := f.Node(0).Domains.Verify(f.Context(), owner.Caller, d.ID)
			wantCode(f, err, doorward.CodeDomainNotProved)
		}
		try()
		if got := get(f, d); got.Status != doorward.DomainVerified || got.MissingSince == nil || !got.MissingSince.Equal(doorward.Instant(clock.Now())) {
			f.Fatalf("it is %+v", got)
		}
		clock.Move(72 * time.Hour)
		try()
		if got := get(f, d); got.Status != doorward.DomainLapsed {
			f.Fatalf("it is %+v", got)
		}
		publish(f, d)
		if got := verify(f, owner, d); got.Status != doorward.DomainVerified {
			f.Errorf("it is %+v", got)
		}
		wantEqual(f, trail(f, acme.ID)[2:], []string{
			`system domain.lapse, domain "" "acme.example", status "verified" "lapsed"`,
			`user domain.verify, domain "" "acme.example", status "lapsed" "verified"`,
		})
	})
}

// Another tenant proves a domain 30 days after it has lapsed, and not before. The earlier holder's entry ends
// with an event and a mail, which say nothing of the new one.
func TestTakenOver(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		acme, owner := f.Tenant()
		zeta, other := f.Tenant()
		d := proved(f, owner, "acme.example")
		con := f.Connection(owner)
		_, err := f.Node(0).Domains.SetConnection(f.Context(), owner.Caller, d.ID, con, nil)
		f.NoError(err)
		theirs := add(f, other, "acme.example")
		try := func() error {
			f.Helper()
			other = f.SignIn(other.User.Email, apptest.FirstPassword)
			f.Subjects(other.User.Email)
			return apptest.ErrorOf(f.Node(0).Domains.Verify(f.Context(), other.Caller, theirs.ID))
		}
		wantCode(f, try(), doorward.CodeDomainNotProved) // without the record nothing is said of the holder
		lapse(f, clock, d)
		f.Subjects(owner.User.Email)
		publish(f, theirs)
		e := wantCode(f, try(), doorward.CodeDomainTaken)
		if strings.Contains(e.Error(), acme.ID) || strings.Contains(e.Error(), acme.Name) {
			f.Errorf("the error names the holder: %v", e)
		}
		clock.Move(30*24*time.Hour - time.Microsecond)
		wantCode(f, try(), doorward.CodeDomainTaken)
		clock.Move(time.Microsecond)
		f.NoError(try())
		_, err = f.DB.Read().Domain(f.Context(), d.ID)
		if err != store.ErrNone { //nolint:errorlint // it is not wrapped
			f.Errorf("the earlier holder's entry: %v", err)
		}
		holder, err := f.DB.Read().DomainHolder(f.Context(), "acme.example")
		f.NoError(err)
		wantEqual(f, holder.ID, theirs.ID)
		texts := f.Texts(owner.User.Email)
		if !strings.Contains(texts, "another organisation") || strings.Contains(texts, zeta.Name) {
			f.Errorf("the mail is %s", texts)
		}
		events := trail(f, acme.ID)
		wantEqual(f, events[len(events)-1], fmt.Sprintf(`system domain.delete, domain "acme.example" "", connectionId %q ""`, con))
		wantEqual(f, trail(f, zeta.ID), []string{
			`user domain.create, domain "" "acme.example"`, `user domain.verify, domain "" "acme.example", status "pending" "verified"`,
		})
	})
}

// A domain that the operator has released belongs to the next tenant that proves it; the daily look gives it to none.
func TestRelease(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		acme, owner := f.Tenant()
		_, other := f.Tenant()
		d, theirs := proved(f, owner, "acme.example"), add(f, other, "acme.example")
		f.Subjects(owner.User.Email)
		release := func(name string) error {
			return apptest.ErrorOf(f.Node(0).Domains.Release(f.Context(), apptest.Operator, name))
		}
		wantCode(f, release("other.example"), doorward.CodeNotFound)
		wantCode(f, release("-"), doorward.CodeValidationFailed)
		_, err := f.Node(0).Domains.Release(f.Context(), owner.Caller, "acme.example")
		wantCode(f, err, doorward.CodeForbidden)
		f.NoError(release("Acme.example"))
		f.NoError(release("acme.example"))
		if got := get(f, d); got.Status != doorward.DomainLapsed || !got.IsFree(clock.Now()) {
			f.Fatalf("released it is %+v", got)
		}
		texts := f.Texts(owner.User.Email)
		if strings.Count(texts, "has released the domain") != 1 {
			f.Errorf("the mails are %s", texts)
		}
		clock.Move(48 * time.Hour)
		f.Exec(`UPDATE domains SET look_at = 0 WHERE id = $1`, d.ID) // as if a node had begun to look before
		watch(f)                                                     // its record is still there
		if got := get(f, d); got.Status != doorward.DomainLapsed {
			f.Fatalf("the daily look has given it back: %+v", got)
		}
		owner, other = f.SignIn(owner.User.Email, apptest.FirstPassword), f.SignIn(other.User.Email, apptest.FirstPassword)
		if got := verify(f, owner, d); got.Status != doorward.DomainVerified || got.Released {
			f.Errorf("its holder has proved it, and it is %+v", got)
		}
		publish(f, theirs)
		_, err = f.Node(0).Domains.Verify(f.Context(), other.Caller, theirs.ID)
		wantCode(f, err, doorward.CodeDomainTaken)
		f.NoError(release("acme.example"))
		verify(f, other, theirs)
		events := trail(f, acme.ID)
		wantEqual(f, events[len(events)-1], `system domain.delete, domain "acme.example" ""`)
	})
}

// A domain that its holder has deleted is free at once.
func TestDeletedIsFree(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		d := proved(f, owner, "acme.example")
		f.NoError(f.Node(0).Domains.Delete(f.Context(), owner.Caller, d.ID))
		proved(f, other, "acme.example")
	})
}
