package api

import (
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/web/front"
)

type inviteInput struct {
	Email         string     `json:"email" format:"email" example:"ann@acme.example" doc:"Whom to invite"`
	Role          string     `json:"role" example:"USER" doc:"At most one's own role"`
	Name          string     `json:"name,omitempty" example:"Ann Lee" doc:"At most 100 characters"`
	ExpiresInDays *front.Int `json:"expiresInDays,omitempty" minimum:"1" maximum:"30" doc:"1 to 30; if absent 7, or the tenant's maximum if that is lower"`
	Locale        string     `json:"locale,omitempty" example:"en" doc:"Language of the mails to this person (BCP 47): English or German; English for any other"`
}

type invitationView struct {
	ID         string                   `json:"id" example:"inv_3yh4n6rj7wd2c5tpae7kq2m5x7"`
	Email      string                   `json:"email" format:"email"`
	Role       doorward.Role            `json:"role" example:"USER"`
	Name       string                   `json:"name" doc:"Empty when not given"`
	Status     doorward.InvitationState `json:"status" enum:"PENDING,ACCEPTED,REVOKED,EXPIRED"`
	TenantID   string                   `json:"tenantId"`
	InvitedBy  *string                  `json:"invitedBy" nullable:"true" doc:"Id of the user; null for the operator and for services"`
	CreatedAt  time.Time                `json:"createdAt"`
	ExpiresAt  time.Time                `json:"expiresAt"`
	AcceptedAt *time.Time               `json:"acceptedAt,omitempty"`
	RevokedAt  *time.Time               `json:"revokedAt,omitempty"`
	Delivery   doorward.Delivery        `json:"delivery" enum:"queued,sent,failed" doc:"State of the mail"`
}

var docInvite = front.Doc{
	ID: "invite", Tag: "Invitations", Summary: "Invite a person to the tenant",
	Description: "Queues a mail with a link and a code. Nobody can invite to a role above their own. The answer doesn't reveal whether the address has an account elsewhere.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeInvitationPending, doorward.CodeAlreadyMember, doorward.CodeQuotaExceeded, doorward.CodeResendTooSoon},
}

func (a *api) invite(ctx context.Context, c *front.Call, in inviteInput) (doorward.Invitation, error) {
	return a.app.Invitations.Send(ctx, c.Caller, in.offer())
}

func viewNewInvitation(_ *front.Call, inv doorward.Invitation) invitationView {
	return viewInvitation(inv, inv.CreatedAt)
}

// joined is the answer to an accepted invitation: the user in the tenant.
type joined struct {
	User front.User `json:"user"`
}

type completeInput struct {
	Token           string `json:"token" doc:"The code of the invitation mail" example:"3q2-7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWc"`
	Password        string `json:"password" format:"password" doc:"12 (or what the installation sets) to 128 characters, 1,024 bytes at most. It is too_common if it is on the installation's list, as a whole or without the digits and signs at its ends, or is nothing but a sequence or a repetition"`
	ConfirmPassword string `json:"confirmPassword" format:"password" doc:"The password again"`
}

// tokenErrors are the errors of accepting an invitation, by its token and its tenant.
var tokenErrors = []doorward.Code{
	doorward.CodeInvitationNotFound, doorward.CodeInvitationExpired, doorward.CodeInvitationRevoked, doorward.CodeInvitationUsed,
	doorward.CodeTenantFrozen, doorward.CodeTenantClosing,
}

var docCompleteRegistration = front.Doc{
	ID: "completeRegistration", Tag: "Invitations", Summary: "Accept an invitation as a new person",
	Description: "Creates the account with its first password and the membership; opens no session. If the address has an account with a password, it is 409 `account_exists` and changes nothing; an account without a password gets this one. After a 422 the token stays usable.",
	Errors:      append([]doorward.Code{doorward.CodeAccountExists, doorward.CodeManagedAccount, doorward.CodeQuotaExceeded}, tokenErrors...),
}

func (a *api) completeRegistration(ctx context.Context, c *front.Call, in completeInput) (joined, error) {
	user, err := a.app.Invitations.Complete(ctx, c.Caller, in.Token, in.Password, in.ConfirmPassword)
	return joined{front.ViewUser(user)}, err
}

