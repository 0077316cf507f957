package node

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/telemetry"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/web/front"
)

// registerMetrics registers the metrics of the node. docs/metrics.md lists
// each.
func (n *Node) registerMetrics() {
	m := n.site.Metrics
	m.AddBuildInfo(n.cfg.Version)
	n.registerConnections(m)
	n.registerSessions(m)
	n.registerFactors(m)
	n.registerSignOns(m)
	n.registerSignOffs(m)
	n.registerDirectories(m)
	n.registerDecisions(m)
	n.registerHashes(m)
	n.registerMail(m)
	n.registerWebhooks(m)
	n.registerInbox(m)
	n.registerTLS(m)
	n.registerForwarders(m)
	n.registerAgreement(m)
	m.Counter("doorward_assertions_signed_total", "Assertions of who is calling that were signed; those answered again from memory don't count.",
		func() float64 { return float64(n.App.Assertions.Signed()) })
	n.registerTraces(m)
	m.Gauge("doorward_settings_reload_failed", "1 after a SIGHUP whose settings were refused, until one succeeds; the earlier settings are in force.", func() float64 {
		if n.reloadFailed.Load() {
			return 1
		}
		return 0
	})
	m.Sampled(n.measureDatabase)
}

func (n *Node) registerConnections(m *telemetry.Metrics) {
	m.Gauge("doorward_connections", "Connections of clients that are open.", func() float64 { return float64(n.traffic.open.Load()) })
	m.Counter("doorward_connections_refused_total", "Connections closed at once because their client had too many.",
		func() float64 { return float64(n.traffic.refused.Load()) })
	m.Counter("doorward_accept_errors_total", "Connections that could not be accepted, for example because there were no file descriptors left.",
		func() float64 { return float64(n.acceptErrors.failed.Load()) })
}

func (n *Node) registerSessions(m *telemetry.Metrics) {
	m.Gauge("doorward_sessions_in_memory", "Sessions kept in memory.", func() float64 { return float64(n.App.Sessions.InMemory()) })
	m.Gauge("doorward_sessions_in_memory_max", "Largest number of sessions that are kept in memory.", func() float64 { return float64(n.cfg.SessionsInMemory) })
	m.Gauge("doorward_api_keys_in_memory", "Secrets of API keys kept in memory.", func() float64 { return float64(n.App.APIKeys.InMemory()) })
	m.Gauge("doorward_lease_age_seconds", "Time since the last successful poll for changes was sent; beyond the lease, checks ask the database.",
		func() float64 { return n.App.Lease.Age().Seconds() })
	m.Counter("doorward_lease_lapses_total", "Times that the lease ended before a poll renewed it: the database was silent, or this node had no CPU.",
		func() float64 { return float64(n.App.Lease.Lapses()) })
	m.Counter("doorward_timed_out_total", "Requests and access checks answered 503 because the database, or this node without CPU, took too long.",
		func() float64 { return float64(n.site.TimedOut()) })
	m.Gauge("doorward_lease_seconds", "The configured lease.", func() float64 { return n.cfg.Lease.Seconds() })
}

func (n *Node) registerFactors(m *telemetry.Metrics) {
	const name, help = "doorward_second_factors_total", "Challenges for a second factor or a step-up, by result: asked; then passed, or recovered with a recovery code, at a sign-in; proved, at a step-up; refused, for a wrong answer."
	for result, metric := range map[string]factor.Metric{
		"asked": factor.Asked, "passed": factor.Passed, "recovered": factor.Recovered, "proved": factor.Proved, "refused": factor.Refused,
	} {
		m.Counter(name, help, func() float64 { return float64(n.App.Factors.Tallied(metric)) }, "result", result)
	}
	const kinds, kindsHelp = "doorward_factors_enrolled", "Second factors and passkeys that can be used, in the whole installation; counted every five minutes."
	m.Gauge(kinds, kindsHelp, func() float64 { return float64(n.App.Factors.Totals().Apps) }, "type", string(doorward.TOTP))
	m.Gauge(kinds, kindsHelp, func() float64 { return float64(n.App.Factors.Totals().Passkeys) }, "type", string(doorward.Passkey))
	m.Gauge("doorward_accounts_with_factor", "Accounts that have a second factor or a passkey that can be used; counted every five minutes.", func() float64 { return float64(n.App.Factors.Totals().Accounts) })
}

