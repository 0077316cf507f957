package pages

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// sample is an example of a request in one language.
type sample struct {
	ID, Name string // "go", "Go"
	Text     []token
}

// samples returns examples that all send the same request: with curl, with the clients for
// JavaScript and Python, and with Go's net/http.
func (s *spec) samples(method, path string, o *operation) []sample {
	return []sample{
		{"curl", "curl", s.curl(method, path, o)},
		{"js", "JavaScript", s.javaScript(method, path, o)},
		{"go", "Go", s.golang(method, path, o)},
		{"python", "Python", s.python(method, path, o)},
	}
}

// body returns an example of the operation's JSON body; nil without one.
func (s *spec) body(o *operation) any {
	if o.RequestBody == nil || o.RequestBody.Content.json() == nil {
		return nil
	}
	return s.value("", o.RequestBody.Content.json())
}

// form returns an example of a body that is a form of JWTs, which nobody sends but providers, without a credential of
// ours; empty for others.
func (o *operation) form() string {
	if o.RequestBody == nil || o.RequestBody.Content[formType].Schema == nil {
		return ""
	}
	values := url.Values{}
	for _, name := range o.RequestBody.Content[formType].Schema.Required {
		values.Set(name, "eyJhbGciOiJSUzI1NiJ9")
	}
	return values.Encode()
}

// file returns the media type and the ending of a body that is a file; empty for others.
func (o *operation) file() (mediaType, ending string) {
	if o.RequestBody == nil {
		return "", ""
	}
	return o.RequestBody.Content.file()
}

// write appends formatted text to out, with its string literals in colour.
func write(out []token, format string, args ...any) []token {
	text := fmt.Sprintf(format, args...)
	last := 0
	for _, at := range literal.FindAllStringIndex(text, -1) {
		out = append(out, token{"", text[last:at[0]]}, token{classString, text[at[0]:at[1]]})
		last = at[1]
	}
	return append(out, token{"", text[last:]})
}

var literal = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*'")

// javaScript calls the operation with the client of clients/js; a file is sent with fetch.
func (s *spec) javaScript(method, path string, o *operation) []token {
	if form := o.form(); form != "" {
		return write(nil, "const response = await fetch(%q, {\n  method: %q,\n  headers: { \"Content-Type\": %q },\n  body: %q,\n});", s.server()+s.fillPath(path, o), method, formType, form)
	}
	if mediaType, ending := o.file(); mediaType != "" {
		out := write(nil, "import { readFile } from \"node:fs/promises\";\n\n")
		out = write(out, "const response = await fetch(%q, {\n  method: %q,\n", s.server()+s.fillPath(path, o), method)
		out = write(out, "  headers: { \"Content-Type\": %q, Authorization: `Bearer ${process.env.%s}` },\n", mediaType, o.credential())
		return write(out, "  body: await readFile(\"file.%s\"),\n});", ending)
	}
	out := write(nil, "import { Client } from \"@doorward/client\";\n\nconst doorward = new Client({ baseUrl: %q })", s.server())
	if name := o.credential(); name != "" {
		out = write(out, ".as(process.env.%s)", name)
	}
	out = write(out, ";\nconst answer = await doorward.%s(%q", strings.ToLower(method), path)
	var options []string
	if params := s.assignments(path, o, "%s: %s"); params != "" {
		options = append(options, "params: { "+params+" }")
	}
	if o.needsVersion() {
		options = append(options, `ifMatch: '"3"'`)
	}
	switch body := s.body(o); {
	case body != nil && method == "DELETE":
		out = append(append(out, token{"", ", { body: "}), unquoteNames(encode(body, ""))...)
		return write(out, "%s });", strings.Join(append([]string{""}, options...), ", ")) // a comma before each option
	case body != nil:
		out = append(append(out, token{"", ", "}), unquoteNames(encode(body, ""))...)
	case len(options) > 0 && method != "GET" && method != "DELETE":
		out = write(out, ", undefined")
	}
	if len(options) > 0 {
		out = write(out, ", { %s }", strings.Join(options, ", "))
	}
	return write(out, ");")
}

