package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/docs"
	"github.com/doorward/doorward/internal/tlscert"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

func serveCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve in production",
		Long: `Serve brings the database's schema up to date and serves until it receives SIGTERM
or SIGINT (Ctrl-C), or its terminal is closed. Then it finishes the requests in
progress and exits.

On SIGHUP it reads the file of settings again. docs/configuration.md says which
settings come into force then, and which need a restart; the log names those that have
changed. If anything is wrong with the new ones, all of the earlier ones stay.`,
		Example: `  doorward serve --base-url https://auth.example.com --smtp smtps://mail.example.com
  doorward serve --database postgres://doorward@db1,db2/doorward --config /etc/doorward/doorward.yaml
  DOORWARD_DATABASE_FILE=/run/secrets/database doorward serve`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reloads := newReloader(cmd, s)
			cfg, err := s.readToServe(cmd)
			if err != nil {
				return err
			}
			reloads.remember()
			warn(s, cfg)
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			return serve(ctx, cfg, func(n *node.Node) { go reloads.run(ctx, n, cfg, stop) })
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// warning is about settings that are valid and probably a mistake.
type warning struct {
	text        string
	name, value string // of the setting, for the log; may be empty
}

func warn(s *settings, cfg node.Config) {
	for _, w := range warnings(s, cfg) {
		var attrs []any
		if w.name != "" {
			attrs = []any{w.name, w.value}
		}
		cfg.Log.Warn(w.text, attrs...)
	}
}

func warnings(s *settings, cfg node.Config) (all []warning) {
	if insecurePublicURL(cfg.BaseURL) {
		all = append(all, warning{"base-url is plain http on a public name: browsers will not send the session cookie back; use https", "baseURL", s.raw.BaseURL})
	}
	if host, _, _ := net.SplitHostPort(cfg.Listen); cfg.BaseURL == nil && !front.IsLoopback(host) {
		all = append(all, warning{text: "links in mails point to " + cfg.PublicURL().String() + "; set --base-url to the address that people open"})
	}
	if s.raw.ACMEDir == "" && (s.raw.ACMEEmail != "" || s.raw.ACMEURL != tlscert.LetsEncrypt) {
		all = append(all, warning{text: "acme-email and acme-url do nothing without acme-dir; set --acme-dir to order a certificate"})
	}
	if wide, many := findWideNetworks(cfg.Proxies); wide != nil {
		all = append(all, warning{"trusted-proxies match " + many + ", so clients there can claim any address and evade limits and falsify the audit trail; name only the proxies", "trustedProxies", joinNetworks(wide)})
	}
	if cfg.Attempts.PerAccount == 0 {
		all = append(all, warning{text: "limit-login-account is 0: nothing slows down guesses of a person's password from many addresses; leave it out"})
	}
	if s.raw.TraceHeader != "" && insecurePublicURL(cfg.Trace.Collector) {
		all = append(all, warning{"trace-header goes over plain http to another machine, where others may read it; use https", "traceOTLP", s.raw.TraceOTLP})
	}
	if name := findServiceLink(os.Environ()); name != "" {
		all = append(all, warning{text: name + " is no setting and is ignored: Kubernetes sets it for a service of this name; set enableServiceLinks: false in the pod"})
	}
	if exposed := exposedSecret(s.raw.File); exposed != "" {
		all = append(all, warning{text: exposed})
	}
	if s.logsMail() {
		all = append(all, warning{text: "mails go to this log, with links that give access; set --smtp to send them"})
	}
	return all
}

// databaseFile names the file of SQLite in the log: a server that was started in another
// folder makes a new database there, and nobody can sign in.
func databaseFile(database string) slog.Attr {
	path, isFile := strings.CutPrefix(database, "sqlite:")
	if !isFile {
		return slog.Attr{} // handlers leave it out
	}
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	return slog.String("file", path)
}

// serve runs a node until ctx ends; ready is called when it listens.
func serve(ctx context.Context, cfg node.Config, ready func(*node.Node)) error {
	cfg.HashChild, cfg.Docs = hashChild, docs.Files
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("serving", "address", n.Address(), "baseURL", n.URL(), "database", n.DB.Engine(), databaseFile(cfg.Database), "version", cfg.Version, "node", n.App.Lease.ID())
	ready(n)
	go node.PaceGC()
	return n.Run(ctx)
}
