package pages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward"
)

// token is a piece of an example with the class that colours it, if any.
type token struct{ Class, Text string }

// The classes of tokens.
const (
	className   = "name"
	classString = "string"
	classWord   = "word" // numbers, true, false, null, commands
)

// pairs is a JSON object whose members keep their order.
type pairs []pair

type pair struct {
	name  string
	value any
}

// defaultExamples has values for members without an example in the document.
var defaultExamples = map[string]any{
	"name": "Ann Lee", "tenantName": "Acme", "role": doorward.RoleUser, "permissions": doorward.User{Role: doorward.RoleUser}.Permissions(),
	"expiresInDays": 7, "current": true, "delivery": doorward.DeliveryQueued, "currentPassword": "three old paper boats",
	"createdAt": "2026-03-02T09:30:00Z", "lastSeenAt": "2026-03-02T09:41:12Z", "lastLoginAt": "2026-03-02T09:30:00Z",
	"idleExpiresAt": "2026-03-02T10:41:12Z", "expiresAt": "2026-03-03T09:30:00Z",
	"credential": "3q2-7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWc", "ip": "192.0.2.7", "userAgent": "Mozilla/5.0 (X11; Linux x86_64)",
	"challenge": "3q2-7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWc", "methods": []string{doorward.ByCode}, "field": "role", "from": doorward.RoleUser, "to": doorward.RoleAdmin, "codes": []string{"LMZQ-N52V-JN4T-IZ5G-T5WR-VE44"}, "formerEmails": []string{"ann@acme.example"},
	"pointer": "/password", "code": "too_short", "message": "The password needs at least 12 characters.",
	"con": "con_5tqm7x3yh4n6rj7wd2c5tpae7k", "invitedBy": "usr_5tqm7x3yh4n6rj7wd2c5tpae7k",
	"assertion": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ1c3JfMSJ9.c2lnbmF0dXJl",
	"reason":    "The role VIEWER does not grant message.send.", "next_token": "",
	// Of a JSON Web Key: the base point of P-256.
	"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
	"x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY", "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
}

// value returns an example of the schema, the first of these that there is: the document's own
// example; for an object, its members with their examples; the value in defaultExamples; the
// example of another member with the same name or format; a value of the type.
func (s *spec) value(name string, sc *schema) any {
	sc, _ = s.resolve(sc)
	if len(sc.Examples) > 0 {
		return sc.Examples[0]
	}
	if len(sc.Type) > 0 && sc.Type[0] == "object" {
		return s.object(sc)
	}
	if v, ok := defaultExamples[name]; ok {
		return v
	}
	if v := s.exampleElsewhere(name, sc); v != nil && len(sc.Enum) == 0 {
		return v
	}
	return s.valueOfType(sc)
}

func (s *spec) valueOfType(sc *schema) any {
	switch {
	case len(sc.Enum) > 0:
		return sc.Enum[0]
	case sc.Items != nil:
		return []any{s.value("", sc.Items)}
	case len(sc.Type) > 0 && sc.Type[0] == "integer":
		return 1
	case len(sc.Type) > 0 && sc.Type[0] == "boolean":
		return true
	}
	return "…"
}

// object returns the required members; if none is required, all except lists and the token
// that continues a search.
func (s *spec) object(sc *schema) pairs {
	o := pairs{}
	for _, name := range sc.names() {
		m := sc.Properties[name]
		if slices.Contains(sc.Required, name) || len(sc.Required) == 0 && m.Items == nil && name != "token" {
			o = append(o, pair{name, s.value(name, m)})
		}
	}
	return o
}

// exampleElsewhere finds an example of another member with the same name, else with the same
// format. An "id" differs in each object, and a list has no example of a single value.
func (s *spec) exampleElsewhere(name string, like *schema) any {
	var byFormat any
	for _, sc := range sorted(s.Components.Schemas) {
		for n, m := range sorted(sc.Properties) {
			switch {
			case len(m.Examples) == 0 || (m.Items == nil) != (like.Items == nil):
			case n == name && n != "id":
				return m.Examples[0]
			case like.Format != "" && m.Format == like.Format && byFormat == nil:
				byFormat = m.Examples[0]
			}
		}
	}
	return byFormat
}

// encode writes a value as indented JSON in tokens.
func encode(v any, indent string) []token {
	switch v := v.(type) {
	case pairs:
		return encodeList("{", "}", indent, len(v), func(i int) []token {
			return append([]token{{className, quote(v[i].name)}, {"", ": "}}, encode(v[i].value, indent+"  ")...)
		})
	case []doorward.Action:
		return encodeList("[", "]", indent, len(v), func(i int) []token { return encode(string(v[i]), indent) })
	case []any:
		return encodeList("[", "]", indent, len(v), func(i int) []token { return encode(v[i], indent+"  ") })
	}
	text := quote(v)
	if strings.HasPrefix(text, `"`) {
		return []token{{classString, text}}
	}
	return []token{{classWord, text}}
}

