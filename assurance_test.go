package doorward_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
)

// TestDaysOfGrace: they begin with the demand or with the membership, whichever is later.
func TestDaysOfGrace(t *testing.T) {
	demand := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	f := doorward.SecondFactor{Since: demand, Roles: []doorward.Role{doorward.RoleAdmin}, GraceDays: 7}
	week := 7 * 24 * time.Hour
	for joined, want := range map[time.Time]time.Time{
		demand.Add(-time.Hour): demand.Add(week),
		demand:                 demand.Add(week),
		demand.Add(time.Hour):  demand.Add(time.Hour + week),
	} {
		if due, demanded := f.DueFrom(doorward.RoleAdmin, joined); !demanded || !due.Equal(want) {
			t.Errorf("joined at %v: from %v, %v", joined, due, demanded)
		}
		if due, demanded := f.DueFrom(doorward.RoleUser, joined); demanded {
			t.Errorf("a USER is covered from %v", due)
		}
	}
	f.Since = time.Time{}
	if due, demanded := f.DueFrom(doorward.RoleAdmin, demand); demanded {
		t.Errorf("without a demand: from %v", due)
	}
}
