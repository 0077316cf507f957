package directory

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// Said is what a connection's directory holds of a member.
type Said struct {
	doorward.DirectoryUser
	User   scim.User
	Groups []doorward.DirectoryGroup
}

// ByHand is the role that an OWNER gave a member by hand, below which no group lowers the member's; empty: none. By is the
// OWNER's address, and At when; empty where the trail doesn't say so, such as of an accepted invitation.
type ByHand struct {
	Role doorward.Role
	By   string
	At   time.Time
}

// SaidOf returns what the directories of the caller's tenant hold of a member, and the role by hand. Errors: not_found,
// unavailable.
func (d *Directories) SaidOf(ctx context.Context, by doorward.Caller, userID string) (all []Said, hand ByHand, err error) {
	read := d.db.Read()
	rows, err := read.DirectoryAliasesOf(ctx, by.TenantID, userID)
	for _, row := range rows {
		var one Said
		if err == nil {
			one, err = d.said(ctx, row)
		}
		all = append(all, one)
	}
	if err == nil && len(all) > 0 {
		hand, err = byHand(ctx, read, by.TenantID, userID)
	}
	return all, hand, notFound(err)
}

func byHand(ctx context.Context, read store.Reader, tenantID, userID string) (hand ByHand, err error) {
	if hand.Role, err = read.RoleFloor(ctx, tenantID, userID); err != nil || hand.Role == "" {
		return hand, err
	}
	said, err := read.RoleByHand(ctx, tenantID, userID)
	if errors.Is(err, store.ErrNone) || err == nil && said.Change(doorward.FieldRoleByHand).To != string(hand.Role) {
		return hand, nil
	}
	hand.By, hand.At = said.ActorEmail, said.At
	return hand, err
}

func (d *Directories) said(ctx context.Context, row doorward.DirectoryUser) (Said, error) {
	one := Said{DirectoryUser: row}
	if err := json.Unmarshal([]byte(row.Attributes), &one.User); err != nil {
		return one, doorward.Unavailable(err)
	}
	groups, err := d.db.Read().DirectoryGroupsOf(ctx, row.ConnectionID, []string{row.ID})
	one.Groups = groups[row.ID]
	return one, err
}
