package session

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Own returns the caller's sessions that are not over, in all tenants, the
// newest first.
func (s *Sessions) Own(ctx context.Context, by doorward.Caller) ([]doorward.Session, error) {
	return s.live(ctx, by.ID)
}

// Of returns the sessions of a member of the caller's tenant that are not over,
// the newest first: those in that tenant, for where else somebody signs in is
// not its business. Errors: forbidden, not_found for a member of another tenant.
func (s *Sessions) Of(ctx context.Context, by doorward.Caller, member doorward.User) ([]doorward.Session, error) {
	on := doorward.Object{Type: "user", ID: member.ID, TenantID: member.TenantID, Held: member.Role}
	if err := s.door.Require(ctx, by, doorward.UserManage, on); err != nil {
		return nil, err
	}
	all, err := s.live(ctx, member.ID)
	return slices.DeleteFunc(all, func(x doorward.Session) bool { return x.TenantID != by.TenantID }), err
}

func (s *Sessions) live(ctx context.Context, userID string) ([]doorward.Session, error) {
	rows, err := s.db.Read().UserSessions(ctx, userID)
	var live []doorward.Session
	for _, row := range rows {
		row.Session.LastSeenAt = micros(max(s.lastUse(secret.Hash(row.Hash)), row.Session.LastSeenAt.UnixMicro()))
		if s.inTime(row.Session, s.db.Now()) {
			live = append(live, row.Session)
		}
	}
	return live, err
}

// EndOwn ends one of the caller's sessions. Errors: not_found, for somebody
// else's too.
func (s *Sessions) EndOwn(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	on := doorward.Object{Type: "session", ID: id}
	return s.door.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
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
		if err == nil && !ended { // by somebody else, while this waited for the row
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		return err
	})
}

// EndOthers ends all of the caller's sessions but the one in use, and the trust in
// all browsers but the caller's.
func (s *Sessions) EndOthers(ctx context.Context, by doorward.Caller) (doorward.Revocation, error) {
	on := doorward.Object{Type: "user", ID: by.ID, TenantID: by.TenantID}
	return s.door.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
		current, err := credential.CurrentDevice(ctx, tx.Reader, by, tx.Now)
		if err != nil {
			return err
		}
		if err := tx.RaiseGeneration(ctx, by.ID, current); err != nil {
			return err
		}
		n, err := tx.DeleteUserSessions(ctx, Life(s.limits), by.ID, by.SessionID)
		if err != nil {
			return err
		}
		return tx.RecordEndedByTenant(ctx, by.ID, n)
	})
}

// OtherBrowsers counts the browsers that are known for the caller, besides the one
// in use.
func (s *Sessions) OtherBrowsers(ctx context.Context, by doorward.Caller) (int, error) {
	now := s.db.Now()
	n, err := s.db.Read().CountDevices(ctx, by.ID, now.Add(-doorward.DeviceLife))
	if err != nil {
		return 0, err
	}
	current, err := credential.CurrentDevice(ctx, s.db.Read(), by, now)
	if current != nil {
		n--
	}
	return n, err
}
