package console

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/web/ui"
)

const settingsPath = "/console/settings"

// settings are the effective settings.
type settings struct {
	pageData
	edited
	Tabs         ui.Tabs
	Numbers      []number
	Domains      string // one per line
	Picked       string // the accent in force, for the picker
	MaxLogoBytes int    // bytes of a logo

	// Of second factors: whether the tenant demands one, of which roles, and how many of
	// its people have none.
	Demanded        bool
	Covered         []coveredRole
	People, Without int
}

// coveredRole is a role, and whether the demand names it.
type coveredRole struct {
	Role      doorward.Role
	IsCovered bool
}

// addFactors sets Demanded and Covered: as chosen if the form is shown again, or else as
// stored.
func (s *settings) addFactors(c *ui.Call) {
	demand := s.Tenant.Settings.SecondFactor
	s.Demanded = !demand.Since.IsZero()
	isCovered := func(r doorward.Role) bool { return slices.Contains(demand.Roles, r) }
	if chosen := c.Values("mfaRoles"); s.Tabs.Is("factors") && c.Value("version") != "" {
		s.Demanded = c.Value("mfa") != ""
		isCovered = func(r doorward.Role) bool { return slices.Contains(chosen, string(r)) }
	}
	for _, r := range highestFirst(s.Tenant.Rules) {
		s.Covered = append(s.Covered, coveredRole{r, isCovered(r)})
	}
}

// CoveredRoles are the roles that the demand for a second factor names; none: all.
func (s settings) CoveredRoles() (all []doorward.Role) {
	for _, one := range s.Covered {
		if one.IsCovered {
			all = append(all, one.Role)
		}
	}
	return all
}

// Duration returns the setting with its unit.
func (settings) Duration(f ui.Frame, n number) duration { return durationOf(f, n) }

// NumbersOf returns the settings that the page shows in the section.
func (s settings) NumbersOf(section string) []number {
	return slices.DeleteFunc(slices.Clone(s.Numbers), func(n number) bool { return n.Section != section })
}

// numbersOf returns the settings of the tenant that are numbers.
func (h *console) numbersOf(t doorward.Tenant) (all []number) {
	for _, s := range h.app.Tenants.Settings() {
		if s.Unit != "" {
			all = append(all, number{s, s.Number(t)})
		}
	}
	return all
}

