package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/assertion"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/returnto"
	"github.com/doorward/doorward/internal/siteurl"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// settings holds the values that flags, the environment and the YAML file set.
// node.Settings lists the settings.
type settings struct {
	cfg     node.Config
	raw     node.RawConfig
	origins origins
	// hasNodeSettings: a --config or a Strict setting was given, so the settings are those
	// of a node, not only what a command needs to reach the database.
	hasNodeSettings bool
	// level is that of the log, which SIGHUP may change.
	level slog.LevelVar
}

// list describes the settings of these groups, or all if none is given; their values are in s.
func (s *settings) list(groups ...node.Group) []node.Setting {
	return node.Settings(&s.cfg, &s.raw, groups...)
}

// register makes flags of the settings of these groups, or of all groups if none is given,
// and gives them their defaults.
func (s *settings) register(f *pflag.FlagSet, groups ...node.Group) {
	for _, d := range s.list(groups...) {
		addFlag(f, d)
	}
}

// registerBase makes flags of the settings that every command on the database takes.
func (s *settings) registerBase(f *pflag.FlagSet) {
	s.register(f, node.GroupFile, node.GroupAddress, node.GroupCommon)
}

func addFlag(f *pflag.FlagSet, d node.Setting) {
	switch v := d.Value.(type) {
	case node.Field[string]:
		f.StringVar(v.Target, d.Name, v.Default, d.Help)
	case node.Field[[]string]:
		f.StringSliceVar(v.Target, d.Name, v.Default, d.Help)
	case node.Field[bool]:
		f.BoolVar(v.Target, d.Name, v.Default, d.Help)
	case node.Field[int]:
		f.IntVar(v.Target, d.Name, v.Default, d.Help)
	case node.Field[uint32]:
		f.Uint32Var(v.Target, d.Name, v.Default, d.Help)
	case node.Field[float64]:
		f.Float64Var(v.Target, d.Name, v.Default, d.Help)
	case node.Field[time.Duration]:
		f.DurationVar(v.Target, d.Name, v.Default, d.Help)
		f.Lookup(d.Name).DefValue = formatDuration(v.Default) // for --help
		f.Lookup(d.Name).Value = duration{f.Lookup(d.Name).Value}
	default:
		panic("no flag has the type of " + d.Name)
	}
	f.Lookup(d.Name).Hidden = d.Hidden || d.Rare
}

// decimal is the value of a flag that takes a whole number in decimal digits. Without it 012 is 10, as in
// C, and YAML's readers disagree.
type decimal struct{ pflag.Value }

// onlyDecimal makes all flags of a command, and of those below it, that take a whole number read it so.
func onlyDecimal(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(wholeNumbers, f.Value.Type()) {
			f.Value = decimal{f.Value}
		}
	})
	for _, one := range cmd.Commands() {
		onlyDecimal(one)
	}
}

// wholeNumbers are the types of flags that take a whole number.
var wholeNumbers = []string{"int", "int64", "uint32"}

// Set implements pflag.Value.
func (d decimal) Set(text string) error {
	digits := strings.TrimLeft(text, "+-")
	if digits != "0" && strings.HasPrefix(digits, "0") || strings.Contains(digits, "_") {
		return errors.New("write a whole number in decimal digits, without leading zeros")
	}
	return d.Value.Set(text)
}

// defaults has the defaults of all settings. Every start makes some forty commands, each with
// settings of its own, so it reads them once.
var defaults = sync.OnceValue(func() *settings {
	s := &settings{cfg: node.Defaults()}
	for _, d := range s.list() {
		d.Value.Reset()
	}
	return s
})

// newSettings returns the defaults, also for groups that a command doesn't take.
func newSettings() *settings { return &settings{cfg: defaults().cfg, raw: defaults().raw} }

