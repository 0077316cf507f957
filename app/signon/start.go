package signon

import (
	"context"
	"strings"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// Ask says what a sign-in is for.
type Ask struct {
	Return    string     // where it leads, an address that the caller has allowed; empty: home
	LoginHint string     // the address that the person has typed; empty: none
	Test      string     // id of the test that it is; empty: none
	SetupLink string     // id of the set-up link by which the browser has begun, for a test; empty: none
	StepUp    bool       // it proves the caller's session again, if that is one of the connection
	Tabs      []flow.Tab // the browser's cookies that flow.TabPrefix begins
}

// maxReturn is the longest return address that is kept, in bytes: with it the cookie stays far below the 4,096 bytes that
// browsers take.
const maxReturn = 1024

// Begun is a sign-in that has begun.
type Begun struct {
	URL  string // of the provider
	Tab  flow.Tab
	Drop []string // names of cookies that the browser is to delete
}

// Start begins a sign-in by the connection. Errors: too_many_attempts; not_found for a connection that signs
// nobody in, or a test that is over or somebody else's; sign_on_refused for one whose last secret was deleted; provider_unavailable, master_key_missing, unavailable.
func (s *SignOn) Start(ctx context.Context, by doorward.Caller, conID string, ask Ask) (Begun, error) {
	if err := s.starts.take(by, s.db.Now()); err != nil {
		return Begun{}, err
	}
	c, err := s.connection(ctx, conID)
	if err != nil {
		return Begun{}, err
	}
	f, pending, err := s.flow(ctx, by, c, ask)
	if err != nil {
		return Begun{}, err
	}
	var begun Begun
	if begun.URL, err = s.address(ctx, c, &f, pending, ask); err != nil {
		return Begun{}, err
	}
	if begun.Tab, err = s.tabs.Seal(ctx, conID, f); err != nil {
		return Begun{}, err
	}
	begun.Drop, err = s.tabs.Surplus(ctx, conID, ask.Tabs)
	return begun, err
}

// address returns where the browser goes, and notes in the flow which request it takes there.
func (s *SignOn) address(ctx context.Context, c doorward.Connection, f *flow.Flow, pending bool, ask Ask) (address string, err error) {
	if c.Type == doorward.SAML {
		address, f.Request, err = s.acs.Begin(ctx, c.ID, pending, samlsp.Ask{RelayState: f.State, Fresh: f.Fresh, Contexts: stepUpContexts(c, *f)})
		return address, refusedIfIncomplete(err, fault.CheckCertificate)
	}
	ready, err := s.ready(ctx, c.ID, pending)
	if err != nil {
		return "", err
	}
	return oidcrp.AuthURL(ready.Discovery, ready.Config, f.Flow, hint(ask.LoginHint)), nil
}

// refusedIfIncomplete returns sign_on_refused with the check in place of the error for a connection of which a part is
// missing.
func refusedIfIncomplete(err error, check string) error {
	if doorward.HasCode(err, doorward.CodeValidationFailed) {
		return &doorward.Error{Code: doorward.CodeSignOnRefused, Check: check}
	}
	return err
}

// ready returns what the connection signs people in by. Errors: sign_on_refused if a part of it is missing, and
// otherwise those of provider.Client.Ready.
func (s *SignOn) ready(ctx context.Context, conID string, pending bool) (provider.Ready, error) {
	ready, err := s.connections.Ready(ctx, conID, pending)
	return ready, refusedIfIncomplete(err, oidcrp.CheckClient)
}

// flow returns what the sign-in is for, and whether it is by parameters that await a switch.
func (s *SignOn) flow(ctx context.Context, by doorward.Caller, c doorward.Connection, ask Ask) (f flow.Flow, pending bool, err error) {
	f = flow.Flow{Flow: oidcrp.Begin(s.db.Now()), Purpose: flow.ForSignIn}
	if len(ask.Return) <= maxReturn {
		f.Return = ask.Return
	}
	if ask.Test != "" {
		test, byLink, err := s.tests.Begin(ctx, by, c.ID, ask.Test, ask.SetupLink)
		f.Purpose, f.Test, f.ByLink = flow.ForTest, test.ID, byLink
		return f, test.Pending, err
	}
	signsIn, err := s.signsIn(ctx, s.db.Read(), c)
	if err == nil && !signsIn {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if ask.StepUp && by.SessionID != "" && string(by.Issuer) == c.ID {
		f.Purpose, f.Session, f.Fresh = flow.ForStepUp, by.SessionID, true
	}
	return f, false, err
}

// maxHint is the longest address (RFC 5321, section 4.5.3.1.3, with erratum 1690).
const maxHint = 254

// hint returns the address to suggest to the provider; empty for anything that isn't one.
func hint(address string) string {
	if len(address) > maxHint || !strings.Contains(address, "@") || strings.ContainsFunc(address, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return ""
	}
	return address
}
