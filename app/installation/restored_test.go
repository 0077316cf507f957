package installation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/store"
)

// TestRestoreForgetsDevices: after a restore no browser is known, whatever else is
// kept: the owner may have removed the browser since the backup.
func TestRestoreForgetsDevices(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		device := []byte(ann.User.Email)
		_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
			_, err := tx.InsertDevice(f.Context(), device, ann.User.ID, 20, time.Time{}) // at most 20 browsers, of any age
			return err
		})
		f.NoError(err)
		countKnown := func() int {
			known, err := f.DB.Read().KnownDevices(f.Context(), ann.User.Email, [][]byte{device}, time.Time{})
			f.NoError(err)
			return len(known)
		}
		if countKnown() != 1 {
			f.Fatal("the browser isn't known before the restore: this test proves nothing")
		}
		_, err = f.Node(0).Installation.Restored(f.Context(), apptest.Operator, installation.Keep{Sessions: true, Links: true, Keys: true})
		f.NoError(err)
		if countKnown() != 0 {
			f.Error("a browser from before the restore is still known")
		}
	})
}

// TestRestoreForgetsAnswers: a restore deletes the answers kept for retries, since they may
// name rows that no longer exist.
func TestRestoreForgetsAnswers(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		call := doorward.IdempotentCall{ID: []byte("a call"), Body: []byte("a body"), Attempt: "one"}
		_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
			if _, err := tx.MarkCall(f.Context(), call); err != nil {
				return err
			}
			_, err := tx.KeepAnswer(f.Context(), call, []byte("an answer"))
			return err
		})
		f.NoError(err)
		_, err = f.DB.Read().KnownCall(f.Context(), call.ID)
		f.NoError(err)
		_, err = f.Node(0).Installation.Restored(f.Context(), apptest.Operator, installation.Keep{Sessions: true, Links: true, Keys: true})
		f.NoError(err)
		if _, err = f.DB.Read().KnownCall(f.Context(), call.ID); !errors.Is(err, store.ErrNone) {
			f.Errorf("the answer after the restore: %v, want none", err)
		}
	})
}
