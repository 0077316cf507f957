package session

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Own returns the caller's current sessions in all tenants, the newest first; for a session that a connection
// vouches for, those in its tenant.
func (s *Sessions) Own(ctx context.Context, by doorward.Caller) ([]doorward.Session, error) {
	all, err := s.live(ctx, by.ID)
	return slices.DeleteFunc(all, func(x doorward.Session) bool { return !by.Sees(x.TenantID) }), err
}

// Of returns the current sessions of a member of the caller's tenant, the newest
// first: only those in that tenant, which must not learn where else the member
// signs in. Errors: forbidden, not_found for a member of another tenant.
func (s *Sessions) Of(ctx context.Context, by doorward.Caller, member doorward.User) ([]doorward.Session, error) {
	on := doorward.Object{Type: "user", ID: member.ID, TenantID: member.TenantID, Held: member.Role}
	if err := s.writer.Require(ctx, by, doorward.UserManage, on); err != nil {
		return nil, err
	}
	all, err := s.live(ctx, member.ID)
	return slices.DeleteFunc(all, func(x doorward.Session) bool { return x.TenantID != by.TenantID }), err
}

// EndOf ends one session of a member in the caller's tenant. Errors: forbidden, not_found,
// also for a session in another tenant.
func (s *Sessions) EndOf(ctx context.Context, by doorward.Caller, member doorward.User, id string) (doorward.Revocation, error) {
	on := doorward.Object{Type: "user", ID: member.ID, TenantID: member.TenantID, Held: member.Role}
	return s.writer.DoAll(ctx, by, access.Operation{
		Action: doorward.UserSignOut, On: on,
		ReadObject: func(tx *store.Tx) (doorward.Object, error) { // the member may have got a higher role since
			current, err := tx.User(ctx, member.TenantID, member.ID)
			if errors.Is(err, store.ErrNone) {
				err = doorward.Fail(doorward.CodeNotFound, "")
			}
			on := on
			on.Held = current.Role
			return on, err
		},
		Write: func(tx *access.Tx) error { return endOf(ctx, tx, member, id) },
	})
}

func endOf(ctx context.Context, tx *access.Tx, member doorward.User, id string) error {
	row, err := tx.Session(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && (row.Session.UserID != member.ID || row.Session.TenantID != member.TenantID) {
		return doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return err
	}
	ended, err := tx.DeleteSession(ctx, id)
	if err == nil && !ended { // another call ended it while this one waited for the row
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	tx.Changed("session", id, "")
	return err
}

func (s *Sessions) live(ctx context.Context, userID string) ([]doorward.Session, error) {
	rows, err := s.db.Read().UserSessions(ctx, userID)
	var live []doorward.Session
	for _, row := range rows {
		row.Session.LastSeenAt = micros(max(s.registry.LastUse(secret.Hash(row.Hash)), row.Session.LastSeenAt.UnixMicro()))
		if s.inTime(row.Session, s.db.Now()) {
			live = append(live, row.Session)
		}
	}
	return live, err
}

// EndOwn ends one of the caller's sessions. Errors: not_found, also for another
// user's session, and for one that Own doesn't list.
func (s *Sessions) EndOwn(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	on := doorward.Object{Type: "session", ID: id}
	return s.writer.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
		row, err := tx.Session(ctx, id)
		if err == nil && (row.Session.UserID != by.ID || !by.Sees(row.Session.TenantID)) {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if errors.Is(err, store.ErrNone) {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return err
		}
		tx.SetTenant(row.Session.TenantID)
		ended, err := tx.DeleteSession(ctx, id)
		if err == nil && !ended { // another call ended it while this one waited for the row
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		return err
	})
}

// EndOthers ends all of the caller's sessions that Own lists except the current one, and forgets
// all known browsers except the current one. A session that a connection vouches for forgets none.
func (s *Sessions) EndOthers(ctx context.Context, by doorward.Caller) (doorward.Revocation, error) {
	on := doorward.Object{Type: "user", ID: by.ID, TenantID: by.TenantID}
	return s.writer.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
		if by.Issuer != doorward.OwnIssuer {
			return s.endOthersHere(ctx, tx, by)
		}
		current, err := proof.CurrentDevice(ctx, tx.Reader, by, tx.Now)
		if err != nil {
			return err
		}
		n, err := proof.EndAccess(ctx, tx, Life(s.limits), by.ID, proof.Keep{SessionID: by.SessionID, Browser: current})
		if err != nil {
			return err
		}
		return tx.RecordEndedByTenant(ctx, by.ID, n)
	})
}

// endOthersHere ends the caller's other sessions in the tenant of the present one. It locks the account, so
// that a sign-in is complete, and its session ends, or begins afterwards.
func (s *Sessions) endOthersHere(ctx context.Context, tx *access.Tx, by doorward.Caller) error {
	if _, err := tx.LockAccount(ctx, by.ID); err != nil {
		return err
	}
	n, err := tx.DeleteOtherMemberSessions(ctx, Life(s.limits), by.TenantID, by.ID, by.SessionID)
	tx.RecordEnded(doorward.Ended{Sessions: n})
	return err
}

// OtherBrowsers counts the known browsers of the caller, without the current one. A session that a
// connection vouches for shows none.
func (s *Sessions) OtherBrowsers(ctx context.Context, by doorward.Caller) (int, error) {
	if by.Issuer != doorward.OwnIssuer {
		return 0, nil
	}
	now := s.db.Now()
	n, err := s.db.Read().CountDevices(ctx, by.ID, now.Add(-doorward.DeviceLife))
	if err != nil {
		return 0, err
	}
	current, err := proof.CurrentDevice(ctx, s.db.Read(), by, now)
	if current != nil {
		n--
	}
	return n, err
}
