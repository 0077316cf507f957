package joining_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/scim"
)

// TestMadeByDirectory: the account of a member whom the connection's directory has made opens to whom the provider calls by
// the directory's userName, once, whatever the account's address is. One that the directory has only described doesn't.
func TestMadeByDirectory(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITOff)
		made, err := f.Node(0).Directories.AddSecret(f.Context(), s.owner.Caller, s.conID, nil)
		f.NoError(err)
		by, err := f.Node(0).Directories.Check(f.Context(), apptest.Anonymous(0), made.Text)
		f.NoError(err)

		_, other := f.Tenant() // an account that this tenant doesn't speak for
		other = f.SignIn(other.User.Email, apptest.FirstPassword)
		s.refused("jit", says("1", other.User.Email))
		_, err = f.Node(0).Directories.Make(f.Context(), by, scim.User{UserName: other.User.Email})
		f.NoError(err)
		s.refused("jit", says("1", other.User.Email)) // not accepted yet
		_, err = f.Node(0).Invitations.Accept(f.Context(), other.Caller, f.MailToken(other.User.Email), "")
		f.NoError(err)
		if in := s.in(says("1", other.User.Email)); in.User.ID != other.User.ID || in.User.TenantID != s.owner.User.TenantID {
			t.Errorf("the sign-in is of %s in %s", in.User.ID, in.User.TenantID)
		}
		if _, found := s.look(says("2", other.User.Email)); !found.MustProve() {
			t.Errorf("another subject is refused by %q", found.Refused())
		}

		ann := s.member("ann@elsewhere.example", doorward.RoleUser)
		_, err = f.Node(0).Directories.Replace(f.Context(), by, ann.User.ID, scim.User{UserName: ann.User.Email})
		f.NoError(err)
		if _, found := s.look(says("3", ann.User.Email)); !found.MustProve() {
			t.Errorf("a member by hand whom the directory describes is refused by %q, or opened", found.Refused())
		}
	})
}
