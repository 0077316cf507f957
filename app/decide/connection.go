package decide

import (
	"time"

	"github.com/doorward/doorward"
)

// mayByConnection decides for a session that a connection vouches for on an action that a proof allows. What
// belongs to the account, or to a membership in another tenant, takes a session that Doorward itself vouches
// for, with two exceptions: an account that the tenant manages has its own factors and export; and a person who
// can get no other session does everything but switch, after proving what the account has (ProvedOwn).
func mayByConnection(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	isElsewhere := on.TenantID != "" && on.TenantID != p.TenantID
	switch {
	case verb.Scope != doorward.OfAccount && !(verb.Scope == doorward.OfMembership && isElsewhere):
		return yes(ReasonProof)
	case p.IsManaged && verb.Action == doorward.AccountEmail:
		return no(ReasonManaged)
	case p.IsManaged && (verb.Action == doorward.MFAEnrol || verb.Action == doorward.MFARemove || verb.Action == doorward.AccountExport):
		return yes(ReasonProof)
	case p.HasNoOwnSession && CanProve(p, verb.Action):
		return yes(ReasonProof)
	}
	return no(ReasonIssuer)
}

// CanProve reports whether the person, if no active tenant opens a session by the password, may prove the
// password for an action that was refused for the session's issuer. A connection's session never becomes
// one of another tenant.
func CanProve(p *doorward.Principal, action doorward.Action) bool {
	return p.Issuer != doorward.OwnIssuer && p.HasPassword && action != doorward.SessionOpen && action != doorward.SessionEnd
}

// isOwnersAlone reports whether the word of a connection is no proof for the action: it would let a
// provider take over the tenant.
func isOwnersAlone(verb *doorward.Verb) bool {
	return verb.By == doorward.ByRole && (verb.Permission == doorward.TenantDestroy || verb.Permission == doorward.SSOManage)
}

// isOfAccount reports whether the action is of a person on the own account or on a membership elsewhere.
func isOfAccount(p *doorward.Principal, verb *doorward.Verb) bool {
	return verb.By == doorward.ByProof && (verb.Scope == doorward.OfAccount || p.HasNoOwnSession)
}

// concerns is Concerns for an action. In a session of a connection more actions demand a proof, for which
// the connection's word is not enough.
func concerns(p *doorward.Principal, verb *doorward.Verb) bool {
	if p.Issuer != doorward.OwnIssuer && (isOwnersAlone(verb) && verb.Proof != doorward.NoProof || p.HasNoOwnSession && isOfAccount(p, verb)) {
		return true
	}
	return Concerns(verb.Proof, p)
}

// provedFor decides whether the proofs of the session are enough for an action that demands one.
func provedFor(p *doorward.Principal, verb *doorward.Verb, now time.Time) Decision {
	if p.Issuer != doorward.OwnIssuer && (isOwnersAlone(verb) || isOfAccount(p, verb)) {
		return ProvedOwn(p, now)
	}
	return Proved(p, 1, p.MaxProofAge, now)
}

// ProvedOwn is Proved for what the word of a connection is no proof of: it asks for what the account itself
// has, its factor or else its password, and for both where no tenant opens a session by the password. Only
// where the account has neither does the connection's proof count. Other sessions are judged by Proved.
func ProvedOwn(p *doorward.Principal, now time.Time) Decision {
	isRecent := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) <= p.MaxProofAge }
	switch {
	case p.Kind != doorward.ByUser || p.Issuer == doorward.OwnIssuer:
		return Proved(p, 1, p.MaxProofAge, now)
	case p.HasPassword && (!p.HasFactor || p.HasNoOwnSession) && !isRecent(p.PasswordAt):
		return stepUpBy(1, p.MaxProofAge, []string{doorward.ByPassword})
	case p.HasFactor && !isRecent(p.FactorAt):
		return stepUpBy(2, p.MaxProofAge, factorsOf(p))
	case p.HasPassword || p.HasFactor || isRecent(p.AuthAt):
		return yes(ReasonProof)
	}
	return stepUpBy(1, p.MaxProofAge, []string{doorward.BySSO})
}

// provedByConnection is Proved for a session that a connection vouches for: a new sign-in at its provider
// proves it, and a factor of an account that the tenant manages. Level 2 takes a factor of the account.
func provedByConnection(p *doorward.Principal, aal int, maxAge time.Duration, now time.Time) Decision {
	at, methods := p.AuthAt, []string{doorward.BySSO}
	switch {
	case aal > 1:
		at, methods = p.FactorAt, factorsOf(p)
	case p.IsManaged:
		methods = append(methods, factorsOf(p)...)
	}
	if !at.IsZero() && now.Sub(at) <= maxAge {
		return yes(ReasonProof)
	}
	return stepUpBy(aal, maxAge, methods)
}
