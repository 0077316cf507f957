package main

import (
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/web/front"
)

// settings are the values of all flags that settings come from.
type settings struct {
	config, database, logFormat, logLevel string

	baseURL, smtp, mailFrom string

	listen, adminListen string
	proxies             []string
	migrate             bool

	sessionIdle, sessionAbsolute time.Duration
	sessionLimit                 int
	lease                        time.Duration
	inMemory                     int
	minLength                    int
	passwordList                 string
	memoryKiB, hashTime          uint32
	limitAccount, limitIP        int
	clockOffset                  time.Duration
}

// The groups of settings; a command takes those that mean something to it.
func (s *settings) base(f *pflag.FlagSet) {
	f.StringVar(&s.config, "config", "", "YAML `file` with settings")
	f.StringVar(&s.database, "database", "sqlite:doorward.db", "sqlite:PATH, or postgres://USER:PASSWORD@HOST/NAME with one or more hosts")
	f.StringVar(&s.logFormat, "log-format", "", "json or text (default text on a terminal, else json)")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	f.DurationVar(&s.clockOffset, "clock-offset", 0, "move the clock; for tests of expiry")
	_ = f.MarkHidden("clock-offset")
	f.StringVar(&s.baseURL, "base-url", "", "address as seen from outside, a path allowed (default http:// and --listen)")
	f.StringVar(&s.listen, "listen", "localhost:8080", "`address` to serve on")
}

func (s *settings) mail(f *pflag.FlagSet) {
	f.StringVar(&s.smtp, "smtp", "log:", "smtp://user:pass@host:port, smtps://…, file:DIR or log:")
	f.StringVar(&s.mailFrom, "mail-from", "Doorward <no-reply@localhost>", "sender of mails")
}

func (s *settings) server(f *pflag.FlagSet) {
	f.StringVar(&s.adminListen, "admin-listen", "", "`address` for /healthz and /readyz (default on the main one)")
	f.StringSliceVar(&s.proxies, "trusted-proxies", nil, "`CIDRs` whose X-Forwarded-For is believed")
}

