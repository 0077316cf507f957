package edge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/web/front"
)

// Routes returns the routes for services.
func Routes(a *app.App) []front.Route {
	i := &introspection{a}
	return append(assertionRoutes(a),
		front.On("POST /api/v2/access/introspect", front.Operated(doorward.ServiceIntrospect), front.JSON(http.StatusOK, i.serve), docIntrospect).Check(),
	)
}

type introspection struct{ app *app.App }

type question struct {
	Credential string `json:"credential" doc:"The token of a session, or an API key"`
	Action     string `json:"action,omitempty" example:"message.send" doc:"Asks whether it is permitted"`
	IP         string `json:"ip,omitempty" example:"192.0.2.7" doc:"Where the API key was used from. Without it, a key bound to addresses is inactive"`
	Resource   string `json:"resource,omitempty" enum:"deferred" doc:"Only \"deferred\": the service asks again, with the resource, so that a policy that needs it doesn't refuse here"`

	Context *policyContext `json:"context,omitempty" doc:"About the request that the service serves, for the tenant's policies"`
}

// policyContext stands for the request that a service asks about.
type policyContext struct {
	IP   string `json:"ip,omitempty" example:"192.0.2.7" doc:"The client's address. If absent it is the member ip of the question; without both, a policy that reads it refuses"`
	Time string `json:"time,omitempty" example:"2026-11-22T23:00:00Z" doc:"When the request is made; absent: now"`
}

// request returns the request as policies read it. A value that can't be parsed is absent, so
// that a policy that reads it refuses.
func (q question) request(now time.Time) *doorward.Request {
	r := &doorward.Request{At: now, Now: now, Deferred: q.Resource == deferredName}
	ip := q.IP
	if c := q.Context; c != nil {
		ip = cmp.Or(c.IP, ip)
		if c.Time != "" {
			r.Now, _ = doorward.ParseTime(c.Time)
		}
	}
	addr, _ := netip.ParseAddr(ip)
	r.IP = addr.Unmap().WithZone("")
	return r
}

type introspectInput struct {
	Credential string         `json:"credential,omitempty" doc:"The token of a session, or an API key"`
	Action     string         `json:"action,omitempty" example:"message.send" doc:"Asks whether it is permitted"`
	IP         string         `json:"ip,omitempty" example:"192.0.2.7" doc:"Where the API key was used from. Without it, a key bound to addresses is inactive"`
	Resource   string         `json:"resource,omitempty" enum:"deferred" doc:"Only \"deferred\": the service asks again, with the resource, so that a policy that needs it doesn't refuse here"`
	Context    *policyContext `json:"context,omitempty" doc:"About the request that the service serves, for the tenant's policies"`
	Items      []question     `json:"items,omitempty" maxItems:"100" doc:"Several at once, instead of credential and action"`
}

type answer struct {
	Active  bool           `json:"active"`
	User    *front.User    `json:"user,omitempty"`
	Session *front.Session `json:"session,omitempty"`
	APIKey  *front.APIKey  `json:"apiKey,omitempty"`
	Allowed *bool          `json:"allowed,omitempty" doc:"Present if an action was given"`
}

// answers is one answer, or with Items several.
type answers struct {
	Active  *bool          `json:"active,omitempty"`
	User    *front.User    `json:"user,omitempty"`
	Session *front.Session `json:"session,omitempty"`
	APIKey  *front.APIKey  `json:"apiKey,omitempty"`
	Allowed *bool          `json:"allowed,omitempty" doc:"Present if an action was given"`
	Items   []answer       `json:"items,omitempty" doc:"In the order of the request, if there were several"`
}

var docIntrospect = front.Doc{
	ID: "introspect", Tag: "Access", Summary: "Check a credential",
	WhilePaused: true,
	Description: "For services that get the credential themselves, without a gateway. For an invalid credential the answer is only `{\"active\": false}`. A batch has 1 to 100 items. For an API key the answer has `apiKey` instead of `user` and `session`. Introspection counts as a use of the session or key, so call it when a request arrives and not on a timer. `session.current` is always true: it is the session of the credential.",
}

// maxQuestions is the greatest number of questions in a batch.
const maxQuestions = 100

func (i *introspection) serve(ctx context.Context, c *front.Call, in introspectInput) (answers, error) {
	isBatch := in.Items != nil
	questions := in.Items
	if !isBatch {
		questions = []question{{in.Credential, in.Action, in.IP, in.Resource, in.Context}}
	}
	model, err := i.app.Model(ctx)
	if err != nil {
		return answers{}, err
	}
	if err := validate(in, questions, model); err != nil {
		return answers{}, err
	}
	all, err := i.answerAll(ctx, c.Caller.Service, questions)
	if err != nil {
		return answers{}, err
	}
	if isBatch {
		return answers{Items: all}, nil
	}
	a := all[0]
	return answers{Active: &a.Active, User: a.User, Session: a.Session, APIKey: a.APIKey, Allowed: a.Allowed}, nil
}

