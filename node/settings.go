package node

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/tlscert"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/web/front"
)

// Setting describes one setting. Its flag, its environment variable, its line in the
// YAML file, its row in docs/configuration.md, its default, its bounds and what nodes
// compare with each other follow from this.
type Setting struct {
	Name  string // of the flag, without dashes
	Group Group
	Help  string // names the value in `…`
	Value Value  // a Field
	// Secret: the value may hold a password, so it may also be in a separate file.
	Secret bool
	Hidden bool // from help and documentation
	// Rare: hardly any installation sets it. It is hidden from help and has a table of its own in the
	// documentation.
	Rare bool
	// Shared: all nodes must have the same value; a difference is reported. Strict:
	// a node that differs would end sessions that others hold valid, or destroy what
	// they have promised to keep, so it starts only with --change-shared.
	Shared, Strict bool
	// Live: SIGHUP puts another value into force, see Node.Reload. Not with Shared.
	Live bool
}

// Group is a part of the settings; a command takes the groups that it uses.
type Group int

// The groups.
const (
	GroupFile    Group = iota // the YAML file
	GroupAddress              // where the server is reached
	GroupCommon               // what every command on the database takes
	GroupMail
	GroupTexts // of pages and mails
	GroupServer
	GroupPolicy
	GroupSchema
	GroupSeal // of commands that need the master key
)

// RawConfig holds the settings that have to be parsed or opened, or that depend on
// others, before a node can use them.
type RawConfig struct {
	File                        string // the YAML file
	LogFormat, LogLevel         string
	BaseURL, TLSCert, TLSKey    string
	ACMEDir, ACMEURL, ACMEEmail string
	SMTP, MailFrom, SMTPHello   string
	Proxies, ReturnTo           []string
	Audiences                   []string
	Origins                     []string
	Home                        string
	TraceOTLP, TraceHeader      string
	BrandName, BrandAccent      string
	BrandLogo, PasswordList     string
	WebhookAllow                []string
	WebhookProxy                string
	SSOAllow                    []string
	Texts                       string
}

// Settings lists the settings of these groups, or all settings if none is given, in the order of
// the documentation. Their values are fields of c and r.
func Settings(c *Config, r *RawConfig, groups ...Group) (all []Setting) {
	for _, part := range []struct {
		Group
		settings func(*Config, *RawConfig) []Setting
	}{
		{GroupFile, fileSettings},
		{GroupAddress, addressSettings},
		{GroupCommon, commonSettings},
		{GroupMail, mailSettings},
		{GroupTexts, textSettings},
		{GroupServer, serverSettings},
		{GroupPolicy, policySettings},
		{GroupSchema, schemaSettings},
		{GroupSeal, sealSettings},
	} {
		if len(groups) > 0 && !slices.Contains(groups, part.Group) {
			continue
		}
		for _, s := range part.settings(c, r) {
			s.Group = part.Group
			all = append(all, s)
		}
	}
	return all
}

func fileSettings(_ *Config, r *RawConfig) []Setting {
	return []Setting{
		{Name: "config", Value: newField(&r.File, ""), Help: "YAML `file` with settings"},
	}
}

func addressSettings(c *Config, r *RawConfig) []Setting {
	return []Setting{
		{
			Name: "base-url", Shared: true, Value: newField(&r.BaseURL, ""),
			Help: "`URL` that people open; it may have a path (default http:// and --listen, https:// with --tls-cert)",
		},
		{Name: "listen", Value: newField(&c.Listen, "localhost:8080"), Help: "`address` HOST:PORT to serve on"},
		{
			Name: "tls-cert", Value: newField(&r.TLSCert, ""),
			Help: "PEM `file` with the TLS certificate and its chain; a new certificate is loaded within seconds (default plain HTTP)",
		},
		{Name: "tls-key", Value: newField(&r.TLSKey, ""), Help: "PEM `file` with the private key of --tls-cert"},
		{
			Name: "acme-dir", Value: newField(&r.ACMEDir, ""),
			Help: "`folder` for a TLS certificate that is ordered from an ACME authority for the name in --base-url, whose terms you agree to",
		},
		{Name: "acme-url", Value: newField(&r.ACMEURL, tlscert.LetsEncrypt), Help: "directory `URL` of the ACME authority"},
		{Name: "acme-email", Rare: true, Value: newField(&r.ACMEEmail, ""), Help: "`address` that the ACME authority may write to"},
	}
}

