package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/queue"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func mailCommand() *cobra.Command {
	return group("mail", "See, retry, drop and pause the mails that wait",
		group("queue", "See, retry, drop and pause the mails that wait",
			mailQueueListCommand(), recording(showingProgress(mailQueueRetryCommand())), recording(showingProgress(mailQueueDropCommand())),
			recording(queuePauseCommand(store.MailQueue)), recording(queueResumeCommand(store.MailQueue))))
}

func webhookQueueCommand() *cobra.Command {
	return group("queue", "See, retry, drop and pause the deliveries that wait, of all tenants",
		webhookQueueListCommand(), recording(showingProgress(webhookQueueRetryCommand())), recording(showingProgress(webhookQueueDropCommand())),
		recording(queuePauseCommand(store.WebhookQueue)), recording(queueResumeCommand(store.WebhookQueue)))
}

// queueFlags are the flags that select rows of both queues.
type queueFlags struct {
	tenant, state, older string
	all, yes             bool
	limit                int
}

func (q *queueFlags) register(cmd *cobra.Command) {
	cmd.Args = noArgs
	cmd.Flags().StringVar(&q.tenant, "tenant", "", "only those of the tenant with this `id`")
	cmd.Flags().StringVar(&q.older, "older-than", "", "only those queued longer than a `DURATION` ago, such as 2h or 7d")
}

// before returns the time of --older-than; zero without it.
func (q *queueFlags) before() (time.Time, error) {
	if q.older == "" {
		return time.Time{}, nil
	}
	ago, err := parseExpiry(q.older)
	if err != nil {
		return time.Time{}, usageError("--older-than: write a duration such as 2h or 7d.")
	}
	return time.Now().Add(-ago), nil
}

// stateOf returns --state, or the default for none.
func (q *queueFlags) stateOf(waiting string) (string, error) {
	state := cmp.Or(q.state, waiting)
	if state != waiting && state != "failed" && state != "dropped" {
		return "", usageError("--state: write %s, failed or dropped.", waiting)
	}
	return state, nil
}

// addState adds the flag of the commands that work on what was given up, too.
func (q *queueFlags) addState(cmd *cobra.Command, waiting string) {
	cmd.Flags().StringVar(&q.state, "state", waiting, waiting+", failed for those whose retries are used up, or dropped")
	completeWith(cmd, "state", waiting, "failed", "dropped")
}

func (q *queueFlags) addLimit(cmd *cobra.Command) {
	cmd.Flags().IntVar(&q.limit, "limit", 1000, "how many at most; 0: all")
}

func (q *queueFlags) addAll(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&q.all, "all", false, "all of them")
}

// needSelection refuses a command that names neither --all nor what it is for.
func (q *queueFlags) needSelection(cmd *cobra.Command, names ...string) error {
	for _, name := range append(names, "tenant", "older-than", "all") {
		if cmd.Flags().Changed(name) {
			return nil
		}
	}
	return usageError("Say which, or --all, for example:\n%s", cmd.Example)
}

// mailFlags are the flags that select mails.
type mailFlags struct {
	queueFlags
	id, kind, to string
}

func (m *mailFlags) register(cmd *cobra.Command) {
	m.queueFlags.register(cmd)
	cmd.Flags().StringVar(&m.id, "id", "", "only the mail with this `id`")
	cmd.Flags().StringVar(&m.kind, "kind", "", "only mails of the `KIND`, such as invitation or reset")
	cmd.Flags().StringVar(&m.to, "to", "", "only mails to the `ADDRESS`, or to all of a domain, as @acme.example")
	var kinds []string
	for _, k := range store.MailKinds {
		kinds = append(kinds, string(k))
	}
	completeWith(cmd, "kind", kinds...)
	refuseEmpty(cmd, "id", "kind", "to", "tenant", "older-than")
}

