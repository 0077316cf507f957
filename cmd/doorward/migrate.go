package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web"
)

func migrateCommand() *cobra.Command {
	return onDatabase(newSettings(), &cobra.Command{
		Use: "migrate", Short: "Bring the database's schema up to date",
		Long: `Migrate applies the migrations that are missing. It takes a lock, and waits while
another node migrates. There are no downgrades.`,
		Example: "  doorward migrate --database postgres://doorward@db/doorward", Args: noArgs,
	}, func(cmd *cobra.Command, _ *node.Node, _ []string) error { // node.Open has migrated
		fmt.Fprintln(cmd.OutOrStdout(), "The schema is up to date.")
		return nil
	})
}

func configCommand() *cobra.Command {
	s := newSettings()
	check := &cobra.Command{
		Use: "check", Short: "Check the settings without starting anything",
		Example: "  doorward config check --config /etc/doorward/doorward.yaml", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.readToServe(cmd)
			if err != nil {
				return err
			}
			for _, w := range warnings(s, cfg) {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w.text)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The configuration is valid.\nRefused passwords: %s.\n", s.describeRefusedPasswords(cfg))
			return nil
		},
	}
	s.register(check.Flags())
	return group("config", "Work on the configuration", check, configPrintCommand())
}

func openAPICommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document",
		Example: "  doorward openapi --base-url https://auth.example.com > openapi.json", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.read(cmd)
			if err != nil {
				return err
			}
			doc, err := web.Document(strings.TrimSuffix(cfg.PublicURL().String(), "/"), cfg.CookieName, version())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), string(doc))
			return nil
		},
	}
	s.register(cmd.Flags(), node.GroupFile, node.GroupAddress)
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  doorward version", Args: noArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "doorward", version()) },
	}
}

// release is set by the linker where a release has another version than the source.
var release string

// version returns the release, or else the version of the source. During development that has the
// commit, too, if the Go tool has recorded it.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasSuffix(doorward.Version, "-dev") {
		return doorward.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return doorward.Version + "+" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return doorward.Version
}
