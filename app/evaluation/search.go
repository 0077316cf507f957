package evaluation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Found is a part of what a search has found. A page may be empty although more follow.
type Found[T any] struct {
	doorward.Page[T]
	Reason string // why nothing can be found; else empty
}

// maxScanned bounds the rows that one search of subjects looks at.
const (
	maxScanned = 2000
	chunk      = 500
)

// Subjects finds the users or API keys of one tenant that may do what the question asks.
// The tenant is the resource, or named with the subject, whose ID is ignored.
// Errors: unavailable.
func (e *Evaluations) Subjects(ctx context.Context, by *doorward.ServiceKey, q Question, w doorward.Window) (Found[Subject], error) {
	tenantID := q.Subject.TenantID
	if q.Resource.Type == Tenant {
		tenantID = cmp.Or(tenantID, q.Resource.ID)
	}
	now := e.db.Now()
	switch {
	case q.Subject.Type != User && q.Subject.Type != Key:
		return Found[Subject]{Reason: "Users and keys can be found."}, nil
	case tenantID == "":
		return Found[Subject]{Reason: noTenant}, nil
	case !by.Covers(tenantID):
		return Found[Subject]{}, nil
	case q.Subject.Type == Key:
		return e.keysOf(ctx, tenantID, q, w)
	}
	return scan(w, func(w doorward.Window) (doorward.Page[doorward.User], error) {
		return e.db.Read().UserPage(ctx, tenantID, store.UserFilter{Status: doorward.UserActive}, w)
	}, func(u doorward.User) (Subject, doorward.Position, bool) {
		c := member(u)
		at := doorward.Position{At: u.CreatedAt.UnixMicro(), ID: u.ID}
		return Subject{User, u.ID, u.TenantID}, at, c.decide(q, now, access.CanCheckAt).Allowed
	})
}

// keysOf finds the keys of a tenant.
func (e *Evaluations) keysOf(ctx context.Context, tenantID string, q Question, w doorward.Window) (Found[Subject], error) {
	t, err := e.db.Read().Tenant(ctx, tenantID)
	if err != nil {
		if errors.Is(err, store.ErrNone) {
			err = nil
		}
		return Found[Subject]{}, err
	}
	if err := e.db.Clock().Err(); err != nil {
		return Found[Subject]{}, err // expiry can't be determined
	}
	now := e.db.Now()
	return scan(w, func(w doorward.Window) (doorward.Page[doorward.APIKey], error) {
		return e.db.Read().APIKeyPage(ctx, tenantID, store.APIKeyFilter{Status: doorward.APIKeyActive}, now, w)
	}, func(k doorward.APIKey) (Subject, doorward.Position, bool) {
		c := entered(doorward.PrincipalOfKey(k, t.Status))
		at := doorward.Position{At: k.CreatedAt.UnixMicro(), ID: k.ID}
		valid := access.RefusesKey(&k, nil, now) == "" && k.Admits(q.IP)
		return Subject{Key, k.ID, k.TenantID}, at, valid && c.decide(q, now, access.CanCheckAt).Allowed
	})
}

// scan reads rows until the window is full, all are read, or maxScanned were. look says
// what a row is, where it stands and whether it belongs to the result.
func scan[T any](w doorward.Window, read func(doorward.Window) (doorward.Page[T], error), look func(T) (Subject, doorward.Position, bool)) (found Found[Subject], err error) {
	at := doorward.Window{After: w.After, Limit: chunk}
	for range maxScanned / chunk {
		rows, err := read(at)
		if err != nil {
			return Found[Subject]{}, err
		}
		for i, row := range rows.Items {
			s, place, matches := look(row)
			if !matches {
				continue
			}
			found.Items = append(found.Items, s)
			if len(found.Items) == w.Limit {
				if rows.Next != nil || i < len(rows.Items)-1 {
					found.Next = &place
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

// Resources finds the tenants in which the subject may do what the question asks; it is
// asked of no other type. Errors: unavailable.
func (e *Evaluations) Resources(ctx context.Context, by *doorward.ServiceKey, q Question, w doorward.Window) (Found[doorward.Resource], error) {
	if q.Resource.Type != Tenant {
		return Found[doorward.Resource]{Reason: noResources}, nil
	}
	all, err := e.candidates(ctx, by, q.seeker())
	if err != nil {
		return Found[doorward.Resource]{}, err
	}
	var found []doorward.Resource
	now := e.db.Now()
	for _, c := range all {
		q.Resource.ID = c.p.TenantID
		if c.decide(q, now, access.CanCheckAt).Allowed {
			found = append(found, q.Resource)
		}
	}
	return Found[doorward.Resource]{Page: cut(found, func(r doorward.Resource) string { return r.ID }, w)}, nil
}

// Actions finds what the subject may do on the resource, by name. Errors: unavailable.
func (e *Evaluations) Actions(ctx context.Context, by *doorward.ServiceKey, q Question, w doorward.Window) (Found[doorward.Action], error) {
	c, err := e.find(ctx, by, q.seeker())
	if err != nil || c.refused != "" {
		return Found[doorward.Action]{Reason: c.refused}, err
	}
	var found []doorward.Action
	now := e.db.Now()
	for _, v := range c.p.Rules.Model().Verbs() {
		q.Action = v.Action
		if c.decide(q, now, access.CanCheckAt).Allowed {
			found = append(found, v.Action)
		}
	}
	return Found[doorward.Action]{Page: cut(found, func(a doorward.Action) string { return string(a) }, w)}, nil
}

// cut sorts by the id and returns the part in the window.
func cut[T any](all []T, id func(T) string, w doorward.Window) (page doorward.Page[T]) {
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
