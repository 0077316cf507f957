package provider_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/provider"
)

const entity = "https://idp.acme.example"

// activeSAML makes an active connection whose metadata are at the address.
func activeSAML(f *apptest.Fixture, by apptest.Person, address string) connection.Shown {
	f.Helper()
	f.UseMasterKey()
	connections := f.Node(0).Connections
	made, err := connections.Create(f.Context(), by.Caller, connection.Draft{Type: "saml", Name: new("SAML"), MetadataURL: &address})
	f.NoError(err)
	tests := f.Node(0).Tests
	test, err := tests.Make(f.Context(), by.Caller, made.ID)
	f.NoError(err)
	_, _, err = tests.Begin(f.Context(), by.Caller, made.ID, test.ID, "")
	f.NoError(err)
	_, err = tests.End(f.Context(), test.ID, nil, []doorward.TestCheck{{Name: "signature", OK: true}})
	f.NoError(err)
	after, _, err := connections.Edit(f.Context(), by.Caller, made.ID, connection.Change{Draft: connection.Draft{Status: new("active")}})
	f.NoError(err)
	return after
}

// signers returns by whose certificates people are signed in on a node, without blanks.
func signers(f *apptest.Fixture, node int, id string) (all string) {
	f.Helper()
	config, _, err := f.Node(node).Connections.ReadySAML(f.Context(), id, false)
	f.NoError(err)
	for _, c := range config.Provider.Certificates {
		all += c.Fingerprint + " "
	}
	return all
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]) + " "
}

// TestMetadataAreReadDaily: what a provider has taken away is gone the next day, and what it has added is there. What
// can't be read, has no certificate, or is another provider's changes nothing, and each reading is in the protocol; the
// trail says which certificates have changed.
func TestMetadataAreReadDaily(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		far := f.DB.Now().Add(1000 * time.Hour)
		a, b := apptest.SAMLCertificate(far), apptest.SAMLCertificate(far)
		server := f.MetadataServer(apptest.SAMLMetadata(entity, a))
		c := activeSAML(f, owner, server.Address())
		last := func() doorward.Attempt {
			page, err := f.Node(0).Connections.Attempts(f.Context(), owner.Caller, c.ID, doorward.Window{Limit: 20})
			f.NoError(err)
			for _, entry := range page.Items {
				if entry.Kind == doorward.AttemptMetadata {
					return entry
				}
			}
			return doorward.Attempt{}
		}
		reads := server.Reads()
		f.NoError(f.Node(0).Connections.ReadDue(f.Context()))
		if server.Reads() != reads {
			t.Error("metadata were read again at once")
		}
		for _, step := range []struct {
			what    string
			status  int
			text    string
			want    string
			outcome doorward.AttemptOutcome
			seen    string
		}{
			{"another certificate", http.StatusOK, apptest.SAMLMetadata(entity, b), fingerprint(b), doorward.AttemptDone, ""},
			{"no answer", http.StatusNotFound, "", fingerprint(b), doorward.AttemptUnavailable, "unreachable: HTTP 404 Not Found"},
			{"no metadata", http.StatusOK, "x", fingerprint(b), doorward.AttemptUnavailable, "invalid"},
			{"no certificate", http.StatusOK, apptest.SAMLMetadata(entity), fingerprint(b), doorward.AttemptUnavailable, "no_certificate"},
			{"another provider", http.StatusOK, apptest.SAMLMetadata("https://other.example", a), fingerprint(b), doorward.AttemptUnavailable, "unknown_entity: https://other.example"},
			{"both certificates", http.StatusOK, apptest.SAMLMetadata(entity, a, b), fingerprint(a) + fingerprint(b), doorward.AttemptDone, ""},
		} {
			server.Say(step.status, step.text)
			clock.Move(24*time.Hour + time.Second)
			reads := server.Reads()
			for node := range 2 {
				f.NoError(f.Node(node).Connections.ReadDue(f.Context()))
			}
			if n := server.Reads() - reads; n != 1 {
				t.Errorf("%s: it was read %d times", step.what, n)
			}
			for node := range 2 {
				if got := signers(f, node, c.ID); got != step.want {
					t.Errorf("%s: node %d takes %s, want %s", step.what, node, got, step.want)
				}
			}
			if got := last(); got.Outcome != step.outcome || !strings.HasPrefix(got.Seen, step.seen) || (got.Advice == "metadata_entity") != (step.what == "another provider") {
				t.Errorf("%s: the protocol has %+v", step.what, got)
			}
		}
		events, err := f.DB.Read().EventsAfter(f.Context(), c.TenantID, 0, 100)
		f.NoError(err)
		var changes []string
		for _, e := range events {
			if change := e.Change("certificates"); e.ActorType == doorward.System && change.From != "" {
				changes = append(changes, change.From+" → "+change.To)
			}
		}
		aPrint, bPrint := strings.TrimSpace(fingerprint(a)), strings.TrimSpace(fingerprint(b))
		if got, want := fmt.Sprint(changes), fmt.Sprint([]string{aPrint + " → " + bPrint, bPrint + " → " + aPrint + " " + bPrint}); got != want {
			t.Errorf("the trail has %s, want %s", got, want)
		}
	})
}