// batchWorkers is how many questions of a batch query the database at the same time, so
// that a batch leaves connections to other requests.
const batchWorkers = 4

func (i *introspection) answerAll(ctx context.Context, by *doorward.ServiceKey, questions []question) ([]answer, error) {
	all, errs := make([]answer, len(questions)), make([]error, len(questions))
	var wg sync.WaitGroup
	for first := range min(batchWorkers, len(questions)) {
		wg.Go(func() {
			for n := first; n < len(questions); n += batchWorkers {
				all[n], errs[n] = i.answer(ctx, by, questions[n])
			}
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

func validate(in introspectInput, questions []question, model *doorward.Model) error {
	if in.Items != nil && (in.Credential != "" || in.Action != "" || in.IP != "" || in.Resource != "" || in.Context != nil) {
		return doorward.Invalid("/items", "invalid", "Ask one question, or several in \"items\", not both.")
	}
	if len(questions) < 1 || len(questions) > maxQuestions {
		return doorward.Invalid("/items", "out_of_range", "Ask 1 to 100 questions at once.")
	}
	var faults []doorward.FieldError
	for n, q := range questions {
		item := ""
		if in.Items != nil {
			item = "/items/" + strconv.Itoa(n)
		}
		if q.Credential == "" {
			faults = append(faults, doorward.FieldError{Pointer: item + "/credential", Code: "required", Message: "Send the credential to ask about."})
		}
		if _, err := netip.ParseAddr(q.IP); q.IP != "" && err != nil {
			faults = append(faults, doorward.FieldError{Pointer: item + "/ip", Code: "invalid", Message: "Write the client's address, such as 192.0.2.7 or 2001:db8::1."})
		}
		if q.Resource != "" && q.Resource != deferredName {
			faults = append(faults, doorward.FieldError{Pointer: item + "/resource", Code: "invalid", Message: "Write \"deferred\", or leave it out."})
		}
		if q.Action != "" && !model.IsPermission(doorward.Action(q.Action)) {
			faults = append(faults, doorward.FieldError{Pointer: item + "/action", Code: "invalid", Message: model.ActionsHelp()})
		}
	}
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

// answer answers one question. A credential is also reported as invalid if the service's key
// doesn't cover its tenant, or if the tenant is frozen or closing.
func (i *introspection) answer(ctx context.Context, by *doorward.ServiceKey, q question) (answer, error) {
	if strings.HasPrefix(q.Credential, apikey.Prefix) {
		return i.answerKey(ctx, by, q)
	}
	token, err := secret.Parse(q.Credential)
	if err != nil {
		return answer{}, nil //nolint:nilerr // other text is an invalid credential
	}
	p, err := i.app.Sessions.Check(ctx, token)
	if err != nil || !by.Covers(p.TenantID) || !decide.Enter(&p, members).Allowed { // a closing tenant's session is valid only for restoring the tenant
		return inactive(err)
	}
	cred, err := i.app.Sessions.Describe(ctx, token)
	if err != nil {
		return inactive(err)
	}
	user, session := front.ViewUser(cred.User), front.ViewCurrentSession(cred.Session, i.app.Sessions.Limits())
	a := answer{Active: true, User: &user, Session: &session}
	if q.Action != "" {
		p = doorward.PrincipalOf(cred.User, cred.Session)
		allowed := i.app.Access.Check(&p, doorward.Action(q.Action), q.request(i.app.Now())).Allowed
		a.Allowed = &allowed
	}
	return a, nil
}

// answerKey answers for an API key that was used from the address that the service states;
// the service's own address doesn't matter.
func (i *introspection) answerKey(ctx context.Context, by *doorward.ServiceKey, q question) (answer, error) {
	key, p, err := i.app.APIKeys.Introspect(ctx, q.Credential, q.IP)
	if err != nil || !by.Covers(p.TenantID) || !decide.Enter(&p, members).Allowed { // Enter refuses if the tenant is frozen or closing
		return inactive(err)
	}
	view := front.ViewAPIKey(key, i.app.Now())
	a := answer{Active: true, APIKey: &view}
	if q.Action != "" {
		allowed := i.app.Access.Check(&p, doorward.Action(q.Action), q.request(i.app.Now())).Allowed
		a.Allowed = &allowed
	}
	return a, nil
}

// inactive answers that the credential is invalid, if err is nil or unauthenticated. Other errors
// are returned unchanged.
func inactive(err error) (answer, error) {
	if doorward.HasCode(err, doorward.CodeUnauthenticated) {
		return answer{}, nil
	}
	return answer{}, err
}
