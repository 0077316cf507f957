// Package signoff ends sessions because a tenant's own provider says so: by Global Token Revocation
// (draft-parecki-oauth-global-token-revocation), and by OpenID Connect Back-Channel Logout 1.0.
//
//	revocation, err := signOff.Revoke(ctx, by, conID, token, who)
//	revocation, err := signOff.Logout(ctx, by, conID, token)
//
// Anybody can send a request, so each proves by a token that the provider has signed it: see internal/oidcrp/endtoken.
// A token ends something once, over all nodes. The same request again, within the token's life, waits for the first one, ends
// nothing, and is answered as that was: a provider that has lost the answer must not give up
// (docs/decisions/0030-a-token-again.md).
//
// It guarantees that a provider ends nothing outside its tenant, and that what it ends has ended on every node when that is
// answered. A sign-in by the connection that has begun before, and waits at the provider, for a second factor or for a
// proof, opens no session afterwards. A fault ends nothing and is no refusal: the provider can send the same token
// again. Each refusal counts, and refusals never keep out a good token: else somebody could keep a dismissed person
// signed in by sending bad ones.
//
//	signoff.go     tokens: whose word it is
//	revoke.go      revocations
//	logout.go      logouts
//	stray.go       what the protocol has of tokens that anybody can send
//	tally.go       counters
package signoff

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/endtoken"
	"github.com/doorward/doorward/store"
)

const (
	// maxRefused is how many requests to a connection may end refused, a minute and client address.
	maxRefused = 60
	// maxAccepted is how many good tokens a connection may send a minute: more than the people of a large tenant sign
	// out in, and few enough for the rows of used tokens.
	maxAccepted = 1200
	limitWindow = time.Minute
	// endsKept is how long it is known that somebody's sign-ins have ended: longer than a sign-in can take, with what
	// the person is asked for after it.
	endsKept = 2 * time.Hour
)

// SignOff is the feature. Make it with New. It is safe for use by several goroutines.
type SignOff struct {
	writer    *access.Writer
	db        *store.DB
	providers *provider.Client
	life      store.SessionLifetime
	strays    [strayKinds]provider.Strays
	tally     tally
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, providers *provider.Client, life store.SessionLifetime) *SignOff {
	return &SignOff{writer: writer, db: db, providers: providers, life: life, tally: newTally()}
}

// request is a request of a provider.
type request struct {
	s          *SignOff
	by         doorward.Caller
	kind       Kind
	connection doorward.Connection
	token      endtoken.Token
	subject    string // whom it names, for the protocol
	address    string // in subject, canonical; empty: none is there
	userID     string // of that person, once it is known
	isAgain    bool   // the same request has been done before
}

// begin returns the request if the connection is there. Errors: not_found, too_many_attempts, unavailable.
func (s *SignOff) begin(ctx context.Context, by doorward.Caller, kind Kind, conID string) (*request, error) {
	r := &request{s: s, by: by, kind: kind}
	c, err := s.db.Read().Connection(ctx, conID)
	if errors.Is(err, store.ErrNone) || err == nil && c.Type != doorward.OpenIDConnect {
		if err := s.writer.CountWithin(ctx, r.counters()); err != nil {
			return nil, err
		}
		return nil, doorward.Fail(doorward.CodeNotFound, "")
	}
	r.connection = c
	// The connection is the principal from here on: the token is its word.
	r.by.Principal = doorward.Principal{Kind: doorward.ByConnection, ID: c.ID, TenantID: c.TenantID}
	return r, err
}

// verify checks the token by check, which asks the provider for its keys where it has to. Errors: the refusal of the
// kind, provider_unavailable, too_many_attempts, unavailable.
func (r *request) verify(ctx context.Context, check func(context.Context, oidcrp.Discovery) (endtoken.Token, error)) error {
	if r.connection.Status != doorward.ConnectionActive {
		return r.refuse(ctx, oidcrp.Fault{Check: oidcrp.CheckState, Seen: "the connection is " + string(r.connection.Status)})
	}
	asking, cancel := provider.WhileAsking(ctx)
	defer cancel()
	d, err := r.s.providers.Discovery(asking, r.connection.ID)
	if err == nil {
		r.token, err = check(asking, d)
	}
	fault, isFault := errors.AsType[*oidcrp.Fault](err)
	switch {
	case isFault && fault.Unavailable:
		r.stray(ctx, outage, *fault)
		return provider.Unavailable(fault)
	case isFault:
		return r.refuse(ctx, *fault)
	}
	return err
}

// counters are those of requests that end refused. They are of one connection, since many customers of a provider share
// its addresses.
func (r *request) counters() []access.Counter {
	return access.ClientCounters("signoff:"+r.connection.ID, r.by, maxRefused, limitWindow)
}

// refuse counts the refusal, records it, and returns the error of the kind. Errors: too_many_attempts, unavailable.
func (r *request) refuse(ctx context.Context, f oidcrp.Fault) error {
	if err := r.s.writer.CountWithin(ctx, r.counters()); err != nil {
		return err
	}
	reason := r.kind.refusal(f)
	switch {
	case r.connection.Status != doorward.ConnectionActive || slices.Contains(unsignedChecks, f.Check):
		r.stray(ctx, unsigned, f)
	case slices.Contains(elsewhereChecks, f.Check):
		r.stray(ctx, elsewhere, f)
	default:
		r.record(ctx, doorward.AttemptRefused, f)
	}
	return reason
}

