package api

import (
	"cmp"
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/internal/qrsvg"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/web/front"
)

// factorView is a second factor as its owner sees it.
type factorView struct {
	ID         string              `json:"id" example:"mfa_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	Type       doorward.FactorKind `json:"type" enum:"totp,passkey"`
	Name       string              `json:"name"`
	CreatedAt  time.Time           `json:"createdAt"`
	LastUsedAt *time.Time          `json:"lastUsedAt,omitempty" doc:"Absent before the first use"`
	Synced     *bool               `json:"synced,omitempty" doc:"Only for a passkey: whether it is synced between devices"`
	DisabledAt *time.Time          `json:"disabledAt,omitempty" doc:"Only for a passkey that was found to be cloned, for what was set up around a change of the address that was undone, and for what is lost: since when it can't be used. It goes on to count as a factor"`
	Lost       bool                `json:"lost,omitempty" doc:"Only for an authenticator app whose secret was lost with the master key of the installation: set up another factor, then remove it"`
}

func viewFactor(f doorward.Factor) factorView {
	v := factorView{ID: f.ID, Type: f.Kind, Name: f.Name, CreatedAt: f.CreatedAt, LastUsedAt: f.LastUsedAt, DisabledAt: f.DisabledAt, Lost: f.IsLost}
	if f.Kind == doorward.Passkey {
		v.Synced = &f.Synced
	}
	return v
}

type factorList struct {
	Items         []factorView `json:"items"`
	RecoveryCodes int          `json:"recoveryCodes" doc:"How many recovery codes are left"`
	front.PageInfo
}

var factorOrders = map[string]front.Order[factorView]{
	"createdAt": func(a, b factorView) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"name":      func(a, b factorView) int { return cmp.Compare(fold.Key(a.Name), fold.Key(b.Name)) },
}

var docFactors = front.Doc{
	ID: "listFactors", Tag: "Second factors", Summary: "List one's own second factors",
	Description: "The oldest first, without those that are being set up.",
	List:        true,
	Sort:        []string{"createdAt", "name"},
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired},
}

func (a *api) factors(ctx context.Context, c *front.Call, _ front.None) (factorList, error) {
	own, err := a.app.Factors.OfCaller(ctx, c.Caller)
	if err != nil {
		return factorList{}, err
	}
	view := make([]factorView, 0, len(own.Factors))
	for _, f := range own.Factors {
		view = append(view, viewFactor(f))
	}
	out := factorList{RecoveryCodes: own.RecoveryCodes}
	out.Items, out.PageInfo, err = front.PageOf(ctx, c, view, func(f factorView) string { return f.ID }, factorOrders)
	return out, err
}

type enrolInput struct {
	Challenge string `json:"challenge,omitempty" doc:"From the answer with the code mfa_enrolment_required, instead of a session"`
	Name      string `json:"name,omitempty" example:"Phone" doc:"At most 100 characters"`
}

// OptionalBody implements front.OptionalBody: with a session no member is needed.
func (enrolInput) OptionalBody() {}

type enrolment struct {
	ID     string `json:"id" example:"mfa_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	Secret string `json:"secret" doc:"In base32, for apps that can't scan the picture; shown only here" example:"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"`
	URI    string `json:"uri" doc:"For authenticator apps" example:"otpauth://totp/Doorward:ann@acme.example?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Doorward"`
	QR     string `json:"qr" doc:"The address as a QR code: an SVG image" example:"<svg xmlns=…></svg>"`
}

var docEnrolTOTP = front.Doc{
	ID: "enrolTOTP", Tag: "Second factors", Summary: "Set up an authenticator app",
	Description: "Makes a secret for time-based codes (RFC 6238: SHA-1, 30 seconds, 6 digits). It is a second factor once its first code has confirmed it, within an hour. Another call replaces one that was not confirmed.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeUnauthenticated, doorward.CodeChallengeOver, doorward.CodeMasterKeyMissing, doorward.CodeTooManyFactors, doorward.CodeTooManyAttempts},
}

func (a *api) enrolTOTP(ctx context.Context, c *front.Call, in enrolInput) (enrolment, error) {
	begin := func() (factor.Enrolment, error) {
		return a.app.Factors.EnrolWithChallenge(ctx, c.Caller, in.Challenge, in.Name)
	}
	if in.Challenge == "" {
		if err := requireSession(c); err != nil {
			return enrolment{}, err
		}
		begin = func() (factor.Enrolment, error) { return a.app.Factors.Enrol(ctx, c.Caller, in.Name) }
	}
	e, err := begin()
	if err != nil {
		return enrolment{}, err
	}
	picture, err := qrsvg.Draw(e.URI, "QR code")
	return enrolment{ID: e.ID, Secret: totp.Base32(e.Seed), URI: e.URI, QR: picture}, err
}

