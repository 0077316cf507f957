package signoff

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/endtoken"
	"github.com/doorward/doorward/store"
)

// Subject is whom a revocation means (RFC 9493): by issuer and subject, or by the address.
type Subject struct {
	Format          string // FormatIssuer or FormatEmail
	Issuer, Subject string // of FormatIssuer
	Email           string // of FormatEmail
}

// The formats of a Subject.
const (
	FormatIssuer = "iss_sub"
	FormatEmail  = "email"
)

// named returns what the protocol shows of it.
func (s Subject) named() string {
	if s.Format == FormatEmail {
		return s.Email
	}
	return s.Subject
}

// address returns the canonical address; empty: none is named, or none that anybody can have.
func (s Subject) address() string {
	address, err := mailaddr.Parse(s.Email)
	if s.Format != FormatEmail || err != nil {
		return ""
	}
	return address
}

// ended names whose sign-ins end, for store.Tx.EndSignIns; empty: nobody's.
func (s Subject) ended() string {
	if s.Format == FormatIssuer {
		return doorward.EndedSubject(s.Issuer, s.Subject)
	}
	if address := s.address(); address != "" {
		return doorward.EndedAddress(address)
	}
	return ""
}

// check returns the faults of its members, below the pointer.
func (s Subject) check(pointer string) error {
	required := func(member string) error {
		return doorward.Invalid(pointer+"/"+member, "required", "The format "+s.Format+" needs it.")
	}
	switch {
	case s.Format == FormatIssuer && s.Issuer == "":
		return required("iss")
	case s.Format == FormatIssuer && s.Subject == "":
		return required("sub")
	case s.Format == FormatEmail && s.Email == "":
		return required("email")
	case s.Format != FormatIssuer && s.Format != FormatEmail:
		return doorward.Invalid(pointer+"/format", "invalid", "Write iss_sub or email.")
	}
	return nil
}

