package scim

import (
	"context"
	"net/http"

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

func (h *handler) groups(ctx context.Context, c *front.Call) error {
	query, err := parameters(c)
	if err != nil {
		return err
	}
	var filter scim.Filter
	if text, asked := query["filter"]; asked {
		if filter, err = scim.ParseFilter(scim.Groups, text); err != nil {
			return err
		}
	}
	start, count := window(query)
	page, err := h.app.Directories.Groups(ctx, c.Caller, filter, start, count, asksMembers(query))
	if err != nil {
		return err
	}
	answer := list{Schemas: []string{listSchema}, TotalResults: page.Total, StartIndex: start, ItemsPerPage: len(page.Groups), Resources: []any{}}
	for _, g := range page.Groups {
		chosen, err := choose(viewGroup(c, g), query)
		if err != nil {
			return err
		}
		answer.Resources = append(answer.Resources, chosen)
	}
	c.AnswerAs(http.StatusOK, mediaType, answer)
	return nil
}

// answerGroup answers with the group.
func answerGroup(c *front.Call, status int, g directory.Group) error {
	query, err := parameters(c)
	if err != nil {
		return err
	}
	view := viewGroup(c, g)
	chosen, err := choose(view, query)
	if err != nil {
		return err
	}
	if status == http.StatusCreated {
		c.W.Header().Set("Location", view.Meta.Location)
	}
	c.AnswerAs(status, mediaType, chosen)
	return nil
}

func (h *handler) group(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixGroup)
	if err != nil {
		return err
	}
	query, err := parameters(c)
	if err != nil {
		return err
	}
	g, err := h.app.Directories.Group(ctx, c.Caller, id, asksMembers(query))
	if err != nil {
		return err
	}
	return answerGroup(c, http.StatusOK, g)
}

func (h *handler) makeGroup(ctx context.Context, c *front.Call) error {
	text, err := body(c)
	if err != nil {
		return err
	}
	said, err := scim.ParseGroup(text)
	if err != nil {
		return err
	}
	g, err := h.app.Directories.MakeGroup(ctx, c.Caller, said)
	if err != nil {
		return err
	}
	return answerGroup(c, http.StatusCreated, g)
}

func (h *handler) replaceGroup(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixGroup)
	if err != nil {
		return err
	}
	text, err := body(c)
	if err != nil {
		return err
	}
	said, err := scim.ParseGroup(text)
	if err != nil {
		return err
	}
	g, err := h.app.Directories.ReplaceGroup(ctx, c.Caller, id, said)
	if err != nil {
		return err
	}
	return answerGroup(c, http.StatusOK, g)
}

func (h *handler) patchGroup(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixGroup)
	if err != nil {
		return err
	}
	text, err := body(c)
	if err != nil {
		return err
	}
	operations, err := scim.ParsePatch(text)
	if err != nil {
		return err
	}
	if _, err := h.app.Directories.PatchGroup(ctx, c.Caller, id, operations); err != nil {
		return err
	}
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *handler) removeGroup(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixGroup)
	if err != nil {
		return err
	}
	if err := h.app.Directories.DeleteGroup(ctx, c.Caller, id); err != nil {
		return err
	}
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}
