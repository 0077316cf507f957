package signon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// BegunTest is a test that waits for its sign-in.
type BegunTest struct {
	ID  string
	URL string // where the browser of the caller's session begins it
}

// Test prepares a sign-in that opens no session and joins nobody, by what awaits a switch, else by what is in
// force. It begins once, within ten minutes, in the browser of the caller's session. Errors: not_found,
// step_up_required, validation_failed (issuer or client are missing), unavailable.
func (s *SignOn) Test(ctx context.Context, by doorward.Caller, conID string) (begun BegunTest, err error) {
	begun.ID = doorward.NewID(doorward.PrefixTest)
	begun.URL = s.baseURL + "/api/v2/auth/sso/" + conID + "/start?test=" + begun.ID
	on := doorward.Object{Type: "connection", ID: conID, TenantID: by.TenantID}
	_, err = s.writer.Do(ctx, by, doorward.ConnectionTestAction, on, func(tx *access.Tx) error {
		c, err := tx.Connection(ctx, conID)
		if errors.Is(err, store.ErrNone) || err == nil && c.TenantID != by.TenantID {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return err
		}
		p, pending := c.ToTest()
		if err := checkComplete(p); err != nil {
			return err
		}
		test := doorward.ConnectionTest{
			ID: begun.ID, ConnectionID: c.ID, Pending: pending, BrowserHash: browserHash(by.SessionID), Fingerprint: p.Fingerprint(), CreatedAt: tx.Now,
		}
		if err := tx.InsertConnectionTest(ctx, test); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, begun)
	})
	return begun, err
}

// checkComplete returns a fault for each parameter that a sign-in needs and that is missing.
func checkComplete(p doorward.ConnectionParameters) error {
	var faults []doorward.FieldError
	for _, f := range []struct{ pointer, value string }{{"/issuer", p.Issuer}, {"/clientId", p.ClientID}} {
		if f.value == "" {
			faults = append(faults, doorward.FieldError{Pointer: f.pointer, Code: "required", Message: "The connection can't be tested without this."})
		}
	}
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

// finishTest writes the result of a test: what every check says, and the claims.
func (a *attempt) finishTest(ctx context.Context, ready connection.Ready, test doorward.ConnectionTest, said oidcrp.Asserted, err error) (Result, error) {
	var f *oidcrp.Fault
	if err != nil && !errors.As(err, &f) {
		return Result{}, err
	}
	if f != nil && f.Check == oidcrp.CheckClient && !f.Unavailable {
		a.s.connections.ClientRefused(ctx, ready)
	}
	checks, err := a.checks(ctx, ready, said, f)
	if err != nil {
		return Result{}, err
	}
	passed := !slices.ContainsFunc(checks, func(c doorward.TestCheck) bool { return !c.OK && !slices.Contains(advisory, Check(c.Name)) })
	if err := a.endTest(ctx, ready, test, passed, said.Claims, checks); err != nil {
		return Result{}, err
	}
	a.recordTest(ctx, passed, checks, f)
	return Result{Test: test.ID}, nil
}

// advisory are checks that a test shows, and that don't fail it: the account of whoever tests may be another
// than those of the people who will sign in.
var advisory = []Check{CheckDomain, CheckGroups}

// checks returns what each check says, in the order in which they are made. After the one that failed there
// are none.
func (a *attempt) checks(ctx context.Context, ready connection.Ready, said oidcrp.Asserted, f *oidcrp.Fault) (all []doorward.TestCheck, err error) {
	for _, name := range oidcrp.Checks {
		if f != nil && f.Check == name {
			return append(all, doorward.TestCheck{Name: name, Seen: f.Seen, Wanted: f.Wanted, Advice: f.Advice}), nil
		}
		all = append(all, doorward.TestCheck{Name: name, OK: true})
	}
	if f != nil { // of no check of a sign-in, such as a provider that can't be reached
		return append(all[:0], doorward.TestCheck{Name: f.Check, Seen: f.Seen, Wanted: f.Wanted, Advice: f.Advice}), nil
	}
	own, err := a.ownChecks(ctx, ready, said)
	return append(all, own...), err
}

// ownChecks returns what a sign-in would read besides: the address, its domain, and the groups.
func (a *attempt) ownChecks(ctx context.Context, ready connection.Ready, said oidcrp.Asserted) ([]doorward.TestCheck, error) {
	address, err := mailaddr.Parse(said.Address)
	email := doorward.TestCheck{Name: string(CheckEmail), OK: err == nil, Seen: said.Address, Wanted: ready.Parameters.EmailFrom}
	if err != nil {
		email.Advice = "email_claim"
		return []doorward.TestCheck{email}, nil
	}
	domains, err := a.s.db.Read().VerifiedDomainsOf(ctx, a.connection.ID)
	if err != nil {
		return nil, err
	}
	domain := doorward.TestCheck{Name: string(CheckDomain), Seen: mailaddr.Domain(address)}
	if domain.OK = slices.ContainsFunc(domains, func(d doorward.Domain) bool { return d.Name == domain.Seen }); !domain.OK {
		domain.Advice = "domain"
	}
	all := []doorward.TestCheck{email, domain}
	if from := a.connection.GroupsFrom; from != "" {
		groups := doorward.TestCheck{Name: string(CheckGroups), OK: said.Groups.State == oidcrp.GroupsList, Seen: string(said.Groups.State), Wanted: from}
		if !groups.OK {
			groups.Advice = "groups_claim"
		}
		all = append(all, groups)
	}
	return all, nil
}

// endTest ends the test. A test of what has changed since it began is void: it passes for nothing.
func (a *attempt) endTest(ctx context.Context, ready connection.Ready, test doorward.ConnectionTest, passed bool, claims map[string]any, checks []doorward.TestCheck) error {
	if claims == nil {
		claims = map[string]any{}
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return doorward.Unavailable(err)
	}
	status := doorward.TestFailed
	if passed {
		status = doorward.TestPassed
	}
	return a.s.writer.Upkeep(ctx, func(tx *store.Tx) error {
		ended, err := tx.EndConnectionTest(ctx, test.ID, status, text, checks)
		if err == nil && !ended {
			err = stateError()
		}
		if err != nil || !passed || !bytes.Equal(ready.Parameters.Fingerprint(), test.Fingerprint) {
			return err
		}
		_, err = tx.MarkConnectionTested(ctx, test.ConnectionID, test.Pending, ready.Parameters.Revision)
		return err
	})
}

func (a *attempt) recordTest(ctx context.Context, passed bool, checks []doorward.TestCheck, f *oidcrp.Fault) {
	switch {
	case passed:
		a.record(ctx, doorward.AttemptDone, oidcrp.Fault{})
	case f != nil && f.Unavailable:
		a.record(ctx, doorward.AttemptUnavailable, *f)
	case f != nil:
		a.record(ctx, doorward.AttemptRefused, *f)
	default:
		last := checks[len(checks)-1]
		a.record(ctx, doorward.AttemptRefused, oidcrp.Fault{Check: last.Name, Advice: last.Advice})
	}
}
