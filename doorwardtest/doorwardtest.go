// Package doorwardtest starts a real Doorward inside a test.
//
//	func TestMyService(t *testing.T) {
//		server := doorwardtest.Start(t)
//		acme := server.Tenant("Acme")
//		ann := acme.Join("ann@acme.example", "USER")
//		req.AddCookie(&http.Cookie{Name: "JSESSIONID", Value: ann.Login()})
//	}
//
// It is the production server on a free loopback port, with SQLite in a temporary
// folder, cheap password hashes, no limits on logins, a mailbox in memory instead
// of a mail server, and a clock that the test can move. Beyond HTTP a test can do
// what an operator can do at the command line.
package doorwardtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"regexp"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/internal/returnto"
	"github.com/doorward/doorward/internal/siteurl"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/web/dev"
)

// Password is everybody's password after Join. It passes the password rules.
const Password = "four quiet green llamas"

// OperatorAddress gets the mails to the operator.
const OperatorAddress = "operator@door.example"

// Option changes how the server is started.
type Option func(*node.Config)

// Database uses another database, "sqlite:PATH" or "postgres://…", for example
// so that several servers are nodes on one.
func Database(dsn string) Option { return func(c *node.Config) { c.Database = dsn } }

// BaseURL sets the address as seen from outside. The default is the address that the
// server listens on.
func BaseURL(address string) Option {
	return func(c *node.Config) {
		u, err := siteurl.Parse(address)
		if err != nil {
			panic("doorwardtest: " + err.Error())
		}
		c.BaseURL = u
	}
}

// ReturnTo allows these addresses as redirect targets after signing in, as --return-to
// does.
func ReturnTo(addresses ...string) Option {
	return func(c *node.Config) {
		for _, address := range addresses {
			place, err := returnto.Parse(address)
			if err != nil {
				panic("doorwardtest: " + err.Error())
			}
			c.ReturnTo = append(c.ReturnTo, place)
		}
	}
}

// AllowedOrigins lets pages of these origins use the API, as --allowed-origins does.
func AllowedOrigins(origins ...string) Option {
	return func(c *node.Config) { c.AllowedOrigins = origins }
}

// Home sets the redirect target after signing in, as --home does: a path below the base
// URL, or an address that ReturnTo allows.
func Home(address string) Option { return func(c *node.Config) { c.Home = address } }

// CookieName sets the name of the session cookie, as --cookie-name does.
func CookieName(name string) Option { return func(c *node.Config) { c.CookieName = name } }

// Audiences has the server sign assertions for these audiences, the first by default.
func Audiences(urls ...string) Option { return func(c *node.Config) { c.Audiences = urls } }

// SessionLimits sets the limits of sessions. The default is the product's.
func SessionLimits(l doorward.SessionLimits) Option {
	return func(c *node.Config) { c.Sessions = l }
}

// LoginLimits enables the limits on failed logins, as in production, with these numbers
// per account and per client address.
func LoginLimits(perAccount, perIP int) Option {
	return func(c *node.Config) { c.Attempts = proof.Limits{PerAccount: perAccount, PerIP: perIP} }
}

