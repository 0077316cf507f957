package evaluation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// SearchResult is a page of the results of a search. It may be empty although more results follow.
type SearchResult[T any] struct {
	doorward.Page[T]
	Reason string // why such a search can't find anything; else empty
}

// Limits of one search.
const (
	maxScanned = 2000        // rows, or entities of the model
	chunk      = 500         // rows read at once
	searchTime = time.Second // for entities, since policies about them may take long
)

// Subjects finds the users or API keys of one tenant that may perform the action of the question.
// The tenant is that of the subject, or the resource. Without a tenant it finds users that the model
// declares. It ignores the ID of the subject. Errors: unavailable.
func (e *Evaluations) Subjects(ctx context.Context, by *doorward.ServiceKey, q Question, w doorward.Window) (SearchResult[Subject], error) {
	tenantID := q.Subject.TenantID
	if q.Resource.Type == Tenant {
		tenantID = cmp.Or(tenantID, q.Resource.ID)
	}
	now := e.db.Now()
	switch {
	case q.Subject.Type != User && q.Subject.Type != Key:
		return SearchResult[Subject]{Reason: "Only users and keys can be searched for."}, nil
	case tenantID == "" && q.Subject.Type == User && by.Covers(""):
		return e.declaredUsers(ctx, q, w)
	case tenantID == "":
		return SearchResult[Subject]{Reason: noTenant}, nil
	case !by.Covers(tenantID):
		return SearchResult[Subject]{}, nil
	case q.Subject.Type == Key:
		return e.keysOf(ctx, tenantID, q, w)
	}
	return scan(ctx, w, func(w doorward.Window) (doorward.Page[doorward.User], error) {
		return e.db.Read().UserPage(ctx, tenantID, store.UserFilter{Status: doorward.UserActive}, w)
	}, func(u doorward.User) (Subject, doorward.Position, bool) {
		c := candidateOfMember(u)
		at := doorward.Position{At: u.CreatedAt.UnixMicro(), ID: u.ID}
		return Subject{User, u.ID, u.TenantID}, at, c.decide(q, now, e.unrecorded).Allowed
	})
}

// declaredUsers searches the users that the model declares.
func (e *Evaluations) declaredUsers(ctx context.Context, q Question, w doorward.Window) (SearchResult[Subject], error) {
	rules, err := e.db.Read().Rules(ctx, "")
	if err != nil {
		return SearchResult[Subject]{}, err
	}
	ids := rules.Declared(User)
	if len(ids) == 0 {
		return SearchResult[Subject]{Reason: noTenant}, nil
	}
	now := e.db.Now()
	found := scanIDs(e.db.Now, ids, w, func(id string) bool {
		p, _ := doorward.PrincipalOfDeclared(rules, id, q.SubjectProperties)
		c := candidate{p: p, isDeclared: true}
		return c.decide(q, now, e.unrecorded).Allowed
	})
	return resultOf(found, func(id string) Subject { return Subject{Type: User, ID: id} }), nil
}

// resultOf converts a page of ids to a page of results.
func resultOf[T any](ids doorward.Page[string], convert func(id string) T) (found SearchResult[T]) {
	for _, id := range ids.Items {
		found.Items = append(found.Items, convert(id))
	}
	found.Next = ids.Next
	return found
}

// unrecorded decides as access.Writer.Check does, and records nothing.
func (e *Evaluations) unrecorded(p *doorward.Principal, action doorward.Action, r *doorward.Request) decide.Decision {
	return decide.May(p, &decide.Question{Action: action, On: p.Tenant(), Request: r, Proof: e.db.Now, ForService: true})
}

// scanIDs calls matches for sorted ids until the window is full or a limit is reached.
func scanIDs(clock func() time.Time, ids []string, w doorward.Window, matches func(id string) bool) (page doorward.Page[string]) {
	first, found := slices.BinarySearch(ids, w.After.ID)
	if found {
		first++
	}
	end := clock().Add(searchTime)
	for i, id := range ids[first:] {
		if matches(id) {
			page.Items = append(page.Items, id)
		}
		isLast := first+i == len(ids)-1
		if !isLast && (len(page.Items) == w.Limit || i == maxScanned-1 || !clock().Before(end)) {
			page.Next = &doorward.Position{ID: id}
			return page
		}
	}
	return page
}

// keysOf searches the keys of a tenant.
func (e *Evaluations) keysOf(ctx context.Context, tenantID string, q Question, w doorward.Window) (SearchResult[Subject], error) {
	t, err := e.db.Read().Tenant(ctx, tenantID)
	if err != nil {
		if errors.Is(err, store.ErrNone) {
			err = nil
		}
		return SearchResult[Subject]{}, err
	}
	if err := e.db.Clock().Err(); err != nil {
		return SearchResult[Subject]{}, err // expiry can't be determined
	}
	now := e.db.Now()
	return scan(ctx, w, func(w doorward.Window) (doorward.Page[doorward.APIKey], error) {
		return e.db.Read().APIKeyPage(ctx, tenantID, store.APIKeyFilter{Status: doorward.APIKeyActive}, now, w)
	}, func(k doorward.APIKey) (Subject, doorward.Position, bool) {
		c := candidateOf(doorward.PrincipalOfKey(k, t.Status))
		at := doorward.Position{At: k.CreatedAt.UnixMicro(), ID: k.ID}
		valid := decide.KeyRefusal(&k, nil, now) == "" && k.Admits(q.IP)
		return Subject{Key, k.ID, k.TenantID}, at, valid && c.decide(q, now, e.unrecorded).Allowed
	})
}