// requireSession refuses a request that has neither a session nor the challenge that could
// replace one.
func requireSession(c *front.Call) error {
	if c.Caller.Kind != doorward.ByUser {
		return doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	return nil
}

type confirmInput struct {
	ID        string `json:"id" example:"mfa_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	Code      string `json:"code" example:"492039" doc:"The code that the app shows"`
	Challenge string `json:"challenge,omitempty" doc:"From the answer with the code mfa_enrolment_required, instead of a session"`
}

type confirmed struct {
	Factor        factorView     `json:"factor"`
	RecoveryCodes []string       `json:"recoveryCodes,omitempty" doc:"With the first factor: ten codes, each good once in place of a factor; shown only here"`
	Token         string         `json:"token" doc:"The session identifier, which is new with a session, too: the old one has ended; shown only here" minLength:"43" maxLength:"43"`
	Session       *front.Session `json:"session,omitempty" doc:"With a session: that session, which has assurance level 2 now"`
	// With a challenge, the answer of a login.
	ExpiresAt     *time.Time  `json:"expiresAt,omitempty" doc:"With a challenge: when the session ends even if it is used"`
	IdleExpiresAt *time.Time  `json:"idleExpiresAt,omitempty" doc:"With a challenge: when the session ends if it isn't used"`
	User          *front.User `json:"user,omitempty" doc:"With a challenge: who has signed in"`
	AAL           int         `json:"aal,omitempty" enum:"2" doc:"With a challenge: assurance level of the session"`
}

var docConfirmTOTP = front.Doc{
	ID: "confirmTOTP", Tag: "Second factors", Summary: "Confirm an authenticator app by its first code",
	Description: "The app is a second factor from now on, and the session of the request goes on at assurance level 2, with a new token and cookie; the old token ends on all nodes. The first factor makes ten recovery codes. Remembered browsers are asked for a second factor again, and the person gets a mail. With a `challenge`, the login is complete: the answer has the members of a login, too. A wrong code is 422 with a session, and 401 `invalid_code` with a challenge.",
	Errors: []doorward.Code{
		doorward.CodeStepUpRequired,
		doorward.CodeUnauthenticated, doorward.CodeNotFound, doorward.CodeInvalidCode, doorward.CodeChallengeOver, doorward.CodeTooManyAttempts,
		doorward.CodeSSORequired, doorward.CodeGuestsRefused, doorward.CodeTenantFrozen, doorward.CodeTenantClosing,
	},
}

func (a *api) confirmTOTP(ctx context.Context, c *front.Call, in confirmInput) (confirmed, error) {
	if in.Challenge == "" {
		if err := requireSession(c); err != nil {
			return confirmed{}, err
		}
	}
	if err := required(field{"/id", in.ID}, field{"/code", in.Code}); err != nil {
		return confirmed{}, err
	}
	if in.Challenge != "" {
		return a.confirmAndSignIn(ctx, c, in)
	}
	done, err := a.app.Factors.Confirm(ctx, c.Caller, in.ID, in.Code)
	if err != nil {
		return confirmed{}, err
	}
	return a.raised(c, done), nil
}

// raised answers with a factor, and the session of the request under its new token.
func (a *api) raised(c *front.Call, done factor.Confirmed) confirmed {
	c.SetSession(done.Raised)
	session := front.ViewCurrentSession(done.Raised.Session, a.app.Sessions.Limits())
	return confirmed{Factor: viewFactor(done.Factor), RecoveryCodes: done.RecoveryCodes, Token: done.Raised.Token.Reveal(), Session: &session}
}

func (a *api) confirmAndSignIn(ctx context.Context, c *front.Call, in confirmInput) (confirmed, error) {
	outcome, done, err := a.app.Login.WithFirst(ctx, c.Caller, in.Challenge, in.ID, in.Code)
	if err != nil {
		return confirmed{}, err
	}
	return a.completeLogin(c, outcome, done)
}

// completeLogin answers with a first factor and the session that the login has opened with it.
func (a *api) completeLogin(c *front.Call, outcome login.Outcome, done factor.Confirmed) (confirmed, error) {
	s, err := a.signIn(c, outcome)
	return confirmed{
		Factor: viewFactor(done.Factor), RecoveryCodes: done.RecoveryCodes,
		Token: s.Token, ExpiresAt: &s.ExpiresAt, IdleExpiresAt: &s.IdleExpiresAt, User: &s.User, AAL: s.AAL,
	}, err
}

type renameFactorInput struct {
	Name string `json:"name" example:"Phone" doc:"At most 100 characters"`
}

var docRenameFactor = front.Doc{
	ID: "renameFactor", Tag: "Second factors", Summary: "Rename one of one's own second factors",
	Description: "Remembered browsers are asked for a second factor again, and the person gets a mail.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeTooManyAttempts},
}

func (a *api) renameFactor(ctx context.Context, c *front.Call, in renameFactorInput) (factorView, error) {
	id, err := c.ID("id", doorward.PrefixFactor)
	if err != nil {
		return factorView{}, err
	}
	f, err := a.app.Factors.Rename(ctx, c.Caller, id, in.Name)
	return viewFactor(f), err
}

var docRemoveFactor = front.Doc{
	ID: "removeFactor", Tag: "Second factors", Summary: "Remove one of one's own second factors",
	Description: "With the last one the recovery codes end. Remembered browsers are asked for a second factor again, and the person gets a mail.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeMFARequiredHere, doorward.CodeNoWayBack},
}

func (a *api) removeFactor(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixFactor)
	if err != nil {
		return front.None{}, err
	}
	revocation, err := a.app.Factors.Remove(ctx, c.Caller, id)
	c.SetRevocation(revocation)
	return front.None{}, err
}

type recoveryCodes struct {
	Codes []string `json:"codes" doc:"Ten, each good once in place of a second factor; shown only here"`
}

var docRecoveryCodes = front.Doc{
	ID: "makeRecoveryCodes", Tag: "Second factors", Summary: "Make new recovery codes",
	Description: "The earlier codes stop working, remembered browsers are asked for a second factor again, and the person gets a mail. 404 without a second factor.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeTooManyAttempts},
}

func (a *api) makeRecoveryCodes(ctx context.Context, c *front.Call, _ front.None) (recoveryCodes, error) {
	codes, err := a.app.Factors.NewRecoveryCodes(ctx, c.Caller)
	return recoveryCodes{codes}, err
}

var docResetMFA = front.Doc{
	ID: "resetUserFactors", Tag: "People", Summary: "Let a person set up second factors again",
	Description: "Gives this tenant's word, for 7 days, that the person's second factors may be removed, and ends the person's sessions in this tenant. When every active tenant in which the person is an active member has given its word, at once if this is the only one, the person gets a mail, valid for 24 hours, with a code that removes all second factors together with the password. Else the mail says to the person whose word is missing. Giving the word again sends the mail again, 3 times an hour at most. The answer is the same for everybody. Not on oneself.",
	Errors:      []doorward.Code{doorward.CodeInvalidQuery, doorward.CodeNotFound},
}

func (a *api) resetMFA(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	target, err := changedMember(c)
	if err != nil {
		return front.None{}, err
	}
	ended, err := a.app.Factors.Reset(ctx, c.Caller, target)
	c.SetRevocation(ended.Revocation)
	return front.None{}, err
}

type resetFactorsInput struct {
	Token    string `json:"token" doc:"The token from the mail"`
	Password string `json:"password" format:"password" example:"four quiet green llamas"`
}

var docResetFactors = front.Doc{
	ID: "resetFactors", Tag: "Second factors", Summary: "Remove one's second factors with the code of a mail",
	Description: "The person's tenants have asked for this mail. Removes all second factors and recovery codes and ends all sessions, so that the next login needs the password alone, or sets up a factor where the tenant demands one. If the word of a tenant has lapsed, or is missing since the person joined it, it is 410 `reset_expired`.",
	Errors:      []doorward.Code{doorward.CodeInvalidCredentials, doorward.CodeResetNotFound, doorward.CodeResetExpired, doorward.CodeResetUsed, doorward.CodeTooManyAttempts},
}

var docKeepFactors = front.Doc{
	ID: "keepFactors", Tag: "Second factors", Summary: "Refuse a reset of one's second factors",
	Description: "The words of all tenants for a reset are void, and the code of a mail is over. Needs a session whose sign-in or step-up used a second factor, at any time. 204 also if no reset waits.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired},
}

func (a *api) keepFactors(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	return front.None{}, a.app.Factors.KeepFactors(ctx, c.Caller)
}

func (a *api) resetFactors(ctx context.Context, c *front.Call, in resetFactorsInput) (front.None, error) {
	if err := required(field{"/token", in.Token}, field{"/password", in.Password}); err != nil {
		return front.None{}, err
	}
	revocation, err := a.app.Factors.ConfirmReset(ctx, c.Caller, in.Token, in.Password)
	c.SetRevocation(revocation)
	return front.None{}, err
}
