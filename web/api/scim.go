package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/web/front"
)

type scimSecretView struct {
	ID         string     `json:"id" example:"scs_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Hint       string     `json:"hint" example:"dwc_Ab3f…9xQ2" doc:"First and last characters"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  *time.Time `json:"expiresAt,omitempty" doc:"Absent without an end"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty" doc:"Absent if it was never used"`
}

type directoryView struct {
	URL           string           `json:"url" format:"uri" example:"https://accounts.example.com/scim/v2" doc:"Where the directory writes people (SCIM 2.0)"`
	Secrets       []scimSecretView `json:"secrets" doc:"The newest first, without the secrets"`
	Outside       doorward.Outside `json:"outside" enum:"invite,refuse" doc:"What becomes of addresses outside of the tenant's proved domains"`
	LastRunAt     *time.Time       `json:"lastRunAt,omitempty" doc:"When the directory last changed something; absent if it was more than 30 days ago, or never"`
	EmptyByRemove bool             `json:"emptyByRemove" doc:"Whether the removal of members that names none empties a group"`
}

func viewDirectory(s connection.Shown) directoryView {
	v := directoryView{Secrets: []scimSecretView{}, Outside: s.Outside, EmptyByRemove: s.EmptyByRemove, LastRunAt: s.LastRunAt}
	for _, one := range s.SCIM {
		v.Secrets = append(v.Secrets, scimSecretView{one.ID, one.Hint, one.CreatedAt, one.ExpiresAt, one.LastUsedAt})
	}
	return v
}

type scimSecretInput struct {
	ExpiresInDays *front.Int `json:"expiresInDays,omitempty" example:"365" minimum:"1" maximum:"3650" doc:"No end if absent"`
}

// OptionalBody implements front.OptionalBody.
func (scimSecretInput) OptionalBody() {}

type newSCIMSecretView struct {
	ID        string     `json:"id" example:"scs_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Secret    string     `json:"secret" example:"dwc_Ab3fQ7mYw2Rj5xTn8vKc1LpZ6dHs4GuE0iOa9XyWqBrVk19xQ2" doc:"To be entered at the directory. No other answer shows it again"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

func viewNewSCIMSecret(_ *front.Call, s directory.NewSecret) newSCIMSecretView {
	return newSCIMSecretView{s.ID, s.Text, s.ExpiresAt}
}

var docAddSCIMSecret = front.Doc{
	ID: "addSCIMSecret", Tag: "Sign-on", Summary: "Make a secret for a connection's directory",
	Description: "By it the directory reads and writes people at the connection's `directory.url`. Two are alive at once. The secret of a draft reads, and writes nothing; one that a set-up link has made is answered until then as if the tenant had nobody; secrets rest while the connection is disabled.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeInvalidQuery, doorward.CodeNotFound, doorward.CodeTooManySecrets, doorward.CodeValidationFailed},
}

func (a *api) addSCIMSecret(ctx context.Context, c *front.Call, in scimSecretInput) (directory.NewSecret, error) {
	id, err := connectionID(c)
	if err != nil {
		return directory.NewSecret{}, err
	}
	return a.app.Directories.AddSecret(ctx, c.Caller, id, (*int64)(in.ExpiresInDays))
}

var docDeleteSCIMSecret = front.Doc{
	ID: "deleteSCIMSecret", Tag: "Sign-on", Summary: "End a secret of a connection's directory",
	Description: "No node accepts it from the answer on.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeInvalidQuery, doorward.CodeNotFound},
}

func (a *api) deleteSCIMSecret(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := connectionID(c)
	if err != nil {
		return front.None{}, err
	}
	secretID, err := c.ID("secretId", doorward.PrefixSCIMSecret)
	if err != nil {
		return front.None{}, err
	}
	revocation, err := a.app.Directories.DeleteSecret(ctx, c.Caller, id, secretID)
	c.SetRevocation(revocation)
	return front.None{}, err
}
