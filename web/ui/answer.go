package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/web/front"
)

// View is a page to show, or a redirect.
type View struct {
	Page    string   // name of the template
	Title   string   // key of the message; "" for Page+".title"
	Body    any      // for the template, as .Body
	Styles  []string // style sheets below /assets, after ui.css
	Scripts []string // ES modules below /assets, besides ui.js
	Wide    bool     // full width, instead of one card in the middle
	// Tenant is the tenant whose brand the page has; zero for the installation's.
	Tenant doorward.Tenant
	// FactorDue is when a tenant demands a second factor that the caller lacks, for a message above the
	// page; nil for no demand.
	FactorDue *user.FactorDue
	Status    int // 0: 200
	// Connects lets the page's scripts send requests to this server; otherwise the
	// content security policy forbids them.
	Connects bool
	// Frames lets the page show another page of this server inside itself.
	Frames bool
	// FormReturns: the answer to the page's form may redirect to the return address or home.
	// So the form keeps the address, and the policy allows its origin.
	FormReturns bool
	// FormSignsOn: the answer to the page's form may lead to the provider of an organisation. So the
	// policy allows every origin with https: browsers apply form-action to the redirects after a form, too,
	// and which provider it will be is known only then.
	FormSignsOn bool
	// KeepsReturn: forms and links to further pages here keep the return address.
	KeepsReturn bool
	// OneLanguage offers no other language and, after a form, no other theme: to switch, the form
	// that the page answers would be sent again, which would repeat its action.
	OneLanguage bool
	// Done is the key of a message at the top of the page that says what was done; empty: the
	// one of the redirect that led here, "done.saved" for ?done=saved (see takeNotice).
	Done string
	Note string // key of another message at the top of the page

	target string // path or address to redirect to; empty for a page
}

// To redirects to a path, given without the path of the base URL.
func (c *Call) To(path string) View { return View{target: c.Site().BasePath() + path} }

// Back redirects to the return address of the request, or home.
func (c *Call) Back() View {
	to, _ := c.destination()
	return View{target: to}
}

// BackAddress is the address that Back redirects to, for a link.
func (c *Call) BackAddress() string {
	to, _ := c.destination()
	return to
}

// Show returns the endpoint of a page.
func (s *Set) Show(fn func(ctx context.Context, c *Call) (View, error)) front.Endpoint {
	return front.Raw(func(ctx context.Context, fc *front.Call) error {
		return s.Answer(fc, func(c *Call) (View, error) { return fn(ctx, c) })
	}).WithErrorHandler(s.errorHandler(""))
}

// Answer answers with the page that fn returns, or returns its error.
func (s *Set) Answer(fc *front.Call, fn func(c *Call) (View, error)) error {
	c := s.call(fc)
	v, err := fn(c)
	if err != nil {
		return err
	}
	return c.answer(v)
}

// Take returns the endpoint of a form on the page with the path. If fn refuses
// the form, again shows the page once more. again is also used to switch the
// language of the page that answered a form.
func (s *Set) Take(path string, fn, again func(ctx context.Context, c *Call) (View, error)) front.Endpoint {
	return s.take(path, fn, again, again, readForm)
}

// Open is Take for a form whose fn only shows a page: to show that page in another language,
// fn is called once more.
func (s *Set) Open(path string, fn, again func(ctx context.Context, c *Call) (View, error)) front.Endpoint {
	return s.take(path, fn, again, fn, readForm)
}

func readForm(c *Call) (err error) {
	c.form, err = c.Form()
	return err
}

// TakeText is Take for a form with a long text, of at most maxBytes.
func (s *Set) TakeText(path string, maxBytes int, fn, again func(ctx context.Context, c *Call) (View, error)) front.Endpoint {
	return s.take(path, fn, again, again, readFormUpTo(maxBytes))
}

// OpenText is Open for a form with a long text, of at most maxBytes.
func (s *Set) OpenText(path string, maxBytes int, fn, again func(ctx context.Context, c *Call) (View, error)) front.Endpoint {
	return s.take(path, fn, again, fn, readFormUpTo(maxBytes))
}

func readFormUpTo(maxBytes int) func(*Call) error {
	return func(c *Call) (err error) {
		c.form, err = c.FormUpTo(maxBytes)
		return err
	}
}

// TakeFile is Take for a form with a file in the field, of at most maxBytes.
func (s *Set) TakeFile(path, field string, maxBytes int, fn, again func(ctx context.Context, c *Call) (View, error)) front.Endpoint {
	return s.TakeFileOrText(path, field, maxBytes, front.MaxFieldBytes, fn, again)
}

