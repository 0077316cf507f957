// Package overview has the figures of a tenant for its administrators, and counts
// what an administrative action would end. Each figure is one query; docs/performance.md
// says what they cost for 100,000 people and 1,000,000 events. It also counts what is in
// the trails, by the hour, and deletes counts of usage that are older than their charts.
package overview

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// Overviews is the feature. Make it with New.
type Overviews struct {
	writer        *access.Writer
	db            *store.DB
	sessions      store.SessionLifetime
	recordPending func(context.Context)
}

// New returns the feature. sessions decides which sessions have expired and are
// not counted. recordPending records the refusals that are still in the inbox.
func New(writer *access.Writer, db *store.DB, sessions store.SessionLifetime, recordPending func(context.Context)) *Overviews {
	return &Overviews{writer, db, sessions, recordPending}
}

// Tenant is the state of a tenant. What the caller may not read stays empty: the comments end
// with the permission that is needed.
type Tenant struct {
	Roles     []Role                // all roles of the tenant, the highest rank first; user.read
	People    int                   // members, suspended or not; user.read
	Suspended int                   // suspended members; user.read
	Pending   int                   // invitations that can be accepted; user.invite
	Failed    int                   // pending invitations whose newest mail could not be delivered; user.invite
	FailedBy  string                // SMTP code of the last such failure; empty: no server has answered; user.invite
	Factors   []Factors             // all roles that somebody active has, the highest rank first; user.manage
	SignIns   []doorward.UsageCount // and refusals, of the trail, by day of UTC, in no order; audit.read
	Refusals  []Refusal             // of the last 24 hours, the present one included, the most frequent first; audit.read
	Since     time.Time             // when these 24 hours began; audit.read
	APIKeys   int                   // that have not ended; apikey.manage
	Webhooks  int                   // disabled ones too; webhook.manage
	Changes   int                   // events of today (UTC) that count in the quota; audit.read
}

// Role is how many members hold a role.
type Role struct {
	Role   doorward.Role
	People int
}

// Factors is how many active members of a role have a second factor.
type Factors struct {
	Role         doorward.Role
	People, With int
}

// Refusal is how often an action was refused.
type Refusal struct {
	Action doorward.Action
	Times  int
}

// Sweep counts what is in the tenants' trails, and deletes counts of usage that are no longer shown. Several nodes may
// sweep at the same time. Errors: unavailable.
func (o *Overviews) Sweep(ctx context.Context) error {
	return errors.Join(o.countTrails(ctx), o.deleteOld(ctx))
}

// countSweepTime limits one sweep of trails, of which none may have been counted yet; the next one, a minute later, goes on.
const countSweepTime = 30 * time.Second

func (o *Overviews) countTrails(ctx context.Context) error {
	began := time.Now()
	return access.EachDue(func(tenantID string) string { return tenantID }, func(limit int) ([]string, error) {
		if time.Since(began) >= countSweepTime {
			return nil, nil
		}
		return o.db.Read().TrailsUncounted(ctx, limit)
	}, func(tenantID string) error {
		err := o.writer.Upkeep(ctx, func(tx *store.Tx) error { return tx.CountTrail(ctx, tenantID, tx.Now.Add(-doorward.UsageKept)) })
		if errors.Is(err, store.ErrNone) { // another node was faster, or the tenant was destroyed
			return nil
		}
		return err
	})
}

func (o *Overviews) deleteOld(ctx context.Context) error {
	return o.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
		return tx.DeleteOldUsage(ctx, tx.Now.Add(-doorward.UsageKept), limit)
	})
}

// Of returns the overview of the caller's tenant. It has the sign-ins of so many days, the last
// of which is today.
func (o *Overviews) Of(ctx context.Context, by doorward.Caller, days int) (Tenant, error) {
	var t Tenant
	for _, part := range []struct {
		needs doorward.Action
		fill  func(context.Context, string, *Tenant) error
	}{{doorward.UserRead, o.fillPeople}, {doorward.UserManage, o.fillFactors}, {doorward.UserInvite, o.fillInvitations}, {doorward.AuditRead, o.fillRefusals}, {doorward.AuditRead, o.fillSignIns(days)}, {doorward.AuditRead, o.fillChanges}, {doorward.APIKeyManage, o.fillKeys}, {doorward.WebhookManage, o.fillWebhooks}} {
		if !decide.May(&by.Principal, &decide.Question{Action: part.needs, On: by.Tenant(), Request: by.RequestAt(o.db.Now())}).Allowed {
			continue
		}
		if err := part.fill(ctx, by.TenantID, &t); err != nil {
			return Tenant{}, err
		}
	}
	return t, nil
}

func (o *Overviews) fillPeople(ctx context.Context, tenantID string, t *Tenant) error {
	counts, err := o.db.Read().CountMembers(ctx, tenantID)
	if err != nil {
		return err
	}
	rules, err := o.db.Read().Rules(ctx, tenantID)
	for _, role := range slices.Backward(rules.Roles()) {
		r := Role{Role: role}
		for _, c := range counts {
			if c.Role == role {
				r.People += int(c.People)
			}
			if c.Role == role && c.Status == doorward.UserSuspended {
				t.Suspended += int(c.People)
			}
		}
		t.Roles = append(t.Roles, r)
		t.People += r.People
	}
	return err
}

