package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	keySize = 32 // bytes: AES-256
	idSize  = 8
)

// ID names a key without revealing anything about it: the first 64 bits of its hash.
type ID [idSize]byte

// String returns the id as 16 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String returns. Errors: not 16 hexadecimal digits.
func ParseID(text string) (id ID, err error) {
	bits, err := hex.DecodeString(text)
	if err != nil || len(bits) != idSize {
		return ID{}, errors.New("seal: the id of a master key has 16 hexadecimal digits")
	}
	return ID(bits), nil
}

// Key is a master key. It prints as its id, never as its bits. The zero Key is no key.
type Key struct {
	bits *[keySize]byte // a pointer, so that fmt doesn't print them
	id   ID
}

// NewKey makes a key from the operating system's random source. It doesn't fail.
func NewKey() Key {
	var bits [keySize]byte
	_, _ = rand.Read(bits[:]) // never fails
	return keyOf(bits)
}

// KeyFrom returns the key with these bits, which the caller has derived from secrets.
func KeyFrom(bits [keySize]byte) Key { return keyOf(bits) }

func keyOf(bits [keySize]byte) Key {
	sum := sha256.Sum256(append([]byte("doorward master key id\x00"), bits[:]...))
	return Key{&bits, ID(sum[:idSize])}
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.bits == nil }

// ID returns the key's id.
func (k Key) ID() ID { return k.id }

// String names the key by its id, so that a log shows no more.
func (k Key) String() string { return "master key " + k.id.String() }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Reveal returns the key as a file holds it: base64 on one line. This is the secret
// itself.
func (k Key) Reveal() string { return base64.StdEncoding.EncodeToString(k.bits[:]) + "\n" }

// errForm never quotes what was read.
var errForm = errors.New("a master key is 32 bytes in base64, 44 characters on one line; doorward key create-master makes one")

// Parse reads a key in the form of Reveal; the line break may be missing. Errors:
// another form, or one byte repeated. They don't quote the text.
func Parse(text string) (Key, error) {
	line := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	bits, err := base64.StdEncoding.Strict().DecodeString(line)
	if err != nil || len(bits) != keySize || strings.ContainsAny(line, "\r\n") {
		return Key{}, errForm
	}
	if isOneByteRepeated(bits) {
		return Key{}, errors.New("this master key is one byte repeated, not random; doorward key create-master makes one")
	}
	return keyOf([keySize]byte(bits)), nil
}

// isOneByteRepeated reports whether all bytes are the same, as in a key of zeros made for a trial.
func isOneByteRepeated(bits []byte) bool {
	for _, b := range bits {
		if b != bits[0] {
			return false
		}
	}
	return true
}

// Create writes a new key into a file that must not exist yet, readable for its owner
// alone, and returns the key. Without an error, the file outlives a loss of power.
// Errors: fs.ErrExist, and those of writing. After an error before the last step, syncing
// the folder, there is no new file.
func Create(path string) (Key, error) {
	key := NewKey()
	temp, err := os.CreateTemp(filepath.Dir(path), ".master-key-*") // mode 0600
	if err != nil {
		return Key{}, err
	}
	defer os.Remove(temp.Name())
	_, err = temp.WriteString(key.Reveal())
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return Key{}, err
	}
	// A link, unlike a rename, replaces no file that is there.
	if err := os.Link(temp.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return Key{}, fmt.Errorf("%s: %w; it is left as it is", path, fs.ErrExist)
		}
		return Key{}, err
	}
	return key, syncDir(filepath.Dir(path))
}

// syncDir makes a new name in a folder outlive a loss of power.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
