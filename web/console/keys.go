package console

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/ui"
)

// keyFilters are the filters of the list: those of the API.
var keyFilters = []string{"q", "status", "owner"}

// keyStatuses lists the statuses, the most interesting first.
var keyStatuses = []doorward.APIKeyStatus{doorward.APIKeyActive, doorward.APIKeyDisabled, doorward.APIKeyExpired, doorward.APIKeyRevoked}

// apiKey is an API key as the pages show it.
type apiKey struct {
	doorward.APIKey
	State    doorward.APIKeyStatus // now
	Owner    string                // name or address; empty for somebody who has left
	Email    string                // of the owner
	Managed  bool                  // the caller may change it
	Earlier  *doorward.PreviousSecret
	EndsSoon bool // within a week
	now      time.Time
}

// Live reports whether the key has neither expired nor been revoked.
func (k apiKey) Live() bool { return !k.Ended(k.now) }

// EndsAt is doorward.APIKey.EndsAt, for templates.
func (k apiKey) EndsAt() time.Time { return k.APIKey.EndsAt() }

// Left is the rest of the earlier secret's grace.
func (k apiKey) Left() time.Duration { return k.Earlier.EndsAt.Sub(k.now).Round(time.Minute) }

// Lacks reports whether the key can't use a permission of its own, because the role in
// effect doesn't grant it.
func (k apiKey) Lacks(a doorward.Action) bool { return !slices.Contains(k.EffectivePermissions(), a) }

// Addresses are the allowed addresses, one a line.
func (k apiKey) Addresses() string {
	all := make([]string, len(k.AllowedIPs))
	for i, p := range k.AllowedIPs {
		all[i] = doorward.AddressText(p)
	}
	return strings.Join(all, "\n")
}

// Has reports whether the key was given the permission.
func (k apiKey) Has(a doorward.Action) bool { return slices.Contains(k.Permissions, a) }

func (h *console) apiKey(ctx context.Context, c *ui.Call, k doorward.APIKey) (apiKey, error) {
	now := c.Now()
	on := doorward.Object{TenantID: k.TenantID, Held: k.Role}
	one := apiKey{
		APIKey: k, State: k.StatusAt(now), Earlier: k.PreviousAt(now), now: now,
		Managed:  access.CanAt(&c.Caller, c.Now(), doorward.APIKeyUpdate, on).Allowed,
		EndsSoon: k.EndsAt().Before(now.AddDate(0, 0, 7)),
	}
	owner, err := h.app.Users.Get(ctx, c.Caller, k.OwnerID)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return one, nil
	}
	one.Owner, one.Email = who(owner), owner.Email
	return one, err
}

// apiKeys is the content of the list.
type apiKeys struct {
	pageData
	pager
	Statuses []doorward.APIKeyStatus
	Items    []apiKey
}

func (h *console) apiKeys(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	r, w, err := window(ctx, c, keyFilters)
	if err != nil {
		return ui.View{}, err
	}
	body := apiKeys{pageData: s, pager: r, Statuses: keyStatuses}
	found, err := h.app.APIKeys.List(ctx, c.Caller, apikey.Filter{Owner: r.Filter.Get("owner"), Status: r.Filter.Get("status"), Text: r.Filter.Get("q")}, w)
	for _, k := range found.Items {
		one, err := h.apiKey(ctx, c, k)
		if err != nil {
			return ui.View{}, err
		}
		body.Items = append(body.Items, one)
	}
	if err == nil {
		err = body.setLinks(ctx, c, found.Prev, found.Next)
	}
	return badFilter(autoRefresh(c, ui.View{Page: "keys", Body: body, Wide: true}), err)
}

// permissionGroup has permissions about similar things.
type permissionGroup struct {
	Name    string // of the message keys.group.Name; on pages of roles the first word
	Choices []permissionChoice
}

// Own reports whether there is a message roles.word.Name: the model's own actions have
// none.
func (g permissionGroup) Own() bool { return messages()["roles.word."+g.Name] }

type permissionChoice struct {
	permission
	Chosen bool
	Closed bool // the caller can't give it
}

// permission is an action with its description. An empty one is the message can.Action.
type permission struct {
	Action doorward.Action
	About  string
}

// describe returns the permission with what the model says about it. Without a message
// and a description it is shown by name.
func describe(rules *doorward.Rules, a doorward.Action) permission {
	verb, _ := rules.Model().Lookup(a)
	about := verb.About
	if about == "" && !messages()["can."+string(a)] {
		about = string(a)
	}
	return permission{a, about}
}

