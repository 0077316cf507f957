package console

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/internal/mailaddr"
)

// draft is a person to invite, as read from pasted text or a file, or as corrected.
type draft struct {
	Email, Name string
	Role        string // empty: that of the form
	Line        int    // where it begins in the text, from 1
	Number      int    // from 1, as shown
	FaultKey    string // key of the message about its fault; empty for none
}

// IsWrong reports whether the fault is in the field: email, name or role. What concerns the whole row
// is shown at the address.
func (d draft) IsWrong(field string) bool {
	at := map[string]string{"": "", "left.name": "name", "left.role": "role"}
	in, known := at[d.FaultKey]
	return in == field || !known && field == "email"
}

// byteOrderMark is how spreadsheets begin a file in UTF-8.
const byteOrderMark = "\ufeff"

// columnNames are the headings that are known, folded.
var columnNames = map[string]string{
	"email": "email", "e-mail": "email", "mail": "email", "address": "email", "adresse": "email", "e-mail-adresse": "email", "email address": "email",
	"name": "name", "full name": "name", "first name": "name", "given name": "name", "last name": "name", "family name": "name", "surname": "name",
	"vorname": "name", "nachname": "name", "familienname": "name", "role": "role", "rolle": "role",
}

// isReadable reports whether the file can be text at all: a workbook, for one, is a ZIP archive, and text in UTF-16
// without a byte order mark is full of NUL.
func isReadable(file []byte) bool {
	return !bytes.HasPrefix(file, []byte("PK\x03\x04")) && !strings.Contains(decodeText(file), "\x00")
}

// decodeText returns the text of a file: UTF-8, UTF-16 with a byte order mark, or else
// Windows-1252. Spreadsheets write all three.
func decodeText(file []byte) string {
	order := binary.ByteOrder(binary.LittleEndian)
	switch {
	case utf8.Valid(file):
		return strings.TrimPrefix(string(file), byteOrderMark)
	case bytes.HasPrefix(file, []byte{0xff, 0xfe}):
	case bytes.HasPrefix(file, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		text, _ := charmap.Windows1252.NewDecoder().Bytes(file) // any byte is a character
		return string(text)
	}
	units := make([]uint16, len(file)/2-1)
	for i := range units {
		units[i] = order.Uint16(file[2+2*i:])
	}
	return string(utf16.Decode(units))
}

// parsePeople reads people from text: one per line as "Name <address>", an address alone, or
// columns separated by tabs, semicolons or commas, with quotes and a heading if there is one.
// Repeated people count once.
func parsePeople(text string, rules *doorward.Rules) []draft {
	var all []draft
	seen := map[draft]bool{}
	for _, d := range parseLines(text, rules) {
		line := d.Line
		d.Email, d.Line = pastedAddress(d.Email), 0
		if !seen[d] {
			seen[d] = true
			d.Line = line
			all = append(all, d)
		}
	}
	return all
}

// withoutInvisible removes what copying from mails and pages brings along: byte order marks, zero-width and
// other format characters, which an address can't have.
func withoutInvisible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' { // joiners may belong to a name
			return -1
		}
		return r
	}, text)
}

// pastedAddress returns the address of a link that was copied, such as mailto:ann@acme.example?subject=x.
func pastedAddress(text string) string {
	const scheme = "mailto:"
	text = strings.Trim(text, " \u200c\u200d")
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		return text
	}
	address, _, _ := strings.Cut(text[len(scheme):], "?")
	if plain, err := url.PathUnescape(address); err == nil {
		address = plain
	}
	return address
}

// numbered is a line of a text; with a line break in a quoted value, it has what was on several.
type numbered struct {
	text string
	line int // where it begins, from 1
}

// lineEnds are the ends of lines of all systems.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// textLines returns the lines that aren't empty.
func textLines(text string) (all []numbered) {
	for i, line := range strings.Split(lineEnds.Replace(text), "\n") {
		if strings.TrimSpace(line) != "" {
			all = append(all, numbered{line, i + 1})
		}
	}
	return all
}

// maxJoined is how many lines a quoted value may have: after a quotation mark that is never closed the others are
// still read.
const maxJoined = 20

// joinQuoted joins the lines of each row whose quoted value has line breaks.
func joinQuoted(lines []numbered, comma rune) (all []numbered) {
	for len(lines) > 0 {
		row, count := lines[0], linesOfRow(lines[:min(len(lines), maxJoined)], comma)
		for _, further := range lines[1:count] {
			row.text += " " + strings.TrimSpace(further.text)
		}
		all, lines = append(all, row), lines[count:]
	}
	return all
}

// linesOfRow returns how many of the lines the first row has: one, if its quoted value isn't closed in them, or has more
// after its end. It reads them once.
func linesOfRow(lines []numbered, comma rune) int {
	if comma == 0 || !strings.Contains(lines[0].text, `"`) {
		return 1
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.text + "\n")
	}
	r := csv.NewReader(strings.NewReader(text.String()))
	r.Comma, r.TrimLeadingSpace = comma, true
	if _, err := r.Read(); errors.Is(err, csv.ErrQuote) || errors.Is(err, csv.ErrBareQuote) {
		return 1
	}
	return max(1, strings.Count(text.String()[:r.InputOffset()], "\n"))
}