// filter returns what the flags select.
func (m *mailFlags) filter() (f store.MailFilter, err error) {
	f = store.MailFilter{ID: m.id, Kind: store.MailKind(m.kind), TenantID: m.tenant, To: strings.ToLower(m.to)}
	if f.To != "" && f.To[0] != '@' {
		if f.To, err = mailaddr.Parse(m.to); err != nil {
			return f, usageError("--to: write an address such as ann@acme.example, or a domain as @acme.example.")
		}
	}
	if err := checkMailKind(m.kind); err != nil {
		return f, err
	}
	state, err := m.stateOf(string(doorward.DeliveryQueued))
	if err != nil {
		return f, err
	}
	f.Failed, f.Dropped = state != string(doorward.DeliveryQueued), state == string(doorward.DeliveryDropped)
	f.Before, err = m.before()
	return f, err
}

func checkMailKind(kind string) error {
	var known []string
	for _, k := range store.MailKinds {
		if known = append(known, string(k)); kind == "" || string(k) == kind {
			return nil
		}
	}
	return usageError("--kind: there are no mails of the kind %q.%s Kinds: %s.", kind, suggest(kind, known), strings.Join(known, ", "))
}

func mailQueueListCommand() *cobra.Command {
	m := &mailFlags{}
	mails := listing[store.Mail]{
		head: []string{"ID", "KIND", "TO", "TENANT", "TRIES", "QUEUED", "NEXT", "LAST ERROR"},
		row: func(m store.Mail) []string {
			next := second(m.NextAt)
			if m.State != doorward.DeliveryQueued {
				next = queue.StateOfMail(m)
			}
			return []string{m.ID, string(m.Kind), m.Recipient, queue.TenantOfMail(m), strconv.Itoa(m.Tries), second(m.CreatedAt), next, withoutTokens(m.LastError)}
		},
		object: func(m store.Mail) any {
			return map[string]any{
				"id": m.ID, "kind": m.Kind, "to": m.Recipient, "tenantId": queue.TenantOfMail(m), "state": queue.StateOfMail(m), "tries": m.Tries,
				"queuedAt": m.CreatedAt, "nextAt": m.NextAt, "lastError": withoutTokens(m.LastError),
			}
		},
	}
	cmd := &cobra.Command{
		Use: "list", Short: "List the mails that wait, or that were given up",
		Long: `List prints the mails that all the flags select, in the order in which they are due. The
texts of mails are made when they are sent, so no link and no code is in a list. Mails
that were given up are kept for a day.`,
		Example: `  doorward mail queue list
  doorward mail queue list --kind invitation --to @acme.example --older-than 1h
  doorward mail queue list --state failed --json`,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		f, err := m.filter()
		if err != nil {
			return err
		}
		if err := printPauses(cmd, n, store.MailQueue); err != nil {
			return err
		}
		return printSome(cmd, &mails, m.limit, func(ctx context.Context, fn func(store.Mail) error) error { return n.App.Queues.EachMail(ctx, f, fn) })
	})
	m.register(cmd)
	m.addState(cmd, string(doorward.DeliveryQueued))
	m.addLimit(cmd)
	mails.addJSONFlag(cmd)
	return checkFirst(cmd, func() error { _, err := m.filter(); return err })
}

// withoutTokens makes an error that others have worded fit to be shown in one line of a terminal.
func withoutTokens(text string) string { return printable(queue.WithoutTokens(text)) }

// printPauses writes on standard error what is paused, so that a list of things that wait doesn't mislead.
func printPauses(cmd *cobra.Command, n *node.Node, queue store.Queue) error {
	all, err := n.App.Queues.Pauses(cmd.Context())
	for _, p := range all {
		if p.Queue == queue {
			fmt.Fprintln(cmd.ErrOrStderr(), describePause(p))
		}
	}
	return err
}