// groupOfAction returns the group in which a permission is shown.
func groupOfAction(rules *doorward.Rules, a doorward.Action) string {
	switch verb, _ := rules.Model().Lookup(a); {
	case verb.Platform:
		return "platform"
	case strings.HasPrefix(string(a), "user."):
		return "people"
	}
	return "organisation"
}

// permissionsOf are what the role grants; none if there is no such role.
func permissionsOf(rules *doorward.Rules, role doorward.Role) []doorward.Action {
	if g := rules.Grant(role); g != nil {
		return g.Actions
	}
	return nil
}

// permissionGroups returns what a key of the role can be given.
func permissionGroups(rules *doorward.Rules, role doorward.Role, chosen func(doorward.Action) bool) (all []permissionGroup) {
	for _, name := range []string{"platform", "people", "organisation"} {
		g := permissionGroup{Name: name}
		for _, a := range permissionsOf(rules, role) {
			if groupOfAction(rules, a) == name && rules.Model().ForKeys(a) {
				g.Choices = append(g.Choices, permissionChoice{permission: describe(rules, a), Chosen: chosen(a)})
			}
		}
		if len(g.Choices) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// sentPermissions reports whether the refused form has a permission.
func sentPermissions(c *ui.Call) func(doorward.Action) bool {
	return func(a doorward.Action) bool { return slices.Contains(c.Values("permissions"), string(a)) }
}

// newKey is the form for a key.
type newKey struct {
	pageData
	Roles  []roleChoice
	Role   doorward.Role
	Groups []permissionGroup
	keyLimits
}

// keyLimits are the limits of the fields about a key.
type keyLimits struct{ MaxDays, MaxPerSecond int64 }

func (h *console) keyLimits() keyLimits {
	return keyLimits{int64(h.app.APIKeys.MaxDays()), doorward.APIKeyPerSecondMax}
}

// defaultKeyRole is the role of a key unless another one is chosen, as in the API.
const defaultKeyRole = doorward.RoleUser

func (h *console) newKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	body := newKey{pageData: s, Role: asked(c), keyLimits: h.keyLimits()}
	if !c.Caller.Rules.Has(body.Role) || body.Role == doorward.RoleOwner {
		body.Role = defaultKeyRole
	}
	for _, role := range highestFirst(c.Caller.Rules) {
		if role != doorward.RoleOwner && access.CanAt(&c.Caller, c.Now(), doorward.APIKeyCreate, doorward.Object{TenantID: s.Tenant.ID, Granted: role}).Allowed {
			body.Roles = append(body.Roles, roleChoice{role, role == body.Role})
		}
	}
	body.Groups = permissionGroups(c.Caller.Rules, body.Role, sentPermissions(c))
	if !c.Again() {
		c.Suggest("owner", c.Caller.Email)
	}
	return ui.View{Page: "keynew", Body: body, Wide: true}, nil
}

// keySecret is the only page that shows a secret.
type keySecret struct {
	pageData
	Key     apiKey
	Secret  string
	Rotated bool
}

// createKey shows the secret in its answer, which can't be loaded again.
func (h *console) createKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	draft := apikey.Draft{
		Name: c.Value("name"), Role: c.Value("role"), Permissions: c.Values("permissions"), AllowedIPs: strings.Fields(c.Value("allowedIps")),
	}
	var faults []doorward.FieldError
	draft.Days, faults = optionalNumber(c, "days", faults)
	draft.PerSecond, faults = optionalNumber(c, "perSecond", faults)
	ownerID, faults, err := h.ownerOf(ctx, c, faults)
	if err != nil {
		return ui.View{}, err
	}
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	draft.OwnerID = ownerID
	k, secret, err := h.app.APIKeys.Create(ctx, c.Caller, draft)
	if err != nil {
		return ui.View{}, ofField(err)
	}
	return h.showSecret(ctx, c, k, secret.Reveal(), false)
}

func (h *console) showSecret(ctx context.Context, c *ui.Call, k doorward.APIKey, secret string, rotated bool) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	one, err := h.apiKey(ctx, c, k)
	c.Forget() // in another language the page would lose the secret
	return ui.View{Page: "keysecret", Scripts: []string{"secret.js"}, Body: keySecret{s, one, secret, rotated}}, err
}

// optionalNumber returns the number in the field, or nil if the field is empty.
func optionalNumber(c *ui.Call, name string, faults []doorward.FieldError) (*int64, []doorward.FieldError) {
	text := strings.TrimSpace(c.Value(name))
	if text == "" {
		return nil, faults
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, append(faults, doorward.FieldError{Pointer: "/" + name, Code: "out_of_range", Message: "Write a whole number."})
	}
	return &n, faults
}

