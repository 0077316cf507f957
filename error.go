package doorward

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Error is the only error type that features return deliberately. It keeps the
// part for the caller (Code, Detail, Fields) separate from the cause for the
// operator (Err).
type Error struct {
	Code Code
	// Detail is a sentence for the caller, specific to this case. It never
	// repeats a submitted secret. Empty means the code's own explanation.
	Detail string
	// Fields are the faults of single values.
	Fields []FieldError
	// Tenants are those whose memberships are affected, with memberships_affected.
	Tenants []TenantName
	// Seen are texts of TXT records that were found in place of the right one, with domain_not_proved.
	Seen []string
	// InvitationID is the pending invitation, with invitation_pending.
	InvitationID string
	// Policy is the policy that refuses, with denied_by_policy; nil otherwise.
	Policy *PolicyRefusal
	// Request is what a check took the gateway's request for, with cross_origin; nil otherwise.
	Request *Request
	// Reason is why the operator has paused changes, with maintenance.
	Reason string
	// ConnectionID is the connection to sign in by, with sso_required; empty for none.
	ConnectionID string
	// Check is what refused a sign-in at a provider, with sign_on_refused and sign_on_state.
	Check string
	// Quota is what the tenant has too many of, with quota_exceeded.
	Quota Quota
	// Proof is what is needed with step_up_required; nil otherwise.
	Proof *ProofNeeded
	// RetryAfter is the time to wait before a retry, for the kinds TooMany and
	// Unavailable.
	RetryAfter time.Duration
	// Allowance, unless nil, is what remains of the caller's own quota of attempts.
	Allowance *Allowance
	// Challenge, unless nil, asks for another proof.
	Challenge *Challenge
	// Err is the cause, for the log.
	Err error
}

// ProofNeeded is a proof of the user's identity that an action demands.
type ProofNeeded struct {
	AAL     int           // 2: by a second factor or a passkey
	MaxAge  time.Duration // since the proof
	Methods []string      // that the user has for it; none: a factor must be set up first
}

// ACR returns the name of the assurance level (RFC 9470).
func (n ProofNeeded) ACR() string { return "aal" + strconv.Itoa(n.AAL) }

// Challenge asks for another proof.
type Challenge struct {
	Token     interface{ Reveal() string } // a secret.Token, a type that this package can't import
	Methods   []string
	ExpiresAt time.Time
	PublicKey json.RawMessage // WebAuthn's options, if it can be answered with a passkey
	// ConnectionID is the connection whose provider can answer it; empty for none.
	ConnectionID string
}

// AnyAge is a MaxAge that no proof exceeds.
const AnyAge = time.Duration(math.MaxInt64)

// Seconds returns MaxAge in whole seconds; nil for AnyAge.
func (n ProofNeeded) Seconds() *int64 {
	if n.MaxAge == AnyAge {
		return nil
	}
	s := int64(n.MaxAge / time.Second)
	return &s
}

// TenantName is a tenant as one of its members sees it.
type TenantName struct {
	ID   string `json:"tenantId" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	Name string `json:"tenantName"`
}

// FieldError is one fault in the body (Pointer, RFC 6901) or in the query
// (Parameter). Line and Column are 0 unless the value is a text of several lines.
type FieldError struct {
	Pointer   string `json:"pointer,omitempty" doc:"JSON Pointer to the member of the body"`
	Parameter string `json:"parameter,omitempty" doc:"Name of the query parameter"`
	Line      int    `json:"line,omitempty" doc:"Line in a text of several lines, from 1"`
	Column    int    `json:"column,omitempty" doc:"Character in the line, from 1"`
	Code      string `json:"code" doc:"Stable code of the fault"`
	Message   string `json:"message" doc:"What to do about it"`
	// Entities are the providers to choose from, where metadata have several.
	Entities []string `json:"entities,omitempty" doc:"Of entityId: the providers in the metadata, of which one has to be named"`
	Cause    string   `json:"-"` // which of the causes of the code, for the texts of pages; empty: it has one
	Seen     string   `json:"-"` // what was seen in place of what was expected, for them
}

// Kind returns the kind of the error's code.
func (e *Error) Kind() Kind { return e.Code.Problem().Kind }

// Error returns all details, for the log; don't show it to the caller.
func (e *Error) Error() string {
	text := string(e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	for _, f := range e.Fields {
		text += fmt.Sprintf("; %s%s %s", f.Pointer, f.Parameter, f.Code)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Fail returns an error with the code and an optional sentence for the caller, which is
// formatted as by fmt.Sprintf.
func Fail(code Code, detail string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(detail, args...)}
}

// Unavailable returns the error for a server fault: the caller learns only that
// there is no answer now, the operator learns the cause.
func Unavailable(cause error) *Error {
	return &Error{Code: CodeUnavailable, RetryAfter: time.Second, Err: cause}
}

// Invalid returns a validation error of one field of the body.
func Invalid(pointer, code, message string) *Error {
	return InvalidFields(FieldError{Pointer: pointer, Code: code, Message: message})
}

// InvalidFields returns a validation error of several fields.
func InvalidFields(fields ...FieldError) *Error {
	return &Error{Code: CodeValidationFailed, Fields: fields}
}

// AllowanceOf returns the allowance of an error, or nil.
func AllowanceOf(err error) *Allowance {
	var e *Error
	if !errors.As(err, &e) {
		return nil
	}
	return e.Allowance
}

// HasCode reports whether err is an Error of the code.
func HasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
