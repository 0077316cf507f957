package hosted

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// copyScript adds the buttons that copy.
var copyScript = []string{"secret.js"}

// setupProvider is the step at the provider's console: the instructions beside the form.
type setupProvider struct {
	setupStep
	Guide   ui.Guide
	Form    ui.ParameterForm
	Version string // that the form is based on
	Keys    []ui.PublishedKey
	now     time.Time
}

// UsesKeys reports whether the form says that Doorward authenticates by a key of its own.
func (s setupProvider) UsesKeys() bool { return s.Form.ClientAuth == string(doorward.PrivateKeyJWT) }

// TakesSecret reports whether another client secret can be added.
func (s setupProvider) TakesSecret() bool {
	return !s.UsesKeys() && len(s.Connection.Secrets) < doorward.ConnectionSecretsMax
}

// HasEnded reports whether the instant has passed.
func (s setupProvider) HasEnded(at time.Time) bool { return !s.now.Before(at) }

func (h *hosted) showSetupProvider(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	v := s.view("provider")
	edited, _ := s.Connection.ToTest()
	body := setupProvider{setupStep: s, Form: ui.ParameterFormOf(c, edited), Version: s.Connection.Version(), now: c.Now()}
	if sent := c.Value("version"); sent != "" && c.RefusalCode() != doorward.CodePreconditionFailed {
		body.Version = sent
	}
	id := s.Connection.ID
	body.Guide = ui.Guide{Product: s.Connection.Product, Callback: h.app.Connections.CallbackURL(id), Start: h.app.Connections.StartURL(id), Revoke: h.app.Connections.RevokeURL(id), Logout: h.app.Connections.LogoutURL(id)}
	var err error
	if body.UsesKeys() {
		body.Guide.KeysURL = h.app.Connections.KeysURL(id)
		body.Keys, err = h.publishedKeys(ctx, id)
	}
	v.Body, v.Scripts = body, copyScript
	return v, err
}

func (h *hosted) publishedKeys(ctx context.Context, conID string) ([]ui.PublishedKey, error) {
	keys, err := h.app.Connections.Keys(ctx, conID)
	return ui.PublishedKeys(keys), err
}

// saveSetupProvider saves what the connection signs people in by, and then the client secret, if one was typed.
// A secret that is refused has to be typed again.
func (h *hosted) saveSetupProvider(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	secret, err := typedSecret(c)
	if err != nil {
		return ui.View{}, err
	}
	var change connection.Change
	change.Versions = []string{c.Value("version")}
	change.Issuer, change.ClientID, change.ClientAuth, change.EmailFrom = ui.TypedParameters(c)
	after, _, err := h.app.Connections.Edit(ctx, c.Caller, s.Connection.ID, change)
	if err != nil {
		return ui.View{}, err
	}
	if secret.Secret != "" {
		c.Preset("version", after.Version()) // if the secret is refused, the rest is saved
		if _, err = h.app.Connections.AddSecret(ctx, c.Caller, s.Connection.ID, secret); err != nil {
			return ui.View{}, err
		}
		if after, err = h.app.Connections.Connection(ctx, c.Caller, s.Connection.ID); err != nil {
			return ui.View{}, err
		}
	}
	if !ui.CanBeTested(after) {
		return toStep(c, "provider", "setup-incomplete"), nil
	}
	return toStep(c, "domains", "setup-saved"), nil
}

// typedSecret returns the client secret of the form with its end, which is a day that it still works on. Errors:
// validation_failed.
func typedSecret(c *ui.Call) (typed connection.NewSecret, err error) {
	typed.Secret = strings.TrimSpace(c.Value("clientSecret"))
	day := strings.TrimSpace(c.Value("expiresAt"))
	if day == "" {
		return typed, nil
	}
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return typed, doorward.Invalid("/expiresAt", "invalid", "Write a day such as 2031-05-06.")
	}
	if typed.Secret == "" {
		return typed, doorward.Invalid("/clientSecret", "required", "Copy the secret from the provider.")
	}
	at = at.AddDate(0, 0, 1)
	typed.ExpiresAt = &at
	return typed, nil
}

func (h *hosted) deleteSetupSecret(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixClientSecret)
	if err == nil {
		err = h.app.Connections.DeleteSecret(ctx, c.Caller, s.Connection.ID, id)
	}
	return toStep(c, "provider", "setup-secret-deleted"), err
}

// setupDomains is the step at the name servers of the domains.
type setupDomains struct {
	setupStep
	setupPages
	Shown []setupDomain
}

// setupDomain is a domain with its record.
type setupDomain struct {
	doorward.Domain
	Record ui.ProvingRecord
	IsOpen bool // the record is shown, not folded
	// Looked: a look has just not found the record. Seen are the records that were found in its place.
	Looked bool
	Seen   []string
}

// StateKey is the key of the message about the state of the domain.
func (d setupDomain) StateKey() string { return "sso.proof." + string(d.Status) }

// IsProved reports whether the domain is proved.
func (d setupDomain) IsProved() bool { return d.Status == doorward.DomainVerified }

// domainsPerPage is as many as fit on a page with one record open.
const domainsPerPage = 4

