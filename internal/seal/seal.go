// Package seal encrypts what a database holds and must be readable again, such as
// the seed of a second factor or a private key for signing.
//
//	key, err := seal.Create("/var/lib/doorward/doorward.key") // or Parse what is there
//	at := seal.Place{Table: "signing_keys", ID: "k1", Column: "private"}
//	sealed := key.Seal(at, plain)
//	plain, err := seal.NewRing(key, older).Open(at, sealed)
//
// The master key is 256 random bits in a file that the database and its backups never
// hold. A value is sealed with AES-256-GCM (NIST SP 800-38D) under a random nonce. Its
// place is authenticated with it, so a value that was moved to another row, column or
// table doesn't open. What is sealed begins with a byte for the format and the id of the
// key, so a value says which key it needs.
//
// # Limits
//
// Random nonces of 96 bits are good for 2^32 values under one key (NIST SP 800-38D,
// section 8.3). A value may have up to 1 MiB. Package seal does not hide how long a
// value is, and does not wipe keys from memory.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxPlain is the longest value that is sealed, in bytes.
const MaxPlain = 1 << 20

// format is the first byte of what is sealed: AES-256-GCM, 12 bytes of nonce.
const format = 1

// headerSize is the length of what precedes the nonce.
const headerSize = 1 + idSize

// ErrDamaged says that a value can't be opened with the key it names: it was
// changed, cut off, or sealed for another place.
var ErrDamaged = errors.New("seal: the value is damaged, or was sealed for another row")

// UnknownKeyError says that a value is sealed with a key that is not in the ring.
type UnknownKeyError struct{ ID ID }

// Error names the key by its id.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("seal: the value is sealed with the master key %s, which this program has not been given", e.ID)
}

// Place is where a value is stored.
type Place struct{ Table, ID, Column string }

// additionalData returns the header and the place, each part of it after its length, so that
// no two places have the same data.
func (p Place) additionalData(header []byte) []byte {
	data := append([]byte(nil), header...)
	for _, part := range []string{p.Table, p.ID, p.Column} {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part)))
		data = append(data, part...)
	}
	return data
}

// Seal encrypts the value for this key and place. It panics if plain is longer than
// MaxPlain.
func (k Key) Seal(at Place, plain []byte) []byte {
	if len(plain) > MaxPlain {
		panic("seal: the value is longer than MaxPlain")
	}
	gcm := k.cipher()
	header := HeaderOf(k.id)
	sealed := make([]byte, headerSize+gcm.NonceSize(), headerSize+gcm.NonceSize()+len(plain)+gcm.Overhead())
	copy(sealed, header)
	_, _ = rand.Read(sealed[headerSize:]) // never fails
	return gcm.Seal(sealed, sealed[headerSize:], plain, at.additionalData(header))
}

// Open returns what Seal was given. Errors: *UnknownKeyError when another key is
// needed, ErrDamaged.
func (k Key) Open(at Place, sealed []byte) ([]byte, error) {
	id, err := IDOf(sealed)
	if err != nil {
		return nil, err
	}
	if id != k.id {
		return nil, &UnknownKeyError{id}
	}
	gcm := k.cipher()
	rest := sealed[headerSize:]
	if len(rest) < gcm.NonceSize() {
		return nil, ErrDamaged
	}
	plain, err := gcm.Open(nil, rest[:gcm.NonceSize()], rest[gcm.NonceSize():], at.additionalData(sealed[:headerSize]))
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

// HeaderOf returns the first bytes of every value that is sealed with the key of that id.
func HeaderOf(id ID) []byte { return append([]byte{format}, id[:]...) }

// IDOf returns the id of the key that the value was sealed with. Errors: ErrDamaged.
func IDOf(sealed []byte) (ID, error) {
	if len(sealed) < headerSize || sealed[0] != format {
		return ID{}, ErrDamaged
	}
	return ID(sealed[1:headerSize]), nil
}

func (k Key) cipher() cipher.AEAD {
	block, err := aes.NewCipher(k.bits[:])
	if err != nil {
		panic(err) // the length is right
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return gcm
}