// TakeFileOrText is TakeFile for a form with a long text, too, which together with the other fields has at most
// maxFields bytes.
func (s *Set) TakeFileOrText(path, field string, maxBytes, maxFields int, fn, again func(ctx context.Context, c *Call) (View, error)) front.Endpoint {
	return s.take(path, fn, again, again, func(c *Call) (err error) {
		c.upload = true
		c.form, c.file, err = c.Upload(field, maxBytes, maxFields)
		if doorward.HasCode(err, doorward.CodeBodyTooLarge) {
			// Show the error at the field, where the file was chosen.
			c.form, c.tooLarge, err = url.Values{}, field, nil
		}
		return err
	})
}

// take is Take and its variants. read reads the form. If the form only switches the language or
// the theme of the page that answered it, translate is called instead of fn.
func (s *Set) take(path string, fn, again, translate func(ctx context.Context, c *Call) (View, error), read func(*Call) error) front.Endpoint {
	return front.Raw(func(ctx context.Context, fc *front.Call) (err error) {
		c := s.call(fc)
		if err = read(c); err != nil {
			return err
		}
		handle := fn
		if c.choosesAppearance() {
			handle = translate
		}
		v, err := c.handleForm(ctx, handle)
		if err != nil && isCorrectable(err) {
			c.fault = err
			status := c.Refuse(err).Status
			v, err = again(ctx, c)
			v.Status = status
		}
		if err != nil {
			return err
		}
		return c.answer(v)
	}).TakesForm(path).WithErrorHandler(s.errorHandler(path))
}

// choosesAppearance reports whether the form was only sent to show the page in another language or
// theme, and sets that.
func (c *Call) choosesAppearance() bool {
	language, theme := c.setLanguage(c.Value(languageQuery)), c.setTheme(c.Value(themeQuery))
	return language || theme
}

// handleForm calls fn, unless the uploaded file is too large.
func (c *Call) handleForm(ctx context.Context, fn func(ctx context.Context, c *Call) (View, error)) (View, error) {
	if c.tooLarge == "" {
		return fn(ctx, c)
	}
	e := doorward.Fail(doorward.CodeBodyTooLarge, "")
	e.Fields = []doorward.FieldError{{Pointer: "/" + c.tooLarge, Code: "too_large", Message: "This file is too large."}}
	return View{}, e
}

// answer sends the page or the redirect.
func (c *Call) answer(v View) error {
	if v.target != "" {
		c.redirect(v.target)
		return nil
	}
	f, err := c.frame(v)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := c.set.Render(&body, f); err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	h.Set("Content-Language", c.Language.Tag)
	h.Set("Vary", "Accept-Language, Cookie")
	c.SetPage(c.policy(v))
	if v.Status != 0 {
		c.W.WriteHeader(v.Status)
	}
	_, _ = c.W.Write(body.Bytes()) // fails if the client has disconnected
	return nil
}

// redirect makes the browser GET the path or address, whatever the method of the
// request.
func (c *Call) redirect(to string) {
	c.keepNotice(to)
	c.W.Header().Set("Location", to)
	c.W.WriteHeader(http.StatusSeeOther)
}

// strictestPolicy lets a page load from this server and send to it, and to no other.
const strictestPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// policy returns the content security policy: strictestPolicy, with what Connects and Frames add,
// and the one other origin that the answer to the page's form may redirect to, if any.
// Chromium and Safari apply form-action to redirects, too
// (github.com/w3c/webappsec-csp/issues/8).
func (c *Call) policy(v View) string {
	policy := strictestPolicy
	if _, origin := c.destination(); v.FormReturns && origin != "" {
		policy = strings.Replace(policy, "form-action 'self'", "form-action 'self' "+origin, 1)
	}
	if v.FormSignsOn {
		policy = strings.Replace(policy, "form-action 'self'", "form-action 'self' https:", 1)
	}
	if v.Connects {
		policy += "; connect-src 'self'"
	}
	if v.Frames {
		policy += "; frame-src 'self'"
	}
	return policy
}

