package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// call is one call to Doorward. It is idempotent.
type call struct {
	method   string
	path     string
	header   http.Header
	body     []byte
	refusals []int // the statuses that are decisions; all others but 200 are faults
}

// answer is the complete response.
type answer struct {
	status    int
	header    http.Header
	body      []byte
	requestID string
}

// maxTries is the maximum number of attempts for a call, time permitting.
const maxTries = 3

// firstWait is the wait before the second try when no Retry-After sets it; it
// doubles from then on.
const firstWait = 50 * time.Millisecond

// send returns an answer with status 200, or an [*Error].
func (c *Client) send(ctx context.Context, q call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for try := 1; ; try++ {
		a, err := c.doOnce(ctx, q)
		wait, canRetry := c.retryDelay(a, err, try)
		switch {
		case canRetry && try < maxTries && pause(ctx, wait):
			continue
		case err != nil:
			return a, unavailable(q.header.Get("X-Request-Id"), 0, err)
		case a.status != http.StatusOK:
			return a, a.refusal(q.refusals)
		}
		return a, nil
	}
}

// retryDelay reports whether a fault may be retried, and after which wait. A random part of up
// to half the wait is added, so that requests that failed together don't retry together.
func (c *Client) retryDelay(a answer, err error, try int) (wait time.Duration, canRetry bool) {
	if err == nil && a.status != http.StatusServiceUnavailable {
		return 0, false
	}
	wait = firstWait << (try - 1)
	if requested, ok := a.retryAfter(); ok {
		wait = requested
	}
	return wait + rand.N(wait/2+1), true
}

// pause waits, and reports whether ctx lasted that long. If the remaining time is too
// short it returns false at once.
func pause(ctx context.Context, wait time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxAnswer limits an answer, in bytes: enough for an introspection of 100 items.
const maxAnswer = 1 << 20

// doOnce sends the request once. It reads the answer to its end, so that the
// connection can be reused.
func (c *Client) doOnce(ctx context.Context, q call) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return answer{}, err
	}
	req.Header = q.header.Clone()
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("the answer broke off: %w", err)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: body, requestID: res.Header.Get("X-Request-Id")}
	if a.requestID == "" {
		a.requestID = q.header.Get("X-Request-Id")
	}
	return a, nil
}

// retryAfter reads the header, as seconds or as a date (RFC 9110, section 10.2.3), at most
// maxRetryAfter. It returns false for a missing or invalid one.
func (a answer) retryAfter() (time.Duration, bool) {
	v := a.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(v); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter), true
	}
	return 0, false
}

// refusal returns the error of an answer that isn't 200. Only a problem from
// Doorward is a decision. The same status from a proxy, or from a wrong base URL,
// is a fault.
func (a answer) refusal(decisions []int) *Error {
	if a.status == http.StatusServiceUnavailable {
		wait, _ := a.retryAfter()
		return unavailable(a.requestID, wait, fmt.Errorf("doorward answered %d", a.status))
	}
	var p problem
	media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(a.body, &p) != nil || p.Status != a.status || p.Code == "" {
		return a.notDoorward("is no problem document of Doorward")
	}
	if !slices.Contains(decisions, a.status) {
		return unavailable(a.requestID, 0, fmt.Errorf("doorward answered %d %s", a.status, p.Code))
	}
	e := &Error{Status: a.status, Code: p.Code, Detail: p.Detail, RequestID: a.requestID, kind: p.Type, title: p.Title}
	if p.Code == "step_up_required" {
		e.StepUp = p.StepUp
	}
	if a.status == http.StatusTooManyRequests {
		wait, _ := a.retryAfter()
		e.RetryAfter = clampRetryAfter(wait)
	}
	return e
}

// notDoorward is the error for an answer that isn't from Doorward. It doesn't
// repeat the answer, which may hold anything.
func (a answer) notDoorward(defect string) *Error {
	return unavailable(a.requestID, 0, fmt.Errorf("the answer %d %s: does the base URL lead to Doorward?", a.status, defect))
}