// TestRefreshNamesWhoAsked: in the trail a refresh that has changed the certificates is the OWNER's, with its request, and the
// protocol has the request, too. What Doorward reads by itself is its own.
func TestRefreshNamesWhoAsked(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		far := f.DB.Now().Add(1000 * time.Hour)
		a, b := apptest.SAMLCertificate(far), apptest.SAMLCertificate(far)
		server := f.MetadataServer(apptest.SAMLMetadata(entity, a))
		c := activeSAML(f, owner, server.Address())
		server.Say(http.StatusOK, apptest.SAMLMetadata(entity, b))
		by := owner.Caller
		by.RequestID = "req_refresh"
		f.NoError(apptest.ErrorOf(f.Node(0).Connections.Refresh(f.Context(), by, c.ID)))
		server.Say(http.StatusOK, apptest.SAMLMetadata(entity, a))
		f.NoError(apptest.ErrorOf(f.Node(1).Connections.ReadMetadataAgain(f.Context(), unknown(f, c.ID, a))))

		events, err := f.DB.Read().EventsAfter(f.Context(), c.TenantID, 0, 100)
		f.NoError(err)
		var who []string
		for _, e := range events {
			if e.Change("certificates").From != "" {
				who = append(who, strings.TrimSpace(fmt.Sprint(e.ActorType, " ", e.ActorID, " ", e.RequestID)))
			}
		}
		if want := []string{fmt.Sprint(doorward.ByUser, " ", owner.User.ID, " req_refresh"), string(doorward.System)}; !slices.Equal(who, want) {
			t.Errorf("the trail names %q, want %q", who, want)
		}
		page, err := f.Node(0).Connections.Attempts(f.Context(), by, c.ID, doorward.Window{Limit: 2})
		f.NoError(err)
		if got := page.Items[1].RequestIDs; len(page.Items) != 2 || !slices.Equal(got, []string{by.RequestID}) {
			t.Errorf("the protocol has %+v", page.Items)
		}
	})
}

// TestAllTakenAway: if the provider has only certificates left that were taken away by hand, nobody is signed in: neither
// by them, nor by those that the provider has withdrawn. OWNERs are told once, and such a connection can't be enabled.
func TestAllTakenAway(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		far := f.DB.Now().Add(1000 * time.Hour)
		a, b := apptest.SAMLCertificate(far), apptest.SAMLCertificate(far)
		server := f.MetadataServer(apptest.SAMLMetadata(entity, a, b))
		c := activeSAML(f, owner, server.Address())
		keep := []string{strings.TrimSpace(fingerprint(a))}
		_, _, err := f.Node(0).Connections.Edit(f.Context(), owner.Caller, c.ID, connection.Change{Draft: connection.Draft{Certificates: &keep}})
		f.NoError(err)
		server.Say(http.StatusOK, apptest.SAMLMetadata(entity, b))
		_, err = f.Node(0).Connections.Refresh(f.Context(), owner.Caller, c.ID)
		f.NoError(err)
		if got := signers(f, 1, c.ID); got != "" {
			t.Errorf("people are signed in by %s", got)
		}
		page, err := f.Node(0).Connections.Attempts(f.Context(), owner.Caller, c.ID, doorward.Window{Limit: 1})
		f.NoError(err)
		if got := page.Items[0]; got.Check != "certificate" || got.Outcome != doorward.AttemptRefused || got.Advice != "taken_away" {
			t.Errorf("the protocol has %+v", got)
		}
		_, err = f.Node(1).Connections.Refresh(f.Context(), owner.Caller, c.ID)
		f.NoError(err)
		if got := f.Subjects(owner.User.Email); len(got) == 0 || strings.Count(strings.Join(got, "\n"), "Nobody can sign in with") != 1 {
			t.Errorf("the OWNER's mails are %q", got)
		}
		for _, step := range []struct {
			status string
			want   doorward.Code
		}{{"disabled", ""}, {"active", doorward.CodeCertificateNeeded}} {
			_, _, err := f.Node(0).Connections.Edit(f.Context(), owner.Caller, c.ID, connection.Change{Draft: connection.Draft{Status: &step.status}})
			if apptest.Code(err) != step.want {
				t.Errorf("the change to %s is answered %v", step.status, err)
			}
		}
	})
}

