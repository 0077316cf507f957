// Package commonpw answers whether a password is on a list of common ones:
//
//	commonpw.Bundled().Refuses(password)     // the list inside the binary
//	list, err := commonpw.Load(file)         // an operator's list, or a filter
//	built, err := commonpw.Build(file, 1e-4) // a filter of a list of any size
//
// Letter case is ignored. Passwords and entries are compared in Unicode normal form
// C; [Load] and [Build] normalise the entries, and the caller the password. With any list,
// sequences and repetitions are refused, too.
//
// # The bundled list
//
// It is the password dictionary of the npm package @zxcvbn-ts/language-common (MIT,
// see passwords.LICENSE.txt), which go generate fetches and filters: the 17,950
// entries of 8 or more code points, the minimum of NIST SP 800-63B-4, section
// 3.1.1.2, and 24,298 words of 4 to 7, for passwords that add digits and signs to one.
// Only 308 entries have the 12 code points that a password needs by default, so by itself
// the list refuses few passwords. Operators can use a list of longer ones.
//
// It is embedded uncompressed: 337 kB of sorted lines, searched in place, without
// start-up time or heap, and with readable diffs.
package commonpw

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

//go:generate go run ./gen

//go:embed passwords.txt
var bundledLines string

var bundled = List{lines: bundledLines}

// MaxSize is the size in bytes up to which Load takes a list of text. Such a list stays
// in memory, and takes about five times as much while it is loaded.
const MaxSize = 64 << 20

// List is a set of passwords. It never changes and is safe for concurrent use.
type List struct {
	lines  string  // lower-cased, sorted bytewise, each once and with its "\n"
	filter *filter // in place of lines, unless nil
}

// Bundled returns the list inside the binary.
func Bundled() *List { return &bundled }

// Load reads an operator's list: UTF-8, one password a line, ended by LF or CRLF.
// Blank lines and a byte order mark at the start are skipped; everything else
// counts, including spaces and "#", since passwords may begin with them. A filter of
// [Build] is recognised by its beginning.
//
// Errors, besides those of r: more than MaxSize bytes; invalid UTF-8, with the
// number of the line; an empty list, which is a mistake; a filter of another version or
// damaged. No error quotes the file.
func Load(r io.Reader) (*List, error) {
	in := bufio.NewReader(r)
	if start, _ := in.Peek(len(filterMagic)); string(start) == filterMagic {
		f, err := readFilter(in)
		return &List{filter: f}, err
	}
	return loadText(in)
}

func loadText(r io.Reader) (*List, error) {
	var file strings.Builder
	if _, err := io.Copy(&file, io.LimitReader(r, MaxSize+1)); err != nil {
		return nil, fmt.Errorf("commonpw: %w", err)
	}
	if file.Len() > MaxSize {
		return nil, fmt.Errorf("commonpw: the list has more than %d MiB: keep the most common passwords of it", MaxSize>>20)
	}
	entries, err := parse(file.String())
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.New("commonpw: the list holds no password: want one a line")
	}
	return newList(entries), nil
}

// parse returns the entries of a file, folded, in the order of the file. Those that
// folding doesn't change share the file's memory.
func parse(file string) ([]string, error) {
	file = strings.TrimPrefix(file, "\ufeff")
	entries := make([]string, 0, strings.Count(file, "\n")+1)
	number := 0
	for line := range strings.Lines(file) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if !utf8.ValidString(line) {
			return nil, fmt.Errorf("commonpw: line %d is not valid UTF-8: convert the list to UTF-8", number)
		}
		if line != "" {
			entries = append(entries, fold(norm.NFC.String(line)))
		}
	}
	return entries, nil
}

// newList returns a list of the entries, which must be folded. It reorders them.
func newList(entries []string) *List {
	slices.Sort(entries)
	entries = slices.Compact(entries)
	return &List{lines: strings.Join(entries, "\n") + "\n"}
}

// fold returns the form in which entries and passwords are compared.
func fold(password string) string { return strings.ToLower(password) }

// Contains reports whether password, in normal form C, is on the list, ignoring
// letter case. A filter has false positives, and an entry that is the hash of a password
// with upper-case letters matches only that spelling.
func (l *List) Contains(password string) bool {
	if l.filter != nil {
		return l.filter.contains(password)
	}
	want := fold(password)
	rest := l.lines // complete lines, which include the password's if it is listed
	for rest != "" {
		start := strings.LastIndexByte(rest[:len(rest)/2], '\n') + 1
		end := start + strings.IndexByte(rest[start:], '\n')
		switch strings.Compare(want, rest[start:end]) {
		case 0:
			return true
		case -1:
			rest = rest[:start]
		default:
			rest = rest[end+1:]
		}
	}
	return false
}

// Len returns the number of passwords on the list, which it counts on each call. For a
// filter it may be too low, because of false positives.
func (l *List) Len() int {
	if l.filter != nil {
		return int(l.filter.header.Entries)
	}
	return strings.Count(l.lines, "\n")
}

// FalsePositives returns the largest share of passwords that are refused although they
// aren't on the list: 0 unless the list is a filter.
func (l *List) FalsePositives() float64 {
	if l.filter == nil {
		return 0
	}
	return l.filter.header.FalsePositives
}