func (n *Node) registerSignOns(m *telemetry.Metrics) {
	const name, help = "doorward_sign_ons_total", "Sign-ins and step-ups by tenants' own providers, by outcome: signed_in; asked, for a proof or a factor of the account; done, of a step-up; refused, with the check that did; unavailable, a fault of the provider. Which connection it was is in its protocol."
	for _, metric := range signon.Metrics {
		m.Counter(name, help, func() float64 { return float64(n.App.SignOn.Tallied(metric)) }, "outcome", string(metric.Outcome), "check", metric.Check)
	}
}

func (n *Node) registerSignOffs(m *telemetry.Metrics) {
	const name, help = "doorward_sign_offs_total", "Requests by which tenants' own providers end sessions, a revocation or a logout, by outcome: done; refused; unavailable, a fault of the provider. Which connection it was is in its protocol."
	for _, metric := range signoff.Metrics {
		m.Counter(name, help, func() float64 { return float64(n.App.SignOff.Tallied(metric)) }, "kind", string(metric.Kind), "outcome", string(metric.Outcome))
	}
}

func (n *Node) registerDirectories(m *telemetry.Metrics) {
	m.Counter("doorward_directory_alarms_total", "Runs of customers' directories that have suspended or removed many people within an hour, so that OWNERs were told.",
		func() float64 { return float64(n.App.Directories.Alarms()) })
	const name, help = "doorward_directory_undone_total", "People and groups that undos of directories' runs have come to, by outcome: done, as before the run; left, as they are."
	m.Counter(name, help, func() float64 { done, _ := n.App.DirectoryRuns.Undone(); return float64(done) }, "outcome", "done")
	m.Counter(name, help, func() float64 { _, left := n.App.DirectoryRuns.Undone(); return float64(left) }, "outcome", "left")
}

func (n *Node) registerDecisions(m *telemetry.Metrics) {
	d := n.App.Access.Decisions()
	m.Counter("doorward_policy_refusals_total", "Decisions that a policy has refused.", func() float64 { return float64(d.Refused()) })
	m.Counter("doorward_policy_would_refuse_total", "Decisions that a policy in mode observe would have refused.", func() float64 { return float64(d.WouldRefuse()) })
	m.Counter("doorward_decisions_kept_total", "Decisions that were kept for trying policies.", func() float64 { return float64(d.Kept()) })
	m.Counter("doorward_decisions_dropped_total", "Decisions and counts of observing policies that were not written, since too many waited, one was too large, or the database refused a value in it.",
		func() float64 { return float64(d.Dropped()) })
}

func (n *Node) registerHashes(m *telemetry.Metrics) {
	m.Gauge("doorward_password_hash_workers", "Password hashes that can be made at once.", func() float64 { return float64(n.App.Hashing().Workers) })
	m.Gauge("doorward_password_hashes_running", "Password hashes being made now.", func() float64 { return float64(n.App.Hashing().Busy) })
	m.Gauge("doorward_password_hashes_queued", "Callers waiting for a password hash.", func() float64 { return float64(n.App.Hashing().Queued) })
	m.Counter("doorward_password_hashes_total", "Password hashes begun.", func() float64 { return float64(n.App.Hashing().Hashes) })
	m.Counter("doorward_password_hashes_refused_total", "Callers turned away because too many hashes were waiting.",
		func() float64 { return float64(n.App.Hashing().Refused) })
	m.Sampled(n.measureHashProcesses)
}

