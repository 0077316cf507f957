package hosted

import (
	"context"
	"net/url"
	"slices"
	"strconv"
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
	SAML    ui.SAMLForm
	Version string // that the form is based on
	Keys    []ui.PublishedKey
	Again   bool // the form was refused, and has to get the client secret once more: no page repeats it
	now     time.Time
}

// UsesKeys reports whether Doorward authenticates by a key of its own, by what is saved.
func (s setupProvider) UsesKeys() bool { return s.usesKeys() }

// TakesSecret reports whether another client secret can be added. The form has the field even if a key is chosen: its
// style sheet shows it with the choice of a secret.
func (s setupProvider) TakesSecret() bool {
	return s.Connection.UsableSecrets() < doorward.ConnectionSecretsMax
}

// Missing are the keys of the labels of what is missing for a test, once something of it is saved.
func (s setupProvider) Missing() []string {
	edited, _ := s.Connection.ToTest()
	if edited.Issuer == "" && edited.ClientID == "" && edited.SubjectFrom == "" && len(s.Connection.Secrets) == 0 {
		return nil
	}
	return ui.MissingForTest(s.Connection)
}

// Said is what the provider's metadata say that are saved; nil: nothing is known, or nobody signs in by SAML.
func (s setupProvider) Said() *ui.SAMLProvider {
	said := s.Connection.Provider
	if s.Connection.Pending != nil {
		said = s.Connection.PendingProvider
	}
	if said.EntityID == "" {
		return nil
	}
	return ui.NewSAMLProvider(said, s.now)
}

// SecretHint is the key of the hint at the field of the client secret.
func (s setupProvider) SecretHint() string {
	if s.Again {
		return "setup.secret.again"
	}
	return "sso.secret.hint"
}

// HasEnded reports whether the instant has passed.
func (s setupProvider) HasEnded(at time.Time) bool { return !s.now.Before(at) }

func (h *hosted) showSetupProvider(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	v := s.view("provider")
	edited, _ := s.Connection.ToTest()
	body := setupProvider{setupStep: s, Form: ui.ParameterFormOf(c, edited), SAML: ui.SAMLFormOf(c, s.Connection.Connection), Version: s.Connection.Version(), now: c.Now()}
	if sent := c.Value("version"); sent != "" && c.RefusalCode() != doorward.CodePreconditionFailed {
		body.Version = sent
	}
	id := s.Connection.ID
	body.Guide = ui.GuideOf(h.app.Connections, s.Connection.Connection)
	body.Again = c.WasRefused() && c.Value("clientSecret") != ""
	if c.WasRefused() && c.Value(secretSaved) != "" {
		v.Note = "setup.secret.saved"
	}
	var err error
	if s.usesKeys() {
		body.Keys, err = h.publishedKeys(ctx, id)
	}
	v.Body, v.Scripts = body, copyScript
	return v, err
}

func (h *hosted) publishedKeys(ctx context.Context, conID string) ([]ui.PublishedKey, error) {
	keys, err := h.app.Connections.Keys(ctx, conID)
	return ui.PublishedKeys(keys), err
}

// secretSaved is the name under which a refused form says that its client secret was saved.
const secretSaved = "secretSaved"

// saveSetupProvider saves the client secret, if one was typed, and then what the connection signs people in by. A form
// with a faulty issuer so loses no secret, which no page repeats.
func (h *hosted) saveSetupProvider(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	if err := h.saveTypedSecret(ctx, c, s); err != nil {
		return ui.View{}, err
	}
	change := connection.Change{Versions: []string{c.Value("version")}}
	change.Issuer, change.ClientID, change.ClientAuth, change.EmailFrom = ui.TypedParameters(c)
	return h.editBySetup(ctx, c, s, change)
}

// saveSetupSAML saves what a connection of SAML signs people in by.
func (h *hosted) saveSetupSAML(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	typed, err := ui.TypedSAML(c, s.Connection.Connection)
	if err != nil {
		return ui.View{}, err
	}
	return h.editBySetup(ctx, c, s, connection.Change{Versions: []string{c.Value("version")}, Draft: typed.Draft()})
}

// editBySetup changes the connection, and leads to the step that comes next.
func (h *hosted) editBySetup(ctx context.Context, c *ui.Call, s setupStep, change connection.Change) (ui.View, error) {
	after, _, err := h.app.Connections.Edit(ctx, c.Caller, s.Connection.ID, change)
	switch {
	case err != nil:
		return ui.View{}, err
	case !ui.CanBeTested(after):
		return toStep(c, "provider", "setup-incomplete"), nil
	case len(s.Domains) == 0: // the step of the domains would have nothing to do
		return toStep(c, "test", "setup-saved-test"), nil
	}
	return toStep(c, "domains", "setup-saved"), nil
}

