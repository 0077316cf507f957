package front

import (
	"cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
)

// ExplainResource is the object of an action that is explained.
type ExplainResource struct {
	Type       string     `json:"type" example:"invoice" doc:"The type that the action acts on; tenant for actions without one"`
	ID         string     `json:"id" example:"17"`
	Properties Attributes `json:"properties,omitempty" doc:"The attributes that the model declares"`
}

// ExplainContext is the request of an action that is explained.
type ExplainContext struct {
	IP     string `json:"ip,omitempty" example:"192.0.2.7" doc:"The client's address. Without it, a policy that reads it refuses"`
	Time   string `json:"time,omitempty" example:"2026-11-22T23:00:00Z" doc:"When it is done; absent: now"`
	Now    string `json:"now,omitempty" example:"2026-11-22T23:00:00Z" doc:"The same as time, by its name in policies; send one of them"`
	Method string `json:"method,omitempty" example:"POST" doc:"method, host and path are read as those that a gateway states, so a policy that reads one that can't be read refuses"`
	Host   string `json:"host,omitempty" example:"app.example.com"`
	Path   string `json:"path,omitempty" example:"/invoices/17" doc:"As the client sends it; the query doesn't count"`
}

// Explanation is a decision and its causes.
type Explanation struct {
	Allowed   bool            `json:"allowed"`
	Role      doorward.Role   `json:"role" example:"ADMIN" doc:"For a key: the role that it has in effect"`
	Because   []Because       `json:"because" nullable:"false" doc:"All that refuses; or else all that allows"`
	GrantedBy []doorward.Role `json:"grantedBy" nullable:"false" example:"[\"ADMIN\",\"OWNER\"]" doc:"All roles that grant the action, the lowest first"`
}

// Because is one of the causes of a decision.
type Because struct {
	Kind   policy.Kind `json:"kind" enum:"role,key,policy,tenant"`
	ID     string      `json:"id" example:"large-invoices" doc:"Name of the role; id of the key, the policy or the tenant. In a plan it is empty for all policies of the platform about single people or things"`
	Line   int         `json:"line,omitempty" example:"1" doc:"Where the policy begins in its text"`
	Reason string      `json:"reason,omitempty" example:"Invoices over 10,000 are paid between 8 and 18 o'clock."`
	// Platform is true of a policy of the model.
	Platform bool `json:"platform,omitempty" doc:"It is a policy of the platform, and the line is of the model's policies"`
}

// Object returns the object as policies read it.
func (r *ExplainResource) Object() *doorward.Resource {
	return &doorward.Resource{Type: r.Type, ID: r.ID, Attributes: r.Properties}
}

// Request returns the request as policies read it.
func (c *ExplainContext) Request() policy.Context {
	asked := policy.Context{IP: c.IP, Time: cmp.Or(c.Time, c.Now)}
	if c.Method != "" {
		stateMethod(&asked.Stated, c.Method)
	}
	if c.Host != "" {
		stateHost(&asked.Stated, c.Host)
	}
	if c.Path != "" {
		statePath(&asked.Stated, c.Path)
	}
	return asked
}

// ViewExplanation is the explanation as it is answered.
func ViewExplanation(e policy.Explanation) Explanation {
	return Explanation{Allowed: e.Allowed, Role: e.Role, Because: ViewBecause(e.Because), GrantedBy: e.GrantedBy}
}

// ViewBecause are the causes as they are answered.
func ViewBecause(all []policy.Cause) []Because {
	view := make([]Because, len(all))
	for i, b := range all {
		view[i] = Because(b)
	}
	return view
}
