package access

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// dueAtOnce is how many objects EachDue reads at once, besides those that have failed.
	dueAtOnce = 100
	// maxFailures ends EachDue: after so many failures the cause is probably not the objects.
	maxFailures = 100
)

// EachDue calls do for all objects that due returns, at most limit of them at once; idOf returns the id of
// one. After do has succeeded, due must not return the object again once nothing is left to do for it, or
// EachDue would not end. If do fails, the other objects follow, and the result has the error with the id.
func EachDue[T any](idOf func(T) string, due func(limit int) ([]T, error), do func(T) error) error {
	var errs []error
	failed := map[string]bool{} // objects that are still due
	for len(failed) < maxFailures {
		all, err := due(dueAtOnce + len(failed))
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		all = slices.DeleteFunc(all, func(one T) bool { return failed[idOf(one)] })
		if len(all) == 0 {
			break
		}
		for _, one := range all {
			if err := do(one); err != nil {
				failed[idOf(one)] = true
				errs = append(errs, fmt.Errorf("%s: %w", idOf(one), err))
				break // read again: if the database is unavailable, that fails and ends the loop
			}
		}
	}
	return errors.Join(errs...)
}

// noticesBefore are the times before the end of a secret, or of a provider's last certificate, at which OWNERs get a mail,
// the last first: its notice makes the earlier ones undue.
var noticesBefore = []struct {
	number int
	within time.Duration
}{{3, 24 * time.Hour}, {2, 7 * 24 * time.Hour}, {1, 30 * 24 * time.Hour}}

// EachEnding is EachDue for the notices before an end: ending returns what ends between two instants and hasn't had the
// notice with the number, and notify gives it.
func EachEnding[T any](now func() time.Time, idOf func(T) string, ending func(from, to time.Time, number, limit int) ([]T, error), notify func(one T, number int) error) error {
	var errs []error
	for _, notice := range noticesBefore {
		errs = append(errs, EachDue(idOf, func(limit int) ([]T, error) {
			from := now()
			return ending(from, from.Add(notice.within), notice.number, limit)
		}, func(one T) error { return notify(one, notice.number) }))
	}
	return errors.Join(errs...)
}