// saveTypedSecret adds the client secret of the form and takes it out of the form, whose version becomes that of the
// connection with it. It does nothing for a form that chooses a key, or that somebody else's change has overtaken.
// Errors: those of clientsecret.Secrets.Add.
func (h *hosted) saveTypedSecret(ctx context.Context, c *ui.Call, s setupStep) error {
	if c.Value("clientAuth") == string(doorward.PrivateKeyJWT) || c.Value("version") != s.Connection.Version() {
		return nil
	}
	secret, err := ui.TypedSecret(c)
	if err != nil || secret.Secret == "" && secret.ExpiresAt == nil {
		return err
	}
	has, err := h.app.Connections.HasSecret(ctx, c.Caller, s.Connection.ID, secret.Secret, secret.ExpiresAt)
	if err == nil && !has {
		_, err = h.app.ClientSecrets.Add(ctx, c.Caller, s.Connection.ID, secret)
	}
	if err != nil {
		return err
	}
	now, err := h.app.Connections.Connection(ctx, c.Caller, s.Connection.ID)
	c.Preset("version", now.Version())
	c.Preset("clientSecret", "")
	c.Preset("expiresAt", "")
	c.Preset(secretSaved, "1")
	return err
}

func (h *hosted) deleteSetupSecret(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixClientSecret)
	if err == nil {
		err = h.app.ClientSecrets.Delete(ctx, c.Caller, s.Connection.ID, id)
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
	Result *ui.TestResult // of the test that the address names, or else of the newest; nil: there is none
}

// Missing are the keys of the labels of what is missing for a test.
func (s setupTest) Missing() []string { return ui.MissingForTest(s.Connection) }

// TestedAt is when a test of what the connection has now has passed; nil: none has.
func (s setupTest) TestedAt() *time.Time {
	edited, _ := s.Connection.ToTest()
	return edited.TestedAt
}

// showSetupTest shows the test that the query names, or else the one that was made last: a browser that the provider
// doesn't lead back has no other way to it. A test is kept for a day.
func (h *hosted) showSetupTest(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	v := s.view("test")
	v.FormSignsOn = true // its form leads to the provider
	v.Scripts = copyScript
	body := setupTest{setupStep: s}
	v.Body = body
	id := c.R.URL.Query().Get("test")
	if id != "" && !front.IsID(id, doorward.PrefixTest) { // mistyped
		return v, nil
	}
	found, err := h.app.Tests.Show(ctx, c.Caller, s.Connection.ID, id)
	if doorward.HasCode(err, doorward.CodeNotFound) { // none yet, or a day later it is gone
		return v, nil
	}
	result := ui.NewTestResult(found, s.Connection.Connection, ui.GuideOf(h.app.Connections, s.Connection.Connection), s.Link.MakerEmail)
	body.Result = &result
	v.Body = body
	return v, err
}

// beginSetupTest leads to the provider, and back to the page of the test.
func (h *hosted) beginSetupTest(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	begun, err := h.app.Tests.Make(ctx, c.Caller, s.Connection.ID)
	return c.Redirect(h.app.Tests.URL(begun)), err
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
	all, err := h.setupAttempts(ctx, c, s.Connection, s.Link.MakerEmail)
	body.Attempts, body.setupPages = pageOf(c, "protocol", all, attemptsPerPage, 0)
	v.Body = body
	return v, err
}

// setupAttempts returns the protocol, which has the last 200 entries of each kind: tests, and what has failed.
// Who signs in is none of the link's business.
func (h *hosted) setupAttempts(ctx context.Context, c *ui.Call, of connection.Shown, maker string) (all []ui.Attempt, err error) {
	for window := (doorward.Window{Limit: attemptsAtOnce}); ; {
		found, err := h.app.Connections.Attempts(ctx, c.Caller, of.ID, window)
		if err != nil {
			return nil, err
		}
		for _, a := range found.Items {
			hasFailed := a.Outcome == doorward.AttemptRefused || a.Outcome == doorward.AttemptUnavailable
			if hasFailed || a.Kind == doorward.AttemptTest {
				all = append(all, ui.Attempt{Attempt: a, Type: of.Type, Product: of.Product, Maker: maker})
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
