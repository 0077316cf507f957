package signon

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/acs"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// Finish takes a provider's answer for the connection: the query of the callback, and the browser's cookies that
// flow.TabPrefix begins. What is answered to the browser is in Result or in the error; Result.Tab is set with an error, too.
// Errors: not_found for a connection that signs nobody in; sign_on_state for an answer to nothing that this browser has
// begun, or to something that is over; sign_on_refused with the check; provider_unavailable; too_many_attempts; those of
// login.Login.EnterWith; master_key_missing, unavailable.
func (s *SignOn) Finish(ctx context.Context, by doorward.Caller, conID string, query url.Values, tabs []flow.Tab) (Result, error) {
	arrived, err := s.arrive(ctx, conID, query, tabs)
	if err != nil {
		return Result{}, err
	}
	result := Result{Tab: arrived.Tab}
	counters := arrived.counters(by)
	if err := access.CheckCounters(ctx, s.db, counters); err != nil {
		return result, err
	}
	c, err := s.connection(ctx, conID)
	if err != nil {
		return result, s.count(ctx, counters, err)
	}
	if !arrived.IsBrowsers {
		return result, s.refuseStray(ctx, by, c, counters)
	}
	a := attempt{s: s, by: by, connection: c, flow: arrived.Flow, received: arrived.received, counters: counters}
	if err := a.take(ctx, arrived); err != nil {
		return result, err
	}
	result, err = a.finish(ctx, query)
	result.Return, result.Tab = arrived.Flow.Return, arrived.Tab
	return result, err
}

// count counts a callback that ends refused, and returns the error.
func (s *SignOn) count(ctx context.Context, counters []access.Counter, reason error) error {
	var e *doorward.Error
	if len(counters) == 0 || !errors.As(reason, &e) || e.Kind() == doorward.KindUnavailable || e.Kind() == doorward.KindTooMany {
		return reason
	}
	if err := s.writer.CountWithin(ctx, counters); err != nil {
		return err
	}
	return reason
}

// refuseStray refuses a callback without a cookie of the connection. A connection that signs nobody in isn't
// there.
func (s *SignOn) refuseStray(ctx context.Context, by doorward.Caller, c doorward.Connection, counters []access.Counter) error {
	signsIn, err := s.signsIn(ctx, s.db.Read(), c)
	if err != nil {
		return err
	}
	if !signsIn {
		return s.count(ctx, counters, doorward.Fail(doorward.CodeNotFound, ""))
	}
	if n := s.strays.Take(c.ID, s.db.Now()); n > 0 {
		s.recordStrays(ctx, by, c.ID, n)
	}
	return s.count(ctx, counters, stateError())
}

func (s *SignOn) recordStrays(ctx context.Context, by doorward.Caller, conID string, n int) {
	entry := doorward.Attempt{
		ConnectionID: conID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused,
		Check: CheckState, Advice: oidcrp.AdviceStartAgain, Count: n,
	}
	if by.RequestID != "" {
		entry.RequestIDs = []string{by.RequestID}
	}
	s.tally.add(entry.Kind, entry.Outcome, entry.Check, n)
	s.connections.Record(ctx, entry)
}

func stateError() *doorward.Error {
	return &doorward.Error{Code: doorward.CodeSignOnState, Check: CheckState}
}

// attempt is a callback in progress.
type attempt struct {
	s          *SignOn
	by         doorward.Caller
	connection doorward.Connection
	flow       flow.Flow
	received   *acs.Received // of SAML; nil: OpenID Connect
	accepted   acs.Accepted  // what was received, unless that is a fault
	counters   []access.Counter
	subject    string // of the provider, once it is known
	address    string // in what is seen of a person who is refused
	userID     string // of the account, once it is known
}

// kind returns what the protocol calls the attempt.
func (a *attempt) kind() doorward.AttemptKind {
	switch a.flow.Purpose {
	case flow.ForTest:
		return doorward.AttemptTest
	case flow.ForStepUp:
		return doorward.AttemptStepUp
	}
	return doorward.AttemptSignIn
}

