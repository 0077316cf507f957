package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/store"
)

// onTwoNodes calls change on two nodes at once, while the webhook's row is locked, and returns the
// errors.
func onTwoNodes(f *apptest.Fixture, w doorward.Webhook, change func(a *app.App, i int) error) []error {
	f.Helper()
	const resetHealth = false
	var errs [2]error
	done := make(chan struct{}, len(errs))
	f.WhileLocked(func(tx *store.Tx) error { return tx.UpdateWebhook(f.Context(), w, resetHealth) }, func(waitFor func(int, <-chan struct{})) {
		for i := range errs {
			go func() {
				errs[i] = change(f.Nodes[i], i)
				done <- struct{}{}
			}()
		}
		waitFor(len(errs), nil)
	})
	for range errs {
		<-done
	}
	return errs[:]
}

// TestEditsAtOnce: of two edits of the same version of a webhook of the installation, made at once
// on two nodes, one is refused.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	w := createHook(f, apptest.Operator, "http://localhost:9/", "user.*")
	errs := onTwoNodes(f, w, func(a *app.App, i int) error {
		about := fmt.Sprint("edit ", i)
		return apptest.ErrorOf(a.Webhooks.Edit(f.Context(), apptest.Operator, w.ID, webhook.Draft{About: &about}, []string{w.Version()}))
	})
	winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodePreconditionFailed: 1})
	current, err := f.DB.Read().Webhook(f.Context(), w.ID)
	f.NoError(err)
	if want := fmt.Sprint("edit ", winner); current.About != want {
		t.Errorf("the webhook has %q, want %q", current.About, want)
	}
}

// TestRotationsAtOnce: after two rotations of the secret of a webhook of the installation, made at
// once on two nodes, messages are signed with both new secrets: each caller has one that works.
func TestRotationsAtOnce(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	var signatures, content string
	to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		signatures = r.Header.Get("Webhook-Signature")
		content = r.Header.Get("Webhook-Id") + "." + r.Header.Get("Webhook-Timestamp") + "." + string(body)
	}))
	t.Cleanup(to.Close)
	w := createHook(f, apptest.Operator, to.URL, "user.*")
	for _, node := range f.Nodes {
		f.NoError(node.MasterKey.Load(f.Context()))
	}
	var issued [2]webhook.Issued
	errs := onTwoNodes(f, w, func(a *app.App, i int) (err error) {
		issued[i], err = a.Webhooks.Rotate(f.Context(), apptest.Operator, w.ID, nil)
		return err
	})
	f.WantCodes(errs, apptest.Codes{"": 2})
	f.NoError(apptest.ErrorOf(f.Node(0).Webhooks.Test(f.Context(), apptest.Operator, w.ID)))
	for i, rotated := range issued {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(rotated.Secret.Reveal(), "whsec_"))
		f.NoError(err)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(content))
		if !strings.Contains(signatures, base64.StdEncoding.EncodeToString(mac.Sum(nil))) {
			t.Errorf("messages are not signed with the secret of rotation %d", i)
		}
	}
}

// TestRaceRetriedWhileItIsDeleted: a delivery that is retried while the sweep of old ones waits for it
// is not deleted.
func TestRaceRetriedWhileItIsDeleted(t *testing.T) {
	t.Parallel()
	clock := apptest.NewMovedClock()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, clock.Now)
	w := createHook(f, apptest.Operator, newReceiver(t, always(http.StatusOK)).URL, "tenant.create")
	f.Tenant()
	f.NoError(f.Node(0).Webhooks.Deliver(f.Context()))
	old := deliveries(f, w)[0]
	clock.Move(31 * 24 * time.Hour)
	var swept error
	done := make(chan struct{})
	f.WhileLocked(func(tx *store.Tx) error { return tx.RetryDelivery(f.Context(), old.ID) }, func(waitFor func(int, <-chan struct{})) {
		go func() {
			defer close(done)
			swept = f.Node(0).Webhooks.Sweep(f.Context())
		}()
		waitFor(1, done)
	})
	<-done
	f.NoError(swept)
	if left := deliveries(f, w); len(left) != 1 || left[0].State != doorward.DeliveryPending {
		t.Errorf("the deliveries are %+v, want the one that was retried", left)
	}
}
