package tenant

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

type exportedSCIMSecret struct {
	ID           string     `json:"id"`
	ConnectionID string     `json:"connectionId"`
	Hint         string     `json:"hint"`
	CreatedAt    time.Time  `json:"createdAt"`
	ExpiresAt    *time.Time `json:"expiresAt,omitempty"`
	LastUsedAt   *time.Time `json:"lastUsedAt,omitempty"`
}

type exportedGroup struct {
	ID           string    `json:"id"`
	ConnectionID string    `json:"connectionId"`
	DisplayName  string    `json:"displayName"`
	ExternalID   string    `json:"externalId,omitempty"`
	Members      []string  `json:"members"` // ids of directoryUsers, or of people whom no directory has described
	CreatedAt    time.Time `json:"createdAt"`
}

// exportedDirectoryUser is what a directory holds of a person.
type exportedDirectoryUser struct {
	ID           string          `json:"id"`
	ConnectionID string          `json:"connectionId"`
	UserID       string          `json:"userId,omitempty"`       // of people
	InvitationID string          `json:"invitationId,omitempty"` // of who isn't one yet
	Active       bool            `json:"active"`                 // as the directory last wrote it
	Attributes   json.RawMessage `json:"attributes"`
	CreatedAt    time.Time       `json:"createdAt"`
}

// directory writes what the tenant's directories have said, and their secrets without the values.
func (d *document) directory(id string) {
	items(d, "scimSecrets", func(add func(any) error) error {
		all, err := d.read.SCIMSecretsOf(d.ctx, id)
		for _, s := range all {
			err = cmp.Or(err, add(exportedSCIMSecret{s.ID, s.ConnectionID, s.Hint, s.CreatedAt, s.ExpiresAt, s.LastUsedAt}))
		}
		return err
	})
	items(d, "directoryUsers", func(add func(any) error) error {
		return d.read.EachDirectoryUser(d.ctx, id, func(u doorward.DirectoryUser) error {
			return add(exportedDirectoryUser{u.ID, u.ConnectionID, u.UserID, u.InvitationID, u.Active, json.RawMessage(u.Attributes), u.CreatedAt})
		})
	})
	items(d, "directoryGroups", func(add func(any) error) error {
		all, err := d.read.ConnectionsOf(d.ctx, id)
		for _, c := range all {
			err = cmp.Or(err, d.groups(c.ID, add))
		}
		return err
	})
}

// groupBatch is how many groups are in memory at once.
const groupBatch = 200

func (d *document) groups(connectionID string, add func(any) error) error {
	for offset := 0; ; offset += groupBatch {
		some, _, err := d.read.DirectoryGroups(d.ctx, connectionID, store.GroupFilter{}, offset, groupBatch)
		for _, g := range some {
			members := []string{}
			if err == nil {
				var found []string
				found, err = d.read.Places(d.ctx, g.ID)
				members = append(members, found...)
			}
			err = cmp.Or(err, add(exportedGroup{g.ID, g.ConnectionID, g.DisplayName, g.ExternalID, members, g.CreatedAt}))
		}
		if err != nil || len(some) < groupBatch {
			return err
		}
	}
}
