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

// Question is one credential to introspect.
type Question struct {
	Credential string `json:"credential"`       // the token of a session, or an API key; not empty
	Action     string `json:"action,omitempty"` // empty checks no permission
	// IP is the client's address. A key that is bound to addresses is not active without
	// one; for sessions it has no effect.
	IP string `json:"ip,omitempty"`
	// Resource is empty, or "deferred": policies that depend on the resource are left to
	// [Client.Can], which asks with it.
	Resource string `json:"resource,omitempty"`
}

// Answer is the state of a credential. The other fields are zero if it isn't
// Active.
type Answer struct {
	Active   bool
	Allowed  bool // whether the role, and for a key its permissions, grant the Action; false without an Action
	Identity Identity
	// ExpiresAt is when the session or key ends in any case, IdleExpiresAt when a session
	// ends without use; zero for a key. Either may end earlier, by a logout or revocation.
	ExpiresAt, IdleExpiresAt time.Time
}

// Introspect checks a credential that didn't come with a request, for example from
// a queue or from the start of a long connection. It needs an [OperatorKey].
//
// It counts as a use and keeps a session from idling out, so call it when its owner
// acts, not on a timer; [Client.Check] can be Untouched.
//
// For an invalid credential the Answer isn't Active, and there is no error. If Doorward was
// asked, the error is an [*Error]: ErrUnavailable if there is no answer, also if the operator
// key is refused (code "operator_key_refused"), or of status 422 for an unknown action or an
// empty credential.
func (c *Client) Introspect(ctx context.Context, credential, action string) (Answer, error) {
	answers, err := c.IntrospectAll(ctx, []Question{{Credential: credential, Action: action}})
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// batch is the maximum number of items in one call.
const batch = 100

// IntrospectAll is [Client.Introspect] for many questions, 100 in a call. The answers
// are in the order of the questions. If a call fails, it returns no answers. Each call
// has its own [Timeout].
func (c *Client) IntrospectAll(ctx context.Context, questions []Question) ([]Answer, error) {
	if c.key == nil || *c.key == "" {
		return nil, errors.New("client: introspection needs the option OperatorKey")
	}
	all := make([]Answer, 0, len(questions))
	for chunk := range slices.Chunk(questions, batch) {
		answers, err := c.introspect(ctx, chunk)
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
	a, err := c.send(ctx, call{
		method: http.MethodPost, path: "/api/v2/access/introspect", header: header, body: body,
		refusals: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity},
	})
	if err != nil {
		return nil, keyRefusalToUnavailable(err)
	}
	var in struct{ Items []introspected }
	if json.Unmarshal(a.body, &in) != nil || len(in.Items) != len(questions) {
		return nil, a.notDoorward("answers another question")
	}
	answers := make([]Answer, len(questions))
	for i, item := range in.Items {
		var ok bool
		if answers[i], ok = item.answer(questions[i].Action != ""); !ok {
			return nil, a.notDoorward("is incomplete")
		}
	}
	return answers, nil
}

// keyRefusalToUnavailable turns a refusal of our operator key into ErrUnavailable. Passed on as
// 401 or 403 it would look like a refusal of the person.
func keyRefusalToUnavailable(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden {
		return err
	}
	fault := unavailable(e.RequestID, 0, fmt.Errorf("doorward refuses the operator key: %d %s", e.Status, e.Code))
	fault.Code = "operator_key_refused"
	return fault
}

// introspected is one answer from Doorward.
type introspected struct {
	Active bool
	User   struct {
		ID, TenantID, Email string
		Role                Role
	}
	Session struct {
		ID                       string
		AAL                      int
		ExpiresAt, IdleExpiresAt time.Time
	}
	APIKey *struct {
		ID, TenantID  string
		EffectiveRole Role
		ExpiresAt     time.Time
	}
	Allowed *bool
}

// answer returns false for an incomplete answer.
func (in introspected) answer(hasAction bool) (Answer, bool) {
	if !in.Active {
		return Answer{}, true
	}
	allowed, answered := in.Allowed != nil && *in.Allowed, hasAction == (in.Allowed != nil)
	if k := in.APIKey; k != nil {
		id := Identity{KeyID: k.ID, TenantID: k.TenantID, Role: k.EffectiveRole}
		return Answer{Active: true, Allowed: allowed, Identity: id, ExpiresAt: k.ExpiresAt}, answered && id.isServer()
	}
	u, s := in.User, in.Session
	complete := u.ID != "" && u.TenantID != "" && u.Role != "" && u.Email != "" && s.ID != "" && answered
	return Answer{
		Active: true, Allowed: allowed,
		Identity:  Identity{UserID: u.ID, TenantID: u.TenantID, Role: u.Role, Email: u.Email, SessionID: s.ID, AAL: s.AAL},
		ExpiresAt: s.ExpiresAt, IdleExpiresAt: s.IdleExpiresAt,
	}, complete
}
