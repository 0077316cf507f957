package scim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/web/front"
)

// record adds the refusal to the protocol of the connection, if the secret says which one it is, and returns err. Faults
// of this server are in its log: a protocol of refusals would send people looking for them at the provider.
func (h *handler) record(ctx context.Context, c *front.Call, err error) error {
	entry := doorward.Attempt{ConnectionID: c.Caller.ConnectionID, Outcome: doorward.AttemptRefused}
	var resting *directory.RefusedSecret
	if errors.As(err, &resting) {
		entry.ConnectionID = resting.ConnectionID
	}
	refused := refusalOf(c, err)
	if entry.ConnectionID == "" || refused.status >= http.StatusInternalServerError {
		return err
	}
	var f failed
	errors.As(err, &f)
	entry.Check, entry.Advice = refused.check, refused.advice
	entry.Seen = asked(c, f.sent) + " → " + strconv.Itoa(refused.status) + " " + refused.detail
	entry.Subject, entry.UserID = about(c, f.sent)
	h.app.Directories.Record(ctx, c.Caller, entry)
	return err
}

// recordBeside adds to the protocol what was refused of a request that has switched somebody off.
func (h *handler) recordBeside(ctx context.Context, r request, u directory.User) {
	refused := refusalOf(r.Call, u.Refused)
	h.app.Directories.Record(ctx, r.Caller, doorward.Attempt{
		Outcome: doorward.AttemptDone, Check: refused.check, Advice: refused.advice, Seen: asked(r.Call, *r.sent) + " → 200 active: false, without the rest: " + refused.detail,
		Subject: u.UserName, UserID: u.ID,
	})
}

// refusal is what was answered, and what to do about it.
type refusal struct {
	status                int
	detail, check, advice string
}

// advices say what to do about a scimType.
var advices = map[string]string{
	scim.Uniqueness: directory.AdviceUnique, scim.InvalidFilter: directory.AdviceFilter, scim.InvalidSyntax: directory.AdviceSyntax, scim.InvalidPath: directory.AdviceTarget,
	scim.NoTarget: directory.AdviceTarget, scim.InvalidValue: directory.AdviceValue, scim.Mutability: directory.AdviceMutable,
}

func refusalOf(c *front.Call, err error) refusal {
	var e *scim.Error
	if errors.As(err, &e) {
		return ofScim(e)
	}
	var rests *directory.RefusedSecret
	if errors.As(err, &rests) {
		return ofSecret(rests)
	}
	known := front.AsError(err)
	p := front.Problem{Status: front.Status(known.Code), Title: known.Code.Problem().Title, Detail: known.Detail, Code: known.Code, Errors: known.Fields}
	r := ofScim(errorOf(p))
	switch {
	case p.Code == doorward.CodeForbidden && c.Caller.IsDraft:
		r.check, r.advice = directory.CheckDraft, directory.AdviceDraft
	case p.Code == doorward.CodeTenantFrozen, p.Code == doorward.CodeTenantClosing:
		r.check, r.advice = directory.CheckTenant, directory.AdviceTenant
	case p.Code == doorward.CodeNotFound:
		r.check, r.advice = directory.CheckUnknown, directory.AdviceUnknown
	case p.Code == doorward.CodeLastOwner, p.Code == doorward.CodeNoWayBack:
		r.check, r.advice = directory.CheckLastOwner, directory.AdviceOwner
	case p.Code == doorward.CodeQuotaExceeded:
		r.check, r.advice = directory.CheckRefused, directory.AdviceQuota
	}
	return r
}

func ofScim(e *scim.Error) refusal {
	r := refusal{e.Status, strings.TrimSpace(e.Type + " " + e.Detail), cmp.Or(e.Type, directory.CheckRefused), cmp.Or(e.Advice, advices[e.Type])}
	switch e.Status {
	case http.StatusRequestEntityTooLarge:
		r.advice = directory.AdviceSize
	case http.StatusUnsupportedMediaType:
		r.advice = directory.AdviceSyntax
	}
	return r
}