// Frame is what the layout and the templates of pages see.
type Frame struct {
	View
	Base      string                   // path of the base URL, in front of every link
	File      func(name string) string // returns the name of a file below /assets with its hash
	Home      string                   // front.Site.Home
	Brand     front.Brand
	Language  Language
	Texts     *texts.File // the operator's own; nil for none
	Languages []Choice
	Theme     string        // light or dark; empty: that of the system
	Themes    []ThemeChoice // to switch to
	Sent      []Sent        // the form's values, to send it again in another language
	Caller    doorward.Caller
	Now       time.Time
	Return    string // the checked return address; empty unless View.FormReturns or KeepsReturn
	Dropped   bool   // the page would keep the return address, which isn't allowed
	RequestID string
	Fault     string // why the form is shown again, unless a field shows it
	Paused    string // says that changes are paused, and why; empty: they are not
	Alert     bool   // the form was refused and is shown again
	StepUp    bool   // the form needs a recent proof of identity first
	Support   bool   // somebody else can help with the refusal, who needs the request's id
	Posted    bool   // the page is the answer to a form
	Upload    bool   // that form has a file
	Form      url.Values
	Faults    map[string]string // by name of the field
}

// Can reports whether the caller may do the action in their tenant.
func (f Frame) Can(action doorward.Action) bool {
	return decide.May(&f.Caller.Principal, &decide.Question{Action: action, On: f.Caller.Tenant(), Request: f.Caller.RequestAt(f.Now)}).Allowed
}

// RefusedByPolicy says which policy refuses the caller an action in their tenant that the role allows, and
// why; empty if none does.
func (f Frame) RefusedByPolicy(action doorward.Action) (string, error) {
	d := decide.May(&f.Caller.Principal, &decide.Question{Action: action, On: f.Caller.Tenant(), Request: f.Caller.RequestAt(f.Now)})
	if d.Policy() == nil {
		return "", nil
	}
	p, err := errorPages.page(f.Texts, f.Language.Tag, "error")
	if err != nil {
		return "", err
	}
	return p.words.refusedBy(*d.Policy()), nil
}

// LinkWithReturn returns a link that keeps the return address. The path is without the path of
// the base URL.
func (f Frame) LinkWithReturn(path string) string { return f.Base + withReturn(path, f.Return) }

// Render writes the page of the frame.
func (s *Set) Render(w io.Writer, f Frame) error {
	p, err := s.page(f.Texts, f.Language.Tag, f.Page)
	if err != nil {
		return err
	}
	if f.Title == "" {
		f.Title = f.Page + ".title"
	}
	return p.ExecuteTemplate(w, "layout.html", f)
}

// Choice is a language with the link that switches to it; no link for the page's own.
type Choice struct {
	Language
	Link string
}

func (c *Call) frame(v View) (Frame, error) {
	p, err := c.set.page(c.Site().Texts, c.Language.Tag, v.Page)
	if err != nil {
		return Frame{}, err
	}
	if done := "done." + c.takeNotice(); v.Done == "" && p.words[done] != "" {
		v.Done = done
	}
	f := Frame{
		View: v, Base: c.Site().BasePath(), File: c.Site().FileName, Home: c.Site().Home, Brand: c.Site().Brand(), Language: c.Language, Texts: c.Site().Texts, Languages: c.choices(v),
		Theme: c.theme, Themes: c.themeChoices(v),
		Caller: c.Caller, Now: c.Now(), RequestID: c.W.Header().Get("X-Request-Id"),
		Form: c.form, Faults: map[string]string{},
	}
	if m := c.Site().App.Access.KnownMaintenance(); m.On {
		f.Paused = p.wordsFor(c).paused(m.Reason)
	}
	if v.FormReturns || v.KeepsReturn {
		f.Return, f.Dropped = c.ReturnTo(), c.dropped
	}
	if f.Posted = !front.Safe(c.R.Method); f.Posted {
		f.Sent, f.Upload = c.sent(), c.upload
	}
	return f, f.placeFaults(c, p.wordsFor(c))
}

// choices returns the languages to switch to. On a page that answers a form they are
// buttons that send the form again, since the address alone can't show the page. The
// page of an unreadable form has none, and neither has one after Call.DropForm or with
// View.OneLanguage.
func (c *Call) choices(v View) []Choice {
	if v.OneLanguage || !front.Safe(c.R.Method) && c.form == nil {
		return nil
	}
	var all []Choice
	for _, l := range LanguagesWith(c.Site().Texts) {
		q := withoutTheme(c.R.URL.Query())
		q.Set(languageQuery, l.Tag)
		one := Choice{Language: l, Link: "?" + q.Encode()}
		if l == c.Language {
			one.Link = ""
		}
		all = append(all, one)
	}
	return all
}

