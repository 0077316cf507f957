package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// webhooksPath is the list of webhooks.
const webhooksPath = "/console/webhooks"

// deliveryFilters are the filters of a webhook's deliveries: those of the API.
var deliveryFilters = []string{"state"}

func (h *console) webhookRoutes() []front.Route {
	hooks := front.Allowed(doorward.WebhookManage)
	return []front.Route{
		get(webhooksPath, hooks, h.webhooks),
		get(webhooksPath+"/new", hooks, h.newWebhook),
		post(webhooksPath+"/new", webhooksPath+"/new", hooks, h.createWebhook, h.newWebhook),
		get(webhooksPath+"/{id}", hooks, h.webhookPage, deliveryFilters...),
		post(webhooksPath+"/{id}/edit", webhooksPath, hooks, h.editWebhook, h.webhookPage),
		post(webhooksPath+"/{id}/test", webhooksPath, hooks, h.testWebhook, h.webhookPage),
		post(webhooksPath+"/{id}/replay", webhooksPath, hooks, h.replayWebhook, h.webhookPage),
		post(webhooksPath+"/{id}/rotate", webhooksPath, hooks, h.rotateWebhook, h.webhookPage),
		get(webhooksPath+"/{id}/deliveries/{delivery}", hooks, h.deliveryPage),
		post(webhooksPath+"/{id}/deliveries/{delivery}/retry", webhooksPath, hooks, h.retryDelivery, h.deliveryPage),
		get(webhooksPath+"/{id}/{act}", hooks, h.askWebhook),
		post(webhooksPath+"/{id}/{act}", webhooksPath, hooks, h.actOnWebhook, h.askWebhook),
	}
}

// endpoint is a webhook, for templates.
type endpoint struct {
	doorward.Webhook
	Day strip // its attempts of the last 24 hours; without bars where that isn't shown
}

// leastFailures is how many attempts of a day fail, at least, before a webhook counts as unreliable.
const leastFailures = 3

// State is active, unreliable, failing or disabled. A webhook is unreliable if a third of its attempts of the last 24 hours
// have failed: its events arrive, but late, or not all of them.
func (e endpoint) State() string {
	switch {
	case !e.Enabled:
		return "disabled"
	case e.FailingSince != nil:
		return "failing"
	case e.FailedToday() >= leastFailures && e.FailedToday()*3 >= e.TriedToday():
		return "unreliable"
	}
	return "active"
}

// TriedToday counts the attempts of the last 24 hours.
func (e endpoint) TriedToday() (n int) {
	for _, s := range e.Day.Series {
		n += s.Total
	}
	return n
}

// FailedToday counts those of them that failed.
func (e endpoint) FailedToday() (n int) {
	for _, s := range e.Day.Series {
		if s.Outcome != doorward.UsageDelivered {
			n += s.Total
		}
	}
	return n
}

// deliverySeries are the outcomes of attempts.
func deliverySeries() (all []series) {
	for _, o := range []doorward.UsageOutcome{doorward.UsageDelivered, doorward.UsageRefused, doorward.UsageSilent} {
		all = append(all, series{Outcome: o, Key: "hooks.kind." + string(o), Tone: string(o)})
	}
	return all
}

// endpoints returns the webhooks of the tenant, the newest first, with their last 24 hours.
func (h *console) endpoints(ctx context.Context, c *ui.Call) (all []endpoint, err error) {
	found, err := h.app.Webhooks.List(ctx, c.Caller, doorward.Window{Limit: doorward.WebhooksMax})
	if err != nil {
		return nil, err
	}
	counts, err := h.app.Webhooks.UsageOfAll(ctx, c.Caller, c.Now().Add(-oneDay))
	for _, w := range found.Items {
		own := slices.DeleteFunc(slices.Clone(counts), func(u doorward.UsageCount) bool { return u.SubjectID != w.ID })
		all = append(all, endpoint{w, stripOf(deliverySeries(), own, c.Now())})
	}
	return all, err
}