// record writes the entry of the protocol. Nothing depends on whether that succeeds.
func (a *attempt) record(ctx context.Context, outcome doorward.AttemptOutcome, f answer.Fault) {
	a.s.tally.add(a.kind(), outcome, f.Check, 1)
	a.s.connections.Record(ctx, doorward.Attempt{
		ConnectionID: a.connection.ID, Kind: a.kind(), Outcome: outcome, Check: f.Check, Seen: f.Seen, Advice: f.Advice,
		Subject: a.subject, UserID: a.userID, Address: a.address, Count: 1, RequestIDs: []string{a.by.RequestID},
	})
}

// refuse records a refusal in the protocol and in the trail, and returns the error.
func (a *attempt) refuse(ctx context.Context, f answer.Fault) error {
	return a.refuseAs(ctx, doorward.CodeSignOnRefused, f)
}

func (a *attempt) refuseAs(ctx context.Context, code doorward.Code, f answer.Fault) error {
	reason := &doorward.Error{Code: code, Check: f.Check, Err: f.Err}
	a.record(ctx, doorward.AttemptRefused, f)
	if a.flow.Purpose == flow.ForSignIn {
		if err := a.s.writer.RefuseSignOn(ctx, a.by, provider.Object(a.connection), reason); !errors.Is(err, error(reason)) {
			return err
		}
	}
	return a.s.count(ctx, a.counters, reason)
}

// finish goes on as the flow was begun for, with what the provider has answered.
func (a *attempt) finish(ctx context.Context, query url.Values) (Result, error) {
	test, err := a.current(ctx)
	if err != nil {
		return Result{}, err
	}
	j, err := a.judge(ctx, query, test.Pending)
	if err != nil {
		return Result{}, err
	}
	a.subject = j.asserted.Subject
	if a.flow.Purpose == flow.ForTest {
		return a.finishTest(ctx, j)
	}
	if j.fault != nil {
		return Result{}, a.fault(ctx, *j.fault)
	}
	rules, err := a.s.db.Read().Rules(ctx, a.connection.TenantID)
	if err != nil {
		return Result{}, err
	}
	h := hold(joining.NewPerson(a.connection, rules, j.by.IdentityIssuer(), j.asserted), j, a.flow.At, a.s.db.Now())
	if a.flow.Purpose == flow.ForStepUp {
		return a.stepUp(ctx, h)
	}
	return a.signIn(ctx, h, proved{})
}

// current judges what may have changed since the sign-in began: whether the connection signs people in, or
// the test is still the one to be done.
func (a *attempt) current(ctx context.Context) (doorward.ConnectionTest, error) {
	if a.flow.Purpose == flow.ForTest {
		test, err := a.s.db.Read().ConnectionTest(ctx, a.flow.Test)
		if errors.Is(err, store.ErrNone) {
			err = stateError()
		}
		return test, err
	}
	return doorward.ConnectionTest{}, a.stillOn(ctx, a.flow.At)
}

// stillOn refuses what began before the connection was disabled, or its tenant's sign-on was turned off, though that may
// be on again.
func (a *attempt) stillOn(ctx context.Context, begun time.Time) error {
	read := a.s.db.Read()
	signsIn, err := a.s.signsIn(ctx, read, a.connection)
	isEnded := false
	if err == nil && signsIn {
		isEnded, err = read.SignInsEnded(ctx, a.connection.ID, doorward.EndedEverybody, begun)
	}
	if err == nil && (!signsIn || isEnded) {
		err = a.refuse(ctx, faultOf(CheckState))
	}
	return err
}

// retryAfter is how long a browser waits before it comes again to a provider that was out of reach.
const retryAfter = time.Minute

// fault turns what a check has found into the error for the browser. A fault of the provider is no refusal.
func (a *attempt) fault(ctx context.Context, f answer.Fault) error {
	if f.Unavailable {
		a.record(ctx, doorward.AttemptUnavailable, f)
		return &doorward.Error{Code: doorward.CodeProviderUnavailable, RetryAfter: retryAfter, Err: &f}
	}
	return a.refuse(ctx, f)
}