func parseLines(text string, rules *doorward.Rules) (all []draft) {
	lines := textLines(withoutInvisible(text))
	if len(lines) == 0 {
		return nil
	}
	if comma, heading := splitColumns(lines[0].text); isHeading(heading) {
		for _, l := range joinQuoted(lines[1:], comma) {
			fields, _ := splitAt(l.text, comma)
			d := draftByHeading(heading, fields)
			d.Line = l.line
			all = append(all, d)
		}
		return all
	}
	for _, l := range lines {
		for _, d := range parseLine(l.text, rules) {
			d.Line = l.line
			all = append(all, d)
		}
	}
	return all
}

// parseLine reads the people of a line of a text without a heading.
func parseLine(line string, rules *doorward.Rules) (all []draft) {
	if _, fields := splitColumns(line); len(fields) > 1 && !strings.Contains(line, "<") && countAddresses(fields) == 1 {
		return []draft{draftByContent(fields, rules)}
	}
	for _, one := range splitPeople(line) {
		name, email := splitNameAndAddress(one)
		all = append(all, draft{Name: name, Email: email})
	}
	return all
}

// splitColumns splits at tabs, else at semicolons, else at commas, and returns at which; 0 for one column.
func splitColumns(line string) (comma rune, fields []string) {
	for _, comma := range "\t;," {
		if fields, ok := splitAt(line, comma); ok && len(fields) > 1 {
			return comma, fields
		}
	}
	return 0, []string{strings.Trim(strings.TrimSpace(line), `"`)}
}

// splitAt splits at the character outside quotes, and reports whether it could. If not, or for 0, the line is one
// column.
func splitAt(line string, comma rune) (fields []string, ok bool) {
	if comma != 0 {
		r := csv.NewReader(strings.NewReader(line))
		r.Comma, r.LazyQuotes, r.TrimLeadingSpace = comma, true, true
		fields, err := r.Read()
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if err == nil {
			return fields, true
		}
	}
	return []string{strings.Trim(strings.TrimSpace(line), `"`)}, false
}

// hasPasswords reports whether the first line names a column with passwords or their hashes. Only the operator's
// command imports those; without them everybody would get a mail instead.
func hasPasswords(text string) bool {
	lines := textLines(withoutInvisible(text))
	if len(lines) == 0 {
		return false
	}
	_, heading := splitColumns(lines[0].text)
	isPassword := func(f string) bool {
		name := strings.NewReplacer("-", "", "_", "", " ", "").Replace(fold.Text(f))
		return strings.HasPrefix(name, "password") || strings.HasPrefix(name, "passwort")
	}
	return isHeading(heading) && slices.ContainsFunc(heading, isPassword)
}

func isHeading(fields []string) bool {
	return countAddresses(fields) == 0 && slices.ContainsFunc(fields, func(f string) bool { return columnNames[fold.Text(f)] == "email" })
}

func countAddresses(fields []string) (n int) {
	for _, f := range fields {
		if strings.Contains(f, "@") {
			n++
		}
	}
	return n
}

func draftByHeading(heading, fields []string) (d draft) {
	var names []string
	for i, f := range fields[:min(len(fields), len(heading))] {
		switch columnNames[fold.Text(heading[i])] {
		case "email":
			d.Email = f
		case "name":
			names = append(names, f)
		case "role":
			d.Role = strings.ToUpper(f)
		}
	}
	d.Name = strings.Join(slices.DeleteFunc(names, func(n string) bool { return n == "" }), " ")
	return d
}

// draftByContent takes the column with an @ as the address, one with a role as the role, and the
// others as the name.
func draftByContent(fields []string, rules *doorward.Rules) (d draft) {
	var name []string
	for _, f := range fields {
		switch role := strings.ToUpper(f); {
		case strings.Contains(f, "@"):
			d.Email = f
		case rules.Has(doorward.Role(role)):
			d.Role = role
		case f != "":
			name = append(name, f)
		}
	}
	d.Name = strings.Join(name, " ")
	return d
}

// checkDrafts sets the fault of each, as far as it can be seen without the database.
func checkDrafts(all []draft, allowed []doorward.Role) {
	seen := map[string]bool{}
	for i := range all {
		d := &all[i]
		email, err := mailaddr.Parse(d.Email)
		switch {
		case d.Email == "":
			d.FaultKey = "left.email.required"
		case err != nil:
			d.FaultKey = "left.email.invalid"
		case seen[email]:
			d.FaultKey = "left.twice"
		case !slices.Contains(allowed, doorward.Role(d.Role)):
			d.FaultKey = "left.role"
		case len(doorward.CheckName("/name", &d.Name)) > 0:
			d.FaultKey = "left.name"
		}
		seen[email] = err == nil
	}
}
