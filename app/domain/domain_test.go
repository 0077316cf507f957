package domain_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store/storetest"
)

// record is the name of the record of the domain that most tests prove.
const record = "_doorward.acme.example"

func add(f *apptest.Fixture, by apptest.Person, name string) doorward.Domain {
	f.Helper()
	d, err := f.Node(0).Domains.Add(f.Context(), by.Caller, name)
	f.NoError(err)
	return d
}

// publish sets the record of the domain, and no other record of the name.
func publish(f *apptest.Fixture, d doorward.Domain) {
	name, value := d.Record()
	f.DNS.TXT(name, value)
}

func verify(f *apptest.Fixture, by apptest.Person, d doorward.Domain) doorward.Domain {
	f.Helper()
	after, err := f.Node(1).Domains.Verify(f.Context(), by.Caller, d.ID)
	f.NoError(err)
	return after
}

// proved adds a domain, publishes its record and verifies it.
func proved(f *apptest.Fixture, by apptest.Person, name string) doorward.Domain {
	f.Helper()
	d := add(f, by, name)
	publish(f, d)
	return verify(f, by, d)
}

// wantCode fails unless the error has the code, and returns it.
func wantCode(f *apptest.Fixture, err error, code doorward.Code) *doorward.Error {
	f.Helper()
	var e *doorward.Error
	if !errors.As(err, &e) || e.Code != code {
		f.Fatalf("the error is %v, want %s", err, code)
	}
	return e
}

// get returns the entry as it is stored.
func get(f *apptest.Fixture, d doorward.Domain) doorward.Domain {
	f.Helper()
	current, err := f.DB.Read().Domain(f.Context(), d.ID)
	f.NoError(err)
	return current
}

// trail returns the events about domains in the tenant's trail, in short.
func trail(f *apptest.Fixture, tenantID string) (lines []string) {
	f.Helper()
	events, err := storetest.Events(f.Context(), f.DB.Read(), tenantID)
	f.NoError(err)
	for _, e := range events {
		if e.Target.Type != "domain" {
			continue
		}
		line := fmt.Sprintf("%s %s", e.ActorType, e.Action)
		for _, c := range e.Changes {
			line += fmt.Sprintf(", %s %q %q", c.Field, c.From, c.To)
		}
		lines = append(lines, line)
	}
	return lines
}

func wantEqual[T any](f *apptest.Fixture, got, want T) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
}

// A domain is proved by exactly the record of its entry, among others; what is refused changes nothing but the
// time of the look.
func TestProof(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		d := add(f, owner, "ACME.example")
		if d.Name != "acme.example" || d.Status != doorward.DomainPending || len(d.Token) < 26 {
			f.Fatalf("added %+v", d)
		}
		name, value := d.Record()
		wantEqual(f, []string{name, value}, []string{record, "doorward-verification=" + d.Token})
		for _, texts := range [][]string{
			nil, {"v=spf1 -all"}, {value + " "}, {strings.ToUpper(value)}, {`"` + value + `"`}, {d.Token}, {value[:len(value)-1]}, {"doorward-verification="},
		} {
			f.DNS.TXT(record, texts...)
			_, err := f.Node(0).Domains.Verify(f.Context(), owner.Caller, d.ID)
			want := slices.DeleteFunc(append([]string{}, texts...), func(s string) bool { return s == "v=spf1 -all" })
			wantEqual(f, wantCode(f, err, doorward.CodeDomainNotProved).Seen, want)
		}
		if got := get(f, d); got.Status != doorward.DomainPending || got.CheckedAt == nil || got.MissingSince != nil {
			f.Errorf("after refusals it is %+v", got)
		}
		f.DNS.TXT(record, "v=spf1 -all", value)
		after := verify(f, owner, d)
		if after.Status != doorward.DomainVerified || after.VerifiedAt == nil || !after.VerifiedAt.Equal(*after.CheckedAt) {
			f.Errorf("verified as %+v", after)
		}
		again := verify(f, owner, d)
		if !again.VerifiedAt.Equal(*after.VerifiedAt) {
			f.Error("a second proof changes since when the domain is verified")
		}
		wantEqual(f, trail(f, acme.ID), []string{
			`user domain.create, domain "" "acme.example"`,
			`user domain.verify, domain "" "acme.example", status "pending" "verified"`,
		})
	})
}

