package policy

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Question asks why somebody in the caller's tenant may do something, or may not.
type Question struct {
	// One of these says who: the id of a user; the id of an API key; or a credential, which is
	// the token of a session or the secret of a key.
	UserID, KeyID, Credential string

	Action doorward.Action
	// Resource is the object of an action of the platform; nil: unknown, as in a check.
	Resource *doorward.Resource
	Context  Context
	// Version is the version of the policies to decide by, as if it were enforced; 0: the one in
	// force now.
	Version int64
}

// Context is the request that is asked about. For policies, fields that are empty or can't be
// parsed are missing; only an empty Time means now.
type Context struct {
	IP   string
	Time string // RFC 3339
	// Stated is what a gateway would state about the request.
	Stated doorward.StatedRequest
}

// Kind is the kind of a cause.
type Kind string

// The kinds.
const (
	ByRole   Kind = "role"
	ByKey    Kind = "key"
	ByPolicy Kind = "policy"
	ByTenant Kind = "tenant"
)

// Cause is one of the causes of a decision.
type Cause struct {
	Kind   Kind
	ID     string // name of the role; id of the key, the policy or the tenant
	Line   int    // of a policy, where it begins
	Reason string // a sentence; may be empty
	// Platform reports whether it is a policy of the platform. Line then counts in the
	// policies of the model.
	Platform bool
}

// Explanation is a decision and its causes: what refuses the action, or else all that allows it.
type Explanation struct {
	Allowed   bool
	Role      doorward.Role // of the user; of a key, the effective role
	Because   []Cause
	GrantedBy []doorward.Role // all roles of the tenant that grant the action, the lowest first
}

// Explain decides as checks, introspection and AuthZEN do. It writes nothing, not even the use of
// the credential, so the same question about the same state has the same answer. Only a session
// that has idled out is deleted, as by a check. Errors:
// not_found if there is no such user, key, credential or version in the caller's tenant;
// validation_failed; unavailable.
func (p *Policies) Explain(ctx context.Context, by doorward.Caller, q Question) (Explanation, error) {
	s, err := p.findSubject(ctx, by, q)
	if err != nil {
		return Explanation{}, err
	}
	verb, known := s.p.Rules.Model().Lookup(q.Action)
	if !known || verb.By != doorward.ByRole {
		return Explanation{}, doorward.Invalid("/action", "invalid", s.p.Rules.Model().ActionsHelp())
	}
	if q.Version != 0 {
		if err := p.applyVersion(ctx, &s.p, q.Version); err != nil {
			return Explanation{}, err
		}
	}
	return s.explain(verb, q, p.db.Now()), nil
}

// applyVersion gives the principal a version of the policies in place of those in force.
func (p *Policies) applyVersion(ctx context.Context, principal *doorward.Principal, version int64) error {
	v, err := p.db.Read().PolicyVersion(ctx, principal.TenantID, version)
	if errors.Is(err, store.ErrNone) {
		return noVersion(version)
	}
	if err != nil {
		return err
	}
	model, err := modelOf(ctx, p.db.Read())
	if err != nil {
		return err
	}
	trial, err := rules.Try(v, model)
	if err != nil {
		return doorward.Unavailable(err)
	}
	principal.Policy = trial.For(principal)
	return nil
}

// subject is the principal that is asked about, and the causes that refuse it every action.
type subject struct {
	p       doorward.Principal
	refused []Cause
}