func commonSettings(c *Config, r *RawConfig) []Setting {
	return []Setting{
		{
			Name: "database", Secret: true, Value: newField(&c.Database, "sqlite:doorward.db"),
			Help: "`URL` of the database: sqlite:PATH, or postgres://USER:PASSWORD@HOST/NAME with one or more hosts",
		},
		{Name: "log-format", Value: newField(&r.LogFormat, ""), Help: "json or text (default text on a terminal, else json)"},
		{Name: "log-level", Live: true, Value: newField(&r.LogLevel, "info"), Help: "debug, info, warn or error"},
		{Name: "clock-offset", Hidden: true, Value: newField(&c.ClockOffset, 0), Help: "move the clock; for tests of expiry"},
	}
}

func mailSettings(_ *Config, r *RawConfig) []Setting {
	return []Setting{
		{
			Name: "smtp", Secret: true, Live: true, Value: newField(&r.SMTP, "log:"),
			Help: "`URL` of the mail server: smtp://user:pass@host:port or smtps://…; or file:DIR; or log:",
		},
		{Name: "mail-from", Value: newField(&r.MailFrom, "Doorward <no-reply@localhost>"), Help: "`sender` of mails"},
		{
			Name: "smtp-hello", Value: newField(&r.SMTPHello, ""),
			Help: "`name` or address of this machine for mail servers (EHLO) (default the host of --base-url, or this machine's own name if that is a loopback name)",
		},
	}
}

func textSettings(_ *Config, r *RawConfig) []Setting {
	return []Setting{
		{Name: "texts", Value: newField(&r.Texts, ""), Help: "YAML `file` of texts for pages and mails, in place of built-in ones or in another language; \"doorward texts list\" prints all"},
	}
}

func serverSettings(c *Config, r *RawConfig) []Setting {
	limit := atLeast(0, "it may not be negative; 0 switches the limit off.")
	return []Setting{
		{
			Name: "admin-listen", Value: newField(&c.AdminListen, ""),
			Help: "`address` HOST:PORT for /healthz, /readyz and /metrics (default the address of --listen, where /metrics answers loopback callers only)",
		},
		{Name: "trusted-proxies", Live: true, Value: newField(&r.Proxies, nil), Help: "`addresses` and networks of proxies whose X-Forwarded-For is trusted, like 10.1.2.3,fd00::/8"},
		{
			Name: "return-to", Value: newField(&r.ReturnTo, nil),
			Help: "`addresses` outside --base-url that people may be led to after signing in, like https://app.example.com or https://app.example.com/inbox/",
		},
		{
			Name: "allowed-origins", Shared: true, Value: newField(&r.Origins, nil),
			Help: "`origins` other than that of --base-url whose pages may use the API, with the session cookie, like https://app.example.com; each is trusted with what its visitors may do",
		},
		{
			Name: "assertion-audience", Shared: true, Value: newField(&r.Audiences, nil),
			Help: "`URLs` of services that accept signed assertions of who is calling, like https://messages.example.com; the first is the default; needs a master key",
		},
		{
			Name: "home", Value: newField(&r.Home, ""),
			Help: "`URL` where people land after signing in unless asked to return elsewhere: a path below --base-url, or an address that --return-to allows (default /account)",
		},
		{
			Name: "trace-otlp", Value: newField(&r.TraceOTLP, ""),
			Help: "`URL` of an OpenTelemetry collector that takes OTLP over HTTP, like http://localhost:4318 (default no tracing)",
		},
		{
			Name: "trace-header", Secret: true, Rare: true, Value: newField(&r.TraceHeader, ""),
			Help: "`header` NAME: VALUE that the collector wants for authentication",
		},
		{
			Name: "trace-sample", Value: newField(&c.Trace.Sample, 0.1, within(0.0, 1, "it must be from 0 (none) to 1 (all).")),
			Help: "share of the requests that is traced, `0..1`; a traceparent from --trusted-proxies decides for its request",
		},
		{
			Name: "limit-connections-address", Live: true, Value: newField(&c.ConnectionsPerClient, 1000, limit),
			Help: "connections that a client address may have open; addresses in --trusted-proxies have no limit (0: no limit at all)",
		},
		{Name: "brand-name", Live: true, Value: newField(&r.BrandName, "Doorward"), Help: "`name` that the pages show"},
		{
			Name: "brand-accent", Live: true, Value: newField(&r.BrandAccent, ""),
			Help: "`colour` of the pages' buttons and links, like #3b4ccf; made darker or lighter where it would be hard to read",
		},
		{
			Name: "brand-logo", Live: true, Value: newField(&r.BrandLogo, ""),
			Help: "PNG, JPEG or WebP `file` that pages and mails show in place of the name",
		},
	}
}

