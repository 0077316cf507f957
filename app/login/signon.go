package login

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// signOn refuses what the tenant's demand for sign-on doesn't admit. Where an OWNER takes a way back, it
// sets the step to the second factor, whatever browser is remembered. A connection must sign people in
// still: it may have been disabled, or the mode set to off, since it proved who somebody is.
func (next *Admission) signOn(ctx context.Context, tx *access.Tx) error {
	if issuer := next.Assurance.Issuer; issuer != doorward.OwnIssuer {
		return checkConnection(ctx, tx, string(issuer), next.User.TenantID)
	}
	admission, err := judgeSignOn(ctx, tx.Reader, tx.Now, next.User, next.Assurance)
	switch admission {
	case decide.Bypassing:
		next.Bypasses = true
	case decide.AskFactor:
		next.Step, next.Assurance.Remembered = Second, false
	}
	return err
}

// checkConnection returns sign_in_required unless the tenant's connection signs people in.
func checkConnection(ctx context.Context, tx *access.Tx, id, tenantID string) error {
	isActive, err := tx.ConnectionIsActive(ctx, id, tenantID)
	if err != nil {
		return err
	}
	policy, err := tx.SSOPolicy(ctx, tenantID, tx.Now)
	if err == nil && !(isActive && policy.SignsIn()) {
		err = doorward.Fail(doorward.CodeSignInRequired, "This sign-on signs nobody in any more.")
	}
	return err
}

// judgeSignOn says whether the demand for sign-on in the tenant of a membership admits its user by the
// proof. The error is also that of a refusal: sso_required, guests_refused; unavailable.
func judgeSignOn(ctx context.Context, read store.Reader, now time.Time, u doorward.User, a doorward.Assurance) (decide.Admission, error) {
	policy, err := read.SSOPolicy(ctx, u.TenantID, now)
	if err != nil || policy.Mode != doorward.SSORequired {
		return decide.Admitted, err
	}
	m, err := read.SSOMember(ctx, u.TenantID, u.ID)
	if err != nil {
		return decide.Admitted, err
	}
	admission := decide.SignOn(policy, m, a)
	home := m.ConnectionID()
	if admission == decide.ToSignOn && home == "" {
		if home, err = read.SSODefaultHome(ctx, u.TenantID); err != nil && !errors.Is(err, store.ErrNone) {
			return admission, err
		}
	}
	return admission, admission.Err(home)
}

// recordBypass records that an OWNER signs in by a way back, and tells all OWNERs.
func recordBypass(ctx context.Context, tx *access.Tx, u doorward.User) error {
	to, err := access.EmailsOf(ctx, tx.Reader, u.TenantID, doorward.RoleOwner)
	if err != nil {
		return err
	}
	on := doorward.Object{Type: "user", ID: u.ID, TenantID: u.TenantID}
	return tx.NotifyAlso(ctx, store.MailSSOBypass, to, doorward.SSOBypass, on, doorward.Change{Field: doorward.FieldUserAgent, To: tx.By.UserAgent})
}
