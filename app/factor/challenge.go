package factor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Purpose is what a challenge is good for.
type Purpose string

// The purposes of challenges.
const (
	ForLogin     Purpose = "login" // the second step of a login, or of switching to a tenant
	ForStepUp    Purpose = "step-up"
	ForEnrolment Purpose = "enrol" // setting up the first factor, which completes a login
)

// Begun is a challenge as the person gets it.
type Begun struct {
	Token     secret.Token
	Methods   []string
	ExpiresAt time.Time
}

// Challenge is a challenge that a request has brought.
type Challenge struct {
	store.Challenge
	hash secret.Hash
}

// Begin makes a challenge for the account in the transaction that asks for the proof.
// sessionID is the session that the proof replaces; it may be empty.
func (f *Factors) Begin(ctx context.Context, tx *access.Tx, purpose Purpose, account doorward.Account, tenantID, sessionID string) (Begun, error) {
	methods, err := offered(ctx, tx.Reader, purpose, account.ID)
	if err != nil {
		return Begun{}, err
	}
	begun := Begun{Token: secret.New(), Methods: methods, ExpiresAt: tx.Now.Add(doorward.ChallengeLife)}
	hash := begun.Token.Hash()
	return begun, tx.InsertChallenge(ctx, hash[:], store.Challenge{
		Purpose: string(purpose), UserID: account.ID, TenantID: tenantID, SessionID: sessionID,
		Generation: account.Generation, Methods: methods, EndsAt: begun.ExpiresAt,
	})
}

// offered are the methods by which the account can answer.
func offered(ctx context.Context, read store.Reader, purpose Purpose, userID string) ([]string, error) {
	if purpose == ForEnrolment {
		return []string{doorward.ByCode}, nil
	}
	all, err := read.Factors(ctx, userID)
	if err != nil {
		return nil, err
	}
	var methods []string
	for _, one := range all {
		if one.Usable() && one.Kind == doorward.TOTP {
			methods = []string{doorward.ByCode}
		}
	}
	if purpose == ForStepUp {
		if len(methods) == 0 {
			methods = []string{doorward.ByPassword}
		}
		return methods, nil
	}
	n, err := read.CountRecoveryCodes(ctx, userID)
	if n > 0 {
		methods = append(methods, doorward.ByRecovery)
	}
	return methods, err
}

// Over is the error of a challenge that is not good for what was asked, or no longer.
func Over() *doorward.Error { return doorward.Fail(doorward.CodeChallengeOver, "") }

// Open returns the challenge of a token, and its account as it is now. Errors:
// challenge_over, also when the password has changed in between; unavailable.
func (f *Factors) Open(ctx context.Context, token string, purpose Purpose) (Challenge, doorward.Account, error) {
	parsed, err := secret.Parse(token)
	if err != nil {
		return Challenge{}, doorward.Account{}, Over()
	}
	c := Challenge{hash: parsed.Hash()}
	if c.Challenge, err = f.db.Read().Challenge(ctx, c.hash[:], string(purpose), doorward.ChallengeTries, f.db.Now()); err != nil {
		return c, doorward.Account{}, overIfNone(err)
	}
	account, err := f.db.Read().Account(ctx, c.UserID)
	if err == nil && account.Generation != c.Generation {
		err = Over()
	}
	return c, account, overIfNone(err)
}

func overIfNone(err error) error {
	if errors.Is(err, store.ErrNone) {
		return Over()
	}
	return err
}

// Takes reports whether the challenge can be answered by the method.
func (c Challenge) Takes(method string) bool { return slices.Contains(c.Methods, method) }

// Count counts a try. Errors: challenge_over, unavailable.
func (f *Factors) Count(ctx context.Context, c Challenge) error {
	return f.writer.Upkeep(ctx, func(tx *store.Tx) error {
		return isLeft(tx.TryChallenge(ctx, c.hash[:], doorward.ChallengeTries))
	})
}

// Take uses the challenge up, in the transaction of what it permits and under the lock on
// the account. Errors: challenge_over, also when the password has changed in between.
func (f *Factors) Take(ctx context.Context, tx *access.Tx, c Challenge) error {
	account, err := tx.Account(ctx, c.UserID)
	if err == nil && account.Generation != c.Generation {
		err = Over()
	}
	if err != nil {
		return overIfNone(err)
	}
	if !tx.Now.Before(c.EndsAt) {
		return Over()
	}
	return isLeft(tx.TakeChallenge(ctx, c.hash[:]))
}

func isLeft(is bool, err error) error {
	if err == nil && !is {
		err = Over()
	}
	return err
}
