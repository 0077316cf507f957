package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/returnto"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/tlscert"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// settings are the values of all flags that settings come from.
type settings struct {
	from       origins
	configFile string // the YAML file; empty without one
	// asNode: a --config or a setting was given that all nodes share, so the settings
	// are those of a node, and not of a command that was told where the database is.
	asNode bool

	config, database, logFormat, logLevel string

	baseURL, smtp, mailFrom string
	brandName, brandAccent  string
	brandLogo               string

	listen, adminListen string
	tlsCert, tlsKey     string
	acmeDir, acmeEmail  string
	acmeURL             string
	proxies             []string
	returnTo            []string
	home                string
	traceOTLP           string
	traceHeader         string
	traceSample         float64
	migrate             bool

	sessionIdle, sessionAbsolute time.Duration
	resendWait, tenantHold       time.Duration
	sessionLimit                 int
	lease                        time.Duration
	inMemory                     int
	minLength                    int
	passwordList                 string
	memoryKiB, hashTime          uint32
	limitAccount, limitIP        int
	limitConnections             int
	clockOffset                  time.Duration
	changeShared                 bool
}

// The groups of settings; a command takes those that mean something to it.
func (s *settings) base(f *pflag.FlagSet) {
	s.place(f)
	f.StringVar(&s.database, "database", "sqlite:doorward.db", "`URL` of the database, sqlite:PATH, or postgres://USER:PASSWORD@HOST/NAME with one or more hosts")
	f.StringVar(&s.logFormat, "log-format", "", "json or text (default text on a terminal, else json)")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	f.DurationVar(&s.clockOffset, "clock-offset", 0, "move the clock; for tests of expiry")
	_ = f.MarkHidden("clock-offset")
}

func (s *settings) place(f *pflag.FlagSet) {
	f.StringVar(&s.config, "config", "", "YAML `file` with settings")
	f.StringVar(&s.baseURL, "base-url", "", "`URL` that people open, a path allowed (default http:// and --listen; https:// with --tls-cert)")
	f.StringVar(&s.listen, "listen", "localhost:8080", "`address` HOST:PORT to serve on")
	f.StringVar(&s.tlsCert, "tls-cert", "", "PEM `file` with the TLS certificate and its chain; a new one is taken over within seconds (default plain HTTP)")
	f.StringVar(&s.tlsKey, "tls-key", "", "PEM `file` with its private key")
	f.StringVar(&s.acmeDir, "acme-dir", "", "`folder` for a TLS certificate that is ordered from an ACME authority for the name in --base-url, whose terms you agree to")
	f.StringVar(&s.acmeURL, "acme-url", tlscert.LetsEncrypt, "directory `URL` of the ACME authority")
	f.StringVar(&s.acmeEmail, "acme-email", "", "`address` that the ACME authority may write to")
}

// addressed are the settings of place but for --config.
var addressed = []string{"base-url", "listen", "tls-cert", "tls-key", "acme-dir", "acme-url", "acme-email"}

func (s *settings) mail(f *pflag.FlagSet) {
	f.StringVar(&s.smtp, "smtp", "log:", "`URL` of the mail server, smtp://user:pass@host:port or smtps://…; or file:DIR, or log:")
	f.StringVar(&s.mailFrom, "mail-from", "Doorward <no-reply@localhost>", "`sender` of mails")
}

func (s *settings) server(f *pflag.FlagSet) {
	f.StringVar(&s.adminListen, "admin-listen", "", "`address` HOST:PORT for /healthz, /readyz and /metrics (default on the main one, /metrics there for loopback callers only)")
	f.StringSliceVar(&s.proxies, "trusted-proxies", nil, "`CIDRs` whose X-Forwarded-For is believed")
	f.StringSliceVar(&s.returnTo, "return-to", nil, "`addresses` outside --base-url that people may be led to after signing in, like https://app.example.com or https://app.example.com/inbox/")
	f.StringVar(&s.home, "home", "", "`URL` where people land after signing in unless asked to return elsewhere: a path below --base-url, or an address that --return-to allows (default /account)")
	f.StringVar(&s.traceOTLP, "trace-otlp", "", "`URL` of an OpenTelemetry collector that takes OTLP over HTTP, like http://localhost:4318 (default no tracing)")
	f.StringVar(&s.traceHeader, "trace-header", "", "`header` NAME: VALUE that the collector wants for authentication")
	f.Float64Var(&s.traceSample, "trace-sample", 0.1, "part of the requests that is traced, `0..1`; of those from --trusted-proxies their traceparent decides")
	f.IntVar(&s.limitConnections, "limit-connections-address", 1000, "connections that a client address may have open, those in --trusted-proxies aside (0: no limit)")
	f.StringVar(&s.brandName, "brand-name", "Doorward", "`name` that the pages show")
	f.StringVar(&s.brandAccent, "brand-accent", "", "`colour` of the pages' buttons and links, like #3b4ccf; darker or lighter where it could not be read")
	f.StringVar(&s.brandLogo, "brand-logo", "", "PNG, JPEG or WebP `file` that pages and mails show in place of the name")
}

