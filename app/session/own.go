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

// Own returns the caller's current sessions in all tenants, the newest first.
func (s *Sessions) Own(ctx context.Context, by doorward.Caller) ([]doorward.Session, error) {
	return s.live(ctx, by.ID)
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
// user's session.
func (s *Sessions) EndOwn(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	on := doorward.Object{Type: "session", ID: id}
	return s.writer.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
		row, err := tx.Session(ctx, id)
		if err == nil && row.Session.UserID != by.ID {
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

// EndOthers ends all of the caller's sessions except the current one, and forgets
// all known browsers except the current one.
func (s *Sessions) EndOthers(ctx context.Context, by doorward.Caller) (doorward.Revocation, error) {
	on := doorward.Object{Type: "user", ID: by.ID, TenantID: by.TenantID}
	return s.writer.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
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

// OtherBrowsers counts the known browsers of the caller, without the current one.
func (s *Sessions) OtherBrowsers(ctx context.Context, by doorward.Caller) (int, error) {
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
