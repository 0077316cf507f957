package ui

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/internal/returnto"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/web/front"
)

// Call is one request for a page.
type Call struct {
	*front.Call
	Language Language

	set   *Set
	theme string // light or dark; empty: that of the system
	form  url.Values
	file  []byte
	fault error // why the form is shown again
	// dropped: the query has a return address that isn't allowed.
	dropped bool

	upload   bool   // the form is one with a file
	tooLarge string // name of the field with the file that is too large
}

func (s *Set) call(c *front.Call) *Call {
	c.R = withReturnQuery(c.R)
	page := &Call{Call: c, Language: s.languageOf(c), set: s}
	page.setLanguage(c.R.URL.Query().Get(languageQuery))
	page.chooseTheme()
	page.noteDroppedReturn()
	return page
}

// noteDroppedReturn logs a return address of the query that isn't allowed, and has the page say so:
// people would wonder why they aren't led back.
func (c *Call) noteDroppedReturn() {
	asked := c.R.URL.Query().Get(returnParameter)
	if c.dropped = asked != "" && c.ReturnTo() == ""; c.dropped {
		c.LogRefusedReturn(asked)
	}
}

// setLanguage sets the language of this and later pages, and reports whether the tag is
// known.
func (c *Call) setLanguage(tag string) bool {
	l, ok := languageByTag(LanguagesWith(c.Site().Texts), tag)
	if ok {
		c.Language = l
		c.SetCookie(languageCookie, tag, languageLife)
	}
	return ok
}

// Value returns the form's value of the name.
func (c *Call) Value(name string) string { return c.form.Get(name) }

// Values returns all of the form's values of the name, such as those of several checkboxes.
func (c *Call) Values(name string) []string { return c.form[name] }

// File is the uploaded file of a form for TakeFile; empty for none.
func (c *Call) File() []byte { return c.file }

// DropForm drops the form: it can't be sent again to show the answering page in another
// language.
func (c *Call) DropForm() { c.form = nil }

// KeepOnly empties the form, except for the values with these names: the answering page
// neither shows the others nor sends them again in another language.
func (c *Call) KeepOnly(names ...string) {
	maps.DeleteFunc(c.form, func(name string, _ []string) bool { return !slices.Contains(names, name) })
}

// Preset shows the value in the field of the name, as if it had been sent.
func (c *Call) Preset(name, value string) {
	if c.form == nil {
		c.form = url.Values{}
	}
	c.form.Set(name, value)
}

// Can reports whether the caller may do the action in its tenant.
func (c *Call) Can(action doorward.Action) bool { return c.CanOn(action, c.Caller.Tenant()) }

// CanOn reports whether the caller may do the action on the object.
func (c *Call) CanOn(action doorward.Action, on doorward.Object) bool {
	return decide.May(&c.Caller.Principal, &decide.Question{Action: action, On: on, Request: c.Caller.RequestAt(c.Now())}).Allowed
}

// Now returns the current time of the installation.
func (c *Call) Now() time.Time { return c.Site().App.Now() }

// returnParameter is the name of the return address in queries and forms.
const returnParameter = "return"

// originalParameter, with its =, begins a return address that isn't escaped and extends to
// the end of the query. Gateways send browsers to /login with it, and can't escape what they
// add.
const originalParameter = "original="

// withReturnQuery replaces an unescaped return address in the query by an escaped one, so
// that no part of the address is read as a parameter of the page.
func withReturnQuery(r *http.Request) *http.Request {
	before, original, found := "", "", false
	if original, found = strings.CutPrefix(r.URL.RawQuery, originalParameter); !found {
		before, original, found = strings.Cut(r.URL.RawQuery, "&"+originalParameter)
	}
	if !found {
		return r
	}
	values, _ := url.ParseQuery(before) // what can't be read is ignored, as by URL.Query
	values.Set(returnParameter, original)
	at, changed := *r.URL, *r
	at.RawQuery, changed.URL = values.Encode(), &at
	return &changed
}

// ReturnTo is the return address of the request, a path or a full address; empty
// for none. It is below the base URL, or in a place that the operator allows
// (front.Site.ReturnTo): a link to this site must never lead people to any other.
func (c *Call) ReturnTo() string {
	to, _ := c.returnTo()
	return to
}

// returnTo is ReturnTo, with the origin of a full address.
func (c *Call) returnTo() (to, origin string) {
	for _, requested := range []string{c.form.Get(returnParameter), c.R.URL.Query().Get(returnParameter)} {
		if to, origin, ok := parseReturnAddress(c.Site().Origin(), c.Site().BasePath(), c.Site().ReturnTo, requested); ok {
			return to, origin
		}
	}
	return "", ""
}

// destination returns the return address of the request, or home, with the origin of a full
// address.
func (c *Call) destination() (to, origin string) {
	if to, origin := c.returnTo(); to != "" {
		return to, origin
	}
	home := c.Site().Home
	if home == "" {
		return c.Site().BasePath() + accountPath, ""
	}
	_, origin, _ = c.Site().ReturnTo.Find(home)
	return home, origin
}