type acceptInput struct {
	Token    string `json:"token" doc:"The code of the invitation mail"`
	Password string `json:"password,omitempty" format:"password" doc:"Current password of the invited account; not needed with a session of it"`
}

var docAcceptInvitation = front.Doc{
	ID: "acceptInvitation", Tag: "Invitations", Summary: "Accept an invitation with an existing account",
	Description: "With a session of the invited address, or with the current password of that account. An account with a second factor proves it, too: the password is answered with `mfa_required` and a challenge for `/accept-invitation/second`, a session that lacks the factor with `step_up_required`. What the invited tenant demands is asked at the next sign-in or switch. Opens no session; a session that accepts stays in its tenant.",
	Errors: append([]doorward.Code{
		doorward.CodeUnauthenticated, doorward.CodeInvalidCredentials, doorward.CodeWrongAccount, doorward.CodeManagedAccount, doorward.CodeTooManyAttempts, doorward.CodeMFARequired, doorward.CodeStepUpRequired, doorward.CodeSignInRequired,
		doorward.CodeAlreadyMember, doorward.CodeQuotaExceeded,
	}, tokenErrors...),
}

func (a *api) acceptInvitation(ctx context.Context, c *front.Call, in acceptInput) (joined, error) {
	outcome, err := a.app.Invitations.Accept(ctx, c.Caller, in.Token, in.Password)
	if err != nil {
		return joined{}, err
	}
	switch o := outcome.(type) {
	case invite.SecondNeeded:
		return joined{}, challengeError(doorward.CodeMFARequired, o.NewChallenge)
	case invite.Joined:
		return viewJoined(c, o), nil
	}
	panic(fmt.Sprintf("api: no answer to the outcome %T", outcome))
}

func viewJoined(c *front.Call, j invite.Joined) joined {
	c.SetAllowance(j.Allowance)
	return joined{front.ViewUser(j.User)}
}

type acceptSecondInput struct {
	Token        string         `json:"token" doc:"The code of the invitation mail"`
	Challenge    string         `json:"challenge" doc:"From the answer with the code mfa_required"`
	Code         string         `json:"code,omitempty" example:"492039" doc:"From the authenticator app (method totp)"`
	Credential   front.WebAuthn `json:"credential,omitempty" doc:"Method passkey: what the browser's PublicKeyCredential.toJSON() gives for the options publicKey"`
	RecoveryCode string         `json:"recoveryCode,omitempty" example:"MZXW-6YTB-OI4D-Q2LT-NFZX-I5DF" doc:"Method recovery; each is good once"`
}

var docAcceptSecond = front.Doc{
	ID: "acceptInvitationSecond", Tag: "Invitations", Summary: "Accept an invitation with the second factor",
	Description: "Completes an acceptance that was answered with `mfa_required`. One of `code`, `credential` and `recoveryCode` is needed. Wrong answers count in the limit of the account, as wrong passwords do. A challenge is good once, for this invitation, 5 minutes and 5 tries. Opens no session.",
	Errors: append([]doorward.Code{
		doorward.CodeInvalidCode, doorward.CodeChallengeOver, doorward.CodeTooManyAttempts, doorward.CodeAlreadyMember, doorward.CodeQuotaExceeded,
	}, tokenErrors...),
}

func (a *api) acceptInvitationSecond(ctx context.Context, c *front.Call, in acceptSecondInput) (joined, error) {
	if in.Token == "" { // names the other missing members, too
		answer := in.Code + in.RecoveryCode + string(in.Credential.Text())
		return joined{}, required(field{"/token", in.Token}, field{"/challenge", in.Challenge}, field{"/code", answer})
	}
	answer, err := oneAnswer(in.Challenge, "", factor.Answer{Code: in.Code, RecoveryCode: in.RecoveryCode, Passkey: in.Credential.Text()})
	if err != nil {
		return joined{}, err
	}
	done, err := a.app.Invitations.AcceptSecond(ctx, c.Caller, in.Token, in.Challenge, answer)
	if err != nil {
		return joined{}, err
	}
	return viewJoined(c, done), nil
}
