package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Resource is what an action acts on. The zero Resource is the tenant of the person or key
// that acts: the resource of all actions for which the platform's model declares no other.
type Resource struct {
	Type       string         `json:"type"`
	ID         string         `json:"id"`
	Properties map[string]any `json:"properties,omitempty"` // attributes that policies read
}

// Decision says whether somebody may do something.
type Decision struct {
	Allowed  bool
	Reason   string  // of a refusal, a sentence
	PolicyID string  // of the tenant's policy that refuses; else empty
	StepUp   *StepUp // the proof of identity after which the person may do it; else nil
}

// Circumstance is something about the request that the service handles.
type Circumstance func(about map[string]any)

// FromIP is the client's address. Without it, keys that are bound to addresses and policies
// that read it refuse.
func FromIP(ip string) Circumstance { return func(about map[string]any) { about["ip"] = ip } }

// AtTime is the time of the request. Without it the time is now.
func AtTime(at time.Time) Circumstance {
	return func(about map[string]any) { about["time"] = at.Format(time.RFC3339Nano) }
}

// Can asks whether the subject may do the action on the resource, by ids alone: for jobs from a
// queue, and for buttons on a page. For a request with its credential use
// [Client.Require] or [Client.Check]. The subject needs a UserID or KeyID. It also needs the
// TenantID if it is a user of several tenants, or if the resource is the zero Resource. The
// client needs the option [OperatorKey], with an operator key or a service key that may
// access.evaluate.
//
// A refusal, also of somebody unknown, is a Decision and no error. If Doorward was asked, the
// error is an [*Error]. It is ErrUnavailable if there is no answer, or if Doorward refuses the key (code
// "operator_key_refused"). It has status 400 or 413 if Doorward can't read the request.
func (c *Client) Can(ctx context.Context, subject Identity, action string, on Resource, about ...Circumstance) (Decision, error) {
	all, err := c.decide(ctx, subject, action, []Resource{on}, about)
	if err != nil {
		return Decision{}, err
	}
	return all[0], nil
}

// Filter returns the resources on which the subject may do the action, in their order. It
// calls Doorward once for each 100. Errors are those of [Client.Can]; with an error it returns
// no resources.
func (c *Client) Filter(ctx context.Context, subject Identity, action string, all []Resource, about ...Circumstance) ([]Resource, error) {
	var allowed []Resource
	for chunk := range slices.Chunk(all, batch) {
		decisions, err := c.decide(ctx, subject, action, chunk, about)
		if err != nil {
			return nil, err
		}
		for i, d := range decisions {
			if d.Allowed {
				allowed = append(allowed, chunk[i])
			}
		}
	}
	return allowed, nil
}

// object is a JSON object.
type object = map[string]any

// decide asks about up to 100 resources.
func (c *Client) decide(ctx context.Context, subject Identity, action string, on []Resource, about []Circumstance) ([]Decision, error) {
	who, err := subject.authZEN()
	if err != nil {
		return nil, err
	}
	tenant := Resource{Type: "tenant", ID: subject.TenantID}
	return c.evaluate(ctx, question{who, action, tenant, on, about, requestID(nil)})
}

// question asks about up to 100 resources; a zero one is the tenant.
type question struct {
	subject   object
	action    string
	tenant    Resource
	on        []Resource
	about     []Circumstance
	requestID string
}

func (q question) body() ([]byte, error) {
	circumstances := object{}
	for _, add := range q.about {
		add(circumstances)
	}
	items := make([]object, len(q.on))
	for i, r := range q.on {
		if r.Type == "" {
			r = q.tenant
		}
		items[i] = object{"resource": r}
	}
	return json.Marshal(object{"subject": q.subject, "action": object{"name": q.action}, "context": circumstances, "evaluations": items})
}

// authZEN returns the identity as AuthZEN's subject: the key of a server, or else the user.
func (i Identity) authZEN() (object, error) {
	switch {
	case i.KeyID != "":
		return object{"type": "key", "id": i.KeyID}, nil
	case i.UserID == "":
		return nil, errors.New("client: an Identity without UserID and KeyID is nobody")
	case i.TenantID == "":
		return object{"type": "user", "id": i.UserID}, nil
	}
	return object{"type": "user", "id": i.UserID, "properties": object{"tenantId": i.TenantID}}, nil
}

// evaluate returns the decisions, in the order of the resources.
func (c *Client) evaluate(ctx context.Context, q question) ([]Decision, error) {
	if c.key == nil || *c.key == "" {
		return nil, errors.New("client: asking for decisions needs the option OperatorKey")
	}
	body, err := q.body()
	if err != nil {
		return nil, err
	}
	header := http.Header{"Authorization": {"Bearer " + *c.key}, "Content-Type": {"application/json"}, "X-Request-Id": {q.requestID}}
	a, err := c.send(ctx, call{
		method: http.MethodPost, path: "/access/v1/evaluations", header: header, body: body,
		refusals: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest, http.StatusRequestEntityTooLarge},
	})
	if err != nil {
		return nil, keyRefusalToUnavailable(err)
	}
	return a.decisions(len(q.on))
}

func (a answer) decisions(count int) ([]Decision, error) {
	var in struct {
		Evaluations []struct {
			Decision *bool
			Context  struct {
				Reason, PolicyID string
				StepUp           *StepUp
			}
		}
	}
	if json.Unmarshal(a.body, &in) != nil || len(in.Evaluations) != count {
		return nil, a.notDoorward("answers another question")
	}
	all := make([]Decision, count)
	for i, e := range in.Evaluations {
		if e.Decision == nil {
			return nil, a.notDoorward("is incomplete")
		}
		all[i] = Decision{Allowed: *e.Decision, Reason: e.Context.Reason, PolicyID: e.Context.PolicyID, StepUp: e.Context.StepUp}
	}
	return all, nil
}

// decideFor asks whether the credential of q, which belongs to id, may do the action on the resource.
// The error is that of a check.
func (c *Client) decideFor(ctx context.Context, q Request, id Identity) error {
	asked := question{action: q.Action, tenant: Resource{Type: "tenant", ID: id.TenantID}, on: []Resource{*q.Resource}, requestID: requestID(q.Header)}
	if asked.subject = (object{"type": "key", "id": id.KeyID}); id.KeyID == "" {
		asked.subject = object{"type": "session", "id": q.token(c.cookie)}
	}
	if _, err := netip.ParseAddr(q.IP); err == nil {
		asked.about = []Circumstance{FromIP(q.IP)}
	}
	all, err := c.evaluate(ctx, asked)
	switch {
	case errors.Is(err, ErrUnavailable):
		return err
	case err != nil: // of this program, and no decision
		return unavailable(asked.requestID, 0, err)
	case !all[0].Allowed:
		return all[0].refusal(asked.requestID)
	}
	return nil
}

// refusal returns the error that a check would have returned.
func (d Decision) refusal(requestID string) *Error {
	e := &Error{Status: http.StatusForbidden, Code: "forbidden", Detail: d.Reason, RequestID: requestID, StepUp: d.StepUp}
	switch {
	case d.StepUp != nil:
		e.Code = "step_up_required"
	case d.PolicyID != "":
		e.Code = "denied_by_policy"
	}
	return e
}