// TrustLoopback makes the server trust X-Forwarded-For from loopback, so that a
// test can act as several clients.
func TrustLoopback() Option {
	return func(c *node.Config) {
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
}

// Mail sends real mail, to a destination as in --smtp.
func Mail(destination string) Option {
	return func(c *node.Config) {
		t, err := smtp.Open(destination, "Doorward <no-reply@localhost>", "", c.Log)
		if err != nil {
			panic("doorwardtest: " + err.Error())
		}
		c.Transport = t
	}
}

// NodeOf makes the server a further node on the database of another one. The two share one
// mailbox, since any node may send a mail.
func NodeOf(other *Server) Option {
	return func(c *node.Config) { c.Database, c.Transport = other.database, other.mailbox }
}

// Log writes the server's log to w. The default is no log.
func Log(w io.Writer) Option {
	return func(c *node.Config) { c.Log = slog.New(slog.NewJSONHandler(w, nil)) }
}

// Server is a running Doorward.
type Server struct {
	URL  string     // its address, without a slash at the end
	Node *node.Node // the running node

	tb       testing.TB
	database string // as in --database
	cookie   string // name of the session cookie
	mailbox  *dev.Mailbox
	clock    *clock
	stop     func()
}

// clock is the real clock plus an offset.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// Start starts a server that ends with the test.
func Start(tb testing.TB, options ...Option) *Server {
	tb.Helper()
	s := &Server{tb: tb, mailbox: &dev.Mailbox{}, clock: &clock{}}
	cfg := node.Defaults()
	cfg.Database, cfg.Listen = "", "localhost:0"
	cfg.OperatorAddress = OperatorAddress
	cfg.Transport, cfg.Clock, cfg.Log, cfg.Version = s.mailbox, s.clock.now, slog.New(slog.DiscardHandler), "test"
	cfg.Docs = fstest.MapFS{"README.md": {Data: []byte("# Documentation\n")}}
	cfg.Hash.MemoryKiB, cfg.Hash.Time = 1024, 1
	cfg.Attempts, cfg.ConnectionsPerClient = proof.Limits{}, 0
	for _, set := range options {
		set(&cfg)
	}
	if cfg.Database == "" {
		cfg.Database = dbtest.SQLite(tb)
	}
	if shared, ok := cfg.Transport.(*dev.Mailbox); ok {
		s.mailbox = shared
	}
	s.database, s.cookie = cfg.Database, cfg.CookieName
	s.run(cfg)
	return s
}

// StartNodes starts n servers on one database, with one mailbox.
func StartNodes(tb testing.TB, n int, database string, options ...Option) []*Server {
	tb.Helper()
	all := []*Server{Start(tb, append([]Option{Database(database)}, options...)...)}
	for len(all) < n {
		all = append(all, Start(tb, append([]Option{NodeOf(all[0])}, options...)...))
	}
	return all
}

func (s *Server) run(cfg node.Config) {
	s.tb.Helper()
	n, err := node.Start(context.Background(), cfg)
	if err != nil {
		s.tb.Fatalf("doorwardtest: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	s.Node, s.URL = n, "http://"+n.Address()
	if cfg.TLS != nil {
		s.URL = "https://" + n.Address()
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.tb.Errorf("doorwardtest: the server ended with: %v", err)
		}
	})
	s.tb.Cleanup(s.stop)
}

// Repeat calls send, and again while it returns 503 for want of CPU, see Shortages. It returns the
// last status.
func (s *Server) Repeat(send func() (status int)) (status int) {
	for refusals, deadline := s.Shortages(), waittest.Deadline(); ; {
		status, before := send(), refusals
		if refusals = s.Shortages(); status != http.StatusServiceUnavailable || refusals == before || time.Now().After(deadline) {
			return status
		}
		for range 100 { // a database that is gone for good lets the lease lapse only once
			if s.Node.App.Lease.Valid() {
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// Shortages counts what makes a server without CPU answer 503: its lease has lapsed, a password
// has waited too long to be hashed, or a request took too long.
func (s *Server) Shortages() int64 {
	return s.Node.App.Lease.Lapses() + int64(s.Node.App.Hashing().Refused) + s.Node.TimedOut()
}

// Stop ends the server before the test does, as SIGTERM would.
func (s *Server) Stop() { s.stop() }

// Advance moves the server's clock forward. Sessions and invitations expire as if
// the time had passed.
func (s *Server) Advance(d time.Duration) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	s.clock.offset += d
}

// ApplyModel replaces the platform's model by the text of another one, as "doorward model apply" does:
// its actions and resource types, the roles that grant them, policies and entities.
func (s *Server) ApplyModel(text string) {
	s.tb.Helper()
	const force = false
	if _, err := s.Node.App.Models.Apply(context.Background(), doorward.OperatorAtTerminal(), text, nil, force); err != nil {
		s.tb.Fatalf("doorwardtest: the model: %v", err)
	}
}

// CreateServiceKey returns a new service key that may do these things, such as "access.evaluate", as
// "doorward key create-service" makes it.
func (s *Server) CreateServiceKey(may ...string) string {
	s.tb.Helper()
	made, err := s.Node.App.Keys.CreateService(context.Background(), doorward.OperatorAtTerminal(), key.ServiceDraft{Name: "test", May: may})
	if err != nil {
		s.tb.Fatalf("doorwardtest: the service key: %v", err)
	}
	return made.Reveal()
}

// Client returns an HTTP client with its own cookies, like a browser, that follows
// no redirects.
func (s *Server) Client() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.tb.Fatal(err)
	}
	return &http.Client{
		Jar: jar, Timeout: waittest.Limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Code delivers due mail and returns the code of the newest mail to the address; mails
// without a code, such as notices, are skipped.
func (s *Server) Code(to string) string {
	s.tb.Helper()
	s.Node.App.Inbox.RecordPending(context.Background())
	if err := s.Node.App.Mail.Deliver(context.Background()); err != nil {
		s.tb.Fatalf("doorwardtest: deliver mail: %v", err)
	}
	code := ""
	waittest.Until(s.tb, "a mail with a code to "+to, func() bool { // the server's own worker may be sending it
		code = s.newestCode(to)
		return code != ""
	})
	return code
}

// newestCode returns the newest code mailed to the address, or "" as long as mails are queued.
func (s *Server) newestCode(to string) string {
	if v, err := s.Node.DB.Read().Vitals(context.Background(), s.Node.DB.Now()); err != nil || v.MailsQueued > 0 {
		return ""
	}
	for _, mail := range s.mailbox.Mails(to) {
		if code := codeLine.FindString(mail.Text); code != "" {
			return code
		}
	}
	return ""
}

// Mails returns the mails sent to an address so far, or all for the empty one,
// the newest first.
func (s *Server) Mails(to string) []smtp.Message { return s.mailbox.Mails(to) }

// codeLine matches the code in a mail, alone on its line.
var codeLine = regexp.MustCompile(`(?m)^[A-Za-z0-9_-]{43}$`)

// Tenant is a tenant with an OWNER.
type Tenant struct {
	ID    string
	Name  string
	Owner *Person

	server *Server
}

// Tenant creates a tenant. Its OWNER is owner@NAME.example, in lower case and with hyphens in
// place of other characters than letters and digits.
func (s *Server) Tenant(name string) *Tenant {
	s.tb.Helper()
	host := nonHost.ReplaceAllString(name, "-")
	created, err := s.Node.App.Tenants.Create(context.Background(), doorward.OperatorAtTerminal(), tenant.Draft{Name: name, OwnerEmail: "owner@" + host + ".example"})
	if err != nil {
		s.tb.Fatalf("doorwardtest: tenant: %v", err)
	}
	t := &Tenant{ID: created.Tenant.ID, Name: name, server: s}
	t.Owner = t.complete(created.Invitation.Email, created.Token.Reveal())
	return t
}

var nonHost = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Person is somebody with an account.
type Person struct {
	ID    string
	Email string

	server *Server
	token  string
}

// Join invites a new person with the role, completes the registration with
// Password, signs the person in, and returns the person.
func (t *Tenant) Join(email, role string) *Person {
	t.server.tb.Helper()
	status, body, again := t.Owner.insist("/api/v2/auth/invite", map[string]any{"email": email, "role": role})
	if status != http.StatusCreated && !(again && status == http.StatusConflict) {
		t.server.tb.Fatalf("doorwardtest: invite %s: %d %s", email, status, body)
	}
	return t.complete(email, t.server.Code(email))
}

func (t *Tenant) complete(email, code string) *Person {
	t.server.tb.Helper()
	p := &Person{Email: email, server: t.server}
	status, body, again := p.insist("/api/v2/auth/complete-registration", map[string]any{"token": code, "password": Password, "confirmPassword": Password})
	if status != http.StatusOK && !(again && status == http.StatusGone) {
		t.server.tb.Fatalf("doorwardtest: complete registration of %s: %d %s", email, status, body)
	}
	p.Login()
	return p
}

// Login signs the person in again and returns the session's token, which Post, Get and Do
// send from then on.
func (p *Person) Login() string {
	p.server.tb.Helper()
	p.token = ""
	credentials := map[string]any{"email": p.Email, "password": Password}
	status, body, _ := p.insist("/api/v2/auth/login", credentials)
	var answer struct {
		Token string
		User  struct{ ID string }
	}
	if status != http.StatusOK || json.Unmarshal(body, &answer) != nil {
		p.server.tb.Fatalf("doorwardtest: login of %s: %d %s", p.Email, status, body)
	}
	p.token, p.ID = answer.Token, answer.User.ID
	return p.token
}

// insist is Post, again after any 503: on a busy machine a request may run out of time, which no
// counter tells. If again is true, an earlier attempt may have been carried out.
func (p *Person) insist(path string, body any) (status int, answer []byte, again bool) {
	p.server.tb.Helper()
	for deadline := waittest.Deadline(); ; again = true {
		status, answer = p.Post(path, body)
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return status, answer, again
		}
	}
}

// Token is the token of the session that the person last opened.
func (p *Person) Token() string { return p.token }

// Post sends body as JSON with the person's session and returns the answer.
func (p *Person) Post(path string, body any) (status int, answer []byte) {
	p.server.tb.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.server.tb.Fatal(err)
	}
	return p.Do(http.MethodPost, path, text)
}

// Get sends a GET with the person's session and returns the answer.
func (p *Person) Get(path string) (status int, answer []byte) {
	p.server.tb.Helper()
	return p.Do(http.MethodGet, path, nil)
}

// Do sends a request with the person's session; a body is sent as JSON. See Server.Repeat.
func (p *Person) Do(method, path string, body []byte) (status int, answer []byte) {
	p.server.tb.Helper()
	status = p.server.Repeat(func() (status int) {
		status, answer = p.send(method, path, body)
		return status
	})
	return status, answer
}

func (p *Person) send(method, path string, body []byte) (status int, answer []byte) {
	p.server.tb.Helper()
	req, err := http.NewRequest(method, p.server.URL+path, bytes.NewReader(body))
	if err != nil {
		p.server.tb.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.token != "" {
		req.Header.Set("Cookie", p.server.cookie+"="+p.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.server.tb.Fatalf("doorwardtest: %v", err)
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		p.server.tb.Fatalf("doorwardtest: %v", err)
	}
	return res.StatusCode, answer
}
