package console

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/web/ui"
)

// keyFilters are the filters of the list: those of the API, and the role.
var keyFilters = []string{"q", "role", "status", "owner", "sort"}

// keySorting is how the list can be sorted. The column of the end is sorted by the expiry, and shows the day
// by which the key must be rotated if that is earlier.
var keySorting = sorting{[]column{
	{"name", "field.name", "text"}, {"lastUsedAt", "keys.used", "time"}, {"createdAt", "keys.created", "time"}, {"expiresAt", "keys.ends", "end"},
}, "-createdAt"}

// keyStatuses lists the statuses, the most interesting first.
var keyStatuses = []doorward.APIKeyStatus{doorward.APIKeyActive, doorward.APIKeyDisabled, doorward.APIKeyExpired, doorward.APIKeyRevoked}

// apiKey is an API key as the pages show it.
type apiKey struct {
	doorward.APIKey
	State     doorward.APIKeyStatus    // now
	Owner     string                   // as memberName; empty for somebody who has left
	Email     string                   // of the owner; empty if the caller may not read people
	CanManage bool                     // the caller may change it
	Earlier   *doorward.PreviousSecret // nil unless one is valid beside the present secret
	EndsSoon  bool                     // within a week
	now       time.Time
}

// Live reports whether the key has neither expired nor been revoked.
func (k apiKey) Live() bool { return !k.HasEnded(k.now) }

// EndsAt is doorward.APIKey.EndsAt, whose receiver is a pointer, which templates don't have.
func (k apiKey) EndsAt() time.Time { return k.APIKey.EndsAt() }

// TimeLeft is the rest of the earlier secret's grace.
func (k apiKey) TimeLeft() time.Duration { return k.Earlier.EndsAt.Sub(k.now).Round(time.Minute) }

// Lacks reports whether the key can't use a permission of its own, because the role in
// effect doesn't grant it.
func (k apiKey) Lacks(a doorward.Action) bool { return !slices.Contains(k.EffectivePermissions(), a) }

// Groups are the key's own permissions in groups.
func (k apiKey) Groups() []permissionGroup {
	return groupPermissions(k.Rules.Model(), k.Permissions, func(a doorward.Action) permissionChoice { return permissionChoice{Chosen: true, Idle: k.Lacks(a)} })
}

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

// Tags are shown below the name.
func (k apiKey) Tags() ui.Tags { return ui.Tags{State: "status." + string(k.State), Role: k.Role} }

func (h *console) apiKey(ctx context.Context, c *ui.Call, k doorward.APIKey) (apiKey, error) {
	now := c.Now()
	on := doorward.Object{TenantID: k.TenantID, Held: k.Role}
	one := apiKey{
		APIKey: k, State: k.StatusAt(now), Earlier: k.PreviousAt(now), now: now,
		CanManage: c.CanOn(doorward.APIKeyUpdate, on),
		EndsSoon:  k.EndsAt().Before(now.AddDate(0, 0, 7)),
	}
	if !c.Can(doorward.UserRead) {
		one.Owner = k.OwnerID
		return one, nil
	}
	owner, err := h.app.Users.Get(ctx, c.Caller, k.OwnerID)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return one, nil
	}
	one.Owner, one.Email = displayName(owner), owner.Email
	return one, err
}

// apiKeys is the content of the list.
type apiKeys struct {
	pageData
	pager
	Statuses []doorward.APIKeyStatus
	Roles    []doorward.Role
	Items    []apiKey
}

// Folded counts the filters in use that a narrow screen folds.
func (k apiKeys) Folded() int { return k.Filter.Count("role", "status") }

func (h *console) apiKeys(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, keyFilters, keySorting)
	if err != nil {
		return ui.View{}, err
	}
	body := apiKeys{pageData: s, pager: pages, Statuses: keyStatuses, Roles: highestFirst(c.Caller.Rules)}
	found, err := h.app.APIKeys.List(ctx, c.Caller, apikey.Filter{
		Owner: pages.Filter.Get("owner"), Role: doorward.Role(pages.Filter.Get("role")), Status: pages.Filter.Get("status"), Text: pages.Filter.Get("q"),
	}, window)
	body.Total = found.Total
	for _, k := range found.Items {
		one, err := h.apiKey(ctx, c, k)
		if err != nil {
			return ui.View{}, err
		}
		body.Items = append(body.Items, one)
	}
	if err == nil {
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	return badFilter(autoRefresh(c, ui.View{Page: "keys", Body: body, Wide: true}), err)
}

// keyLimits are the limits of the fields about a key.
type keyLimits struct{ MaxDays, MaxPerSecond int64 }

func (h *console) keyLimits() keyLimits {
	return keyLimits{int64(h.app.APIKeys.MaxDays()), doorward.APIKeyPerSecondMax}
}

