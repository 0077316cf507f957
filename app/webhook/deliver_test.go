package webhook

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/guard"
	"github.com/doorward/doorward/internal/guard/guardtest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// TestInternalNamesStaySecret: neither the check of a URL nor an attempt says whether a name
// doesn't exist or has an internal address. While the resolver can't be reached, each URL with a
// name is unavailable.
func TestInternalNamesStaySecret(t *testing.T) {
	db, err := store.Open(t.Context(), dbtest.SQLite(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	check := func(resolver *net.Resolver, name string) (faults []doorward.FieldError, attempt doorward.DeliveryAttempt, err error) {
		w := &Webhooks{db: db, client: guard.New(guard.Options{Resolver: resolver})}
		faults, err = w.checkURL(t.Context(), "https://"+name+"/")
		attempt, _ = w.post(t.Context(), "https://"+name+"/", "evt_1", nil, signer{})
		attempt.At = time.Time{}
		return faults, attempt, err
	}
	internal, refused, err := check((&guardtest.NameServer{Addrs: []string{"10.1.2.3"}}).Resolver(t), "db.corp.example")
	if err != nil || len(internal) != 1 || internal[0].Code != "address_refused" {
		t.Fatalf("an internal name: %v, %v", internal, err)
	}
	absent, failed, err := check(new(guardtest.NameServer).Resolver(t), "db.corp.example")
	if diff := cmp.Diff(internal, absent); err != nil || diff != "" {
		t.Errorf("the check of a name that doesn't exist: %v\n%s", err, diff)
	}
	if diff := cmp.Diff(refused, failed); diff != "" {
		t.Errorf("an attempt with a name that doesn't exist:\n%s", diff)
	}
	for _, name := range []string{"db.corp.example", "db"} {
		faults, attempt, err := check(guardtest.Unreachable(), name)
		if !doorward.HasCode(err, doorward.CodeUnavailable) || len(faults) > 0 {
			t.Errorf("without a resolver: %v, %v", faults, err)
		}
		if diff := cmp.Diff(refused, attempt); diff != "" {
			t.Errorf("an attempt without a resolver:\n%s", diff)
		}
	}
}

// TestOnlyNewURLsAreResolved: an edit of something else works without a resolver.
func TestOnlyNewURLsAreResolved(t *testing.T) {
	w := &Webhooks{client: guard.New(guard.Options{Resolver: guardtest.Unreachable()})}
	hook, same, other := doorward.Webhook{URL: "https://hooks.example/", Events: []string{"*"}}, "https://hooks.example/", "https://other.example/"
	if faults, err := w.apply(t.Context(), &hook, Draft{URL: &same}, partial); err != nil || len(faults) > 0 {
		t.Errorf("an edit without a new URL: %v, %v", faults, err)
	}
	if _, err := w.apply(t.Context(), &hook, Draft{URL: &other}, partial); !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("an edit with a new URL: %v", err)
	}
}

// TestLongCertificate: the endpoint chooses the names in its certificate, which the error of
// a bad certificate repeats. They must not fill the database, or the memory of the nodes that
// read the queue.
func TestLongCertificate(t *testing.T) {
	got := describe(&tls.CertificateVerificationError{Err: errors.New(strings.Repeat("é\x00", 10_000))})
	if !strings.HasPrefix(got, NotTrusted) || len(got) > 1024 || strings.Contains(got, "\x00") || !utf8.ValidString(got) {
		t.Errorf("a fault of %d bytes is stored: %.100q", len(got), got)
	}
}