// scan reads rows until the window is full, all rows are read, or maxScanned were. match returns the
// subject of a row, its position in the order, and whether it belongs to the results. Errors:
// unavailable, also when the request's time is over: policies may take long for each row.
func scan[T any](ctx context.Context, w doorward.Window, read func(doorward.Window) (doorward.Page[T], error), match func(T) (Subject, doorward.Position, bool)) (found SearchResult[Subject], err error) {
	at := doorward.Window{After: w.After, Limit: chunk}
	for range maxScanned / chunk {
		rows, err := read(at)
		if err != nil {
			return SearchResult[Subject]{}, err
		}
		for i, row := range rows.Items {
			if err := ctx.Err(); err != nil {
				return SearchResult[Subject]{}, doorward.Unavailable(err)
			}
			s, position, matches := match(row)
			if !matches {
				continue
			}
			found.Items = append(found.Items, s)
			if len(found.Items) == w.Limit {
				if rows.Next != nil || i < len(rows.Items)-1 {
					found.Next = &position
				}
				return found, nil
			}
		}
		if found.Next = rows.Next; rows.Next == nil {
			break
		}
		at.After = *rows.Next
	}
	return found, nil
}

// Resources finds the resources on which the subject may perform the action of the question: tenants,
// or entities of a type that the model declares. Errors: unavailable.
func (e *Evaluations) Resources(ctx context.Context, by *doorward.ServiceKey, q Question, w doorward.Window) (SearchResult[doorward.Resource], error) {
	if q.Resource.Type != Tenant {
		return e.entities(ctx, by, q, w)
	}
	all, err := e.candidates(ctx, by, q.subjectKey())
	if err != nil {
		return SearchResult[doorward.Resource]{}, err
	}
	var found []doorward.Resource
	now := e.db.Now()
	for _, c := range all {
		q.Resource.ID = c.p.TenantID
		if c.decide(q, now, e.unrecorded).Allowed {
			found = append(found, q.Resource)
		}
	}
	return SearchResult[doorward.Resource]{Page: pageOf(found, func(r doorward.Resource) string { return r.ID }, w)}, nil
}

// entities searches the model's entities of the type that the question asks about.
func (e *Evaluations) entities(ctx context.Context, by *doorward.ServiceKey, q Question, w doorward.Window) (SearchResult[doorward.Resource], error) {
	c, err := e.find(ctx, by, q.subjectKey())
	if err != nil || c.refusal != "" {
		return SearchResult[doorward.Resource]{Reason: c.refusal}, err
	}
	ids := c.p.Rules.Declared(q.Resource.Type)
	if len(ids) == 0 {
		return SearchResult[doorward.Resource]{Reason: noResources}, nil
	}
	c = c.withProperties(q.SubjectProperties)
	now := e.db.Now()
	found := scanIDs(e.db.Now, ids, w, func(id string) bool {
		q.Resource.ID = id
		return c.decide(q, now, e.unrecorded).Allowed
	})
	return resultOf(found, func(id string) doorward.Resource { return doorward.Resource{Type: q.Resource.Type, ID: id} }), nil
}

// Actions finds the actions that the subject may perform on the resource, sorted by name. Errors:
// unavailable.
func (e *Evaluations) Actions(ctx context.Context, by *doorward.ServiceKey, q Question, w doorward.Window) (SearchResult[doorward.Action], error) {
	c, err := e.find(ctx, by, q.subjectKey())
	if err != nil || c.refusal != "" {
		return SearchResult[doorward.Action]{Reason: c.refusal}, err
	}
	c = c.withProperties(q.SubjectProperties)
	var found []doorward.Action
	now := e.db.Now()
	for _, v := range c.p.Rules.Model().Verbs() {
		q.Action = v.Action
		if c.decide(q, now, e.unrecorded).Allowed {
			found = append(found, v.Action)
		}
	}
	return SearchResult[doorward.Action]{Page: pageOf(found, func(a doorward.Action) string { return string(a) }, w)}, nil
}

// pageOf sorts the items by id and returns those in the window.
func pageOf[T any](all []T, id func(T) string, w doorward.Window) (page doorward.Page[T]) {
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(id(a), id(b)) })
	for _, v := range all {
		switch {
		case id(v) <= w.After.ID:
		case len(page.Items) == w.Limit:
			page.Next = &doorward.Position{ID: id(page.Items[w.Limit-1])}
			return page
		default:
			page.Items = append(page.Items, v)
		}
	}
	return page
}
