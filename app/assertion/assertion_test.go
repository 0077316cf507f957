package assertion_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/assertion"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/jwt"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// node is one process that signs.
type node struct {
	*assertion.Assertions
	db    *store.DB
	lease *lease.Lease
	// cutOff ends the lease, as when the node can't reach the database for a while.
	cutOff func()
}

var audiences = []string{"https://messages.example", "https://reports.example"}

func newNode(t testing.TB, dsn, keyFile string, now doorward.Clock) node {
	t.Helper()
	return newNodeWithLease(t, dsn, keyFile, now, time.Second)
}

func newNodeWithLease(t testing.TB, dsn, keyFile string, now doorward.Clock, length time.Duration) node {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, now)
	check(t, err)
	t.Cleanup(func() { _ = db.Close() })
	check(t, db.Migrate(t.Context()))
	l := lease.New(db, length)
	writer := access.New(db, l)
	master := masterkey.New(writer, db, masterkey.File{Path: keyFile})
	check(t, master.Load(t.Context()))
	a := assertion.New(writer, db, l, master, "https://auth.example", audiences, 1000)
	l.Follow(a.Apply, a.Forget)
	check(t, a.Prepare(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	end := sync.OnceFunc(func() { stop(); running.Wait() })
	t.Cleanup(end)
	storetest.Until(t, "a valid lease", l.Valid)
	return node{a, db, l, end}
}

// A rotation doesn't wait for a node whose lease has lapsed. Such a node signs with the keys in the
// database.
func TestCutOffNodeSignsFromDatabase(t *testing.T) {
	dsn := dbtest.SQLite(t)
	file := newKeyFile(t)
	lapsed, other := newNode(t, dsn, file, time.Now), newNode(t, dsn, file, time.Now)
	before := kid(t, lapsed.token(t, ann, 0))
	lapsed.cutOff()
	storetest.Until(t, "the end of its lease", func() bool { return !lapsed.lease.Valid() })
	_, err := other.Rotate(t.Context(), doorward.OperatorAtTerminal(), atOnce)
	check(t, err)
	for _, p := range []doorward.Principal{ann, {Kind: doorward.ByUser, ID: "usr_bob", TenantID: "tnt_acme", SessionID: "ses_2"}} {
		if got, want := kid(t, lapsed.token(t, p, 0)), kid(t, other.token(t, p, 0)); got != want || got == before {
			t.Errorf("%s: signed with the key %s, on the other node with %s; before the rotation with %s", p.ID, got, want, before)
		}
	}
}

// atOnce makes Rotate let the next key sign without waiting for verifiers to read it.
const atOnce = true

func newKeyFile(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "master.key")
	_, err := seal.Create(name)
	check(t, err)
	return name
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var ann = doorward.Principal{Kind: doorward.ByUser, ID: "usr_ann", TenantID: "tnt_acme", Role: doorward.RoleUser, SessionID: "ses_1", AAL: 1, AuthAt: time.Unix(1900000000, 0)}

func (n node) token(t testing.TB, p doorward.Principal, audience int) string {
	t.Helper()
	token, err := n.TokenFor(t.Context(), &p, audience)
	check(t, err)
	return token.Text
}

// part returns the header or the claims of a token.
func part(t testing.TB, token string, i int) map[string]any {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[i])
	check(t, err)
	var all map[string]any
	check(t, json.Unmarshal(text, &all))
	return all
}

func kid(t testing.TB, token string) string { return part(t, token, 0)["kid"].(string) }

// published returns the ids of the published keys.
func (n node) published(t testing.TB) (ids []string) {
	t.Helper()
	all, err := n.Published(t.Context())
	check(t, err)
	for _, k := range all {
		ids = append(ids, k.ID)
	}
	return ids
}

func TestClaims(t *testing.T) {
	c := apptest.StopClockAt(time.Unix(1900000010, 500e6))
	n := newNode(t, "sqlite:"+filepath.Join(t.TempDir(), "d.db"), newKeyFile(t), c.Now)
	token := n.token(t, ann, 1)
	if h := part(t, token, 0); h["alg"] != "ES256" || h["typ"] != "doorward+jwt" || !slices.Contains(n.published(t), kid(t, token)) {
		t.Errorf("the header is %v", h)
	}
	got := part(t, token, 1)
	if got["jti"] == "" {
		t.Error("there is no jti")
	}
	delete(got, "jti")
	want := map[string]any{
		"iss": "https://auth.example", "aud": "https://reports.example", "sub": "usr_ann", "tenant": "tnt_acme", "role": "USER", "sid": "ses_1",
		"aal": 1.0, "authTime": 1900000000.0, "iat": 1900000005.0, "nbf": 1900000005.0, "exp": 1900000040.0,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the claims are\n%v, want\n%v", got, want)
	}
	key := part(t, n.token(t, doorward.Principal{Kind: "key", ID: "key_1", TenantID: "tnt_acme", Role: doorward.RoleUser}, 0), 1)
	if key["key"] != "key_1" || key["sub"] != "key_1" || key["sid"] != nil || key["aal"] != nil || key["authTime"] != nil {
		t.Errorf("of a key the claims are %v", key)
	}
}

