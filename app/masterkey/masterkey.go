// Package masterkey seals and opens secrets that are stored in the database and that Doorward
// must read again. Features hand plain bytes in and get plain bytes back. The key comes from a
// file (see package seal), which is neither in the database nor in a backup.
//
//	sealed, err := keys.Seal(ctx, tx, seal.Place{Table: "webhooks", ID: id, Column: "secret_sealed"}, secret)
//	secret, err := keys.Open(ctx, place, sealed)
//
// Without a key both return master_key_missing, and everything else works.
//
// # Replacing the key
//
// Rotate makes another key the current one, and seals everything again with it, while
// nodes run. It stores the new key in the database, sealed with the old one: a node that
// finds a value sealed with an unknown key reads its file and that sealed key again. The
// operator then replaces the file on each node. When every live node has read the new
// file, Forget removes the old key and the sealed copy of the new one.
//
// A transaction that seals locks the row of the current key, and Rotate changes that
// row first. So every value sealed with the old key is committed before Rotate looks
// for such values.
//
// A key that is lost is replaced by Replace, and what was sealed with it is forgotten: by the functions that
// features register with OnLoss.
package masterkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// Keys is the feature. Make it with New. It is safe for use by several goroutines.
type Keys struct {
	writer *access.Writer
	db     *store.DB
	source File

	fileKey atomic.Pointer[seal.Key] // the key that was last read from source
	ring    *seal.Ring               // the file's key, and the current one if it differs; empty until Load

	forgetters map[string]Forgetter // by table, see OnLoss
}

// New returns the feature, without a key until Load is called.
func New(writer *access.Writer, db *store.DB, source File) *Keys {
	k := &Keys{writer: writer, db: db, source: source, ring: seal.NewRing(), forgetters: map[string]Forgetter{}}
	k.fileKey.Store(&seal.Key{})
	return k
}

// WrongKeyError says that a key is not the one that the database needs.
type WrongKeyError struct{ File, Needed seal.ID }

// Error names both keys by their ids.
func (e *WrongKeyError) Error() string {
	return fmt.Sprintf("it holds the key %s, and the database is sealed with the key %s", e.File, e.Needed)
}

// Load reads the key. A database that has never used one adopts it; an optional file that is
// missing is made first. Errors: *FileError, which wraps a *WrongKeyError; unavailable.
func (k *Keys) Load(ctx context.Context) error {
	fileKey, err := k.source.Read()
	if err != nil {
		return err
	}
	k.fileKey.Store(&fileKey)
	rows, err := k.db.Read().MasterKeys(ctx)
	if err != nil {
		return err
	}
	if fileKey.IsZero() && len(rows) == 0 && k.source.Path != "" {
		if fileKey, err = k.source.create(); err != nil {
			return err
		}
		k.fileKey.Store(&fileKey)
	}
	if fileKey.IsZero() {
		return nil
	}
	return k.fill(ctx, fileKey, rows)
}

// fill puts the file's key, and the current one if it is another, into the ring.
func (k *Keys) fill(ctx context.Context, fileKey seal.Key, rows []store.MasterKey) (err error) {
	if len(rows) == 0 {
		if rows, err = k.adopt(ctx, fileKey); err != nil {
			return err
		}
	}
	keys, err := usableKeys(fileKey, rows)
	if err != nil {
		return &FileError{k.source.Path, err}
	}
	k.ring.Set(keys...)
	return nil
}

// adopt makes the key the first one of the database, unless another node was quicker, with
// this key or another. It returns the keys that the database then has.
func (k *Keys) adopt(ctx context.Context, fileKey seal.Key) (rows []store.MasterKey, err error) {
	err = k.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if _, err := tx.AdoptMasterKey(ctx, fileKey.ID().String(), checkOf(fileKey)); err != nil {
			return err
		}
		rows, err = tx.MasterKeys(ctx)
		return err
	})
	return rows, err
}

// usableKeys returns the file's key, and the current one if the database has it sealed with
// the file's. Errors: *WrongKeyError if the database doesn't know the file's key, or the
// current one can't be opened with it; an error if the check value is damaged.
func usableKeys(fileKey seal.Key, rows []store.MasterKey) ([]seal.Key, error) {
	known, current := false, seal.ID{}
	keys := []seal.Key{fileKey}
	for _, row := range rows {
		if row.Current {
			current, _ = seal.ParseID(row.ID)
		}
		switch {
		case row.ID == fileKey.ID().String():
			if _, err := fileKey.Open(placeOf(row, "check_value"), row.Check); err != nil {
				return nil, err
			}
			known = true
		case row.Current && row.Wrapped != nil:
			if next, err := unwrap(fileKey, row); err == nil {
				keys = append(keys, next)
			}
		}
	}
	if !known || len(keys) == 1 && current != fileKey.ID() {
		return nil, &WrongKeyError{fileKey.ID(), current}
	}
	return keys, nil
}

func placeOf(row store.MasterKey, column string) seal.Place {
	return seal.Place{Table: "master_keys", ID: row.ID, Column: column}
}

// checkText is the plain text of the check value, by which a node tests its key.
const checkText = "doorward"

func checkOf(k seal.Key) []byte {
	return k.Seal(placeOf(store.MasterKey{ID: k.ID().String()}, "check_value"), []byte(checkText))
}

