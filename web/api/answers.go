package api

import (
	"iter"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

const problemType = "application/problem+json"

// openEnums names, by schema, the member of an answer whose values later versions may add
// to. The document lists them as examples, so that no client refuses a new one.
var openEnums = map[string]string{"Actor": "type", "Because": "kind", "Factor": "type"}

// openAnswers lets answers have members that the document doesn't list, so that a client
// generated from this version accepts those of a later one. Requests stay closed, as the
// server refuses unknown names.
func (d document) openAnswers() {
	for name, sc := range d.answerSchemas() {
		if sc.AdditionalProperties == false {
			sc.AdditionalProperties = nil
		}
		if member := sc.Properties[openEnums[name]]; member != nil {
			member.Examples, member.Enum = member.Enum, nil
		}
	}
}

// answerSchemas returns the named schemas that answers use.
func (d document) answerSchemas() map[string]*huma.Schema {
	found := map[string]*huma.Schema{}
	for res := range d.responses() {
		for _, media := range res.Content {
			d.collect(found, media.Schema)
		}
	}
	return found
}

func (d document) responses() iter.Seq[*huma.Response] {
	return func(yield func(*huma.Response) bool) {
		for _, item := range d.spec.Paths {
			for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
				if op == nil {
					continue
				}
				for _, res := range op.Responses {
					if !yield(res) {
						return
					}
				}
			}
		}
	}
}

// collect adds the named schemas that sc refers to.
func (d document) collect(found map[string]*huma.Schema, sc *huma.Schema) {
	if sc == nil {
		return
	}
	if name, isRef := strings.CutPrefix(sc.Ref, "#/components/schemas/"); isRef {
		if found[name] != nil {
			return
		}
		sc = d.schemas.SchemaFromRef(sc.Ref)
		found[name] = sc
	}
	d.collect(found, sc.Items)
	for _, member := range sc.Properties {
		d.collect(found, member)
	}
	if values, isMap := sc.AdditionalProperties.(*huma.Schema); isMap {
		d.collect(found, values)
	}
}

// addExample returns a reference to an example of a problem with the code.
func (d document) addExample(code doorward.Code) *huma.Example {
	problem := code.Problem()
	d.spec.Components.Examples[string(code)] = &huma.Example{Summary: problem.Title, Value: map[string]any{
		"type": d.spec.Servers[0].URL + front.ProblemPath(code), "title": problem.Title, "status": front.Status(code),
		"detail": problem.Help, "instance": "/api/v2/", "code": code, "requestId": "req_7d2c5tpae7kq2m5x3yh4n6rj7w",
	}}
	return &huma.Example{Ref: "#/components/examples/" + string(code)}
}

// withVersion sets the object's ETag and returns its view, unless there is an error.
func withVersion[T interface{ Version() string }, V any](c *front.Call, object T, err error, view func(T) V) (V, error) {
	if err != nil {
		var none V
		return none, err
	}
	c.SetVersion(object.Version())
	return view(object), nil
}
