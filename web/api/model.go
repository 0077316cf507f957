package api

import (
	"context"
	"time"

	"github.com/doorward/doorward/app/model"
	"github.com/doorward/doorward/internal/modelfile"
	"github.com/doorward/doorward/web/front"
)

type modelView struct {
	Version   int64      `json:"version" example:"3" doc:"0: the built-in model"`
	Text      string     `json:"text" example:"actions:\n  invoice.approve: {roles: [OWNER, ADMIN]}\n" doc:"YAML"`
	CreatedAt *time.Time `json:"createdAt,omitempty" doc:"When it was applied; absent for the built-in model"`
	CreatedBy string     `json:"createdBy,omitempty" example:"key_7vkq2m5x3yh4n6rj7wd2c5tpae" doc:"Id of the operator key that applied it; absent for the command line"`
}

func viewModel(c *front.Call, v model.Version) modelView {
	c.SetVersion(model.Tag(v))
	view := modelView{Version: v.Version, Text: v.Text, CreatedBy: v.CreatedBy}
	if v.Version > 0 {
		view.CreatedAt = &v.CreatedAt
	}
	return view
}

var docModel = front.Doc{
	ID: "getModel", Tag: "Model", Summary: "Show the model of the platform",
	Description: "Its own actions, and which roles grant them.",
	Versioned:   true,
}

func (a *api) model(ctx context.Context, c *front.Call, _ front.None) (modelView, error) {
	v, err := a.app.Models.Current(ctx)
	if err != nil {
		return modelView{}, err
	}
	return viewModel(c, v), nil
}

// maxModelBody is the largest body with a model.
const maxModelBody = modelfile.MaxSize

type modelInput struct {
	Text string `json:"text" example:"actions:\n  invoice.approve: {roles: [OWNER, ADMIN]}\n" doc:"YAML, see /docs/model"`
}

var docApplyModel = front.Doc{
	ID: "applyModel", Tag: "Model", Summary: "Replace the model of the platform",
	Description: "Effective on every node before the answer, for the sessions and keys of all tenants. Keys and roles keep what they have been given; actions that the model lacks have no effect until a model has them again. All versions are kept. In `errors`, each fault of the text has its `line` and `column`.",
	Versioned:   true, MustMatch: true,
}

func (a *api) applyModel(ctx context.Context, c *front.Call, in modelInput) (modelView, error) {
	versions, err := c.NeedVersions()
	if err != nil {
		return modelView{}, err
	}
	applied, err := a.app.Models.Apply(ctx, c.Caller, in.Text, versions)
	if err != nil {
		return modelView{}, err
	}
	c.Revoked(applied.Revocation)
	return viewModel(c, applied.Model), nil
}