func (n *Node) measureHashProcesses() []telemetry.Sample {
	p := n.App.HashProcesses()
	return []telemetry.Sample{
		{Name: "doorward_password_hash_processes", Help: "Processes for password hashes; 0 when none was needed for 5 s.", Value: float64(p.Running)},
		{Name: "doorward_password_hash_processes_resident_bytes", Help: "Memory of the processes for password hashes; process_resident_memory_bytes is without it.", Value: float64(p.Resident)},
		{Name: "doorward_password_hash_processes_cpu_seconds_total", Help: "CPU time of the processes for password hashes; process_cpu_seconds_total is without it.", Value: p.CPU.Seconds(), Total: true},
		{Name: "doorward_password_hash_processes_failed_total", Help: "Processes for password hashes that could not be started, or failed at a hash.", Value: float64(p.Failures), Total: true},
	}
}

func (n *Node) registerMail(m *telemetry.Metrics) {
	const name, help = "doorward_mail_tries_total", "Tries to hand a mail over, by their result: sent, retried later, failed for good."
	m.Counter(name, help, func() float64 { sent, _, _ := n.App.Mail.Counts(); return float64(sent) }, "result", "sent")
	m.Counter(name, help, func() float64 { _, retried, _ := n.App.Mail.Counts(); return float64(retried) }, "result", "retried")
	m.Counter(name, help, func() float64 { _, _, failed := n.App.Mail.Counts(); return float64(failed) }, "result", "failed")
	const sending, sendingHelp = "doorward_mails_sending", "Mails being handed over now, by whether the recipient's domain is known to be slow."
	m.Gauge(sending, sendingHelp, func() float64 { return float64(n.App.Mail.Sending().Fast) }, "domain", "other")
	m.Gauge(sending, sendingHelp, func() float64 { return float64(n.App.Mail.Sending().Slow) }, "domain", "slow")
	m.Gauge("doorward_mail_slow_domains", "Domains of recipients that are known to be slow.", func() float64 { return float64(n.App.Mail.Sending().SlowHosts) })
}

func (n *Node) registerWebhooks(m *telemetry.Metrics) {
	counts, sending := n.App.Webhooks.Counts, n.App.Webhooks.Sending
	const name, help = "doorward_webhook_attempts_total", "Attempts to deliver an event to a webhook, by their result: delivered, retried later, failed for good, dropped because the webhook was disabled or deleted."
	m.Counter(name, help, func() float64 { return float64(counts().Delivered) }, "result", "delivered")
	m.Counter(name, help, func() float64 { return float64(counts().Retried) }, "result", "retried")
	m.Counter(name, help, func() float64 { return float64(counts().Failed) }, "result", "failed")
	m.Counter(name, help, func() float64 { return float64(counts().Dropped) }, "result", "dropped")
	const inFlight, inFlightHelp = "doorward_webhooks_sending", "Attempts under way, by whether the endpoint is new, failing or slow."
	m.Gauge(inFlight, inFlightHelp, func() float64 { return float64(sending().Fast) }, "endpoint", "other")
	m.Gauge(inFlight, inFlightHelp, func() float64 { return float64(sending().Slow) }, "endpoint", "slow")
}

func (n *Node) registerInbox(m *telemetry.Metrics) {
	m.Counter("doorward_inbox_dropped_total", "Refusals that were not recorded, because too many were waiting or the database refused a value in them.",
		func() float64 { return float64(n.App.Access.Inbox.Dropped()) })
}

// scrapeTimeout bounds how long a scrape waits for the database: less than Prometheus
// waits for the scrape, and than a request may take.
const scrapeTimeout = time.Second

// measureDatabase asks the database, for scrapeTimeout in all. Without an answer it returns
// only what is known in memory.
func (n *Node) measureDatabase() []telemetry.Sample {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all := measurePools(n.DB.Pools())
	vitals, err := n.App.Vitals(ctx)
	if err != nil {
		return append(all, measureUp(0))
	}
	all = append(all, measureUp(1))
	if isSynchronous, err := n.DB.Synchronous(ctx); err == nil {
		all = append(all, measureSynchronous(isSynchronous))
	}
	all = append(all, measureSpace(ctx, n.DB)...)
	return append(all, n.measureVitals(vitals)...)
}

func measureUp(v float64) telemetry.Sample {
	return telemetry.Sample{Name: "doorward_database_up", Help: "Whether the database answered this scrape.", Value: v}
}

