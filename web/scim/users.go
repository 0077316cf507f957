package scim

import (
	"context"
	"errors"
	"net/http"
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
	State   string `json:"state,omitempty"`
	Refused string `json:"refused,omitempty"` // why the rest of a request counts for nothing that has switched the person off
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
	if u.State != "" || u.Refused != nil {
		v.Schemas, v.State = append(v.Schemas, stateSchema), &stateView{State: u.State}
	}
	if u.Refused != nil {
		v.State.Refused = "Switched off, and nothing else was changed: " + refusalOf(c, u.Refused).detail
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
		return h.orOff(ctx, r, id, err, scim.OffInPut)
	}
	u, err := h.app.Directories.Replace(ctx, r.Caller, id, said)
	return h.changed(ctx, r, u, err)
}

func (h *handler) patchUser(ctx context.Context, r request) (any, error) {
	id, operations, err := named(r, doorward.PrefixUser, scim.ParsePatch)
	if err != nil {
		return h.orOff(ctx, r, id, err, scim.OffInPatch)
	}
	u, err := h.app.Directories.Patch(ctx, r.Caller, id, operations)
	return h.changed(ctx, r, u, err)
}

// orOff returns the refusal of a body; but if it switches the person off all the same, it does that alone.
func (h *handler) orOff(ctx context.Context, r request, id string, refused error, isOff func([]byte) bool) (any, error) {
	var e *scim.Error
	isFault := errors.As(refused, &e) && e.Status == http.StatusBadRequest || doorward.HasCode(refused, doorward.CodeInvalidBody)
	if !isFault || !isOff(*r.sent) {
		return nil, refused
	}
	u, err := h.app.Directories.SwitchOff(ctx, r.Caller, id, refused)
	return h.changed(ctx, r, u, err)
}

// changed answers a change. Where the person was switched off, and the rest refused, the answer is 200 with the person as
// they are, for Okta and Entra ID take 400 as "nothing was done": Okta gives the task up, and Entra ID repeats the
// whole. The protocol says what was refused.
func (h *handler) changed(ctx context.Context, r request, u directory.User, err error) (any, error) {
	if err == nil && u.Refused != nil {
		h.recordBeside(ctx, r, u)
	}
	return viewUser(r.Call, u), err
}

func (h *handler) removeUser(ctx context.Context, r request) (any, error) {
	id, err := r.ID("id", doorward.PrefixUser)
	if err != nil {
		return nil, err
	}
	return nil, h.app.Directories.Remove(ctx, r.Caller, id)
}
