// Package signon signs people in by a tenant's own provider.
//
//	begun, err := signOn.Start(ctx, by, conID, signon.Ask{Return: "/inbox"}) // 303 to begun.URL, begun.Tab as a cookie
//	result, err := signOn.Finish(ctx, by, conID, query, tabs)                // at the callback
//
// Start writes nothing to the database: what it needs later lies sealed in a cookie of the browser. Finish
// uses that up by one row, so that a replay and another node are refused. Then it goes on in this order, whatever the
// protocol:
//
//	judge.go          what the provider says, check by check, by internal/oidcrp or, as it was received, by app/acs
//	app/joining       the account: the identity's; one that may be joined to it; one to be made; or none
//	enter.go          what follows is written …
//	app/login         … in the transaction that asks for a second factor or opens the session
//
// A refusal writes nothing but an entry in the connection's protocol and a count for the trail. Where
// somebody has to agree or to prove an account first, what the provider said is held in another sealed cookie,
// and is used once (prove.go). A test of a connection is a sign-in up to what the provider says; see package testrun.
//
// A provider speaks for its own tenant.
package signon

import (
	"context"
	"errors"
	"net/url"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/acs"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/sealed"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/app/testrun"
	"github.com/doorward/doorward/store"
)

// SignOn is the feature. Make it with New.
type SignOn struct {
	writer      *access.Writer
	db          *store.DB
	connections *provider.Client
	tests       *testrun.Tests
	joining     *joining.Joining
	login       *login.Login
	factors     *factor.Factors
	verifier    *proof.Verifier
	sessions    *session.Sessions
	texts       *sealed.Texts
	tabs        *flow.Tabs
	acs         *acs.Receiver

	starts starts
	strays provider.Strays
	tally  tally
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, connections *provider.Client, tests *testrun.Tests, l *login.Login, factors *factor.Factors,
	verifier *proof.Verifier, sessions *session.Sessions,
) *SignOn {
	texts := sealed.New(writer, secretName, "cookies of sign-ins")
	return &SignOn{
		writer: writer, db: db, connections: connections, tests: tests, joining: joining.New(db, factors), login: l, factors: factors, verifier: verifier, sessions: sessions,
		texts: texts, tabs: flow.New(texts, db), acs: acs.New(writer, db, connections, texts), tally: newTally(),
	}
}

// secretName is the name of the secret from which the key of cookies is made.
const secretName = "signon"

// Receive takes a SAML response; see acs.Receiver.Receive.
func (s *SignOn) Receive(ctx context.Context, by doorward.Caller, conID string, form url.Values) (url.Values, error) {
	return s.acs.Receive(ctx, by, conID, form)
}

// Result is how a callback, or the answer to what was asked after it, has ended. One of Outcome, Raised, Held,
// Second and Test is set.
type Result struct {
	Return  string          // where the sign-in leads, as it was asked for
	Outcome login.Outcome   // of a sign-in
	Raised  *session.Opened // the session under its new token, after a step-up
	Held    string          // the cookie of what was held: the person is asked for something
	Second  *factor.NewChallenge
	Test    string // id of the test that has ended
	ByLink  bool   // a set-up link has asked for that test
	Tab     string // the name of the cookie that was used; empty: none
}

// errTries: somebody else has changed at each try what was read before the transaction.
var errTries = errors.New("signon: the account was changed by others at each try")

// maxTries bounds the tries of a transaction that begins with what was read before it.
const maxTries = 3

// connection returns the connection, or not_found.
func (s *SignOn) connection(ctx context.Context, id string) (doorward.Connection, error) {
	c, err := s.db.Read().Connection(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && c.Type == doorward.SCIMDirectory {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return c, err
}

// signsIn reports whether the connection signs people in now.
func (s *SignOn) signsIn(ctx context.Context, read store.Reader, c doorward.Connection) (bool, error) {
	if c.Status != doorward.ConnectionActive {
		return false, nil
	}
	policy, err := read.SSOPolicy(ctx, c.TenantID, s.db.Now())
	return policy.SignsIn(), err
}

// WriteStrays writes into protocols what this node has counted and not written for more than a minute. It returns nil.
func (s *SignOn) WriteStrays(ctx context.Context) error {
	for conID, n := range s.strays.Overdue(s.db.Now()) {
		s.recordStrays(ctx, doorward.Caller{}, conID, n)
	}
	return nil
}
