// Package node runs one Doorward server: the database, the features, the addresses it
// listens on, and background work. The command and the test kit start it from here.
package node

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/internal/returnto"
	"github.com/doorward/doorward/internal/siteurl"
	"github.com/doorward/doorward/internal/tlscert"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/transfer"
	"github.com/doorward/doorward/web"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ops"
)

// Config is what a node needs. Start from Defaults; every field is needed unless it
// says otherwise. Node fills in Published, LinkURL, MailBrand, Name, MasterKey and
// Webhooks.Local of the embedded app.Settings.
type Config struct {
	app.Settings

	Database string // sqlite:PATH or postgres://…
	// MasterKeyFile may be empty: with SQLite it is then the file of the database with
	// .key, which is made when it is missing; with PostgreSQL there is no key.
	MasterKeyFile string
	Migrate       bool // bring the schema up to date; false: refuse an outdated one
	// Terminal says who runs the command, for Node.Operator; zero for servers.
	Terminal doorward.Terminal

	Listen      string   // host:port; port 0 takes a free one
	AdminListen string   // host:port; empty: health is on the main address
	BaseURL     *url.URL // as seen from outside, of siteurl.Parse; nil: see PublicURL
	Proxies     []netip.Prefix
	// ConnectionsPerClient is how many connections an IPv4 address, or a /64 of IPv6,
	// may have open to Listen and to AdminListen each; 0: any number. Proxies have no limit.
	ConnectionsPerClient int
	Brand                front.Brand    // of the pages; without a name, Doorward's
	ReturnTo             returnto.List  // other sites that people may be sent to after signing in; may be empty
	AllowedOrigins       []string       // other origins whose pages may use the API, as browsers send them; may be empty
	CookieName           string         // of the session, for which front.CookieNameFault finds no fault; empty: JSESSIONID
	SessionCookie        string         // EndsWithBrowser or OutlastsBrowser
	Home                 string         // where people land after signing in, as ui.ParseHome returns it; empty: on their account
	TLS                  tlscert.Source // of the main address, loaded; nil: plain HTTP

	// Trace says where traces go; without a collector nothing is traced. Version,
	// Node, Log and TrustedProxies are filled in.
	Trace trace.Options

	// Announce is how long a draining node still accepts connections. During it each
	// answer closes its connection, and /readyz fails.
	Announce time.Duration

	// Clock is for tests: everything that expires uses it. nil: the database's.
	// ClockOffset is then added to this machine's clock, and to the installation's if no
	// other node runs.
	Clock       doorward.Clock
	ClockOffset time.Duration

	// OwnHostsOnly refuses requests for other hosts than loopback names and BaseURL's, on both addresses.
	OwnHostsOnly bool

	Version string
	// Docs has the pages below /docs, and a README.md that lists them. Only Open goes without.
	Docs fs.FS
	// Extra routes, for development; may be nil.
	Extra []front.Route
}

// PublicURL is the address as seen from outside: BaseURL, or else http:// (with
// TLS, https://) and Listen. For the unspecified address, which no browser can open, it
// is localhost.
func (c Config) PublicURL() *url.URL {
	if c.BaseURL != nil {
		return c.BaseURL
	}
	scheme := "http"
	if c.TLS != nil {
		scheme = "https"
	}
	host := Dialable(c.Listen)
	if u, err := siteurl.Parse(scheme + "://" + host); err == nil { // port 0 is one that isn't known yet
		return u
	}
	return &url.URL{Scheme: scheme, Host: host}
}

// KeyFile returns the file from which the master key is read; the zero File if there is none.
func (c Config) KeyFile() masterkey.File {
	if c.MasterKeyFile != "" {
		return masterkey.File{Path: c.MasterKeyFile}
	}
	if path, err := transfer.SQLitePath(c.Database); err == nil {
		return masterkey.File{Path: path + ".key", Optional: true}
	}
	return masterkey.File{}
}

