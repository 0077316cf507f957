package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Question asks what a credential is worth.
type Question struct {
	Credential string `json:"credential"`       // the token of a session; not empty
	Action     string `json:"action,omitempty"` // empty asks for no permission
}

// Answer says what a credential is worth. All else is zero when it isn't Active.
type Answer struct {
	Active   bool
	Allowed  bool // the role grants the Action; false when none was asked for
	Identity Identity
	// ExpiresAt is when the session ends whatever its use, IdleExpiresAt when it
	// isn't used. It may end before, at any time, by a logout.
	ExpiresAt, IdleExpiresAt time.Time
}

// Introspect checks a credential that didn't come with a request, for example from
// a queue or from the start of a long connection. It needs an [OperatorKey].
//
// It counts as a use and keeps a session from idling out, so call it when its owner
// wants something, and not on a timer.
//
// For an invalid credential the Answer isn't Active, and there is no error. The
// error is an [*Error]: ErrUnavailable if there is no answer, also if the operator
// key is refused (code "operator_key_refused"), or of status 422 for an unknown
// action or an empty credential.
func (c *Client) Introspect(ctx context.Context, credential, action string) (Answer, error) {
	answers, err := c.IntrospectAll(ctx, []Question{{credential, action}})
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// batch is how many questions Doorward takes at once.
const batch = 100

// IntrospectAll is [Client.Introspect] for many, 100 in a call. The answers are
// in the order of the questions. With an error there are none; each call has the
// time of [Timeout] to itself.
func (c *Client) IntrospectAll(ctx context.Context, questions []Question) ([]Answer, error) {
	if c.key == nil || *c.key == "" {
		return nil, errors.New("client: introspection needs the option OperatorKey")
	}
	all := make([]Answer, 0, len(questions))
	for some := range slices.Chunk(questions, batch) {
		answers, err := c.introspect(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, answers...)
	}
	return all, nil
}

func (c *Client) introspect(ctx context.Context, questions []Question) ([]Answer, error) {
	body, err := json.Marshal(map[string]any{"items": questions})
	if err != nil {
		return nil, err
	}
	header := http.Header{"Authorization": {"Bearer " + *c.key}, "Content-Type": {"application/json"}, "X-Request-Id": {requestID(nil)}}
	a, err := c.ask(ctx, question{
		method: http.MethodPost, path: "/api/v2/access/introspect", header: header, body: body,
		refusals: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity},
	})
	if err != nil {
		return nil, ownFault(err)
	}
	var in struct{ Items []introspected }
	if json.Unmarshal(a.body, &in) != nil || len(in.Items) != len(questions) {
		return nil, a.notDoorward("answers another question")
	}
	answers := make([]Answer, len(questions))
	for i, it := range in.Items {
		var ok bool
		if answers[i], ok = it.answer(questions[i].Action != ""); !ok {
			return nil, a.notDoorward("is incomplete")
		}
	}
	return answers, nil
}

// ownFault makes a fault of ours of what refused our own key. Passed on as 401
// or 403 it would be taken for the person's.
func ownFault(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden {
		return err
	}
	fault := unavailable(e.RequestID, 0, fmt.Errorf("doorward refuses the operator key: %d %s", e.Status, e.Code))
	fault.Code = "operator_key_refused"
	return fault
}

// introspected is one answer of Doorward's.
type introspected struct {
	Active bool
	User   struct {
		ID, TenantID, Email string
		Role                Role
	}
	Session struct {
		ID                       string
		ExpiresAt, IdleExpiresAt time.Time
	}
	Allowed *bool
}

// answer returns false for one that says too little to act on.
func (in introspected) answer(asked bool) (Answer, bool) {
	if !in.Active {
		return Answer{}, true
	}
	u, s := in.User, in.Session
	complete := u.ID != "" && u.TenantID != "" && u.Role != "" && u.Email != "" && s.ID != "" && asked == (in.Allowed != nil)
	return Answer{
		Active: true, Allowed: in.Allowed != nil && *in.Allowed,
		Identity:  Identity{UserID: u.ID, TenantID: u.TenantID, Role: u.Role, Email: u.Email, SessionID: s.ID},
		ExpiresAt: s.ExpiresAt, IdleExpiresAt: s.IdleExpiresAt,
	}, complete
}