func encodeList(open, end, indent string, length int, item func(int) []token) []token {
	out := []token{{"", open}}
	for i := range length {
		sep := "\n"
		if i > 0 {
			sep = ",\n"
		}
		out = append(append(out, token{"", sep + indent + "  "}), item(i)...)
	}
	return append(out, token{"", "\n" + indent + end})
}

// quote encodes a plain value, with &, < and > as they are.
func quote(v any) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// curl returns the command line that calls the operation, for a POSIX shell. Credentials
// come from its variables: TOKEN has the token of a session, KEY an operator key, API_KEY an
// API key.
func (s *spec) curl(method, path string, o *operation) []token {
	path = s.fillPath(path, o)
	out := []token{{classWord, "curl"}, {"", " "}}
	if method != "GET" && (method != "POST" || o.RequestBody == nil) { // -d makes it a POST
		out = append(out, token{"", "-X " + method + " "})
	}
	out = append(out, token{"", s.server() + path})
	switch name := o.credential(); name {
	case "":
	case sessionToken:
		out = append(out, token{"", " \\\n  -b "}, token{classString, `"` + s.cookie() + `=$TOKEN"`})
	default:
		out = append(out, token{"", " \\\n  -H "}, token{classString, `"Authorization: Bearer $` + name + `"`})
	}
	if o.needsVersion() {
		out = append(out, token{"", " \\\n  -H "}, token{classString, `'If-Match: "3"'`})
	}
	switch form := o.form(); {
	case form != "":
		out = append(out, token{"", " \\\n  -H "}, token{classString, "'Content-Type: " + formType + "'"}, token{"", " \\\n  -d "}, token{classString, "'" + form + "'"})
	case o.RequestBody != nil:
		out = append(out, s.bodyArguments(o.RequestBody.Content)...)
	}
	return out
}

// bodyArguments returns curl's arguments for the body: JSON, or else a file.
func (s *spec) bodyArguments(content media) []token {
	if mediaType, ending := content.file(); mediaType != "" {
		return []token{{"", " \\\n  -H "}, {classString, "'Content-Type: " + mediaType + "'"}, {"", " \\\n  --data-binary @file." + ending}}
	}
	out := []token{{"", " \\\n  -H "}, {classString, `'Content-Type: application/json'`}}
	out = append(out, token{"", " \\\n  -d '"})
	out = append(out, escapeQuotes(encode(s.value("", content.json()), ""))...)
	return append(out, token{"", "'"})
}

// fillPath replaces the parameters of a path with examples.
func (s *spec) fillPath(path string, o *operation) string {
	for _, p := range o.pathParameters() {
		path = strings.Replace(path, "{"+p.Name+"}", s.pathValue(path, p), 1)
	}
	return path
}

// pathValue returns an example of a parameter of the path. An "id" belongs to the object whose
// plural precedes it, as in "sessions/{id}".
func (s *spec) pathValue(path string, p parameter) string {
	before, _, _ := strings.Cut(path, "{"+p.Name+"}")
	sc := p.Schema
	for name, object := range sorted(s.Components.Schemas) {
		if p.Name == "id" && strings.HasSuffix(before, "/"+strings.ToLower(name)+"s/") && object.Properties["id"] != nil {
			sc = object.Properties["id"]
		}
	}
	return fmt.Sprint(s.value(p.Name, sc))
}

// escapeQuotes escapes the tokens for single quotes in a shell.
func escapeQuotes(tokens []token) []token {
	for i := range tokens {
		tokens[i].Text = strings.ReplaceAll(tokens[i].Text, `'`, `'\''`)
	}
	return tokens
}

// sessionToken is the variable of the examples that has the token of a session.
const sessionToken = "TOKEN"

// credential is the variable of the examples that has the operation's credential; empty
// for none.
func (o *operation) credential() string {
	switch {
	case o.takes("sessionCookie"), o.endsSession():
		return sessionToken
	case o.takes("operatorKey"):
		return "KEY"
	case o.takes("tenantKey"):
		return "API_KEY"
	}
	return ""
}

// needsVersion reports whether a request must say which version it changes.
func (o *operation) needsVersion() bool {
	return slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.Name == "If-Match" && p.Required })
}

// pathParameters returns the parameters of the path.
func (o *operation) pathParameters() []parameter {
	return slices.DeleteFunc(slices.Clone(o.Parameters), func(p parameter) bool { return p.In != "path" })
}

// file is the type of a body that isn't JSON, and the ending of such a file; empty for JSON.
func (m media) file() (mediaType, ending string) {
	raw := m.otherTypes()
	if len(raw) == 0 {
		return "", ""
	}
	mediaType = raw[0]
	if slices.Contains(raw, "image/png") {
		mediaType = "image/png"
	}
	_, ending, _ = strings.Cut(mediaType, "/")
	return mediaType, ending
}

// endsSession reports whether the operation clears the session cookie.
func (o *operation) endsSession() bool {
	_, res := o.success()
	return strings.Contains(res.Headers["Set-Cookie"].Description, "Max-Age=0")
}

// takes reports whether the operation accepts the kind of credential.
func (o *operation) takes(scheme string) bool {
	return slices.ContainsFunc(o.Security, func(need map[string][]string) bool { return need[scheme] != nil })
}