func (s *settings) policy(f *pflag.FlagSet) {
	f.DurationVar(&s.sessionIdle, "session-idle", time.Hour, "a session ends when unused for this long")
	f.DurationVar(&s.sessionAbsolute, "session-absolute", 24*time.Hour, "a session ends after this long whatever its use")
	f.IntVar(&s.sessionLimit, "session-limit", 10, "sessions per user; beyond it the oldest ends (0: no limit)")
	f.DurationVar(&s.lease, "revocation-lease", time.Second, "how long a node may answer from memory without hearing from the database, 1s to 2s")
	f.IntVar(&s.inMemory, "sessions-in-memory", 1_000_000, "most sessions kept in memory; the database is behind them")
	f.IntVar(&s.minLength, "password-min-length", 12, "shortest password, in characters")
	f.StringVar(&s.passwordList, "password-list", "", "`file` of refused passwords, one a line (default the bundled list)")
	f.Uint32Var(&s.memoryKiB, "password-memory-kib", argon.Default.MemoryKiB, "memory of one Argon2id hash, in `KiB`")
	f.Uint32Var(&s.hashTime, "password-time", argon.Default.Time, "`passes` of one Argon2id hash")
	f.IntVar(&s.limitAccount, "limit-login-account", 5, "failed logins per address before a delay (0: no limit)")
	f.IntVar(&s.limitIP, "limit-login-ip", 30, "failed logins per client address in ten minutes (0: no limit)")
	f.DurationVar(&s.resendWait, "invite-resend-wait", time.Minute, "time between two mails of one invitation (0s: none)")
	f.DurationVar(&s.tenantHold, "tenant-hold", 14*24*time.Hour, "time between the closing of a tenant and the destruction of its data")
	f.BoolVar(&s.changeShared, "change-shared", false, "start beside nodes with other session limits or another tenant hold, to change them node by node")
	for name, d := range map[string]time.Duration{"session-idle": s.sessionIdle, "invite-resend-wait": s.resendWait, "tenant-hold": s.tenantHold, "session-absolute": s.sessionAbsolute} {
		f.Lookup(name).DefValue = short(d) // for --help
	}
}

// newSettings returns the defaults, also for groups that a command doesn't
// take.
func newSettings() *settings {
	s := &settings{}
	s.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	return s
}

func (s *settings) register(f *pflag.FlagSet) {
	s.base(f)
	s.mail(f)
	s.server(f)
	s.policy(f)
	f.BoolVar(&s.migrate, "migrate", true, "bring the schema up to date first; =false refuses another one instead")
}

// settingNames are the names that the environment and the file may use.
func settingNames() []string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(settings).register(f)
	var names []string
	f.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// read gives the settings their values and makes of them what a node is told.
func (s *settings) read(cmd *cobra.Command) (cfg node.Config, err error) {
	if s.from, err = resolve(cmd); err != nil {
		return cfg, err
	}
	s.configFile = cmd.Flag("config").Value.String()
	for _, name := range append([]string{"config"}, sharedStrictly...) {
		s.asNode = s.asNode || cmd.Flags().Changed(name) // by flag, variable or file
	}
	return s.nodeConfig()
}

// sharedStrictly are the settings with which a node doesn't start beside others that
// have them otherwise.
var sharedStrictly = []string{"session-idle", "session-absolute", "session-limit", "tenant-hold"}

