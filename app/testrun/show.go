package testrun

import (
	"bytes"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// URL returns where the browser begins the test.
func (t *Tests) URL(test doorward.ConnectionTest) string {
	return t.providers.StartURL(test.ConnectionID) + "?test=" + test.ID
}

// CanBegin reports whether the caller's browser can begin the test: it has asked for it, and nobody has begun it.
func (t *Tests) CanBegin(by doorward.Caller, test doorward.ConnectionTest) bool {
	return test.Status == doorward.TestWaiting && test.BegunAt == nil && bytes.Equal(test.BrowserHash, browserHash(browserOf(by)))
}

// ShowInBrowser returns the result of a test of the connection, to whom has begun it: in the same session. Errors:
// not_found, unavailable.
func (t *Tests) ShowInBrowser(ctx context.Context, by doorward.Caller, conID, id string) (doorward.ConnectionTest, error) {
	test, err := t.db.Read().ConnectionTest(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && !isOfBrowser(test, conID, by.SessionID) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return test, err
}

// Show returns a test of a connection of the caller's tenant, for 24 hours; without testID the one that was made
// last. One that nobody has ended in time has failed. A set-up link sees no claims, and of an address the domain. Errors:
// not_found.
func (t *Tests) Show(ctx context.Context, by doorward.Caller, id, testID string) (test doorward.ConnectionTest, err error) {
	read := t.db.Read()
	if _, err := provider.Find(ctx, read, by, id); err != nil {
		return test, err
	}
	if testID == "" {
		test, err = read.NewestConnectionTest(ctx, id)
	} else {
		test, err = read.ConnectionTest(ctx, testID)
	}
	age := t.db.Now().Sub(test.CreatedAt)
	if errors.Is(err, store.ErrNone) || err == nil && (test.ConnectionID != id || age >= doorward.TestsKept) {
		return doorward.ConnectionTest{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	if by.Kind == doorward.BySetupLink {
		hidePerson(&test)
	}
	if test.Status == doorward.TestWaiting && age >= doorward.TestLife {
		test.Status, test.Checks = doorward.TestFailed, []doorward.TestCheck{unended(test)}
	}
	return test, err
}

// hidePerson leaves of who has tested the domain: the newest test may be an OWNER's, in the console.
func hidePerson(test *doorward.ConnectionTest) {
	test.Claims = nil
	for i := range test.Checks {
		if check := &test.Checks[i]; check.Name == joining.CheckEmail {
			address, _ := mailaddr.Parse(check.Seen) // of what is no address, nothing is left
			check.Seen = mailaddr.Domain(address)
		}
	}
}

// checkCallback is the check that fails when the provider hasn't sent the browser back.
const checkCallback = "callback"

// unended says why a test has no result: a provider that doesn't know the redirect address shows a page of its
// own, and the browser stays there.
func unended(test doorward.ConnectionTest) doorward.TestCheck {
	check := doorward.TestCheck{Name: checkCallback, Advice: oidcrp.AdviceRedirectURI}
	if test.BegunAt == nil {
		check.Advice = oidcrp.AdviceStartAgain
	}
	return check
}
