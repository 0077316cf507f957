package pages

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
)

// reference is what the pages of the API show: a first page, one for each group, one for
// the objects.
type reference struct {
	API     string   // path of the first page
	About   []string // paragraphs
	Server  string
	Steps   []endpoint // those of firstSteps
	Groups  []group
	Objects []object
	Roles   []doorward.Role // the highest first
	Actions []permissionRow
}

type group struct {
	ID, Name, Description string
	Link                  string // of its page
	Endpoints             []endpoint
}

// groupPage is what the page of a group shows. The page of the objects has a group with only
// a name, the first page an empty one.
type groupPage struct {
	*reference
	group
}

type endpoint struct {
	Base                 string // path of the base URL, for links
	Link                 string // on the page of its group
	ID, Method, Path     string
	Summary, Description string
	Who                  string
	Action               doorward.Action // empty when no role is needed
	Parameters           []member
	Members              []member
	Media                []string // media types of a body that isn't JSON
	Samples              []sample
	Answer               answer
	Errors               []failure
}

// answer is the answer to a successful call.
type answer struct {
	Status  int
	Cookie  string // description of Set-Cookie
	Members []member
	Body    []token
}

// permissionRow is a row of the table of roles and permissions.
type permissionRow struct {
	Action    doorward.Action
	GrantedBy []bool // for each role: whether it grants the action
}

func permissionRows(m *doorward.Model, roles []doorward.Role) (all []permissionRow) {
	for _, verb := range m.Verbs() {
		if !verb.IsPermission() {
			continue
		}
		row := permissionRow{Action: verb.Action}
		for _, r := range roles {
			row.GrantedBy = append(row.GrantedBy, slices.Contains(verb.Roles(), r))
		}
		all = append(all, row)
	}
	return all
}

// member is a member of a JSON object.
type member struct {
	Name, Type  string
	Object      string // link to the object that it holds or lists
	Note        string // "required" in requests, "optional" in answers, or empty
	Description string
	Limits      []string
	Example     string
}

// object is a schema that answers share.
type object struct {
	ID, Name string
	Link     string
	Members  []member
	Body     []token
}

// failure lists the codes that an endpoint answers with one status.
type failure struct {
	Status int
	Codes  []doorward.Problem
}

// firstSteps are the operations from an invitation to the logout, in order.
var firstSteps = []string{"invite", "completeRegistration", "login", "session", "logout"}

func newReference(s *spec, base string, m *doorward.Model) *reference {
	s.api = base + "/docs/api"
	r := &reference{API: s.api, Server: s.server(), About: strings.Split(s.Info.Description, "\n\n")}
	r.Roles = slices.Clone(doorward.Roles)
	slices.Reverse(r.Roles)
	r.Actions = permissionRows(m, r.Roles)
	for _, tag := range s.Tags {
		g := group{ID: slug(tag.Name), Name: tag.Name, Description: tag.Description, Link: s.api + "/" + slug(tag.Name)}
		g.Endpoints = s.endpoints(tag.Name, base)
		for i := range g.Endpoints {
			g.Endpoints[i].Link = g.Link + "#" + g.Endpoints[i].ID
		}
		r.Groups = append(r.Groups, g)
	}
	for _, id := range firstSteps {
		if e, ok := r.endpoint(id); ok {
			r.Steps = append(r.Steps, e)
		}
	}
	r.Objects = s.objects()
	return r
}

func (r *reference) endpoint(id string) (endpoint, bool) {
	for e := range r.endpoints() {
		if e.ID == id {
			return e, true
		}
	}
	return endpoint{}, false
}

