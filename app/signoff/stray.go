package signoff

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
)

// strayKind is a kind of requests that anybody can send without a limit, or with another's token. The protocol has one
// entry a minute, node and kind for them, with their number and without whom they name: else the sender could push out
// the entries of the provider itself. The kinds are apart, so that bad tokens hide no fault of the provider's set-up.
type strayKind int

const (
	unsigned  strayKind = iota // the provider has not signed it, as far as anybody can tell
	elsewhere                  // it has, for another service: it may sign for many
	outage                     // the provider's keys can't be read
	strayKinds
)

// The checks that fail for tokens that the provider has not signed, and for those that it has signed for others.
var (
	unsignedChecks  = []string{oidcrp.CheckAlg, oidcrp.CheckKid, oidcrp.CheckSignature}
	elsewhereChecks = []string{oidcrp.CheckProvider, oidcrp.CheckIss, oidcrp.CheckAud}
)

// overdue are the faults of the entries of which no request is at hand any more.
var overdue = [strayKinds]oidcrp.Fault{
	unsigned:  {Check: oidcrp.CheckSignature, Advice: oidcrp.AdviceKeys},
	elsewhere: {Check: oidcrp.CheckAud, Advice: oidcrp.AdviceClientID},
	outage:    {Check: oidcrp.CheckSignature, Advice: oidcrp.AdviceRetry},
}

// outcome returns how requests of the kind end.
func (k strayKind) outcome() doorward.AttemptOutcome {
	if k == outage {
		return doorward.AttemptUnavailable
	}
	return doorward.AttemptRefused
}

// stray counts the request, and writes the entry if one is due.
func (r *request) stray(ctx context.Context, kind strayKind, f oidcrp.Fault) {
	r.s.tally.add(r.kind, kind.outcome())
	if n := r.s.strays[kind].Take(r.connection.ID, r.s.db.Now()); n > 0 {
		r.s.recordStrays(ctx, kind, r.connection.ID, n, f, r.by.RequestID)
	}
}

// recordStrays writes the entry for n requests.
func (s *SignOff) recordStrays(ctx context.Context, kind strayKind, conID string, n int, f oidcrp.Fault, requestIDs ...string) {
	s.providers.Record(ctx, doorward.Attempt{
		ConnectionID: conID, Kind: doorward.AttemptRevoke, Outcome: kind.outcome(), Check: f.Check, Seen: f.Seen, Advice: f.Advice,
		Count: n, RequestIDs: requestIDs,
	})
}

// WriteStrays writes the entries for what this node has counted and not written for more than a minute. It returns nil.
func (s *SignOff) WriteStrays(ctx context.Context) error {
	for kind := range strayKinds {
		for conID, n := range s.strays[kind].Overdue(s.db.Now()) {
			s.recordStrays(ctx, kind, conID, n, overdue[kind])
		}
	}
	return nil
}
