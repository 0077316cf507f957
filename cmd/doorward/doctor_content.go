package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/model"
	"github.com/doorward/doorward/store"
)

// checkContent checks a database whose schema is up to date.
func checkContent(ctx context.Context, db *store.DB) (all []finding) {
	for _, check := range []func(context.Context, *store.DB) (finding, bool){
		checkWriting, checkMaintenance, checkSpace, checkPages, checkIndexes, checkTrails, checkPauses, checkQueue, checkDeliveries, checkWebhooks, checkOwners, checkModel,
	} {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		if f, ok := check(ctx, db); ok {
			all = append(all, f)
		}
		cancel()
	}
	return all
}

// checkTimeout bounds each of these checks.
const checkTimeout = 10 * time.Second

// adviceReadOnly says what to do about a database that takes no writes.
const adviceReadOnly = "Make sure that the user of the server may write to the database and its folder, and that it is not a standby, set to read-only (default_transaction_read_only) or on a read-only file system."

func checkWriting(ctx context.Context, db *store.DB) (finding, bool) {
	f := finding{check: "writing", fine: "a write was tried and rolled back"}
	err := db.TryWrite(ctx)
	if err == nil {
		return f, true
	}
	f.wrong, f.code = cause(err), exitUnavailable // as other commands that the database doesn't serve
	switch {
	case db.IsDiskFull(err):
		f.remedy = "The disk of the database is full. Free some space: until then nobody can sign in. No restart is needed afterwards."
	case db.IsLocked(err):
		f.remedy = "Another program holds the lock for writing. \"fuser -v\" on the file and its -wal shows which; end it."
	default:
		f.remedy = adviceReadOnly
	}
	return f, true
}

// checkMaintenance reports a pause that somebody may have forgotten.
func checkMaintenance(ctx context.Context, db *store.DB) (finding, bool) {
	m, err := db.Read().Maintenance(ctx)
	f := finding{check: "maintenance", fine: "changes are not paused"}
	switch {
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
	case m.On:
		f.wrong, f.code = describeMaintenance(m), exitFailed
		f.remedy = "\"doorward maintenance off\" resumes them. Until then changes are answered with 503 maintenance."
	}
	return f, true
}

// The minimums leave room for a busy hour, so that an operator has time to react.
const (
	minFreeBytes = 64 << 20
	minFreeFiles = 100
)

func checkSpace(_ context.Context, db *store.DB) (finding, bool) {
	s, err := db.Space()
	f := finding{check: "space", fine: fmt.Sprintf("%d MiB are free beside the database", s.Free>>20), code: exitFailed}
	switch {
	case errors.Is(err, store.ErrNone):
		return f, false
	case err != nil:
		f.wrong = cause(err)
	case s.Free < minFreeBytes:
		f.wrong = fmt.Sprintf("only %d MiB are free in %s", s.Free>>20, s.Folder)
		f.remedy = "Free some space: without it writes are answered with 503, and a backup beside the database needs as much as the database."
	case s.FilesKnown && s.Files < minFreeFiles:
		f.wrong = fmt.Sprintf("only %d more files can be made in %s", s.Files, s.Folder)
		f.remedy = "Delete files there that are not needed: \"df -i\" shows how many inodes are used."
	default:
		f.code = 0
	}
	return f, true
}

// findLowSpace reports a lack of space, which can keep a database from opening.
func findLowSpace(ctx context.Context, db *store.DB) []finding {
	if db == nil {
		return nil
	}
	if f, ok := checkSpace(ctx, db); ok && f.wrong != "" {
		return []finding{f}
	}
	return nil
}

func checkPages(ctx context.Context, db *store.DB) (finding, bool) {
	l, err := db.CheckPages(ctx)
	f := finding{check: "pages", fine: "no damage found"}
	switch {
	case errors.Is(err, store.ErrNone):
		return f, false
	case err != nil:
		f.wrong = cause(err)
	case l.Damage != "":
		f.wrong = "the database is damaged: " + strings.Join(strings.Fields(l.Damage), " ")
	case l.Tables < l.Total:
		f.fine = fmt.Sprintf("no damage found in the %d of %d tables checked in the time allowed; \"doorward backup\" checks all", l.Tables, l.Total)
	}
	if f.wrong != "" {
		f.code = exitFailed
		f.remedy = "Stop the servers, keep the files as they are, and restore the last backup: docs/operations.md."
	}
	return f, true
}

