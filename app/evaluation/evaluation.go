// Package evaluation decides what users, API keys and sessions may do, for services that
// ask about them by id.
//
//	decisions, err := e.Decide(ctx, by, []evaluation.Question{{
//		Subject:  evaluation.Subject{Type: "user", ID: "usr_…"},
//		Action:   "message.send",
//		Resource: doorward.Resource{Type: "tenant", ID: "tnt_…"},
//	}})
//
// Each call reads users and keys from the database, and checks sessions as access checks do. So a
// revocation takes effect at once on every node. For a service that is limited to some tenants,
// nothing outside of them exists. An error means that the answer is unknown; it is never a
// refusal.
package evaluation

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/store"
)

// The types of subjects. A user is one of Doorward's, whose id begins with doorward.PrefixUser, or
// one that the model declares as an entity.
const (
	User    = "user"
	Key     = "key"
	Session = "session"
)

// Tenant is the type of the resource of actions that have no type of their own.
const Tenant = "tenant"

// Subject is the user, key or session that would act.
type Subject struct {
	Type string
	ID   string // of a user or key; for a session its token
	// TenantID chooses the membership of a user. It may be empty if there is one.
	TenantID string
}

// Question asks whether a subject may do something.
type Question struct {
	Subject  Subject
	Action   doorward.Action
	Resource doorward.Resource
	// Attributes of subject and action that the service states, for the operator's policies. For a
	// user that the model declares, they override the model's attributes.
	SubjectProperties, ActionProperties map[string]any
	// Properties of the request that the service states: the client's address, which may be
	// malformed, and the time. A nil Time means now, the zero time is unknown.
	IP   string
	Time *time.Time
}

// Decision is the answer to a Question.
type Decision struct {
	Allowed  bool
	Reason   string // of a refusal, a sentence
	PolicyID string // of the policy that refuses; else empty
	// StepUp is the proof of identity that is missing; nil for another reason.
	StepUp *doorward.ProofNeeded
}

// Evaluations is the feature. Make it with New.
type Evaluations struct {
	writer   *access.Writer
	db       *store.DB
	sessions *session.Sessions
	keys     *apikey.Keys
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, sessions *session.Sessions, keys *apikey.Keys) *Evaluations {
	return &Evaluations{writer, db, sessions, keys}
}

// Decide answers the questions of a service, in their order; by is nil for the operator. It records
// uses of sessions, and decisions as access.Writer.Check does. Errors: unavailable.
func (e *Evaluations) Decide(ctx context.Context, by *doorward.ServiceKey, questions []Question) ([]Decision, error) {
	asked := make(map[subjectKey]candidate)
	for _, q := range questions {
		asked[q.subjectKey()] = candidate{}
	}
	if err := e.findAll(ctx, by, asked); err != nil {
		return nil, err
	}
	all, now := make([]Decision, len(questions)), e.db.Now()
	for i, q := range questions {
		if err := ctx.Err(); err != nil {
			return nil, doorward.Unavailable(err)
		}
		c := asked[q.subjectKey()].withProperties(q.SubjectProperties)
		all[i] = c.decide(q, now, e.writer.Check)
	}
	return all, nil
}

// subjectKey identifies a principal to look up.
type subjectKey struct {
	subject Subject
	ip      string // from which an API key would be used
}

func (q Question) subjectKey() subjectKey { return subjectKey{q.Subject, q.IP} }

// workers is how many subjects are read at the same time, so that a call leaves
// connections to other requests.
const workers = 4

