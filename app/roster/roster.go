// Package roster reads and writes lists of people: what "doorward user import"
// takes and what "doorward tenant export --people-only" gives.
//
//	list := roster.Read(file, roster.CSV)
//	if len(list.Faults) > 0 {
//		fault := list.Faults[0] // line 17, "email", "invalid", what to do
//	}
//
// # CSV
//
// As in RFC 4180, in UTF-8 with or without a byte order mark. The first line
// names the columns, in any order. Commas, semicolons or tabs stand between
// them, whichever comes first in that line: spreadsheets write what their
// country is used to.
//
// # JSON lines
//
// One object a line, strict as the bodies of the API: see internal/strictjson.
// Empty lines are skipped.
//
// # Columns and members
//
//	email         needed; the address, which becomes its canonical form
//	role          needed; OWNER, ADMIN, USER or VIEWER
//	name          up to 100 characters
//	status        active (when it is left out) or suspended
//	passwordHash  what internal/argon verifies; left out: no password
//
// Any other column is an error: if "password_hash" were ignored, everybody would be
// imported without a password.
//
// # All faults at once
//
// Reading goes on after a fault, so that a file of thousands of lines can be corrected
// in one pass. [List] has the first [MaxFaults] of them and counts the others. No fault
// repeats a hash: if columns are mixed up, it could be a plain password.
//
// # Limits
//
// A file has 64 MiB, a row 16 KiB and a list 100,000 people at most. All of it
// is held in memory: the file, and about as much again.
package roster

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/mailaddr"
)

// The limits of a file. What is longer than a row's limit is no list of people;
// the others bound memory, and the time for which an import holds the database.
const (
	MaxBytes  = 64 << 20
	MaxRow    = 16 << 10 // bytes
	MaxPeople = 100_000
	MaxFaults = 100 // that are listed; the others are counted
)

// Format is how a list is written.
type Format string

// The formats.
const (
	CSV       Format = "csv"
	JSONLines Format = "jsonl"
)

// Formats lists them.
var Formats = []Format{CSV, JSONLines}

// Person is a row that has passed: the address is canonical, role and status
// are one of theirs, and the hash can be verified or is empty.
type Person struct {
	Line         int // where the row begins, the first line being 1
	Email        string
	Name         string
	Role         doorward.Role
	Status       doorward.UserStatus
	PasswordHash string
}

// Fault is one thing that is wrong with a file.
type Fault struct {
	Line    int    // 0: with the whole file
	Column  string // empty: with the whole row
	Code    string // stable
	Message string // what to do, in sentences
}

// Faults are the first ones of a file, and how many more there are.
type Faults struct {
	Faults []Fault
	More   int
}

// Add notes a fault.
func (f *Faults) Add(line int, column, code, message string) {
	if len(f.Faults) == MaxFaults {
		f.More++
		return
	}
	f.Faults = append(f.Faults, Fault{line, column, code, message})
}

// Err is nil when there are no faults, else an [*Error]. They are sorted by
// their lines.
func (f *Faults) Err() error {
	if len(f.Faults) == 0 {
		return nil
	}
	slices.SortStableFunc(f.Faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Faults: *f}
}

// Error says that a list was refused as a whole, and all that is wrong with it.
type Error struct{ Faults }

// Error counts the faults.
func (e *Error) Error() string {
	n := len(e.Faults.Faults) + e.More
	if n == 1 {
		return "the list of people has a fault"
	}
	return "the list of people has " + strconv.Itoa(n) + " faults"
}

// List is what a file holds.
type List struct {
	People []Person // those that have passed, in the order of the file
	Faults
}

// Read reads a file to its end. Every error is that of r.
func Read(r io.Reader, format Format) (List, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return List{}, err
	}
	read := reading{seen: map[string]int{}}
	switch {
	case len(text) > MaxBytes:
		read.Add(0, "", "too_long", "The file has more than 64 MiB. Split it.")
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		read.Add(1, "", "invalid", "The file is written in UTF-16. Save it as UTF-8.")
	case format == CSV:
		read.csv(text)
	default:
		read.jsonLines(text)
	}
	return read.List, nil
}

// reading is a list while it is being read.
type reading struct {
	List
	seen map[string]int // the lines of addresses
	rows int
}

// row is a person as written.
type row struct {
	Email        string `json:"email"`
	Name         string `json:"name"`
	Role         string `json:"role"`
	Status       string `json:"status"`
	PasswordHash string `json:"passwordHash"`
}

// full reports whether there are too many rows, and adds one fault for that.
func (r *reading) full(line int) bool {
	if r.rows++; r.rows <= MaxPeople {
		return false
	}
	r.Add(line, "", "too_many", "A file may have 100,000 people at most. Split it here.")
	return true
}

// take checks a row and adds it, or what is wrong with it.
func (r *reading) take(line int, as row) {
	before := len(r.Faults.Faults) + r.More
	p := Person{
		Line: line, Name: as.Name, Role: doorward.Role(as.Role),
		Status: cmp.Or(doorward.UserStatus(as.Status), doorward.UserActive), PasswordHash: as.PasswordHash,
	}
	p.Email = r.email(line, as.Email)
	r.person(p)
	if len(r.Faults.Faults)+r.More == before {
		r.People = append(r.People, p)
	}
}

// email returns the canonical address, empty when it is none.
func (r *reading) email(line int, address string) string {
	if address == "" {
		r.Add(line, "email", "required", "Give the address.")
		return ""
	}
	email, err := mailaddr.Parse(address)
	if err != nil {
		r.Add(line, "email", "invalid", "This is "+err.Error()+".")
		return ""
	}
	if first, twice := r.seen[email]; twice {
		r.Add(line, "email", "duplicate", "The address "+email+" is on line "+strconv.Itoa(first)+" already. Leave one of the two out.")
		return ""
	}
	r.seen[email] = line
	return email
}

// person checks all but the address.
func (r *reading) person(p Person) {
	for _, f := range doorward.CheckName("", p.Name) {
		r.Add(p.Line, "name", f.Code, f.Message)
	}
	switch {
	case p.Role == "":
		r.Add(p.Line, "role", "required", "Give the role: OWNER, ADMIN, USER or VIEWER.")
	case !p.Role.Valid():
		r.Add(p.Line, "role", "invalid", doorward.RolesHelp)
	}
	if p.Status != doorward.UserActive && p.Status != doorward.UserSuspended {
		r.Add(p.Line, "status", "invalid", "The status is active or suspended.")
	}
	if p.PasswordHash == "" {
		return
	}
	if err := argon.Known(p.PasswordHash); err != nil {
		r.Add(p.Line, "passwordHash", "invalid", hashHelp(err))
	}
}

// hashHelp passes on why, which for a hash of no known kind names those that
// are. The errors of argon quote no hash.
func hashHelp(err error) string {
	return "This hash can't be verified: " + strings.TrimPrefix(err.Error(), "argon: stored hash: ") +
		". Leave it empty for people who are to choose a new password."
}
