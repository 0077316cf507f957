package joining_test

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/store"
)

// site is a tenant with a connection that signs people in, and a domain that is proved for it.
type site struct {
	*apptest.Fixture
	joining *joining.Joining
	owner   apptest.Person
	conID   string
}

func newSite(f *apptest.Fixture, domain string, jit doorward.JIT) *site {
	f.Helper()
	_, owner := f.Tenant()
	s := &site{f, joining.New(f.DB, f.Node(0).Factors), owner, f.Connection(owner, domain)}
	f.SSOMode(owner, doorward.SSOOptional, doorward.GuestsAllowed)
	s.edit(func(c *doorward.Connection) { c.JIT = jit })
	return s
}

// edit changes the connection.
func (s *site) edit(change func(*doorward.Connection)) {
	s.Helper()
	s.NoError(s.Node(0).Access.Upkeep(s.Context(), func(tx *store.Tx) error {
		c, err := tx.Connection(s.Context(), s.conID)
		if err != nil {
			return err
		}
		change(&c)
		return tx.UpdateConnection(s.Context(), c)
	}))
}

// member makes a member of the site, with a password.
func (s *site) member(email string, role doorward.Role) apptest.Person {
	s.Helper()
	_, code := s.Invite(s.owner, email, role)
	_, err := s.Node(0).Invitations.Complete(s.Context(), apptest.Anonymous(0), code, apptest.FirstPassword, apptest.FirstPassword)
	s.NoError(err)
	return s.SignIn(email, apptest.FirstPassword)
}

func says(subject, address string) answer.Asserted {
	return answer.Asserted{Subject: subject, Address: address}
}

// look returns what is found of whom the provider names.
func (s *site) look(said answer.Asserted) (joining.Person, joining.Found) {
	s.Helper()
	c, err := s.DB.Read().Connection(s.Context(), s.conID)
	s.NoError(err)
	rules, err := s.DB.Read().Rules(s.Context(), c.TenantID)
	s.NoError(err)
	who := joining.NewPerson(c, rules, "https://idp.example", said)
	found, err := s.joining.Look(s.Context(), who)
	s.NoError(err)
	return who, found
}

// write opens a session of whom the provider names, and writes before that what was found. own are the methods by
// which the person has proved the account.
func (s *site) write(who joining.Person, found joining.Found, own ...string) (login.SignedIn, error) {
	s.Helper()
	account := found.AccountFor(who)
	_, err := s.DB.Read().SSOPolicy(s.Context(), who.Connection.TenantID, s.DB.Now())
	s.NoError(err)
	return apptest.SignedIn(s.Node(0).Login.EnterWith(s.Context(), apptest.Anonymous(0), proof.Proof{
		Account: account, Issuer: doorward.Issuer(s.conID), TenantID: who.Connection.TenantID,
		Methods: []string{doorward.MethodFederated}, OwnMethods: own,
	}, login.Within{Changed: joining.ErrChanged, Before: func(ctx context.Context, tx *access.Tx) error {
		err := tx.LockTenant(ctx, who.Connection.TenantID)
		if err == nil {
			_, err = tx.SignInByConnection(ctx, s.conID, who.SawGroups())
		}
		if err != nil {
			return err
		}
		return s.joining.Write(ctx, tx, who, found, account, len(own) > 0)
	}}))
}

// in ends the test unless the person is signed in.
func (s *site) in(said answer.Asserted, own ...string) login.SignedIn {
	s.Helper()
	who, found := s.look(said)
	in, err := s.write(who, found, own...)
	s.NoError(err)
	return in
}

// refused fails unless the check refuses the person, before the transaction and in it, where nothing is written.
func (s *site) refused(check string, said answer.Asserted) {
	s.Helper()
	who, found := s.look(said)
	if found.Refused() != check {
		s.Errorf("refused by %q, want %q", found.Refused(), check)
	}
	before := s.RowsWithoutNodes()
	_, err := s.write(who, found)
	var refusal joining.Refusal
	if !errors.As(err, &refusal) || refusal.Check != check {
		s.Errorf("the transaction ends with %v, want the check %s", err, check)
	}
	if after := s.RowsWithoutNodes(); !slices.Equal(before, after) {
		s.Errorf("refused by %s, and written", check)
	}
}

// isJoined reports whether the account has an identity of the connection.
func (s *site) isJoined(userID string) bool {
	s.Helper()
	all, err := s.DB.Read().IdentitiesOf(s.Context(), userID)
	s.NoError(err)
	return slices.ContainsFunc(all, func(i doorward.Identity) bool { return i.ConnectionID == s.conID })
}