// findAll sets the candidate of each key of the map.
func (e *Evaluations) findAll(ctx context.Context, by *doorward.ServiceKey, asked map[subjectKey]candidate) error {
	pending := make(chan subjectKey, len(asked))
	for s := range asked {
		pending <- s
	}
	close(pending)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for range min(workers, len(asked)) {
		wg.Go(func() {
			for s := range pending {
				c, err := e.find(ctx, by, s)
				mu.Lock()
				asked[s], errs = c, append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// candidate is the principal of a subject, or why there is none.
type candidate struct {
	p          doorward.Principal
	refusal    string // why there is none, a sentence; empty if there is one
	isDeclared bool   // whether it is a user that the model declares
}

// withProperties adds the attributes that the service states for the subject. They change the
// principal only for users that the model declares.
func (c candidate) withProperties(properties map[string]any) candidate {
	if c.isDeclared && len(properties) > 0 {
		c.p, _ = doorward.PrincipalOfDeclared(c.p.Rules, c.p.ID, properties)
	}
	return c
}

// Reasons for a refusal that the question itself causes.
const (
	noSubject      = "There is no such subject."
	noAction       = "There is no such action."
	otherAddress   = "The API key may not be used from the address in context.ip, or needs one."
	unknownType    = "The types of subjects are user, key and session."
	severalTenants = "The user is in several tenants. Name one in subject.properties.tenantId."
	noTenant       = "Name the tenant, as the resource or in subject.properties.tenantId."
	noResources    = "Doorward holds no resources of this type."
	otherTenant    = "The resource is not the subject's tenant."
)

// find returns the candidate of a subject, or the reason why there isn't exactly one.
func (e *Evaluations) find(ctx context.Context, by *doorward.ServiceKey, s subjectKey) (candidate, error) {
	all, err := e.candidates(ctx, by, s)
	switch {
	case err != nil:
		return candidate{}, err
	case len(all) == 0:
		return candidate{refusal: noSubject}, nil
	case len(all) > 1:
		return candidate{refusal: severalTenants}, nil
	}
	return all[0], nil
}

// candidates returns the candidates of a subject in the tenants that the service covers.
func (e *Evaluations) candidates(ctx context.Context, by *doorward.ServiceKey, s subjectKey) ([]candidate, error) {
	switch s.subject.Type {
	case User:
		if !strings.HasPrefix(s.subject.ID, doorward.PrefixUser) {
			return e.findDeclared(ctx, by, s.subject.ID)
		}
		return e.findMembers(ctx, by, s.subject)
	case Key:
		p, err := e.keys.ByID(ctx, s.subject.ID, s.ip)
		return candidateOfCredential(by, p, err)
	case Session:
		p, err := e.sessions.CheckText(ctx, s.subject.ID)
		return candidateOfCredential(by, p, err)
	}
	return []candidate{{refusal: unknownType}}, nil
}

// findDeclared returns the user that the model declares, who is in no tenant. A service that is
// limited to some tenants doesn't get it.
func (e *Evaluations) findDeclared(ctx context.Context, by *doorward.ServiceKey, id string) ([]candidate, error) {
	if !by.Covers("") {
		return nil, nil
	}
	rules, err := e.db.Read().Rules(ctx, "")
	if err != nil {
		return nil, err
	}
	p, found := doorward.PrincipalOfDeclared(rules, id, nil)
	if !found {
		return nil, nil
	}
	return []candidate{{p: p, isDeclared: true}}, nil
}

// findMembers returns the user in each tenant that the service covers, or only in s.TenantID.
func (e *Evaluations) findMembers(ctx context.Context, by *doorward.ServiceKey, s Subject) (all []candidate, err error) {
	users, err := e.memberships(ctx, s)
	for _, u := range users {
		if by.Covers(u.TenantID) {
			all = append(all, candidateOfMember(u))
		}
	}
	return all, err
}

func (e *Evaluations) memberships(ctx context.Context, s Subject) ([]doorward.User, error) {
	if s.TenantID == "" {
		return e.db.Read().Memberships(ctx, s.ID)
	}
	u, err := e.db.Read().User(ctx, s.TenantID, s.ID)
	if errors.Is(err, store.ErrNone) {
		return nil, nil
	}
	return []doorward.User{u}, err
}

// candidateOfMember returns the candidate of a membership, with a refusal if the user may not sign
// in to the tenant.
func candidateOfMember(u doorward.User) candidate {
	c := candidateOf(doorward.PrincipalOf(u, doorward.Session{}))
	if d := decide.SignIn(u); !d.Allowed {
		c.refusal = d.Why()
	}
	return c
}

// candidateOf returns the candidate of a principal, with a refusal if it may not use its tenant.
func candidateOf(p doorward.Principal) candidate {
	c := candidate{p: p}
	if d := decide.Enter(&p, decide.Route{Credential: decide.OfMember}); !d.Allowed {
		c.refusal = d.Why()
	}
	return c
}

// candidateOfCredential returns the candidate of a key or session from the result of its lookup, or
// the reason why there is none.
func candidateOfCredential(by *doorward.ServiceKey, p doorward.Principal, err error) ([]candidate, error) {
	switch {
	case p.TenantID != "" && !by.Covers(p.TenantID), doorward.HasCode(err, doorward.CodeUnauthenticated):
		return nil, nil
	case doorward.HasCode(err, doorward.CodeIPNotAllowed):
		return []candidate{{refusal: otherAddress}}, nil
	case err != nil:
		return nil, err
	}
	return []candidate{candidateOf(p)}, nil
}

// decide answers a question about the candidate. It calls check with the request of the question:
// access.Writer.Check, or for searches Evaluations.unrecorded.
func (c *candidate) decide(q Question, now time.Time, check func(*doorward.Principal, doorward.Action, *doorward.Request) decide.Decision) Decision {
	if c.refusal != "" {
		return Decision{Reason: c.refusal}
	}
	verb, _ := c.p.Rules.Model().Lookup(q.Action)
	switch {
	case !verb.IsPermission():
		return Decision{Reason: noAction}
	case verb.WrongType(q.Resource.Type) != "":
		return Decision{Reason: verb.WrongType(q.Resource.Type)}
	case q.Resource.Type == Tenant && q.Resource.ID != c.p.TenantID:
		return Decision{Reason: otherTenant}
	}
	d := check(&c.p, q.Action, q.request(now))
	switch {
	case d.Allowed:
		return Decision{Allowed: true}
	case d.Policy() != nil:
		return Decision{Reason: d.Why(), PolicyID: d.Policy().PolicyID}
	}
	return Decision{Reason: d.Why(), StepUp: d.Refusal().Proof}
}

// request returns the properties of the request that the service states, for policies.
func (q Question) request(now time.Time) *doorward.Request {
	ip, _ := netip.ParseAddr(q.IP)
	r := &doorward.Request{At: now, Now: now, IP: ip.Unmap().WithZone("")}
	if q.Time != nil {
		r.Now = *q.Time
	}
	if q.Resource.Type != Tenant {
		r.Resource = &q.Resource
	}
	r.Properties = &doorward.Properties{Subject: q.SubjectProperties, Action: q.ActionProperties, Resource: q.Resource.Attributes}
	return r
}
