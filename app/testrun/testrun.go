// Package testrun tests connections: a test is a real sign-in at the provider, which opens no session and joins nobody.
// Package signon makes that sign-in; what comes before and after it is here.
//
//	test, err := tests.Make(ctx, by, conID)                 // begins at tests.URL(test)
//	test, byLink, err := tests.Begin(ctx, by, conID, id, setupLink)
//	checks, err := tests.Checks(ctx, test.ConnectionID, answered)
//	test, err := tests.End(ctx, id, claims, checks)
//
// A test begins once, within ten minutes, in the browser that has asked for it, and counts only for exactly what the
// connection signed people in by when it was made.
//
//	testrun.go  making, beginning, ending
//	checks.go   what is judged beside the checks of the protocol
//	show.go     results, and who sees what of them
package testrun

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/store"
)

// Tests is the feature. Make it with New. It is safe for use by several goroutines.
type Tests struct {
	writer    *access.Writer
	db        *store.DB
	providers *provider.Client
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, providers *provider.Client) *Tests {
	return &Tests{writer: writer, db: db, providers: providers}
}

// Make makes a test of what is pending, or else of what is in force. It begins at URL, in the browser of the caller's
// session or set-up link. It asks the provider what it says of itself before. Errors: not_found; validation_failed for
// what the connection doesn't have yet, and for what the provider says; too_many_attempts; provider_unavailable.
func (t *Tests) Make(ctx context.Context, by doorward.Caller, conID string) (made doorward.ConnectionTest, err error) {
	found, err := provider.Find(ctx, t.db.Read(), by, conID)
	if err != nil {
		return made, err
	}
	if err := t.writer.Require(ctx, by, doorward.ConnectionTry, provider.Object(found)); err != nil {
		return made, err
	}
	if err := t.providers.ReadForTest(ctx, found); err != nil {
		return made, err
	}
	_, err = t.writer.Do(ctx, by, doorward.ConnectionTry, provider.Object(found), func(tx *access.Tx) error {
		now, err := provider.Find(ctx, tx.Reader, by, conID)
		if err != nil {
			return err
		}
		parameters, isPending := now.ToTest()
		made = doorward.ConnectionTest{
			ID: doorward.NewID(doorward.PrefixTest), ConnectionID: conID, Pending: isPending, BrowserHash: browserHash(browserOf(by)),
			Fingerprint: parameters.Fingerprint(), Status: doorward.TestWaiting, CreatedAt: tx.Now,
		}
		if err := tx.InsertConnectionTest(ctx, made); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, made)
	})
	return made, err
}

// browserOf returns the id of what the caller's browser is known by.
func browserOf(by doorward.Caller) string {
	if by.Kind == doorward.BySetupLink {
		return by.ID
	}
	return by.SessionID
}

// browserHash names the browser of a session, or of a set-up link, in the row of a test.
func browserHash(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:]
}

// isOfBrowser reports whether the test is one of the connection that the session, or the set-up link, with the id
// has asked for.
func isOfBrowser(test doorward.ConnectionTest, conID, asker string) bool {
	return test.ConnectionID == conID && asker != "" && bytes.Equal(test.BrowserHash, browserHash(asker))
}

// Begin uses a test of the connection up, and returns it: it begins once, within ten minutes, in the browser that has
// asked for it, and only while the connection is as it was then. That browser has the caller's session, or has begun by
// the set-up link with the id; byLink reports whether it was the latter. Errors: not_found otherwise.
func (t *Tests) Begin(ctx context.Context, by doorward.Caller, conID, id, setupLink string) (test doorward.ConnectionTest, byLink bool, err error) {
	test, err = t.db.Read().ConnectionTest(ctx, id)
	byLink = isOfBrowser(test, conID, setupLink)
	if err == nil && !byLink && !isOfBrowser(test, conID, by.SessionID) {
		err = store.ErrNone
	}
	if err == nil {
		test, err = t.begin(ctx, id)
	}
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "This test has begun before, is more than 10 minutes old, was asked for in another browser, or the connection has changed since. Begin another one.")
	}
	return test, byLink, err
}

// begin uses the test up. Errors: store.ErrNone if it has begun before, or is over.
func (t *Tests) begin(ctx context.Context, id string) (test doorward.ConnectionTest, err error) {
	err = t.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if test, err = tx.ConnectionTest(ctx, id); err != nil {
			return err
		}
		_, isSame, err := tested(ctx, tx, test)
		if err == nil && isSame {
			isSame, err = tx.BeginConnectionTest(ctx, id)
		}
		if err == nil && !isSame {
			err = store.ErrNone
		}
		return err
	})
	return test, err
}

// tested returns the parameters that the test tries, and reports whether they are still those. Errors:
// store.ErrNone.
func tested(ctx context.Context, tx *store.Tx, test doorward.ConnectionTest) (p doorward.ConnectionParameters, isSame bool, err error) {
	now, err := tx.Connection(ctx, test.ConnectionID)
	if err != nil {
		return p, false, err
	}
	p = now.InForce
	if test.Pending {
		if now.Pending == nil {
			return p, false, nil
		}
		p = *now.Pending
	}
	return p, bytes.Equal(p.Fingerprint(), test.Fingerprint), nil
}

// End writes the result of a test: it has passed if all checks have, and the connection is as it was
// when the test was made; then the connection counts as tested. It returns the test with its result.
// Errors: not_found if the test has ended, or its ten minutes have.
func (t *Tests) End(ctx context.Context, id string, claims json.RawMessage, checks []doorward.TestCheck) (test doorward.ConnectionTest, err error) {
	err = t.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if test, err = tx.ConnectionTest(ctx, id); err != nil {
			return err
		}
		parameters, isSame, err := tested(ctx, tx, test)
		if err != nil {
			return err
		}
		all := append(checks[:len(checks):len(checks)], failedIf(!isSame)...)
		status := statusOf(all)
		ended, err := tx.EndConnectionTest(ctx, id, status, claims, all)
		if err == nil && !ended {
			err = store.ErrNone
		}
		if err != nil {
			return err
		}
		if status == doorward.TestPassed {
			if _, err := tx.MarkConnectionTested(ctx, test.ConnectionID, test.Pending, parameters.Revision); err != nil {
				return err
			}
		}
		test, err = tx.ConnectionTest(ctx, id)
		return err
	})
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return test, err
}

// checkChanged is the check that fails when the connection was changed while the test ran.
const checkChanged = "changed"

func failedIf(isChanged bool) []doorward.TestCheck {
	if !isChanged {
		return nil
	}
	return []doorward.TestCheck{{Name: checkChanged, Advice: adviceChanged}}
}

func statusOf(checks []doorward.TestCheck) doorward.TestStatus {
	for _, check := range checks {
		if !check.OK {
			return doorward.TestFailed
		}
	}
	return doorward.TestPassed
}
