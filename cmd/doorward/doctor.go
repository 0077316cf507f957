package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func doctorCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check configuration, database, schema, mail and clock",
		Long: `Doctor checks everything a server needs and says how to fix what is wrong. It tries
a write and rolls it back, checks the pages of SQLite and the end of each audit trail
for some seconds, and gives the sender's address to the mail server without sending. It
connects to the base URL, and asks a server on this machine for its metrics. It leaves
nothing behind, except a record in PostgreSQL's log where commits wait for a standby. Exit code 0 means that everything is in order.`,
		Example: "  doorward doctor --config /etc/doorward/doorward.yaml", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.readToServe(cmd)
			if err != nil {
				return err
			}
			return examine(cmd.Context(), cmd.OutOrStdout(), s, cfg)
		},
	}
	s.register(cmd.Flags())
	cmd.AddCommand(gatewayDoctorCommand(), ssoDoctorCommand())
	return cmd
}

// finding is the outcome of one check.
type finding struct {
	check  string // what was checked
	fine   string // the result if nothing is wrong
	wrong  string // empty if nothing is wrong
	remedy string
	code   int // exit code; 0 if nothing is wrong
}

func examine(ctx context.Context, out io.Writer, s *settings, cfg node.Config) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	findings := []finding{{check: "configuration", fine: "valid"}, {check: "passwords", fine: s.describeRefusedPasswords(cfg)}, checkBaseURL(cfg)}
	for _, found := range [][]finding{checkReach(ctx, s, cfg), checkCertificate(s, cfg), checkProxies(s, cfg), checkLimits(s, cfg), checkServer(ctx, s, cfg)} {
		findings = append(findings, found...)
	}
	findings = append(findings, checkDatabase(ctx, s, cfg)...)
	findings = append(findings, checkMail(ctx, s, cfg))
	code := 0
	for _, f := range findings {
		f.print(out)
		code = max(code, f.code)
	}
	if code != 0 {
		return &failure{code, errors.New("some checks failed")}
	}
	return nil
}

func (f finding) print(out io.Writer) {
	if f.wrong == "" {
		fmt.Fprintf(out, "ok    %-13s  %s\n", f.check, f.fine)
		return
	}
	fmt.Fprintf(out, "FAIL  %-13s  %s\n", f.check, f.wrong)
	if f.remedy != "" {
		fmt.Fprintf(out, "      %-13s  %s\n", "", f.remedy)
	}
}

func checkBaseURL(cfg node.Config) finding {
	f := finding{check: "base URL", fine: cfg.PublicURL().String()}
	if insecurePublicURL(cfg.BaseURL) {
		f.wrong = fmt.Sprintf("%s is plain http on a public name: browsers will not send the session cookie back", cfg.BaseURL)
		f.remedy, f.code = "Serve it over https and set --base-url to the https address.", exitFailed
	}
	return f
}

// checkProxies returns a finding only if something is wrong.
func checkProxies(s *settings, cfg node.Config) []finding {
	wide, many := findWideNetworks(cfg.Proxies)
	if wide == nil {
		return nil
	}
	verb := "match"
	if len(wide) == 1 {
		verb = "matches"
	}
	return []finding{{
		check: "proxies", code: exitFailed,
		wrong:  fmt.Sprintf("%s %s %s: clients there can claim any address, which evades the limits and falsifies the audit trail", joinNetworks(wide), verb, many),
		remedy: "Set " + s.origins.place("trusted-proxies") + " to the addresses of the proxies only.",
	}}
}

// checkDatabase creates no file and migrates nothing.
func checkDatabase(ctx context.Context, s *settings, cfg node.Config) []finding {
	f := finding{check: "database", code: exitUnavailable}
	db, err := store.OpenExisting(ctx, cfg.Database, cfg.Clock)
	if err == nil {
		defer db.Close()
		err = db.CheckPooling(ctx)
	}
	if err == nil {
		err = db.Ping(ctx)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.wrong = "there is no file " + strings.TrimPrefix(cfg.Database, "sqlite:")
		f.remedy = "\"doorward migrate\" and \"doorward serve\" make it; --database names another one."
		return []finding{f}
	case errors.Is(err, store.ErrPooled):
		f.wrong = cause(err)
		return []finding{f}
	case store.IsReadOnly(err):
		f.wrong, f.remedy = cause(err), adviceReadOnly
		return []finding{f}
	case err != nil:
		f.wrong = cause(err)
		f.remedy = "Check " + s.origins.place("database") + ", that its server runs, and that it lets this machine in."
		if strings.HasPrefix(cfg.Database, "sqlite:") {
			f.remedy = "Check " + s.origins.place("database") + ", that this user may read and write the file and its folder, and that the disk isn't full. If it is damaged, restore the last backup: docs/operations.md."
		}
		return append([]finding{f}, findLowSpace(ctx, db)...)
	}
	all := []finding{{check: "database", fine: db.Engine() + " answers"}, checkSchema(ctx, db), checkClock(ctx, db, cfg)}
	if all[1].wrong == "" {
		all = append(all, checkMasterKey(ctx, db, cfg))
		all = append(all, checkContent(ctx, db)...)
	}
	all = append(all, checkAgreement(ctx, db, s, cfg)...)
	if f, ok := checkReplication(ctx, db); ok {
		all = append(all, f)
	}
	return all
}