// For a session and audience one token is signed every 10 s, no matter how many callers there are,
// and a new one when the claims have changed.
func TestRaceTokensAreReused(t *testing.T) {
	c := apptest.StopClockAt(time.Unix(1900000010, 0))
	// On a busy machine a lease of a second may lapse, and then every call signs.
	n := newNodeWithLease(t, "sqlite:"+filepath.Join(t.TempDir(), "d.db"), newKeyFile(t), c.Now, time.Minute)
	for round := range int64(3) {
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for range 100 {
					if _, err := n.TokenFor(t.Context(), &ann, i%2); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if got := n.Signed(); got != 2*(round+1) {
			t.Errorf("in round %d %d tokens are signed, want %d", round, got, 2*(round+1))
		}
		c.Move(10 * time.Second)
	}
	first := n.token(t, ann, 0)
	c.Move(10*time.Second - time.Microsecond)
	if n.token(t, ann, 0) != first {
		t.Error("within 10 s another token is made")
	}
	c.Move(-time.Minute)
	if n.token(t, ann, 0) == first {
		t.Error("by a clock that was set back, a token is returned for more than 10 s")
	}
	admin, elsewhere := ann, ann
	admin.Role, elsewhere.TenantID = doorward.RoleAdmin, "tnt_other"
	if got := part(t, n.token(t, admin, 0), 1); got["role"] != "ADMIN" {
		t.Errorf("after a change of the role it states %v", got)
	}
	if got := part(t, n.token(t, elsewhere, 0), 1); got["tenant"] != "tnt_other" {
		t.Errorf("in another tenant it states %v", got)
	}
	for i := range 5000 { // more than the cache has places
		other := ann
		other.SessionID = fmt.Sprint("ses_other", i)
		if got := part(t, n.token(t, other, 0), 1); got["sid"] != other.SessionID {
			t.Fatalf("%s gets the token of %v", other.SessionID, got["sid"])
		}
	}
}

// Each key signs for 30 days and stays published for a day after that; the next key is always
// published. This holds on every node, no matter which node makes the keys.
func TestRaceKeysAreRotated(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		c, file := apptest.StopClockAt(time.Unix(1900000000, 0)), newKeyFile(t)
		var nodes []node
		for range 2 {
			nodes = append(nodes, newNode(t, dsn, file, c.Now))
		}
		sweep := func() {
			t.Helper()
			errs := make(chan error)
			for _, n := range nodes {
				go func() { errs <- n.Sweep(t.Context()) }()
			}
			for range nodes {
				check(t, <-errs)
			}
			for _, n := range nodes { // what the lease does on each node
				check(t, n.Apply(t.Context(), []store.Change{{Kind: store.ChangeSigning}}))
			}
		}
		last := ""
		for period := range 3 {
			sweep()
			before := nodes[0].published(t) // the one that signs and the next; after the first period the previous one, too
			signs := kid(t, nodes[0].token(t, ann, 0))
			if signs == last || len(before) != min(period, 1)+2 || signs != before[len(before)-2] || !slices.Equal(before, nodes[1].published(t)) || kid(t, nodes[1].token(t, ann, 0)) != signs {
				t.Fatalf("in period %d %s signs; the nodes publish %q and %q", period, signs, before, nodes[1].published(t))
			}
			c.Move(24 * time.Hour)
			sweep()
			if got := nodes[0].published(t); !slices.Equal(got, before[len(before)-2:]) {
				t.Errorf("a day later %q are published, before that %q", got, before)
			}
			c.Move(29*24*time.Hour - 5*time.Minute)
			sweep()
			soon := nodes[1].published(t)
			if len(soon) != 3 || kid(t, nodes[1].token(t, ann, 0)) != signs {
				t.Errorf("five minutes before the end %q are published, want the one that signs and two", soon)
			}
			c.Move(5 * time.Minute)
			last = signs
			if got := kid(t, nodes[1].token(t, ann, 0)); got != soon[1] {
				t.Errorf("after the end %s signs, want the second of %q", got, soon)
			}
		}
		c.Move(400 * 24 * time.Hour) // nothing has run
		sweep()
		all := nodes[0].published(t)
		signs := kid(t, nodes[0].token(t, ann, 0))
		if len(all) != 3 || all[0] != signs {
			t.Fatalf("after a long pause %s signs, want the first of three: %q", signs, all)
		}
		c.Move(assertion.KeySetLife)
		if got := kid(t, nodes[0].token(t, ann, 0)); got != all[1] {
			t.Errorf("once it was published for 300 s, %s signs, not the new one", got)
		}
	})
}

