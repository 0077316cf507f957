package session

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Own returns the caller's sessions that are not over, in all tenants, the
// newest first.
func (s *Sessions) Own(ctx context.Context, by doorward.Caller) ([]doorward.Session, error) {
	rows, err := s.db.Read().UserSessions(ctx, by.User.ID)
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
func (s *Sessions) EndOwn(ctx context.Context, by doorward.Caller, id string) error {
	on := doorward.Object{Type: "session", ID: id}
	return s.door.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
		row, err := tx.Session(ctx, id)
		if err == nil && row.Session.UserID != by.User.ID {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if errors.Is(err, store.ErrNone) {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return err
		}
		tx.Within(row.Session.TenantID)
		ended, err := tx.DeleteSession(ctx, id)
		if err == nil && !ended { // by somebody else, while this waited for the row
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		return err
	})
}

// EndOthers ends all of the caller's sessions but the one in use.
func (s *Sessions) EndOthers(ctx context.Context, by doorward.Caller) error {
	on := doorward.Object{Type: "user", ID: by.User.ID, TenantID: by.User.TenantID}
	return s.door.Do(ctx, by, doorward.SessionEnd, on, func(tx *access.Tx) error {
		n, err := tx.DeleteUserSessions(ctx, by.User.ID, by.Session.ID)
		tx.Ended(doorward.Ended{Sessions: n})
		return err
	})
}