func policySettings(c *Config, r *RawConfig) []Setting {
	limit := atLeast(0, "it may not be negative; 0 switches the limit off.")
	return []Setting{
		{
			Name: "session-idle", Shared: true, Strict: true,
			Value: newField(&c.Sessions.Idle, time.Hour, atLeast(time.Second, "it must be at least 1s.")), Help: "a session ends when unused for this long",
		},
		{
			Name: "session-absolute", Shared: true, Strict: true,
			Value: newField(&c.Sessions.Absolute, 24*time.Hour, atLeast(time.Second, "it must be at least 1s.")), Help: "a session ends after this long, even if it is used",
		},
		{
			Name: "session-limit", Shared: true, Strict: true,
			Value: newField(&c.Sessions.PerUser, 10, limit), Help: "sessions per user; beyond it the oldest ends (0: no limit)",
		},
		{
			Name: "cookie-name", Shared: true, Strict: true, Value: newField(&c.CookieName, front.SessionCookie),
			Help: "`name` of the session cookie; a new name signs all browsers out; __Host-… and __Secure-… need https, and __Host-… a --base-url without a path",
		},
		{
			Name: "session-cookie", Shared: true, Value: newField(&c.SessionCookie, EndsWithBrowser, func(v string) string {
				if v != EndsWithBrowser && v != OutlastsBrowser {
					return "it must be session or persistent."
				}
				return ""
			}),
			Help: "`life` of the session cookie: session (it ends with the browser) or persistent (it ends at --session-absolute, or at the tenant's limit)",
		},
		{
			Name: "revocation-lease", Shared: true,
			Value: newField(&c.Lease, time.Second, within(lease.MinLease, lease.MaxLease, fmt.Sprintf("it must be %v to %v: a revocation may wait for a whole lease, and every request is answered within 3s.", lease.MinLease, lease.MaxLease))),
			Help:  "how long a node may answer from memory without hearing from the database, 1s to 2s",
		},
		{
			Name: "sessions-in-memory", Rare: true, Value: newField(&c.SessionsInMemory, 1_000_000, atLeast(1000, "it must be at least 1000.")),
			Help: "how many sessions are kept in memory at most; the others are read from the database",
		},
		{
			Name: "password-min-length", Live: true, Value: newField(&c.PasswordMinLength, 12, within(minPasswordLength, proof.MaxPasswordLength, fmt.Sprintf("it must be %d to %d.", minPasswordLength, proof.MaxPasswordLength))),
			Help: "shortest password, in characters",
		},
		{Name: "password-list", Live: true, Value: newField(&r.PasswordList, ""), Help: "`file` of refused passwords: one a line, or a filter of \"doorward passwords build\" (default the bundled list)"},
		{Name: "password-memory-kib", Value: newField(&c.Hash.MemoryKiB, argon.Default.MemoryKiB), Help: "memory of one Argon2id hash, in `KiB`"},
		{Name: "password-time", Value: newField(&c.Hash.Time, argon.Default.Time), Help: "`passes` of one Argon2id hash"},
		{Name: "limit-login-account", Live: true, Value: newField(&c.Attempts.PerAccount, 5, limit), Help: "failed logins per address before a delay (0: no limit)"},
		{Name: "limit-login-ip", Live: true, Value: newField(&c.Attempts.PerIP, 30, limit), Help: "failed logins per client address in ten minutes (0: no limit)"},
		{
			Name: "invite-resend-wait", Live: true, Value: newField(&c.InviteResendWait, time.Minute, atLeast[time.Duration](0, "it may not be negative; 0s switches the wait off.")),
			Help: "time between two mails of one invitation (0s: none)",
		},
		{
			Name: "key-max-days", Value: newField(&c.KeyMaxDays, doorward.APIKeyDaysMax, within(1, maxKeyDays, fmt.Sprintf("it must be 1 to %d.", maxKeyDays))),
			Help: "longest and default validity of an API key, in `days`",
		},
		{
			Name: "keep-events", Value: newField(&c.KeepEvents, 0, atLeast[time.Duration](0, "it may not be negative; 0s keeps events for ever.")),
			Help: "how long events of audit trails are kept; older ones are deleted (0s: for ever)",
		},
		{
			Name: "keep-decisions", Value: newField(&c.KeepDecisions, maxDecisionAge, within(0, maxDecisionAge, "it must be from 0s, which keeps none, to 7d.")),
			Help: "how long refusals and one in 1,024 permits are kept, to try policies on (0s: not at all)",
		},
		{
			Name: "keep-deliveries", Value: newField(&c.Webhooks.Keep, 720*time.Hour, atLeast(time.Hour, "it must be at least 1h.")),
			Help: "how long finished deliveries to webhooks are kept",
		},
		{Name: "webhook-allow", Value: newField(&r.WebhookAllow, nil), Help: "`address` or network inside that webhooks may call, like 10.1.2.3 or 10.0.0.0/8; may be repeated"},
		{
			Name: "webhook-proxy", Secret: true, Value: newField(&r.WebhookProxy, ""),
			Help: "`URL` of a proxy for webhooks, http://, https:// or socks5://; proxies in environment variables are not used",
		},
		{Name: "sso-allow", Value: newField(&r.SSOAllow, nil), Help: "`address` or network inside where providers of tenants may be, like 10.1.2.3 or 10.0.0.0/8; may be repeated"},
		{
			Name: "dns-server", Value: newField(&c.DNSServer, "", isDNSServer),
			Help: "`HOST:PORT` of the name server that is asked for the records that prove domains (default those of the system)",
		},
		{
			Name: "tenant-hold", Shared: true, Strict: true,
			Value: newField(&c.TenantHold, 14*24*time.Hour, atLeast[time.Duration](0, "it may not be negative; 0s destroys at once, with no way back.")),
			Help:  "time between the closing of a tenant and the destruction of its data",
		},
		{
			Name: "change-shared", Rare: true, Value: newField(&c.ChangeShared, false),
			Help: "start although other nodes have other session limits, another cookie name or another --tenant-hold, to change these node by node",
		},
	}
}

