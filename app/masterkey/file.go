package masterkey

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/internal/secretfile"
)

// File is where a node reads its master key.
type File struct {
	Path string // empty: no key
	// Optional: without the file there is no key. Load makes the file if the database has
	// never used a key.
	Optional bool
}

// FileError says why the file of a master key can't be used.
type FileError struct {
	Path string
	Err  error
}

// Error names the file and the reason. It never quotes the content.
func (e *FileError) Error() string {
	if errors.Is(e.Err, fs.ErrNotExist) {
		return fmt.Sprintf("there is no file %s. \"doorward key create-master %[1]s\" makes it. If the database had a key that is lost: \"doorward key replace-master %[1]s\".", e.Path)
	}
	if exposed := (*secretfile.ExposedError)(nil); errors.As(e.Err, &exposed) {
		return exposed.Error()
	}
	return fmt.Sprintf("the master key file %s can't be used: %v.", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }

// NeededError says that a setting can't work without a master key.
type NeededError struct{ Setting string }

// Error says how to set a key.
func (e *NeededError) Error() string {
	return "--" + e.Setting + " needs a master key, and there is none. \"doorward key create-master FILE\" makes it, and --master-key-file names it"
}

// Read returns the key, or the zero key if there is none. Errors: *FileError, when the
// file holds no key, can't be read, other users may read it, or it is missing and not optional.
func (f File) Read() (seal.Key, error) {
	if f.Path == "" {
		return seal.Key{}, nil
	}
	text, err := secretfile.Read(f.Path)
	if f.Optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
		return seal.Key{}, nil
	}
	var key seal.Key
	if err == nil {
		key, err = seal.Parse(string(text))
	}
	if err != nil {
		return seal.Key{}, &FileError{f.Path, err}
	}
	return key, nil
}

// create makes the file with a new key. If another process is faster, it returns the key of
// that process.
func (f File) create() (seal.Key, error) {
	key, err := seal.Create(f.Path)
	if errors.Is(err, fs.ErrExist) {
		return f.Read()
	}
	if err != nil {
		return seal.Key{}, &FileError{f.Path, err}
	}
	return key, nil
}
