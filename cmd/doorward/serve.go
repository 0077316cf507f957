package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
)

func serveCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve in production",
		Long: `Serve brings the database's schema up to date and answers until it is told to
stop (SIGTERM or Ctrl-C); then it answers what is under way and ends.`,
		Example: `  doorward serve --base-url https://auth.example.com --smtp smtps://user:pass@mail.example.com
  doorward serve --database postgres://doorward@db1,db2/doorward --config /etc/doorward.yaml
  DOORWARD_DATABASE_FILE=/run/secrets/database doorward serve`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.nodeConfig(cmd)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, func(*node.Node) error { return nil })
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// serve runs a node until ctx ends; ready is called when it listens.
func serve(ctx context.Context, cfg node.Config, ready func(*node.Node) error) error {
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("serving", "address", n.Address(), "baseURL", n.URL(), "database", n.DB.Engine(), "version", cfg.Version)
	if err := ready(n); err != nil {
		return fmt.Errorf("%w", err)
	}
	return n.Run(ctx)
}