// Dialable returns the address HOST:PORT at which programs on this machine reach a server
// that listens on listen.
func Dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	ip, notIP := netip.ParseAddr(host)
	if err == nil && (host == "" || notIP == nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}

// Node is one running Doorward.
type Node struct {
	App *app.App
	DB  *store.DB

	cfg          Config
	tracer       *trace.Tracer // nil unless cfg.Trace has a collector
	site         *front.Site
	main         *listener
	admin        *server // nil without AdminListen
	adminHandler atomic.Pointer[http.Handler]
	draining     atomic.Bool
	reloadFailed atomic.Bool
	traffic      traffic
	acceptErrors acceptLog
}

// Operator returns the caller of a command: the operator at the terminal of its configuration.
func (n *Node) Operator() doorward.Caller { return doorward.OperatorAtTerminal(n.cfg.Terminal) }

// Open opens the database and builds the features, without listening: what a
// command needs beside a running server. Close it when done.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	n := newNode(cfg)
	if err := n.openDatabase(ctx); err != nil {
		return nil, err
	}
	n.addFeatures()
	return n, nil
}

func newNode(cfg Config) *Node {
	return &Node{cfg: cfg, acceptErrors: acceptLog{log: cfg.Log, limit: lograte.Limiter{Quiet: 10 * time.Second}}}
}

// openDatabase opens the database and brings its schema up to date. After an error it is closed.
func (n *Node) openDatabase(ctx context.Context) error {
	db, err := open(ctx, n.cfg)
	if err != nil {
		return err
	}
	db.LogTo(n.cfg.Log)
	if err := db.CheckPooling(ctx); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := prepareDatabase(ctx, db, n.cfg); err != nil {
		return errors.Join(err, db.Close())
	}
	n.DB = db
	return nil
}

func (n *Node) addFeatures() {
	cfg := n.cfg
	n.cfg.BaseURL = cfg.PublicURL()
	n.App = app.New(n.DB, n.settings())
	n.site = front.New(n.App, n.cfg.BaseURL, n.cfg.Proxies, n.cfg.Log)
	n.site.SetBrand(n.cfg.brand())
	n.site.Texts = cfg.Texts
	n.site.ReturnTo, n.site.Home, n.site.Cookie = cfg.ReturnTo, cfg.Home, cmp.Or(cfg.CookieName, front.SessionCookie)
	n.site.AllowedOrigins, n.site.PersistentCookie = cfg.AllowedOrigins, cfg.SessionCookie == OutlastsBrowser
	n.registerMetrics()
}

// open opens the database. It creates a missing one only if it may migrate the schema, too.
func open(ctx context.Context, cfg Config) (*store.DB, error) {
	if cfg.Migrate {
		return store.Open(ctx, cfg.Database, cfg.Clock)
	}
	return store.OpenExisting(ctx, cfg.Database, cfg.Clock)
}

func prepareDatabase(ctx context.Context, db *store.DB, cfg Config) error {
	check := db.CheckSchema
	if cfg.Migrate {
		check = db.Migrate
	}
	if err := check(ctx); err != nil {
		return err
	}
	return db.StartClock(ctx, cfg.ClockOffset)
}

// settings returns what the features need.
func (n *Node) settings() app.Settings {
	s := n.cfg.Settings
	s.MasterKey = n.cfg.KeyFile()
	s.Webhooks.Local = front.IsLoopback(n.cfg.BaseURL.Hostname())
	s.Name = n.cfg.brand().Name
	s.Published, s.LinkURL, s.MailBrand = n.cfg.Shared(), strings.TrimSuffix(n.cfg.BaseURL.String(), "/"), n.cfg.Brand.Brand
	return s
}

// TimedOut returns how many requests and checks this node has answered 503 because something took
// too long.
func (n *Node) TimedOut() int64 { return n.site.TimedOut() }

// flushTimeout bounds the wait for the collector at the end.
const flushTimeout = 2 * time.Second

