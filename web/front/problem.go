package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// statusOf maps each kind of error to its HTTP status.
var statusOf = map[doorward.Kind]int{
	doorward.KindInternal:        http.StatusInternalServerError,
	doorward.KindMalformed:       http.StatusBadRequest,
	doorward.KindUnauthenticated: http.StatusUnauthorized,
	doorward.KindForbidden:       http.StatusForbidden,
	doorward.KindNotFound:        http.StatusNotFound,
	doorward.KindConflict:        http.StatusConflict,
	doorward.KindGone:            http.StatusGone,
	doorward.KindInvalid:         http.StatusUnprocessableEntity,
	doorward.KindTooMany:         http.StatusTooManyRequests,
	doorward.KindUnavailable:     http.StatusServiceUnavailable,
	doorward.KindMethod:          http.StatusMethodNotAllowed,
	doorward.KindTooLarge:        http.StatusRequestEntityTooLarge,
	doorward.KindMediaType:       http.StatusUnsupportedMediaType,
	doorward.KindPrecondition:    http.StatusPreconditionFailed,
	doorward.KindUnconditional:   http.StatusPreconditionRequired,
}

// Status returns the HTTP status of a code.
func Status(code doorward.Code) int { return statusOf[code.Problem().Kind] }

// ProblemPath is the path of the page that describes a code.
func ProblemPath(code doorward.Code) string { return "/problems/" + string(code) }

// Fail answers with a problem (RFC 9457), or with a page if a browser asks for one, and logs
// the details for the operator. An error other than *doorward.Error is unavailable if it is a
// timeout or a cancellation, and else internal.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, err error) {
	c := &Call{W: w, R: r, site: s}
	if s.Foreign != nil && s.Foreign(c, s.withoutBase(r).URL.Path, err) {
		return
	}
	if s.ErrorPage != nil && wantsPage(r) && s.ErrorPage(c, err) {
		return
	}
	p := c.Refuse(err)
	s.write(w, p.Status, "application/problem+json", p)
}

// AnswerAs answers with JSON of a media type.
func (c *Call) AnswerAs(status int, mediaType string, v any) { c.site.write(c.W, status, mediaType, v) }

// WantsPage reports whether a browser asks for a page.
func (c *Call) WantsPage() bool { return wantsPage(c.R) }

// AsksForPage reports whether a browser asks for a page, also from the API.
func (c *Call) AsksForPage() bool { return asksForPage(c.R) }

func asksForPage(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" || strings.Contains(r.Header.Get("Accept"), "text/html")
}

// wantsPage is false for the API and assets, which never answer with a page.
func wantsPage(r *http.Request) bool {
	return asksForPage(r) && !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/assets/")
}

