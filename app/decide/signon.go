package decide

import "github.com/doorward/doorward"

// Admission is what a tenant's demand for sign-on says of a proof of identity.
type Admission uint8

// The admissions.
const (
	Admitted  Admission = iota
	Bypassing           // an OWNER, by a way back
	AskFactor           // an OWNER, who needs the second factor for that, whatever browser is remembered
	ToSignOn            // only by the sign-on of the tenant: sso_required
	ShutOut             // a guest: guests_refused
)

// SignOn says whether a tenant's demand for sign-on admits a member by a proof of identity. It is the only
// function that says so: for sign-ins, switches and what an administrator is shown about them.
func SignOn(p doorward.SSOPolicy, m doorward.SSOMember, a doorward.Assurance) Admission {
	isGuest := !m.IsCovered()
	switch {
	case p.Mode != doorward.SSORequired, a.Issuer != doorward.OwnIssuer, isGuest && !p.GuestsRefused:
		return Admitted
	case m.HasWayBack && a.AAL > 1:
		return Bypassing
	case m.HasWayBack:
		return AskFactor
	case isGuest:
		return ShutOut
	}
	return ToSignOn
}

// Err returns the refusal; nil for those who are admitted, or asked for a factor.
func (a Admission) Err(connectionID string) error {
	switch a {
	case ToSignOn:
		return &doorward.Error{Code: doorward.CodeSSORequired, ConnectionID: connectionID}
	case ShutOut:
		return doorward.Fail(doorward.CodeGuestsRefused, "")
	}
	return nil
}