func measureSynchronous(isSynchronous bool) telemetry.Sample {
	s := telemetry.Sample{Name: "doorward_database_synchronous", Help: "Whether commits wait until another server has them; PostgreSQL only."}
	if isSynchronous {
		s.Value = 1
	}
	return s
}

func measureSpace(ctx context.Context, db *store.DB) (all []telemetry.Sample) {
	if size, err := db.Size(ctx); err == nil {
		all = append(all, telemetry.Sample{Name: "doorward_database_size_bytes", Help: "Size of the database.", Value: float64(size)})
	}
	if s, err := db.Space(); err == nil {
		all = append(all, telemetry.Sample{Name: "doorward_database_free_bytes", Help: "Free space on the file system of the database; SQLite only.", Value: float64(s.Free)})
	}
	return all
}

const signOnProvidersHelp = "Tenants' own providers, of active connections, by state: certificate_ends, of SAML, whose last certificate ends within a week or has ended; unread, whose metadata or discovery document couldn't be read for a day."

func (n *Node) measureVitals(v store.Vitals) []telemetry.Sample {
	since := func(at time.Time, rows int64) float64 {
		if rows == 0 {
			return 0
		}
		return max(0, n.App.Now().Sub(at).Seconds())
	}
	oldest, due := since(v.OldestMail, int64(v.MailsQueued)), since(v.InboxDue, int64(v.InboxRows))
	backup := 0.0
	if v.LastBackup.Unix() > 0 {
		backup = float64(v.LastBackup.UnixMicro()) / 1e6
	}
	return []telemetry.Sample{
		{Name: "doorward_changes_behind", Help: "Changes in the database that this node has not applied to its memory.", Value: float64(max(0, v.Position-n.App.Lease.Applied()))},
		{Name: "doorward_nodes", Help: "Nodes registered in the database.", Value: float64(v.Nodes)},
		{Name: "doorward_mails_queued", Help: "Mails that wait to be handed over, of all nodes.", Value: float64(v.MailsQueued)},
		{Name: "doorward_mail_oldest_queued_seconds", Help: "How long the oldest queued mail has waited.", Value: oldest},
		{Name: "doorward_webhook_deliveries_pending", Help: "Deliveries to webhooks that wait, or are retried later, of all nodes.", Value: float64(v.Deliveries)},
		{Name: "doorward_webhook_oldest_pending_seconds", Help: "How long ago the oldest delivery to a webhook was queued that waits, or is retried later.", Value: since(v.OldestDelivery, v.Deliveries)},
		{Name: "doorward_webhook_overdue_seconds", Help: "How long the delivery to a webhook that is due has waited longest for its next attempt.", Value: since(v.DeliveryDue, v.Deliveries)},
		{Name: "doorward_queue_paused", Help: "1 while the operator has paused mails, or how many pauses of deliveries to webhooks there are: of all, of a tenant, of a webhook.", Labels: []string{"queue", "mail"}, Value: float64(v.MailPauses)},
		{Name: "doorward_queue_paused", Help: "1 while the operator has paused mails, or how many pauses of deliveries to webhooks there are: of all, of a tenant, of a webhook.", Labels: []string{"queue", "webhook"}, Value: float64(v.WebhookPauses)},
		{Name: "doorward_inbox_rows", Help: "Rows in the inbox, of all nodes: refusals and requests for a reset, similar ones in one row, kept until their minute is over; 100,000 at most.", Value: float64(v.InboxRows)},
		{Name: "doorward_inbox_oldest_seconds", Help: "How long the oldest row that is due has waited to be recorded.", Value: due},
		{Name: "doorward_inbox_set_aside", Help: "Rows of the inbox that could not be recorded. They are kept, and tried again every hour.", Value: float64(v.InboxAside)},
		{Name: "doorward_last_backup_timestamp_seconds", Help: "When a backup was last completed, in Unix time; 0 if never.", Value: backup},
		{Name: "doorward_sign_on_providers", Help: signOnProvidersHelp, Labels: []string{"state", "certificate_ends"}, Value: float64(v.CertificatesEnd)},
		{Name: "doorward_sign_on_providers", Help: signOnProvidersHelp, Labels: []string{"state", "unread"}, Value: float64(v.ProvidersUnread)},
		{Name: "doorward_maintenance", Help: "1 while the operator has paused changes.", Value: float64(v.Paused)},
	}
}

