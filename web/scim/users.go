package scim

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/web/front"
)

// stateSchema is Doorward's own extension: how far somebody is on the way to a membership.
const stateSchema = "urn:doorward:scim:User"

type userView struct {
	Schemas []string `json:"schemas"`
	ID      string   `json:"id"`
	scim.User
	Groups []placeView `json:"groups,omitempty"`
	State  *stateView  `json:"urn:doorward:scim:User,omitempty"`
	Meta   metaView    `json:"meta"`
}

type stateView struct {
	State string `json:"state"`
}

type metaView struct {
	ResourceType string    `json:"resourceType"`
	Created      time.Time `json:"created"`
	LastModified time.Time `json:"lastModified"`
	Location     string    `json:"location"`
}

func (v userView) location() string { return v.Meta.Location }

func viewUser(c *front.Call, u directory.User) userView {
	v := userView{
		Schemas: []string{scim.UserSchema}, ID: u.ID, User: u.User, Groups: viewPlaces(c, u.Groups),
		Meta: metaView{"User", u.Created, u.Changed, location(c, "Users", u.ID)},
	}
	if u.Enterprise != (scim.Enterprise{}) {
		v.Schemas = append(v.Schemas, scim.EnterpriseSchema)
	}
	if u.State != "" {
		v.Schemas, v.State = append(v.Schemas, stateSchema), &stateView{u.State}
	}
	return v
}

func location(c *front.Call, resource, id string) string {
	return c.Site().BaseURL() + Base + "/" + resource + "/" + id
}

func (h *handler) users(ctx context.Context, r request) (any, error) {
	filter, err := r.filter(scim.Users)
	if err != nil {
		return nil, err
	}
	start, count := window(r.query)
	page, err := h.app.Directories.Users(ctx, r.Caller, filter, start, count)
	return listOf(r, page.Total, start, page.Users, viewUser), err
}

func (h *handler) user(ctx context.Context, r request) (any, error) {
	id, err := r.ID("id", doorward.PrefixUser)
	if err != nil {
		return nil, err
	}
	u, err := h.app.Directories.User(ctx, r.Caller, id)
	return viewUser(r.Call, u), err
}

func (h *handler) makeUser(ctx context.Context, r request) (any, error) {
	said, err := parsed(r, scim.ParseUser)
	if err != nil {
		return nil, err
	}
	u, err := h.app.Directories.Make(ctx, r.Caller, said)
	return viewUser(r.Call, u), err
}

func (h *handler) replaceUser(ctx context.Context, r request) (any, error) {
	id, said, err := named(r, doorward.PrefixUser, scim.ParseUser)
	if err != nil {
		return nil, err
	}
	u, err := h.app.Directories.Replace(ctx, r.Caller, id, said)
	return viewUser(r.Call, u), err
}

func (h *handler) patchUser(ctx context.Context, r request) (any, error) {
	id, operations, err := named(r, doorward.PrefixUser, scim.ParsePatch)
	if err != nil {
		return nil, err
	}
	u, err := h.app.Directories.Patch(ctx, r.Caller, id, operations)
	return viewUser(r.Call, u), err
}

func (h *handler) removeUser(ctx context.Context, r request) (any, error) {
	id, err := r.ID("id", doorward.PrefixUser)
	if err != nil {
		return nil, err
	}
	return nil, h.app.Directories.Remove(ctx, r.Caller, id)
}
