package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// checkChanged is the check that fails when the connection was changed while the test ran.
const checkChanged = "changed"

// checkEmail is the check of the address, joining.CheckEmail.
const checkEmail = "email"

// AdviceChanged is its advice: test again.
const AdviceChanged = "changed"

// NewTest makes a test of what is pending, or else of what is in force, for the browser with the hash. It
// asks the provider what it says of itself before. Errors: not_found; validation_failed for what the
// connection doesn't have yet, and for what the provider says; too_many_attempts; provider_unavailable.
func (c *Client) NewTest(ctx context.Context, by doorward.Caller, id string, browserHash []byte) (made doorward.ConnectionTest, err error) {
	found, err := Find(ctx, c.db.Read(), by, id)
	if err != nil {
		return made, err
	}
	if err := c.writer.Require(ctx, by, doorward.ConnectionTry, Object(found)); err != nil {
		return made, err
	}
	if err := c.readForTest(ctx, found); err != nil {
		return made, err
	}
	_, err = c.writer.Do(ctx, by, doorward.ConnectionTry, Object(found), func(tx *access.Tx) error {
		now, err := Find(ctx, tx.Reader, by, id)
		if err != nil {
			return err
		}
		parameters, isPending := now.ToTest()
		made = doorward.ConnectionTest{
			ID: doorward.NewID(doorward.PrefixTest), ConnectionID: id, Pending: isPending, BrowserHash: browserHash,
			Fingerprint: parameters.Fingerprint(), Status: doorward.TestWaiting, CreatedAt: tx.Now,
		}
		if err := tx.InsertConnectionTest(ctx, made); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, made)
	})
	return made, err
}

// readForTest checks that the connection has all that a test needs, and reads what its provider says of
// itself.
func (c *Client) readForTest(ctx context.Context, found doorward.Connection) error {
	parameters, isPending := found.ToTest()
	if found.Type == doorward.SAML {
		if _, _, err := c.ReadySAML(ctx, found.ID, isPending); err != nil || parameters.MetadataURL == "" {
			return err
		}
	} else {
		ready := Ready{Connection: found, Parameters: parameters}
		if err := ready.configure(ctx, c); err != nil {
			return err
		}
	}
	return c.readNow(ctx, found, parameters, isPending)
}

// ReadNow reads what the provider of the connection that is in force says of itself, for the caller, who must be allowed to
// change it. Errors: validation_failed for what it says, and where it can't be read at an address; too_many_attempts;
// provider_unavailable.
func (c *Client) ReadNow(ctx context.Context, by doorward.Caller, of doorward.Connection) error {
	switch {
	case of.Type == doorward.SCIMDirectory:
		return doorward.Invalid("/type", "invalid", "A connection of type scim has no provider to read.")
	case of.Type == doorward.SAML && of.InForce.MetadataURL == "":
		return doorward.Invalid("/metadataUrl", "required", "The metadata were given as a text. Enter their address, so that they can be read again.")
	case of.InForce.Issuer == "":
		return doorward.Invalid("/issuer", "required", "Enter the issuer first, as the provider writes it.")
	}
	var requestIDs []string
	if by.RequestID != "" {
		requestIDs = append(requestIDs, by.RequestID)
	}
	return c.readNow(ctx, of, of.InForce, false, requestIDs...)
}

// readNow reads what the provider says of itself, for somebody who waits for it. Errors: validation_failed for what it
// says; too_many_attempts; provider_unavailable.
func (c *Client) readNow(ctx context.Context, found doorward.Connection, p doorward.ConnectionParameters, isPending bool, requestIDs ...string) error {
	if err := c.countAsked(ctx, found.TenantID); err != nil {
		return err
	}
	_, err := c.read(ctx, store.KeptDiscovery{ConnectionID: found.ID, Type: found.Type, Pending: isPending, Issuer: p.Issuer, MetadataURL: p.MetadataURL}, requestIDs...)
	if isFault(err) && !isUnavailable(err) {
		return doorward.InvalidFields(fieldFault(err))
	}
	return unavailableTo(err)
}

// BeginTest uses a test up, and returns it: it begins once, within ten minutes, in the browser that has
// asked for it, and only while the connection is as it was then. Errors: not_found otherwise.
func (c *Client) BeginTest(ctx context.Context, id string, browserHash []byte) (test doorward.ConnectionTest, err error) {
	none := doorward.Fail(doorward.CodeNotFound, "")
	err = c.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if test, err = tx.ConnectionTest(ctx, id); err != nil {
			return err
		}
		if !bytes.Equal(test.BrowserHash, browserHash) {
			return none
		}
		_, isSame, err := tested(ctx, tx, test)
		if err == nil && isSame {
			isSame, err = tx.BeginConnectionTest(ctx, id)
		}
		if err == nil && !isSame {
			err = none
		}
		return err
	})
	if errors.Is(err, store.ErrNone) {
		err = none
	}
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

// EndTest writes the result of a test: it has passed if all checks have, and the connection is as it was
// when the test was made; then the connection counts as tested. It returns the test with its result.
// Errors: not_found if the test has ended, or its ten minutes have.
func (c *Client) EndTest(ctx context.Context, id string, claims json.RawMessage, checks []doorward.TestCheck) (test doorward.ConnectionTest, err error) {
	err = c.writer.Upkeep(ctx, func(tx *store.Tx) error {
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

func failedIf(isChanged bool) []doorward.TestCheck {
	if !isChanged {
		return nil
	}
	return []doorward.TestCheck{{Name: checkChanged, Advice: AdviceChanged}}
}

func statusOf(checks []doorward.TestCheck) doorward.TestStatus {
	for _, check := range checks {
		if !check.OK {
			return doorward.TestFailed
		}
	}
	return doorward.TestPassed
}

// Test returns a test of a connection of the caller's tenant, for 24 hours; without testID the one that was made
// last. One that nobody has ended in time has failed. A set-up link sees no claims, and of an address the domain. Errors:
// not_found.
func (c *Client) Test(ctx context.Context, by doorward.Caller, id, testID string) (test doorward.ConnectionTest, err error) {
	read := c.db.Read()
	if _, err := Find(ctx, read, by, id); err != nil {
		return test, err
	}
	if testID == "" {
		test, err = read.NewestConnectionTest(ctx, id)
	} else {
		test, err = read.ConnectionTest(ctx, testID)
	}
	age := c.db.Now().Sub(test.CreatedAt)
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
		if check := &test.Checks[i]; check.Name == checkEmail {
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
