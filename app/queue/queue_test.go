package queue_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/store"
)

// byRoot is the operator at a terminal.
var byRoot = doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1", Reason: "ticket 4711"})

// wantEvents checks the events of the action in the trail of the tenant, each as its target and changes.
func wantEvents(f *apptest.Fixture, tenantID string, action doorward.Action, want ...string) {
	f.Helper()
	events, err := f.DB.Read().EventsAfter(f.Context(), tenantID, 0, 1000)
	f.NoError(err)
	var got []string
	for _, e := range events {
		if e.Action != action {
			continue
		}
		text := e.Target.Type
		for _, c := range e.Changes {
			text += " " + c.Field + "=" + c.To
		}
		got = append(got, strings.TrimSuffix(text, " operatorReason=ticket 4711 systemUser=root@db1"))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		f.Errorf("the trail of %q has\n%s\nwant\n%s", tenantID, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMails: a paused queue sends nothing on any node, also of what was queued before; dropped mails are sent only
// after a retry. All of it is in the trails.
func TestMails(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		queues := f.Node(0).Queues
		f.Exec(`UPDATE mails SET state = 'sent'`)
		inv, err := f.Node(0).Invitations.Send(f.Context(), owner.Caller, apptest.Offer("ann@acme.example", doorward.RoleUser))
		f.NoError(err)
		f.NoError(queues.Pause(f.Context(), byRoot, store.MailQueue, ""))
		f.NoError(queues.Pause(f.Context(), byRoot, store.MailQueue, ""))
		for i := range f.Nodes {
			f.NoError(f.Node(i).Mail.Deliver(f.Context()))
		}
		if sent := f.Int(`SELECT count(*) FROM mails WHERE state = 'sent' AND subject_id = '` + inv.ID + `'`); sent != 0 {
			f.Errorf("a paused queue has sent %d mails", sent)
		}
		wantEvents(f, "", doorward.QueuePause, "installation queue=mail pause=on")

		dropped, err := queues.DropMails(f.Context(), byRoot, store.MailFilter{TenantID: acme.ID, Kind: store.MailInvitation})
		f.NoError(err)
		ended, err := queues.Resume(f.Context(), byRoot, store.MailQueue, "")
		f.NoError(err)
		f.NoError(f.Node(1).Mail.Deliver(f.Context()))
		if dropped != 1 || !ended || len(f.Mails(0, "ann@acme.example"))+len(f.Mails(1, "ann@acme.example")) != 0 {
			f.Errorf("%d mails dropped, and sent: %v", dropped, f.Subjects("ann@acme.example"))
		}
		for _, trail := range []string{"", acme.ID} {
			target := "installation"
			if trail != "" {
				target = "tenant"
			}
			wantEvents(f, trail, doorward.QueueDrop, target+" queue=mail dropped=1 mailKind=invitation")
		}

		retried, err := queues.RetryMails(f.Context(), byRoot, store.MailFilter{To: "@acme.example", Failed: true})
		f.NoError(err)
		if retried != 0 {
			f.Errorf("%d dropped mails are retried with those that failed", retried)
		}
		retried, err = queues.RetryMails(f.Context(), byRoot, store.MailFilter{To: "@acme.example", Failed: true, Dropped: true})
		f.NoError(err)
		f.NoError(f.Node(1).Mail.Deliver(f.Context()))
		if retried != 1 || len(f.Subjects("ann@acme.example")) != 1 {
			f.Errorf("%d mails retried, and sent: %v", retried, f.Subjects("ann@acme.example"))
		}
		wantEvents(f, "", doorward.QueueRetry, "installation queue=mail retried=1")
		if _, err := queues.DropMails(f.Context(), byRoot, store.MailFilter{TenantID: "tnt_none"}); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("of an unknown tenant: %v", err)
		}
	})
}

// TestDeliveries: of a paused tenant nothing is delivered, of others it is. Dropped deliveries are in the trail of
// the webhook's owner.
func TestDeliveries(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		var got atomic.Int64
		endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			got.Add(1)
		}))
		t.Cleanup(endpoint.Close)
		acme, owner := f.Tenant()
		_, other := f.Tenant()
		for _, by := range []doorward.Caller{owner.Caller, other.Caller} {
			events := []string{"user.invite"}
			_, err := f.Node(0).Webhooks.Create(f.Context(), by, webhook.Draft{URL: &endpoint.URL, Events: &events})
			f.NoError(err)
		}
		queues := f.Node(0).Queues
		f.NoError(queues.Pause(f.Context(), byRoot, store.WebhookQueue, acme.ID))
		wantEvents(f, acme.ID, doorward.QueuePause, "tenant queue=webhook pause=on")
		f.Invite(owner, f.NewEmail("ann"), doorward.RoleUser)
		f.Invite(other, f.NewEmail("bob"), doorward.RoleUser)
		f.NoError(f.Node(1).Webhooks.Deliver(f.Context()))
		if got.Load() != 1 || f.Int(`SELECT count(*) FROM webhook_deliveries WHERE state = 'pending' AND tries = 0`) != 1 {
			f.Errorf("%d deliveries were made while one tenant was paused", got.Load())
		}
		all := store.DeliveryFilter{State: doorward.DeliveryPending, AllTenants: true}
		dropped, err := queues.DropDeliveries(f.Context(), byRoot, all)
		f.NoError(err)
		_, err = queues.Resume(f.Context(), byRoot, store.WebhookQueue, acme.ID)
		f.NoError(err)
		f.NoError(f.Node(1).Webhooks.Deliver(f.Context()))
		if dropped != 1 || got.Load() != 1 {
			f.Errorf("%d deliveries dropped, %d made", dropped, got.Load())
		}
		wantEvents(f, acme.ID, doorward.QueueDrop, "webhook queue=webhook dropped=1")
		wantEvents(f, acme.ID, doorward.QueuePause, "tenant queue=webhook pause=on", "tenant queue=webhook pause=off")
		if err := queues.Pause(f.Context(), byRoot, store.WebhookQueue, "whk_none"); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("of an unknown webhook: %v", err)
		}
	})
}
