package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/smtp/smtptest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// TestMailShares: the queue is shared fairly, so that one sender can't delay the others. An
// invitation counts for the share of its tenant, a reset for that of the network that
// requested it.
func TestMailShares(t *testing.T) {
	t.Parallel()
	sink := smtptest.Start(t, smtptest.Options{})
	d := start(t, doorwardtest.Mail(sink.URL()))
	acme := d.Tenant("Acme")
	d.deliver(t)
	sink.Refuse(smtptest.AtConnect, 421) // so that all mails stay queued
	d.sendInvitation(t, acme.Owner, "bob@x.example", "USER", 3)
	d.send(t, "POST /api/v2/auth/forgot-password", m{"email": acme.Owner.Email}).ok(http.StatusAccepted)
	d.Node.App.Inbox.RecordPending(t.Context()) // the worker queues the mail
	globex, err := d.Node.App.Tenants.Create(context.Background(), doorward.OperatorAtTerminal(), tenant.Draft{Name: "Globex", OwnerEmail: "owner@globex.example"})
	if err != nil {
		t.Fatal(err)
	}
	queued, err := d.Node.DB.Read().DueMails(t.Context(), store.Mail{}, d.Node.DB.Now().Add(time.Hour), 100)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, mail := range queued {
		got[string(mail.Kind)+" to "+mail.Recipient] = mail.Share
	}
	want := map[string]string{
		"invitation to bob@x.example":        acme.ID,
		"reset to owner@acme.example":        "127.0.0.1",
		"invitation to owner@globex.example": globex.Tenant.ID,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the shares are %v, want %v", got, want)
	}
}

// TestOneSlowHost: 24 people at a slow host are invited; another person requests a
// reset and gets the mail while that host is still silent.
func TestOneSlowHost(t *testing.T) {
	t.Parallel()
	sink := smtptest.Start(t, smtptest.Options{})
	d := start(t, doorwardtest.Mail(sink.URL()))
	owner := d.Tenant("Acme").Owner
	sink.StallTo(func(to string) bool { return to != owner.Email })
	for i := range 24 {
		d.sendInvitation(t, owner, fmt.Sprintf("ann%d@slow.example", i), "USER", 3)
	}
	d.send(t, "POST /api/v2/auth/forgot-password", m{"email": owner.Email}).ok(http.StatusAccepted)
	waitForReset(t, sink, owner.Email)
	if sink.Stalled() == 0 {
		t.Error("no mail to the slow host is in transit")
	}
}

// waitForReset waits for a mail with a reset to the address.
func waitForReset(t *testing.T, sink *smtptest.Server, email string) {
	t.Helper()
	for n := 1; !strings.Contains(sink.Wait(t, email, n)[n-1].Parse(t).Text, "/reset#"); n++ {
	}
}

// TestRaceResetInAFlood: a tenant has invited people at many dead hosts, and resets for
// unknown addresses keep coming from many networks; a real reset mail still leaves. Package inbox
// tests the order in which requests are recorded, package mail that in which mails are sent.
func TestRaceResetInAFlood(t *testing.T) {
	t.Parallel()
	deadHosts, junk := fulltest.Of(300, 1000), fulltest.Of(1500, 10_000)
	engines := map[string]func(testing.TB) string{"sqlite": dbtest.SQLite}
	if fulltest.On() {
		engines["postgres"] = dbtest.Postgres
	}
	for name, dsn := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := smtptest.Start(t, smtptest.Options{})
			d := start(t, doorwardtest.Database(dsn(t)), doorwardtest.Mail(sink.URL()))
			owner := d.Tenant("Acme").Owner
			sink.StallTo(func(to string) bool { return to != owner.Email })
			d.inviteAtDeadHosts(t, owner, deadHosts)
			d.queueUnknownResets(t, 0, junk)
			flooding, stop := context.WithCancel(t.Context())
			var flood sync.WaitGroup
			flood.Go(func() {
				for n := junk; flooding.Err() == nil; n += 100 {
					d.queueUnknownResets(t, n, 100)
				}
			})
			began := time.Now()
			d.send(t, "POST /api/v2/auth/forgot-password", m{"email": owner.Email}).ok(http.StatusAccepted)
			waitForReset(t, sink, owner.Email)
			t.Logf("the mail took %v; %d mails are stalled", time.Since(began).Round(time.Millisecond), sink.Stalled())
			stop()
			flood.Wait()
			if sink.Stalled() == 0 {
				t.Error("no mail to a dead host is in transit")
			}
		})
	}
}

// inviteAtDeadHosts invites one person at each of the hosts. Their number is a multiple of 100.
func (s *server) inviteAtDeadHosts(t *testing.T, owner *doorwardtest.Person, hosts int) {
	t.Helper()
	by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: "192.0.2.1"}
	outcome, err := s.Node.App.Login.WithPassword(t.Context(), by, owner.Email, doorwardtest.Password, "")
	signedIn, ok := outcome.(login.SignedIn)
	if !ok {
		t.Fatal(outcome, err)
	}
	by = by.As(signedIn.User)
	by.Principal = doorward.PrincipalOf(signedIn.User, signedIn.Session)
	for n := 0; n < hosts; n += 100 {
		var offers []invite.Offer
		for i := range 100 {
			offers = append(offers, invite.Offer{Email: fmt.Sprintf("ann@dead%d.example", n+i), Role: string(doorward.RoleUser)})
		}
		if _, err := s.Node.App.Invitations.SendAll(t.Context(), by, offers); err != nil {
			t.Fatal(err)
		}
	}
}

// queueUnknownResets stores reset requests for unknown addresses, from count networks numbered
// from first on.
func (s *server) queueUnknownResets(t *testing.T, first, count int) {
	t.Helper()
	err := s.Node.App.Access.Upkeep(context.Background(), func(tx *store.Tx) error {
		for n := first; n < first+count; n++ {
			network, email := fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), fmt.Sprintf("n%d@nowhere.example", n)
			err := tx.FileInbox(context.Background(), store.InboxRow{
				Source: network, Action: doorward.PasswordForgot, Subject: "1 " + email, Minute: tx.Now.Truncate(store.InboxMinute), Email: email, Hits: 1,
				Event: doorward.Event{
					ID: doorward.NewID(doorward.PrefixEvent), At: tx.Now, Action: doorward.PasswordForgot, Outcome: doorward.Done,
					ActorType: doorward.Anonymous, Target: doorward.Object{Type: "user"}, IP: network,
				},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
