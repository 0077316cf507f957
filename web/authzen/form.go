package authzen

import (
	"context"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/evaluation"
	"github.com/doorward/doorward/internal/strictjson"
	"github.com/doorward/doorward/web/front"
)

// maxBody is the largest request body, in bytes.
const maxBody = 256 << 10

// endpoint decodes a body in the form of the specification, calls fn and answers.
func endpoint[In, Out any](fn func(ctx context.Context, c *front.Call, in In) (Out, error)) front.Endpoint {
	e := front.Raw(func(ctx context.Context, c *front.Call) error {
		in, err := decode[In](c)
		if err != nil {
			return err
		}
		out, err := fn(ctx, c, in)
		if err == nil {
			c.Answer(out)
		}
		return err
	})
	e.In, e.Out, e.Foreign = reflect.TypeFor[In](), reflect.TypeFor[Out](), true
	return e
}

func decode[In any](c *front.Call) (in In, err error) {
	body, err := c.Body(maxBody)
	if err != nil {
		return in, err
	}
	if !isJSON(c.R.Header) {
		return in, doorward.Fail(doorward.CodeInvalidBody, "Send the body as \"Content-Type: application/json\", in UTF-8 and without a Content-Encoding.")
	}
	in, err = strictjson.DecodeOpen[In](body)
	return in, front.Malformed(err)
}

func isJSON(h http.Header) bool {
	types := h.Values("Content-Type")
	if len(types) != 1 || len(h.Values("Content-Encoding")) > 0 {
		return false
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, hasCharset := params["charset"]
	return err == nil && media == "application/json" && (!hasCharset || strings.EqualFold(charset, "utf-8"))
}

// The information model of the specification. What Doorward doesn't use is ignored.
type (
	subject struct {
		_          struct{}          `json:"-" additionalProperties:"true"`
		Type       string            `json:"type,omitempty" example:"user" doc:"user, key or session"`
		ID         string            `json:"id,omitempty" example:"usr_4kq7m5x3yh4n6rj7wd2c5tpae7" doc:"Id of the user or key, or the token of the session"`
		Properties subjectProperties `json:"properties,omitzero"`
	}
	subjectProperties struct {
		_        struct{} `json:"-" additionalProperties:"true"`
		TenantID string   `json:"tenantId,omitempty" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae" doc:"Needed for users of several tenants; without effect for keys and sessions"`

		all attributes
	}
	action struct {
		_          struct{}   `json:"-" additionalProperties:"true"`
		Name       string     `json:"name,omitempty" example:"message.send" doc:"A permission"`
		Properties attributes `json:"properties,omitempty" doc:"For the operator's policies"`
	}
	resource struct {
		_          struct{}   `json:"-" additionalProperties:"true"`
		Type       string     `json:"type,omitempty" example:"tenant" doc:"The type that the action acts on; tenant for actions without one"`
		ID         string     `json:"id,omitempty" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"`
		Properties attributes `json:"properties,omitempty" doc:"The attributes that the model declares for the type, over those of the model's entity; others are for the operator's policies"`
	}
)

// UnmarshalJSON takes an object. It keeps all members, for the operator's policies.
func (p *subjectProperties) UnmarshalJSON(b []byte) error {
	if err := p.all.UnmarshalJSON(b); err != nil {
		return err
	}
	switch tenant := p.all["tenantId"].(type) {
	case string:
		p.TenantID = tenant
	case nil:
	default:
		return &strictjson.Error{Reason: "send tenantId as a string here"}
	}
	return nil
}

// attributes are those of an object. Numbers keep all their digits.
type attributes map[string]any

// UnmarshalJSON takes an object.
func (a *attributes) UnmarshalJSON(b []byte) error {
	return (*front.Attributes)(a).UnmarshalJSON(b)
}

// withoutSeconds is a layout of a time in examples of the specification.
const withoutSeconds = "2006-01-02T15:04Z07:00"

// text returns the member if it is a string, else "".
func (a attributes) text(name string) string {
	text, _ := a[name].(string)
	return text
}

// instant returns the member as a time: the zero time for one that can't be read, and nil
// if it is absent.
func (a attributes) instant(name string) *time.Time {
	if _, has := a[name]; !has {
		return nil
	}
	at, err := doorward.ParseTime(a.text(name))
	if err != nil {
		at, _ = time.Parse(withoutSeconds, strings.ToUpper(a.text(name)))
	}
	return &at
}

// Query has the members that evaluations and searches share: one evaluation, the defaults of
// several, or a search.
type Query struct {
	Subject  *subject    `json:"subject,omitempty"`
	Action   *action     `json:"action,omitempty"`
	Resource *resource   `json:"resource,omitempty"`
	Context  *attributes `json:"context,omitempty" doc:"About the request: ip is the client's address, time its time as RFC 3339 says; without a time it is now. Keys bound to addresses and policies refuse if they read what is missing or unreadable"`
}

// question returns what is asked, and the pointers of the members that it lacks.
func (a Query) question() (evaluation.Question, []string) {
	var q evaluation.Question
	var missing []string
	need := func(pointer, value string) {
		if value == "" {
			missing = append(missing, pointer)
		}
	}
	if a.Subject == nil {
		missing = append(missing, "/subject")
	} else {
		q.Subject = evaluation.Subject{Type: a.Subject.Type, ID: a.Subject.ID, TenantID: a.Subject.Properties.TenantID}
		q.SubjectProperties = a.Subject.Properties.all
		need("/subject/type", q.Subject.Type)
		need("/subject/id", q.Subject.ID)
	}
	if a.Action == nil {
		missing = append(missing, "/action")
	} else {
		q.Action, q.ActionProperties = doorward.Action(a.Action.Name), a.Action.Properties
		need("/action/name", a.Action.Name)
	}
	if a.Resource == nil {
		missing = append(missing, "/resource")
	} else {
		q.Resource = doorward.Resource{Type: a.Resource.Type, ID: a.Resource.ID, Attributes: a.Resource.Properties}
		need("/resource/type", q.Resource.Type)
		need("/resource/id", q.Resource.ID)
	}
	if a.Context != nil {
		q.IP, q.Time = a.Context.text("ip"), a.Context.instant("time")
	}
	return q, missing
}

// incomplete returns an error that names the missing members, or nil if only optional ones are
// missing.
func incomplete(missing []string, optional ...string) error {
	e := doorward.Fail(doorward.CodeInvalidBody, "The request lacks members that the specification requires.")
	for _, pointer := range missing {
		if !slices.Contains(optional, pointer) {
			e.Fields = append(e.Fields, doorward.FieldError{Pointer: pointer, Code: "required", Message: "Send this member with a value."})
		}
	}
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}
