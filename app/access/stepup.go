package access

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// concerns reports whether the principal has to meet the demand.
func concerns(demand doorward.Demand, p *doorward.Principal) bool {
	switch demand {
	case doorward.NoProof:
		return false
	case doorward.ProofIfDemanded:
		return p.HasFactor || p.DemandsFactor
	case doorward.ProofIfFactor:
		return p.HasFactor
	}
	return true
}

// requireProofByRule returns d, or a refusal if the action is sensitive and the user has not
// proved their identity recently. Keys, services and operators need no proof.
func requireProofByRule(by *doorward.Caller, action doorward.Action, now time.Time, d Decision) Decision {
	if !d.Allowed || by.Kind != doorward.ByUser || by.SessionID == "" {
		return d
	}
	if verb, _ := by.Rules.Model().Lookup(action); !concerns(verb.Proof, &by.Principal) {
		return d
	}
	return requireProofOf(by, now, d)
}

// requireProofOf is RequireProof with the tenant's maximum age. It notes the demand for replays of the
// call.
func requireProofOf(by *doorward.Caller, now time.Time, d Decision) Decision {
	if by.Idempotent != nil {
		by.Idempotent.NeededProof = true
	}
	return RequireProof(&by.Principal, 1, by.MaxProofAge, now, d)
}

// RequireProof returns d, or a refusal if the user's proof of identity is older than maxAge or has
// a lower assurance level. A user with a second factor must prove that factor: a remembered
// browser is not enough.
func RequireProof(p *doorward.Principal, aal int, maxAge time.Duration, now time.Time, d Decision) Decision {
	at := p.AuthAt
	if p.HasFactor {
		aal = 2
	}
	if aal > 1 {
		at = p.FactorAt
	}
	if !d.Allowed || p.Kind != doorward.ByUser || !at.IsZero() && now.Sub(at) <= maxAge {
		return d
	}
	return Decision{Reason: ReasonStepUp, proof: &doorward.ProofNeeded{AAL: aal, MaxAge: maxAge, Methods: methodsOf(p, aal)}}
}

// RequireProofFor returns d, a decision of CanCheckAt for a service. If the model demands a recent
// proof for the action and there is none, it returns a refusal.
func RequireProofFor(p *doorward.Principal, now func() time.Time, d Decision) Decision {
	if !d.stepUp {
		return d
	}
	return RequireProof(p, 1, p.MaxProofAge, now(), d)
}

// NeedProof demands a recent proof for one case of an action that isn't always sensitive, such as
// an edit of an API key that adds permissions. Errors: step_up_required.
func (tx *Tx) NeedProof() error {
	if tx.By.SessionID == "" {
		return nil
	}
	return requireProofOf(&tx.By, tx.Now, yes(ReasonProof)).Err()
}

// NeedProof is Tx.NeedProof for sensitive reads, such as an export of people.
func (w *Writer) NeedProof(by doorward.Caller) error {
	if by.SessionID == "" {
		return nil
	}
	return requireProofOf(&by, w.db.Now(), yes(ReasonProof)).Err()
}

// NeedFactor returns step_up_required if the user has a second factor that the session doesn't include.
// Unlike NeedProof it takes a proof of any age.
func NeedFactor(p *doorward.Principal) error {
	if !(doorward.Assurance{AAL: p.AAL}).LacksFactor(p.HasFactor) {
		return nil
	}
	return factorNeeded(p)
}

// NeedFactorNow returns step_up_required unless the caller's session, read again, includes a second
// factor, proved at any time. Errors: unauthenticated, unavailable.
func (tx *Tx) NeedFactorNow(ctx context.Context) error {
	by, err := rereadCaller(ctx, tx.Tx, tx.By)
	if err == nil && by.AAL < 2 {
		err = factorNeeded(&by.Principal)
	}
	return err
}

func factorNeeded(p *doorward.Principal) error {
	return Decision{Reason: ReasonStepUp, proof: &doorward.ProofNeeded{AAL: 2, MaxAge: p.MaxProofAge, Methods: methodsOf(p, 2)}}.Err()
}

// methodsOf returns the methods by which the user can prove the level.
func methodsOf(p *doorward.Principal, aal int) []string {
	methods := []string{}
	if aal < 2 {
		methods = append(methods, doorward.ByPassword)
	}
	if p.HasCode {
		methods = append(methods, doorward.ByCode)
	}
	if p.HasPasskey {
		methods = append(methods, doorward.ByPasskey)
	}
	if p.HasFactor && len(methods) == 0 { // all factors are disabled
		methods = append(methods, doorward.ByRecovery)
	}
	return methods
}

func (d Decision) stepUpError() *doorward.Error {
	e := doorward.Fail(doorward.CodeStepUpRequired, "")
	e.Proof = d.proof
	return e
}