// endpoints iterates over the endpoints of all groups.
func (r *reference) endpoints() iter.Seq[endpoint] {
	return func(yield func(endpoint) bool) {
		for _, g := range r.Groups {
			for _, e := range g.Endpoints {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// endpoints returns the endpoints of a tag, by path and method.
func (s *spec) endpoints(tag, base string) []endpoint {
	var all []endpoint
	for path, methods := range sorted(s.Paths) {
		for method, op := range sorted(methods) {
			if slices.Contains(op.Tags, tag) {
				e := s.endpoint(strings.ToUpper(method), path, op)
				e.Base = base
				all = append(all, e)
			}
		}
	}
	return all
}

// formType is the media type of a form, whose fields are shown as members are.
const formType = "application/x-www-form-urlencoded"

func (s *spec) endpoint(method, path string, op *operation) endpoint {
	e := endpoint{
		ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Description: op.Description,
		Parameters: s.parameters(op), Samples: s.samples(method, path, op), Answer: s.answer(op), Errors: op.failures(),
	}
	e.Who, e.Action = describeCallers(op.Action)
	if op.RequestBody != nil {
		e.Media = op.RequestBody.Content.otherTypes()
	}
	if op.RequestBody != nil {
		if form := op.RequestBody.Content[formType].Schema; form != nil {
			e.Members = s.members(form, requestNotes)
		}
	}
	if op.RequestBody != nil && len(e.Media) == 0 {
		e.Members = s.members(op.RequestBody.Content.json(), requestNotes)
	}
	return e
}

// describeCallers describes the callers that x-action allows, and returns the action that
// their role must grant, if any.
func describeCallers(action string) (string, doorward.Action) {
	switch action {
	case "public":
		return "Anyone", ""
	case "optional":
		return "Anyone, with or without a session", ""
	case "session":
		return "Everyone who is signed in", ""
	case "key":
		return "An API key, whatever it may do", ""
	case "session or key":
		return "Everyone who is signed in, and every server with an API key", ""
	case "operator":
		return "The operator, with an operator key", ""
	}
	verb, _ := doorward.Lookup(doorward.Action(action))
	var roles []string
	for _, r := range verb.Roles() {
		roles = append(roles, string(r))
	}
	return strings.Join(roles, ", "), verb.Action
}

func (s *spec) answer(op *operation) answer {
	status, res := op.success()
	a := answer{Status: parseStatus(status), Cookie: res.Headers["Set-Cookie"].Description}
	if sc := res.Content.json(); sc != nil {
		a.Members, a.Body = s.members(sc, answerNotes), encode(s.value("", sc), "")
	}
	return a
}

// noteByRequired is the note for members that are required (true) or optional (false).
type noteByRequired map[bool]string

var (
	requestNotes = noteByRequired{true: "required"}
	answerNotes  = noteByRequired{false: "optional"}
)

// members describes the members of an object.
func (s *spec) members(sc *schema, note noteByRequired) []member {
	sc, _ = s.resolve(sc)
	var all []member
	for _, name := range sc.names() {
		m := sc.Properties[name]
		all = append(all, s.member(name, m, note[slices.Contains(sc.Required, name)], m.Description))
	}
	return all
}

func (s *spec) member(name string, sc *schema, note, description string) member {
	typ, link := s.typeOf(sc)
	return member{
		Name: name, Type: typ, Object: link, Note: note,
		Description: description, Limits: sc.limits(), Example: sc.example(),
	}
}

// parameters describes the parameters of the path and of the query.
func (s *spec) parameters(op *operation) []member {
	var all []member
	for _, p := range op.Parameters {
		m := s.member(p.Name, p.Schema, requestNotes[p.Required], p.Description)
		m.Type += " in the " + p.In
		all = append(all, m)
	}
	return all
}

// typeOf returns the name of the type, and the link to the object that it refers to.
func (s *spec) typeOf(sc *schema) (name, link string) {
	if sc.Ref != "" {
		_, name = s.resolve(sc)
		return name, s.objectLink(name)
	}
	if sc.Items != nil {
		name, link = s.typeOf(sc.Items)
		return "list of " + name, link
	}
	name = strings.Join(sc.Type, " or ")
	if named := formats[sc.Format]; named != "" {
		name += ", " + named
	}
	return name, ""
}

// formats has the formats of the document in words.
var formats = map[string]string{
	"email": "e-mail address", "date-time": "RFC 3339 time in UTC", "uri": "address", "password": "secret",
}

func (sc *schema) limits() []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(sc.Enum) > 0 {
		var values []string
		for _, v := range sc.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		add("One of %s", strings.Join(values, ", "))
	}
	if sc.Minimum != nil && sc.Maximum != nil {
		add("%g to %g", *sc.Minimum, *sc.Maximum)
	}
	if sc.MinLength != nil && sc.MaxLength != nil {
		if *sc.MinLength == *sc.MaxLength {
			add("%d characters", *sc.MinLength)
		} else {
			add("%d to %d characters", *sc.MinLength, *sc.MaxLength)
		}
	}
	if sc.MaxItems != nil {
		add("At most %d", *sc.MaxItems)
	}
	return all
}

func (sc *schema) example() string {
	if len(sc.Examples) == 0 {
		return ""
	}
	return quote(sc.Examples[0])
}

// objects returns the schemas that endpoints share, by name: those that members refer to,
// and the problem. The body of a single endpoint is shown there instead.
func (s *spec) objects() []object {
	shared := map[string]*schema{}
	for _, methods := range s.Paths {
		for _, op := range methods {
			_, res := op.success()
			s.collectMembers(shared, res.Content.json())
			if op.RequestBody != nil {
				s.collectMembers(shared, op.RequestBody.Content.json())
			}
			for _, res := range op.Responses {
				s.collect(shared, res.Content["application/problem+json"].Schema)
			}
		}
	}
	var all []object
	for name, sc := range sorted(shared) {
		body := s.object(sc)
		if name == "Problem" {
			body = problem(doorward.CodeValidationFailed, s.server(), "/api/v2/auth/reset-password")
		}
		all = append(all, object{ID: objectID(name), Name: name, Link: s.objectLink(name), Members: s.members(sc, answerNotes), Body: encode(body, "")})
	}
	return all
}

// collect adds sc to seen if it has a name, and the schemas that it refers to.
func (s *spec) collect(seen map[string]*schema, sc *schema) {
	if sc == nil {
		return
	}
	target, name := s.resolve(sc)
	if seen[name] != nil {
		return
	}
	if name != "" {
		seen[name] = target
	}
	s.collectMembers(seen, target)
}

// collectMembers adds the schemas that sc refers to, without sc itself.
func (s *spec) collectMembers(seen map[string]*schema, sc *schema) {
	if sc == nil {
		return
	}
	target, _ := s.resolve(sc)
	s.collect(seen, target.Items)
	for _, m := range target.Properties {
		s.collect(seen, m)
	}
}

func objectID(name string) string { return "object-" + slug(name) }

func (s *spec) objectLink(name string) string { return s.api + "/" + objects + "#" + objectID(name) }

// objects is the last part of the path of their page.
const objects = "objects"

// quotedCode matches an error code in backticks.
var quotedCode = regexp.MustCompile("`([a-z_]+)`")

// failures returns the codes that the description of each response names.
func (o *operation) failures() []failure {
	var all []failure
	for status, res := range sorted(o.Responses) {
		f := failure{Status: parseStatus(status)}
		for _, found := range quotedCode.FindAllStringSubmatch(res.Description, -1) {
			if c := doorward.Code(found[1]); c.Problem().Code == c {
				f.Codes = append(f.Codes, c.Problem())
			}
		}
		if len(f.Codes) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// span is a piece of a sentence; Code marks text that was between backticks.
type span struct {
	Code bool
	Text string
}

func spans(text string) []span {
	var all []span
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			all = append(all, span{Code: i%2 == 1, Text: part})
		}
	}
	return all
}

// statusText returns the status with its name, as in "404 Not Found".
func statusText(status int) string { return strconv.Itoa(status) + " " + http.StatusText(status) }

// parseStatus parses a status; "default" becomes 0.
func parseStatus(status string) int {
	n, _ := strconv.Atoi(status)
	return n
}

func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// sorted iterates over a map in the order of its keys.
func sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
