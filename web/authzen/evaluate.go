package authzen

import (
	"context"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/evaluation"
	"github.com/doorward/doorward/web/front"
)

var docEvaluation = front.Doc{
	ID: "evaluateAccess", Tag: "Access", Summary: "Ask whether a subject may do something (AuthZEN)",
	WhilePaused: true,
	Description: "The Access Evaluation API of the OpenID AuthZEN Authorization API 1.0. A refusal is 200 with `decision: false` and a reason. Unknown names are ignored. Evaluating a session counts as a use of it.",
}

// A field _ makes the OpenAPI document allow unknown members in its object.
type (
	evaluationInput struct {
		_ struct{} `json:"-" additionalProperties:"true"`
		Query
	}
	evaluationAnswer struct {
		Decision bool               `json:"decision"`
		Context  *evaluationRefusal `json:"context,omitempty" doc:"Only in a refusal"`
	}
	evaluationRefusal struct {
		Reason   string `json:"reason" doc:"Why, as a sentence"`
		PolicyID string `json:"policyId,omitempty" doc:"The policy of the tenant or of the platform that refuses"`
		StepUp   *proof `json:"stepUp,omitempty" doc:"The proof of identity after which the person may do it"`
	}
	proof struct {
		ACR     string   `json:"acr" doc:"aal1, or aal2 for a second factor or a passkey"`
		MaxAge  *int64   `json:"maxAge,omitempty" doc:"The longest age of the proof in seconds; absent if its age doesn't matter"`
		Methods []string `json:"methods" doc:"password, totp, recovery or passkey; empty where the person has to set up a factor first"`
	}
)

func (h *handler) evaluate(ctx context.Context, c *front.Call, in evaluationInput) (evaluationAnswer, error) {
	q, missing := in.question()
	if err := incomplete(missing); err != nil {
		return evaluationAnswer{}, err
	}
	all, err := h.app.Evaluations.Decide(ctx, c.Caller.Service, []evaluation.Question{q})
	if err != nil {
		return evaluationAnswer{}, err
	}
	return answerOf(all[0]), nil
}

func answerOf(d evaluation.Decision) evaluationAnswer {
	if d.Allowed {
		return evaluationAnswer{Decision: true}
	}
	refusal := &evaluationRefusal{Reason: d.Reason, PolicyID: d.PolicyID}
	if n := d.StepUp; n != nil {
		refusal.StepUp = &proof{n.ACR(), n.Seconds(), n.Methods}
	}
	return evaluationAnswer{Context: refusal}
}

var docEvaluations = front.Doc{
	ID: "evaluateAccessBatch", Tag: "Access", Summary: "Ask several questions at once (AuthZEN)",
	WhilePaused: true,
	Description: "The Access Evaluations API of the OpenID AuthZEN Authorization API 1.0, for up to 100 evaluations. `subject`, `action`, `resource` and `context` beside `evaluations` are defaults for all of them. An evaluation that has such a member uses its own, and takes from the default only a `type`, `id` or `name` that its own lacks. An evaluation that still lacks a member is refused with the reason. Without `evaluations` the request itself is one evaluation.",
}

type (
	evaluationsInput struct {
		_ struct{} `json:"-" additionalProperties:"true"`
		Query
		Evaluations []evaluationInput  `json:"evaluations,omitempty" maxItems:"100"`
		Options     evaluationsOptions `json:"options,omitzero"`
	}
	evaluationsOptions struct {
		_        struct{} `json:"-" additionalProperties:"true"`
		Semantic string   `json:"evaluations_semantic,omitempty" enum:"execute_all,deny_on_first_deny,permit_on_first_permit" doc:"deny_on_first_deny stops after the first refusal, permit_on_first_permit after the first permission; the default is execute_all"`
	}
	evaluationsAnswer struct {
		Decision    *bool              `json:"decision,omitempty" doc:"Only if the request is one evaluation"`
		Context     *evaluationRefusal `json:"context,omitempty" doc:"Only if the request is one evaluation, and refused"`
		Evaluations []evaluationAnswer `json:"evaluations,omitempty" doc:"In the order of the request"`
	}
)

// maxEvaluations is how many one request may have.
const maxEvaluations = 100

func (h *handler) evaluateAll(ctx context.Context, c *front.Call, in evaluationsInput) (evaluationsAnswer, error) {
	stops, known := stopsAfter[in.Options.Semantic]
	switch {
	case !known:
		return evaluationsAnswer{}, invalid("/options/evaluations_semantic", "The semantics are execute_all, deny_on_first_deny and permit_on_first_permit.")
	case len(in.Evaluations) > maxEvaluations:
		return evaluationsAnswer{}, invalid("/evaluations", "Ask up to 100 questions at once.")
	case len(in.Evaluations) == 0:
		a, err := h.evaluate(ctx, c, evaluationInput{Query: in.Query})
		return evaluationsAnswer{Decision: &a.Decision, Context: a.Context}, err
	}
	all, err := h.answerAll(ctx, c.Caller.Service, in)
	for i, a := range all {
		if stops(a.Decision) {
			all = all[:i+1]
			break
		}
	}
	return evaluationsAnswer{Evaluations: all}, err
}

// stopsAfter says for each semantic whether the answers end with this decision.
var stopsAfter = map[string]func(decision bool) bool{
	"":                       func(bool) bool { return false },
	"execute_all":            func(bool) bool { return false },
	"deny_on_first_deny":     func(decision bool) bool { return !decision },
	"permit_on_first_permit": func(decision bool) bool { return decision },
}

// answerAll answers each evaluation. One that is incomplete is refused; it doesn't make
// the others fail.
func (h *handler) answerAll(ctx context.Context, by *doorward.ServiceKey, in evaluationsInput) ([]evaluationAnswer, error) {
	all := make([]evaluationAnswer, len(in.Evaluations))
	var questions []evaluation.Question
	var indexes []int
	for i, e := range in.Evaluations {
		q, missing := e.withDefaults(in.Query).question()
		if len(missing) > 0 {
			all[i] = evaluationAnswer{Context: &evaluationRefusal{Reason: "The evaluation lacks " + strings.Join(missing, ", ") + "."}}
			continue
		}
		questions, indexes = append(questions, q), append(indexes, i)
	}
	decisions, err := h.app.Evaluations.Decide(ctx, by, questions)
	for n, d := range decisions {
		all[indexes[n]] = answerOf(d)
	}
	return all, err
}

// withDefaults fills in what the evaluation lacks. Properties are not merged: an evaluation
// with a subject, action or resource of its own takes only type, id or name from the default.
func (a Query) withDefaults(defaults Query) Query {
	if a.Subject != nil && defaults.Subject != nil {
		fill(&a.Subject.Type, defaults.Subject.Type)
		fill(&a.Subject.ID, defaults.Subject.ID)
	}
	if a.Action != nil && defaults.Action != nil {
		fill(&a.Action.Name, defaults.Action.Name)
	}
	if a.Resource != nil && defaults.Resource != nil {
		fill(&a.Resource.Type, defaults.Resource.Type)
		fill(&a.Resource.ID, defaults.Resource.ID)
	}
	fill(&a.Subject, defaults.Subject)
	fill(&a.Action, defaults.Action)
	fill(&a.Resource, defaults.Resource)
	fill(&a.Context, defaults.Context)
	return a
}

// fill sets *v to the value if it is zero.
func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

func invalid(pointer, message string) error {
	e := doorward.Fail(doorward.CodeInvalidBody, "%s", message)
	e.Fields = []doorward.FieldError{{Pointer: pointer, Code: "invalid", Message: message}}
	return e
}