// namesOf returns the names of the settings that the function picks, sorted.
func namesOf(pick func(node.Setting) bool) (names []string) {
	for _, d := range new(settings).list() {
		if pick(d) {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}

// settingNames are the names of all settings. The environment may use them all, the file all
// but config (see fileNames).
var settingNames = sync.OnceValue(func() []string { return namesOf(func(node.Setting) bool { return true }) })

// addresses are the settings that say where the server is reached.
var addresses = sync.OnceValue(func() []string {
	return namesOf(func(d node.Setting) bool { return d.Group == node.GroupAddress })
})

// read gives the settings their values and makes a configuration of them.
func (s *settings) read(cmd *cobra.Command) (cfg node.Config, err error) {
	s.origins, err = resolve(cmd)
	if s.origins == nil {
		return cfg, err
	}
	for _, d := range s.list() {
		s.hasNodeSettings = s.hasNodeSettings || (d.Name == "config" || d.Strict) && cmd.Flags().Changed(d.Name) // by flag, variable or file
	}
	cfg, invalid := s.nodeConfig()
	cfg.Terminal = terminal(cmd)
	return cfg, joinFaults(err, invalid)
}

// readToServe is read for commands that serve or check a server's settings: it also
// reads the TLS certificate and the master key, which other commands may not be
// permitted to read.
func (s *settings) readToServe(cmd *cobra.Command) (node.Config, error) {
	cfg, err := s.read(cmd)
	if err == nil && cfg.TLS != nil {
		err = s.loadTLS(cfg.TLS)
	}
	if err == nil {
		err = s.checkKeyFile(cfg)
	}
	return cfg, err
}

// checkKeyFile reads the master key, which assertions need, without the database.
func (s *settings) checkKeyFile(cfg node.Config) error {
	if _, err := cfg.KeyFile().Read(); err != nil {
		return s.refuse("master-key-file", "%s", plain(err))
	}
	if len(cfg.Audiences) > 0 && cfg.KeyFile().Path == "" {
		return badConfig("%s.", plain(&masterkey.NeededError{Setting: "assertion-audience"}))
	}
	return nil
}

func (s *settings) readAudiences(cfg *node.Config) error {
	return eachOf(s.raw.Audiences, func(text string) error {
		name := strings.TrimSpace(text)
		if err := assertion.CheckAudience(name); err != nil {
			return s.refuseValue("assertion-audience", text, "%s.", err)
		}
		if slices.Contains(cfg.Audiences, name) {
			return s.refuseValue("assertion-audience", text, "it is there twice.")
		}
		cfg.Audiences = append(cfg.Audiences, name)
		return nil
	})
}

// nodeConfig checks the settings and returns the configuration.
func (s *settings) nodeConfig() (node.Config, error) {
	cfg := s.cfg
	cfg.Announce, cfg.Version = time.Second, version()
	independent := runChecks(&cfg, s.openLog, s.checkDSN)
	addresses := runChecks(&cfg, s.checkAddresses, s.readBaseURL)
	var dependent error // on both addresses, so that a fault of these would give more that are none
	if addresses == nil {
		dependent = runChecks(&cfg, s.openTLS, s.checkClockOffset, s.checkCookie)
	}
	destinations := runChecks(&cfg, s.readOrigins, s.readReturnTo)
	if addresses == nil && destinations == nil {
		destinations = s.readHome(&cfg)
	}
	type checks = []func(*node.Config) error
	return cfg, joinFaults(independent, addresses, dependent, destinations, runChecks(&cfg, slices.Concat(
		checks{s.readProxies, s.checkSessions},
		s.boundChecks(),
		checks{s.checkPasswords, s.readPasswordList, s.openMail, s.readTexts, s.readBrand, s.readTrace, s.readAudiences, s.readWebhooks, s.readProviders},
	)...))
}

// boundChecks returns for each setting a check of its bounds.
func (s *settings) boundChecks() (checks []func(*node.Config) error) {
	for _, d := range s.list() {
		checks = append(checks, func(*node.Config) error {
			if refusal := d.Value.Violation(); refusal != "" {
				return s.refuse(d.Name, "%s", refusal)
			}
			return nil
		})
	}
	return checks
}

// eachOf runs the check with each text, and returns the faults of all.
func eachOf(texts []string, check func(text string) error) error {
	var faults []error
	for _, text := range texts {
		faults = append(faults, check(text))
	}
	return joinFaults(faults...)
}

// runChecks runs all steps and returns the faults of all.
func runChecks(cfg *node.Config, steps ...func(*node.Config) error) error {
	var faults []error
	for _, step := range steps {
		faults = append(faults, step(cfg))
	}
	return joinFaults(faults...)
}

// refuse returns an error about a setting, named by the place it came from. It
// does not quote the value: refuseValue does, for settings that cannot hold a secret.
func (s *settings) refuse(name, format string, args ...any) error {
	return badConfig("%s: %s", s.origins.place(name), fmt.Sprintf(format, args...))
}

func (s *settings) refuseValue(name, value, format string, args ...any) error {
	return badConfig("%s %q: %s", s.origins.place(name), value, fmt.Sprintf(format, args...))
}

func (s *settings) openLog(cfg *node.Config) error {
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil)) // for the other checks, if this one fails
	var level slog.Level
	var fault error
	if level.UnmarshalText([]byte(s.raw.LogLevel)) != nil {
		fault = s.refuseValue("log-level", s.raw.LogLevel, "write debug, info, warn or error.")
	}
	s.level.Set(level)
	options := &slog.HandlerOptions{Level: &s.level}
	format := s.raw.LogFormat
	if format == "" {
		format = logFormatFor(os.Stderr)
	}
	switch format {
	case "json":
		cfg.Log = slog.New(slog.NewJSONHandler(os.Stderr, options))
	case "text":
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, options))
	default:
		fault = joinFaults(fault, s.refuseValue("log-format", s.raw.LogFormat, "write json or text."))
	}
	return fault
}