// Tags are shown below the URL.
func (e endpoint) Tags() ui.Tags {
	tags := ui.Tags{State: "status." + e.State(), About: e.About}
	if e.WithEmail() {
		tags.Kinds = []string{"hooks.email.tag"}
	}
	return tags
}

// OtherEvents counts the kinds of events besides the first, which a list shows.
func (e endpoint) OtherEvents() int { return max(0, len(e.Events)-1) }

// Host is the host of the URL, by which people know an endpoint.
func (e endpoint) Host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return e.URL
	}
	return u.Host
}

// WillBeDisabledAt is when the webhook is disabled unless a delivery succeeds before.
func (e endpoint) WillBeDisabledAt() time.Time { return e.FailingSince.Add(webhook.DisabledAfter) }

// FailingFor is how long no attempt has succeeded, in whole hours, or in minutes below an hour.
func (e endpoint) FailingFor(now time.Time) time.Duration {
	d := now.Sub(*e.FailingSince)
	if d < time.Hour {
		return max(d.Truncate(time.Minute), time.Minute)
	}
	return d.Truncate(time.Hour)
}

// WithEmail reports whether messages include e-mail addresses.
func (e endpoint) WithEmail() bool { return e.Includes(doorward.WebhookIncludesEmail) }

// endpoints is the content of the list, which has one page: there are few.
type endpoints struct {
	pageData
	Items []endpoint
	Full  bool // the tenant has as many as it can have
}

func (h *console) webhooks(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	all, err := h.endpoints(ctx, c)
	body := endpoints{pageData: s, Full: len(all) >= doorward.WebhooksMax, Items: all}
	return autoRefresh(c, ui.View{Page: "webhooks", Body: body, Wide: true}), err
}

// eventChoice is an event, or a group of events, to choose.
type eventChoice struct {
	Pattern string
	Action  doorward.Action // of one event; empty for a group
	Chosen  bool
}

// eventGroup has the events that begin with one word.
type eventGroup struct {
	Name    string // first word of the actions; its message is "hooks.group." + Name
	All     eventChoice
	Choices []eventChoice
	Chosen  int // how many of the events
}

// eventChoices are what a webhook can get.
type eventChoices struct {
	All    eventChoice
	Groups []eventGroup
	Others []eventChoice // patterns of the webhook that the pages don't offer
}

// eventChoicesOf returns all choices; those in chosen are marked.
func eventChoicesOf(chosen []string) eventChoices {
	pick := func(pattern string, a doorward.Action) eventChoice {
		return eventChoice{pattern, a, slices.Contains(chosen, pattern)}
	}
	p := eventChoices{All: pick("*", "")}
	shown := []string{"*"}
	for _, a := range doorward.EventActions(nil) {
		if !isOffered(a) {
			continue
		}
		word, _, _ := strings.Cut(string(a), ".")
		i := slices.IndexFunc(p.Groups, func(g eventGroup) bool { return g.Name == word })
		if i < 0 {
			i, p.Groups = len(p.Groups), append(p.Groups, eventGroup{Name: word, All: pick(word+".*", "")})
			shown = append(shown, word+".*")
		}
		one := pick(string(a), a)
		if p.Groups[i].Choices = append(p.Groups[i].Choices, one); one.Chosen {
			p.Groups[i].Chosen++
		}
		shown = append(shown, one.Pattern)
	}
	for _, pattern := range chosen {
		if !slices.Contains(shown, pattern) {
			p.Others = append(p.Others, pick(pattern, ""))
		}
	}
	return p
}

// isOffered reports whether the pages offer the events of the action: a tenant's trail can
// have them, and there are messages for them. Tests have a button of their own.
func isOffered(a doorward.Action) bool {
	word, _, _ := strings.Cut(string(a), ".")
	v, ok := doorward.Lookup(a)
	return ok && hasMessage(a) && messageKeys()["hooks.group."+word] && isInTenantTrail(*v) && a != doorward.WebhookTest
}