// findSubject returns the principal that is asked about. It must be in the caller's tenant,
// except that the operator may ask about keys and sessions in any. Errors: not_found,
// unavailable.
func (p *Policies) findSubject(ctx context.Context, by doorward.Caller, q Question) (s subject, err error) {
	if err := p.db.Clock().Err(); err != nil {
		return s, err // expiry can't be determined
	}
	switch {
	case q.UserID != "":
		s, err = p.userByID(ctx, by.TenantID, q.UserID)
	case q.KeyID != "":
		s, err = p.keyByID(ctx, q.KeyID, q.Context.IP)
	case strings.HasPrefix(q.Credential, apikey.Prefix):
		s, err = p.keyBySecret(ctx, q.Credential, q.Context.IP)
	default:
		s, err = p.sessionByToken(ctx, q.Credential)
	}
	if errors.Is(err, store.ErrNone) || doorward.HasCode(err, doorward.CodeUnauthenticated) || err == nil && s.p.TenantID != by.TenantID && by.Kind != doorward.Operator {
		return subject{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	if d := decide.Enter(&s.p, decide.Route{Credential: decide.OfMember}); err == nil && !d.Allowed && len(s.refused) == 0 {
		s.refused = append(s.refused, s.refusalCause(d))
	}
	return s, err
}

func (p *Policies) userByID(ctx context.Context, tenantID, id string) (s subject, err error) {
	u, err := p.db.Read().User(ctx, tenantID, id)
	if err != nil {
		return s, err
	}
	s.p = doorward.PrincipalOf(u, doorward.Session{})
	if d := decide.SignIn(u); !d.Allowed {
		s.refused = append(s.refused, s.refusalCause(d))
	}
	return s, nil
}

func (p *Policies) sessionByToken(ctx context.Context, token string) (s subject, err error) {
	t, err := secret.Parse(token)
	if err != nil {
		return s, store.ErrNone
	}
	cred, err := p.sessions.Peek(ctx, t)
	s.p = doorward.PrincipalOf(cred.User, cred.Session)
	return s, err
}

func (p *Policies) keyByID(ctx context.Context, id, ip string) (s subject, err error) {
	k, err := p.db.Read().APIKey(ctx, id, p.db.Now())
	if err != nil {
		return s, err
	}
	t, err := p.db.Read().Tenant(ctx, k.TenantID)
	return p.subjectOfKey(k, nil, t.Status, ip), err
}

func (p *Policies) keyBySecret(ctx context.Context, text, ip string) (s subject, err error) {
	key, err := secret.ParseKey(text)
	if err != nil {
		return s, store.ErrNone
	}
	hash := key.Hash()
	c, err := p.db.Read().APIKeyBySecret(ctx, hash[:], p.db.Now())
	return p.subjectOfKey(c.Key, c.SecretEndsAt, c.Tenant, ip), err
}

// keyReasons says why a secret of a key is not valid.
var keyReasons = map[decide.KeyCause]string{
	decide.KeyRevoked:  "The API key was revoked.",
	decide.KeyExpired:  "The API key has expired.",
	decide.KeyRotated:  "A newer secret of the API key has replaced this one.",
	decide.KeyDisabled: "The API key is disabled.",
	decide.KeyOwner:    "The owner of the API key is no active member.",
}

// subjectOfKey returns the subject of a key. secretEndsAt is nil if the current secret is asked
// about, or the key by its id.
func (p *Policies) subjectOfKey(k doorward.APIKey, secretEndsAt *time.Time, tenant doorward.TenantStatus, ip string) subject {
	s := subject{p: doorward.PrincipalOfKey(k, tenant)}
	if cause := decide.KeyRefusal(&k, secretEndsAt, p.db.Now()); cause != "" {
		s.refused = append(s.refused, Cause{Kind: ByKey, ID: k.ID, Reason: keyReasons[cause]})
	}
	if !k.Admits(ip) {
		s.refused = append(s.refused, Cause{Kind: ByKey, ID: k.ID, Reason: "The API key is bound to addresses, and the request doesn't come from one of them."})
	}
	return s
}

func (s *subject) explain(verb *doorward.Verb, q Question, now time.Time) Explanation {
	e := Explanation{Role: s.p.Role, GrantedBy: grantedBy(s.p.Rules, q.Action)}
	r := q.request(now)
	d := decide.May(&s.p, &decide.Question{Action: q.Action, On: s.p.Tenant(), Request: r})
	switch {
	case len(s.refused) > 0:
		e.Because = s.refused
	case q.Resource != nil && verb.WrongType(q.Resource.Type) != "":
		e.Because = []Cause{{Kind: ByRole, ID: string(s.p.Role), Reason: verb.WrongType(q.Resource.Type)}}
	case q.Resource != nil && verb.Resource == "" && q.Resource.ID != s.p.TenantID:
		e.Because = []Cause{{Kind: ByTenant, ID: s.p.TenantID, Reason: "The resource is a tenant other than that of the user or key."}}
	case d.Policy() != nil:
		e.Because = s.refusingPolicies(verb, r)
	case !d.Allowed:
		e.Because = []Cause{s.refusalCause(d)}
	default:
		e.Allowed, e.Because = true, s.allowCauses(d)
	}
	return e
}

// grantedBy returns the roles that grant the action, the lowest first.
func grantedBy(rules *doorward.Rules, action doorward.Action) []doorward.Role {
	return slices.DeleteFunc(rules.Roles(), func(r doorward.Role) bool {
		role := doorward.PrincipalOfRole(rules, r)
		return !decide.May(&role, &decide.Question{Action: action, On: role.Tenant()}).Allowed
	})
}

// tenantType is the type of the resource of actions that declare none.
const tenantType = "tenant"

// allowCauses returns the causes that allow the action: a permit of the platform, or the role
// and, for a key, also the key.
func (s *subject) allowCauses(d decide.Decision) []Cause {
	if by := d.Permit(); by != nil {
		return []Cause{{Kind: ByPolicy, ID: by.PolicyID, Line: by.Line, Platform: true}}
	}
	all := []Cause{{Kind: ByRole, ID: string(s.p.Role)}}
	if s.p.Kind == doorward.ByKey {
		all = append(all, Cause{Kind: ByKey, ID: s.p.ID})
	}
	return all
}

// refusalCause returns the cause of a refusal that no policy has made.
func (s *subject) refusalCause(d decide.Decision) Cause {
	b := Cause{Kind: ByRole, ID: string(s.p.Role), Reason: d.Why()}
	switch d.Reason {
	case decide.ReasonKey:
		b.Kind, b.ID = ByKey, s.p.ID
	case decide.ReasonTenant:
		b.Kind, b.ID = ByTenant, s.p.TenantID
	}
	return b
}

// refusingPolicies returns all policies that refuse: those of the platform, then those of the
// tenant, each in the order of the text.
func (s *subject) refusingPolicies(verb *doorward.Verb, r *doorward.Request) (all []Cause) {
	found := s.p.Policy.Refusals(verb.Permission, r)
	if verb.Action != verb.Permission {
		found = append(found, s.p.Policy.Refusals(verb.Action, r)...)
	}
	slices.SortStableFunc(found, func(a, b doorward.PolicyRefusal) int { // those of the platform have version 0
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Line, b.Line))
	})
	for i, f := range found {
		if i == 0 || f.PolicyID != found[i-1].PolicyID || f.Version != found[i-1].Version {
			all = append(all, policyCause(&f))
		}
	}
	return all
}

func policyCause(f *doorward.PolicyRefusal) Cause {
	b := Cause{Kind: ByPolicy, ID: f.PolicyID, Line: f.Line, Reason: f.Reason, Platform: f.ByOperator}
	if b.Reason == "" && f.Needs != "" {
		b.Reason = "It reads " + f.Needs + ", which the request lacks."
	}
	return b
}

// request returns the request that is asked about, as policies see it.
func (q Question) request(now time.Time) *doorward.Request {
	ip, _ := netip.ParseAddr(q.Context.IP)
	r := &doorward.Request{At: now, Now: now, IP: ip.Unmap().WithZone("")}
	if q.Context.Time != "" {
		r.Now, _ = doorward.ParseTime(q.Context.Time)
	}
	r.StatedRequest = q.Context.Stated
	if q.Resource != nil && q.Resource.Type != tenantType {
		r.Resource = q.Resource
	}
	return r
}