func logFormatFor(f *os.File) string {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return "text"
	}
	return "json"
}

// checkDSN must not repeat the value: it may hold a password anywhere.
func (s *settings) checkDSN(*node.Config) error {
	if err := store.CheckDSN(s.cfg.Database); err != nil {
		return s.refuse("database", "%s.", plain(err))
	}
	return nil
}

func (s *settings) checkAddresses(*node.Config) error {
	fault := s.checkAddress("listen", s.cfg.Listen)
	if s.cfg.AdminListen != "" {
		fault = joinFaults(fault, s.checkAddress("admin-listen", s.cfg.AdminListen))
	}
	if fault == nil && s.cfg.AdminListen == s.cfg.Listen && !strings.HasSuffix(s.cfg.Listen, ":0") {
		return badConfig("%s and %s are the same address. Leave --admin-listen out to serve both there.", s.origins.place("admin-listen"), s.origins.place("listen"))
	}
	return fault
}

func (s *settings) checkAddress(name, value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return s.refuseValue(name, value, "write HOST:PORT, for example localhost:8080.")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return s.refuseValue(name, value, "the port is a number from 0 to 65535; 0 takes a free one.")
	}
	return nil
}

func (s *settings) readBaseURL(cfg *node.Config) error {
	if s.raw.BaseURL == "" {
		return nil
	}
	u, err := siteurl.Parse(s.raw.BaseURL)
	switch {
	case err != nil && strings.ContainsAny(s.raw.BaseURL, "@?#"): // a password, perhaps
		return s.refuse("base-url", "%s.", err)
	case err != nil:
		return s.refuseValue("base-url", s.raw.BaseURL, "%s.", err)
	}
	cfg.BaseURL = u
	return nil
}

