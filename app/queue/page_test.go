package queue_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/queue"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/store"
)

// TestPages: page by page, the operator's page lists the rows that the commands list, in the same order, each once.
// It shows neither what could be a token nor what an endpoint has answered.
func TestPages(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		endpoint := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(endpoint.Close)
		queues, url, events := f.Node(0).Queues, endpoint.URL, []string{"user.invite"}
		f.NoError(queues.Pause(f.Context(), byRoot, store.MailQueue, ""))
		f.NoError(queues.Pause(f.Context(), byRoot, store.WebhookQueue, ""))
		for range 3 {
			_, owner := f.Tenant()
			_, err := f.Node(0).Webhooks.Create(f.Context(), owner.Caller, webhook.Draft{URL: &url, Events: &events})
			f.NoError(err)
			for i := range 4 {
				_, err := f.Node(0).Invitations.Send(f.Context(), owner.Caller, apptest.Offer(f.NewEmail(fmt.Sprint("guest", i)), doorward.RoleUser))
				f.NoError(err)
			}
		}
		const secret = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9v"
		f.Exec(`UPDATE mails SET last_error = '550 no  token=` + secret + `'`)
		f.NoError(f.Node(0).Webhooks.Deliver(f.Context())) // queues the deliveries; the pause keeps them
		for _, state := range []string{"", "failed", "dropped"} {
			if state == "dropped" {
				_, err := queues.DropMails(f.Context(), byRoot, store.MailFilter{Kind: store.MailInvitation})
				f.NoError(err)
				_, err = queues.DropDeliveries(f.Context(), byRoot, store.DeliveryFilter{State: doorward.DeliveryPending, AllTenants: true})
				f.NoError(err)
			}
			var mails, deliveries []string
			f.NoError(queues.EachMail(f.Context(), store.MailFilter{Failed: state != "", Dropped: state == "dropped"}, func(m store.Mail) error {
				mails = append(mails, m.ID)
				return nil
			}))
			pending := map[string]doorward.DeliveryState{"": doorward.DeliveryPending, "failed": doorward.DeliveryGivenUp, "dropped": doorward.DeliveryDropped}[state]
			f.NoError(queues.EachDelivery(f.Context(), store.DeliveryFilter{State: pending, AllTenants: true}, func(d queue.Delivery) error {
				deliveries = append(deliveries, d.ID+d.TenantID)
				return nil
			}))
			if state != "failed" && (len(mails) < 12 || len(deliveries) != 12) {
				f.Fatalf("%q: %d mails and %d deliveries", state, len(mails), len(deliveries))
			}
			got := paged(f, func(after doorward.Position) (doorward.Page[queue.Mail], error) {
				return queues.MailPage(f.Context(), queue.MailSearch{State: state}, after, 5)
			}, func(m queue.Mail) string {
				if state == "" && m.LastError != "550 no token=…" {
					f.Errorf("an error is shown as %q", m.LastError)
				}
				return m.ID
			})
			if !slices.Equal(got, mails) {
				f.Errorf("mails %q: pages have %d, the command %d", state, len(got), len(mails))
			}
			got = paged(f, func(after doorward.Position) (doorward.Page[queue.Delivery], error) {
				return queues.DeliveryPage(f.Context(), queue.DeliverySearch{State: state}, after, 3)
			}, func(d queue.Delivery) string { return d.ID + d.TenantID })
			if !slices.Equal(got, deliveries) {
				f.Errorf("deliveries %q: pages have %d, the command %d", state, len(got), len(deliveries))
			}
		}
		w, err := queues.Waits(f.Context(), queue.Deliveries)
		if err != nil || w.Rows != 0 || !w.Since.Equal(time.Time{}) || len(w.Pauses) != 1 {
			f.Errorf("%+v waits (%v)", w, err)
		}
		for _, err := range []error{
			apptest.ErrorOf(queues.MailPage(f.Context(), queue.MailSearch{State: "sent"}, doorward.Position{}, 5)),
			apptest.ErrorOf(queues.MailPage(f.Context(), queue.MailSearch{Kind: "letter"}, doorward.Position{}, 5)),
			apptest.ErrorOf(queues.MailPage(f.Context(), queue.MailSearch{To: "nobody"}, doorward.Position{}, 5)),
			apptest.ErrorOf(queues.DeliveryPage(f.Context(), queue.DeliverySearch{State: "delivered"}, doorward.Position{}, 5)),
		} {
			if apptest.Code(err) != doorward.CodeValidationFailed {
				f.Errorf("a wrong filter answers %v", err)
			}
		}
	})
}

// paged reads all pages and returns what of returns for their rows.
func paged[T any](f *apptest.Fixture, read func(doorward.Position) (doorward.Page[T], error), of func(T) string) (all []string) {
	f.Helper()
	for after := (doorward.Position{}); ; {
		page, err := read(after)
		f.NoError(err)
		for _, row := range page.Items {
			all = append(all, of(row))
		}
		if page.Next == nil {
			return all
		}
		after = *page.Next
	}
}