func TestRotate(t *testing.T) {
	dsn := dbtest.SQLite(t)
	c := apptest.StopClockAt(time.Unix(1900000000, 0))
	n := newNode(t, dsn, newKeyFile(t), c.Now)
	by := doorward.OperatorAtTerminal()
	before := n.published(t)
	first := n.token(t, ann, 0)
	r, err := n.Rotate(t.Context(), by, !atOnce)
	if err != nil || r.KeyID != before[1] || !r.StartsAt.Equal(c.Now().Add(assertion.KeySetLife)) {
		t.Fatalf("the rotation is %+v, %v", r, err)
	}
	c.Move(assertion.KeySetLife - time.Second)
	if got := kid(t, n.token(t, ann, 0)); got != before[0] {
		t.Error("the next key signs before verifiers can know it")
	}
	c.Move(time.Second + 10*time.Second) // and the time for which a token is reused
	if got := kid(t, n.token(t, ann, 0)); got != before[1] {
		t.Error("the next key doesn't sign after 300 s")
	}
	third := n.published(t)[2]
	old := n.token(t, ann, 0)
	if r, err = n.Rotate(t.Context(), by, atOnce); err != nil || r.KeyID != third || !r.StartsAt.Equal(c.Now()) {
		t.Fatalf("the rotation at once is %+v, %v", r, err)
	}
	if got := n.token(t, ann, 0); kid(t, got) != third || got == old || old == first {
		t.Error("a token of the previous key is returned")
	}
	if got := n.published(t); len(got) != 4 || got[2] != third {
		t.Errorf("published are %q while %s signs: want two older keys, this one and the next", got, third)
	}
}

func TestRotateWithoutKeys(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "d.db"), time.Now)
	check(t, err)
	defer db.Close()
	check(t, db.Migrate(t.Context()))
	l := lease.New(db, time.Second)
	writer := access.New(db, l)
	master := masterkey.New(writer, db, masterkey.File{Path: newKeyFile(t)})
	check(t, master.Load(t.Context()))
	a := assertion.New(writer, db, l, master, "https://auth.example", nil, 1000)
	if _, err := a.Rotate(t.Context(), doorward.OperatorAtTerminal(), atOnce); !errors.Is(err, assertion.ErrNoNextKey) {
		t.Errorf("rotated with %v", err)
	}
	if all, err := a.Published(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("published are %v, %v", all, err)
	}
}

// The private keys in the database are sealed, and the public keys are published.
func TestKeysAreSealed(t *testing.T) {
	n := newNode(t, "sqlite:"+filepath.Join(t.TempDir(), "d.db"), newKeyFile(t), time.Now)
	rows, err := n.db.Read().SigningKeys(t.Context())
	check(t, err)
	published, err := n.Published(t.Context())
	check(t, err)
	for i, row := range rows {
		if _, err := jwt.ParseKey(row.Sealed); err == nil {
			t.Error("a private key is stored unsealed")
		}
		key, err := x509.ParsePKIXPublicKey(row.Public)
		check(t, err)
		point, err := key.(*ecdsa.PublicKey).Bytes() // 4, x, y
		check(t, err)
		x := base64.RawURLEncoding.EncodeToString(point[1:33])
		if p := published[i]; p.X != x || p.ID != row.ID {
			t.Errorf("the public key of row %s is published as %+v", row.ID, p)
		}
	}
}

func onBoth(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, dbtest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, dbtest.Postgres(t)) })
}

// BenchmarkTokenFor measures the part of a check that returns a token from memory.
func BenchmarkTokenFor(b *testing.B) {
	n := newNode(b, "sqlite:"+filepath.Join(b.TempDir(), "d.db"), newKeyFile(b), func() time.Time { return time.Unix(1900000000, 0) })
	n.token(b, ann, 0)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.TokenFor(ctx, &ann, 0); err != nil {
			b.Fatal(err)
		}
	}
	if n.Signed() != 1 {
		b.Errorf("%d tokens were signed", n.Signed())
	}
}
