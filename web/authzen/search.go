package authzen

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/evaluation"
	"github.com/doorward/doorward/web/front"
)

const aboutSearch = " A page may have fewer results than its limit although more follow: read on while `next_token` isn't empty."

var docSubjects = front.Doc{
	ID: "searchSubjects", Tag: "Access", Summary: "Find who may do something (AuthZEN)",
	WhilePaused: true,
	Description: "The Subject Search API of the OpenID AuthZEN Authorization API 1.0: the users or API keys of a tenant that may do the action. The tenant is the resource, or `subject.properties.tenantId`. Without one: the users that the model declares." + aboutSearch,
	Errors:      []doorward.Code{doorward.CodeInvalidCursor},
}

var docResources = front.Doc{
	ID: "searchResources", Tag: "Access", Summary: "Find where a subject may do something (AuthZEN)",
	WhilePaused: true,
	Description: "The Resource Search API of the OpenID AuthZEN Authorization API 1.0, for resources of the type tenant, and of the types that the model declares entities of: those on which the subject may do the action." + aboutSearch,
	Errors:      []doorward.Code{doorward.CodeInvalidCursor},
}

var docActions = front.Doc{
	ID: "searchActions", Tag: "Access", Summary: "Find what a subject may do (AuthZEN)",
	WhilePaused: true,
	Description: "The Action Search API of the OpenID AuthZEN Authorization API 1.0: the permissions that the subject has on the resource." + aboutSearch,
	Errors:      []doorward.Code{doorward.CodeInvalidCursor},
}

type (
	searchInput struct {
		_ struct{} `json:"-" additionalProperties:"true"`
		Query
		Page searchPage `json:"page,omitzero"`
	}
	searchPage struct {
		_     struct{}   `json:"-" additionalProperties:"true"`
		Token string     `json:"token,omitempty" doc:"The next_token of the page before"`
		Limit *front.Int `json:"limit,omitempty" minimum:"1" doc:"Results at most: 100 if absent, and never more than 1,000"`
	}
	searchedPage struct {
		NextToken string `json:"next_token" doc:"For the next page; empty at the end"`
		Count     int    `json:"count" doc:"Results on this page"`
	}
	searchResults[T any] struct {
		Results []T                `json:"results" nullable:"false"`
		Page    searchedPage       `json:"page"`
		Context *evaluationRefusal `json:"context,omitempty" doc:"Why nothing can be found"`
	}
	foundSubject struct {
		Type       string             `json:"type" example:"user"`
		ID         string             `json:"id" example:"usr_4kq7m5x3yh4n6rj7wd2c5tpae7"`
		Properties *subjectProperties `json:"properties,omitempty"`
	}
	foundResource struct {
		Type string `json:"type" example:"tenant"`
		ID   string `json:"id" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	}
	foundAction struct {
		Name string `json:"name"`
	}
)

// Results on a page.
const (
	defaultResults = 100
	maxResults     = 1000
)

func (h *handler) searchSubject(ctx context.Context, c *front.Call, in searchInput) (searchResults[foundSubject], error) {
	return search(ctx, c, in, "/subject/id", h.app.Evaluations.Subjects, func(s evaluation.Subject) foundSubject {
		found := foundSubject{Type: s.Type, ID: s.ID}
		if s.TenantID != "" {
			found.Properties = &subjectProperties{TenantID: s.TenantID}
		}
		return found
	})
}

func (h *handler) searchResource(ctx context.Context, c *front.Call, in searchInput) (searchResults[foundResource], error) {
	return search(ctx, c, in, "/resource/id", h.app.Evaluations.Resources, func(r doorward.Resource) foundResource {
		return foundResource{r.Type, r.ID}
	})
}

func (h *handler) searchAction(ctx context.Context, c *front.Call, in searchInput) (searchResults[foundAction], error) {
	in.Action = &action{} // the action is searched for: one that was sent is ignored
	return search(ctx, c, in, "/action/name", h.app.Evaluations.Actions, func(a doorward.Action) foundAction {
		return foundAction{string(a)}
	})
}

// search answers with a page of what find returns. searched is the pointer of the member
// that is searched for, so the request may lack it.
func search[T, Out any](ctx context.Context, c *front.Call, in searchInput, searched string,
	find func(context.Context, *doorward.ServiceKey, evaluation.Question, doorward.Window) (evaluation.SearchResult[T], error), view func(T) Out,
) (out searchResults[Out], err error) {
	q, missing := in.question()
	if err := incomplete(missing, searched); err != nil {
		return out, err
	}
	w, err := window(ctx, c, in.Page)
	if err != nil {
		return out, err
	}
	found, err := find(ctx, c.Caller.Service, q, w)
	if err != nil {
		return out, err
	}
	out.Results = make([]Out, len(found.Items))
	for i, item := range found.Items {
		out.Results[i] = view(item)
	}
	if found.Reason != "" {
		out.Context = &evaluationRefusal{Reason: found.Reason}
	}
	out.Page.Count = len(out.Results)
	out.Page.NextToken, err = c.Cursor(ctx, found.Next)
	return out, err
}

// window returns the part of the results that the request asks for.
func window(ctx context.Context, c *front.Call, p searchPage) (w doorward.Window, err error) {
	w.Limit = defaultResults
	if p.Limit != nil {
		w.Limit = int(min(*p.Limit, maxResults))
	}
	if w.Limit < 1 {
		return w, invalid("/page/limit", "Ask for at least one result.")
	}
	if p.Token != "" {
		w.After, err = c.OpenCursor(ctx, p.Token)
	}
	return w, err
}
