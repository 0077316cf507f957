package apikey_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
)

// TestSweepPassesFailingKeys: a sweep goes on after a key that it can't change, and records that
// the later keys have expired. Its error names the key that it can't change.
func TestSweepPassesFailingKeys(t *testing.T) {
	t.Parallel()
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	c := newKey(f)
	for days := int64(1); days <= 3; days++ {
		_, _, err := f.Node(0).APIKeys.Create(f.Context(), c.owner.Caller, apikey.Draft{Name: fmt.Sprint("ends ", days), Permissions: []string{"message.send"}, Days: &days})
		f.NoError(err)
	}
	var failing string
	f.NoError(f.SQL().QueryRow(`SELECT id FROM api_keys WHERE name = 'ends 1'`).Scan(&failing))
	f.Exec(fmt.Sprintf(`CREATE TRIGGER fail BEFORE UPDATE ON api_keys WHEN old.id = '%s' BEGIN SELECT RAISE(ABORT, 'this row is broken'); END`, failing))
	clock.Move(4 * 24 * time.Hour)
	if err := f.Node(0).APIKeys.Sweep(f.Context()); err == nil || !strings.Contains(err.Error(), failing) {
		t.Errorf("the sweep ends with %v, want the error of %s", err, failing)
	}
	if n := f.Int(`SELECT count(*) FROM api_keys WHERE status = 'expired' AND name IN ('ends 2', 'ends 3')`); n != 2 {
		t.Errorf("%d of the two keys after the failing one are recorded as expired", n)
	}
}
