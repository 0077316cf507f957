package directory

import (
	"context"
	"encoding/json"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/scim"
)

// Said is what a connection's directory holds of a member.
type Said struct {
	doorward.DirectoryUser
	User   scim.User
	Groups []doorward.DirectoryGroup
}

// SaidOf returns what the directories of the caller's tenant hold of a member, and the role that an OWNER gave by hand,
// below which no group lowers the member's; empty: none. Errors: not_found, unavailable.
func (d *Directories) SaidOf(ctx context.Context, by doorward.Caller, userID string) (all []Said, floor doorward.Role, err error) {
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
		floor, err = read.RoleFloor(ctx, by.TenantID, userID)
	}
	return all, floor, notFound(err)
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
