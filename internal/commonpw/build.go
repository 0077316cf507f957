package commonpw

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxLine is the longest line, in bytes, that can be an entry. A password has at most 1,024
// bytes in normal form C, and the line at most three and a half times as many.
const maxLine = 4096

// Built is a new filter.
type Built struct {
	List *List
	// LeftOut counts the lines that can't be passwords: not UTF-8, with a zero byte, or
	// longer than 4,096 bytes.
	LeftOut int
}

// Save writes the filter as Load reads it.
func (b Built) Save(w io.Writer) error { return b.List.filter.write(w) }

// Build makes a filter of a list with one entry a line: a password, as for [Load], or the
// SHA-1 hash of one in hexadecimal, with or without a colon and a number, as "Pwned
// Passwords" has them. Of the passwords that aren't on the list, the filter refuses at most
// the share falsePositives.
//
// The list is read twice, and needs no more memory than the filter: less than three bytes
// an entry for one false positive in 10,000. Errors, besides those of the list: no entry,
// only hashes of another kind, a filter of more than MaxFilterSize, falsePositives outside of
// MinFalsePositives and MaxFalsePositives, more or fewer entries when it is read again.
func Build(list io.ReadSeeker, falsePositives float64) (Built, error) {
	if !(falsePositives >= MinFalsePositives && falsePositives <= MaxFalsePositives) {
		return Built{}, fmt.Errorf("commonpw: the false positives must be %g to %g", MinFalsePositives, MaxFalsePositives)
	}
	entries, leftOut, err := count(list)
	if err != nil {
		return Built{}, err
	}
	f, err := newFilter(entries, falsePositives)
	if err != nil {
		return Built{}, err
	}
	if _, err := list.Seek(0, io.SeekStart); err != nil {
		return Built{}, fmt.Errorf("commonpw: %w", err)
	}
	remaining := entries
	err = eachLine(list, func(line []byte) { remaining--; f.add(hashOf(line)) }, func() {})
	if err == nil && remaining != 0 {
		err = errors.New("commonpw: the list has changed while it was read: start again")
	}
	return Built{&List{filter: f}, leftOut}, err
}

// count counts the lines, and refuses lists of which no filter can be made.
func count(list io.Reader) (entries, leftOut int, err error) {
	otherHashes := 0
	err = eachLine(list, func(line []byte) {
		entries++
		if hash, ok := parseHash(line); ok && len(hash) != sha1.Size {
			otherHashes++
		}
	}, func() { leftOut++ })
	switch {
	case err != nil:
	case entries == 0:
		err = errors.New("commonpw: the list holds no password: want one a line, in UTF-8")
	case entries == otherHashes:
		err = errors.New("commonpw: the list holds hashes that are not SHA-1: take one of passwords, or of their SHA-1 hashes")
	}
	return entries, leftOut, err
}

// hashOf returns the key of a line: the hash that it holds, or that of the password.
func hashOf(line []byte) sha1Hash {
	if hash, ok := parseHash(line); ok && len(hash) == sha1.Size {
		return sha1Hash(hash)
	}
	return sha1.Sum([]byte(fold(string(norm.NFC.Bytes(line)))))
}

// parseHash returns the bytes of a line of at least 32 hexadecimal digits, alone or before a
// colon and a number. 32 digits are an NTLM or MD5 hash.
func parseHash(line []byte) (hash []byte, ok bool) {
	digits, number, counted := bytes.Cut(line, []byte(":"))
	isNumber := len(number) > 0 && len(bytes.Trim(number, "0123456789")) == 0
	if len(digits) < 32 || counted && !isNumber {
		return nil, false
	}
	hash, err := hex.AppendDecode(nil, digits)
	return hash, err == nil
}

// eachLine calls entry for each line that isn't blank, and leftOut for each that can't be
// a password. A line is valid until entry returns.
func eachLine(r io.Reader, entry func([]byte), leftOut func()) error {
	in := bufio.NewReaderSize(r, 1<<16)
	if bom, _ := in.Peek(3); string(bom) == "\ufeff" {
		_, _ = in.Discard(3)
	}
	for {
		line, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("commonpw: %w", err)
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		switch {
		case long || len(line) > maxLine || !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0:
			leftOut()
		case len(line) > 0:
			entry(line)
		}
		if err != nil { // io.EOF
			return nil
		}
	}
}
