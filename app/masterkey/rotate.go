package masterkey

import (
	"context"
	"fmt"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// batchSize is how many values are sealed again in one transaction.
const batchSize = 100

// Rotate makes next the current master key in place of old, seals again with next what is sealed
// with old, and returns the number of such values. Called again, it finishes a rotation that
// was interrupted. inFiles are the keys of live nodes, as FileID returns them. Errors:
// *WrongKeyError when neither is the current key; *UnfinishedError; unavailable.
func (k *Keys) Rotate(ctx context.Context, by doorward.Caller, old, next seal.Key, inFiles []string) (int, error) {
	if err := k.finish(ctx, old, next, inFiles); err != nil {
		return 0, err
	}
	if err := k.replace(ctx, by, old, next); err != nil {
		return 0, err
	}
	return k.resealAll(ctx, seal.NewRing(old, next), next)
}

// UnfinishedError says that an earlier rotation isn't finished: values are sealed with the key
// that it replaced, or a live node still has that key in its file. Such a node can open values
// sealed with the current key, which is stored sealed with the replaced one, but not those of
// a third key.
type UnfinishedError struct{ Previous, Current string }

// Error says what to do.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the last rotation isn't finished: a live node still has the key %s in its file, or values are sealed with it. Put the file of the key %s on each node; if each has it, repeat the last rotation", e.Previous, e.Current)
}

// finish ends the earlier rotation that made old the current key, if it isn't finished. It
// does nothing if old isn't current, as when a call is repeated, or if next is the key that old
// has replaced.
func (k *Keys) finish(ctx context.Context, old, next seal.Key, inFiles []string) error {
	state, err := ReadState(ctx, k.db.Read())
	if err != nil || state.Previous == "" || state.Current != old.ID().String() || state.Previous == next.ID().String() {
		return err
	}
	if done, err := k.Forget(ctx, inFiles); err != nil || done {
		return err
	}
	return &UnfinishedError{state.Previous, state.Current}
}

// object is what the event is about.
var object = doorward.Object{Type: "installation"}

func (k *Keys) replace(ctx context.Context, by doorward.Caller, old, next seal.Key) error {
	row := store.MasterKey{ID: next.ID().String(), Check: checkOf(next)}
	row.Wrapped = old.Seal(placeOf(row, "wrapped"), []byte(next.Reveal()))
	_, err := k.writer.Do(ctx, by, doorward.MasterKeyRotate, object, func(tx *access.Tx) error {
		if _, err := tx.AdoptMasterKey(ctx, old.ID().String(), checkOf(old)); err != nil { // for a database that has used no key
			return err
		}
		replaced, err := tx.ReplaceMasterKey(ctx, old.ID().String(), row)
		if err != nil || replaced {
			tx.Changed("masterKey", old.ID().String(), row.ID)
			return err
		}
		tx.SkipEvent()
		return checkCurrent(ctx, tx.Tx, old, next)
	})
	return err
}

// checkCurrent returns nil when an earlier call has made next the current key. Errors:
// *WrongKeyError, which names old and the current one.
func checkCurrent(ctx context.Context, tx *store.Tx, old, next seal.Key) error {
	rows, err := tx.MasterKeys(ctx)
	if err != nil {
		return err
	}
	var current seal.ID
	for _, row := range rows {
		if row.Current {
			current, _ = seal.ParseID(row.ID)
		}
	}
	if current != next.ID() {
		return &WrongKeyError{old.ID(), current}
	}
	return nil
}

// resealAll goes through all values once: since replace has committed, nothing more is
// sealed with the old key.
func (k *Keys) resealAll(ctx context.Context, ring *seal.Ring, next seal.Key) (total int, err error) {
	var all int64
	if err := k.eachLost(ctx, next, func(store.SealedValue) { all++ }); err != nil {
		return 0, err
	}
	progress.Step(ctx, "sealing values again", all, nil)
	var batch []store.SealedValue
	for last := (store.SealedValue{}); ; last = batch[len(batch)-1] {
		batch, err = k.resealBatch(ctx, ring, next, last)
		total += len(batch)
		progress.Add(ctx, int64(len(batch)))
		if err != nil || len(batch) == 0 {
			return total, err
		}
	}
}

