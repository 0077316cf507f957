package main

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// checkIndexes reports indexes that somebody has dropped, or that couldn't be made.
func checkIndexes(ctx context.Context, db *store.DB) (finding, bool) {
	f := finding{check: "indexes", fine: "all are there"}
	if db.CheckOwnSchema(ctx) != nil { // a newer version may have replaced some
		return f, false
	}
	missing, err := db.MissingIndexes(ctx)
	if err != nil {
		f.wrong, f.code = cause(err), exitUnavailable
		return f, true
	}
	var names, statements []string
	for _, i := range missing {
		names, statements = append(names, i.Name), append(statements, i.Statement+";")
	}
	if len(missing) > 0 {
		f.wrong, f.code = "missing, or not valid: "+strings.Join(names, ", ")+". Statements that need it read whole tables", exitFailed
		f.remedy = "Make it again, in a quiet hour, on PostgreSQL with CREATE INDEX CONCURRENTLY (drop one that is not valid first): " + strings.Join(statements, " ")
	}
	return f, true
}

// checkPauses reports pauses of queues that somebody may have forgotten.
func checkPauses(ctx context.Context, db *store.DB) (finding, bool) {
	all, err := db.Read().QueuePauses(ctx)
	f := finding{check: "queues", fine: "none is paused"}
	if err != nil {
		f.wrong, f.code = cause(err), exitUnavailable
		return f, true
	}
	var texts, commands []string
	for _, p := range all {
		texts, commands = append(texts, describePause(p)), append(commands, resumeCommand(p))
		f.code, f.remedy = exitFailed, "To end what nobody needs any more: "+strings.Join(commands, ", ")
	}
	f.wrong = strings.Join(texts, "; ")
	return f, true
}

// resumeCommand returns the command that ends p, in quotes.
func resumeCommand(p store.QueuePause) string {
	command := queueOf[p.Queue].command + " resume"
	switch {
	case strings.HasPrefix(p.Scope, doorward.PrefixTenant):
		command += " --tenant " + p.Scope
	case p.Scope != "":
		command += " --webhook " + p.Scope
	}
	return `"` + command + `"`
}

// checkDeliveries reports deliveries that no server tries. It is silent while any are paused.
func checkDeliveries(ctx context.Context, db *store.DB) (finding, bool) {
	v, err := db.Read().Vitals(ctx, db.Now())
	f := finding{check: "webhook queue", fine: fmt.Sprintf("%d wait", v.Deliveries)}
	switch {
	case err != nil:
		f.wrong, f.code = cause(err), exitUnavailable
	case v.Deliveries > 0 && v.WebhookPauses == 0 && db.Now().Sub(v.DeliveryDue) > maxMailAge:
		f.wrong, f.code = fmt.Sprintf("%s, one of them is due since %s, and no server has tried it", counted(v.Deliveries, "delivery waits", "deliveries wait"), v.DeliveryDue.Format(time.RFC3339)), exitFailed
		f.remedy = "Is a server running, with the master key? Its log says what is wrong: look for \"webhook queue\"."
	}
	return f, true
}

const (
	// deadAfter is how long a webhook must have failed to be reported: after the second attempt.
	deadAfter = time.Minute
	// deadNamed is how many webhooks are named.
	deadNamed = 20
)

// checkWebhooks reports webhooks that get nothing, and those of the installation that were disabled for that.
func checkWebhooks(ctx context.Context, db *store.DB) (finding, bool) {
	f := finding{check: "webhooks", fine: "none fails"}
	failing, err := db.Read().WebhooksFailing(ctx, db.Now().Add(-deadAfter), math.MaxInt32, deadNamed)
	if err == nil {
		err = db.Read().EachWebhook(ctx, "", func(w doorward.Webhook) error {
			if !w.Enabled && w.DisabledReason == doorward.DisabledFailing {
				failing = append(failing, w)
			}
			return nil
		})
	}
	if err != nil {
		f.wrong, f.code = cause(err), exitUnavailable
		return f, true
	}
	var texts []string
	for _, w := range failing {
		texts = append(texts, describeDead(w))
	}
	if len(texts) > 0 {
		f.wrong, f.code = strings.Join(texts, "; "), exitFailed
		f.remedy = "\"doorward webhook queue list\" says how each fails. Have the endpoint repaired, then \"doorward webhook queue retry\"; or pause it with \"doorward webhook queue pause --webhook\". Tenants get mails about theirs."
	}
	return f, true
}

// describeDead says whose webhook fails where, without the query of its URL, which may hold a secret.
func describeDead(w doorward.Webhook) string {
	owner, host := "the installation", w.URL
	if w.TenantID != "" {
		owner = w.TenantID
	}
	if u, err := url.Parse(w.URL); err == nil {
		host = u.Host
	}
	if w.FailingSince == nil || !w.Enabled {
		return fmt.Sprintf("%s of %s to %s was disabled, since it failed for days", w.ID, owner, host)
	}
	return fmt.Sprintf("%s of %s to %s fails since %s", w.ID, owner, host, second(*w.FailingSince))
}