// newWebhook is the form for a webhook.
type newWebhook struct {
	pageData
	Events eventChoices
	Email  bool
}

func (h *console) newWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	body := newWebhook{s, eventChoicesOf(c.Values("events")), c.Value("email") != ""}
	return ui.View{Page: "webhooknew", Body: body, Wide: true}, err
}

// draftOf returns the fields of the form of a webhook.
func draftOf(c *ui.Call) webhook.Draft {
	to, about, events, include := strings.TrimSpace(c.Value("url")), c.Value("about"), c.Values("events"), []string{}
	if c.Value("email") != "" {
		include = append(include, doorward.WebhookIncludesEmail)
	}
	return webhook.Draft{URL: &to, About: &about, Events: &events, Include: &include}
}

// webhookSecret is the only page that shows a secret of a webhook.
type webhookSecret struct {
	pageData
	Hook    endpoint
	Secret  string
	Rotated bool
}

// createWebhook shows the secret in its answer, which can't be loaded again.
func (h *console) createWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	made, err := h.app.Webhooks.Create(ctx, c.Caller, draftOf(c))
	if err != nil {
		return ui.View{}, faultsToFormFields(err)
	}
	return h.showWebhookSecret(ctx, c, made, firstSecret)
}

func (h *console) showWebhookSecret(ctx context.Context, c *ui.Call, made webhook.Issued, rotated bool) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	c.DropForm() // a switch of the language would send the form again and lose the secret
	return ui.View{Page: "webhooksecret", Scripts: []string{"secret.js"}, Body: webhookSecret{s, endpoint{Webhook: made.Webhook}, made.Secret.Reveal(), rotated}}, err
}

// webhookPage is the page of one webhook.
type webhookPage struct {
	pageData
	edited
	pager
	Tabs       ui.Tabs
	Hook       endpoint
	Bars       attemptChart
	Days       chart // of attempts
	States     []doorward.DeliveryState
	Deliveries []delivery
	Tested     *attempt // the test that was just sent; nil for none
	Events     eventChoices
	Email      bool
	Replays    []doorward.Action
	Graces     []int
	Activity   activity
}

// Version returns the version of the webhook, for forms.
func (p webhookPage) Version() string { return p.Hook.Version() }

// Rotation identifies the present secret, for the form that replaces it.
func (p webhookPage) Rotation() string { return rotation(p.Hook.Webhook) }

// rotation returns a text that changes when the secret is replaced: each rotation sets the end of
// the previous secret.
func rotation(w doorward.Webhook) string {
	if w.PreviousEndsAt == nil {
		return "none"
	}
	return strconv.FormatInt(w.PreviousEndsAt.UnixMicro(), 10)
}

// usageDays is how many days the charts of usage show.
const usageDays = 30

// usageSince is when the first day of these charts begins, or earlier.
func usageSince(c *ui.Call) time.Time { return c.Now().Add(-usageDays * oneDay) }

// deliveriesPerPage are fewer than the rows of a list: the page has the chart above them.
const deliveriesPerPage = 8

// chartedDeliveries is how many of the newest deliveries have their attempts in the chart, and
// up to how many waiting ones are counted.
const chartedDeliveries = 200

