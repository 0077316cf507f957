package decide

import (
	"time"

	"github.com/doorward/doorward"
)

// withProof returns d, or a refusal if the action demands a proof of the principal's identity and the
// last one isn't recent. Only people can be asked for one.
func (d Decision) withProof(p *doorward.Principal, verb *doorward.Verb, now doorward.Clock) Decision {
	if !d.Allowed || p.Kind != doorward.ByUser || !concerns(p, verb) {
		return d
	}
	if proved := provedFor(p, verb, now()); !proved.Allowed {
		proved.verb, proved.permit = verb, d.permit
		d = proved
	}
	d.DemandsProof = true
	return d
}

// BeforeProof returns the decision without the proof of identity that it demands.
func (d Decision) BeforeProof() Decision {
	switch {
	case !d.DemandsProof || d.Allowed:
		return d
	case d.permit != nil:
		return Decision{Allowed: true, Reason: ReasonPolicy, permit: d.permit}
	case d.verb.By == doorward.ByProof:
		return yes(ReasonProof)
	}
	return yes(ReasonRole)
}

// Concerns reports whether the principal has to meet the demand.
func Concerns(demand doorward.Demand, p *doorward.Principal) bool {
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

// Proved decides whether a person's proof of identity is as recent as maxAge at now, and has the
// assurance level. Somebody with a second factor must have proved that factor: a remembered browser is
// not enough. Of others than people no proof is demanded.
func Proved(p *doorward.Principal, aal int, maxAge time.Duration, now time.Time) Decision {
	if p.Kind == doorward.ByUser && p.Issuer != doorward.OwnIssuer {
		return provedByConnection(p, aal, maxAge, now)
	}
	at := p.AuthAt
	if p.HasFactor {
		aal = 2
	}
	if aal > 1 {
		at = p.FactorAt
	}
	if p.Kind != doorward.ByUser || !at.IsZero() && now.Sub(at) <= maxAge {
		return yes(ReasonProof)
	}
	return stepUp(p, aal, maxAge)
}

// NeedFactor returns the refusal for a session that lacks a second factor, proved at any time.
func NeedFactor(p *doorward.Principal) Decision { return stepUp(p, 2, p.MaxProofAge) }

func stepUp(p *doorward.Principal, aal int, maxAge time.Duration) Decision {
	methods := factorsOf(p)
	if aal < 2 {
		methods = append([]string{doorward.ByPassword}, methods...)
	}
	return stepUpBy(aal, maxAge, methods)
}

// stepUpBy refuses until the user proves the level by one of the methods.
func stepUpBy(aal int, maxAge time.Duration, methods []string) Decision {
	return Decision{Reason: ReasonStepUp, proof: &doorward.ProofNeeded{AAL: aal, MaxAge: maxAge, Methods: methods}}
}

// factorsOf returns the methods by which the user can prove a second factor.
func factorsOf(p *doorward.Principal) []string {
	methods := []string{}
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
