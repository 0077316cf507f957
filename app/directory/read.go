package directory

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// How far somebody is who isn't a member. Only with Invited they are answered as active, if the directory has said that.
const (
	Invited = "invited" // hasn't accepted the invitation yet
	Revoked = "revoked" // somebody has revoked it by hand: the directory sends no further one
	Expired = "expired" // nobody has accepted it in time: the next active: true sends another one
)

var invitationStates = map[doorward.InvitationState]string{
	doorward.InvitationPending: Invited, doorward.InvitationRevoked: Revoked, doorward.InvitationExpired: Expired,
}

// User is a person as the directory is answered. Active says whether the person may sign in, by all reasons of suspension.
type User struct {
	ID string
	scim.User
	State   string // Invited, Revoked, Expired; empty: a member, or switched off by the directory
	Groups  []doorward.DirectoryGroup
	Created time.Time
	Changed time.Time
	Refused error // of the rest of a request that has switched the person off; nil: nothing was refused
}

// userOf returns the person as the directory is answered. Of members whom it hasn't described, e-mail and name are those of
// the membership.
func userOf(e store.DirectoryEntry, now time.Time) (User, error) {
	u := User{ID: e.ID, Created: e.CreatedAt, Changed: e.CreatedAt}
	if !e.IsSaid {
		u.User = described(e.Member)
		return u, nil
	}
	if err := json.Unmarshal([]byte(e.Said.Attributes), &u.User); err != nil {
		return u, doorward.Unavailable(err)
	}
	u.Changed = e.Said.ChangedAt
	if e.Said.CreatedAt.Before(u.Created) { // an invitation has become a membership since
		u.Created = e.Said.CreatedAt
	}
	active := e.Said.Active
	if e.IsMember {
		active = e.Member.Status == doorward.UserActive
	} else {
		u.State = invitationStates[e.InvitationAt(now)]
		active = active && u.State == Invited
	}
	u.Active = &active
	return u, nil
}

// described is what a member is answered with whom no directory has described. The name is split at its last blank; a
// single word, and the local part of the address where there is no name, stand for both parts.
func described(m doorward.User) scim.User {
	name, primary, active := m.Name, true, m.Status == doorward.UserActive
	if name == "" {
		name, _, _ = strings.Cut(m.Email, "@")
	}
	given, family := name, name
	if i := strings.LastIndexByte(name, ' '); i > 0 {
		given, family = name[:i], name[i+1:]
	}
	return scim.User{
		UserName: m.Email, DisplayName: m.Name, Name: scim.Name{Formatted: name, GivenName: given, FamilyName: family},
		Active: &active, Emails: []scim.EmailItem{{Value: m.Email, Type: "work", Primary: &primary}},
	}
}

// Page is a part of a list.
type Page struct {
	Total int
	Users []User
	now   time.Time
}

// Users returns the people whom the filter selects, from the one with the number start on, counted from 1, in the order
// in which they came: count at most. Errors: unavailable.
func (d *Directories) Users(ctx context.Context, by doorward.Caller, filter scim.Filter, start, count int) (page Page, err error) {
	if by.SeesNobody {
		return page, nil
	}
	err = d.db.Snapshot(ctx, func(read store.Reader) error {
		page = Page{now: d.db.Now()}
		if err := page.read(ctx, read, by, filter, start, count); err != nil {
			return err
		}
		return groupsOf(ctx, read, by.ConnectionID, page.Users)
	})
	return page, err
}

func (p *Page) read(ctx context.Context, read store.Reader, by doorward.Caller, filter scim.Filter, start, count int) error {
	switch {
	case len(filter) == 0:
		return p.readAll(ctx, read, by, start, count)
	case has(filter, scim.ID), has(filter, scim.UserName), has(filter, scim.ExternalID):
		return p.readNamed(ctx, read, by, filter, start, count)
	}
	return p.scan(ctx, read, by, filter, start, count)
}

func has(filter scim.Filter, a scim.Attribute) bool {
	_, found := textOf(filter, a)
	return found
}

// textOf returns what the filter compares the attribute with.
func textOf(filter scim.Filter, a scim.Attribute) (text string, found bool) {
	for _, c := range filter {
		if c.Attribute == a {
			return c.Text, true
		}
	}
	return "", false
}

func (p *Page) readAll(ctx context.Context, read store.Reader, by doorward.Caller, start, count int) error {
	entries, total, err := read.DirectoryPage(ctx, by.ConnectionID, by.TenantID, count, start-1)
	p.Total = total
	for _, e := range entries {
		if err == nil {
			err = p.add(e)
		}
	}
	return err
}

func (p *Page) add(e store.DirectoryEntry) error {
	u, err := userOf(e, p.now)
	p.Users = append(p.Users, u)
	return err
}

// scan looks at all people, or those with an e-mail.
func (p *Page) scan(ctx context.Context, read store.Reader, by doorward.Caller, filter scim.Filter, start, count int) error {
	email, found := textOf(filter, scim.Email)
	if !found {
		email, _ = textOf(filter, scim.WorkEmail)
	}
	return read.EachDirectoryEntry(ctx, by.ConnectionID, by.TenantID, email, func(e store.DirectoryEntry) error {
		return p.match(e, filter, start, count)
	})
}

// match adds the person if the filter selects them, and they are in the window.
func (p *Page) match(e store.DirectoryEntry, filter scim.Filter, start, count int) error {
	u, err := userOf(e, p.now)
	if err != nil || !matches(u, filter) {
		return err
	}
	if p.Total++; p.Total >= start && len(p.Users) < count {
		p.Users = append(p.Users, u)
	}
	return nil
}

