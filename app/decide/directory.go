package decide

import "github.com/doorward/doorward"

// mayByDirectory decides for the directory of a connection: verbs that are marked for it, on people of its tenant,
// while the connection is enabled. It gives no role above ADMIN, and takes none away.
func mayByDirectory(p *doorward.Principal, verb *doorward.Verb, q *Question) Decision {
	switch {
	case q.On.TenantID != p.TenantID:
		return no(ReasonForeign)
	case !verb.Directory || p.IsDraft:
		return no(ReasonCredential)
	case q.On.Granted != "" && p.Rules.Rank(q.On.Granted).Outranks(doorward.RoleAdmin):
		return no(ReasonRank)
	case isTenantUnusable(p, verb.AllowedWhileClosing):
		return Decision{Reason: ReasonTenant, detail: string(p.TenantStatus)}
	}
	return yes(ReasonProof)
}