func (h *console) webhookPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, deliveryFilters, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	hook, err := h.webhookAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	form, note := keepTyped(c, hook.Version(), "notice.webhook.precondition_failed", webhookFields(c, hook))
	body := webhookPage{pageData: s, edited: form, pager: pages, Hook: hook, States: doorward.DeliveryStates, Graces: graces, Events: eventChoicesOf(hook.Events), Email: hook.WithEmail()}
	if c.Value("url") != "" { // the form is shown again
		body.Events, body.Email = eventChoicesOf(c.Values("events")), c.Value("email") != ""
	}
	for _, a := range doorward.EventActions(hook.Events) {
		if isOffered(a) {
			body.Replays = append(body.Replays, a)
		}
	}
	if body.Tabs = webhookTabs(c, hook); !body.Tabs.Is("deliveries") {
		if body.Tabs.Is("activity") {
			body.Activity, err = h.activity(ctx, c, "hooks", hook.ID)
		}
		v := ui.View{Page: "webhook", Title: "hooks.title", Note: note, Body: body, Wide: true}
		if body.Tabs.Is("signing") {
			v.Scripts = []string{"secret.js"}
		}
		return v, err
	}
	newest, err := h.app.Webhooks.Deliveries(ctx, c.Caller, hook.ID, "", doorward.Window{Limit: chartedDeliveries})
	if err != nil {
		return ui.View{}, err
	}
	body.Bars = attemptChartOf(newest.Items)
	counts, err := h.app.Webhooks.Usage(ctx, c.Caller, hook.ID, usageSince(c))
	if err != nil {
		return ui.View{}, err
	}
	body.Days = chartOf("days-title", deliverySeries(), counts, c.Now(), oneDay, usageDays)
	window.Limit, body.size = deliveriesPerPage, deliveriesPerPage
	found, err := h.app.Webhooks.Deliveries(ctx, c.Caller, hook.ID, pages.Filter.Get("state"), window)
	if err == nil {
		body.Deliveries, body.Total = deliveriesOf(found.Items), found.Total
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	return badFilter(autoRefresh(c, ui.View{Page: "webhook", Title: "hooks.title", Note: note, Body: body, Wide: true}), err)
}

// webhookTabs are the tabs of the page of a webhook. One that is disabled gets no past events.
func webhookTabs(c *ui.Call, hook endpoint) ui.Tabs {
	names := []string{"deliveries"}
	if hook.Enabled {
		names = append(names, "replay")
	}
	names = append(withActivity(c, append(names, "signing")), "settings")
	return c.Tabs(webhooksPath+"/"+hook.ID, nil, names...)
}

// webhookFields are the fields of the form that edits the webhook.
func webhookFields(c *ui.Call, hook endpoint) []editedField {
	var email []string
	if hook.WithEmail() {
		email = []string{"1"}
	}
	return []editedField{
		textField(c, "url", "field.url", hook.URL), textField(c, "about", "field.about", hook.About),
		choiceField(c, "events", "hooks.events", "", hook.Events), choiceField(c, "email", "hooks.email", "check", email),
	}
}

// webhookAt returns the webhook that the path names.
func (h *console) webhookAt(ctx context.Context, c *ui.Call) (endpoint, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return endpoint{}, err
	}
	w, err := h.app.Webhooks.Get(ctx, c.Caller, id)
	if err != nil {
		return endpoint{}, err
	}
	counts, err := h.app.Webhooks.Usage(ctx, c.Caller, id, c.Now().Add(-oneDay))
	return endpoint{w, stripOf(deliverySeries(), counts, c.Now())}, err
}

func (h *console) editWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return ui.View{}, err
	}
	_, err = h.app.Webhooks.Edit(ctx, c.Caller, id, draftOf(c), version(c))
	return redirectDone(c, webhooksPath+"/"+id, "webhook", nil), faultsToFormFields(err)
}

// testWebhook shows the result of the test in its answer.
func (h *console) testWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return ui.View{}, err
	}
	made, err := h.app.Webhooks.Test(ctx, c.Caller, id)
	if err != nil {
		return ui.View{}, err
	}
	c.DropForm() // a switch of the language would send the form, and so the test, again
	v, err := h.webhookPage(ctx, c)
	if body, ok := v.Body.(webhookPage); ok {
		tested := attemptOf(made)
		body.Tested = &tested
		v.Body = body
	}
	return v, err
}

