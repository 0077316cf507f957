package user

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// What an erased person leaves at work in a tenant: webhooks and API keys that go on, people whom
// the person has given more rights or has invited. It is in the event of the erasure, by ids, and
// in a mail to the OWNERs.

// maxLeft bounds what an event names of each kind.
const maxLeft = 50

// findLeft returns what the person leaves in the tenant, as fields of the event. Call it before the
// events are blanked. rules are those of the tenant.
func findLeft(ctx context.Context, tx *access.Tx, tenantID, userID string, rules *doorward.Rules) (left []doorward.Change, err error) {
	webhooks, err := tx.WebhooksMadeBy(ctx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	for _, w := range webhooks {
		left = append(left, doorward.Change{Field: doorward.FieldWebhookLeft, To: w.ID})
	}
	keys, err := tx.APIKeysSeenBy(ctx, tenantID, userID, maxLeft)
	if err != nil {
		return nil, err
	}
	given, err := tx.RolesGivenBy(ctx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	var raised []string
	for _, g := range given {
		if !narrows(rules, g.From, g.To) && len(raised) < maxLeft {
			raised = append(raised, g.UserID)
		}
	}
	invited, err := tx.PeopleInvitedBy(ctx, tenantID, userID, maxLeft)
	for _, of := range []struct {
		field string
		ids   []string
	}{{doorward.FieldAPIKeyLeft, keys}, {doorward.FieldPersonRaised, raised}, {doorward.FieldPersonInvited, invited}} {
		for _, id := range of.ids {
			left = append(left, doorward.Change{Field: of.field, To: id})
		}
	}
	return left, err
}

// noteLeft adds what the person leaves to the events of the erasure, and chooses the tenants whose
// OWNERs are told: those in which the person had a rank of ADMIN or above, or leaves something.
func (e *erasing) noteLeft(memberships []doorward.User, trails []string) error {
	rules := map[string]*doorward.Rules{}
	for _, m := range memberships {
		rules[m.TenantID] = m.Rules
		if !doorward.RoleAdmin.Outranks(m.Rules.Rank(m.Role)) {
			e.told = append(e.told, m.TenantID)
		}
	}
	for _, tenantID := range trails {
		if tenantID == "" {
			continue
		}
		left, err := findLeft(e.ctx, e.tx, tenantID, e.account.ID, rules[tenantID])
		if err != nil {
			return err
		}
		e.changes[tenantID] = append(e.changes[tenantID], left...)
		if len(left) > 0 && !slices.Contains(e.told, tenantID) {
			e.told = append(e.told, tenantID)
		}
	}
	return nil
}
