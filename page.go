package doorward

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
)

// Position is the position of a row in a list. It consists of ID and At (a time in Unix
// microseconds, or a sequence number), or of ID and Key in a list that is sorted by a text. The
// zero Position is the start.
type Position struct {
	At  int64
	Key string
	ID  string
}

// Window is the requested part of a list: rows that follow a position, or that immediately
// precede one.
type Window struct {
	After  Position
	Before Position // in place of After, unless it is the zero Position
	Limit  int      // rows at most
	Sort   string   // what the list is sorted by, with - before it in reverse; empty: its usual order
	Count  bool     // also return Page.Total
}

// IsBackward reports whether the window has the rows before a position.
func (w Window) IsBackward() bool { return w.Before != Position{} }

// Page is the returned part of a list.
type Page[T any] struct {
	Items []T
	Prev  *Position // where the previous page ends; nil on the first page
	Next  *Position // where the next page starts; nil on the last page
	Total int       // rows of the whole list, if Window.Count; MaxTotal+1 for more than MaxTotal
}

// EachRow returns the rows of a list one after the other, from its beginning. It reads them with read, in pages
// of size rows, so that it never holds more than one page. An error comes with the zero row, and is the last.
func EachRow[T any](size int, read func(Window) (Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for w := (Window{Limit: size}); ; {
			page, err := read(w)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, row := range page.Items {
				if !yield(row, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			w.After = *page.Next
		}
	}
}

// MaxTotal is the largest number of rows that is counted exactly.
const MaxTotal = 10_000

// version returns a hash of the parts, so that equal states have equal versions and the database
// needs no column for a version. It has letters and digits alone: what a proxy appends to it in an ETag
// begins with another sign.
func version(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", parts))
	return hex.EncodeToString(sum[:12])
}

// CheckVersion returns precondition_failed if versions are given (If-Match, RFC 9110, section
// 13.1.1) and the present one isn't among them.
func CheckVersion(present string, versions []string) error {
	if len(versions) > 0 && !slices.Contains(versions, present) {
		return Fail(CodePreconditionFailed, "")
	}
	return nil
}