func (h *console) settings(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	tabs := settingsTabs(c)
	form, note := keepTyped(c, s.Tenant.Version(), "notice.settings.precondition_failed", h.settingsFields(c, s.Tenant, tabs.Current))
	page := settings{
		pageData: s, edited: form, Tabs: tabs, Numbers: h.numbersOf(s.Tenant),
		Domains: strings.Join(s.Tenant.Settings.AllowedDomains, "\n"), Picked: effectiveAccent(c, s.Tenant), MaxLogoBytes: doorward.MaxLogoSent,
	}
	page.addFactors(c)
	if tabs.Is("factors") {
		count, err := h.app.Factors.CountMembers(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		page.People, page.Without = count.People, count.WithoutFactor
	}
	return ui.View{Page: "settings", Wide: true, Note: note, Scripts: []string{"settings.js"}, Body: page}, nil
}

// settingsTabs are the tabs of the settings. Somebody who may only read them has one page of all.
func settingsTabs(c *ui.Call) ui.Tabs {
	names := []string{"general"}
	if c.Can(doorward.SettingsManage) {
		names = append(names, "sessions", "factors", "appearance")
	}
	if c.Can(doorward.TenantDestroy) {
		names = append(names, "danger")
	}
	return c.Tabs(settingsPath, nil, names...)
}

// settingsFields are the fields of the form on the tab. The first one is always sent.
func (h *console) settingsFields(c *ui.Call, t doorward.Tenant, tab string) []editedField {
	var all []editedField
	switch tab {
	case "general":
		all = append(all, textField(c, "name", "field.tenant", t.Name), listField(c, "allowedEmailDomains", "field.allowedEmailDomains", t.Settings.AllowedDomains))
	case "appearance":
		return []editedField{textField(c, "accent", "field.accent", t.Brand.Accent)}
	}
	for _, n := range h.numbersOf(t) {
		if n.Section != tab {
			continue
		}
		f := textField(c, n.Name, "field."+n.Name, strconv.FormatInt(n.Effective, 10))
		if n.IsDuration() {
			f.kind, f.typed = "minutes", typedMinutes(c, n.Name)
			f.set = func(to []string) { setMinutes(c, n.Name, to) }
		}
		all = append(all, f)
	}
	if tab == "factors" {
		all = append(all, factorFields(c, t)...)
	}
	return all
}

// factorFields are the fields of the demand for second factors.
func factorFields(c *ui.Call, t doorward.Tenant) []editedField {
	var demanded, roles []string
	if demand := t.Settings.SecondFactor; !demand.Since.IsZero() {
		demanded = []string{doorward.MFARequired}
	}
	for _, r := range t.Settings.SecondFactor.Roles {
		roles = append(roles, string(r))
	}
	return []editedField{
		choiceField(c, "mfa", "settings.mfa", "check", demanded), choiceField(c, "mfaRoles", "settings.mfaRoles", "role", roles),
	}
}

// setSettings saves the form of one tab.
func (h *console) setSettings(ctx context.Context, c *ui.Call) (ui.View, error) {
	tab := settingsTabs(c).Current
	e := tenant.Edit{KeepEffective: true, Versions: version(c), Settings: map[string]any{}}
	switch tab {
	case "general":
		name := c.Value("name")
		e.Name, e.Settings[doorward.SettingDomains] = &name, strings.Fields(strings.ReplaceAll(c.Value("allowedEmailDomains"), ",", " "))
	case "factors":
		e.Settings[doorward.SettingMFA], e.Settings[doorward.SettingMFARoles] = doorward.MFAOptional, c.Values("mfaRoles")
		if c.Value("mfa") != "" {
			e.Settings[doorward.SettingMFA] = doorward.MFARequired
		}
	}
	var faults []doorward.FieldError
	for _, setting := range h.numbersOf(doorward.Tenant{}) {
		if setting.Section != tab {
			continue
		}
		n, err := numberIn(c, setting.Name)
		if err != nil {
			faults = append(faults, doorward.FieldError{Pointer: "/" + setting.Name, Code: "out_of_range", Message: "Give a whole number."})
		}
		e.Settings[setting.Name] = n
	}
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	if tab == "factors" && c.Value("confirmed") == "" {
		preview, err := h.app.Tenants.PreviewDemand(ctx, c.Caller, e)
		if err != nil {
			return ui.View{}, moveDomainFaults(err)
		}
		if preview.Count > 0 {
			return h.askDemand(ctx, c, preview)
		}
	}
	edited, err := h.app.Tenants.Edit(ctx, c.Caller, e)
	c.SetRevocation(edited.Revocation)
	return redirectDone(c, settingsPath, "saved", nil), moveDomainFaults(err)
}

// moveDomainFaults attributes a fault of one domain to the list of domains.
func moveDomainFaults(err error) error {
	const list = "/settings/allowedEmailDomains"
	var e *doorward.Error
	if !errors.As(err, &e) {
		return err
	}
	moved := *e
	moved.Fields = slices.Clone(e.Fields)
	for i, f := range moved.Fields {
		if strings.HasPrefix(f.Pointer, list) {
			moved.Fields[i].Pointer = list
		}
	}
	return &moved
}

// closing is the content of the pages before and after closing the tenant.
type closing struct {
	pageData
	People      int   // who can sign in now
	Open        int   // invitations that can be accepted now
	Affected    ended // what will end or has ended
	DestroyedAt time.Time
	DaysLeft    int // until it is destroyed
}

func (h *console) askClosing(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	figures, err := h.app.Overviews.Of(ctx, c.Caller, 1) // days of sign-ins, which the page doesn't show
	if err != nil {
		return ui.View{}, err
	}
	affected, err := h.app.Overviews.CountAllAffected(ctx, c.Caller)
	now := c.Now()
	if s.Tenant.ClosedAt == nil { // as if it were closed now
		s.Tenant.ClosedAt = &now
	}
	at := h.app.Tenants.DestroyedAt(s.Tenant)
	return ui.View{Page: "close", Body: closing{
		pageData: s, People: figures.People - figures.Suspended, Open: figures.Pending,
		Affected: endedOf(affected), DestroyedAt: at, DaysLeft: int(at.Sub(now).Hours()+12) / 24, // rounded to days
	}}, err
}

// closeTenant ends the caller's own session too, so its answer is the page that
// says what has ended.
func (h *console) closeTenant(ctx context.Context, c *ui.Call) (ui.View, error) {
	closed, counts, err := h.app.Tenants.Close(ctx, c.Caller, c.Value("confirm"))
	if err != nil {
		return ui.View{}, err
	}
	c.SetRevocation(counts.Revocation)
	c.ClearSession()
	c.DropForm()
	at := h.app.Tenants.DestroyedAt(closed)
	return ui.View{Page: "closed", Body: closing{pageData: pageData{Tenant: closed}, Affected: endedOf(counts), DestroyedAt: at}}, nil
}
