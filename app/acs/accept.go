package acs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// accept judges the response, and keeps what it says for the browser. Errors: a *fault.Fault or *answer.Fault; those of
// provider.Client.ReadySAML.
func (r *Receiver) accept(ctx context.Context, by doorward.Caller, conID string, response samlsp.Response, received *Received) error {
	accepted, said, err := r.judge(ctx, by, conID, response)
	if err != nil {
		received.Said = few(answer.OfSAML(said))
		return err
	}
	accepted.Asserted, accepted.Pending, accepted.SignedBy = answer.OfSAML(said), response.Trial, said.SignedBy
	return r.keep(ctx, conID, said, accepted, received)
}

// judgedMost is how often a response is judged, each time by what was read since.
const judgedMost = 6

// judge judges the response by what the connection signs in by now; if it is signed by none of the certificates, again
// each time that the provider's metadata were read since, for some seconds. If they can't be read, that is no refusal.
// What can be known without the signature, such as the audience, isn't checked before a reading: everybody who has begun
// a sign-in knows what to write there.
func (r *Receiver) judge(ctx context.Context, caller doorward.Caller, conID string, response samlsp.Response) (accepted Accepted, said samlsp.Asserted, err error) {
	arrived := r.db.Now()
	for times := 1; ; times++ {
		judged := r.db.Now()
		accepted.By, said, err = r.judgeOnce(ctx, caller, conID, response)
		f, isFault := errors.AsType[*fault.Fault](err)
		if !isFault || !f.ReadAgain || slices.Contains(accepted.By.RemovedCertificates, f.Signer) {
			return accepted, said, err
		}
		if times == judgedMost {
			return accepted, said, f
		}
		isRead, readErr := r.readAgain(ctx, provider.Unknown{
			ConnectionID: conID, Pending: response.Trial, Signer: f.Signer, Client: doorward.Network(caller.IP), Arrived: arrived, Judged: judged,
		})
		if !isRead {
			return accepted, said, unavailableIf(readErr, f)
		}
	}
}

// judgeOnce judges the response by what the connection signs in by now, which it returns.
func (r *Receiver) judgeOnce(ctx context.Context, caller doorward.Caller, conID string, response samlsp.Response) (by doorward.ConnectionParameters, said samlsp.Asserted, err error) {
	config, by, err := r.providers.ReadySAML(ctx, conID, response.Trial)
	if err != nil {
		return by, said, changedIf(err)
	}
	err = r.judging.do(ctx, func() error {
		// Once more: those before it, from the same address, may have been refused while it waited.
		if err := access.CheckCounters(ctx, r.db, counters(caller)); err != nil {
			return err
		}
		said, err = samlsp.Finish(config, response, r.db.Now())
		return err
	})
	return by, said, err
}

// changedIf returns the fault of a request by parameters that the connection doesn't have any more.
func changedIf(err error) error {
	if doorward.HasCode(err, doorward.CodeNotFound) || doorward.HasCode(err, doorward.CodeValidationFailed) {
		return &answer.Fault{Check: fault.CheckInResponseTo, Seen: "the connection has changed since", Advice: fault.AdviceStartAgain}
	}
	return err
}

// readAgain reads the provider's metadata, with time left for an answer, and reports whether they have changed.
func (r *Receiver) readAgain(ctx context.Context, u provider.Unknown) (bool, error) {
	asking, cancel := provider.WhileAsking(ctx)
	defer cancel()
	return r.providers.ReadMetadataAgain(asking, u)
}

// unavailableIf returns the fault of a response that may be right, since the provider's metadata can't be read; or else
// f, which refuses it.
func unavailableIf(err error, f *fault.Fault) error {
	switch {
	case err == nil:
		return f
	case doorward.HasCode(err, doorward.CodeProviderUnavailable):
		return &answer.Fault{Check: f.Check, Seen: f.Seen, Wanted: f.Wanted, Advice: fault.AdviceRetry, Unavailable: true, Err: err}
	}
	return err
}