// record writes the entry of the protocol. Nothing depends on whether that succeeds.
func (r *request) record(ctx context.Context, outcome doorward.AttemptOutcome, f oidcrp.Fault) {
	r.s.tally.add(r.kind, outcome)
	r.s.providers.Record(ctx, doorward.Attempt{
		ConnectionID: r.connection.ID, Kind: doorward.AttemptRevoke, Outcome: outcome, Check: f.Check, Seen: f.Seen, Advice: f.Advice,
		Subject: r.subject, UserID: r.userID, Address: r.address, Count: 1, RequestIDs: []string{r.by.RequestID},
	})
}

// Sweep deletes what is known of sign-ins that are long over. Errors: unavailable.
func (s *SignOff) Sweep(ctx context.Context) error {
	return s.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
		return tx.DeleteEndedSignIns(ctx, tx.Now.Add(-endsKept), limit)
	})
}

// What end finds out in its transaction, which then writes nothing.
var (
	errUsed = errors.New("signoff: the token was used before")
	errOver = errors.New("signoff: the connection has another provider by now, or is not active any more")
)

// end uses the token up and calls write, in one transaction under the lock on the tenant, and returns when that holds on every node.
// If it can't be confirmed, the token stays good. write reports whether the request is answered as done: only then the same
// one is, too. named is what the request names beside the token. Errors: the refusal of the kind for a token that was used;
// too_many_attempts, unavailable.
func (r *request) end(ctx context.Context, named string, write func(*access.Tx) (isDone bool, err error)) (doorward.Revocation, error) {
	isUsed := false
	revocation, err := r.s.writer.Do(ctx, r.by, doorward.SessionEnd, provider.Object(r.connection), func(tx *access.Tx) error {
		isUsed = false
		if err := r.useUp(ctx, tx, named); err != nil {
			return err
		}
		if r.isAgain {
			tx.SkipEvent()
			return nil
		}
		isUsed = true
		isDone, err := write(tx)
		if err == nil && isDone {
			_, err = tx.UseState(ctx, r.hash(named), r.token.Until)
		}
		return err
	})
	switch {
	case errors.Is(err, errUsed):
		return revocation, r.refuse(ctx, oidcrp.Fault{Check: oidcrp.CheckState, Seen: "a token that was used before", Advice: oidcrp.AdviceProvider})
	case errors.Is(err, errOver):
		return revocation, r.refuse(ctx, oidcrp.Fault{Check: oidcrp.CheckState, Seen: "another provider by now"})
	case err != nil && isUsed:
		r.release(ctx, named)
	case err == nil && r.isAgain:
		err = r.s.writer.CountWithin(ctx, r.counters())
	}
	return revocation, err
}

// done writes the entry of a request that has succeeded.
func (r *request) done(ctx context.Context) {
	f := oidcrp.Fault{}
	if r.isAgain {
		f = oidcrp.Fault{Check: oidcrp.CheckState, Seen: "a token that was used before: nothing was ended again"}
	}
	r.record(ctx, doorward.AttemptDone, f)
}

// useUp locks the tenant and the connection as it was when the token was checked, and uses the token up, or finds out that the
// same request has been done. Errors: errOver, errUsed for another request with the token, too_many_attempts.
func (r *request) useUp(ctx context.Context, tx *access.Tx, named string) error {
	if err := tx.LockTenant(ctx, r.connection.TenantID); err != nil {
		return err
	}
	current, err := tx.Connection(ctx, r.connection.ID)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	was, is := r.connection.InForce, current.InForce
	if err != nil || current.Status != doorward.ConnectionActive || was.Issuer != is.Issuer || was.ClientID != is.ClientID {
		return errOver
	}
	r.connection, r.isAgain = current, false
	isFirst, err := tx.UseState(ctx, r.hash(""), r.token.Until)
	if err != nil {
		return err
	}
	if isFirst {
		_, err = access.HitCounters(ctx, tx.Tx, []access.Counter{{Bucket: "ends:" + current.ID, Limit: maxAccepted, Window: limitWindow}})
		return err
	}
	isOther, err := tx.UseState(ctx, r.hash(named), r.token.Until) // rolled back, if it is
	if err == nil && isOther {
		err = errUsed
	}
	r.isAgain = err == nil
	return err
}

// hash is what used_states has of the token, or of a request that was done, which has also named somebody. Kinds are apart: a
// provider may count its tokens of each.
func (r *request) hash(named string) []byte {
	text := "end\x00" + string(r.kind) + "\x00" + r.connection.ID + "\x00" + r.connection.InForce.Issuer + "\x00" + r.token.ID
	if named != "" {
		text += "\x00done\x00" + named
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// release makes the token good again, so that the provider can send it once more after a fault.
func (r *request) release(ctx context.Context, named string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), provider.WriteWithin)
	defer cancel()
	// An error leaves the token used up: the provider makes another one.
	_ = r.s.writer.Upkeep(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.ReleaseState(ctx, r.hash("")), tx.ReleaseState(ctx, r.hash(named)))
	})
}