// Refuse sets the headers of a failed request, logs the details for the operator,
// and returns the problem for the caller.
func (c *Call) Refuse(err error) Problem {
	e := AsError(err)
	c.site.logFailure(c.R, e)
	if e.Code == doorward.CodeCrossOrigin {
		infoOf(c.R).refusedOrigin = SentOrigin(c.R.Header)
	}
	h := c.W.Header()
	if e.Kind() == doorward.KindUnauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="doorward"`)
	}
	if e.Proof != nil {
		h.Set("WWW-Authenticate", stepUpChallenge(*e.Proof))
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	c.SetAllowance(e.Allowance)
	return c.site.problem(c.R, e)
}

// stepUpChallenge is the challenge of RFC 9470, section 3.
func stepUpChallenge(n doorward.ProofNeeded) string {
	text := `Bearer realm="doorward", error="insufficient_user_authentication", error_description="A recent proof of the user's identity is required", acr_values="` + n.ACR() + `"`
	if age := n.Seconds(); age != nil {
		text += `, max_age="` + strconv.FormatInt(*age, 10) + `"`
	}
	return text
}

// AsError returns err as an error for the caller, see Fail.
func AsError(err error) *doorward.Error {
	var e *doorward.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return doorward.Unavailable(err)
	}
	return &doorward.Error{Code: doorward.CodeInternal, Err: err}
}

// Problem is the body of every error (RFC 9457).
type Problem struct {
	Type         string                `json:"type" format:"uri" doc:"Address of the page that describes the code"`
	Title        string                `json:"title" doc:"The same for every answer with the code"`
	Status       int                   `json:"status"`
	Detail       string                `json:"detail" doc:"What happened and what to do"`
	Instance     string                `json:"instance" doc:"Path of the request"`
	Code         doorward.Code         `json:"code" doc:"Stable name of the error"`
	RequestID    string                `json:"requestId" doc:"Also in the header X-Request-Id and in the log"`
	Errors       []doorward.FieldError `json:"errors,omitempty" doc:"Each fault of the request"`
	InvitationID string                `json:"invitationId,omitempty" doc:"With the code invitation_pending"`
	Tenants      []doorward.TenantName `json:"tenants,omitempty" doc:"With the code memberships_affected: one's own tenants that don't allow the new address"`
	Check        string                `json:"check,omitempty" doc:"With the codes sign_on_refused and sign_on_state: the check that refused the sign-in" example:"nonce"`
	Seen         []string              `json:"seen,omitzero" doc:"With the code domain_not_proved: TXT records at the record's name that are meant for Doorward; up to 10"`
	Quota        doorward.Quota        `json:"quota,omitempty" doc:"With the code quota_exceeded: people, apiKeys, webhooks or eventsPerDay"`
	PolicyID     string                `json:"policyId,omitempty" doc:"With the code denied_by_policy: the policy that refuses"`
	Reason       string                `json:"reason,omitempty" doc:"With the code denied_by_policy: what the policy's author says about it. With the code maintenance: what the operator says"`
	Request      *CheckedRequest       `json:"request,omitempty" doc:"With the code cross_origin at a check: what Doorward takes the request for, and policies read"`
	Challenge    string                `json:"challenge,omitempty" doc:"With the codes mfa_required, mfa_enrolment_required and step_up_required (there not at a check, nor after too many challenges): to be sent with the answer; shown only here" minLength:"43" maxLength:"43"`
	Methods      []string              `json:"methods,omitzero" doc:"With a challenge, and with the code step_up_required: password, totp, recovery, passkey or sso; empty where the person has to set up a factor first, or has none left that can be used"`
	ACR          string                `json:"acr,omitempty" doc:"With the code step_up_required: aal1, or aal2 for a second factor or a passkey"`
	MaxAge       *int64                `json:"maxAge,omitempty" doc:"With the code step_up_required: the longest age of the proof in seconds; absent if its age doesn't matter"`
	ExpiresAt    *time.Time            `json:"expiresAt,omitempty" doc:"With a challenge: until when it can be answered"`
	ConnectionID string                `json:"connectionId,omitempty" doc:"With the code sso_required: the sign-on by which the person gets a session; absent if there is none"`
	StartURL     string                `json:"startUrl,omitempty" format:"uri" doc:"With a challenge that the provider of the tenant's sign-on can answer (method sso), and with the code sso_required: where a browser begins. Add return= for the page to come back to"`
	PublicKey    WebAuthn              `json:"publicKey,omitempty" doc:"With a challenge that a passkey can answer: WebAuthn's PublicKeyCredentialRequestOptionsJSON"`
}

// CheckedRequest is what Doorward takes a gateway's request for. doctor gateway compares it with
// what it has sent.
type CheckedRequest struct {
	IP     string `json:"ip,omitempty" doc:"Address of the client" example:"192.0.2.7"`
	Method string `json:"method,omitempty" doc:"As the gateway states it; absent if it doesn't, if it can't be read, or above 100 bytes" example:"POST"`
	Host   string `json:"host,omitempty" doc:"Likewise" example:"platform.example"`
	Path   string `json:"path,omitempty" doc:"Likewise" example:"/messages"`
}

// maxChecked is the longest text in a CheckedRequest, in bytes: a gateway may read only 2 KiB of an
// answer.
const maxChecked = 100

func viewChecked(r *doorward.Request) *CheckedRequest {
	if r == nil {
		return nil
	}
	short := func(text string) string {
		if len(text) > maxChecked {
			return ""
		}
		return text
	}
	seen := &CheckedRequest{Method: short(r.Method), Host: short(r.Host), Path: short(r.Path)}
	if r.IP.IsValid() {
		seen.IP = r.IP.String()
	}
	return seen
}

// Problem returns the problem for err, and logs the details for the operator.
func (c *Call) Problem(err error) Problem {
	e := AsError(err)
	c.site.logFailure(c.R, e)
	return c.site.problem(c.R, e)
}

func (s *Site) problem(r *http.Request, e *doorward.Error) Problem {
	described := e.Code.Problem()
	p := Problem{
		Type: s.BaseURL() + ProblemPath(described.Code), Title: described.Title, Status: Status(e.Code), Detail: e.Detail,
		Instance: path(r), Code: described.Code, RequestID: infoOf(r).id, Errors: e.Fields, InvitationID: e.InvitationID, Tenants: e.Tenants, Quota: e.Quota,
		Request: viewChecked(e.Request), Seen: e.Seen,
	}
	p.Check = e.Check
	if e.Policy != nil {
		p.PolicyID, p.Reason = e.Policy.PolicyID, e.Policy.Reason
	}
	if e.Reason != "" {
		p.Reason = e.Reason
	}
	if n := e.Proof; n != nil {
		p.ACR, p.MaxAge, p.Methods = n.ACR(), n.Seconds(), n.Methods
	}
	if e.Challenge != nil {
		p.Challenge, p.Methods, p.ExpiresAt = e.Challenge.Token.Reveal(), e.Challenge.Methods, &e.Challenge.ExpiresAt
		p.PublicKey = ViewWebAuthn(e.Challenge.PublicKey)
		if id := e.Challenge.ConnectionID; id != "" {
			p.StartURL = StartURL(s.BaseURL(), id, p.Challenge)
		}
	}
	if p.ConnectionID = e.ConnectionID; p.ConnectionID != "" {
		p.StartURL = StartURL(s.BaseURL(), p.ConnectionID, "")
	}
	if p.Detail == "" {
		p.Detail = described.Help
	}
	return p
}

// logFailure counts and logs the cause of a fault, unless the client has gone; other errors are only
// in the request's log line. For a check answered 503 there is no such line, and the cause is
// logged at a limited rate, so that an outage doesn't flood the log.
func (s *Site) logFailure(r *http.Request, e *doorward.Error) {
	infoOf(r).code = e.Code
	if Status(e.Code) < 500 || e.Err == nil {
		return
	}
	level, timeout := slog.LevelError, net.Error(nil)
	switch {
	case e.Code == doorward.CodeProviderUnavailable: // the fault of another server, and no want of time here
		level = slog.LevelWarn
	case errors.Is(r.Context().Err(), context.DeadlineExceeded), errors.As(e.Err, &timeout) && timeout.Timeout():
		s.timedOut.Add(1)
	}
	info := infoOf(r)
	info.logLimited = info.check && Status(e.Code) == http.StatusServiceUnavailable
	if errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	attrs := []slog.Attr{
		slog.String("code", string(e.Code)), slog.String("path", loggable(path(r))), slog.String("requestId", info.id), slog.Any("err", e.Err),
	}
	if info.logLimited {
		leftOut, ok := s.outage.Allow(path(r)+" "+e.Err.Error(), time.Now())
		if !ok {
			return
		}
		attrs = append(attrs, slog.Int("leftOut", leftOut))
	}
	s.log.LogAttrs(r.Context(), level, "request failed", info.withTraceID(attrs...)...)
}

// write sends v as JSON.
func (s *Site) write(w http.ResponseWriter, status int, contentType string, v any) {
	text, err := encode(v)
	if err != nil {
		s.log.Error("answer not encoded", "err", err)
		status = http.StatusInternalServerError
	}
	s.send(w, status, contentType, text)
}

// encode returns v as JSON without escaping <, > and &, so that it is readable in a
// terminal.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return text.Bytes(), err
}

func (s *Site) send(w http.ResponseWriter, status int, contentType string, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails if the client has disconnected
}