// Sent is a value of a form.
type Sent struct{ Name, Value string }

// sent returns the form without its passwords and secrets, which no page repeats.
func (c *Call) sent() (all []Sent) {
	isSecret := func(name string) bool {
		lower := strings.ToLower(name)
		return strings.Contains(lower, "password") || strings.Contains(lower, "secret")
	}
	for _, name := range slices.Sorted(maps.Keys(c.form)) {
		if name == languageQuery || name == themeQuery || isSecret(name) {
			continue
		}
		for _, value := range c.form[name] {
			all = append(all, Sent{name, value})
		}
	}
	return all
}

// placeFaults puts each fault at its field, and faults without a field above the form.
func (f *Frame) placeFaults(c *Call, words catalogue) error {
	var e *doorward.Error
	if !errors.As(c.fault, &e) {
		return nil
	}
	f.Alert, f.StepUp, f.Support = true, e.Code == doorward.CodeStepUpRequired, e.Policy != nil
	minLength := c.Site().App.PasswordRules.Load().MinLength
	for _, fault := range e.Fields {
		name := fieldOf(fault.Pointer)
		f.Faults[name] = words.firstMessageOr(fault.Message, faultKeys(name, fault), "min", minLength, "seen", fault.Seen)
	}
	if len(e.Fields) > 0 {
		return nil
	}
	var err error
	f.Fault, err = words.explain(f.Page, e)
	return err
}

// faultKeys are the keys of the messages about a fault, the most exact first.
func faultKeys(field string, fault doorward.FieldError) []string {
	keys := []string{"fault." + field + "." + fault.Code, "fault." + fault.Code}
	if fault.Cause != "" {
		keys = append([]string{"fault." + fault.Code + "." + fault.Cause}, keys...)
	}
	return keys
}

// explain says why something was refused, with the messages of the page if it has its own.
func (c catalogue) explain(page string, e *doorward.Error) (string, error) {
	if e.Code == doorward.CodeMaintenance {
		return c.paused(e.Reason), nil
	}
	if e.Policy != nil {
		return c.refusedBy(*e.Policy), nil
	}
	problem := e.Code.Problem()
	wait, err := c.waitText(e.RetryAfter)
	return c.firstMessageOr(problem.Title, []string{"notice." + page + "." + string(e.Code), "notice." + string(e.Code), errorKey(e) + ".text"}, "wait", wait), err
}

// Explain says in the person's language why one item of a bulk action was refused; empty for no
// error. Any error but a *doorward.Error is returned as it is.
func (c *Call) Explain(refusal error) (string, error) {
	var e *doorward.Error
	if !errors.As(refusal, &e) {
		return "", refusal
	}
	p, err := c.set.page(c.Site().Texts, c.Language.Tag, "error") // every set has it, with all messages of the set
	if err != nil {
		return "", err
	}
	const anyPage = "" // no messages of one page
	return p.wordsFor(c).explain(anyPage, e)
}

// Text returns the message of the key in the person's language. Errors: there is none.
func (c *Call) Text(key string) (string, error) {
	words, err := c.words()
	if err != nil {
		return "", err
	}
	return words.say(key)
}

// words returns the messages of the set in the person's language.
func (c *Call) words() (catalogue, error) {
	p, err := c.set.page(c.Site().Texts, c.Language.Tag, "error") // every set has it, with all messages of the set
	return p.words, err
}

// RoleName returns the name of a role in the person's language, as pages show it.
func (c *Call) RoleName(r doorward.Role) (string, error) {
	words, err := c.words()
	if err != nil {
		return "", err
	}
	return words.role(r)
}

// wordsFor returns the page's messages for the caller.
func (p page) wordsFor(c *Call) catalogue {
	if c.Caller.Kind == doorward.BySetupLink {
		return p.ofLink
	}
	return p.words
}

// ofLink returns the messages with those about errors that are for holders of set-up links.
func (c catalogue) ofLink() catalogue {
	own := maps.Clone(c)
	for key, message := range c {
		if name, isOfLink := strings.CutSuffix(key, byLink); isOfLink && strings.HasPrefix(key, "error.") {
			own[name] = message
		}
	}
	return own
}

// firstMessageOr returns the first existing message of the keys, else the fallback.
func (c catalogue) firstMessageOr(fallback string, keys []string, args ...any) string {
	for _, key := range keys {
		if message, err := c.say(key, args...); err == nil {
			return message
		}
	}
	return fallback
}
