package connection

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/store"
)

// peopleMax is how many people a dry run names.
const peopleMax = 100

// Person is whom a change of a connection concerns.
type Person struct {
	UserID, Email string
	Sessions      int64 // that end; 0 where none do
}

// Ended is what disabling or deleting a connection has ended, or would.
type Ended struct {
	Sessions int64
	// SCIMSecrets are those of its directory, which rest while it is disabled, and end with it.
	SCIMSecrets int
	// Managed is how many managed accounts stay with no way in but a reset of the password.
	Managed int
	// People are whose sessions end, at most peopleMax: in a dry run.
	People     []Person
	Revocation doorward.Revocation
}

// enable lets a connection sign people in, if a test of exactly what it has has passed, and not all certificates of its
// provider were taken away since.
func enable(ctx context.Context) writeConnection {
	return func(tx *access.Tx, was doorward.Connection) error {
		if was.Status == doorward.ConnectionActive {
			tx.SkipEvent()
			return nil
		}
		if was.InForce.TestedAt == nil && was.Type != doorward.SCIMDirectory {
			return doorward.Fail(doorward.CodeConnectionNotTested, "")
		}
		if was.Type == doorward.SAML {
			said, err := samlprovider.Kept(ctx, tx.Reader, was.ID, inForce, was.InForce)
			if err != nil {
				return err
			}
			if len(said.Certificates) == 0 {
				return doorward.Fail(doorward.CodeCertificateNeeded, "")
			}
		}
		tx.Changed(fieldStatus, string(was.Status), string(doorward.ConnectionActive))
		_, err := tx.SetConnectionStatus(ctx, was.ID, doorward.ConnectionActive)
		return err
	}
}

const fieldStatus = "status"

// disable ends the sessions of the connection, and lets it open none.
func (c *Connections) disable(ctx context.Context, isDryRun bool, ended *Ended) writeConnection {
	return func(tx *access.Tx, was doorward.Connection) (err error) {
		changed, err := tx.SetConnectionStatus(ctx, was.ID, doorward.ConnectionDisabled)
		if err == nil && changed {
			tx.Changed(fieldStatus, string(was.Status), string(doorward.ConnectionDisabled))
			*ended, err = c.end(ctx, tx, was, isDryRun)
		} else if err == nil {
			*ended = Ended{}
			tx.SkipEvent()
		}
		return err
	}
}

// end ends the sessions that the connection has vouched for, and the sign-ins on their way to one, after its status has
// changed: a sign-in that found it active is committed by then, see store.Tx.SignInByConnection.
func (c *Connections) end(ctx context.Context, tx *access.Tx, of doorward.Connection, isDryRun bool) (ended Ended, err error) {
	issuer := doorward.Issuer(of.ID)
	if isDryRun {
		err = tx.EachIssuerSessions(ctx, c.life, tx.Now, of.TenantID, issuer, func(s store.IssuerSessions) error {
			if len(ended.People) < peopleMax {
				ended.People = append(ended.People, Person(s))
			}
			return nil
		})
		if err != nil {
			return ended, err
		}
	}
	secrets, err := tx.SCIMSecrets(ctx, of.ID)
	if err != nil {
		return ended, err
	}
	for _, s := range secrets {
		if !s.IsOver(tx.Now) {
			ended.SCIMSecrets++
		}
	}
	if ended.Managed, err = tx.CountManagedBy(ctx, of.ID); err != nil {
		return ended, err
	}
	if err := tx.EndSignIns(ctx, of.ID, doorward.EndedEverybody); err != nil {
		return ended, err
	}
	ended.Sessions, err = tx.DeleteIssuerSessions(ctx, c.life, of.TenantID, issuer)
	tx.RecordEnded(doorward.Ended{Sessions: ended.Sessions})
	return ended, err
}

// Delete deletes a connection with its identities, and ends its sessions. A dry run changes nothing. If
// versions are given, the connection must have one of them. Errors: not_found, precondition_failed.
func (c *Connections) Delete(ctx context.Context, by doorward.Caller, id string, isDryRun bool, versions ...string) (ended Ended, err error) {
	found, err := find(ctx, c.db.Read(), by, id)
	if err != nil {
		return ended, err
	}
	ended.Revocation, err = c.perform(ctx, by, isDryRun, onConnection(ctx, by, doorward.ConnectionDelete, found, func(tx *access.Tx, was doorward.Connection) error {
		if err := doorward.CheckVersion(was.Version(), versions); err != nil {
			return err
		}
		// First, so that no sign-in finds it active any more.
		if _, err := tx.SetConnectionStatus(ctx, id, doorward.ConnectionDisabled); err != nil {
			return err
		}
		tx.Changed(doorward.FieldName, was.Name, "")
		if ended, err = c.end(ctx, tx, was, isDryRun); err != nil {
			return err
		}
		_, err := tx.DeleteConnection(ctx, id)
		return err
	}))
	return ended, err
}

// concern counts the identities of a connection, and names some of their people.
func (s *Switched) concern(ctx context.Context, read store.Reader, id string) error {
	page, err := read.IdentityPage(ctx, id, doorward.Window{Limit: peopleMax, Count: true})
	s.Identities = page.Total
	for _, i := range page.Items {
		s.People = append(s.People, Person{UserID: i.UserID, Email: i.Email})
	}
	return err
}