// Strings of a record are joined, aliases are followed, and a long answer is read by TCP.
func TestFormsOfRecords(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		d := add(f, owner, "acme.example")
		_, value := d.Record()
		f.DNS.Strings(record, value[:5], value[5:30], value[30:])
		verify(f, owner, d)

		d = add(f, owner, "alias.example")
		_, value = d.Record()
		f.DNS.CNAME("_doorward.alias.example", "one.dns.example")
		f.DNS.CNAME("one.dns.example", "two.dns.example")
		f.DNS.TXT("two.dns.example", value)
		verify(f, owner, d)

		d = add(f, owner, "long.example")
		_, value = d.Record()
		f.DNS.TXT("_doorward.long.example", strings.Repeat("x", 3000), value)
		verify(f, owner, d)
		if f.DNS.Streamed() == 0 {
			f.Error("the long answer was not read by TCP")
		}
		d = add(f, owner, "sub.acme.example")
		_, err := f.Node(0).Domains.Verify(f.Context(), owner.Caller, d.ID)
		wantCode(f, err, doorward.CodeDomainNotProved) // the record of acme.example is none of its subdomain
	})
}

// Without an answer of a name server nothing changes, whatever the state of the domain.
func TestNoAnswer(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		pending, verified := add(f, owner, "pending.example"), proved(f, owner, "acme.example")
		for _, name := range []string{record, "_doorward.pending.example"} {
			f.DNS.Fail(name, true)
		}
		for _, d := range []doorward.Domain{pending, verified} {
			before := get(f, d)
			_, err := f.Node(0).Domains.Verify(f.Context(), owner.Caller, d.ID)
			if e := wantCode(f, err, doorward.CodeProviderUnavailable); e.RetryAfter <= 0 || e.Err == nil {
				f.Errorf("the error has no time to wait, or no cause: %+v", e)
			}
			wantEqual(f, get(f, d), before)
		}
	})
}

func TestNames(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		long := strings.Repeat("a", 59) + "." + strings.Repeat(strings.Repeat("a", 60)+".", 3)
		for typed, want := range map[string]string{
			"BÜCHER.example": "xn--bcher-kva.example", "xn--bcher-kva.org": "xn--bcher-kva.org", "a.b.Acme.co.uk": "a.b.acme.co.uk", "acme-dot.example.": "acme-dot.example",
			long[:243-4] + ".eu": long[:243-4] + ".eu",
		} {
			wantEqual(f, add(f, owner, typed).Name, want)
		}
		before := f.CountRows("domains")
		for typed, code := range map[string]string{
			"": "invalid", "acme": "invalid", ".acme.example": "invalid", "@acme.example": "invalid", "x@acme.example": "invalid",
			"*.acme.example": "invalid", "acme_x.example": "invalid", "https://acme.example": "invalid", "192.0.2.1": "invalid", "acme .example": "invalid",
			"ａcme.example": "invalid", long + "aaaa.example": "invalid",
			"co.uk": "public_domain", "github.io": "public_domain", "GMAIL.com": "public_domain", "mail.gmx.de": "public_domain",
		} {
			_, err := f.Node(0).Domains.Add(f.Context(), owner.Caller, typed)
			e := wantCode(f, err, doorward.CodeValidationFailed)
			if len(e.Fields) != 1 || e.Fields[0].Pointer != "/domain" || e.Fields[0].Code != code {
				f.Errorf("%q is refused as %+v, want %s", typed, e.Fields, code)
			}
		}
		_, err := f.Node(0).Domains.Add(f.Context(), owner.Caller, "bücher.example")
		wantCode(f, err, doorward.CodeDomainExists)
		wantEqual(f, f.CountRows("domains"), before)

		for i := range doorward.DomainsMax - before {
			add(f, owner, fmt.Sprintf("n%d.example", i))
		}
		_, err = f.Node(0).Domains.Add(f.Context(), owner.Caller, "more.example")
		wantCode(f, err, doorward.CodeTooManyDomains)
		_, other := f.Tenant()
		add(f, other, "more.example")
		all, err := f.DB.Read().Domains(f.Context(), acme.ID)
		f.NoError(err)
		wantEqual(f, len(all), doorward.DomainsMax)
	})
}

// A domain that is deleted and added again has another token: the old record proves nothing.
func TestTokenIsNeverUsedAgain(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		d := proved(f, owner, "acme.example")
		f.NoError(f.Node(0).Domains.Delete(f.Context(), owner.Caller, d.ID))
		again := add(f, owner, "acme.example")
		if again.Token == d.Token || again.ID == d.ID {
			f.Fatal("the second entry has the token, or the id, of the first")
		}
		_, err := f.Node(0).Domains.Verify(f.Context(), owner.Caller, again.ID)
		wantCode(f, err, doorward.CodeDomainNotProved)
		_, err = f.Node(0).Domains.Verify(f.Context(), owner.Caller, d.ID)
		wantCode(f, err, doorward.CodeNotFound)
	})
}