// recentEvents is how many events at the end of each trail are checked.
const recentEvents = 1000

func checkTrails(ctx context.Context, db *store.DB) (finding, bool) {
	f := finding{check: "audit trail", code: exitFailed}
	recordNothing := func(context.Context) {} // doctor leaves refusals in the inbox
	trail := audit.New(db, recordNothing)
	chains, err := trail.Chains(ctx)
	if err != nil {
		f.wrong = cause(err)
		return f, true
	}
	for i, id := range chains {
		intact, err := trail.RecentIntact(ctx, id, recentEvents)
		switch {
		case err != nil && ctx.Err() != nil:
			f.code, f.fine = 0, fmt.Sprintf("the ends of the %d of %d checked in the time allowed are intact; \"doorward audit verify\" checks all", i, len(chains))
			return f, true
		case err != nil:
			f.wrong = cause(err)
			return f, true
		case !intact:
			f.wrong = "the trail of " + chainName(id) + " was tampered with"
			f.remedy = "\"doorward audit verify\" shows where; docs/audit.md says what to do."
			return f, true
		}
	}
	f.code, f.fine = 0, fmt.Sprintf("the last %d events of each are intact; \"doorward audit verify\" checks all", recentEvents)
	return f, true
}

// maxMailAge is how long a mail may wait, as for the alert DoorwardMailStuck.
const maxMailAge = 15 * time.Minute

func checkQueue(ctx context.Context, db *store.DB) (finding, bool) {
	v, err := db.Read().Vitals(ctx, db.Now())
	f := finding{check: "mail queue", fine: fmt.Sprintf("%d wait", v.MailsQueued)}
	age := db.Now().Sub(v.OldestMail)
	switch {
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
	case v.MailsQueued > 0 && age > maxMailAge:
		f.wrong, f.code = fmt.Sprintf("%s, one of them since %s", counted(v.MailsQueued, "mail waits", "mails wait"), v.OldestMail.Format(time.RFC3339)), exitFailed
		f.remedy = "Is a server running? \"doorward mail queue list\" and its log say why a mail could not be sent: look for \"mail not sent yet\"."
	}
	return f, true
}

// ownersNamed is how many tenants without an active OWNER are named.
const ownersNamed = 20

// checkOwners reports tenants that nobody can administer fully: the undo of a change of an address may
// have suspended the only OWNER.
func checkOwners(ctx context.Context, db *store.DB) (finding, bool) {
	f := finding{check: "owners", fine: "each tenant with members has an active OWNER, or one who is invited"}
	all, err := db.Read().OwnerlessTenants(ctx, db.Now(), ownersNamed)
	if err != nil {
		f.wrong, f.code = cause(err), exitUnavailable
		return f, true
	}
	var names []string
	for _, t := range all {
		names = append(names, fmt.Sprintf("%s (%s, %s)", t.Name, t.ID, t.Status))
	}
	if len(names) > 0 {
		f.wrong, f.code = "no active OWNER in "+strings.Join(names, ", "), exitFailed
		f.remedy = "\"doorward user list --tenant\" names the members. Make one of them OWNER with \"doorward user set-role\", or let an OWNER in again with \"doorward user resume\"."
	}
	return f, true
}

// checkModel checks the platform's model as this version reads it: nodes of this version
// refuse to everybody what they can't read in it.
func checkModel(ctx context.Context, db *store.DB) (finding, bool) {
	v, err := db.Read().Model(ctx)
	f := finding{check: "model", fine: fmt.Sprintf("version %d, without faults", v.Version)}
	switch {
	case errors.Is(err, store.ErrNone):
		return f, false
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
		return f, true
	}
	var refused *doorward.Error
	switch err := model.Check(v.Text); {
	case errors.As(err, &refused) && len(refused.Fields) > 0:
		first := refused.Fields[0]
		f.wrong = fmt.Sprintf("version %d has faults, the first of %d at %d:%d: %s", v.Version, len(refused.Fields), first.Line, first.Column, first.Message)
	case err != nil:
		f.wrong = cause(err)
	}
	if f.wrong != "" {
		f.code = exitFailed
		f.remedy = "Another version of Doorward has accepted it. \"doorward model show\" prints it: correct it and apply it, or use that version. Until then nobody may do what this version can't read; with a fault in policies or entities, no action of the platform."
	}
	return f, true
}