// describePause says what is paused, since when and why.
func describePause(p store.QueuePause) string {
	text := "Mails have"
	if p.Queue == store.WebhookQueue {
		text = "Deliveries to webhooks have"
	}
	if p.Scope != "" {
		text = "Deliveries of " + p.Scope + " have"
	}
	text += " been paused since " + second(p.Since)
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// printSome prints what each passes to its function while it is read, at most limit rows; 0: all.
func printSome[T any](cmd *cobra.Command, to *listing[T], limit int, each func(context.Context, func(T) error) error) error {
	more, err := to.printEach(cmd.OutOrStdout(), rowsOf(cmd.Context(), each), limit)
	if more {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more than %d. Narrow the search, or name a larger --limit.\n", limit)
	}
	return err
}

var errEnough = errors.New("enough")

// rowsOf are the rows that each passes to its function.
func rowsOf[T any](ctx context.Context, each func(context.Context, func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := each(ctx, func(row T) error {
			if !yield(row, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			var none T
			yield(none, err)
		}
	}
}

func mailQueueRetryCommand() *cobra.Command {
	m := &mailFlags{}
	cmd := &cobra.Command{
		Use: "retry", Short: "Have mails tried again at once",
		Long: `Retry has the mails that all the flags select tried again at once, with the pauses after
failures as after the first try. Mails that are due within three minutes stay as they
are, since they may be under way. With --state failed it queues mails again whose retries are used
up, with --state dropped those that "doorward mail queue drop" has given up, and with
--id and one of both either; for a day that is possible.`,
		Example: `  doorward mail queue retry --all
  doorward mail queue retry --to @acme.example
  doorward mail queue retry --state failed --older-than 10m
  doorward mail queue retry --state dropped --kind invitation`,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		f, err := m.filter()
		if err != nil {
			return err
		}
		done, err := n.App.Queues.RetryMails(cmd.Context(), n.Operator(), f)
		if err != nil {
			return interrupted(err, done > 0)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Mails to be tried again: %d.\n", done)
		return nil
	})
	m.register(cmd)
	m.addState(cmd, string(doorward.DeliveryQueued))
	m.addAll(cmd)
	return checkFirst(cmd, func() error {
		_, err := m.filter()
		return cmp.Or(m.needSelection(cmd, "id", "kind", "to"), err)
	})
}

func mailQueueDropCommand() *cobra.Command {
	m := &mailFlags{}
	cmd := &cobra.Command{
		Use: "drop", Short: "Give up mails that wait",
		Long: `Drop gives up the mails that all the flags select: nobody gets them. Invitations go on,
and can be sent again. For a day "doorward mail queue retry --state dropped" brings the
mails back. At a terminal it asks first, unless --yes is given.`,
		Example: `  doorward mail queue drop --kind signed_in --older-than 1h
  doorward mail queue drop --to ann@acme.example --reason 'ticket 4711'
  doorward mail queue drop --all --yes`,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		f, err := m.filter()
		if err != nil {
			return err
		}
		done, err := n.App.Queues.DropMails(cmd.Context(), n.Operator(), f)
		if err != nil {
			return interrupted(err, done > 0)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Mails dropped: %d.\n", done)
		return nil
	})
	m.register(cmd)
	m.addAll(cmd)
	addYes(cmd, &m.yes)
	return checkFirst(cmd, func() error {
		_, err := m.filter()
		if err := cmp.Or(m.needSelection(cmd, "id", "kind", "to"), err); err != nil {
			return err
		}
		return confirm(cmd, m.yes, "This drops mails: nobody gets them. Type yes to go on: ", "yes")
	})
}

// deliveryFlags are the flags that select deliveries to webhooks.
type deliveryFlags struct {
	queueFlags
	webhook string
}

func (d *deliveryFlags) register(cmd *cobra.Command) {
	d.queueFlags.register(cmd)
	cmd.Flags().Lookup("tenant").Usage = "only those of the tenant with this `id`, or \"" + installation + "\""
	cmd.Flags().StringVar(&d.webhook, "webhook", "", "only those of the webhook with this `id`")
	refuseEmpty(cmd, "webhook", "tenant", "older-than")
}

// filter returns what the flags select.
func (d *deliveryFlags) filter() (f store.DeliveryFilter, err error) {
	state, err := d.stateOf(string(doorward.DeliveryPending))
	if err != nil {
		return f, err
	}
	f = store.DeliveryFilter{State: doorward.DeliveryState(state), WebhookID: d.webhook, TenantID: strings.TrimPrefix(d.tenant, installation), AllTenants: d.tenant == ""}
	f.Before, err = d.before()
	return f, err
}

func webhookQueueListCommand() *cobra.Command {
	d := &deliveryFlags{}
	deliveries := listing[queue.Delivery]{
		head: []string{"ID", "TENANT", "WEBHOOK", "EVENT", "ATTEMPTS", "QUEUED", "NEXT", "LAST"},
		row: func(d queue.Delivery) []string {
			next := string(d.State)
			if d.NextAt != nil {
				next = second(*d.NextAt)
			}
			return []string{d.ID, cmp.Or(d.TenantID, installation), d.WebhookID, string(d.Type), strconv.Itoa(len(d.Attempts)), second(d.CreatedAt), next, printable(d.LastAttempt())}
		},
		object: func(d queue.Delivery) any {
			return map[string]any{
				"id": d.ID, "tenantId": d.TenantID, "webhookId": d.WebhookID, "type": d.Type, "state": d.State, "attempts": len(d.Attempts),
				"createdAt": d.CreatedAt, "nextAt": d.NextAt, "lastAttempt": printable(d.LastAttempt()),
			}
		},
	}
	cmd := &cobra.Command{
		Use: "list", Short: "List the deliveries that wait, or that were given up",
		Long: `List prints the deliveries that all the flags select, of all tenants and of the
installation, by webhook, the oldest first.`,
		Example: `  doorward webhook queue list
  doorward webhook queue list --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --older-than 1h
  doorward webhook queue list --webhook whk_5tqm7x3yh4n6rj7wd2c5tpae7k --state failed`,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		f, err := d.filter()
		if err != nil {
			return err
		}
		if err := printPauses(cmd, n, store.WebhookQueue); err != nil {
			return err
		}
		return printSome(cmd, &deliveries, d.limit, func(ctx context.Context, fn func(queue.Delivery) error) error {
			return n.App.Queues.EachDelivery(ctx, f, fn)
		})
	})
	d.register(cmd)
	d.addState(cmd, string(doorward.DeliveryPending))
	d.addLimit(cmd)
	deliveries.addJSONFlag(cmd)
	return checkFirst(cmd, func() error { _, err := d.filter(); return err })
}

func webhookQueueRetryCommand() *cobra.Command {
	d := &deliveryFlags{}
	cmd := &cobra.Command{
		Use: "retry", Short: "Have deliveries tried again at once",
		Long: `Retry has the deliveries that all the flags select tried again at once, and begins their
schedule of retries again. Those that are due within three minutes stay as they are. With
--state failed it queues deliveries again whose retries are used up, with --state dropped those
that were given up, by "doorward webhook queue drop" or because the webhook was disabled.
Those of a webhook that is disabled, or whose tenant is frozen or closing, stay as they are.`,
		Example: `  doorward webhook queue retry --all
  doorward webhook queue retry --webhook whk_5tqm7x3yh4n6rj7wd2c5tpae7k --state failed`,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		f, err := d.filter()
		if err != nil {
			return err
		}
		done, err := n.App.Queues.RetryDeliveries(cmd.Context(), n.Operator(), f)
		if err != nil {
			return interrupted(err, done > 0)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Deliveries to be tried again: %d.\n", done)
		return nil
	})
	d.register(cmd)
	d.addState(cmd, string(doorward.DeliveryPending))
	d.addAll(cmd)
	return checkFirst(cmd, func() error {
		_, err := d.filter()
		return cmp.Or(d.needSelection(cmd, "webhook"), err)
	})
}

func webhookQueueDropCommand() *cobra.Command {
	d := &deliveryFlags{}
	cmd := &cobra.Command{
		Use: "drop", Short: "Give up deliveries that wait",
		Long: `Drop gives up the pending deliveries that all the flags select. The trail of the
webhook's owner says so. "doorward webhook queue retry --state dropped" brings them back, and
"doorward webhook replay", or the tenant in the console, can send
the events again while they are kept. At a terminal it asks first, unless --yes is given.`,
		Example: `  doorward webhook queue drop --webhook whk_5tqm7x3yh4n6rj7wd2c5tpae7k
  doorward webhook queue drop --tenant tnt_7vkq2m5x3yh4n6rj7wd2c5tpae --older-than 1d --reason 'ticket 4711'
  doorward webhook queue drop --all --yes`,
	}
	cmd = onDatabase(withoutMigration(), cmd, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		f, err := d.filter()
		if err != nil {
			return err
		}
		done, err := n.App.Queues.DropDeliveries(cmd.Context(), n.Operator(), f)
		if err != nil {
			return interrupted(err, done > 0)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Deliveries dropped: %d.\n", done)
		return nil
	})
	d.register(cmd)
	d.addAll(cmd)
	addYes(cmd, &d.yes)
	return checkFirst(cmd, func() error {
		_, err := d.filter()
		if err := cmp.Or(d.needSelection(cmd, "webhook"), err); err != nil {
			return err
		}
		return confirm(cmd, d.yes, "This drops deliveries. Type yes to go on: ", "yes")
	})
}

// queueOf is what the commands of a queue call it, and what else a pause can be for.
var queueOf = map[store.Queue]struct{ command, rows, reason string }{
	store.MailQueue:    {"doorward mail queue", "mails", "the mail server is replaced"},
	store.WebhookQueue: {"doorward webhook queue", "deliveries to webhooks", "the proxy for webhooks is replaced"},
}

func queuePauseCommand(q store.Queue) *cobra.Command {
	name, scope := queueOf[q], ""
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "pause", Short: "Send nothing of the queue, on all nodes",
		Long: `Pause keeps every node from sending ` + name.rows + `, until "` + name.command + ` resume"; a
restart doesn't end it. What is being sent is finished; what comes is queued. "doorward
doctor" and the metric doorward_queue_paused show the pause.`,
		Example: "  " + name.command + " pause --reason '" + name.reason + "'", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		if err := n.App.Queues.Pause(cmd.Context(), n.Operator(), q, scope); err != nil {
			return err
		}
		all, err := n.App.Queues.Pauses(cmd.Context())
		for _, p := range all {
			if p.Queue == q && p.Scope == scope {
				fmt.Fprintln(cmd.OutOrStdout(), describePause(p))
			}
		}
		return err
	})
	return addScope(cmd, q, &scope)
}