func (h *hosted) showSetupDomains(_ context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	v := s.view("domains")
	body := setupDomains{setupStep: s}
	looked := slices.IndexFunc(s.Domains, func(d doorward.Domain) bool { return d.ID == c.R.PathValue("id") })
	shown, pages := pageOf(c, "domains", s.Domains, domainsPerPage, looked)
	opened := slices.IndexFunc(shown, func(d doorward.Domain) bool { return d.Status != doorward.DomainVerified })
	for i, d := range shown {
		one := setupDomain{Domain: d, Record: ui.RecordOf(d), IsOpen: i == opened && looked < 0}
		if d.ID == c.R.PathValue("id") {
			one.IsOpen, one.Looked, one.Seen = true, c.RefusalCode() == doorward.CodeDomainNotProved, c.SeenRecords()
		}
		body.Shown = append(body.Shown, one)
	}
	body.setupPages = pages
	v.Body, v.Scripts = body, copyScript
	return v, nil
}

// verifySetupDomain says on the page that the name servers don't answer: the page of that error is about
// providers.
func (h *hosted) verifySetupDomain(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return ui.View{}, err
	}
	_, err = h.app.Domains.Verify(ctx, c.Caller, id)
	if doorward.HasCode(err, doorward.CodeProviderUnavailable) {
		v, err := h.showSetupDomains(ctx, c, s)
		v.Note, v.Status = "sso.dns.silent", front.Status(doorward.CodeProviderUnavailable)
		return v, err
	}
	return toStep(c, "domains", "setup-proved"), err
}

// setupTest is the step with the test.
type setupTest struct {
	setupStep
	Result *ui.TestResult // of the test that the address names
}

// CanBegin reports whether nothing is missing for a test.
func (s setupTest) CanBegin() bool { return ui.CanBeTested(s.Connection) }

// TestedAt is when a test of what the connection has now has passed; nil: none has.
func (s setupTest) TestedAt() *time.Time {
	edited, _ := s.Connection.ToTest()
	return edited.TestedAt
}

// showSetupTest shows the test that the query names, for a day.
func (h *hosted) showSetupTest(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	v := s.view("test")
	v.FormSignsOn = true // its form leads to the provider
	body := setupTest{setupStep: s}
	if id := c.R.URL.Query().Get("test"); id != "" {
		found, err := h.app.Connections.Test(ctx, c.Caller, s.Connection.ID, id)
		if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
			return v, err
		}
		if err == nil {
			result := ui.NewTestResult(found, h.app.Connections.StartURL(s.Connection.ID), s.Connection.Product)
			body.Result = &result
		}
	}
	v.Body = body
	return v, nil
}

// beginSetupTest leads to the provider, and back to the page of the test.
func (h *hosted) beginSetupTest(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	begun, err := h.app.SignOn.Test(ctx, c.Caller, s.Connection.ID)
	if doorward.HasCode(err, doorward.CodeProviderUnavailable) {
		v, err := h.showSetupTest(ctx, c, s)
		v.Note, v.Status = "setup.silent", front.Status(doorward.CodeProviderUnavailable)
		return v, err
	}
	return c.Redirect(ui.NewTestResult(begun, h.app.Connections.StartURL(s.Connection.ID), s.Connection.Product).URL), err
}

// setupProtocol is the step with what was tested, what has failed, and why.
type setupProtocol struct {
	setupStep
	setupPages
	Attempts []ui.Attempt
}

const (
	attemptsPerPage = 5   // some have sentences about what to do
	attemptsAtOnce  = 200 // are read
)

func (h *hosted) showSetupProtocol(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	v := s.view("protocol")
	body := setupProtocol{setupStep: s}
	all, err := h.setupAttempts(ctx, c, s.Connection)
	body.Attempts, body.setupPages = pageOf(c, "protocol", all, attemptsPerPage, 0)
	v.Body = body
	return v, err
}

// setupAttempts returns the protocol, which has the last 200 entries of each kind: tests, and what has failed.
// Who signs in is none of the link's business.
func (h *hosted) setupAttempts(ctx context.Context, c *ui.Call, of connection.Shown) (all []ui.Attempt, err error) {
	for window := (doorward.Window{Limit: attemptsAtOnce}); ; {
		found, err := h.app.Connections.Attempts(ctx, c.Caller, of.ID, window)
		if err != nil {
			return nil, err
		}
		for _, a := range found.Items {
			hasFailed := a.Outcome == doorward.AttemptRefused || a.Outcome == doorward.AttemptUnavailable
			if hasFailed || a.Kind == doorward.AttemptTest {
				all = append(all, ui.Attempt{Attempt: a, Product: of.Product})
			}
		}
		if found.Next == nil {
			return all, nil
		}
		window.After = *found.Next
	}
}

// setupPages are the links to the pages of a list. Without another page both are empty.
type setupPages struct{ Prev, Next string }

// pageParameter is the query parameter with the number of a page of a list, from 1.
const pageParameter = "page"

// pageOf returns the items of the page of a step that the query asks for, or else of the page with the item at the
// index; that of the first page if the index is negative.
func pageOf[T any](c *ui.Call, step string, all []T, size, index int) (shown []T, p setupPages) {
	last := max(0, len(all)-1) / size
	n := max(0, index) / size
	if asked, err := strconv.Atoi(c.R.URL.Query().Get(pageParameter)); err == nil {
		n = min(max(0, asked-1), last)
	}
	link := func(n int) string {
		return c.Site().BasePath() + pathOfStep(step) + "?" + url.Values{pageParameter: {strconv.Itoa(n + 1)}}.Encode()
	}
	if n > 0 {
		p.Prev = link(n - 1)
	}
	if n < last {
		p.Next = link(n + 1)
	}
	return all[min(len(all), n*size):min(len(all), (n+1)*size)], p
}