// rotateWebhook shows the new secret. Sent twice, as when the page is loaded again, it is
// refused: a second rotation would end the secret that is still in use.
func (h *console) rotateWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	hook, err := h.webhookAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	if err := doorward.CheckVersion(rotation(hook.Webhook), []string{c.Value("rotation")}); err != nil {
		return ui.View{}, err
	}
	grace, faults := optionalNumber(c, "graceHours", nil)
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	made, err := h.app.Webhooks.Rotate(ctx, c.Caller, hook.ID, grace)
	if err != nil {
		return ui.View{}, err
	}
	return h.showWebhookSecret(ctx, c, made, rotatedSecret)
}

func (h *console) replayWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return ui.View{}, err
	}
	var r webhook.Replay
	var faults []doorward.FieldError
	r.From, faults = typedInstant(c, "from", periodStart, faults)
	r.To, faults = typedInstant(c, "to", periodEnd, faults)
	if only := c.Value("only"); only != "" {
		r.Events = []string{only}
	}
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	n, err := h.app.Webhooks.Replay(ctx, c.Caller, id, r)
	v := redirectDone(c, webhooksPath+"/"+id, "replayed", nil)
	if n > 0 {
		q := c.TabQuery()
		q.Set("done", "replayed")
		q.Set("count", strconv.FormatInt(n, 10))
		v = c.To(webhooksPath + "/" + id + "?" + q.Encode())
	}
	return v, err
}

// typedInstant parses the field's time; atEnd takes the end of a day or minute. An empty field is
// nil. It appends a fault if the text is no time.
func typedInstant(c *ui.Call, name string, atEnd bool, faults []doorward.FieldError) (*time.Time, []doorward.FieldError) {
	text := strings.TrimSpace(c.Value(name))
	if text == "" {
		return nil, faults
	}
	at, err := doorward.ParseTime(instant(text, atEnd))
	if err != nil {
		return nil, append(faults, doorward.FieldError{Pointer: "/" + name, Code: "invalid", Message: "Write a time such as 2031-05-06T12:00."})
	}
	return &at, faults
}

// webhookActions are the actions that are confirmed first, by the last part of their path.
var webhookActions = map[string]struct {
	danger bool
	do     func(ctx context.Context, h *console, c *ui.Call, id string) error
}{
	"disable": {danger: true, do: setWebhookEnabled(false)},
	"enable":  {do: setWebhookEnabled(true)},
	"delete": {danger: true, do: func(ctx context.Context, h *console, c *ui.Call, id string) error {
		return h.app.Webhooks.Delete(ctx, c.Caller, id)
	}},
}

func setWebhookEnabled(enabled bool) func(context.Context, *console, *ui.Call, string) error {
	return func(ctx context.Context, h *console, c *ui.Call, id string) error {
		_, err := h.app.Webhooks.Edit(ctx, c.Caller, id, webhook.Draft{Enabled: &enabled}, nil) // whatever its version
		return err
	}
}

// webhookQuestion is the page that asks to confirm an action on a webhook.
type webhookQuestion struct {
	pageData
	Hook    endpoint
	Act     string
	Danger  bool
	Waiting int  // deliveries that are dropped
	HasMore bool // there are more deliveries than Waiting
}

func (h *console) askWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	name := c.R.PathValue("act")
	act, ok := webhookActions[name]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	hook, err := h.webhookAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	waiting, err := h.app.Webhooks.Deliveries(ctx, c.Caller, hook.ID, string(doorward.DeliveryPending), doorward.Window{Limit: chartedDeliveries})
	body := webhookQuestion{s, hook, name, act.danger, len(waiting.Items), waiting.Next != nil}
	return ui.View{Page: "webhookact", Title: "hooks." + name + ".title", Body: body}, err
}

func (h *console) actOnWebhook(ctx context.Context, c *ui.Call) (ui.View, error) {
	name := c.R.PathValue("act")
	act, ok := webhookActions[name]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return ui.View{}, err
	}
	to := webhooksPath + "/" + id
	if name == "delete" {
		to = webhooksPath
	}
	err = act.do(ctx, h, c, id)
	return redirectDone(c, to, "webhook-"+name, nil), err
}