// Close releases the lease, sends the last spans and closes the database. Run calls it.
func (n *Node) Close() error {
	n.App.Lease.Leave(context.Background())
	n.tracer.Close(flushTimeout)
	return n.DB.Close()
}

// Start opens the database, brings its schema up to date, then listens on the main address and
// accepts connections; Run answers them. The admin address is served from the beginning: it says
// that the node isn't ready. Errors, among others: *lease.DiffersError when a running node has
// another value of a setting that is Strict (see Setting), unless cfg.ChangeShared;
// *masterkey.FileError, and *ListenError.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	n := newNode(cfg)
	err := n.serveAdmin()
	if err == nil {
		err = n.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.abandon())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if err := n.openDatabase(ctx); err != nil {
		return err
	}
	// Only now, so that a proxy tries another node while this one migrates.
	main, err := listen("listen", n.cfg.Listen)
	if err != nil {
		return err
	}
	n.main = n.addLimiter(main)
	n.cfg.Listen = main.address(n.cfg.Listen)
	n.addFeatures()
	n.makeHandlers()
	if err := n.App.Join(ctx); err != nil {
		return err
	}
	n.startTracing()
	return nil
}

// abandon closes what a failed start has opened.
func (n *Node) abandon() (err error) {
	if n.main != nil {
		err = n.main.Close()
	}
	if n.admin != nil {
		err = errors.Join(err, n.admin.listener.Close(), n.admin.http.Close())
		<-n.admin.done
	}
	switch {
	case n.App != nil:
		err = errors.Join(err, n.Close())
	case n.DB != nil:
		err = errors.Join(err, n.DB.Close())
	}
	return err
}

// startTracing switches tracing on, if there is a collector.
func (n *Node) startTracing() {
	o := n.cfg.Trace
	if o.Collector == nil {
		return
	}
	o.TrustedProxies, o.Log, o.Version, o.Node = n.cfg.Proxies, n.cfg.Log, n.cfg.Version, n.Address()
	n.tracer = trace.New(o)
	n.site.Tracer = n.tracer
}

// serveAdmin opens the admin address, if there is one, and serves it.
func (n *Node) serveAdmin() error {
	if n.cfg.AdminListen == "" {
		return nil
	}
	l, err := listen("admin-listen", n.cfg.AdminListen)
	if err != nil {
		return err
	}
	starting := ops.Starting()
	n.adminHandler.Store(&starting)
	n.addLimiter(l).handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*n.adminHandler.Load()).ServeHTTP(w, r)
	})
	n.admin = new(n.serverOn(l))
	n.admin.start()
	return nil
}

// makeHandlers makes what both addresses answer.
func (n *Node) makeHandlers() {
	isPublic := n.admin == nil // whether the main address serves these routes
	health := append(ops.Routes(n.site, n.draining.Load), ops.Metrics(n.site, isPublic))
	if !isPublic {
		admin := n.onOwnHosts(n.site.Handler(health))
		n.adminHandler.Store(&admin)
		health = nil
	}
	n.main.handler = n.closeWhileDraining(n.onOwnHosts(web.Handler(n.site, n.cfg.Version, n.cfg.Docs, append(health, n.cfg.Extra...))))
}

func (n *Node) onOwnHosts(h http.Handler) http.Handler {
	if n.cfg.OwnHostsOnly {
		return n.site.OnOwnHosts(h)
	}
	return h
}

// addLimiter gives a listener its limiter. Each has its own, so that clients of the main
// address can't block the admin address.
func (n *Node) addLimiter(l *listener) *listener {
	l.acceptErrors = &n.acceptErrors
	l.limiter = &connLimiter{traffic: &n.traffic, conns: newOpenConns(), open: map[string]int{}}
	l.limiter.limits.Store(n.cfg.connLimits())
	return l
}

// URL is the address of the node from outside.
func (n *Node) URL() string { return n.site.BaseURL() }

// Address is where the node listens, host:port.
func (n *Node) Address() string { return n.cfg.Listen }

// closeWhileDraining asks clients to reconnect while the node drains.
func (n *Node) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