func (s *settings) policy(f *pflag.FlagSet) {
	f.DurationVar(&s.sessionIdle, "session-idle", time.Hour, "a session ends when unused for this long")
	f.DurationVar(&s.sessionAbsolute, "session-absolute", 24*time.Hour, "a session ends after this long whatever its use")
	f.IntVar(&s.sessionLimit, "session-limit", 10, "sessions per user; beyond it the oldest ends (0: no limit)")
	f.DurationVar(&s.lease, "revocation-lease", time.Second, "how long a node may answer from memory without hearing from the database, 1s to 2s")
	f.IntVar(&s.inMemory, "sessions-in-memory", 1_000_000, "most sessions kept in memory; the database is behind them")
	f.IntVar(&s.minLength, "password-min-length", 12, "shortest password, in characters")
	f.StringVar(&s.passwordList, "password-list", "", "`file` of refused passwords, one a line (default the bundled list)")
	f.Uint32Var(&s.memoryKiB, "password-memory-kib", argon.Default.MemoryKiB, "memory of one Argon2id hash, in KiB")
	f.Uint32Var(&s.hashTime, "password-time", argon.Default.Time, "passes of one Argon2id hash")
	f.IntVar(&s.limitAccount, "limit-login-account", 5, "failed logins per address before a delay (0: no limit)")
	f.IntVar(&s.limitIP, "limit-login-ip", 30, "failed logins per client address in ten minutes (0: no limit)")
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

// nodeConfig checks the settings and makes of them what a node is told.
func (s *settings) nodeConfig(cmd *cobra.Command) (node.Config, error) {
	if err := resolve(cmd); err != nil {
		return node.Config{}, err
	}
	log, err := s.logger()
	if err != nil {
		return node.Config{}, err
	}
	cfg := node.Config{
		Database: s.database, Migrate: s.migrate, Listen: s.listen, AdminListen: s.adminListen,
		SessionsInMemory: s.inMemory, Lease: s.lease,
		Sessions:          doorward.SessionLimits{Idle: s.sessionIdle, Absolute: s.sessionAbsolute, PerUser: s.sessionLimit},
		Attempts:          credential.Limits{PerAccount: s.limitAccount, PerIP: s.limitIP},
		PasswordMinLength: s.minLength,
		Hash:              argon.Params{MemoryKiB: s.memoryKiB, Time: s.hashTime, Parallelism: 1},
		Announce:          time.Second,
		Clock:             s.clock(), Log: log, Version: version(),
	}
	for _, step := range []func(*node.Config) error{
		s.checkAddresses, s.readBaseURL, s.checkClock, s.readProxies, s.checkSessions, s.checkPasswords, s.readList, s.openMail,
	} {
		if err := step(&cfg); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

func (s *settings) clock() doorward.Clock {
	offset := s.clockOffset
	return func() time.Time { return time.Now().Add(offset) }
}

func (s *settings) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return nil, badConfig("--log-level %q: write debug, info, warn or error.", s.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	format := s.logFormat
	if format == "" {
		format = "json"
		if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			format = "text"
		}
	}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	}
	return nil, badConfig("--log-format %q: write json or text.", s.logFormat)
}

func (s *settings) checkAddresses(*node.Config) error {
	for flag, addr := range map[string]string{"listen": s.listen, "admin-listen": s.adminListen} {
		if addr == "" && flag == "admin-listen" {
			continue
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return badConfig("--%s %q: write HOST:PORT, for example localhost:8080.", flag, addr)
		}
	}
	if s.adminListen == s.listen && !strings.HasSuffix(s.listen, ":0") {
		return badConfig("--admin-listen and --listen are the same address. Leave --admin-listen out to serve both there.")
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
		return badConfig("--base-url %q: write the address people open, for example https://auth.example.com.", s.baseURL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return badConfig("--base-url may have a host and a path, nothing else.")
	case u.Scheme == "http" && !front.IsLoopback(u.Hostname()):
		cfg.Log.Warn("base-url is plain http on a public name: browsers will not send the session cookie back; use https", "baseURL", s.baseURL)
	}
	cfg.BaseURL = u
	return nil
}

// checkClock: an installation that people use must not run on a wrong clock.
func (s *settings) checkClock(cfg *node.Config) error {
	if s.clockOffset != 0 && cfg.BaseURL != nil && !front.IsLoopback(cfg.BaseURL.Hostname()) {
		return badConfig("--clock-offset is for tests only and needs a --base-url on a loopback name.")
	}
	host, _, _ := net.SplitHostPort(s.listen)
	if s.clockOffset != 0 && cfg.BaseURL == nil && !front.IsLoopback(host) {
		return badConfig("--clock-offset is for tests only and needs a --listen on a loopback name.")
	}
	return nil
}

func (s *settings) readProxies(cfg *node.Config) error {
	for _, text := range s.proxies {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return badConfig("--trusted-proxies %q: write networks as in 10.0.0.0/8,fd00::/8.", text)
		}
		cfg.Proxies = append(cfg.Proxies, prefix.Masked())
	}
	return nil
}

func (s *settings) checkSessions(*node.Config) error {
	switch {
	case s.sessionIdle < time.Second || s.sessionAbsolute < time.Second:
		return badConfig("--session-idle and --session-absolute are 1s at least.")
	case s.sessionIdle > s.sessionAbsolute:
		return badConfig("--session-idle %v is longer than --session-absolute %v, so it would never count. Make it shorter.", s.sessionIdle, s.sessionAbsolute)
	case s.lease < store.MinLease || s.lease > store.MaxLease:
		return badConfig("--revocation-lease is %v to %v: a revocation may wait for a whole lease, and every request is answered within 3s.", store.MinLease, store.MaxLease)
	case s.inMemory < 1000:
		return badConfig("--sessions-in-memory is 1000 at least.")
	case s.sessionLimit < 0 || s.limitAccount < 0 || s.limitIP < 0:
		return badConfig("--session-limit, --limit-login-account and --limit-login-ip may not be negative; 0 switches a limit off.")
	}
	return nil
}

// shortest is the least that NIST SP 800-63B-4, section 3.1.1.2, accepts.
const shortest = 8

func (s *settings) checkPasswords(cfg *node.Config) error {
	if s.minLength < shortest || s.minLength > credential.MaxPasswordLength {
		return badConfig("--password-min-length is %d to %d.", shortest, credential.MaxPasswordLength)
	}
	if err := cfg.Hash.Check(); err != nil {
		return badConfig("--password-memory-kib, --password-time: %w", err)
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
		return badConfig("--password-list: %w", err)
	}
	defer f.Close()
	if cfg.CommonPasswords, err = commonpw.Load(f); err != nil {
		return badConfig("--password-list %s: %w", s.passwordList, err)
	}
	return nil
}

func (s *settings) openMail(cfg *node.Config) (err error) {
	if s.smtp == "" {
		s.smtp, s.mailFrom = "log:", "Doorward <no-reply@localhost>"
	}
	if cfg.Transport, err = smtp.Open(s.smtp, s.mailFrom, cfg.Log); err != nil {
		return badConfig("--smtp, --mail-from: %w", err)
	}
	return nil
}
