package tenant

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// DemandPreview says whom a demand for second factors concerns.
type DemandPreview struct {
	ByRole   []store.RoleCount // members without a factor, the most powerful role first
	People   []doorward.User   // these members, at most the 100 with the oldest memberships, sorted by address
	Count    int               // number of all these members
	Sessions int               // sessions without a second factor, which end at At
	// At is when these sessions end, for those who are members today. A time that is not in
	// the future means at once.
	At time.Time
	// GraceDays is how many days those have who join later.
	GraceDays int
}

// shownPeople bounds DemandPreview.People.
const shownPeople = 100

// PreviewDemand returns whom the edit's demand for second factors would concern. The preview is
// empty if the edit demands none, or no more than the demand in force. Errors: forbidden,
// validation_failed, master_key_missing.
func (t *Tenants) PreviewDemand(ctx context.Context, by doorward.Caller, e Edit) (DemandPreview, error) {
	if err := t.writer.Require(ctx, by, doorward.SettingsManage, by.Tenant()); err != nil {
		return DemandPreview{}, err
	}
	if faults := t.check(&e); len(faults) > 0 {
		return DemandPreview{}, doorward.InvalidFields(faults...)
	}
	read, now := t.db.Read(), t.db.Now()
	before, err := find(ctx, read, by.TenantID)
	if err != nil {
		return DemandPreview{}, err
	}
	after, err := t.apply(e, before, now)
	if err != nil {
		return DemandPreview{}, err
	}
	next := after.Settings.SecondFactor
	if !concerns(next, before.Settings.SecondFactor) {
		return DemandPreview{}, nil
	}
	return previewOf(ctx, read, by, next)
}

func previewOf(ctx context.Context, read store.Reader, by doorward.Caller, f doorward.SecondFactor) (p DemandPreview, err error) {
	p.At, p.GraceDays = f.Since.AddDate(0, 0, f.GraceDays), f.GraceDays
	if p.ByRole, err = read.CountWithoutFactor(ctx, by.TenantID, f.Roles); err != nil {
		return p, err
	}
	order := by.Rules.Roles()
	slices.SortFunc(p.ByRole, func(a, b store.RoleCount) int { return slices.Index(order, b.Role) - slices.Index(order, a.Role) })
	for _, c := range p.ByRole {
		p.Count += c.Count
	}
	if p.People, err = read.MembersWithoutFactor(ctx, by.TenantID, f.Roles, shownPeople); err != nil {
		return p, err
	}
	slices.SortStableFunc(p.People, func(a, b doorward.User) int { return strings.Compare(a.Email, b.Email) })
	p.Sessions, err = read.CountUnprovedSessions(ctx, by.TenantID, f.Roles)
	return p, err
}
