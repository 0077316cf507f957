package commonpw

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
)

// The limits of a filter: of its bits, in bytes, and of the false positives it may be
// built for.
const (
	MaxFilterSize     = 4 << 30
	MinFalsePositives = 1e-9
	MaxFalsePositives = 0.1
)

// maxLookups is how often Refuses looks up a password at most: the password and its Word,
// each as typed and lower-cased.
const maxLookups = 4

// filter is a Bloom filter of SHA-1 hashes of passwords. Its file, integers big-endian:
// magic, version (4 bytes), hashes (4), false positives (8, a float64), entries (8), bytes
// of bits (8), CRC-32C of all this (4), the bits, SHA-256 of all before (32).
type filter struct {
	header filterHeader
	bits   []byte
}

// filterHeader is what a filter's file says after the magic and the version.
type filterHeader struct {
	Hashes         uint32 // bits that are set for an entry
	FalsePositives float64
	Entries        uint64 // without duplicates
	Size           uint64 // bytes of the bits
}

// filterMagic isn't valid UTF-8, so no list that Load takes begins with it, and releases from
// before there were filters refuse it as a list.
const filterMagic = "\x89DWPW\r\n\x1a"

const filterVersion = 1

// headerSize is the size of everything before the bits.
const headerSize = len(filterMagic) + 4 + 4 + 8 + 8 + 8 + 4

// newFilter returns an empty filter for this number of entries. Of the passwords that are
// not among them, it refuses at most the share falsePositives.
func newFilter(entries int, falsePositives float64) (*filter, error) {
	bitsPerEntry := -math.Log(falsePositives/maxLookups) / (math.Ln2 * math.Ln2)
	size := math.Ceil(bitsPerEntry * float64(entries) / 8)
	if size > MaxFilterSize {
		return nil, fmt.Errorf("commonpw: a filter of %d entries takes %.1f GiB, and the most is %d: allow more false positives, or keep the most common passwords", entries, size/(1<<30), MaxFilterSize>>30)
	}
	size = max(size, 8) // the formula is inexact for a few bits
	return &filter{
		header: filterHeader{Hashes: uint32(math.Round(bitsPerEntry * math.Ln2)), FalsePositives: falsePositives, Size: uint64(size)},
		bits:   make([]byte, int(size)),
	}, nil
}

type sha1Hash = [sha1.Size]byte

// eachBit calls visit with each bit of an entry until visit returns false. The bits are derived
// from two parts of the hash (Kirsch and Mitzenmacher, "Less Hashing, Same Performance").
func (f *filter) eachBit(hash sha1Hash, visit func(byteAt uint64, bit byte) bool) {
	at, step := binary.BigEndian.Uint64(hash[:]), binary.BigEndian.Uint64(hash[8:])|1
	for range f.header.Hashes {
		n, _ := bits.Mul64(at, f.header.Size*8) // the upper half: at, scaled to the number of bits
		if !visit(n/8, 1<<(n%8)) {
			return
		}
		at += step
	}
}

// add sets the bits of the entry. It counts the entry unless all of them were set already: then
// it is, or seems to be, in the filter.
func (f *filter) add(hash sha1Hash) {
	isNew := false
	f.eachBit(hash, func(at uint64, bit byte) bool {
		isNew = isNew || f.bits[at]&bit == 0
		f.bits[at] |= bit
		return true
	})
	if isNew {
		f.header.Entries++
	}
}

// contains looks a password up as it is and folded: entries of a list of passwords are
// folded, hashes are of passwords as somebody typed them.
func (f *filter) contains(password string) bool {
	folded := fold(password)
	return f.has(folded) || folded != password && f.has(password)
}

func (f *filter) has(password string) bool {
	found := true
	f.eachBit(sha1.Sum([]byte(password)), func(at uint64, bit byte) bool {
		found = f.bits[at]&bit != 0
		return found
	})
	return found
}

// write writes the file of the filter.
func (f *filter) write(w io.Writer) error {
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	if _, err := out.Write(f.header.bytes()); err != nil {
		return err
	}
	if _, err := out.Write(f.bits); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// bytes returns the file's bytes before the bits.
func (h filterHeader) bytes() []byte {
	b := binary.BigEndian.AppendUint32([]byte(filterMagic), filterVersion)
	b, _ = binary.Append(b, binary.BigEndian, h) // fails for types without a fixed size
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// IsFilter reports whether a file begins as a filter does.
func IsFilter(r io.Reader) bool {
	start := make([]byte, len(filterMagic))
	_, err := io.ReadFull(r, start)
	return err == nil && string(start) == filterMagic
}

// readFilter reads the file of a filter. Errors, besides those of r: another version,
// damage.
func readFilter(r io.Reader) (*filter, error) {
	sum := sha256.New()
	header, err := readHeader(io.TeeReader(r, sum))
	if err != nil {
		return nil, err
	}
	f := &filter{header: header, bits: make([]byte, int(header.Size))}
	if err := readFull(io.TeeReader(r, sum), f.bits); err != nil {
		return nil, err
	}
	var want [sha256.Size]byte
	if err := readFull(r, want[:]); err != nil {
		return nil, err
	}
	rest, err := io.ReadFull(r, make([]byte, 1))
	if !bytes.Equal(sum.Sum(nil), want[:]) || rest > 0 {
		return nil, errDamaged
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("commonpw: %w", err)
	}
	return f, nil
}

var errDamaged = errors.New("commonpw: the filter is damaged or was cut off: build it again")

func readHeader(r io.Reader) (h filterHeader, err error) {
	read := make([]byte, headerSize)
	if err := readFull(r, read); err != nil {
		return h, err
	}
	after := read[len(filterMagic):]
	if version := binary.BigEndian.Uint32(after); version != filterVersion {
		return h, fmt.Errorf("commonpw: the filter has version %d, and this program reads %d: build it again", version, filterVersion)
	}
	if _, err := binary.Decode(after[4:], binary.BigEndian, &h); err != nil {
		return h, err
	}
	if !bytes.Equal(read, h.bytes()) || h.Size == 0 || h.Size > MaxFilterSize || h.Hashes == 0 {
		return h, errDamaged
	}
	return h, nil
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	if err != nil {
		return fmt.Errorf("commonpw: %w", err)
	}
	return nil
}
