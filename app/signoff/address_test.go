package signoff_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/store"
)

// move gives the person another address, as a change of it does.
func (s *site) move(p apptest.Person, to string) {
	s.Helper()
	s.write(func(tx *store.Tx) error { return tx.SetEmail(s.Context(), p.User.ID, to) })
}

// setEmail gives the person an address that no domain remembers.
func (s *site) setEmail(p apptest.Person, email string) {
	s.Exec(`UPDATE users SET email = $1 WHERE id = $2`, email, p.User.ID)
}

// describe makes what the connection's directory says of the person.
func (s *site) describe(p apptest.Person, address string) {
	s.Helper()
	s.write(func(tx *store.Tx) error {
		return tx.InsertDirectoryUser(s.Context(), doorward.DirectoryUser{
			ID: p.User.ID, ConnectionID: s.con.ID, TenantID: s.con.TenantID, UserID: p.User.ID, UserName: address, Address: address,
			Active: true, Attributes: "{}", CreatedAt: tx.Now, ChangedAt: tx.Now,
		})
	})
}

func addressed(email string) signoff.Subject {
	return signoff.Subject{Format: signoff.FormatEmail, Email: email}
}

// TestFormerAddress: a provider goes on calling somebody by an address that the account has left, and ends their
// sessions by it.
func TestFormerAddress(t *testing.T) {
	onEach(t, func(s *site) {
		s.letIn("acme.example")
		ann := s.person("7")
		s.setEmail(ann, "7@acme.example")
		in := s.signIn("7", "s")
		s.move(ann, "ann@private.example")
		_, err := s.revoke(0, s.revocation(nil), addressed("7@Acme.example"))
		s.wantCode("by the domain", err, "")
		s.wantValid("by the domain", false, in, ann)

		bob := s.person("8")
		s.describe(bob, "bob@work.example")
		in = s.signIn("8", "s")
		_, err = s.revoke(1, s.revocation(nil), addressed("bob@work.example"))
		s.wantCode("by the directory", err, "")
		s.wantValid("by the directory", false, in, bob)
	})
}

// TestFormerAddressOfOthers: a former address leads to nobody who never came by this connection, and to its new
// holder rather than to the former one.
func TestFormerAddressOfOthers(t *testing.T) {
	onSQLite(t, func(s *site) {
		s.letIn("acme.example")
		cat := s.Join(s.owner, doorward.RoleUser)
		s.setEmail(cat, "cat@acme.example")
		s.move(cat, "cat@private.example")
		_, err := s.revoke(0, s.revocation(nil), addressed("cat@acme.example"))
		s.wantCode("never came by the connection", err, doorward.CodeNotFound)
		s.wantValid("never came by the connection", true, cat)

		ann, dan := s.person("7"), s.person("8")
		s.setEmail(ann, "7@acme.example")
		s.move(ann, "ann@private.example")
		s.setEmail(dan, "7@acme.example")
		_, err = s.revoke(0, s.revocation(nil), addressed("7@acme.example"))
		s.wantCode("a new holder", err, "")
		s.wantValid("the former holder", true, ann)
		s.wantValid("the new holder", false, dan)
	})
}

// TestAddressUnderWay: a revocation by the address stops the sign-in under way of somebody who is no member yet, and
// none that begins afterwards.
func TestAddressUnderWay(t *testing.T) {
	onEach(t, func(s *site) {
		s.letIn("acme.example")
		before := s.begin("7", "s")
		_, err := s.revoke(1, s.revocation(nil), addressed("7@ACME.example"))
		s.wantCode("nobody yet", err, doorward.CodeNotFound)
		_, err = before.back()
		s.wantCode("a sign-in that began before", err, doorward.CodeSignOnRefused)
		if n := s.Int(`SELECT count(*) FROM sessions WHERE issuer <> ''`); n != 0 {
			s.Errorf("%d sessions of the connection are there", n)
		}
		s.wantValid("afterwards", true, s.signIn("7", "s"))
	})
}

// TestLinkSeesNoAddress: a set-up link sees whom revocations name no more than it sees whom sign-ins name, and an
// erasure of the address takes the entries.
func TestLinkSeesNoAddress(t *testing.T) {
	onSQLite(t, func(s *site) {
		ann := s.person("7")
		for _, who := range []signoff.Subject{addressed("Zed@acme.example"), addressed("no address"), s.bySubject("zed@acme.example"), byEmail(ann)} {
			_, _ = s.revoke(0, s.revocation(nil), who)
		}
		link := doorward.Caller{Principal: doorward.Principal{Kind: doorward.BySetupLink, ID: "stl_1", TenantID: s.con.TenantID, ConnectionID: s.con.ID}}
		page, err := s.Node(0).Connections.Attempts(s.Context(), link, s.con.ID, doorward.Window{Limit: 10})
		s.NoError(err)
		n := 0
		for _, entry := range page.Items {
			if entry.Kind != doorward.AttemptRevoke {
				continue
			}
			if n++; entry.Subject != "" || entry.Address != "" || entry.Seen != "" && entry.Seen != "acme.example" {
				t.Errorf("the link sees %+v", entry)
			}
		}
		if n != 4 {
			t.Errorf("the protocol has %d entries", n)
		}
		s.write(func(tx *store.Tx) error { return tx.ForgetAddress(s.Context(), "zed@acme.example") })
		if n := s.Int(`SELECT count(*) FROM connection_attempts WHERE checked = 'email' AND seen LIKE '%acme%'`); n != 0 {
			t.Errorf("%d entries have the erased address", n)
		}
	})
}
