package front

import (
	"time"

	"github.com/doorward/doorward"
)

// UserRows returns the rows of a CSV file of people; the first has the names of the columns.
func UserRows(all []doorward.User) [][]string {
	rows := [][]string{{"id", "email", "name", "role", "status", "createdAt", "lastLoginAt"}}
	for _, u := range all {
		rows = append(rows, []string{u.ID, u.Email, u.Name, string(u.Role), string(u.Status), timeCell(&u.CreatedAt), timeCell(u.LastLoginAt)})
	}
	return rows
}

// InvitationRows returns the rows of a CSV file of invitations, with their states at now.
func InvitationRows(all []doorward.Invitation, now time.Time) [][]string {
	rows := [][]string{{"id", "email", "name", "role", "status", "delivery", "invitedBy", "createdAt", "expiresAt", "acceptedAt", "revokedAt"}}
	for _, i := range all {
		rows = append(rows, []string{
			i.ID, i.Email, i.Name, string(i.Role), string(i.StateAt(now)), string(i.Delivery), i.InvitedBy,
			timeCell(&i.CreatedAt), timeCell(&i.ExpiresAt), timeCell(i.AcceptedAt), timeCell(i.RevokedAt),
		})
	}
	return rows
}

func timeCell(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Format(time.RFC3339Nano)
}