// readOrigins refuses plain http for other machines, unless Doorward has plain http as well: anybody
// on the network path could impersonate the site whose pages may use the API.
func (s *settings) readOrigins(cfg *node.Config) error {
	secure := cfg.PublicURL().Scheme == "https"
	return eachOf(s.raw.Origins, func(text string) error {
		u, err := siteurl.Parse(strings.TrimSpace(text))
		switch {
		case strings.Contains(text, "*"):
			return s.refuseValue("allowed-origins", text, "* is not a wildcard here: write out each origin.")
		case err != nil && strings.ContainsAny(text, "@?#"): // a password, perhaps
			return s.refuse("allowed-origins", "%s.", err)
		case err != nil:
			return s.refuseValue("allowed-origins", text, "%s.", err)
		case u.Path != "":
			return s.refuseValue("allowed-origins", text, "an origin has no path: write %s.", siteurl.Origin(u))
		case secure && insecurePublicURL(u):
			return s.refuseValue("allowed-origins", text, "write https://. Plain http is for localhost, or for an installation whose --base-url is http as well.")
		}
		cfg.AllowedOrigins = append(cfg.AllowedOrigins, siteurl.Origin(u))
		return nil
	})
}

// insecurePublicURL reports whether a URL is plain http on a name that isn't loopback. Browsers
// would withhold the session cookie from such a base URL, because it is Secure.
func insecurePublicURL(u *url.URL) bool {
	return u != nil && u.Scheme == "http" && !front.IsLoopback(u.Hostname())
}

// checkClockOffset refuses a moved clock on anything but a test installation.
func (s *settings) checkClockOffset(cfg *node.Config) error {
	host, _, _ := net.SplitHostPort(s.cfg.Listen)
	if cfg.BaseURL != nil {
		host = cfg.BaseURL.Hostname()
	}
	if s.cfg.ClockOffset != 0 && !front.IsLoopback(host) {
		return s.refuse("clock-offset", "it is for tests only and needs a --base-url on a loopback name.")
	}
	return nil
}

func (s *settings) readProxies(cfg *node.Config) error {
	return eachOf(s.raw.Proxies, func(text string) error {
		prefix, err := parseNetwork(text)
		if err != nil {
			return s.refuseValue("trusted-proxies", text, networksHelp)
		}
		cfg.Proxies = append(cfg.Proxies, prefix)
		return nil
	})
}

const networksHelp = "write addresses and networks, as in 10.1.2.3,10.0.0.0/8,fd00::/8."

// mappedBits is the length of the prefix ::ffff:0:0/96, below which IPv6 has the addresses of
// IPv4 (RFC 4291, section 2.5.5.2).
const mappedBits = 96

// parseNetwork reads a network, or an address, which is the network of that address alone. A network of
// IPv4-mapped addresses, such as ::ffff:10.0.0.0/104, becomes the IPv4 network: addresses are compared
// in that form. An address with a zone is refused, since a network has none.
func parseNetwork(text string) (netip.Prefix, error) {
	text = strings.TrimSpace(text)
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		text = fmt.Sprintf("%s/%d", addr, addr.BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	if addr := prefix.Addr(); err == nil && addr.Is4In6() && prefix.Bits() >= mappedBits {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-mappedBits)
	}
	return prefix.Masked(), err
}

func (s *settings) readWebhooks(cfg *node.Config) error {
	return joinFaults(s.readWebhookProxy(cfg), eachOf(s.raw.WebhookAllow, func(text string) error {
		prefix, err := parseNetwork(text)
		if err != nil {
			return s.refuseValue("webhook-allow", text, networksHelp)
		}
		cfg.Webhooks.Allow = append(cfg.Webhooks.Allow, prefix)
		return nil
	}))
}

func (s *settings) readProviders(cfg *node.Config) error {
	return eachOf(s.raw.SSOAllow, func(text string) error {
		prefix, err := parseNetwork(text)
		if err != nil {
			return s.refuseValue("sso-allow", text, networksHelp)
		}
		cfg.Connections.Allow = append(cfg.Connections.Allow, prefix)
		return nil
	})
}

func (s *settings) readWebhookProxy(cfg *node.Config) error {
	if s.raw.WebhookProxy == "" {
		return nil
	}
	u, err := url.Parse(s.raw.WebhookProxy)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return s.refuse("webhook-proxy", "write a URL, as in http://proxy.internal:3128.")
	}
	cfg.Webhooks.Proxy = u
	return nil
}