// checkReplication reports whether commits wait for a standby: only the operator knows
// whether they should. If they do, a commit must succeed. SQLite has no replication.
func checkReplication(ctx context.Context, db *store.DB) (f finding, ok bool) {
	f = finding{check: "replication", fine: "synchronous: a failover loses no confirmed write"}
	isSynchronous, err := db.Synchronous(ctx)
	switch {
	case errors.Is(err, store.ErrNone):
		return f, false
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
	case !isSynchronous:
		f.fine = "not synchronous: a failover may lose confirmed writes"
	default:
		checkStandby(ctx, db, &f)
	}
	return f, true
}

// commitTimeout is how long a standby may take: longer than any request waits.
const commitTimeout = 5 * time.Second

// checkStandby waits for a commit: a write that is rolled back would not wait for the
// standby.
func checkStandby(ctx context.Context, db *store.DB, f *finding) {
	commitCtx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	err := db.TryCommit(commitCtx)
	switch {
	case err == nil:
	case commitCtx.Err() != nil:
		f.wrong, f.code = fmt.Sprintf("a commit has waited for a synchronous standby for %v: none is there, and every write is 503", commitTimeout), exitUnavailable
		f.remedy = "Start the standby, or have PostgreSQL wait for none: synchronous_standby_names, or what manages it; docs/high-availability.md."
	default:
		f.wrong, f.code = cause(err), exitUnavailable
	}
}

func checkSchema(ctx context.Context, db *store.DB) finding {
	f := finding{check: "schema", fine: "as this binary needs it"}
	if err := db.CheckSchema(ctx); err != nil {
		f.wrong, f.code = cause(err), exitUnavailable
		if !errors.Is(err, store.ErrSchema) { // which says itself what to do
			f.remedy = "Check that --database names Doorward's database, and that its user may read and write the tables."
		}
	} else if db.CheckOwnSchema(ctx) != nil {
		f.fine = "newer than this binary, and compatible with it"
	}
	return f
}

// checkClock compares the clocks. Expiry uses the database's, and a node whose clock is
// too far from it answers 503.
func checkClock(ctx context.Context, db *store.DB, cfg node.Config) finding {
	f := finding{check: "clock", fine: fmt.Sprintf("within %v of the database's", store.ClockWarning)}
	if db.CheckSchema(ctx) != nil {
		f.fine = "can be compared once the schema is up to date"
		return f
	}
	err := db.StartClock(ctx, cfg.ClockOffset)
	drift := time.Duration(0)
	if err == nil {
		drift, err = db.ClockDrift(ctx)
	}
	switch {
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
	case drift.Abs() > store.ClockWarning:
		f.wrong, f.code = fmt.Sprintf("this machine's clock is %s the database's", store.DescribeDrift(drift)), exitFailed
		if drift.Abs() > store.ClockTolerance {
			f.wrong += ": a server here is not ready, and answers with 503 what depends on the time"
		}
		f.remedy = "Run a time service such as chrony or systemd-timesyncd on both machines."
	}
	return f
}

// mailTimeout bounds the entire exchange with the mail server.
const mailTimeout = 15 * time.Second

func checkMail(ctx context.Context, s *settings, cfg node.Config) finding {
	f := finding{check: "mail", fine: "the destination takes mail"}
	if s.logsMail() {
		f.fine = "goes to the log only; set --smtp to send it"
	}
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	if err := cfg.Transport.Check(ctx); err != nil {
		f.wrong, f.code = cause(err), exitFailed
		if smtp.IsClientRefused(err) {
			f.remedy = "Let the server take mail of this machine to other hosts, by its address or by user and password in " + s.origins.place("smtp") + "; if it refuses the name in EHLO, set " + s.origins.place("smtp-hello") + ". Mails stay queued until they can be sent."
			return f
		}
		if smtp.IsSenderRefused(err) {
			f.remedy = "Set " + s.origins.place("mail-from") + " to an address that the server sends for, or allow it there. Mails stay queued until they can be sent."
			return f
		}
		f.remedy = "Check " + s.origins.place("smtp") + ". Mails stay queued until they can be sent."
	}
	return f
}

// cause returns the underlying error on one line, without advice.
func cause(err error) string {
	var e *doorward.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return strings.Join(strings.Fields(plain(err)), " ")
}
