package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// Paths of pages.
const (
	explainPath = "/console/explain"
	policyPath  = "/console/policy"
)

// explainPage says why a person or a key may do something, or may not.
type explainPage struct {
	pageData
	Actions []policyAction
	// The question, as it was typed. Number is that of a version of the policies.
	Who, Action, IP, Time, Attributes, Number string
	// Wrong is the key of a message about the question; empty: it can be answered, or
	// nothing was asked.
	Wrong  string
	Answer *explained
	// Suggested are the people whom the question can be about.
	Suggested suggestions
}

// explained is an explanation as the page shows it.
type explained struct {
	policy.Explanation
	// Name is the name of the person or key in the question, or the id if the caller may not read
	// it. Page is the path of its page, or empty.
	Name, Page string
	// TextPath is the path of the page with the text of the policies that decide.
	TextPath string
}

// Granted reports whether the role grants the action.
func (e explained) Granted() bool { return slices.Contains(e.GrantedBy, e.Role) }

// Resource is the type of the chosen action's resource; empty for the tenant.
func (p explainPage) Resource() string {
	i := slices.IndexFunc(p.Actions, func(a policyAction) bool { return string(a.Action) == p.Action })
	if i < 0 {
		return ""
	}
	return p.Actions[i].Resource
}

func (h *console) explain(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	q := c.R.URL.Query()
	body := explainPage{
		pageData: s, Actions: policyActions(c.Caller.Rules), Who: strings.TrimSpace(q.Get("who")), Action: q.Get("action"),
		IP: strings.TrimSpace(q.Get("ip")), Time: q.Get("time"), Attributes: q.Get("attributes"), Number: strings.TrimSpace(q.Get("version")),
	}
	if body.Suggested, err = h.suggestMembers(ctx, c, body.Who); err == nil && body.Who != "" && body.Action != "" {
		err = h.answer(ctx, c, &body)
	}
	return ui.View{Page: "explain", Body: body, Wide: true}, err
}

// answer fills in the answer, or what is wrong with the question.
func (h *console) answer(ctx context.Context, c *ui.Call, p *explainPage) (err error) {
	question := policy.Question{Action: doorward.Action(p.Action), Context: policy.Context{IP: p.IP}}
	if p.Wrong = p.readQuestion(&question); p.Wrong != "" {
		return nil
	}
	var on doorward.Object
	if on, err = h.findSubject(ctx, c, p.Who); err != nil || on.ID == "" {
		p.Wrong = "explain.wrong.who"
		return err
	}
	question.UserID, question.KeyID = on.ID, ""
	if on.Type == "key" {
		question.UserID, question.KeyID = "", on.ID
	}
	a := explained{}
	who, err := h.identify(ctx, c, on)
	if err == nil {
		a.Explanation, err = h.app.Policies.Explain(ctx, c.Caller, question)
	}
	a.Name, a.Page = cmp.Or(who.Name, on.ID), who.Page
	switch {
	case doorward.HasCode(err, doorward.CodeNotFound) && question.Version == 0:
		p.Wrong = "explain.wrong.who"
		return nil
	case doorward.HasCode(err, doorward.CodeNotFound):
		p.Wrong = "explain.wrong.version"
		return nil
	case doorward.HasCode(err, doorward.CodeValidationFailed):
		p.Wrong = "explain.wrong.action"
		return nil
	case err != nil:
		return err
	}
	a.TextPath, err = h.policyTextPath(ctx, c, question.Version)
	p.Answer = &a
	return err
}

// readQuestion reads the fields, and returns the key of the message about one that can't be
// read; empty for none.
func (p *explainPage) readQuestion(q *policy.Question) (wrong string) {
	if _, err := netip.ParseAddr(p.IP); p.IP != "" && err != nil {
		return "keys.try.noaddress"
	}
	if p.Time != "" {
		if q.Context.Time = instant(p.Time, periodStart); !isInstant(q.Context.Time) {
			return "explain.wrong.time"
		}
	}
	if p.Number != "" {
		n, err := strconv.ParseInt(p.Number, 10, 64)
		if q.Version = n; err != nil || n < 1 {
			return "explain.wrong.version"
		}
	}
	if kind := p.Resource(); kind != "" && strings.TrimSpace(p.Attributes) != "" {
		q.Resource = &doorward.Resource{Type: kind, Attributes: map[string]any{}}
		d := json.NewDecoder(strings.NewReader(p.Attributes))
		d.UseNumber()
		if err := d.Decode(&q.Resource.Attributes); err != nil || d.More() {
			return "explain.wrong.attributes"
		}
	}
	return ""
}

func isInstant(text string) bool {
	_, err := doorward.ParseTime(text)
	return err == nil
}

// findSubject returns the member or key with an id, without looking it up, or the member with
// an address. The object is empty if no member has the address, or the caller may not read people.
func (h *console) findSubject(ctx context.Context, c *ui.Call, text string) (doorward.Object, error) {
	switch {
	case !front.IsText(text):
		return doorward.Object{}, nil
	case strings.HasPrefix(text, doorward.PrefixKey):
		return doorward.Object{Type: "key", ID: text}, nil
	case strings.HasPrefix(text, doorward.PrefixUser):
		return doorward.Object{Type: "user", ID: text}, nil
	case !c.Can(doorward.UserRead):
		return doorward.Object{}, nil
	}
	u, err := h.app.Users.GetByEmail(ctx, c.Caller, text)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return doorward.Object{}, nil
	}
	return doorward.Object{Type: "user", ID: u.ID}, err
}

// policyTextPath is the path of the page with the text of a version of the policies; 0 means
// the version that is enforced now.
func (h *console) policyTextPath(ctx context.Context, c *ui.Call, version int64) (string, error) {
	if version == 0 {
		current, err := h.app.Policies.Current(ctx, c.Caller)
		if err != nil || current.Mode != policy.Observes {
			return policyPath, err
		}
		version = current.Enforced
	}
	return fmt.Sprint(policyPath, "/versions/", version), nil
}

// explainLink is the path of the explanation of a refused event; empty if it can't be
// explained, as for sign-ins and the operator's actions, or the caller may not read policies.
func explainLink(c *ui.Call, e doorward.Event) string {
	verb, known := c.Caller.Rules.Model().Lookup(e.Action)
	isCaller := e.ActorType == doorward.ByUser || e.ActorType == doorward.ByKey
	if e.Outcome != doorward.Refused || !isCaller || !known || verb.By != doorward.ByRole || !c.Can(doorward.PolicyRead) {
		return ""
	}
	q := url.Values{"who": {e.ActorID}, "action": {string(e.Action)}, "time": {e.At.UTC().Format(fieldTime)}}
	if e.IP != "" {
		q.Set("ip", e.IP)
	}
	return explainPath + "?" + q.Encode()
}

// LinePath is the path of the line at which a policy begins.
func (e explained) LinePath(line int) string {
	return fmt.Sprintf("%s#L%d", e.TextPath, cmp.Or(line, 1))
}
