package main

import (
	"context"
	"net"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

func serveCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve in production",
		Long: `Serve brings the database's schema up to date and answers until it is told to
stop (SIGTERM or Ctrl-C); then it answers what is under way and ends.`,
		Example: `  doorward serve --base-url https://auth.example.com --smtp smtps://mail.example.com
  doorward serve --database postgres://doorward@db1,db2/doorward --config /etc/doorward/doorward.yaml
  DOORWARD_DATABASE_FILE=/run/secrets/database doorward serve`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.readToServe(cmd)
			if err != nil {
				return err
			}
			warn(s, cfg)
			return serve(cmd.Context(), cfg, func(*node.Node) {})
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// warn tells of settings that are valid and hardly meant.
func warn(s *settings, cfg node.Config) {
	if plainAbroad(cfg.BaseURL) {
		cfg.Log.Warn("base-url is plain http on a public name: browsers will not send the session cookie back; use https", "baseURL", s.baseURL)
	}
	if host, _, _ := net.SplitHostPort(cfg.Listen); cfg.BaseURL == nil && !front.IsLoopback(host) {
		cfg.Log.Warn("links in mails point to " + cfg.PublicURL().String() + "; set --base-url to the address that people open")
	}
	if s.traceHeader != "" && plainAbroad(cfg.Trace.Collector) {
		cfg.Log.Warn("trace-header goes over plain http to another machine, where others may read it; use https", "traceOTLP", s.traceOTLP)
	}
	if s.mailIsLogged() {
		cfg.Log.Warn("mails go to this log, with the links that let people in; set --smtp to send them")
	}
}

// serve runs a node until ctx ends; ready is called when it listens.
func serve(ctx context.Context, cfg node.Config, ready func(*node.Node)) error {
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("serving", "address", n.Address(), "baseURL", n.URL(), "database", n.DB.Engine(), "version", cfg.Version)
	ready(n)
	return n.Run(ctx)
}
