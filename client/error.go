package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The kinds of [*Error], for errors.Is. Each error of a check is exactly one of them.
var (
	// ErrUnauthenticated: the request carries no valid credential (401).
	ErrUnauthenticated = errors.New("doorward: no valid credential")
	// ErrForbidden: the caller is signed in, but not allowed (403).
	ErrForbidden = errors.New("doorward: not allowed")
	// ErrRateLimited: the API key's requests per second are used up (429).
	ErrRateLimited = errors.New("doorward: too many requests")
	// ErrUnavailable: no answer now (503). The credential may be valid.
	ErrUnavailable = errors.New("doorward: the check is unavailable")
)

// Error is why a check did not succeed.
type Error struct {
	// Status is the status for your own caller: 401, 403, 429 or 503. A wrong request of
	// this program also has 422 (Introspect, Follow), 400 (Can, Follow) or 413 (Can), and
	// Follow has 410, ErrEventsGone.
	Status int
	// Code is Doorward's stable name of the error, such as "unauthenticated",
	// "forbidden", "cross_origin", "unknown_action" or "unavailable".
	Code string
	// Detail is a sentence for the caller. It names no address and no cause.
	Detail string
	// RequestID is the id in Doorward's log, if the request reached Doorward.
	RequestID string
	// RetryAfter is the time to wait before a retry, with Status 429 or 503, between
	// 1 s and 5 min; else 0.
	RetryAfter time.Duration

	// StepUp, unless nil, is the proof that is needed: with Status 403 and the code
	// "step_up_required". Redirect a browser to [StepUpURL].
	StepUp *StepUp

	kind, title string // type and title of the problem
	err         error
}

// StepUp is a proof of the person's identity that Doorward demands (RFC 9470).
type StepUp struct {
	ACR     string   `json:"acr"`              // aal1, or aal2 for a second factor or a passkey
	MaxAge  *int64   `json:"maxAge,omitempty"` // of the proof, in seconds; nil: any
	Methods []string `json:"methods"`          // by which the person can give it
}

// challenge is the value of WWW-Authenticate.
func (s StepUp) challenge() string {
	text := `Bearer realm="doorward", error="insufficient_user_authentication", acr_values="` + s.ACR + `"`
	if s.MaxAge != nil {
		text += `, max_age="` + strconv.FormatInt(*s.MaxAge, 10) + `"`
	}
	return text
}

// Error returns all details, for the log; don't show it to the caller.
func (e *Error) Error() string {
	text := fmt.Sprintf("doorward: %d %s: %s (request %s)", e.Status, e.Code, e.Detail, e.RequestID)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

// Is reports whether target is the one of ErrUnauthenticated, ErrForbidden,
// ErrRateLimited, ErrEventsGone and ErrUnavailable that belongs to the status.
func (e *Error) Is(target error) bool {
	switch e.Status {
	case http.StatusUnauthorized:
		return target == ErrUnauthenticated
	case http.StatusForbidden:
		return target == ErrForbidden
	case http.StatusGone:
		return target == ErrEventsGone
	case http.StatusTooManyRequests:
		return target == ErrRateLimited
	case http.StatusServiceUnavailable:
		return target == ErrUnavailable
	}
	return false
}

// Unwrap returns the cause of a fault, such as context.Canceled or the failure to
// connect; nil if Doorward refused.
func (e *Error) Unwrap() error { return e.err }

// The limits of Retry-After.
const (
	minRetryAfter = time.Second
	maxRetryAfter = 5 * time.Minute
)

func clampRetryAfter(retryAfter time.Duration) time.Duration {
	return min(max(retryAfter, minRetryAfter), maxRetryAfter)
}

// unavailable is the error for every fault between this service and a decision.
func unavailable(requestID string, retryAfter time.Duration, cause error) *Error {
	return &Error{
		Status: http.StatusServiceUnavailable, Code: "unavailable", RequestID: requestID,
		Detail:     "The access check is unavailable now. This says nothing about the session. Try again later.",
		RetryAfter: clampRetryAfter(retryAfter), err: cause,
	}
}

// problem is the body of an error (RFC 9457), here and from Doorward.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance,omitempty"`
	Code      string `json:"code"`
	RequestID string `json:"requestId"`
	*StepUp
}

// WriteError answers r with err as application/problem+json (RFC 9457). An *Error keeps its
// status, with WWW-Authenticate for 401 and for a step-up, and Retry-After for 429 and 503;
// any other error is 503, since it is no decision. Require uses it; handlers that call Check
// can use it too.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = unavailable(requestID(r.Header), 0, err)
	}
	h := w.Header()
	switch e.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="doorward"`)
	case http.StatusForbidden:
		if e.StepUp != nil {
			h.Set("WWW-Authenticate", e.StepUp.challenge())
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Request-Id", e.RequestID)
	h.Del("Content-Length")
	w.WriteHeader(e.Status)
	encode := json.NewEncoder(w)
	encode.SetEscapeHTML(false)
	_ = encode.Encode(e.problem(r)) // a client that is gone needs no answer
}

func (e *Error) problem(r *http.Request) problem {
	p := problem{
		Type: e.kind, Title: e.title, Status: e.Status, Detail: e.Detail,
		Instance: r.URL.EscapedPath(), Code: e.Code, RequestID: e.RequestID, StepUp: e.StepUp,
	}
	if p.Type == "" { // our own problem: RFC 9457, section 4.2.1
		p.Type, p.Title = "about:blank", http.StatusText(e.Status)
	}
	return p
}