// unknown is a response that the certificate has signed, judged now.
func unknown(f *apptest.Fixture, conID string, der []byte) provider.Unknown {
	return provider.Unknown{ConnectionID: conID, Signer: strings.TrimSpace(fingerprint(der)), Arrived: f.DB.Now(), Judged: f.DB.Now()}
}

// TestRaceReadMetadataAgain: however many responses are signed by no known certificate, on whatever nodes, metadata are
// read once a minute, and all who have waited judge by what was read.
func TestRaceReadMetadataAgain(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		far := f.DB.Now().Add(1000 * time.Hour)
		a, b := apptest.SAMLCertificate(far), apptest.SAMLCertificate(far)
		server := f.MetadataServer(apptest.SAMLMetadata(entity, a))
		c := activeSAML(f, owner, server.Address())
		clock.Move(2 * time.Minute)
		server.Say(http.StatusOK, apptest.SAMLMetadata(entity, b))
		ask := func(callers int) {
			before := server.Reads()
			var waiting sync.WaitGroup
			for i := range callers {
				waiting.Go(func() {
					changed, err := f.Node(i%2).Connections.ReadMetadataAgain(f.Context(), unknown(f, c.ID, b))
					if err != nil || !changed {
						t.Errorf("caller %d: changed %t, %v", i, changed, err)
					}
					if got := signers(f, i%2, c.ID); got != fingerprint(b) {
						t.Errorf("caller %d judges by %s", i, got)
					}
				})
			}
			waiting.Wait()
			if n := server.Reads() - before; n > 1 {
				t.Errorf("%d callers had it read %d times", callers, n)
			}
		}
		ask(16)
		ask(4)                           // within the minute
		if n := server.Reads(); n != 3 { // when it was made, at the test, and now
			t.Errorf("it was read %d times", n)
		}
		clock.Move(2 * time.Minute)
		server.Say(http.StatusServiceUnavailable, "")
		changed, err := f.Node(0).Connections.ReadMetadataAgain(f.Context(), unknown(f, c.ID, a))
		if changed || !doorward.HasCode(err, doorward.CodeProviderUnavailable) || signers(f, 0, c.ID) != fingerprint(b) {
			t.Errorf("a provider out of reach: changed %t, %v", changed, err)
		}
		f.NoError(apptest.ErrorOf(f.Node(0).Connections.ReadMetadataAgain(f.Context(), unknown(f, "con_none", b))))
	})
}

// TestReadingsForUnknown: readings for anything else don't delay that for an unknown certificate. Those for the same one
// are few within a minute; another one isn't delayed by them. After a failed reading the answer comes at once.
func TestReadingsForUnknown(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		far := f.DB.Now().Add(1000 * time.Hour)
		a, b, stranger := apptest.SAMLCertificate(far), apptest.SAMLCertificate(far), apptest.SAMLCertificate(far)
		server := f.MetadataServer(apptest.SAMLMetadata(entity, a))
		c := activeSAML(f, owner, server.Address())
		clients := func(node int) *connection.Connections { return f.Node(node).Connections }
		// again reads, as long after the last reading as has to be.
		again := func(der []byte) (bool, error) {
			clock.Move(provider.AgainSoon)
			return clients(0).ReadMetadataAgain(f.Context(), unknown(f, c.ID, der))
		}
		reads := server.Reads()
		wantReads := func(what string, want int) {
			t.Helper()
			if n := server.Reads() - reads; n != want {
				t.Errorf("%s: read %d times, want %d", what, n, want)
			}
			reads = server.Reads()
		}
		f.NoError(apptest.ErrorOf(clients(0).Refresh(f.Context(), owner.Caller, c.ID)))
		reads = server.Reads()
		for range 5 {
			f.NoError(apptest.ErrorOf(again(stranger)))
		}
		wantReads("the same certificate", 3)
		server.Say(http.StatusOK, apptest.SAMLMetadata(entity, b))
		if changed, err := again(b); err != nil || !changed || signers(f, 1, c.ID) != fingerprint(b) {
			t.Errorf("the provider's next one: changed %t, %v", changed, err)
		}
		wantReads("another certificate", 1)
		clock.Move(time.Minute)
		f.NoError(apptest.ErrorOf(again(stranger)))
		wantReads("a minute later", 1)

		clock.Move(time.Second)
		server.Say(http.StatusServiceUnavailable, "")
		if _, err := clients(1).Refresh(f.Context(), owner.Caller, c.ID); !doorward.HasCode(err, doorward.CodeProviderUnavailable) {
			t.Errorf("the reading is answered %v", err)
		}
		reads = server.Reads()
		for range 2 { // on both nodes, within AgainSoon after the last reading for one
			clock.Move(time.Millisecond)
			for node := range 2 {
				if _, err := clients(node).ReadMetadataAgain(f.Context(), unknown(f, c.ID, a)); !doorward.HasCode(err, doorward.CodeProviderUnavailable) {
					t.Errorf("after a failed reading: %v", err)
				}
			}
		}
		wantReads("after a failed reading", 0)
		server.Say(http.StatusOK, apptest.SAMLMetadata(entity, a))
		if changed, err := again(a); err != nil || !changed {
			t.Errorf("once it can be read: changed %t, %v", changed, err)
		}
	})
}