// readToServe is read for those who serve, or check that it can be done: it
// reads the TLS certificate, which other commands may have no right to.
func (s *settings) readToServe(cmd *cobra.Command) (node.Config, error) {
	cfg, err := s.read(cmd)
	if err == nil && cfg.TLS != nil {
		err = s.loadTLS(cfg.TLS)
	}
	return cfg, err
}

// nodeConfig checks the settings on the way.
func (s *settings) nodeConfig() (node.Config, error) {
	cfg := node.Config{
		Database: s.database, Migrate: s.migrate, Listen: s.listen, AdminListen: s.adminListen, ConnectionsPerClient: s.limitConnections,
		Sessions:         doorward.SessionLimits{Idle: s.sessionIdle, Absolute: s.sessionAbsolute, PerUser: s.sessionLimit},
		SessionsInMemory: s.inMemory, Lease: s.lease,
		Attempts:          credential.Limits{PerAccount: s.limitAccount, PerIP: s.limitIP},
		PasswordMinLength: s.minLength, InviteResendWait: s.resendWait, TenantHold: s.tenantHold, ChangeShared: s.changeShared,
		Hash:        argon.Params{MemoryKiB: s.memoryKiB, Time: s.hashTime, Parallelism: 1},
		Announce:    time.Second,
		ClockOffset: s.clockOffset, Version: version(),
	}
	if err := s.openLog(&cfg); err != nil {
		return cfg, err
	}
	if err := faults(&cfg, s.checkDatabase, s.checkAddresses, s.readBaseURL); err != nil { // the others go by these
		return cfg, err
	}
	return cfg, faults(&cfg, s.openTLS, s.checkClock, s.readProxies, s.readPlaces, s.checkSessions, s.checkLimits,
		s.checkPasswords, s.readList, s.openMail, s.readBrand, s.readTrace)
}

// faults takes all steps and says on a line each what is wrong, so that nobody mends
// one setting after the other.
func faults(cfg *node.Config, steps ...func(*node.Config) error) error {
	var found []string
	for _, step := range steps {
		if err := step(cfg); err != nil {
			found = append(found, plain(err))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return badConfig("%s", strings.Join(found, "\n"))
}

// wrong is the refusal of a setting, by the name of the place it came from. It
// quotes no value: see quoted for those that are no secret.
func (s *settings) wrong(name, format string, args ...any) error {
	return badConfig("%s: %s", s.from.of(name), fmt.Sprintf(format, args...))
}

func (s *settings) quoted(name, value, format string, args ...any) error {
	return badConfig("%s %q: %s", s.from.of(name), value, fmt.Sprintf(format, args...))
}

func (s *settings) openLog(cfg *node.Config) error {
	var level slog.Level
	if level.UnmarshalText([]byte(s.logLevel)) != nil {
		return s.quoted("log-level", s.logLevel, "write debug, info, warn or error.")
	}
	options := &slog.HandlerOptions{Level: level}
	format := s.logFormat
	if format == "" {
		format = formatFor(os.Stderr)
	}
	switch format {
	case "json":
		cfg.Log = slog.New(slog.NewJSONHandler(os.Stderr, options))
	case "text":
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, options))
	default:
		return s.quoted("log-format", s.logFormat, "write json or text.")
	}
	return nil
}

func formatFor(f *os.File) string {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return "text"
	}
	return "json"
}

// checkDatabase must not repeat the value: it may hold a password anywhere.
func (s *settings) checkDatabase(*node.Config) error {
	if err := store.CheckDSN(s.database); err != nil {
		return s.wrong("database", "%s.", plain(err))
	}
	return nil
}

func (s *settings) checkAddresses(*node.Config) error {
	for _, a := range []struct{ name, value string }{{"listen", s.listen}, {"admin-listen", s.adminListen}} {
		if a.value == "" && a.name == "admin-listen" {
			continue
		}
		_, port, err := net.SplitHostPort(a.value)
		if err != nil {
			return s.quoted(a.name, a.value, "write HOST:PORT, for example localhost:8080.")
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return s.quoted(a.name, a.value, "the port is a number from 0 to 65535; 0 takes a free one.")
		}
	}
	if s.adminListen == s.listen && !strings.HasSuffix(s.listen, ":0") {
		return badConfig("%s and %s are the same address. Leave --admin-listen out to serve both there.", s.from.of("admin-listen"), s.from.of("listen"))
	}
	return nil
}

