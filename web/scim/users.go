package scim

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/web/front"
)

// stateSchema is Doorward's own extension: how far somebody is on the way to a membership.
const stateSchema = "urn:doorward:scim:User"

// listSchema is that of lists (RFC 7644, section 3.4.2).
const listSchema = "urn:ietf:params:scim:api:messages:2.0:ListResponse"

// pageMax is how many resources a page of a list has at most, which is also the default.
const pageMax = 200

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

// list is a page of a list.
type list struct {
	Schemas      []string `json:"schemas"`
	TotalResults int      `json:"totalResults"`
	StartIndex   int      `json:"startIndex"`
	ItemsPerPage int      `json:"itemsPerPage"`
	Resources    []any    `json:"Resources"`
}

// window returns which part of a list is asked for. Faults of it are no errors (RFC 7644, section 3.4.2.4).
func window(query map[string]string) (start, count int) {
	start, count = 1, pageMax
	if n, err := strconv.Atoi(query["startindex"]); err == nil {
		start = min(max(n, 1), 1<<30)
	}
	if n, err := strconv.Atoi(query["count"]); err == nil {
		count = min(max(n, 0), pageMax)
	}
	return start, count
}

func (h *handler) users(ctx context.Context, c *front.Call) error {
	query, err := parameters(c)
	if err != nil {
		return err
	}
	var filter scim.Filter
	if text, asked := query["filter"]; asked {
		if filter, err = scim.ParseFilter(scim.Users, text); err != nil {
			return err
		}
	}
	start, count := window(query)
	page, err := h.app.Directories.Users(ctx, c.Caller, filter, start, count)
	if err != nil {
		return err
	}
	answer := list{Schemas: []string{listSchema}, TotalResults: page.Total, StartIndex: start, ItemsPerPage: len(page.Users), Resources: []any{}}
	for _, u := range page.Users {
		chosen, err := choose(viewUser(c, u), query)
		if err != nil {
			return err
		}
		answer.Resources = append(answer.Resources, chosen)
	}
	c.AnswerAs(http.StatusOK, mediaType, answer)
	return nil
}

// choose returns the attributes of the resource that the query asks for (RFC 7644, section 3.9): id and schemas always.
func choose(resource any, query map[string]string) (any, error) {
	only, without := names(query["attributes"]), names(query["excludedattributes"])
	if len(only) == 0 && len(without) == 0 {
		return resource, nil
	}
	text, err := json.Marshal(resource)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for name := range all {
		lower := strings.ToLower(name)
		if lower != "id" && lower != "schemas" && (len(only) > 0 && !only[lower] || without[lower]) {
			delete(all, name)
		}
	}
	return all, nil
}

// names returns the attributes that a parameter lists, in lower case, without the URN of the core schema, and without
// parts: who asks for one gets the whole attribute.
func names(parameter string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.SplitSeq(parameter, ",") {
		lower := strings.ToLower(strings.TrimSpace(name))
		for _, own := range []string{scim.UserSchema, scim.GroupSchema} {
			lower = strings.TrimPrefix(lower, strings.ToLower(own)+":")
		}
		for _, extension := range []string{scim.EnterpriseSchema, stateSchema} {
			if strings.HasPrefix(lower, strings.ToLower(extension)) {
				lower = strings.ToLower(extension)
			}
		}
		if !strings.HasPrefix(lower, "urn:") {
			lower, _, _ = strings.Cut(lower, ".")
		}
		if lower != "" {
			all[lower] = true
		}
	}
	return all
}

// answerUser answers with the person.
func answerUser(c *front.Call, status int, u directory.User) error {
	query, err := parameters(c)
	if err != nil {
		return err
	}
	view := viewUser(c, u)
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

func (h *handler) user(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return err
	}
	u, err := h.app.Directories.User(ctx, c.Caller, id)
	if err != nil {
		return err
	}
	return answerUser(c, http.StatusOK, u)
}

func (h *handler) makeUser(ctx context.Context, c *front.Call) error {
	text, err := body(c)
	if err != nil {
		return err
	}
	said, err := scim.ParseUser(text)
	if err != nil {
		return err
	}
	u, err := h.app.Directories.Make(ctx, c.Caller, said)
	if err != nil {
		return err
	}
	return answerUser(c, http.StatusCreated, u)
}

func (h *handler) replaceUser(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return err
	}
	text, err := body(c)
	if err != nil {
		return err
	}
	said, err := scim.ParseUser(text)
	if err != nil {
		return err
	}
	u, err := h.app.Directories.Replace(ctx, c.Caller, id, said)
	if err != nil {
		return err
	}
	return answerUser(c, http.StatusOK, u)
}

func (h *handler) patchUser(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixUser)
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
	u, err := h.app.Directories.Patch(ctx, c.Caller, id, operations)
	if err != nil {
		return err
	}
	return answerUser(c, http.StatusOK, u)
}

func (h *handler) removeUser(ctx context.Context, c *front.Call) error {
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return err
	}
	if err := h.app.Directories.Remove(ctx, c.Caller, id); err != nil {
		return err
	}
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}
