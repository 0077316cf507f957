package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/dev"
	"github.com/doorward/doorward/web/front"
)

const (
	devFolder = "doorward-dev"
	// devPassword is no secret: it is printed, and dev listens on loopback only.
	devPassword = "open sesame 9042"
)

func devCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try it: a server on this machine with a tenant and four people",
		Long: `Dev serves on loopback with SQLite in ./` + devFolder + `/, makes the tenant "Acme"
with one person per role, and shows mail at /dev/mail instead of sending it.
Delete the folder to start over.`,
		Example: "  doorward dev\n  doorward dev --listen localhost:9090\n  doorward dev --model model.yaml",
		Args:    noArgs,
	}
	var modelFile string
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runDev(cmd, s, modelFile) }
	cmd.Flags().StringVar(&modelFile, "model", "", "a file with a model of the platform's own actions, which is applied first")
	s.register(cmd.Flags())
	hideFlags(cmd, chosenByDev...)
	return cmd
}

// chosenByDev are the settings that dev chooses itself.
var chosenByDev = []string{
	"database", "smtp", "mail-from", "migrate", "admin-listen", "trusted-proxies",
	"tls-cert", "tls-key", "acme-dir", "acme-url", "acme-email",
}

func runDev(cmd *cobra.Command, s *settings, modelFile string) error {
	cfg, err := s.devConfig(cmd)
	if err != nil {
		return err
	}
	mailbox := &dev.Mailbox{}
	cfg.Transport, cfg.Extra, cfg.Announce, cfg.OwnHostsOnly = mailbox, startPage(mailbox).Routes(), 0, true
	if err := seed(cmd.Context(), cfg, mailbox); err != nil {
		return err
	}
	mailbox.Log = cfg.Log
	cfg.Database = "sqlite:" + filepath.Join(devFolder, "doorward.db")
	if modelFile != "" {
		if err := applyFile(cmd, cfg, modelFile); err != nil {
			return err
		}
	}
	return serve(cmd.Context(), cfg, func(n *node.Node) { welcome(cmd.OutOrStdout(), n) })
}

// applyFile applies a model before the server starts. A text that is in force already
// changes nothing.
func applyFile(cmd *cobra.Command, cfg node.Config, name string) error {
	text, err := readModel(cmd.InOrStdin(), name)
	if err != nil {
		return err
	}
	n, err := node.Open(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	const force = false
	_, err = applyModel(cmd.Context(), n, text, force)
	return errors.Join(printModelFaults(cmd.ErrOrStderr(), name, err), n.Close())
}

func (s *settings) devConfig(cmd *cobra.Command) (cfg node.Config, err error) {
	if s.origins, err = resolve(cmd); err != nil {
		return cfg, err
	}
	for _, name := range chosenByDev {
		if cmd.Flags().Changed(name) {
			return cfg, s.refuse(name, "dev chooses this itself. Leave it out, or use \"doorward serve\".")
		}
	}
	if host, _, err := net.SplitHostPort(s.cfg.Listen); err == nil && !front.IsLoopback(host) {
		return cfg, s.refuseValue("listen", s.cfg.Listen, "dev listens on loopback only, since everybody knows its passwords. Use \"doorward serve\" there.")
	}
	return s.nodeConfig()
}

func welcome(out io.Writer, n *node.Node) {
	fmt.Fprintf(out, "\nDoorward %s is ready at %s\n\n  Tenant Acme, password of all four: %s\n", version(), n.URL(), devPassword)
	for _, role := range doorward.Roles {
		fmt.Fprintf(out, "    %-7s %s\n", role, demoAddress(role))
	}
	fmt.Fprintf(out, "\n  Begin at  %[1]s\n  Mail      %[1]s/dev/mail\n  Docs      %[1]s/docs\n\n", n.URL())
}

// startPage is the page at /. It lets anybody sign in as anybody, so devConfig accepts
// only loopback addresses, and the server answers under their names only.
func startPage(mailbox *dev.Mailbox) *dev.Start {
	page := &dev.Start{Mailbox: mailbox, Tenant: "Acme", Password: devPassword}
	for _, role := range slices.Backward(doorward.Roles) {
		page.People = append(page.People, dev.Person{Role: role, Email: demoAddress(role)})
	}
	return page
}

func demoAddress(role doorward.Role) string {
	return strings.ToLower(string(role)) + "@acme.example"
}

// seed creates the demo database in a temporary folder and moves it into place when it
// is complete, so that an interrupted first start leaves no partial database.
func seed(ctx context.Context, cfg node.Config, mailbox *dev.Mailbox) error {
	final := filepath.Join(devFolder, "doorward.db")
	if _, err := os.Stat(final); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(devFolder, 0o700); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(devFolder, "seed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	draft := filepath.Join(folder, "doorward.db")
	cfg.Database = "sqlite:" + draft
	cfg.Log = slog.New(slog.DiscardHandler)
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	if err := errors.Join(populate(ctx, n), n.Close()); err != nil {
		return err
	}
	mailbox.Clear()
	return os.Rename(draft, final)
}

// populate registers the OWNER with the link of the new tenant and imports the others,
// so that nobody has signed in yet.
func populate(ctx context.Context, n *node.Node) error {
	by := n.Operator()
	created, err := n.App.Tenants.Create(ctx, by, tenant.Draft{Name: "Acme", OwnerEmail: demoAddress(doorward.RoleOwner)})
	if err != nil {
		return err
	}
	owner, err := n.App.Invitations.Complete(ctx, by, created.Token.Reveal(), devPassword, devPassword)
	if err != nil {
		return err
	}
	account, err := n.DB.Read().Account(ctx, owner.ID)
	if err != nil {
		return err
	}
	var others roster.List
	for _, role := range []doorward.Role{doorward.RoleAdmin, doorward.RoleUser, doorward.RoleViewer} {
		others.People = append(others.People, roster.Person{
			Email: demoAddress(role), Role: role, Status: doorward.UserActive, PasswordHash: account.PasswordHash,
		})
	}
	const dryRun = false
	_, err = n.App.Users.Import(ctx, by, created.Tenant.ID, others, dryRun)
	return err
}
