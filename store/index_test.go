package store_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/store/storetest"
)

// A migration may drop an index that an earlier one made; that one isn't missing.
func TestANewDatabaseMissesNoIndex(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			missing, err := db.MissingIndexes(t.Context())
			ok(t, err)
			if len(missing) > 0 {
				t.Errorf("missing: %v", missing)
			}
		})
	}
}
