package front

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/doorward/doorward"
)

// statusOf is the one place where a kind of error becomes a status.
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
}

// Status is the status of answers with the code.
func Status(code doorward.Code) int { return statusOf[code.Problem().Kind] }

// ProblemPath is the path of the page that describes a code.
func ProblemPath(code doorward.Code) string { return "/problems/" + string(code) }

// Fail answers with a problem (RFC 9457) and logs what only the operator is
// to know. An error that isn't a *doorward.Error is either time running out,
// which is a fault of ours and not the caller's, or a defect.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	s.logFailure(r, e)
	h := w.Header()
	if e.Kind() == doorward.KindUnauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="doorward"`)
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	s.write(w, Status(e.Code), "application/problem+json", s.problem(r, e))
}

func asError(err error) *doorward.Error {
	var e *doorward.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return doorward.Unavailable(err)
	}
	return &doorward.Error{Code: doorward.CodeInternal, Err: err}
}

func (s *Site) problem(r *http.Request, e *doorward.Error) map[string]any {
	about := e.Code.Problem()
	p := map[string]any{
		"type": s.BaseURL() + ProblemPath(e.Code), "title": about.Title, "status": Status(e.Code),
		"detail": e.Detail, "instance": path(r), "code": e.Code, "requestId": infoOf(r).id,
	}
	if e.Detail == "" {
		p["detail"] = about.Help
	}
	if len(e.Fields) > 0 {
		p["errors"] = e.Fields
	}
	for name, value := range e.Extra {
		p[name] = value
	}
	return p
}

// logFailure writes the cause of what is our fault; the rest is in the line of
// the request.
func (s *Site) logFailure(r *http.Request, e *doorward.Error) {
	if Status(e.Code) < 500 || errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	s.log.Error("request failed", slog.String("code", string(e.Code)), slog.String("path", path(r)),
		slog.String("requestId", infoOf(r).id), slog.Any("err", e.Err))
}

// write sends v as JSON.
func (s *Site) write(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		s.log.Error("answer not encoded", "err", err)
		status, body = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}
