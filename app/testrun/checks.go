package testrun

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// The advice of this package's checks: keys of texts, as those of oidcrp.
const (
	adviceChanged = "changed" // test again
	adviceSubject = "subject" // the subject is an address, which can be given to somebody else
)

// Advices are all of them.
var Advices = []string{adviceChanged, adviceSubject}

// Checks returns what each check says of what the connection's provider has answered to a test by the parameters, in the
// order in which they are made. After f, the one of the protocol that failed, there are none; nil: all of those have
// passed. Errors: unavailable.
func (t *Tests) Checks(ctx context.Context, c doorward.Connection, by doorward.ConnectionParameters, a answer.Asserted, f *answer.Fault) (all []doorward.TestCheck, err error) {
	for _, name := range a.Passed {
		check := doorward.TestCheck{Name: name, OK: true}
		if name == fault.CheckSub && a.SubjectIsAddress {
			check.Advice = adviceSubject
		}
		all = append(all, check)
	}
	if f != nil {
		return append(all, failing(*f)), nil
	}
	own, err := t.ownChecks(ctx, c, by, a)
	return append(all, own...), err
}

func failing(f answer.Fault) doorward.TestCheck {
	return doorward.TestCheck{Name: f.Check, Seen: f.Seen, Wanted: f.Wanted, Advice: f.Advice}
}

// ownChecks returns what a sign-in would read besides: the address, its domain, and the groups. Domain and
// groups of the person who tests may be others than those of the people who will sign in, so they give advice and
// don't fail the test.
func (t *Tests) ownChecks(ctx context.Context, c doorward.Connection, by doorward.ConnectionParameters, a answer.Asserted) ([]doorward.TestCheck, error) {
	address, err := mailaddr.Parse(a.Address)
	if err != nil {
		return []doorward.TestCheck{{Name: joining.CheckEmail, Seen: a.Address, Wanted: by.EmailFrom, Advice: joining.AdviceOf(joining.CheckEmail)}}, nil
	}
	domains, err := t.db.Read().VerifiedDomainsOf(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	domain := doorward.TestCheck{Name: joining.CheckDomain, OK: true, Seen: mailaddr.Domain(address)}
	if !slices.ContainsFunc(domains, func(d doorward.Domain) bool { return d.Name == domain.Seen }) {
		domain.Advice = joining.AdviceOf(joining.CheckDomain)
	}
	all := []doorward.TestCheck{{Name: joining.CheckEmail, OK: true, Seen: address}, domain}
	if from := c.GroupsFrom; from != "" {
		groups := doorward.TestCheck{Name: joining.CheckGroups, OK: true, Seen: string(a.Groups.State), Wanted: from}
		if a.Groups.State != answer.GroupsList {
			groups.Advice = joining.AdviceOf(joining.CheckGroups)
		}
		all = append(all, groups)
	}
	return all, nil
}