// wideShare is the part of all clients' addresses from which on trusted proxies are surely a mistake: the largest
// networks of proxies for rent are far below a hundredth.
const wideShare = 0.25

// allClients are the addresses that clients on the internet have: all of IPv4, and IPv6's global unicast (RFC 3587,
// section 3; IANA has assigned no other).
var allClients = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("2000::/3")}

// findWideNetworks returns the networks that together have at least wideShare of all clients' addresses of IPv4 or
// of IPv6, and says how many, such as "every address"; none if there are no such networks.
func findWideNetworks(proxies []netip.Prefix) (wide []netip.Prefix, many string) {
	byWidth := slices.SortedStableFunc(slices.Values(proxies), func(a, b netip.Prefix) int { return cmp.Compare(a.Bits(), b.Bits()) })
	for _, all := range allClients {
		var separate []netip.Prefix // networks are nested or have no address in common
		share := 0.0
		for _, p := range byWidth {
			if p.Overlaps(all) && !slices.ContainsFunc(separate, p.Overlaps) {
				separate = append(separate, p)
				share += math.Exp2(float64(min(0, all.Bits()-p.Bits())))
			}
		}
		switch {
		case share >= 1:
			return separate, "every address"
		case share >= wideShare:
			return separate, fmt.Sprintf("%.0f%% of all addresses", 100*share)
		}
	}
	return nil, ""
}

// joinNetworks returns the networks as --trusted-proxies takes them.
func joinNetworks(all []netip.Prefix) string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ",")
}

// readReturnTo refuses plain http for other machines, unless Doorward has plain http as well:
// anybody on the network path could impersonate the site that people are sent to after
// signing in.
func (s *settings) readReturnTo(cfg *node.Config) error {
	secure := cfg.PublicURL().Scheme == "https"
	return eachOf(s.raw.ReturnTo, func(text string) error {
		place, err := returnto.Parse(strings.TrimSpace(text))
		switch {
		case err != nil && strings.Contains(text, "@"): // a password, perhaps
			return s.refuse("return-to", "%s.", err)
		case err != nil:
			return s.refuseValue("return-to", text, "%s.", err)
		case secure && place.Scheme == "http" && !front.IsLoopback(place.Host):
			return s.refuseValue("return-to", text, "write https://. Plain http is for localhost, or for an installation whose --base-url is http as well.")
		}
		cfg.ReturnTo = append(cfg.ReturnTo, place)
		return nil
	})
}

// readHome needs what readReturnTo has read: --return-to has to allow an address elsewhere.
func (s *settings) readHome(cfg *node.Config) (err error) {
	if s.raw.Home == "" {
		return nil
	}
	cfg.Home, err = ui.ParseHome(cfg.PublicURL(), cfg.ReturnTo, s.raw.Home)
	switch {
	case err != nil && strings.Contains(s.raw.Home, "@"): // a password, perhaps
		return s.refuse("home", "%s.", err)
	case err != nil:
		return s.refuseValue("home", s.raw.Home, "%s.", err)
	}
	return nil
}

func (s *settings) checkCookie(cfg *node.Config) error {
	if refusal := front.CookieNameFault(cfg.CookieName, cfg.PublicURL()); refusal != "" {
		return s.refuseValue("cookie-name", cfg.CookieName, "%s", refusal)
	}
	return nil
}

func (s *settings) checkSessions(cfg *node.Config) error {
	const least = time.Second // a shorter --session-absolute is refused by boundChecks
	if limits := cfg.Sessions; limits.Absolute >= least && limits.Idle > limits.Absolute {
		return badConfig("%s is %s, longer than the %s of %s, so it would never count. Make it shorter.",
			s.origins.place("session-idle"), formatDuration(limits.Idle), formatDuration(limits.Absolute), s.origins.place("session-absolute"))
	}
	return nil
}

