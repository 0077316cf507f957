package signon

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// Test prepares a sign-in that opens no session and joins nobody; see provider.Client.NewTest. It
// begins at TestURL, in the browser of the caller's session or set-up link.
func (s *SignOn) Test(ctx context.Context, by doorward.Caller, conID string) (doorward.ConnectionTest, error) {
	return s.connections.NewTest(ctx, by, conID, browserHash(browserOf(by)))
}

// TestURL returns where the browser begins the test.
func (s *SignOn) TestURL(test doorward.ConnectionTest) string {
	return s.connections.StartURL(test.ConnectionID) + "?test=" + test.ID
}

// CanBegin reports whether the caller's browser can begin the test: it has asked for it, and nobody has begun it.
func (s *SignOn) CanBegin(by doorward.Caller, test doorward.ConnectionTest) bool {
	return test.Status == doorward.TestWaiting && test.BegunAt == nil && bytes.Equal(test.BrowserHash, browserHash(browserOf(by)))
}

// finishTest writes the result of a test: what every check says, and the claims. A fault of the provider fails
// the test, too.
func (a *attempt) finishTest(ctx context.Context, j judged) (Result, error) {
	checks, err := a.checks(ctx, j)
	if err != nil {
		return Result{}, err
	}
	if j.asserted.Claims == nil {
		j.asserted.Claims = map[string]any{}
	}
	claims, err := json.Marshal(j.asserted.Claims)
	if err != nil {
		return Result{}, doorward.Unavailable(err)
	}
	test, err := a.s.connections.EndTest(ctx, a.flow.Test, claims, checks)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		err = stateError()
	}
	if err != nil {
		return Result{}, err
	}
	a.recordTest(ctx, test, j.fault)
	return Result{Test: test.ID, ByLink: a.flow.ByLink}, nil
}

// checks returns what each check says, in the order in which they are made. After the one that failed there
// are none.
func (a *attempt) checks(ctx context.Context, j judged) (all []doorward.TestCheck, err error) {
	for _, name := range j.asserted.Passed {
		check := doorward.TestCheck{Name: name, OK: true}
		if name == fault.CheckSub && j.asserted.SubjectIsAddress {
			check.Advice = adviceSubject
		}
		all = append(all, check)
	}
	if j.fault != nil {
		return append(all, failing(*j.fault)), nil
	}
	own, err := a.ownChecks(ctx, j)
	return append(all, own...), err
}

func failing(f answer.Fault) doorward.TestCheck {
	return doorward.TestCheck{Name: f.Check, Seen: f.Seen, Wanted: f.Wanted, Advice: f.Advice}
}

// The advice of this package's checks: keys of texts, as those of oidcrp.
const (
	adviceEmail     = "email_claim"  // the claim that emailFrom names has no address
	adviceDomain    = "domain"       // the domain isn't proved for the connection
	adviceGroups    = "groups_claim" // the claim that groupsFrom names has no list of texts
	adviceInvite    = "invite"       // invite the person, or change jit
	adviceReinstate = "reinstate"    // an administrator has suspended the person
	adviceJoining   = "joining"      // somebody else's account has the address
	adviceFactor    = "factor"       // the account can't set up the second factor that the tenant demands
	adviceSubject   = "subject"      // the subject is an address, which can be given to somebody else
	adviceContext   = "context"      // the provider has signed the person in by none of the contexts of factorAcr
)

// Advices are all keys of advice in protocols and tests. The console has a sentence for each, and for some of
// them one in the words of a product.
var Advices = func() []string {
	all := slices.Concat(oidcrp.Advices, fault.Advices, []string{
		provider.AdviceChanged, adviceEmail, adviceDomain, adviceGroups, adviceInvite, adviceReinstate, adviceJoining, adviceFactor,
		adviceSubject, adviceContext,
	})
	slices.Sort(all)
	return slices.Compact(all)
}()

// The checks of this package, beside those of internal/oidcrp and app/joining.
const (
	CheckState  = oidcrp.CheckState
	CheckFactor = "factor"
	CheckGroups = "groups"
)

// adviceOf has what to do about each check that refuses people whom the provider has signed in.
var adviceOf = map[string]string{
	joining.CheckEmail: adviceEmail, joining.CheckDomain: adviceDomain, joining.CheckJIT: adviceInvite, joining.CheckRemoved: adviceInvite,
	joining.CheckSuspended: adviceReinstate, joining.CheckJoining: adviceJoining, CheckFactor: adviceFactor, CheckGroups: adviceGroups,
	CheckState: oidcrp.AdviceStartAgain, oidcrp.CheckSub: oidcrp.AdviceStartAgain,
	fault.CheckTime: fault.AdviceClock, fault.CheckCertificate: fault.AdviceCertificate,
}

// AdviceOf returns what to do about a check that refuses people; one of Advices.
func AdviceOf(check string) string { return adviceOf[check] }

func faultOf(check string) answer.Fault { return answer.Fault{Check: check, Advice: AdviceOf(check)} }

// ownChecks returns what a sign-in would read besides: the address, its domain, and the groups. Domain and
// groups of the person who tests may be others than those of the people who will sign in, so they give advice and
// don't fail the test.
func (a *attempt) ownChecks(ctx context.Context, j judged) ([]doorward.TestCheck, error) {
	address, err := mailaddr.Parse(j.asserted.Address)
	if err != nil {
		return []doorward.TestCheck{{Name: joining.CheckEmail, Seen: j.asserted.Address, Wanted: j.by.EmailFrom, Advice: adviceEmail}}, nil
	}
	domains, err := a.s.db.Read().VerifiedDomainsOf(ctx, a.connection.ID)
	if err != nil {
		return nil, err
	}
	domain := doorward.TestCheck{Name: joining.CheckDomain, OK: true, Seen: mailaddr.Domain(address)}
	if !slices.ContainsFunc(domains, func(d doorward.Domain) bool { return d.Name == domain.Seen }) {
		domain.Advice = adviceDomain
	}
	all := []doorward.TestCheck{{Name: joining.CheckEmail, OK: true, Seen: address}, domain}
	if from := a.connection.GroupsFrom; from != "" {
		groups := doorward.TestCheck{Name: CheckGroups, OK: true, Seen: string(j.asserted.Groups.State), Wanted: from}
		if j.asserted.Groups.State != answer.GroupsList {
			groups.Advice = adviceGroups
		}
		all = append(all, groups)
	}
	return all, nil
}

// recordTest writes the entry of the protocol. It names who tests, so that it goes when that account is erased:
// the subject needn't be anybody's identity.
func (a *attempt) recordTest(ctx context.Context, test doorward.ConnectionTest, f *answer.Fault) {
	if a.by.Kind == doorward.ByUser {
		a.userID = a.by.ID
	}
	i := slices.IndexFunc(test.Checks, func(c doorward.TestCheck) bool { return !c.OK })
	switch {
	case f != nil && f.Unavailable:
		a.record(ctx, doorward.AttemptUnavailable, *f)
	case i >= 0:
		failed := test.Checks[i]
		a.record(ctx, doorward.AttemptRefused, answer.Fault{Check: failed.Name, Seen: failed.Seen, Advice: failed.Advice})
	default:
		a.record(ctx, doorward.AttemptDone, answer.Fault{})
	}
}