func unwrap(fileKey seal.Key, row store.MasterKey) (seal.Key, error) {
	text, err := fileKey.Open(placeOf(row, "wrapped"), row.Wrapped)
	if err != nil {
		return seal.Key{}, err
	}
	return seal.Parse(string(text))
}

// None is what FileID returns without a key.
const None = "none"

// FileID returns the id of the key in this node's file, or None.
func (k *Keys) FileID() string {
	if fileKey := k.fileKey.Load(); !fileKey.IsZero() {
		return fileKey.ID().String()
	}
	return None
}

// missingError returns master_key_missing: there is no key, or not the one that is needed.
func missingError(detail string) error {
	return doorward.Fail(doorward.CodeMasterKeyMissing, "%s", detail)
}

const (
	noKey    = "This needs a master key, and the node has none. The operator sets one with --master-key-file."
	otherKey = "This is sealed with a master key that the node doesn't have. The operator finds out more with \"doorward doctor\"."
)

// Ready returns nil when the node has a key. Errors: master_key_missing.
func (k *Keys) Ready() error {
	if k.fileKey.Load().IsZero() {
		return missingError(noKey)
	}
	return nil
}

// sealTries bounds how often another key may become the current one during one Seal or Hold.
const sealTries = 4

// Seal returns the plain bytes, of at most seal.MaxPlain, sealed with the current key
// for a place that the transaction then fills. Errors: master_key_missing, unavailable.
func (k *Keys) Seal(ctx context.Context, tx *store.Tx, at seal.Place, plain []byte) ([]byte, error) {
	key, err := k.hold(ctx, tx)
	if err != nil {
		return nil, err
	}
	return key.Seal(at, plain), nil
}

// Hold locks the current key until the transaction ends, so that other transactions that seal
// wait. Errors: master_key_missing, unavailable.
func (k *Keys) Hold(ctx context.Context, tx *store.Tx) error {
	_, err := k.hold(ctx, tx)
	return err
}

// hold locks the current key, so that it stays current until the transaction ends, and
// returns it.
func (k *Keys) hold(ctx context.Context, tx *store.Tx) (seal.Key, error) {
	if err := k.Ready(); err != nil {
		return seal.Key{}, err
	}
	for range sealTries {
		for _, key := range k.ring.Keys() {
			isCurrent, err := tx.LockMasterKey(ctx, key.ID().String())
			if err != nil || isCurrent {
				return key, err
			}
		}
		if err := k.reload(ctx, tx.Reader); err != nil {
			return seal.Key{}, err
		}
	}
	return seal.Key{}, missingError(otherKey)
}

// Open returns what was sealed for the place. Errors: master_key_missing, unavailable
// when the value is damaged.
func (k *Keys) Open(ctx context.Context, at seal.Place, sealed []byte) ([]byte, error) {
	plain, err := k.ring.Open(at, sealed)
	if unknown := (*seal.UnknownKeyError)(nil); errors.As(err, &unknown) {
		if err := k.Ready(); err != nil {
			return nil, err
		}
		if err := k.reload(ctx, k.db.Read()); err != nil {
			return nil, err
		}
		plain, err = k.ring.Open(at, sealed)
	}
	if unknown := (*seal.UnknownKeyError)(nil); errors.As(err, &unknown) {
		return nil, missingError(otherKey)
	}
	if err != nil {
		return nil, doorward.Unavailable(fmt.Errorf("%s %s, %s: %w", at.Table, at.ID, at.Column, err))
	}
	return plain, nil
}

// reload reads the file and the database again. If the file can't be read now, its last key still
// counts; if it holds a wrong key, the keys stay as they are. It writes nothing, since Seal calls
// it within a transaction.
func (k *Keys) reload(ctx context.Context, read store.Reader) error {
	rows, err := read.MasterKeys(ctx)
	if err != nil {
		return err
	}
	fileKey, err := k.source.Read()
	if err != nil || fileKey.IsZero() {
		fileKey = *k.fileKey.Load()
	}
	if keys, err := usableKeys(fileKey, rows); err == nil {
		k.fileKey.Store(&fileKey)
		k.ring.Set(keys...)
	}
	return nil
}

// Refresh reads the file again while the key is being replaced, or is another one than this node has, and adopts
// a key that could not be adopted at the start, when the database was unavailable. It reports whether the
// key is being replaced. Errors: *FileError, which wraps a *WrongKeyError; unavailable.
func (k *Keys) Refresh(ctx context.Context) (isReplacing bool, err error) {
	rows, err := k.db.Read().MasterKeys(ctx)
	if err != nil {
		return false, err
	}
	if fileKey := *k.fileKey.Load(); !fileKey.IsZero() && len(k.ring.Keys()) == 0 {
		return len(rows) > 1, k.fill(ctx, fileKey, rows)
	}
	isReplacing = len(rows) > 1
	if !isReplacing && k.hasCurrent(rows) {
		return false, nil
	}
	return isReplacing, k.reload(ctx, k.db.Read())
}

// hasCurrent reports whether this node has the current key, or none is used: else the operator has replaced a
// lost one, or hasn't put the file there yet.
func (k *Keys) hasCurrent(rows []store.MasterKey) bool {
	i := slices.IndexFunc(rows, func(row store.MasterKey) bool { return row.Current })
	if i < 0 {
		return true
	}
	return slices.ContainsFunc(k.ring.Keys(), func(key seal.Key) bool { return key.ID().String() == rows[i].ID })
}
