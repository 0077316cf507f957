package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/smtp/smtptest"
	"github.com/doorward/doorward/store"
)

// TestWhoseMailItIs: invitations are in the share of their tenant, and
// resets in that of the network that has asked for them.
func TestWhoseMailItIs(t *testing.T) {
	t.Parallel()
	sink := smtptest.Start(t, smtptest.Options{})
	d := start(t, doorwardtest.Mail(sink.URL()))
	acme := d.Tenant("Acme")
	d.deliver(t)
	sink.Refuse(smtptest.AtConnect, 421) // so that all of them stay queued
	d.offered(t, acme.Owner, "bob@x.example", "USER", 3)
	d.send(t, "POST /api/v2/auth/forgot-password", m{"email": acme.Owner.Email}).ok(http.StatusAccepted)
	d.Node.App.Inbox.Settle(t.Context()) // it is the worker that queues the mail
	globex, err := d.Node.App.Tenants.Create(context.Background(), doorward.OperatorAtTerminal(), "Globex", "owner@globex.example")
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

// TestOneSlowHost: 24 people at a host that takes its time are invited; somebody else
// has forgotten the password and gets the mail while that host is still silent.
func TestOneSlowHost(t *testing.T) {
	t.Parallel()
	sink := smtptest.Start(t, smtptest.Options{})
	d := start(t, doorwardtest.Mail(sink.URL()))
	owner := d.Tenant("Acme").Owner
	sink.StallTo(func(to string) bool { return to != owner.Email })
	for i := range 24 {
		d.offered(t, owner, fmt.Sprintf("ann%d@slow.example", i), "USER", 3)
	}
	d.send(t, "POST /api/v2/auth/forgot-password", m{"email": owner.Email}).ok(http.StatusAccepted)
	for n := 1; !strings.Contains(sink.Wait(t, owner.Email, n)[n-1].Parse(t).Text, "/reset#"); n++ {
	}
	if sink.Stalled() == 0 {
		t.Error("the slow host is not tried")
	}
}