// python calls the operation with the client of clients/python; a file is sent with urllib.
func (s *spec) python(method, path string, o *operation) []token {
	var out []token
	if name := o.credential(); name != "" {
		out = write(out, "import os\n\n")
	}
	if form := o.form(); form != "" {
		out = write(out, "import urllib.request\n\nrequest = urllib.request.Request(\n    %q,\n    data=b%q,\n    method=%q,\n", s.server()+s.fillPath(path, o), form, method)
		return write(out, "    headers={\"Content-Type\": %q},\n)\nurllib.request.urlopen(request)", formType)
	}
	if mediaType, ending := o.file(); mediaType != "" {
		out = write(out, "import urllib.request\n\nwith open(\"file.%s\", \"rb\") as file:\n    request = urllib.request.Request(\n", ending)
		out = write(out, "        %q,\n        data=file.read(),\n        method=%q,\n", s.server()+s.fillPath(path, o), method)
		out = write(out, "        headers={\"Content-Type\": %q, \"Authorization\": \"Bearer \" + os.environ[%q]},\n    )\n", mediaType, o.credential())
		return write(out, "urllib.request.urlopen(request)")
	}
	out = write(out, "import doorward\n\nclient = doorward.Client(%q", s.server())
	if name := o.credential(); name != "" {
		out = write(out, ", os.environ[%q]", name)
	}
	out = write(out, ")\nanswer = client.%s(%q", strings.ToLower(method), path)
	if body := s.body(o); body != nil {
		before := ", "
		if method == "DELETE" {
			before = ", body="
		}
		out = append(append(out, token{"", before}), pythonWords(encode(body, ""))...)
	}
	if params := s.assignments(path, o, "%q: %s"); params != "" {
		out = write(out, ", params={%s}", params)
	}
	if o.needsVersion() {
		out = write(out, `, if_match='"3"'`)
	}
	return write(out, ")")
}

// golang sends the request with the standard library.
func (s *spec) golang(method, path string, o *operation) []token {
	var out []token
	mediaType, ending := o.file()
	body := "nil"
	switch content := s.body(o); {
	case o.form() != "":
		out, body, mediaType = write(out, "body := strings.NewReader(%q)\n", o.form()), "body", formType
	case mediaType != "":
		out, body = write(out, "file, err := os.Open(\"file.%s\")\nif err != nil {\n\tlog.Fatal(err)\n}\ndefer file.Close()\n", ending), "file"
	case content != nil:
		out, body, mediaType = write(out, "body := strings.NewReader(`"), "body", "application/json"
		out = append(append(out, encode(content, "")...), token{"", "`)\n"})
	}
	out = write(out, "req, err := http.NewRequest(%q, %q, %s)\nif err != nil {\n\tlog.Fatal(err)\n}\n", method, s.server()+s.fillPath(path, o), body)
	if name := o.credential(); name != "" {
		out = write(out, "req.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(%q))\n", name)
	}
	if mediaType != "" {
		out = write(out, "req.Header.Set(\"Content-Type\", %q)\n", mediaType)
	}
	if o.needsVersion() {
		out = write(out, "req.Header.Set(\"If-Match\", %q)\n", `"3"`)
	}
	status, _ := o.success()
	send := "http.DefaultClient.Do"
	if strings.HasPrefix(status, "3") { // which the client would follow
		send = "http.DefaultTransport.RoundTrip"
	}
	out = write(out, "res, err := %s(req)\nif err != nil {\n\tlog.Fatal(err)\n}\ndefer res.Body.Close()\n", send)
	out = write(out, "if res.StatusCode != %s {\n\tlog.Fatal(res.Status)\n}", status)
	if _, res := o.success(); res.Content.json() != nil {
		out = write(out, "\nio.Copy(os.Stdout, res.Body)")
	}
	return out
}

// assignments lists the parameters of the path with examples, each in a format such as
// "%s: %s".
func (s *spec) assignments(path string, o *operation, format string) string {
	var all []string
	for _, p := range o.pathParameters() {
		all = append(all, fmt.Sprintf(format, p.Name, quote(s.pathValue(path, p))))
	}
	return strings.Join(all, ", ")
}

var identifier = regexp.MustCompile(`^"([A-Za-z_]\w*)"$`)

// unquoteNames removes the quotes of member names that JavaScript allows without them.
func unquoteNames(tokens []token) []token {
	for i, t := range tokens {
		if t.Class == className {
			tokens[i].Text = identifier.ReplaceAllString(t.Text, "$1")
		}
	}
	return tokens
}

// pythonWords replaces true, false and null of JSON by the words of Python.
func pythonWords(tokens []token) []token {
	words := map[string]string{"true": "True", "false": "False", "null": "None"}
	for i, t := range tokens {
		if word, ok := words[t.Text]; ok && t.Class == classWord {
			tokens[i].Text = word
		}
	}
	return tokens
}
