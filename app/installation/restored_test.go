package installation_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/store"
)

// TestRestoreForgetsDevices: after a restore no browser is known, whatever else is
// kept: its owner may have removed it since the backup.
func TestRestoreForgetsDevices(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		device := []byte(ann.User.Email)
		_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
			_, err := tx.InsertDevice(f.Context(), device, ann.User.ID, 20, time.Time{})
			return err
		})
		f.NoError(err)
		knows := func() int {
			known, err := f.DB.Read().KnownDevices(f.Context(), ann.User.Email, [][]byte{device}, time.Time{})
			f.NoError(err)
			return len(known)
		}
		if knows() != 1 {
			f.Fatal("the browser isn't known before the restore: this test proves nothing")
		}
		_, err = f.Node(0).Installation.Restored(f.Context(), apptest.Operator, installation.Keep{Sessions: true, Links: true})
		f.NoError(err)
		if knows() != 0 {
			f.Error("a browser from before the restore is still known")
		}
	})
}
