package decide

import "github.com/doorward/doorward"

// mayBySetupLink decides for a set-up link: verbs that are marked for it, on what belongs to its connection, as
// far as its maker may.
func mayBySetupLink(p *doorward.Principal, verb *doorward.Verb, q *Question) Decision {
	switch {
	case q.On.TenantID != p.TenantID:
		return no(ReasonForeign)
	case !verb.SetupLink:
		return no(ReasonLink)
	case p.ConnectionID == "" || q.On.ConnectionID != p.ConnectionID:
		return no(ReasonForeign) // it isn't told what else there is
	case IsSetupLinkOver(p):
		return no(ReasonLink)
	case verb.By == doorward.ByProof:
		return yes(ReasonProof)
	}
	return mayMember(p, verb, q)
}

// IsSetupLinkOver reports whether the principal of a set-up link may do nothing any more, since its maker may no
// longer manage sign-on, or the tenant can't be used. Policies of the moment don't end it.
func IsSetupLinkOver(p *doorward.Principal) bool {
	verb, _ := p.Rules.Model().Lookup(doorward.SSOManage)
	return !p.Permissions.Allow(verb) || isTenantUnusable(p, false)
}