func measurePools(pools []store.Pool) (all []telemetry.Sample) {
	for _, p := range pools {
		pool := []string{"pool", p.Name}
		state := func(s string) []string { return []string{"pool", p.Name, "state", s} }
		all = append(all,
			telemetry.Sample{Name: "doorward_database_connections", Help: "Connections to the database, by pool and state.", Labels: state("busy"), Value: float64(p.Busy)},
			telemetry.Sample{Name: "doorward_database_connections", Help: "Connections to the database, by pool and state.", Labels: state("idle"), Value: float64(p.Idle)},
			telemetry.Sample{Name: "doorward_database_connections_max", Help: "Largest number of connections of a pool.", Labels: pool, Value: float64(p.Max)},
			telemetry.Sample{Name: "doorward_database_waits_total", Help: "Callers that had to wait for a connection.", Labels: pool, Value: float64(p.Waits), Total: true},
			telemetry.Sample{Name: "doorward_database_wait_seconds_total", Help: "Time that callers waited for a connection, all of them together.", Labels: pool, Value: p.Waited.Seconds(), Total: true},
		)
	}
	return all
}

func (n *Node) registerForwarders(m *telemetry.Metrics) {
	const name, help = "doorward_untrusted_proxy_requests_total", "Requests with X-Forwarded-For from an address that is not in --trusted-proxies, by whether it is in a private network. All clients behind such a proxy share one limit of attempts."
	const last, lastHelp = "doorward_untrusted_proxy_last_timestamp_seconds", "When the last such request came, in Unix time; 0 if none has since the proxies were set."
	for from, read := range map[string]func() front.Forwarded{"private": n.site.ForwardedByPrivate, "public": n.site.ForwardedByPublic} {
		m.Counter(name, help, func() float64 { return float64(read().Requests) }, "from", from)
		m.Gauge(last, lastHelp, func() float64 {
			if at := read().Last; !at.IsZero() {
				return float64(at.Unix())
			}
			return 0
		}, "from", from)
	}
}

func (n *Node) registerTLS(m *telemetry.Metrics) {
	if n.cfg.TLS == nil {
		return
	}
	m.Gauge("doorward_tls_certificate_expiry_timestamp_seconds", "When the TLS certificate ends, in Unix time; 0 while there is none.", func() float64 {
		if end := n.cfg.TLS.Expires(); !end.IsZero() {
			return float64(end.Unix())
		}
		return 0
	})
}

// registerAgreement registers what all nodes should agree on: the time, the shared settings
// and the master key, which is no Setting. Each setting has a series from the start, so that
// alerts can compare values.
func (n *Node) registerAgreement(m *telemetry.Metrics) {
	m.Gauge("doorward_clock_drift_seconds", "How far this machine's clock is ahead of the database's; beyond 30 either way, requests that depend on the time are answered 503.",
		func() float64 { return n.DB.Clock().Drift().Seconds() })
	for _, s := range append(n.cfg.Shared(), lease.Setting{Name: app.MasterKeySetting}) {
		m.Gauge("doorward_settings_differ", "Nodes with a different value of a setting that must be the same on all.",
			func() float64 { return n.App.CountDiffering(s.Name) }, "setting", s.Name)
	}
}

func (n *Node) registerTraces(m *telemetry.Metrics) {
	const name, help = "doorward_trace_spans_total", "Spans of traces, by result: sent to the collector, or lost because it didn't accept them."
	m.Counter(name, help, func() float64 { sent, _ := n.tracer.Counts(); return float64(sent) }, "result", "sent")
	m.Counter(name, help, func() float64 { _, lost := n.tracer.Counts(); return float64(lost) }, "result", "lost")
}