func (s *settings) readBaseURL(cfg *node.Config) error {
	if s.baseURL == "" {
		return nil
	}
	u, err := url.Parse(s.baseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return s.quoted("base-url", s.baseURL, "write the address that people open, for example https://auth.example.com.")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return s.wrong("base-url", "it may have a host and a path, nothing else.")
	}
	cfg.BaseURL = u
	return nil
}

// insecurePublicURL reports whether browsers would keep the session cookie to
// themselves: it is Secure, and the address is not.
func insecurePublicURL(u *url.URL) bool {
	return u != nil && u.Scheme == "http" && !front.IsLoopback(u.Hostname())
}

// checkClock: an installation that people use must not run on a wrong clock.
func (s *settings) checkClock(cfg *node.Config) error {
	host, _, _ := net.SplitHostPort(s.listen)
	if cfg.BaseURL != nil {
		host = cfg.BaseURL.Hostname()
	}
	if s.clockOffset != 0 && !front.IsLoopback(host) {
		return s.wrong("clock-offset", "it is for tests only and needs a --base-url on a loopback name.")
	}
	return nil
}

func (s *settings) readProxies(cfg *node.Config) error {
	for _, text := range s.proxies {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return s.quoted("trusted-proxies", text, "write networks, as in 10.0.0.0/8,fd00::/8, and a single address as in 10.1.2.3/32.")
		}
		cfg.Proxies = append(cfg.Proxies, prefix.Masked())
	}
	return nil
}

// trustsAll returns the network that has every address of its kind.
func trustsAll(proxies []netip.Prefix) (netip.Prefix, bool) {
	i := slices.IndexFunc(proxies, func(p netip.Prefix) bool { return p.Bits() == 0 })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return proxies[i], true
}

// readReturns: who is on the way of plain http can be the place that people, just
// signed in, are led to. So it is for this machine, or where nothing is better.
// readPlaces: what --return-to allows decides about --home.
func (s *settings) readPlaces(cfg *node.Config) error {
	if err := s.readReturns(cfg); err != nil {
		return err
	}
	return s.readHome(cfg)
}

func (s *settings) readReturns(cfg *node.Config) error {
	secure := cfg.PublicURL().Scheme == "https"
	for _, text := range s.returnTo {
		place, err := returnto.Parse(strings.TrimSpace(text))
		switch {
		case err != nil && strings.Contains(text, "@"): // a password, perhaps
			return s.wrong("return-to", "%s.", err)
		case err != nil:
			return s.quoted("return-to", text, "%s.", err)
		case secure && place.Scheme == "http" && !front.IsLoopback(place.Host):
			return s.quoted("return-to", text, "write https://. Plain http is for localhost, or for an installation whose --base-url is http as well.")
		}
		cfg.ReturnTo = append(cfg.ReturnTo, place)
	}
	return nil
}

func (s *settings) readHome(cfg *node.Config) (err error) {
	if s.home == "" {
		return nil
	}
	cfg.Home, err = ui.ParseHome(cfg.PublicURL(), cfg.ReturnTo, s.home)
	switch {
	case err != nil && strings.Contains(s.home, "@"): // a password, perhaps
		return s.wrong("home", "%s.", err)
	case err != nil:
		return s.quoted("home", s.home, "%s.", err)
	}
	return nil
}

func (s *settings) checkSessions(*node.Config) error {
	switch {
	case s.sessionIdle < time.Second:
		return s.wrong("session-idle", "it is 1s at least.")
	case s.sessionAbsolute < time.Second:
		return s.wrong("session-absolute", "it is 1s at least.")
	case s.sessionIdle > s.sessionAbsolute:
		return badConfig("%s is %s, longer than the %s of %s, so it would never count. Make it shorter.",
			s.from.of("session-idle"), short(s.sessionIdle), short(s.sessionAbsolute), s.from.of("session-absolute"))
	case s.lease < lease.MinLease || s.lease > lease.MaxLease:
		return s.wrong("revocation-lease", "it is %s to %s: a revocation may wait for a whole lease, and every request is answered within 3s.",
			short(lease.MinLease), short(lease.MaxLease))
	case s.inMemory < 1000:
		return s.wrong("sessions-in-memory", "it is 1000 at least.")
	}
	return nil
}