// keep writes the assertion's row, sealed by a key that goes with the browser. A form that is posted again, such as by a
// double click, leads to the same row, while that waits. Errors: a *fault.Fault for an assertion that was accepted before,
// otherwise.
func (r *Receiver) keep(ctx context.Context, conID string, said samlsp.Asserted, accepted Accepted, received *Received) error {
	text, err := json.Marshal(accepted)
	if err != nil {
		return doorward.Unavailable(err)
	}
	received.Waits, received.Secret = hashOf(conID, said.AssertionID), secretOf(said)
	row := store.SAMLAssertion{
		Hash: received.Waits, ConnectionID: conID, Said: keyOf(received.Secret).Seal(placeOf(conID), text),
		WaitsUntil: r.db.Now().Add(waitWithin), EndsAt: said.AcceptedUntil.Add(clocksApart),
	}
	waits := false
	err = r.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		if waits, err = tx.InsertSAMLAssertion(ctx, row); err != nil || waits {
			return err
		}
		waits, err = isWaiting(ctx, tx, conID, *received)
		return err
	})
	if err == nil && !waits {
		err = replayed()
	}
	return err
}

// isWaiting reports whether the same assertion waits, as an answer to the same request.
func isWaiting(ctx context.Context, tx *store.Tx, conID string, received Received) (bool, error) {
	said, err := tx.SAMLAssertion(ctx, conID, received.Waits)
	if errors.Is(err, store.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = keyOf(received.Secret).Open(placeOf(conID), said)
	return err == nil, nil
}

// secretOf returns the secret of the row's key. The database has neither of what it is made of.
func secretOf(said samlsp.Asserted) []byte {
	sum := sha256.Sum256([]byte(said.RequestID + "\x00" + said.AssertionID))
	return sum[:]
}

func replayed() *fault.Fault {
	return &fault.Fault{Check: fault.CheckReplay, Seen: "an assertion that was used before", Advice: fault.AdviceStartAgain}
}

// hashOf names the assertion of a connection in the database.
func hashOf(conID, assertionID string) []byte {
	sum := sha256.Sum256([]byte(conID + "\x00" + assertionID))
	return sum[:]
}

func keyOf(secret []byte) seal.Key { return seal.KeyFrom(sha256.Sum256(secret)) }

func placeOf(conID string) seal.Place {
	return seal.Place{Table: "saml_assertions", ID: conID, Column: "said"}
}

// Use returns what waits for the browser, and uses it up. Errors: *answer.Fault with the check replay if that was done
// before, on any node, or it has waited too long; unavailable.
func (r *Receiver) Use(ctx context.Context, tx *store.Tx, conID string, received Received) (accepted Accepted, err error) {
	said, err := tx.UseSAMLAssertion(ctx, conID, received.Waits)
	if errors.Is(err, store.ErrNone) {
		return accepted, answer.FaultOfSAML(replayed())
	}
	if err != nil {
		return accepted, err
	}
	text, err := keyOf(received.Secret).Open(placeOf(conID), said)
	if err == nil {
		err = json.Unmarshal(text, &accepted)
	}
	if err != nil {
		return accepted, doorward.Unavailable(err)
	}
	return accepted, nil
}

// Limits of what the address carries of a response that was refused, for a test to show: with it the address stays below
// the 8,000 bytes that RFC 9110, section 4.1, asks everybody to take.
const (
	fewNames  = 10
	fewValues = 2
	fewBytes  = 3000
)

// few returns what is said, cut.
func few(a answer.Asserted) answer.Asserted {
	cut := answer.Asserted{Passed: a.Passed, Claims: map[string]any{}}
	for name, value := range a.Claims {
		texts, _ := value.([]string)
		most := fewValues
		if name == answer.AttributeNames {
			most = fewNames
		}
		cut.Claims[name] = texts[:min(len(texts), most)]
	}
	if text, err := json.Marshal(cut.Claims); err != nil || len(text) > fewBytes {
		cut.Claims = nil
	}
	return cut
}

// Trusts reports whether all of the certificates, by their fingerprints, are the connection's still. Read it in the
// transaction that goes on by their word. Errors: unavailable.
func (r *Receiver) Trusts(ctx context.Context, read store.Reader, conID string, signedBy []string) (bool, error) {
	if len(signedBy) == 0 { // OpenID Connect
		return true, nil
	}
	con, err := read.Connection(ctx, conID)
	if err != nil {
		return false, err
	}
	kept, err := read.KeptDiscovery(ctx, conID, false)
	if err != nil {
		return false, err
	}
	said, err := samlprovider.Read(kept.Text)
	if err != nil {
		return false, err
	}
	trusted := map[string]bool{}
	for _, certificate := range samlprovider.Without(said, con.InForce.RemovedCertificates).Certificates {
		trusted[certificate.Fingerprint] = true
	}
	return !slices.ContainsFunc(signedBy, func(name string) bool { return !trusted[name] }), nil
}
