package api

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/web/front"
)

type explainInput struct {
	UserID     string                 `json:"userId,omitempty" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"Id of a user; one of userId, keyId and credential"`
	KeyID      string                 `json:"keyId,omitempty" example:"key_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"Id of an API key"`
	Credential string                 `json:"credential,omitempty" doc:"The token of a session, or an API key. A session knows when its user signed in"`
	Action     string                 `json:"action" example:"invoice.pay" doc:"A permission"`
	Resource   *front.ExplainResource `json:"resource,omitempty" doc:"What it is done to; absent: unknown, as in a check"`
	Context    *front.ExplainContext  `json:"context,omitempty" doc:"What is known of the request"`
	Version    *front.Int             `json:"version,omitempty" minimum:"1" example:"3" doc:"Version of the policies to decide by, as if it were in force; absent: those in force now"`
}

var docExplain = front.Doc{
	ID: "explainAccess", Tag: "Policies", Summary: "Explain why somebody may do something, or may not",
	WhilePaused: true,
	Description: "The decision that a check, introspection and AuthZEN make, with its causes. It doesn't count as a use of the session or key. The same question about the same roles, policies and version has the same answer. Ids and credentials of other tenants are not found.",
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) explain(ctx context.Context, c *front.Call, in explainInput) (front.Explanation, error) {
	if err := in.check(); err != nil {
		return front.Explanation{}, err
	}
	e, err := a.app.Policies.Explain(ctx, c.Caller, in.question())
	if err != nil {
		return front.Explanation{}, err
	}
	return front.ViewExplanation(e), nil
}

func (in *explainInput) check() error {
	var faults []doorward.FieldError
	faultIf := func(isFault bool, pointer, code, message string) {
		if isFault {
			faults = append(faults, doorward.FieldError{Pointer: pointer, Code: code, Message: message})
		}
	}
	named := 0
	for _, who := range []string{in.UserID, in.KeyID, in.Credential} {
		if who != "" {
			named++
		}
	}
	faultIf(named == 0, "/userId", "required", "Say who: send userId, keyId or credential.")
	faultIf(named > 1, "/userId", "invalid", "Send one of userId, keyId and credential.")
	faultIf(in.Action == "", "/action", "required", "Name the action.")
	faultIf(in.Version != nil && *in.Version < 1, "/version", "out_of_range", "Versions are numbered from 1.")
	if in.Resource != nil {
		faultIf(in.Resource.Type == "", "/resource/type", "required", "Name the type of the resource.")
		faultIf(in.Resource.ID == "", "/resource/id", "required", "Name the resource.")
	}
	faultIf(in.Context != nil && in.Context.Time != "" && in.Context.Now != "", "/context/now", "invalid", "Send one of now and time.")
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

func (in *explainInput) question() policy.Question {
	q := policy.Question{
		UserID: in.UserID, KeyID: in.KeyID, Credential: in.Credential, Action: doorward.Action(in.Action),
	}
	if in.Version != nil {
		q.Version = int64(*in.Version)
	}
	if in.Resource != nil {
		q.Resource = in.Resource.Object()
	}
	if in.Context != nil {
		q.Context = in.Context.Request()
	}
	return q
}