// signIn signs in whom the provider names, or asks for what is missing.
func (a *attempt) signIn(ctx context.Context, h held, own proved) (Result, error) {
	f, err := a.s.joining.Look(ctx, h.Person)
	if err != nil {
		return Result{}, err
	}
	a.subject, a.userID = h.Subject, f.UserID()
	switch {
	case f.Refused() != "":
		return Result{}, a.refusePerson(ctx, f.Refused(), h, f)
	case !h.Agreed && replaces(a.by, f, a.connection), f.MustProve() && !own.isEnough():
		return a.ask(ctx, h)
	}
	outcome, err := a.s.enter(ctx, a.by, h, f, own)
	if err != nil {
		return a.failed(ctx, h, f, err)
	}
	a.signedIn(ctx, h, outcome)
	return Result{Outcome: outcome}, nil
}

// refusePerson refuses whom the provider has signed in. The protocol shows the domain, or the address, where
// nothing else says who it was: subjects are often numbers, and there is no account yet.
func (a *attempt) refusePerson(ctx context.Context, check string, h held, f joining.Found) error {
	fault := faultOf(check)
	switch check {
	case joining.CheckDomain:
		fault.Seen = mailaddr.Domain(f.Address)
	case joining.CheckJIT, joining.CheckRemoved, joining.CheckJoining:
		a.address, fault.Seen = f.Address, f.Address
		if fault.Seen != "" && !h.Verified && a.connection.Type == doorward.OpenIDConnect { // SAML has no word for it
			fault.Seen = "unverified: " + fault.Seen // before it, since a long address is cut
		}
	}
	return a.refuse(ctx, fault)
}

// replaces reports whether the session would take the place of another account's, or of one in another
// tenant, in the browser.
func replaces(by doorward.Caller, f joining.Found, c doorward.Connection) bool {
	return by.Kind == doorward.ByUser && (by.TenantID != c.TenantID || by.ID != f.UserID())
}

// ask holds what the provider said, since the person is asked for something before the session.
func (a *attempt) ask(ctx context.Context, h held) (Result, error) {
	cookie, err := a.s.texts.Seal(ctx, a.connection.ID, HeldCookie, h)
	if err == nil {
		a.record(ctx, doorward.AttemptAsked, answer.Fault{})
	}
	return Result{Held: cookie}, err
}

// failed answers a transaction that has opened no session.
func (a *attempt) failed(ctx context.Context, h held, f joining.Found, err error) (Result, error) {
	var refused joining.Refusal
	var e *doorward.Error
	switch {
	case errors.As(err, &refused):
		return Result{}, a.refusePerson(ctx, refused.Check, h, f)
	case doorward.HasCode(err, doorward.CodeSignOnRefused): // the provider has ended it since it began
		return Result{}, a.refuse(ctx, faultOf(CheckState))
	case doorward.HasCode(err, doorward.CodeSignInRequired): // the tenant demands a factor, which is the account's to set up
		if f.CanProve || f.Account != nil && f.Account.PasswordHash != "" {
			return a.ask(ctx, h)
		}
		return Result{}, a.refuse(ctx, faultOf(CheckFactor))
	case errors.As(err, &e) && (e.Kind() == doorward.KindForbidden || e.Code == doorward.CodeQuotaExceeded):
		a.record(ctx, doorward.AttemptRefused, answer.Fault{Seen: string(e.Code)})
		return Result{}, a.s.count(ctx, a.counters, err)
	}
	return Result{}, err
}

// signedIn records the end in the protocol. Groups that can't be read are said there.
func (a *attempt) signedIn(ctx context.Context, h held, outcome login.Outcome) {
	note, done := answer.Fault{}, doorward.AttemptAsked
	if h.Groups == answer.GroupsOverage || h.Groups == answer.GroupsMalformed {
		note = faultOf(joining.CheckGroups)
		note.Seen = string(h.Groups)
	}
	if in, ok := outcome.(login.SignedIn); ok {
		a.userID, done = in.User.ID, doorward.AttemptSignedIn
	}
	a.record(ctx, done, note)
}