// Revoke ends the sessions of a person of the connection's tenant, as the connection says (doorward.Ends), and the
// API keys where it says so, on every node before it returns. token is the bearer's; pointer is where the subject is in
// the request. Errors: not_found for a connection that isn't there, and for nobody of the tenant; unauthenticated
// for a token that is refused, or a connection that isn't active; validation_failed; too_many_attempts,
// provider_unavailable, unavailable.
func (s *SignOff) Revoke(ctx context.Context, by doorward.Caller, conID, token, pointer string, who Subject) (doorward.Revocation, error) {
	r, err := s.begin(ctx, by, Revocation, conID)
	if err != nil {
		return doorward.Revocation{}, err
	}
	err = r.verifyRevocation(ctx, token)
	if err == nil {
		err = who.check(pointer)
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	r.subject, r.address = who.named(), who.address() // of a token that is good: anybody can name somebody
	named := who.Format + "\x00" + who.Issuer + "\x00" + who.Subject + "\x00" + who.Email
	revocation, err := r.end(ctx, named, func(tx *access.Tx) (bool, error) {
		err := r.revoke(ctx, tx, who)
		return r.userID != "", err
	})
	if err != nil {
		return doorward.Revocation{}, err
	}
	if r.userID == "" && !r.isAgain {
		return revocation, r.nobody(ctx, who)
	}
	r.done(ctx)
	return revocation, nil
}

// CheckBody is what the protocol calls the body of a revocation, and AdviceBody what to do about one that isn't understood.
const (
	CheckBody  = "body"
	AdviceBody = "revoke_body"
)

// Misread records a revocation whose body isn't understood, if its token is good: what anybody can send isn't worth an
// entry. seen has no values of the body. The token stays good. Errors: those of Revoke for a token that is refused.
func (s *SignOff) Misread(ctx context.Context, by doorward.Caller, conID, token, seen string) error {
	r, err := s.begin(ctx, by, Revocation, conID)
	if err == nil {
		err = r.verifyRevocation(ctx, token)
	}
	if err == nil {
		r.record(ctx, doorward.AttemptRefused, oidcrp.Fault{Check: CheckBody, Seen: seen, Advice: AdviceBody})
	}
	return err
}

func (r *request) verifyRevocation(ctx context.Context, token string) error {
	return r.verify(ctx, func(ctx context.Context, d oidcrp.Discovery) (endtoken.Token, error) {
		return endtoken.Revocation(ctx, r.s.providers.Provider(), d, r.s.providers.RevokeURL(r.connection.ID), token, r.s.db.Now())
	})
}

// nobody returns not_found, after an entry in the protocol.
func (r *request) nobody(ctx context.Context, who Subject) error {
	check := oidcrp.CheckSub
	if who.Format == FormatEmail {
		check = checkEmail
	}
	r.record(ctx, doorward.AttemptRefused, oidcrp.Fault{Check: check, Seen: who.named()})
	return doorward.Fail(doorward.CodeNotFound, "The tenant has no such member.")
}

// checkEmail is what the protocol calls an address of nobody.
const checkEmail = "email"

// revoke ends what the person has. It leaves userID empty if the tenant has no such member.
func (r *request) revoke(ctx context.Context, tx *access.Tx, who Subject) error {
	person, err := r.member(ctx, tx, who)
	if err != nil {
		return err
	}
	c := r.connection
	if name := who.ended(); name != "" { // also of somebody who is no member yet, and is signing in
		if err := tx.EndSignIns(ctx, c.ID, name); err != nil {
			return err
		}
	}
	if r.userID = person.ID; person.ID == "" {
		tx.SkipEvent()
		return nil
	}
	if err := tx.EndSignIns(ctx, c.ID, doorward.EndedUser(person.ID)); err != nil {
		return err
	}
	var ended doorward.Ended
	if ended.Sessions, err = r.endVouched(ctx, tx, person.ID); err != nil {
		return err
	}
	if c.Ends != doorward.EndsConnection {
		n, err := tx.DeleteMemberSessions(ctx, r.s.life, c.TenantID, person.ID)
		if err != nil {
			return err
		}
		ended.Sessions += n
	}
	on := doorward.Object{Type: "user", ID: person.ID, TenantID: c.TenantID}
	if c.EndsKeys {
		if ended.APIKeys, err = member.RevokeKeys(ctx, tx, on); err != nil {
			return err
		}
	}
	r.recordEnd(tx, on, ended)
	return nil
}

// endVouched ends what the connection has vouched for: sessions, and sign-ins that wait for a second factor. It
// returns how many sessions had not expired.
func (r *request) endVouched(ctx context.Context, tx *access.Tx, userID string) (int64, error) {
	if _, err := tx.LockAccount(ctx, userID); err != nil {
		return 0, err
	}
	return tx.DeleteIssuerSessionsOf(ctx, r.s.life, r.connection.TenantID, doorward.Issuer(r.connection.ID), userID)
}

// recordEnd makes the event one about the person; none, if nothing has ended.
func (r *request) recordEnd(tx *access.Tx, on doorward.Object, ended doorward.Ended) {
	if ended.Sessions == 0 && ended.APIKeys == 0 {
		tx.SkipEvent()
		return
	}
	tx.RecordAs(doorward.SessionEnd, on)
	tx.Changed(doorward.FieldConnection, "", r.connection.ID)
	tx.RecordEnded(ended)
}

// member returns the person in the tenant; the zero User for nobody. A subject of another issuer than the one that
// speaks is nobody: the provider may have been another one before.
func (r *request) member(ctx context.Context, tx *access.Tx, who Subject) (person doorward.User, err error) {
	c := r.connection
	switch {
	case who.Format == FormatEmail:
		if address := who.address(); address != "" { // else nobody has it
			person, err = r.addressed(ctx, tx, address)
		}
	case who.Issuer != c.InForce.Issuer:
		return person, nil
	default:
		var identity doorward.Identity
		if identity, err = tx.Identity(ctx, c.ID, who.Issuer, who.Subject); err == nil {
			person, err = tx.User(ctx, c.TenantID, identity.UserID)
		}
	}
	if errors.Is(err, store.ErrNone) {
		return doorward.User{}, nil
	}
	return person, err
}

// addressed returns the person whom the provider calls by the canonical address: the member who has it, or else who
// has another one by now, as a directory of the connection says it, or as the tenant remembers it of somebody who has
// come by the connection. Errors: store.ErrNone.
func (r *request) addressed(ctx context.Context, tx *access.Tx, address string) (doorward.User, error) {
	c := r.connection
	person, err := tx.UserByEmail(ctx, c.TenantID, address)
	if !errors.Is(err, store.ErrNone) {
		return person, err
	}
	said, err := tx.DirectoryMemberAddressed(ctx, c.ID, c.TenantID, address)
	if err == nil {
		return tx.User(ctx, c.TenantID, said.UserID)
	}
	if !errors.Is(err, store.ErrNone) {
		return doorward.User{}, err
	}
	id, err := tx.FormerHolder(ctx, c.TenantID, address)
	if err != nil {
		return doorward.User{}, err
	}
	all, err := tx.IdentitiesOf(ctx, id)
	if err == nil && !slices.ContainsFunc(all, func(i doorward.Identity) bool { return i.ConnectionID == c.ID }) {
		err = store.ErrNone
	}
	if err != nil {
		return doorward.User{}, err
	}
	return tx.User(ctx, c.TenantID, id)
}
