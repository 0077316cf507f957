package scim

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/web/front"
)

type groupView struct {
	Schemas     []string     `json:"schemas"`
	ID          string       `json:"id"`
	DisplayName string       `json:"displayName"`
	ExternalID  string       `json:"externalId,omitempty"`
	Members     []memberView `json:"members,omitempty"`
	Meta        metaView     `json:"meta"`
}

type memberView struct {
	Value string `json:"value"`
	Ref   string `json:"$ref"`
	Type  string `json:"type"`
}

// placeView is a group that somebody is in.
type placeView struct {
	Value   string `json:"value"`
	Ref     string `json:"$ref"`
	Display string `json:"display"`
	Type    string `json:"type"`
}

func (v groupView) location() string { return v.Meta.Location }

func viewGroup(c *front.Call, g directory.Group) groupView {
	v := groupView{
		Schemas: []string{scim.GroupSchema}, ID: g.ID, DisplayName: g.DisplayName, ExternalID: g.ExternalID,
		Meta: metaView{"Group", g.CreatedAt, g.ChangedAt, location(c, "Groups", g.ID)},
	}
	for _, id := range g.Members {
		v.Members = append(v.Members, memberView{id, location(c, "Users", id), "User"})
	}
	return v
}

func viewPlaces(c *front.Call, groups []doorward.DirectoryGroup) (places []placeView) {
	for _, g := range groups {
		places = append(places, placeView{g.ID, location(c, "Groups", g.ID), g.DisplayName, "direct"})
	}
	return places
}

// asksMembers reports whether the query asks for members: it does unless it leaves them out. They are read only then.
func asksMembers(query map[string]string) bool {
	only, without := names(query["attributes"]), names(query["excludedattributes"])
	return (len(only) == 0 || only["members"]) && !without["members"]
}

func (h *handler) groups(ctx context.Context, r request) (any, error) {
	filter, err := r.filter(scim.Groups)
	if err != nil {
		return nil, err
	}
	start, count := window(r.query)
	page, err := h.app.Directories.Groups(ctx, r.Caller, filter, start, count, asksMembers(r.query))
	return listOf(r, page.Total, start, page.Groups, viewGroup), err
}

func (h *handler) group(ctx context.Context, r request) (any, error) {
	id, err := r.ID("id", doorward.PrefixGroup)
	if err != nil {
		return nil, err
	}
	g, err := h.app.Directories.Group(ctx, r.Caller, id, asksMembers(r.query))
	return viewGroup(r.Call, g), err
}

func (h *handler) makeGroup(ctx context.Context, r request) (any, error) {
	said, err := parsed(r, scim.ParseGroup)
	if err != nil {
		return nil, err
	}
	g, err := h.app.Directories.MakeGroup(ctx, r.Caller, said)
	return viewGroup(r.Call, g), err
}

func (h *handler) replaceGroup(ctx context.Context, r request) (any, error) {
	id, said, err := named(r, doorward.PrefixGroup, scim.ParseGroup)
	if err != nil {
		return nil, err
	}
	g, err := h.app.Directories.ReplaceGroup(ctx, r.Caller, id, said)
	return viewGroup(r.Call, g), err
}

// patchGroup answers nothing: a group can have very many members.
func (h *handler) patchGroup(ctx context.Context, r request) (any, error) {
	id, operations, err := named(r, doorward.PrefixGroup, scim.ParsePatch)
	if err != nil {
		return nil, err
	}
	_, err = h.app.Directories.PatchGroup(ctx, r.Caller, id, operations)
	return nil, err
}

func (h *handler) removeGroup(ctx context.Context, r request) (any, error) {
	id, err := r.ID("id", doorward.PrefixGroup)
	if err != nil {
		return nil, err
	}
	return nil, h.app.Directories.DeleteGroup(ctx, r.Caller, id)
}