// readNamed looks up the one person whom an id or a name can mean.
func (p *Page) readNamed(ctx context.Context, read store.Reader, by doorward.Caller, filter scim.Filter, start, count int) error {
	for _, look := range []struct {
		attribute scim.Attribute
		find      func(ctx context.Context, read store.Reader, by doorward.Caller, text string) (store.DirectoryEntry, error)
	}{{scim.ID, find}, {scim.UserName, findNamed}, {scim.ExternalID, findExternal}} {
		text, asked := textOf(filter, look.attribute)
		if !asked {
			continue
		}
		e, err := look.find(ctx, read, by, text)
		if errors.Is(err, store.ErrNone) {
			return nil
		}
		if err != nil {
			return err
		}
		return p.match(e, filter, start, count)
	}
	return nil
}

// matches reports whether all conditions hold of the person.
func matches(u User, filter scim.Filter) bool {
	for _, c := range filter {
		if !meets(u, c) {
			return false
		}
	}
	return true
}

func meets(u User, c scim.Condition) bool {
	switch c.Attribute {
	case scim.ID:
		return u.ID == c.Text
	case scim.ExternalID:
		return u.ExternalID == c.Text
	case scim.UserName:
		return strings.EqualFold(u.UserName, c.Text)
	case scim.DisplayName:
		return strings.EqualFold(u.DisplayName, c.Text)
	case scim.Active:
		return u.Active != nil && *u.Active == c.Bool
	}
	for _, e := range u.Emails {
		if strings.EqualFold(e.Value, c.Text) && (c.Attribute == scim.Email || strings.EqualFold(e.Type, "work")) {
			return true
		}
	}
	return false
}

// User returns the person with the id, which may be another name of the account. Errors: not_found, unavailable.
func (d *Directories) User(ctx context.Context, by doorward.Caller, id string) (u User, err error) {
	if by.SeesNobody {
		return u, notFound(store.ErrNone)
	}
	err = d.db.Snapshot(ctx, func(read store.Reader) error {
		u, err = shown(ctx, read, by, id, d.db.Now())
		return err
	})
	return u, notFound(err)
}

// shown returns the person with the id, with their groups.
func shown(ctx context.Context, read store.Reader, by doorward.Caller, id string, now time.Time) (User, error) {
	e, err := find(ctx, read, by, id)
	if err != nil {
		return User{}, err
	}
	u, err := userOf(e, now)
	if err != nil {
		return User{}, err
	}
	one := []User{u}
	err = groupsOf(ctx, read, by.ConnectionID, one)
	return one[0], err
}

// notFound turns store.ErrNone into not_found.
func notFound(err error) error {
	if errors.Is(err, store.ErrNone) {
		return doorward.Fail(doorward.CodeNotFound, "")
	}
	return err
}

// find returns the person with the id: one that the directory has described, or a member under an id by which any directory
// of the tenant has, or a member whom none has, under the account's; or store.ErrNone. An account's id may be that of a User
// who was removed, and has come back as another one: the old id doesn't mean them.
func find(ctx context.Context, read store.Reader, by doorward.Caller, id string) (store.DirectoryEntry, error) {
	e, err := read.DirectorySaid(ctx, by.ConnectionID, by.TenantID, id)
	if !errors.Is(err, store.ErrNone) {
		return e, err
	}
	aliases, err := read.DirectoryAliased(ctx, by.TenantID, id)
	if err != nil {
		return e, err
	}
	for _, a := range aliases {
		if a.UserID != "" {
			return read.DirectoryMember(ctx, by.ConnectionID, by.TenantID, a.UserID)
		}
	}
	if e, err = read.DirectoryMember(ctx, by.ConnectionID, by.TenantID, id); err == nil && e.ID != id {
		return store.DirectoryEntry{}, store.ErrNone
	}
	return e, err
}

// findNamed returns the person with the userName, without letter case; or store.ErrNone.
func findNamed(ctx context.Context, read store.Reader, by doorward.Caller, userName string) (e store.DirectoryEntry, err error) {
	named, err := read.DirectoryUsersNamed(ctx, by.TenantID, userName)
	if err != nil {
		return e, err
	}
	for _, n := range named {
		if n.ConnectionID == by.ConnectionID {
			return read.DirectorySaid(ctx, by.ConnectionID, by.TenantID, n.ID)
		}
	}
	for _, n := range named {
		if n.UserID != "" {
			return read.DirectoryMember(ctx, by.ConnectionID, by.TenantID, n.UserID)
		}
	}
	address, err := mailaddr.Parse(userName)
	if err != nil {
		return e, store.ErrNone
	}
	m, err := read.UserByEmail(ctx, by.TenantID, address)
	if err != nil {
		return e, err
	}
	return read.DirectoryMember(ctx, by.ConnectionID, by.TenantID, m.ID)
}

// findExternal returns the person with the directory's own name; or store.ErrNone.
func findExternal(ctx context.Context, read store.Reader, by doorward.Caller, externalID string) (store.DirectoryEntry, error) {
	said, err := read.DirectoryUserByExternalID(ctx, by.ConnectionID, externalID)
	if err != nil {
		return store.DirectoryEntry{}, err
	}
	return read.DirectorySaid(ctx, by.ConnectionID, by.TenantID, said.ID)
}