// A domain has one connection of its own tenant at most, by the version that the caller has read.
func TestConnection(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		_, other := f.Tenant()
		d, first, second, foreign := add(f, owner, "acme.example"), f.Connection(owner), f.Connection(owner), f.Connection(other)
		set := func(by apptest.Person, id string, versions ...string) error {
			after, err := f.Node(0).Domains.SetConnection(f.Context(), by.Caller, d.ID, id, versions)
			if err == nil {
				wantEqual(f, after, get(f, d))
			}
			return err
		}
		for _, id := range []string{foreign, "con_none", "x"} {
			wantCode(f, set(owner, id), doorward.CodeValidationFailed)
		}
		wantCode(f, set(other, foreign), doorward.CodeNotFound)
		f.NoError(set(owner, first, d.Version()))
		wantCode(f, set(owner, second, d.Version()), doorward.CodePreconditionFailed)
		wantCode(f, set(owner, second), doorward.CodeDomainInUse)
		f.NoError(set(owner, first))
		f.NoError(set(owner, ""))
		f.NoError(set(owner, second))
		wantCode(f, f.Node(0).Domains.Delete(f.Context(), owner.Caller, d.ID, d.Version()), doorward.CodePreconditionFailed)
		wantCode(f, f.Node(0).Domains.Delete(f.Context(), other.Caller, d.ID), doorward.CodeNotFound)
		f.NoError(f.Node(0).Domains.Delete(f.Context(), owner.Caller, d.ID, get(f, d).Version()))
		wantEqual(f, trail(f, acme.ID), []string{
			`user domain.create, domain "" "acme.example"`,
			fmt.Sprintf(`user domain.update, domain "" "acme.example", connectionId "" %q`, first),
			fmt.Sprintf(`user domain.update, domain "" "acme.example", connectionId %q ""`, first),
			fmt.Sprintf(`user domain.update, domain "" "acme.example", connectionId "" %q`, second),
			fmt.Sprintf(`user domain.delete, domain "acme.example" "", connectionId %q ""`, second),
		})
	})
}

// Only OWNERs with a recent proof change domains, and nothing is asked of name servers for others.
func TestWhoProves(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		admin := f.Join(owner, doorward.RoleAdmin)
		d := add(f, owner, "acme.example")
		publish(f, d)
		_, err := f.Node(0).Domains.Verify(f.Context(), admin.Caller, d.ID)
		wantCode(f, err, doorward.CodeForbidden)
		_, err = f.Node(0).Domains.Add(f.Context(), admin.Caller, "other.example")
		wantCode(f, err, doorward.CodeForbidden)
		clock.Move(30 * time.Minute)
		_, err = f.Node(0).Domains.Verify(f.Context(), owner.Caller, d.ID)
		wantCode(f, err, doorward.CodeStepUpRequired)
		_, err = f.Node(0).Domains.SetConnection(f.Context(), owner.Caller, d.ID, "con_x", nil)
		wantCode(f, err, doorward.CodeStepUpRequired)
		wantCode(f, f.Node(0).Domains.Delete(f.Context(), owner.Caller, d.ID), doorward.CodeStepUpRequired)
		if n := f.DNS.Asked(record); n != 0 {
			f.Errorf("name servers were asked %d times", n)
		}
	})
}

// A tenant proves 120 domains a minute at most, on all nodes together. Beyond that name servers aren't asked.
func TestLimitOfProofs(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		d, theirs := add(f, owner, "acme.example"), add(f, other, "zeta.example")
		try := func(i int, by apptest.Person, d doorward.Domain) error {
			return apptest.ErrorOf(f.Node(i).Domains.Verify(f.Context(), by.Caller, d.ID))
		}
		for i := range 120 {
			wantCode(f, try(i, owner, d), doorward.CodeDomainNotProved)
		}
		wantCode(f, try(0, owner, d), doorward.CodeTooManyAttempts)
		wantEqual(f, f.DNS.Asked(record), 120)
		wantCode(f, try(0, other, theirs), doorward.CodeDomainNotProved)
		clock.Move(time.Minute)
		wantCode(f, try(1, owner, d), doorward.CodeDomainNotProved)
	})
}
