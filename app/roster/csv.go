package roster

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// columns has a function for each column of a CSV file, which returns the column's field of a
// row.
var columns = map[string]func(*row) *string{
	"email":        func(r *row) *string { return &r.Email },
	"name":         func(r *row) *string { return &r.Name },
	"role":         func(r *row) *string { return &r.Role },
	"status":       func(r *row) *string { return &r.Status },
	"passwordHash": func(r *row) *string { return &r.PasswordHash },
}

const columnsHelp = "The columns are email, role, name, status and passwordHash; email and role are required; names are case-sensitive."

// csv reads a file of comma-separated values. After a fault it continues with the
// next line.
func (r *parser) csv(text []byte) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	in := csv.NewReader(bytes.NewReader(text))
	in.Comma = separator(text)
	in.FieldsPerRecord = -1 // record checks the number, with a better message
	header, err := in.Read()
	if err != nil {
		r.addHeaderFault(err)
		return
	}
	if !r.checkHeader(header) {
		return
	}
	for begin := in.InputOffset(); ; begin = in.InputOffset() {
		fields, err := in.Read()
		if err == io.EOF {
			return
		}
		line := lineOf(in, fields, err)
		if !r.admitRow(line) {
			return
		}
		if in.InputOffset()-begin > MaxRow {
			r.Add(line, "", "too_long", "The row has more than 16 KiB. Look for a quotation mark that isn't closed.")
			continue
		}
		r.record(line, header, fields, err)
	}
}

// separator returns the first separator in the header; no name of a column contains one.
func separator(text []byte) rune {
	header, _, _ := bytes.Cut(text, []byte("\n"))
	if i := bytes.IndexAny(header, ",;\t"); i >= 0 {
		return rune(header[i])
	}
	return ','
}

func lineOf(in *csv.Reader, fields []string, err error) int {
	if broken := (*csv.ParseError)(nil); errors.As(err, &broken) {
		return broken.StartLine
	}
	if len(fields) == 0 {
		return 0
	}
	line, _ := in.FieldPos(0)
	return line
}

func (r *parser) addHeaderFault(err error) {
	if err == io.EOF {
		r.Add(1, "", "required", "The file is empty. Its first line must name the columns. "+columnsHelp)
		return
	}
	r.Add(1, "", "invalid", "The first line, which names the columns, can't be read. "+columnsHelp)
}

// checkHeader adds the faults of the header, and reports whether there are none.
func (r *parser) checkHeader(names []string) bool {
	for i, name := range names {
		switch {
		case columns[name] == nil:
			r.Add(1, "", "unknown_column", fmt.Sprintf("Unknown column %d: correct its name or leave it out. %s", i+1, columnsHelp))
		case slices.Contains(names[:i], name):
			r.Add(1, name, "duplicate", "There are two columns of this name. Leave one of them out.")
		}
	}
	for _, needed := range []string{"email", "role"} {
		if !slices.Contains(names, needed) {
			r.Add(1, needed, "required", "The column is missing. "+columnsHelp)
		}
	}
	return len(r.Faults.Listed) == 0
}

// record checks one row and adds it.
func (r *parser) record(line int, header, fields []string, err error) {
	switch {
	case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
		r.Add(line, "", "invalid", "A quotation mark is in the wrong place. Quote the whole value, and double the quotation marks inside it.")
	case err != nil:
		r.Add(line, "", "invalid", "The row can't be read as CSV.")
	case len(fields) != len(header):
		r.Add(line, "", "invalid", fmt.Sprintf("The row has %d columns, the first line %d. Quote values with separators in them.", len(fields), len(header)))
	case !utf8.ValidString(strings.Join(fields, "")):
		r.Add(line, "", "invalid", "The row is not UTF-8. Save the file as UTF-8.")
	case strings.Contains(strings.Join(fields, ""), "\x00"): // PostgreSQL's text can't have it
		r.Add(line, "", "invalid", "The row has a NUL character. Save the file as UTF-8.")
	default:
		var person row
		for i, name := range header {
			*columns[name](&person) = fields[i]
		}
		r.check(line, person)
	}
}
