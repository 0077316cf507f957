// Package authzen serves the OpenID AuthZEN Authorization API 1.0: services that enforce
// decisions themselves ask for them by subject, action and resource.
//
// Requests and answers follow that specification: unknown members are ignored, any malformed
// request is answered 400, and any X-Request-Id of visible characters is returned. A refusal is
// answered 200 with a reason, and a failure to decide 503. docs/authzen.md describes the use.
package authzen

import (
	"context"
	"net/http"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/web/front"
)

const (
	evaluationPath  = "/access/v1/evaluation"
	evaluationsPath = "/access/v1/evaluations"
	subjectPath     = "/access/v1/search/subject"
	resourcePath    = "/access/v1/search/resource"
	actionPath      = "/access/v1/search/action"
	metadataPath    = "/.well-known/authzen-configuration"
)

// handler serves the decision point.
type handler struct{ app *app.App }

// Routes returns the routes of the decision point.
func Routes(a *app.App) []front.Route {
	h := &handler{a}
	guard := front.Operated(doorward.ServiceEvaluate)
	on := func(path string, e front.Endpoint, d front.Doc) front.Route {
		d.Errors = append(d.Errors, doorward.CodeBodyTooLarge, doorward.CodeInvalidBody)
		return front.On("POST "+path, guard, e, d).Check()
	}
	return []front.Route{
		on(evaluationPath, endpoint(h.evaluate), docEvaluation),
		on(evaluationsPath, endpoint(h.evaluateAll), docEvaluations),
		on(subjectPath, endpoint(h.searchSubject), docSubjects),
		on(resourcePath, endpoint(h.searchResource), docResources),
		on(actionPath, endpoint(h.searchAction), docActions),
		front.On("GET "+metadataPath, front.Public(), front.JSON(http.StatusOK, describe), docMetadata).Check(),
	}
}

// WellKnown returns the route of the metadata for a base URL with a path, which follows the
// well-known name (RFC 8615). Without a path there is none.
func WellKnown(basePath string) []front.Route {
	if basePath == "" {
		return nil
	}
	return []front.Route{front.On("GET "+metadataPath+basePath, front.Public(), front.JSON(http.StatusOK, describe), front.Doc{}).Check()}
}

var docMetadata = front.Doc{
	ID: "authzenConfiguration", Tag: "Access", Summary: "Where the AuthZEN endpoints are",
	Description: "The metadata of the OpenID AuthZEN Authorization API 1.0. Below a base URL with a path it is also at the well-known name followed by the path, as in `/.well-known/authzen-configuration/platform`. Keep it for up to 300 seconds.",
}

type authzenMetadata struct {
	PolicyDecisionPoint string `json:"policy_decision_point" format:"uri" doc:"The base URL of Doorward"`
	Evaluation          string `json:"access_evaluation_endpoint" format:"uri"`
	Evaluations         string `json:"access_evaluations_endpoint" format:"uri"`
	Subject             string `json:"search_subject_endpoint" format:"uri"`
	Resource            string `json:"search_resource_endpoint" format:"uri"`
	Action              string `json:"search_action_endpoint" format:"uri"`
}

func describe(_ context.Context, c *front.Call, _ front.None) (authzenMetadata, error) {
	base := c.Site().BaseURL()
	c.W.Header().Set("Cache-Control", "max-age=300")
	return authzenMetadata{base, base + evaluationPath, base + evaluationsPath, base + subjectPath, base + resourcePath, base + actionPath}, nil
}