// short writes 25h as 25h, not as 25h0m0s.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func (s *settings) checkLimits(*node.Config) error {
	for _, l := range []struct {
		name  string
		value int
	}{{"session-limit", s.sessionLimit}, {"limit-login-account", s.limitAccount}, {"limit-login-ip", s.limitIP}, {"limit-connections-address", s.limitConnections}} {
		if l.value < 0 {
			return s.wrong(l.name, "it may not be negative; 0 switches the limit off.")
		}
	}
	if s.resendWait < 0 {
		return s.wrong("invite-resend-wait", "it may not be negative; 0s switches the wait off.")
	}
	if s.tenantHold < 0 {
		return s.wrong("tenant-hold", "it may not be negative; 0s destroys at once, with no way back.")
	}
	return nil
}

// shortest is the least that NIST SP 800-63B-4, section 3.1.1.2, accepts.
const shortest = 8

func (s *settings) checkPasswords(cfg *node.Config) error {
	if s.minLength < shortest || s.minLength > credential.MaxPasswordLength {
		return s.wrong("password-min-length", "it is %d to %d.", shortest, credential.MaxPasswordLength)
	}
	if err := cfg.Hash.Check(); err != nil {
		return badConfig("%s, %s: %s.", s.from.of("password-memory-kib"), s.from.of("password-time"), plain(err))
	}
	if s.memoryKiB < argon.Default.MemoryKiB && uint64(s.memoryKiB)*uint64(s.hashTime) < uint64(argon.Default.MemoryKiB)*uint64(argon.Default.Time) {
		cfg.Log.Warn("password hashes are weaker than OWASP's minimum (m=19456, t=2)", "memoryKiB", s.memoryKiB, "time", s.hashTime)
	}
	return nil
}

func (s *settings) readList(cfg *node.Config) error {
	cfg.CommonPasswords = commonpw.Bundled()
	if s.passwordList == "" {
		return nil
	}
	f, err := os.Open(s.passwordList)
	if err != nil {
		return s.wrong("password-list", "%s", unreadable(s.passwordList, err))
	}
	defer f.Close()
	if cfg.CommonPasswords, err = commonpw.Load(f); err != nil {
		return s.quoted("password-list", s.passwordList, "%s.", plain(err))
	}
	return nil
}

// openMail relies on package smtp to say which of the two settings is wrong,
// and to repeat no part of them.
func (s *settings) openMail(cfg *node.Config) (err error) {
	if cfg.Transport, err = smtp.Open(s.smtp, s.mailFrom, cfg.Log); err != nil {
		named := strings.NewReplacer("mail destination", s.from.of("smtp"), "mail sender", s.from.of("mail-from"))
		return badConfig("%s.", named.Replace(err.Error()))
	}
	return nil
}

func (s *settings) readBrand(cfg *node.Config) error {
	switch {
	case strings.TrimSpace(s.brandName) == "" || len(doorward.CheckName("", s.brandName)) > 0:
		return s.quoted("brand-name", s.brandName, "write a name of 1 to %d characters.", doorward.MaxNameLength)
	case s.brandAccent != "" && !ui.ParseColour(s.brandAccent):
		return s.quoted("brand-accent", s.brandAccent, "write # and six hexadecimal digits, like #3b4ccf.")
	}
	cfg.Brand = front.Brand{Name: s.brandName, Brand: doorward.Brand{Accent: s.brandAccent}}
	return s.readLogo(&cfg.Brand)
}

// readLogo draws the image anew, as it does one that a tenant sends: what a page
// shows is a PNG of a known size, whatever the file was.
func (s *settings) readLogo(brand *front.Brand) error {
	if s.brandLogo == "" {
		return nil
	}
	sent, err := os.ReadFile(s.brandLogo)
	if err != nil {
		return s.wrong("brand-logo", "%s", unreadable(s.brandLogo, err))
	}
	brand.Logo, brand.Image, err = tenant.DrawLogo(sent)
	var refused *doorward.Error
	if errors.As(err, &refused) {
		return s.quoted("brand-logo", s.brandLogo, "%s", refused.Detail)
	}
	return err
}

// mailIsLogged reports whether mails go nowhere but to the log.
func (s *settings) mailIsLogged() bool { return strings.EqualFold(s.smtp, "log:") }