func ofSecret(s *directory.RefusedSecret) refusal {
	r := refusal{http.StatusUnauthorized, "the secret " + s.Hint, directory.CheckSecret, directory.AdviceDisabled}
	if s.HasEnded {
		r.advice = directory.AdviceSecret
	}
	return r
}

// namesShown is how many attributes or operations an entry names.
const namesShown = 8

// asked returns method and path, and the names of attributes that were sent: no values.
func asked(c *front.Call, sent []byte) string {
	_, path, _ := strings.Cut(c.R.Pattern, Base)
	text := c.R.Method + " " + cmp.Or(strings.TrimSuffix(path, "{$}"), "/")
	var names []string
	if c.R.Method == http.MethodPatch {
		names = operationsOf(sent)
	} else {
		names = namesIn(sent)
	}
	if len(names) > namesShown {
		names = append(names[:namesShown], "…")
	}
	if len(names) == 0 {
		return text
	}
	return text + " (" + strings.Join(names, ", ") + ")"
}

// namesIn returns the names of an object's members, in order.
func namesIn(text []byte) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(membersOf(text))) {
		names = append(names, nameOf(name))
	}
	return names
}

// membersOf returns the members of an object; none for anything else.
func membersOf(text []byte) (all map[string]json.RawMessage) {
	_ = json.Unmarshal(text, &all)
	return all
}

// unreadable stands for what isn't an attribute's name, nor an operation: it may be a value that was sent in the wrong place.
const unreadable = "…"

// isName reports whether the text has the form of an attribute's name: parts with dots between them, perhaps behind a URN.
func isName(text string) bool {
	for _, r := range text {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".:$_-", r)) {
			return false
		}
	}
	return true
}

// nameOf returns the name, if it is one.
func nameOf(text string) string {
	if !isName(text) {
		return unreadable
	}
	return text
}

// pathOf returns the path of an operation without its filter, which has values.
func pathOf(path string) string {
	before, rest, hasFilter := strings.Cut(path, "[")
	if !hasFilter {
		return nameOf(path)
	}
	end := strings.LastIndexByte(rest, ']')
	if end < 0 {
		return nameOf(before) + unreadable
	}
	return nameOf(before) + nameOf(rest[end+1:])
}

// opOf returns the operation in lower case, if it is one.
func opOf(op string) string {
	if op = strings.ToLower(op); slices.Contains([]string{"add", "remove", "replace"}, op) {
		return op
	}
	return unreadable
}

// operationsOf returns what a PATCH does to which attributes.
func operationsOf(text []byte) (names []string) {
	var operations []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	for name, value := range membersOf(text) {
		if strings.EqualFold(name, "operations") {
			_ = json.Unmarshal(value, &operations)
		}
	}
	for _, o := range operations {
		path := pathOf(o.Path)
		if o.Path == "" {
			path = strings.Join(namesIn(o.Value), " ")
		}
		names = append(names, strings.TrimSpace(opOf(o.Op)+" "+path))
	}
	return names
}

// about returns whom the request is about: the address that was sent as userName, or else the id in the path, and that id, if
// it is of a User; or the externalId of a group. A userName that is no address, and the externalId of a person, are in no
// entry: nothing says of whom they are, so the person's erasure would leave them.
func about(c *front.Call, sent []byte) (subject, userID string) {
	id := c.R.PathValue("id")
	if front.IsID(id, doorward.PrefixUser) {
		userID = id
	}
	texts := map[string]string{}
	for name, value := range membersOf(sent) {
		var text string
		if json.Unmarshal(value, &text) == nil {
			texts[strings.ToLower(name)] = text
		}
	}
	if strings.Contains(c.R.Pattern, Base+"/Groups") {
		return cmp.Or(texts["externalid"], id), ""
	}
	if _, err := mailaddr.Parse(texts["username"]); err != nil {
		return id, userID
	}
	return texts["username"], userID
}