func queueResumeCommand(q store.Queue) *cobra.Command {
	name, scope := queueOf[q], ""
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "resume", Short: "Send what waits again, on all nodes",
		Example: "  " + name.command + " resume", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		ended, err := n.App.Queues.Resume(cmd.Context(), n.Operator(), q, scope)
		switch {
		case err != nil:
			return err
		case ended:
			fmt.Fprintln(cmd.OutOrStdout(), "Resumed.")
		default:
			return cmp.Or(printUnchanged(cmd, "That was not paused"), printPauses(cmd, n, q))
		}
		return printPauses(cmd, n, q)
	})
	return addScope(cmd, q, &scope)
}

// addScope adds the flags that name the scope of a pause of deliveries.
func addScope(cmd *cobra.Command, q store.Queue, scope *string) *cobra.Command {
	if q != store.WebhookQueue {
		return cmd
	}
	cmd.Flags().StringVar(scope, "tenant", "", "only the webhooks of the tenant with this `id`")
	cmd.Flags().StringVar(scope, "webhook", "", "only the webhook with this `id`")
	cmd.Example += "\n" + strings.SplitN(cmd.Example, " --reason", 2)[0] + " --webhook whk_5tqm7x3yh4n6rj7wd2c5tpae7k"
	return refuseEmpty(refuseTogether(cmd, "tenant", "webhook"), "tenant", "webhook")
}
