package console

import (
	"encoding/csv"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/internal/mailaddr"
)

// draft is a person to invite, as read from pasted text or a file, and as corrected.
type draft struct {
	Email, Name string
	Role        string // empty: that of the form
	Why         string // key of the message about its fault; empty for none
}

// byteOrderMark is how spreadsheets begin a file in UTF-8.
const byteOrderMark = "\ufeff"

// columnNames are the headings that are known, folded.
var columnNames = map[string]string{
	"email": "email", "e-mail": "email", "mail": "email", "address": "email", "adresse": "email", "e-mail-adresse": "email", "email address": "email",
	"name": "name", "full name": "name", "role": "role", "rolle": "role",
}

// parsePeople reads people from text: one per line as "Name <address>", an address alone, or
// columns separated by tabs, semicolons or commas, with quotes and a heading if there is one.
func parsePeople(text string, rules *doorward.Rules) (all []draft) {
	var heading []string
	for i, line := range strings.FieldsFunc(strings.TrimPrefix(text, byteOrderMark), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := splitColumns(line)
		if i == 0 && isHeading(fields) {
			heading = fields
			continue
		}
		switch {
		case heading != nil:
			all = append(all, byHeading(heading, fields))
		case len(fields) > 1 && !strings.Contains(line, "<") && countAddresses(fields) == 1:
			all = append(all, byContent(fields, rules))
		default:
			for _, one := range splitLines(line) {
				name, email := splitLine(one)
				all = append(all, draft{Name: name, Email: email})
			}
		}
	}
	return all
}

// splitColumns splits at tabs, else at semicolons, else at commas.
func splitColumns(line string) []string {
	for _, comma := range "\t;," {
		if !strings.ContainsRune(line, comma) {
			continue
		}
		r := csv.NewReader(strings.NewReader(line))
		r.Comma, r.LazyQuotes, r.TrimLeadingSpace = comma, true, true
		fields, err := r.Read()
		if err == nil && len(fields) > 1 {
			for i := range fields {
				fields[i] = strings.TrimSpace(fields[i])
			}
			return fields
		}
	}
	return []string{strings.Trim(strings.TrimSpace(line), `"`)}
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

func byHeading(heading, fields []string) (d draft) {
	for i, f := range fields[:min(len(fields), len(heading))] {
		switch columnNames[fold.Text(heading[i])] {
		case "email":
			d.Email = f
		case "name":
			d.Name = f
		case "role":
			d.Role = strings.ToUpper(f)
		}
	}
	return d
}

// byContent takes the column with an @ as the address, one with a role as the role, and the
// others as the name.
func byContent(fields []string, rules *doorward.Rules) (d draft) {
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

// checkDrafts sets what is wrong with each, without asking the database.
func checkDrafts(all []draft, allowed []doorward.Role) {
	seen := map[string]bool{}
	for i := range all {
		d := &all[i]
		email, err := mailaddr.Parse(d.Email)
		switch {
		case d.Email == "":
			d.Why = "left.email.required"
		case err != nil:
			d.Why = "left.email.invalid"
		case seen[email]:
			d.Why = "left.twice"
		case !slices.Contains(allowed, doorward.Role(d.Role)):
			d.Why = "left.role"
		case len(doorward.CheckName("/name", d.Name)) > 0:
			d.Why = "left.name"
		}
		seen[email] = err == nil
	}
}