// isDNSServer says what is wrong with the address of a name server; empty: nothing.
func isDNSServer(v string) string {
	host, port, err := net.SplitHostPort(v)
	if n, portErr := strconv.ParseUint(port, 10, 16); v != "" && (err != nil || host == "" || portErr != nil || n == 0) {
		return "it must be an address with a port, such as 192.0.2.53:53."
	}
	return ""
}

func schemaSettings(c *Config, _ *RawConfig) []Setting {
	return []Setting{
		{Name: "migrate", Value: newField(&c.Migrate, true), Help: "migrate the schema before serving; =false refuses an outdated schema instead"},
	}
}

func sealSettings(c *Config, _ *RawConfig) []Setting {
	return []Setting{
		{
			Name: "master-key-file", Value: newField(&c.MasterKeyFile, ""),
			Help: "`file` with the master key, which seals secrets in the database (default with SQLite: the database's file name with .key added; made if it is missing)",
		},
	}
}

// The values of Config.SessionCookie.
const (
	EndsWithBrowser = "session"
	OutlastsBrowser = "persistent"
)

// maxKeyDays is ten years.
const maxKeyDays = 3650

// minPasswordLength is the least that NIST SP 800-63B-4, section 3.1.1.2, accepts.
const minPasswordLength = 8

// Value is a Field of any type.
type Value interface {
	String() string
	Reset()
	Violation() string
}

// Field is a value of a setting, with its default.
type Field[T any] struct {
	Target  *T
	Default T
	bounds  []bound[T]
}

// bound says what is wrong with a value; empty: nothing.
type bound[T any] func(T) string

func newField[T any](target *T, byDefault T, bounds ...bound[T]) Field[T] {
	return Field[T]{target, byDefault, bounds}
}

func atLeast[T cmp.Ordered](lowest T, refusal string) bound[T] {
	return func(v T) string {
		if v < lowest {
			return refusal
		}
		return ""
	}
}

func within[T cmp.Ordered](lowest, highest T, refusal string) bound[T] {
	return func(v T) string {
		if v >= lowest && v <= highest { // false for NaN
			return ""
		}
		return refusal
	}
}

// String formats the current value as fmt.Sprint does.
func (f Field[T]) String() string { return fmt.Sprint(*f.Target) }

// Reset sets the value to its default.
func (f Field[T]) Reset() { *f.Target = f.Default }

// Violation says what is wrong with the value; empty if it is within its bounds.
func (f Field[T]) Violation() (refusal string) {
	for _, check := range f.bounds {
		refusal = cmp.Or(refusal, check(*f.Target))
	}
	return refusal
}

// Defaults returns the defaults of all settings, and the bundled list of passwords.
// Transport and Log are still missing.
func Defaults() Config {
	c := Config{}
	for _, s := range Settings(&c, &RawConfig{}) {
		s.Value.Reset()
	}
	c.Hash.Parallelism, c.CommonPasswords = argon.Default.Parallelism, commonpw.Bundled()
	return c
}

// Shared are the settings that must be the same on all nodes, with their values
// here. The base URL is PublicURL.
func (c Config) Shared() (all []lease.Setting) {
	raw := RawConfig{BaseURL: strings.TrimSuffix(c.PublicURL().String(), "/"), Audiences: c.Audiences, Origins: c.AllowedOrigins}
	for _, s := range Settings(&c, &raw) {
		if s.Shared {
			all = append(all, lease.Setting{Name: s.Name, Value: s.Value.String(), Strict: s.Strict})
		}
	}
	return all
}

// maxDecisionAge is how long decisions are kept, at most.
const maxDecisionAge = 7 * 24 * time.Hour