// resealBatch seals the next values after the given one again, and returns them.
func (k *Keys) resealBatch(ctx context.Context, ring *seal.Ring, next seal.Key, after store.SealedValue) (all []store.SealedValue, err error) {
	err = k.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		if all, err = tx.SealedWithOtherKeys(ctx, seal.HeaderOf(next.ID()), after, batchSize); err != nil {
			return err
		}
		for _, s := range all {
			at := seal.Place{Table: s.Table, ID: s.ID, Column: s.Column}
			plain, err := ring.Open(at, s.Value)
			if err != nil {
				return fmt.Errorf("%s %s, %s: %w", s.Table, s.ID, s.Column, err)
			}
			if err := tx.Reseal(ctx, s, next.Seal(at, plain)); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// State is the state of the master keys in the database.
type State struct {
	Current   string // id of the key that seals; empty: none was ever used
	Previous  string // id of the key before it, while nodes may still have it in their files
	Sealed    bool   // a value is sealed, so a key is needed
	Remaining int    // values that are still sealed with another key; at most 1,000 are counted
}

// ReadState returns the state. Errors: unavailable.
func ReadState(ctx context.Context, read store.Reader) (s State, err error) {
	rows, err := read.MasterKeys(ctx)
	if err != nil || len(rows) == 0 {
		return s, err
	}
	for _, row := range rows {
		if row.Current {
			s.Current = row.ID
		} else {
			s.Previous = row.ID
		}
	}
	sealed, err := read.SealedWithOtherKeys(ctx, []byte{0}, store.SealedValue{}, 1) // of any key: no value has this header
	if s.Sealed = len(sealed) > 0; err != nil || !s.Sealed {
		return s, err
	}
	id, err := seal.ParseID(s.Current)
	if err != nil {
		return s, err
	}
	left, err := read.SealedWithOtherKeys(ctx, seal.HeaderOf(id), store.SealedValue{}, 1000)
	s.Remaining = len(left)
	return s, err
}

// Forget removes the key before the current one if every live node has the current one in
// its file and nothing is sealed with another key. It reports whether it has removed it.
// inFiles are the keys in the nodes' files; nodes without a key (None) don't matter. Errors:
// unavailable.
func (k *Keys) Forget(ctx context.Context, inFiles []string) (done bool, err error) {
	state, err := ReadState(ctx, k.db.Read())
	if err != nil || state.Previous == "" || state.Remaining > 0 {
		return false, err
	}
	for _, id := range inFiles {
		if id != state.Current && id != None {
			return false, nil
		}
	}
	err = k.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		done, err = tx.ForgetMasterKeys(ctx, state.Current)
		return err
	})
	return done, err
}

// CheckFile compares the key in a file with the database. Errors: *FileError, which may wrap a
// *WrongKeyError; unavailable.
func CheckFile(ctx context.Context, read store.Reader, f File) (Fit, error) {
	rows, err := read.MasterKeys(ctx)
	if err != nil || len(rows) == 0 {
		return Fit{}, err
	}
	fit := Fit{}
	for _, row := range rows {
		if row.Current {
			fit.Needed = row.ID
		}
	}
	fileKey, err := f.Read()
	if err != nil || fileKey.IsZero() {
		return fit, err
	}
	fit.InFile = fileKey.ID().String()
	if _, err := usableKeys(fileKey, rows); err != nil {
		return fit, &FileError{f.Path, err}
	}
	return fit, nil
}

// Fit has the ids of the key that a database needs and of the key in a file.
type Fit struct {
	Needed string // by the database; empty: it has never used one
	InFile string // empty: there is no file, or Needed is empty
}