// keyPage is the page of one key.
type keyPage struct {
	pageData
	edited
	keyLimits
	Key      apiKey
	Tabs     ui.Tabs
	Activity activity
	permissionForm
	Graces  []int
	Actions []permissionGroup // that a key can have
	Try     *trial            // nil: nothing was tried
	Uses    chart             // requests by day
	RoleID  string            // of the role's page; empty if the caller may not see it
	// Suggested are the members that it can belong to, for the tab with the form.
	Suggested suggestions
}

// graces are the choices of how many hours the earlier secret stays valid.
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
	form, note := keepTyped(c, k.Version(), "notice.key.precondition_failed", keyFields(c, k))
	chosen := k.Has
	if c.Value("name") != "" { // the form is shown again
		chosen = sentPermissions(c)
	}
	body := keyPage{pageData: s, edited: form, keyLimits: h.keyLimits(), Key: k, permissionForm: keyPermissions(k.Rules, k.Role, chosen), Graces: graces, Actions: permissionsForKeys(k.Rules.Model()), Try: trialOf(c, k)}
	if body.Tabs = keyTabs(c, k, s.List); body.Tabs.Is("activity") {
		body.Activity, err = h.activity(ctx, c, "keys", k.ID)
	}
	if body.Tabs.Is("about") {
		body.RoleID, err = h.roleIDOf(ctx, c, k.Role)
	}
	if body.Tabs.Is("usage") {
		body.Uses, err = h.usesOf(ctx, c, k)
	}
	if body.Tabs.Is("settings") {
		body.Suggested, err = h.suggestMembers(ctx, c, c.Value("owner"))
	}
	return ui.View{Page: "key", Title: "keys.title", Note: note, Body: body, Wide: true}, err
}

// usesOf returns the chart of the key's requests.
func (h *console) usesOf(ctx context.Context, c *ui.Call, k apiKey) (chart, error) {
	counts, err := h.app.APIKeys.Usage(ctx, c.Caller, k.ID, usageSince(c))
	return chartOf("uses-title", useSeries(), counts, c.Now(), oneDay, usageDays), err
}

func useSeries() []series {
	return []series{{Outcome: doorward.UsageUsed, Key: "chart.used", Tone: "plain"}}
}

// roleIDOf returns the id of the role. It is empty if the caller may not see pages of roles, or there is no
// such role any more. Errors: unavailable.
func (h *console) roleIDOf(ctx context.Context, c *ui.Call, name doorward.Role) (string, error) {
	if !c.Can(doorward.RoleManage) {
		return "", nil
	}
	all, err := h.app.Roles.Uncounted(ctx, c.Caller)
	if i := slices.IndexFunc(all, func(r role.Role) bool { return r.Name == name }); i >= 0 {
		return all[i].ID, err
	}
	return "", err
}

// keyTabs are the tabs of the page of a key. A key that has ended can't be changed.
func keyTabs(c *ui.Call, k apiKey, list string) ui.Tabs {
	isChangeable, names := k.CanManage && k.Live(), []string{"about", "usage"}
	if isChangeable {
		names = append(names, "rotation")
	}
	if names = withActivity(c, names); isChangeable {
		names = append(names, "settings")
	}
	return c.Tabs("/console/keys/"+k.ID, keptList(list), names...)
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

// fixedRole is a role that can't be changed, and the key of the message why.
type fixedRole struct {
	Frame ui.Frame
	Role  doorward.Role
	Why   string
}

// FixedRole shows the role of the key, which stays.
func (p keyPage) FixedRole(f ui.Frame) fixedRole { return fixedRole{f, p.Key.Role, "keys.role.fixed"} }

// Version returns the version of the key, for forms.
func (p keyPage) Version() string { return p.Key.Version() }

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
	if c.Value("owner") != "" { // if it is empty, the owner stays: the owner may have left
		ownerID, wrong, err := h.ownerOf(ctx, c, faults)
		if err != nil {
			return ui.View{}, err
		}
		e.OwnerID, faults = &ownerID, wrong
	}
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	_, revocation, err := h.app.APIKeys.Edit(ctx, c.Caller, k.ID, e)
	c.SetRevocation(revocation)
	return redirectDone(c, "/console/keys/"+k.ID, "key", nil), faultsToFormFields(err)
}

// changedPermissions returns the permissions of the form, or nil if they are as shown.
// The form doesn't show those that have left the model; the key keeps them.
func changedPermissions(c *ui.Call, k apiKey) *[]string {
	chosen := c.Values("permissions")
	for _, g := range keyPermissions(k.Rules, k.Role, k.Has).Groups {
		for _, p := range g.Choices {
			if p.Chosen != slices.Contains(chosen, string(p.Action)) {
				return &chosen
			}
		}
	}
	return nil
}