func (o *Overviews) fillInvitations(ctx context.Context, tenantID string, t *Tenant) error {
	counts, err := o.db.Read().CountPendingInvitations(ctx, tenantID, o.db.Now())
	t.Pending, t.Failed = int(counts.Pending), int(counts.Failed)
	if err != nil || t.Failed == 0 {
		return err
	}
	fault, err := o.db.Read().LastInvitationFault(ctx, tenantID, o.db.Now())
	if errors.Is(err, store.ErrNone) { // it was sent again meanwhile
		err = nil
	}
	if code := replyCode.FindStringSubmatch(fault); code != nil {
		t.FailedBy = code[1]
	}
	return err
}

// replyCode is the code of an SMTP server's refusal (RFC 5321, section 4.2). The rest of what went wrong is for the
// operator: it may name hosts of the installation.
var replyCode = regexp.MustCompile(`(?:^|: )([45][0-5]\d)[ -]`)

func (o *Overviews) fillFactors(ctx context.Context, tenantID string, t *Tenant) error {
	counts, err := o.db.Read().FactorCoverage(ctx, tenantID)
	if err != nil {
		return err
	}
	rules, err := o.db.Read().Rules(ctx, tenantID)
	for _, role := range slices.Backward(rules.Roles()) {
		for _, c := range counts {
			if c.Role == role {
				t.Factors = append(t.Factors, Factors{role, int(c.People), int(c.With)})
			}
		}
	}
	return err
}

func (o *Overviews) fillSignIns(days int) func(context.Context, string, *Tenant) error {
	const day = 24 * time.Hour
	return func(ctx context.Context, tenantID string, t *Tenant) (err error) {
		first := o.db.Now().UTC().Truncate(day).Add(-time.Duration(days-1) * day)
		t.SignIns, err = o.db.Read().UsageOfTrail(ctx, tenantID, first, day)
		return err
	}
}

func (o *Overviews) fillRefusals(ctx context.Context, tenantID string, t *Tenant) error {
	o.recordPending(ctx)
	t.Since = o.db.Now().UTC().Truncate(time.Hour).Add(-23 * time.Hour)
	counts, err := o.db.Read().UsageOfTrail(ctx, tenantID, t.Since, time.Hour)
	times := map[doorward.UsageOutcome]int{}
	for _, c := range counts {
		times[c.Outcome] += int(c.Times)
	}
	delete(times, doorward.UsageSignedIn)
	for action, n := range times {
		t.Refusals = append(t.Refusals, Refusal{doorward.Action(action), n})
	}
	slices.SortFunc(t.Refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Action, b.Action))
	})
	return err
}

func (o *Overviews) fillChanges(ctx context.Context, tenantID string, t *Tenant) error {
	n, err := o.db.Read().CountedEvents(ctx, tenantID, o.db.Now())
	t.Changes = int(n)
	return err
}

func (o *Overviews) fillKeys(ctx context.Context, tenantID string, t *Tenant) (err error) {
	t.APIKeys, err = o.db.Read().CountLiveAPIKeys(ctx, tenantID, o.db.Now())
	return err
}

func (o *Overviews) fillWebhooks(ctx context.Context, tenantID string, t *Tenant) (err error) {
	t.Webhooks, err = o.db.Read().CountWebhooks(ctx, tenantID)
	return err
}

// CountAffected counts what would end if the member were suspended or removed now, and names the
// webhooks that would go on.
// Errors: forbidden, not_found for a member of another tenant.
func (o *Overviews) CountAffected(ctx context.Context, by doorward.Caller, member doorward.User) (doorward.Ended, error) {
	on := doorward.Object{Type: "user", ID: member.ID, TenantID: member.TenantID, Held: member.Role}
	if err := o.writer.Require(ctx, by, doorward.UserManage, on); err != nil {
		return doorward.Ended{}, err
	}
	now := o.db.Now()
	sessions, err := o.db.Read().CountMemberSessions(ctx, o.sessions, member.TenantID, member.ID, now)
	if err != nil {
		return doorward.Ended{}, err
	}
	keys, err := o.db.Read().CountLiveAPIKeysOf(ctx, member.TenantID, member.ID, now)
	if err != nil {
		return doorward.Ended{}, err
	}
	invitations, err := o.db.Read().CountInvitationsBy(ctx, member.TenantID, member.ID, now)
	if err != nil {
		return doorward.Ended{}, err
	}
	webhooks, err := access.MadeWebhooks(ctx, o.db.Read(), &by, now, member.TenantID, member.ID)
	return doorward.Ended{Sessions: sessions, APIKeys: keys, Invitations: invitations, Webhooks: webhooks}, err
}

// CountAllAffected counts what would end if the caller's tenant were closed now.
// Errors: forbidden.
func (o *Overviews) CountAllAffected(ctx context.Context, by doorward.Caller) (doorward.Ended, error) {
	if err := o.writer.Require(ctx, by, doorward.TenantClose, by.Tenant()); err != nil {
		return doorward.Ended{}, err
	}
	sessions, err := o.db.Read().CountTenantSessions(ctx, o.sessions, by.TenantID, o.db.Now())
	return doorward.Ended{Sessions: sessions}, err
}
