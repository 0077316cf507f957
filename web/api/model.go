package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/model"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/web/front"
)

type modelView struct {
	Version     int64       `json:"version" example:"3" doc:"0: the built-in model"`
	Text        string      `json:"text" example:"actions:\n  invoice.approve: {roles: [OWNER, ADMIN]}\n" doc:"YAML"`
	CreatedAt   *time.Time  `json:"createdAt,omitempty" doc:"When it was applied; absent for the built-in model"`
	PoliciesOff []policyOff `json:"policiesOff,omitempty" doc:"After force=true: the policies of tenants that are off, since they name what this model took away"`
	CreatedBy   string      `json:"createdBy,omitempty" example:"key_7vkq2m5x3yh4n6rj7wd2c5tpae" doc:"Id of the operator key that applied it; absent for the command line"`
}

type policyOff struct {
	TenantID string `json:"tenantId" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	ID       string `json:"policyId" example:"large-invoices" doc:"Its @id"`
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

// maxModelBody is the largest body with a model, in bytes.
const maxModelBody = modelfile.MaxSize

type modelInput struct {
	Text string `json:"text" example:"actions:\n  invoice.approve: {roles: [OWNER, ADMIN]}\n" doc:"YAML, see /docs/model"`
}

var docApplyModel = front.Doc{
	ID: "applyModel", Tag: "Model", Summary: "Replace the model of the platform",
	Description: "Effective on every node before the answer, for the sessions and keys of all tenants. Keys and roles keep what they have been given; actions that the model lacks have no effect until a model has them again. All versions are kept. In `errors`, each fault of the text has its `line` and `column`.",
	Versioned:   true, MustMatch: true,
	Query:  []front.Parameter{{Name: "force", Description: "With `true` it is applied although policies of tenants name what it takes away; these are off then, and listed in the answer", Enum: []string{"true", "false"}}},
	Errors: []doorward.Code{doorward.CodeModelInUse},
}

func (a *api) applyModel(ctx context.Context, c *front.Call, in modelInput) (modelView, error) {
	versions, err := c.NeedVersions()
	if err != nil {
		return modelView{}, err
	}
	force, err := c.Flag("force")
	if err != nil {
		return modelView{}, err
	}
	applied, err := a.app.Models.Apply(ctx, c.Caller, in.Text, versions, force)
	if err != nil {
		return modelView{}, err
	}
	c.SetRevocation(applied.Revocation)
	view := viewModel(c, applied.Model)
	for _, p := range applied.Broken {
		view.PoliciesOff = append(view.PoliciesOff, policyOff(p))
	}
	return view, nil
}