// ownerOf returns the id of the member whose address is in the field.
func (h *console) ownerOf(ctx context.Context, c *ui.Call, faults []doorward.FieldError) (string, []doorward.FieldError, error) {
	email := strings.ToLower(strings.TrimSpace(c.Value("owner")))
	if email == "" || email == c.Caller.Email {
		return c.Caller.ID, faults, nil
	}
	found, err := h.app.Users.List(ctx, c.Caller, user.Filter{Text: email}, doorward.Window{Limit: rows})
	for _, u := range found.Items {
		if u.Email == email {
			return u.ID, faults, err
		}
	}
	return "", append(faults, doorward.FieldError{Pointer: "/owner", Code: "invalid", Message: "No member has this address."}), err
}

// ofField moves the faults of a list's items to the field with the list, and others to the
// field that has another name here.
func ofField(err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	moved := *e
	moved.Fields = slices.Clone(e.Fields)
	for i, f := range moved.Fields {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		if other := fieldNames[name]; other != "" {
			name = other
		}
		moved.Fields[i].Pointer = "/" + name
	}
	return &moved
}

// fieldNames are the names of fields that differ from those of the API: the owner is an
// address here, and invitations have other limits for their days.
var fieldNames = map[string]string{"ownerId": "owner", "expiresInDays": "days"}

// keyPage is the page of one key.
type keyPage struct {
	pageData
	edited
	keyLimits
	Key     apiKey
	Groups  []permissionGroup
	Graces  []int
	Actions []permission // that a key can have
	Try     *trial       // nil: nothing was tried
}

// graces are the hours to choose from after a rotation.
var graces = []int{0, 1, doorward.APIKeyGraceHours, 72, doorward.APIKeyGraceHoursMax}

func (h *console) keyPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	k, err := h.keyOf(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	typed, note := keepTyped(c, k.Version(), "notice.key.precondition_failed", keyFields(c, k))
	chosen := k.Has
	if c.Value("name") != "" { // the form is shown again
		chosen = sentPermissions(c)
	}
	body := keyPage{pageData: s, edited: typed, keyLimits: h.keyLimits(), Key: k, Groups: permissionGroups(k.Rules, k.Role, chosen), Graces: graces, Try: tried(c, k)}
	for _, v := range k.Rules.Model().Verbs() {
		if v.IsPermission() && !v.NoKeys {
			body.Actions = append(body.Actions, describe(k.Rules, v.Action))
		}
	}
	return ui.View{Page: "key", Title: "keys.title", Note: note, Body: body, Wide: true}, nil
}

// keyFields are the fields of the form that edits a key.
func keyFields(c *ui.Call, k apiKey) []editedField {
	perSecond := ""
	if k.PerSecond > 0 {
		perSecond = strconv.Itoa(k.PerSecond)
	}
	permissions := make([]string, len(k.Permissions))
	for i, p := range k.Permissions {
		permissions[i] = string(p)
	}
	return []editedField{
		textField(c, "name", "field.name", k.Name), choiceField(c, "permissions", "keys.may", "", permissions),
		textField(c, "perSecond", "field.perSecond", perSecond), listField(c, "allowedIps", "field.allowedIps", strings.Fields(k.Addresses())),
		textField(c, "owner", "keys.owner", k.Email),
	}
}

// keyOf returns the key that the path names.
func (h *console) keyOf(ctx context.Context, c *ui.Call) (apiKey, error) {
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return apiKey{}, err
	}
	k, err := h.app.APIKeys.Get(ctx, c.Caller, id)
	if err != nil {
		return apiKey{}, err
	}
	return h.apiKey(ctx, c, k)
}

// Version returns the version of the key, for forms.
func (p keyPage) Version() string { return p.Key.Version() }

// trial says whether a request with the key would pass.
type trial struct {
	Action, IP string
	Why        string // key of the message; keys.try.yes: it would
}

// tried returns the trial that the query asks for; nil for none. It decides as a check
// does, from what the key and its owner may do now.
func tried(c *ui.Call, k apiKey) *trial {
	q := c.R.URL.Query()
	one := trial{Action: q.Get("action"), IP: strings.TrimSpace(q.Get("ip"))}
	if one.Action == "" && one.IP == "" {
		return nil
	}
	p := doorward.PrincipalOfKey(k.APIKey, c.Caller.TenantStatus)
	addr, err := netip.ParseAddr(one.IP)
	decided := access.CanCheckAt(&p, doorward.Action(one.Action), &doorward.Request{At: c.Now(), Now: c.Now(), IP: addr})
	switch {
	case k.State != doorward.APIKeyActive:
		one.Why = "keys.try.status"
	case one.IP != "" && err != nil:
		one.Why = "keys.try.noaddress"
	case one.IP != "" && !allows(k.AllowedIPs, addr.Unmap()):
		one.Why = "keys.try.ip"
	case decided.Allowed:
		one.Why = "keys.try.yes"
	case decided.Reason == access.ReasonPolicy:
		one.Why = "keys.try.policy"
	case !k.Has(doorward.Action(one.Action)):
		one.Why = "keys.try.permission"
	default:
		one.Why = "keys.try.owner"
	}
	return &one
}

