package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/web/front"
)

func doctorCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check configuration, database, schema, mail and clock",
		Long:    `Doctor checks everything a server needs and says what to do about what is wrong. It changes nothing.`,
		Example: "  doorward doctor --config /etc/doorward.yaml", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.nodeConfig(cmd)
			if err != nil {
				return err
			}
			return examine(cmd, cfg)
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// finding is the outcome of one check: fine, or what is wrong and what to do.
type finding struct {
	what, fine string
	err        error
	hint       string
}

func examine(cmd *cobra.Command, cfg node.Config) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), 20*time.Second)
	defer cancel()
	findings := append([]finding{{what: "configuration", fine: "valid"}, checkBaseURL(cfg)}, checkDatabase(ctx, cfg)...)
	findings = append(findings, checkMail(ctx, cfg))
	var worst error
	for _, f := range findings {
		if f.err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "ok    %-13s %s\n", f.what, f.fine)
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "FAIL  %-13s %s\n      %s\n", f.what, describe(f.err), f.hint)
		worst = firstError(worst, f.err)
	}
	if worst != nil {
		return &failure{exitCode(worst), fmt.Errorf("something is wrong; see above")}
	}
	return nil
}

func checkBaseURL(cfg node.Config) finding {
	f := finding{what: "base URL", fine: "http://" + cfg.Listen}
	if u := cfg.BaseURL; u != nil {
		f.fine = u.String()
		if u.Scheme == "http" && !front.IsLoopback(u.Hostname()) {
			f.err = fmt.Errorf("%s is plain http on a public name, so browsers will not send the session cookie", u)
			f.hint = "Serve it over https and set --base-url to the https address."
		}
	}
	return f
}

// checkDatabase looks without touching: no file is made, nothing migrated.
func checkDatabase(ctx context.Context, cfg node.Config) []finding {
	db, err := store.OpenExisting(ctx, cfg.Database, cfg.Clock)
	if err != nil {
		return []finding{{what: "database", err: err, hint: "Check --database. A SQLite file is made by \"doorward migrate\" or \"doorward serve\"."}}
	}
	defer db.Close()
	if err := db.Ping(ctx); err != nil {
		return []finding{{what: "database", err: err, hint: "Check --database, that the server runs, and that it lets this machine in."}}
	}
	return []finding{
		{what: "database", fine: db.Engine() + " answers"},
		{what: "schema", fine: "as needed", err: db.CheckSchema(ctx), hint: "See above."},
		checkClock(ctx, db),
	}
}

// tolerated is how far clocks of nodes may be apart. Expiry is judged by the
// node's clock.
const tolerated = 2 * time.Second

func checkClock(ctx context.Context, db *store.DB) finding {
	f := finding{what: "clock", hint: "Run a time service such as chrony or systemd-timesyncd on both machines."}
	drift, err := db.ClockDrift(ctx)
	switch f.err = err; {
	case err == nil && drift.Abs() > tolerated:
		f.err = fmt.Errorf("this machine's clock is %v off the database's", drift.Round(time.Millisecond))
	default:
		f.fine = fmt.Sprintf("within %v of the database's", tolerated)
	}
	return f
}

func checkMail(ctx context.Context, cfg node.Config) finding {
	return finding{
		what: "mail", fine: "the destination takes mail", err: cfg.Transport.Check(ctx),
		hint: "Check --smtp. Invitations wait in the queue until mail can leave.",
	}
}
