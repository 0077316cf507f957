package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// spec is the part of an OpenAPI 3.1 document that the reference shows.
type spec struct {
	Info    struct{ Title, Version, Description string }
	Servers []struct{ URL string }
	Tags    []struct{ Name, Description string }
	// Paths has the operations by path and lower-case method.
	Paths      map[string]map[string]*operation
	api        string // path of the reference, for links; no part of the document
	Components struct {
		Schemas         map[string]*schema
		SecuritySchemes map[string]struct{ Name string }
	}
}

// cookie returns the name of the session cookie.
func (s *spec) cookie() string { return s.Components.SecuritySchemes["sessionCookie"].Name }

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Action                            string `json:"x-action"`
	Security                          []map[string][]string
	Parameters                        []parameter
	RequestBody                       *struct{ Content media }
	Responses                         map[string]*response
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *schema
}

type response struct {
	Description string
	Content     media
	Headers     map[string]struct{ Description string }
}

type media map[string]struct{ Schema *schema }

// json returns the schema of the JSON body, or nil.
func (m media) json() *schema { return m["application/json"].Schema }

// otherTypes returns the media types of a body that isn't JSON.
func (m media) otherTypes() []string {
	types := slices.Sorted(maps.Keys(m))
	return slices.DeleteFunc(types, func(t string) bool { return t == "application/json" })
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 types
	Format, Description  string
	Enum, Examples       []any
	Minimum, Maximum     *float64
	MinLength, MaxLength *int
	MaxItems             *int
	Items                *schema
	Properties           map[string]*schema
	Required             []string
}

// types is one JSON type or several.
type types []string

func (t *types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = types{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

func parse(document []byte) (*spec, error) {
	var s spec
	if err := json.Unmarshal(document, &s); err != nil {
		return nil, fmt.Errorf("pages: OpenAPI document: %w", err)
	}
	return &s, nil
}

// server returns the address that examples call.
func (s *spec) server() string {
	if len(s.Servers) == 0 {
		return ""
	}
	return s.Servers[0].URL
}

// resolve resolves a reference and returns the schema with its name; without a
// reference, the schema itself.
func (s *spec) resolve(sc *schema) (*schema, string) {
	if sc.Ref == "" {
		return sc, ""
	}
	name := sc.Ref[strings.LastIndex(sc.Ref, "/")+1:]
	if target := s.Components.Schemas[name]; target != nil {
		return target, name
	}
	return &schema{}, name
}

// names returns the names of the members: the required ones in the document's
// order, then the others alphabetically.
func (sc *schema) names() []string {
	required := slices.DeleteFunc(slices.Clone(sc.Required), func(n string) bool { return sc.Properties[n] == nil })
	optional := slices.Sorted(maps.Keys(sc.Properties))
	optional = slices.DeleteFunc(optional, func(n string) bool { return slices.Contains(sc.Required, n) })
	return slices.Concat(required, optional)
}

// success returns the operation's successful status and response.
func (o *operation) success() (string, *response) {
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if strings.HasPrefix(status, "2") || strings.HasPrefix(status, "3") {
			return status, o.Responses[status]
		}
	}
	return "", &response{}
}