// TestRaceWaitingPlaces: responses that wait for the metadata of one connection leave room for those of others, and those
// that one client has sent for those of other clients.
func TestRaceWaitingPlaces(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		far := f.DB.Now().Add(1000 * time.Hour)
		a, b := apptest.SAMLCertificate(far), apptest.SAMLCertificate(far)
		_, hostile := f.Tenant()
		_, owner := f.Tenant()
		slow, fast := f.MetadataServer(apptest.SAMLMetadata(entity, a)), f.MetadataServer(apptest.SAMLMetadata(entity, a))
		held, others := activeSAML(f, hostile, slow.Address()), activeSAML(f, owner, fast.Address())
		release := slow.Hold()
		ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		const sent = 300
		ends := make(chan error, sent+1)
		send := func(signer, client string) {
			u := unknown(f, held.ID, b)
			u.Signer, u.Client = signer, client
			_, err := f.Node(0).Connections.ReadMetadataAgain(ctx, u)
			ends <- err
		}
		for i := range sent {
			go send(fmt.Sprint(i), "192.0.2.1")
		}
		for range sent - 256 { // the others wait, or are refused in a moment
			if err := <-ends; !doorward.HasCode(err, doorward.CodeProviderUnavailable) {
				t.Errorf("one of too many: %v", err)
			}
		}
		fast.Say(http.StatusOK, apptest.SAMLMetadata(entity, b))
		if changed, err := f.Node(0).Connections.ReadMetadataAgain(ctx, unknown(f, others.ID, b)); err != nil || !changed {
			t.Errorf("of another connection: changed %t, %v", changed, err)
		}
		slow.Say(http.StatusOK, apptest.SAMLMetadata(entity, b))
		release()
		for range 256 {
			<-ends
		}
	})
}

// TestFailedReadingIsRetried: after 15 minutes, an hour and then every four, by one node. After a day OWNERs are told,
// once until it succeeds.
func TestFailedReadingIsRetried(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		a := apptest.SAMLCertificate(f.DB.Now().Add(1000 * time.Hour))
		server := f.MetadataServer(apptest.SAMLMetadata(entity, a))
		activeSAML(f, owner, server.Address())
		server.Say(http.StatusServiceUnavailable, "")
		told := func() (n int) {
			for _, subject := range f.Subjects(owner.User.Email) {
				if strings.Contains(subject, "could not be read since") {
					n++
				}
			}
			return n
		}
		tick := func(by time.Duration) {
			clock.Move(by)
			for node := range 2 {
				f.NoError(f.Node(node).Connections.ReadDue(f.Context()))
				f.NoError(f.Node(node).Connections.Sweep(f.Context()))
			}
		}
		tick(24 * time.Hour)
		for _, gap := range []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 4 * time.Hour} {
			reads := server.Reads()
			tick(gap - time.Second)
			if n := server.Reads() - reads; n != 0 {
				t.Errorf("before %s it was read %d times", gap, n)
			}
			tick(time.Second)
			if n := server.Reads() - reads; n != 1 {
				t.Errorf("after %s it was read %d times", gap, n)
			}
		}
		if n := told(); n != 0 {
			t.Errorf("OWNERs were told %d times within a day", n)
		}
		tick(16 * time.Hour)
		tick(4 * time.Hour)
		if n := told(); n != 1 {
			t.Errorf("OWNERs were told %d times after a day", n)
		}
		server.Say(http.StatusOK, apptest.SAMLMetadata(entity, a))
		tick(4 * time.Hour)
		reads := server.Reads()
		tick(20 * time.Hour)
		if n := server.Reads() - reads; n != 0 {
			t.Errorf("once it can be read again, it was read %d times within the day", n)
		}
	})
}