func allows(all []netip.Prefix, addr netip.Addr) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// editKey saves the form of the key's page.
func (h *console) editKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	k, err := h.keyOf(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	name, addresses := c.Value("name"), strings.Fields(c.Value("allowedIps"))
	e := apikey.Edit{Name: &name, Permissions: changedPermissions(c, k), AllowedIPs: &addresses, Versions: version(c)}
	var faults []doorward.FieldError
	e.Days, faults = optionalNumber(c, "days", faults)
	e.PerSecond, faults = optionalNumber(c, "perSecond", faults)
	if c.Value("owner") != "" { // somebody who has left may stay the owner
		ownerID, wrong, err := h.ownerOf(ctx, c, faults)
		if err != nil {
			return ui.View{}, err
		}
		e.OwnerID, faults = &ownerID, wrong
	}
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	_, held, err := h.app.APIKeys.Edit(ctx, c.Caller, k.ID, e)
	c.Revoked(held)
	return done(c, "/console/keys/"+k.ID, "key", nil), ofField(err)
}

// changedPermissions returns the permissions of the form, or nil if they are as shown.
// The form doesn't show those that have left the model; the key keeps them.
func changedPermissions(c *ui.Call, k apiKey) *[]string {
	chosen := c.Values("permissions")
	for _, g := range permissionGroups(k.Rules, k.Role, k.Has) {
		for _, p := range g.Choices {
			if p.Chosen != slices.Contains(chosen, string(p.Action)) {
				return &chosen
			}
		}
	}
	return nil
}

// rotateKey shows the new secret. Sent twice, as when the page is loaded again, it is
// refused: a second rotation would end the secret that is still in use.
func (h *console) rotateKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	k, err := h.keyOf(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	if c.Value("hint") != k.Hint {
		return ui.View{}, doorward.Fail(doorward.CodePreconditionFailed, "")
	}
	grace, faults := optionalNumber(c, "graceHours", nil)
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	r, err := h.app.APIKeys.Rotate(ctx, c.Caller, k.ID, grace)
	if err != nil {
		return ui.View{}, err
	}
	c.Revoked(r.Revocation)
	return h.showSecret(ctx, c, r.Key, r.Secret.Reveal(), true)
}

func (h *console) endPreviousSecret(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return ui.View{}, err
	}
	held, err := h.app.APIKeys.EndPrevious(ctx, c.Caller, id)
	c.Revoked(held)
	return done(c, "/console/keys/"+id, "previous", nil), err
}

// keyAction is an action on a key that is confirmed first.
type keyAction struct {
	danger bool
	do     func(ctx context.Context, h *console, c *ui.Call, id string) (doorward.Revocation, error)
}

// keyActions are keyed by the last part of their path.
var keyActions = map[string]keyAction{
	"disable": {danger: true, do: setKeyStatus(doorward.APIKeyDisabled)},
	"enable":  {do: setKeyStatus(doorward.APIKeyActive)},
	"revoke": {danger: true, do: func(ctx context.Context, h *console, c *ui.Call, id string) (doorward.Revocation, error) {
		return h.app.APIKeys.Revoke(ctx, c.Caller, id)
	}},
}

func setKeyStatus(status doorward.APIKeyStatus) func(context.Context, *console, *ui.Call, string) (doorward.Revocation, error) {
	return func(ctx context.Context, h *console, c *ui.Call, id string) (doorward.Revocation, error) {
		to := string(status)
		_, held, err := h.app.APIKeys.Edit(ctx, c.Caller, id, apikey.Edit{Status: &to})
		return held, err
	}
}

// keyQuestion is the page that asks for confirmation.
type keyQuestion struct {
	pageData
	Key    apiKey
	Act    string
	Danger bool
}

func (h *console) askKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	name := c.R.PathValue("act")
	act, ok := keyActions[name]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	k, err := h.keyOf(ctx, c)
	return ui.View{Page: "keyact", Title: "keys." + name + ".title", Body: keyQuestion{s, k, name, act.danger}}, err
}

func (h *console) actOnKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	name := c.R.PathValue("act")
	act, ok := keyActions[name]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return ui.View{}, err
	}
	held, err := act.do(ctx, h, c, id)
	c.Revoked(held)
	return done(c, "/console/keys/"+id, "key-"+name, nil), err
}