// HasDestination reports whether the request or Site.Home says where people land. If neither
// does, they land on their account.
func (c *Call) HasDestination() bool { return c.Site().Home != "" || c.ReturnTo() != "" }

// parseReturnAddress parses a return address. Below base on ownOrigin it becomes a path; in
// one of the allowed places it stays a full address, with its origin.
func parseReturnAddress(ownOrigin, base string, places returnto.List, address string) (to, origin string, ok bool) {
	if path, ok := ownPath(ownOrigin, base, address); ok {
		return path, "", true
	}
	return places.Find(address)
}

// ReturnAddress returns where an allowed return address leads: below the base URL, or to
// a place of --return-to.
func ReturnAddress(s *front.Site, address string) (to string, ok bool) {
	to, _, ok = parseReturnAddress(s.Origin(), s.BasePath(), s.ReturnTo, address)
	return to, ok
}

// ownPath returns the path of an address that is below base on the origin. Browsers
// read a backslash as a slash, and drop control characters and spaces at the ends,
// so an address with any of these is refused, and so is one with dot segments or "//".
func ownPath(origin, base, address string) (string, bool) {
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return "", false
	}
	path := strings.TrimPrefix(address, origin)
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return "", false
	}
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return "", false
	}
	withSlash := strings.TrimSuffix(u.Path, "/") + "/"
	for _, part := range []string{"//", "/./", "/../", `\`} {
		if strings.Contains(withSlash, part) {
			return "", false
		}
	}
	return path, strings.HasPrefix(u.Path, base+"/")
}

// LoginURL returns the address of the login that returns to the path, which is relative to the
// base URL.
func (c *Call) LoginURL(path string) string {
	return c.Site().BasePath() + "/login?" + url.Values{returnParameter: {c.Site().BasePath() + path}}.Encode()
}

// RedirectKeepingReturn redirects to a page and keeps the return address.
func (c *Call) RedirectKeepingReturn(path string) View {
	return c.To(withReturn(path, c.ReturnTo()))
}

// ProveFirst redirects to /step-up, which leads back to the path, which is relative to the base
// URL.
func (c *Call) ProveFirst(path string) View {
	return c.To(withReturn("/step-up", c.Site().BasePath()+path))
}

// withReturn adds the return address, if any, to a path, which may have a query.
func withReturn(path, to string) string {
	if to == "" {
		return path
	}
	mark := "?"
	if strings.Contains(path, mark) {
		mark = "&"
	}
	return path + mark + url.Values{returnParameter: {to}}.Encode()
}

// Sessions are the session tokens in the request's cookies: normally one.
func (c *Call) Sessions() []secret.Token { return c.Site().SessionTokens(c.R) }

// PresetAll is Preset for the values of several checkboxes.
func (c *Call) PresetAll(name string, values []string) {
	c.Preset(name, "")
	c.form[name] = values
}

// Suggest is Preset unless something was sent under the name.
func (c *Call) Suggest(name, value string) {
	if !c.form.Has(name) {
		c.Preset(name, value)
	}
}

// Redirect redirects to a path that includes the path of the base URL.
func (c *Call) Redirect(path string) View { return View{target: path} }

// WasRefused reports whether the page is shown again because the form was refused.
func (c *Call) WasRefused() bool { return c.fault != nil }

// RefusalCode is the code with which the form was refused; empty if it wasn't.
func (c *Call) RefusalCode() doorward.Code {
	if c.fault == nil {
		return ""
	}
	return front.AsError(c.fault).Code
}

// RefusedConnection is the connection by which somebody has to sign in, with the refusal sso_required;
// empty for none.
func (c *Call) RefusedConnection() string {
	if c.fault == nil {
		return ""
	}
	return front.AsError(c.fault).ConnectionID
}

// SignOn redirects to the sign-on of a connection, and keeps the return address. address is that of the
// person, for the provider's form; empty for none.
func (c *Call) SignOn(connectionID, address string) View {
	return View{target: c.SignOnLink(connectionID, address)}
}

// SignOnLink returns the address to which SignOn redirects.
func (c *Call) SignOnLink(connectionID, address string) string {
	query := url.Values{}
	if address != "" {
		query.Set("loginHint", address)
	}
	if to := c.ReturnTo(); to != "" {
		query.Set(returnParameter, to)
	}
	link := front.StartURL(c.Site().BasePath(), connectionID, "")
	if len(query) > 0 {
		link += "?" + query.Encode()
	}
	return link
}

// AffectedTenants are those that a refusal memberships_affected names.
func (c *Call) AffectedTenants() []doorward.TenantName {
	if c.fault == nil {
		return nil
	}
	return front.AsError(c.fault).Tenants
}

// SeenRecords are the texts of TXT records that a refusal domain_not_proved names.
func (c *Call) SeenRecords() []string {
	if c.fault == nil {
		return nil
	}
	return front.AsError(c.fault).Seen
}

// FieldErrors returns the faults of the fields of a form that is shown again. Frame.Faults
// has one for each field; pages that show more than one fault per field use this.
func (c *Call) FieldErrors() []doorward.FieldError {
	if c.fault == nil {
		return nil
	}
	return front.AsError(c.fault).Fields
}