func (s *settings) checkPasswords(cfg *node.Config) error {
	if err := cfg.Hash.Check(); err != nil {
		return badConfig("%s, %s: %s.", s.origins.place("password-memory-kib"), s.origins.place("password-time"), plain(err))
	}
	if hash := cfg.Hash; hash.MemoryKiB < argon.Default.MemoryKiB && uint64(hash.MemoryKiB)*uint64(hash.Time) < uint64(argon.Default.MemoryKiB)*uint64(argon.Default.Time) {
		cfg.Log.Warn("password hashes are weaker than OWASP's minimum (m=19456, t=2)", "memoryKiB", hash.MemoryKiB, "time", hash.Time)
	}
	return nil
}

func (s *settings) readPasswordList(cfg *node.Config) error {
	if s.raw.PasswordList == "" {
		return nil
	}
	f, err := os.Open(s.raw.PasswordList)
	if err != nil {
		return s.refuse("password-list", "%s", describeUnreadable(s.raw.PasswordList, err))
	}
	defer f.Close()
	if cfg.CommonPasswords, err = commonpw.Load(f); err != nil {
		return s.refuseValue("password-list", s.raw.PasswordList, "%s.", plain(err))
	}
	return nil
}

// openMail puts the place of the setting where errors of package smtp say "mail destination", "mail
// sender" or "mail hello". They quote neither setting, except the path of a directory.
func (s *settings) openMail(cfg *node.Config) (err error) {
	if cfg.Transport, err = s.transportTo(s.raw.SMTP, *cfg); err != nil {
		named := strings.NewReplacer("mail destination", s.origins.place("smtp"), "mail sender", s.origins.place("mail-from"), "mail hello", s.origins.place("smtp-hello"))
		return eachOf(strings.Split(named.Replace(err.Error()), "\n"), func(fault string) error { return badConfig("%s.", fault) })
	}
	cfg.OperatorAddress, err = smtp.Address(s.raw.MailFrom)
	return err
}

// transportTo opens a transport to a destination, with these settings' sender and name.
func (s *settings) transportTo(destination string, cfg node.Config) (smtp.Transport, error) {
	hello := s.raw.SMTPHello
	if public := cfg.PublicURL().Hostname(); hello == "" && !front.IsLoopback(public) {
		hello = public
	}
	return smtp.Open(destination, s.raw.MailFrom, hello, cfg.Log)
}

func (s *settings) readBrand(cfg *node.Config) error {
	const noPointer = "" // the faults are only counted
	var name, accent error
	typed := s.raw.BrandName
	if len(doorward.RequireName(noPointer, &s.raw.BrandName, "")) > 0 {
		name = s.refuseValue("brand-name", typed, "write a name of 1 to %d characters.", doorward.MaxNameLength)
	}
	if s.raw.BrandAccent != "" && !ui.IsColour(s.raw.BrandAccent) {
		accent = s.refuseValue("brand-accent", s.raw.BrandAccent, "write # and six hexadecimal digits, like #3b4ccf.")
	}
	cfg.Brand = front.Brand{Name: s.raw.BrandName, Brand: doorward.Brand{Accent: s.raw.BrandAccent}}
	return joinFaults(name, accent, s.readLogo(&cfg.Brand))
}

// readLogo redraws the image, as for a tenant's logo: pages show a PNG of a known size,
// whatever the file was.
func (s *settings) readLogo(brand *front.Brand) error {
	if s.raw.BrandLogo == "" {
		return nil
	}
	file, err := os.ReadFile(s.raw.BrandLogo)
	if err != nil {
		return s.refuse("brand-logo", "%s", describeUnreadable(s.raw.BrandLogo, err))
	}
	brand.Logo, brand.Image, err = tenant.MakeLogo(file)
	var refused *doorward.Error
	if errors.As(err, &refused) {
		return s.refuseValue("brand-logo", s.raw.BrandLogo, "%s", refused.Detail)
	}
	return err
}

// logsMail reports whether mails are only logged.
func (s *settings) logsMail() bool { return strings.EqualFold(s.raw.SMTP, "log:") }
