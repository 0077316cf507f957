// Package edge answers gateways and the other services of the platform: is a credential
// valid, and does it permit an action.
//
// Check is the hot path, outside of the pipeline of web/front: it matches no route, and doesn't log
// a check that passes. If the session or key is in memory, it also needs no timeout and no
// reflection. The pipeline answers only refusals.
package edge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/web/front"
)

// Path is the path of the check.
const Path = "/api/v2/access/check"

// members admits to checks and introspection, but not the sessions and keys of a tenant that is being
// closed.
var members = decide.Route{Credential: decide.OfMember}

// answerWithin is the timeout of a check that has to ask the database.
const answerWithin = 1800 * time.Millisecond

// Check answers checks, with any method, and passes all other requests to next.
func Check(s *front.Site, next http.Handler) http.Handler {
	withBase := s.BasePath() + Path
	c := &checker{s, s.App.Now, audienceSpellings(s.App.Assertions.Audiences())}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Path || r.URL.Path == withBase {
			c.serve(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Documented returns the routes of the reference: those that Routes serves, and
// the check, which Check serves.
func Documented(a *app.App) []front.Route {
	return append(Routes(a), front.On("GET "+Path, front.SignedInOrKey(), front.Raw(nil), docCheck))
}

var docCheck = front.Doc{
	ID: "checkAccess", Tag: "Access", Summary: "Ask whether a request may pass",
	Description: "For gateways, by forward-auth: nginx `auth_request`, Caddy `forward_auth`, Traefik, HAProxy, Envoy. Every method works; a body is not read. Without `action` only the session or key is checked; any other parameter is 400, so that a misspelt one lets nobody through. Text after `&original=`, right after the action and the audience, is the client's own query and isn't read. The eight headers are on every answer, empty where they say nothing and whenever it is not 200. When the gateway names an unsafe method of the original request in `X-Forwarded-Method` or `X-Original-Method`, or the request asks for an upgrade (`Upgrade`, `Sec-WebSocket-Key`, `-Version` or `-Protocol`), a cookie from another origin is 403; a bearer token is not, since no page makes a browser send one unasked. That refusal says in `request` what Doorward took the request for, so that `doorward doctor gateway` can compare it with what it sent.",
	Query: []front.Parameter{
		{Name: "action", Description: "A permission that the role must grant, and the key have", Example: "message.send"},
		{Name: "resource", Description: "Only `deferred`: the service behind the gateway asks again, with the resource, so that a policy that needs it doesn't refuse here", Enum: []string{"deferred"}},
		{Name: "maxAge", Description: "The longest age, in seconds, of the user's last proof of identity: by a second factor if the user has one, else by the password. Older is 403 `step_up_required`. API keys are never asked", Example: "600"},
		{Name: "aal", Description: "The least assurance level of the proof: 2 is a second factor or a passkey", Enum: []string{"1", "2"}},
		{Name: "touch", Description: "Only `false`: the check is no use of the session, which goes on idling. For a service that asks by itself, such as about an open WebSocket", Enum: []string{"false"}},
		{Name: "aud", Description: "The audience of the assertion, one of `--assertion-audience`; without it the first", Example: "https://messages.example.com"},
	},
	Headers: []front.Parameter{
		{Name: "X-Auth-User", Description: "Id of the user; empty for an API key"},
		{Name: "X-Auth-Tenant", Description: "Id of the tenant that the session or key is in"},
		{Name: "X-Auth-Role", Description: "Role there; of a key the lower one of its own and its owner's"},
		{Name: "X-Auth-Email", Description: "Address of the user; empty for a key"},
		{Name: "X-Auth-Session", Description: "Id of the session, which is no credential; empty for a key"},
		{Name: "X-Auth-Key", Description: "Id of the API key; empty for a session"},
		{Name: "X-Auth-AAL", Description: "Assurance level of the session: 2 after a second factor or a passkey, else 1; empty for a key"},
		{Name: "X-Auth-Assertion", Description: "With `--assertion-audience` a signed JSON Web Token that says the same, for services that verify it by `/.well-known/jwks.json`; good for 30 seconds. Empty without that setting"},
	},
	Errors: []doorward.Code{doorward.CodeUnknownAction, doorward.CodeUnknownAudience, doorward.CodeCrossOrigin, doorward.CodeInvalidQuery, doorward.CodeDeniedByPolicy, doorward.CodeStepUpRequired},
}

type checker struct {
	site      *front.Site
	now       doorward.Clock // a field, since a method value for each check would allocate
	audiences map[string]int // index of an audience, by each way to write it in a query
}

func (c *checker) serve(w http.ResponseWriter, r *http.Request) {
	r, span := c.site.Tracer.Check(r, Path, time.Time{})
	defer span.End()
	span.Answered(c.answer(w, r))
}

// answer answers the check, and returns the status.
func (c *checker) answer(w http.ResponseWriter, r *http.Request) int {
	c.site.Share(w.Header(), r)
	p, err := c.identify(r)
	assertion := ""
	if err == nil {
		assertion, err = c.authorize(r, &p)
	}
	if r.ContentLength != 0 {
		limitUnreadBody(w)
	}
	if err != nil {
		return c.refuse(w, r, p, err)
	}
	c.site.Metrics.Checks.Allowed.Inc()
	h := w.Header()
	c.site.SetHeaders(h, r)
	setIdentity(h, identityOf(&p, assertion))
	return http.StatusOK
}

// identityHeaders is the number of headers that setIdentity sets.
const identityHeaders = 8

// aalValues are the values of X-Auth-AAL.
var aalValues = [...]string{"", "1", "2"}

// identityOf returns the values for setIdentity.
func identityOf(p *doorward.Principal, assertion string) *[identityHeaders]string {
	if p.Kind == doorward.ByKey {
		return &[identityHeaders]string{"", p.TenantID, string(p.Role), "", "", p.ID, assertion, ""}
	}
	return &[identityHeaders]string{p.ID, p.TenantID, string(p.Role), p.Email, p.SessionID, "", assertion, aalValues[min(p.AAL, 2)]}
}

// unreadBodyTimeout is how long to wait for the rest of an unread body.
const unreadBodyTimeout = 100 * time.Millisecond

// limitUnreadBody keeps a slow body from delaying the answer: net/http first reads the
// rest of it, without a time limit. If the rest hasn't arrived by the deadline, the
// connection closes, since it couldn't be distinguished from the next request.
func limitUnreadBody(w http.ResponseWriter) {
	// It fails for a ResponseWriter without deadlines, which has no connection either.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadBodyTimeout))
}

func (c *checker) refuse(w http.ResponseWriter, r *http.Request, p doorward.Principal, err error) (status int) {
	var e *doorward.Error
	counts := c.site.Metrics.Checks
	switch {
	case !errors.As(err, &e):
		counts.Unavailable.Inc()
	case e.Kind() == doorward.KindUnauthenticated:
		counts.Unauthenticated.Inc()
	case e.Kind() == doorward.KindForbidden:
		counts.Forbidden.Inc()
	case e.Kind() == doorward.KindMalformed:
		counts.Invalid.Inc()
	case e.Kind() == doorward.KindTooMany:
		counts.Limited.Inc()
	default:
		counts.Unavailable.Inc()
	}
	setIdentity(w.Header(), &[identityHeaders]string{})
	c.site.Refuse(w, r, doorward.Caller{Principal: p}, err)
	return front.Status(front.AsError(err).Code)
}

// setIdentity sets the eight headers, also empty ones, so that a gateway that copies them
// always overwrites what the client sent. The values share one allocation; each slice
// has the capacity 1, so that an append to it can't overwrite the next.
func setIdentity(h http.Header, v *[identityHeaders]string) {
	h["X-Auth-User"] = v[0:1:1]
	h["X-Auth-Tenant"] = v[1:2:2]
	h["X-Auth-Role"] = v[2:3:3]
	h["X-Auth-Email"] = v[3:4:4]
	h["X-Auth-Session"] = v[4:5:5]
	h["X-Auth-Key"] = v[5:6:6]
	h["X-Auth-Assertion"] = v[6:7:7]
	h["X-Auth-Aal"] = v[7:8:8]
}

// identify finds the caller in memory, or else in the database.
func (c *checker) identify(r *http.Request) (doorward.Principal, error) {
	untouched := isUntouched(r.URL.RawQuery)
	if key, ok := c.site.SoleKey(r); ok {
		if p, ok := c.site.App.APIKeys.Remembered(key, c.site.ClientAddr(r)); ok {
			return p, nil
		}
	} else if token, ok := c.site.SoleSession(r); ok && !untouched {
		if p, ok := c.site.App.Sessions.Remembered(token); ok {
			return p, nil
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	identify := c.site.Caller
	if untouched {
		identify = c.site.CallerUnused
	}
	by, err := identify(ctx, r)
	// A check is about users and API keys only.
	if err == nil && (by.Kind == doorward.Operator || by.Kind == doorward.ByService) {
		err = doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	return by.Principal, err
}

// isUntouched reports whether the gateway's own part of the query has touch=false.
func isUntouched(query string) bool {
	if !strings.Contains(query, touchName) { // the usual case, without allocation
		return false
	}
	query, _, _ = strings.Cut("&"+query, andOriginal)
	return strings.Contains(query+"&", "&"+touchName+"=false&")
}

// authorize decides whether the request may pass, and then returns the signed assertion about
// the caller; empty if no audiences are configured.
func (c *checker) authorize(r *http.Request, p *doorward.Principal) (assertion string, err error) {
	if d := decide.Enter(p, members); !d.Allowed {
		return "", d.Refusal()
	}
	if mayBeFromPage(r.Header) && !front.HasBearer(r.Header) && (mayChangeSomething(r.Header) || asksUpgrade(r)) {
		if err := c.site.CheckOrigin(r.Header); err != nil {
			refusal := front.AsError(err)
			refusal.Request = c.request(r, query{})
			return "", refusal
		}
	}
	q, err := c.readQuery(r.URL.RawQuery)
	if err == nil && q.hasAction {
		err = c.decide(r, p, q).Err()
	}
	if err == nil && q.needsProof {
		err = decide.Proved(p, q.aal, q.maxAge, c.site.App.Now()).Err()
	}
	if err != nil || len(c.audiences) == 0 {
		return "", err
	}
	token, err := c.site.App.Assertions.TokenFor(r.Context(), p, q.audience)
	return token.Text, err
}

// decide decides whether the caller may do the action. It parses what the gateway says of the
// request only if a policy needs it or the decision is recorded: parsing costs more.
func (c *checker) decide(r *http.Request, p *doorward.Principal, q query) decide.Decision {
	if p.DependsOnRequest(q.action) {
		return c.site.App.Access.Check(p, q.action, c.request(r, q))
	}
	d := decide.May(p, &decide.Question{Action: q.action, On: p.Tenant(), Proof: c.now, ForService: true})
	decisions := c.site.App.Access.Decisions()
	if due := decisions.Due(p, d); due.Any() {
		decisions.Record(due, p, q.action, "", c.request(r, q), d)
	}
	return d
}

func (c *checker) request(r *http.Request, q query) *doorward.Request {
	now := c.site.App.Now()
	return &doorward.Request{At: now, Now: now, IP: c.site.ClientAddr(r), StatedRequest: c.site.Stated(r), Deferred: q.deferred}
}

// The parameters of a check, besides "action".
const (
	audienceName = "aud"
	resourceName = "resource"
	deferredName = "deferred" // a value of resource: the service behind the gateway asks again, with the resource
	maxAgeName   = "maxAge"
	aalName      = "aal"
	touchName    = "touch" // only false: the check is no use of the session
	// originalName separates the gateway's own parameters from the client's query, for
	// gateways that can only prepend text to the client's path and query (path_prefix of
	// Envoy and Istio).
	originalName = "original"
)

// These parameters as they are written in a query after the action, for parsing without
// allocation.
const (
	andAudience = "&" + audienceName + "="
	andDeferred = "&" + resourceName + "=" + deferredName
	andOriginal = "&" + originalName + "="
)

// query is what a check asks.
type query struct {
	action    doorward.Action
	hasAction bool
	audience  int  // index of the assertion's audience in --assertion-audience
	deferred  bool // see deferredName

	needsProof bool // of the user's identity, by maxAge and aal
	maxAge     time.Duration
	aal        int
}

// readQuery returns what the query asks. If it begins with the action, the rest after &original= is
// the client's and isn't read. Else only the value of original is ignored, so that a client can't
// hide a later action. Errors: unknown_action and unknown_audience, also if there are two;
// invalid_query, also for an unknown parameter: a misspelt "action" would let everybody through.
func (c *checker) readQuery(text string) (q query, err error) {
	if text == "" {
		return q, nil
	}
	if rest, isFirst := strings.CutPrefix(text, "action="); isFirst {
		rest, _, _ = strings.Cut(rest, andOriginal)
		if q, known := c.readPlain(rest); known {
			return q, nil
		}
		text = "action=" + rest
	}
	values, err := url.ParseQuery(text)
	isMissed := values[touchName] != nil && !isUntouched(text) // written with escapes
	if err != nil || !hasOnlyKnown(values) || isMissed {
		return q, doorward.Fail(doorward.CodeInvalidQuery, "A check takes the parameters \"action\", \"aud\", \"resource\", \"maxAge\", \"aal\" and \"touch\", and no other; \"resource\" is \"deferred\", \"touch\" is \"false\". A gateway that appends the client's own query must write \"&original=\" before it.")
	}
	if actions := values["action"]; len(actions) > 0 {
		q.action, q.hasAction = doorward.Action(actions[0]), true
		if len(actions) > 1 {
			return q, doorward.Fail(doorward.CodeUnknownAction, "")
		}
	}
	q.deferred = len(values[resourceName]) > 0
	if err := q.readProof(values); err != nil {
		return q, err
	}
	if named := values[audienceName]; len(named) > 0 {
		index, found := c.site.App.Assertions.Find(named[0])
		if len(named) > 1 || !found {
			return q, doorward.Fail(doorward.CodeUnknownAudience, "")
		}
		q.audience = index
	}
	return q, nil
}

// readProof reads which proof of the user's identity is needed. Errors: invalid_query.
func (q *query) readProof(values url.Values) error {
	ages, levels := values[maxAgeName], values[aalName]
	if len(ages)+len(levels) == 0 {
		return nil
	}
	q.needsProof, q.maxAge, q.aal = true, doorward.AnyAge, 1
	if len(ages) > 0 {
		seconds, err := strconv.ParseUint(ages[0], 10, 31)
		if err != nil || len(ages) > 1 {
			return doorward.Fail(doorward.CodeInvalidQuery, "\"maxAge\" is the age of the proof in seconds, such as 600, and appears once.")
		}
		q.maxAge = time.Duration(seconds) * time.Second
	}
	if len(levels) > 0 {
		if len(levels) > 1 || levels[0] != "1" && levels[0] != "2" {
			return doorward.Fail(doorward.CodeInvalidQuery, "\"aal\" is the assurance level, 1 or 2, and appears once.")
		}
		q.aal = int(levels[0][0] - '0')
	}
	return nil
}

// readPlain reads the usual forms ACTION and ACTION&aud=AUDIENCE, also with
// &resource=deferred, without allocation, and reports whether the text is one of them.
func (c *checker) readPlain(text string) (q query, known bool) {
	text, q.deferred = strings.CutSuffix(text, andDeferred)
	action, audience, hasAudience := strings.Cut(text, andAudience)
	q.action, q.hasAction = doorward.Action(action), true
	if hasAudience {
		q.audience, known = c.audiences[audience]
		return q, known && isPlain(action)
	}
	return q, isPlain(action)
}

// isPlain reports whether the text may be an action as it stands, without escapes and
// further parameters.
func isPlain(text string) bool {
	for _, c := range []byte(text) {
		if c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return text != ""
}

// audienceSpellings maps each audience, as it may be written in a query, to its index:
// percent-encoded, and unencoded if a query parser reads that as the same audience.
func audienceSpellings(audiences []string) map[string]int {
	all := map[string]int{}
	for i, name := range audiences {
		all[url.QueryEscape(name)] = i
		if values, err := url.ParseQuery(audienceName + "=" + name); err == nil && len(values) == 1 && values.Get(audienceName) == name {
			all[name] = i
		}
	}
	return all
}

// hasOnlyKnown reports whether all names are parameters of a check, resource, if it is there, is
// deferred, and touch is false.
func hasOnlyKnown(values url.Values) bool {
	for name := range values {
		switch name {
		case "action", audienceName, resourceName, originalName, maxAgeName, aalName, touchName:
		default:
			return false
		}
	}
	isAbsentOr := func(name, value string) bool {
		sent := values[name]
		return len(sent) == 0 || len(sent) == 1 && sent[0] == value
	}
	return isAbsentOr(resourceName, deferredName) && isAbsentOr(touchName, "false")
}

// mayBeFromPage reports whether the request may come from a page in a browser. Only such
// requests can be cross-origin.
func mayBeFromPage(h http.Header) bool { return h["Sec-Fetch-Site"] != nil || h["Origin"] != nil }

// mayChangeSomething reports whether the gateway states a method other than the safe ones for
// the request that it asks about.
func mayChangeSomething(h http.Header) bool {
	for _, name := range [...]string{"X-Forwarded-Method", "X-Original-Method"} {
		for _, method := range h[name] {
			if !front.Safe(method) {
				return true
			}
		}
	}
	return false
}

// asksUpgrade reports whether the request opens a two-way connection, such as a WebSocket:
// browsers let every page send it, with cookies, and read the answer. Gateways drop the
// header Upgrade but not the others (RFC 6455, section 4.1); with HTTP/2 only the method
// CONNECT may remain (RFC 8441).
func asksUpgrade(r *http.Request) bool {
	h := r.Header
	return r.Method == http.MethodConnect || h["Upgrade"] != nil ||
		h["Sec-Websocket-Key"] != nil || h["Sec-Websocket-Version"] != nil || h["Sec-Websocket-Protocol"] != nil ||
		h.Get("Sec-Fetch-Mode") == "websocket"
}
