// Package roster reads and writes lists of people: the input of "doorward user
// import" and the output of "doorward tenant export --people-only".
//
//	list, err := roster.Read(file, roster.CSV)
//	if len(list.Faults.Listed) > 0 {
//		fault := list.Faults.Listed[0] // line 17, "email", "invalid", what to do
//	}
//
// # CSV
//
// As in RFC 4180, in UTF-8 with or without a byte order mark. The first line names
// the columns, in any order. The separator is the first comma, semicolon or tab in
// that line: spreadsheets write what is usual in their locale.
//
// # JSON lines
//
// One object per line, as strict as the bodies of the API: see
// internal/strictjson. Empty lines are skipped.
//
// # Columns and members
//
//	email         required; the address, which becomes its canonical form
//	role          required; OWNER, ADMIN, USER, VIEWER, or one that the tenant has made
//	name          up to 100 characters
//	status        active (the default) or suspended
//	passwordHash  what internal/argon verifies; without it: no password
//
// Any other column is an error: if "password_hash" were ignored, everybody would
// be imported without a password.
//
// # All faults at once
//
// Reading continues after a fault, so that a file of thousands of lines can be
// corrected in one pass. [List] has the first [MaxFaults] of them and counts the
// others. No fault repeats a hash: if columns are mixed up, it could be a plain
// password.
//
// # Limits
//
// A file has at most 64 MiB, a row 16 KiB and a list 100,000 people. All of it is
// held in memory: the file, and about as much again.
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

// The limits of a file. They bound memory, and the time for which an import holds
// the database.
const (
	MaxBytes  = 64 << 20
	MaxRow    = 16 << 10 // bytes
	MaxPeople = 100_000
	MaxFaults = 100 // listed faults; further ones are counted
)

// Format is how a list is written.
type Format string

// The formats.
const (
	CSV       Format = "csv"
	JSONLines Format = "jsonl"
)

// Person is a valid row: the address is canonical, the role is not empty, the status is
// known, and the hash can be verified or is empty. The tenant may lack the role.
type Person struct {
	Line         int // where the row begins, the first line being 1
	Email        string
	Name         string
	Role         doorward.Role
	Status       doorward.UserStatus
	PasswordHash string
}

// Fault is one fault of a file.
type Fault struct {
	Line    int    // 0: the file
	Column  string // empty: the row
	Code    string // stable
	Message string // what to do, in sentences
}

// Faults are the first faults of a file, and the number of further ones.
type Faults struct {
	Listed []Fault
	More   int
}

// Add adds a fault.
func (f *Faults) Add(line int, column, code, message string) {
	if len(f.Listed) == MaxFaults {
		f.More++
		return
	}
	f.Listed = append(f.Listed, Fault{line, column, code, message})
}

// Err returns nil when there are no faults, else an [*Error], sorted by line.
func (f *Faults) Err() error {
	if len(f.Listed) == 0 {
		return nil
	}
	slices.SortStableFunc(f.Listed, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Faults: *f}
}

// Error says that a list was refused, with its faults.
type Error struct{ Faults }

// Error says how many faults there are.
func (e *Error) Error() string {
	n := len(e.Faults.Listed) + e.More
	if n == 1 {
		return "the list of people has a fault"
	}
	return "the list of people has " + strconv.Itoa(n) + " faults"
}

// List is what a file holds.
type List struct {
	People []Person // the valid rows, in the order of the file
	Faults
}

// Read reads a file to its end. The error is that of r; faults are in the list.
func Read(r io.Reader, format Format) (List, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return List{}, err
	}
	p := parser{seen: map[string]int{}}
	switch {
	case len(text) > MaxBytes:
		p.Add(0, "", "too_long", "The file has more than 64 MiB. Split it.")
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		p.Add(1, "", "invalid", "The file is written in UTF-16. Save it as UTF-8.")
	case format == CSV:
		p.csv(text)
	default:
		p.jsonLines(text)
	}
	return p.List, nil
}

// parser is the state of a Read.
type parser struct {
	List
	seen map[string]int // line by address
	rows int
}

// row is a row of the file, unchecked.
type row struct {
	Email        string `json:"email"`
	Name         string `json:"name"`
	Role         string `json:"role"`
	Status       string `json:"status"`
	PasswordHash string `json:"passwordHash"`
}

// admitRow counts a row, and reports whether it is within MaxPeople. If not, it adds a fault, and
// the caller reads no further.
func (r *parser) admitRow(line int) bool {
	if r.rows++; r.rows <= MaxPeople {
		return true
	}
	r.Add(line, "", "too_many", "A file may have 100,000 people at most. Split it here.")
	return false
}

// check adds a row to the list, or its faults.
func (r *parser) check(line int, in row) {
	before := len(r.Faults.Listed) + r.More
	p := Person{
		Line: line, Name: in.Name, Role: doorward.Role(in.Role),
		Status: cmp.Or(doorward.UserStatus(in.Status), doorward.UserActive), PasswordHash: in.PasswordHash,
	}
	p.Email = r.checkEmail(line, in.Email)
	r.checkOthers(&p)
	if len(r.Faults.Listed)+r.More == before {
		r.People = append(r.People, p)
	}
}

// checkEmail returns the canonical address, or adds a fault.
func (r *parser) checkEmail(line int, address string) string {
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

// checkOthers checks everything except the address.
func (r *parser) checkOthers(p *Person) {
	for _, f := range doorward.CheckName("", &p.Name) {
		r.Add(p.Line, "name", f.Code, f.Message)
	}
	if p.Role == "" { // an import checks whether the tenant has the role
		r.Add(p.Line, "role", "required", "Give the role: OWNER, ADMIN, USER or VIEWER, or one that the tenant has made.")
	}
	if p.Status != doorward.UserActive && p.Status != doorward.UserSuspended {
		r.Add(p.Line, "status", "invalid", "The status is active or suspended.")
	}
	if p.PasswordHash == "" {
		return
	}
	if err := argon.CheckHash(p.PasswordHash); err != nil {
		r.Add(p.Line, "passwordHash", "invalid", hashHelp(err))
	}
}

// hashHelp describes the fault of a hash. The errors of argon name the known kinds
// and quote no hash.
func hashHelp(err error) string {
	return "This hash can't be verified: " + strings.TrimPrefix(err.Error(), "argon: stored hash: ") +
		". Leave it empty for people who are to choose a new password."
}
