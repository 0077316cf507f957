package roster

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/doorward/doorward/internal/strictjson"
)

// jsonLines reads a file with one object per line.
func (r *parser) jsonLines(text []byte) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !r.admitRow(number) {
			return
		}
		r.readObject(number, line)
	}
	if r.rows == 0 {
		r.Add(0, "", "required", "The file is empty. Write one JSON object per line.")
	}
}

func (r *parser) readObject(number int, line []byte) {
	if len(line) > MaxRow {
		r.Add(number, "", "too_long", "The line has more than 16 KiB. Write one object per line.")
		return
	}
	person, err := strictjson.Decode[row](line)
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) {
		r.Add(number, strings.TrimPrefix(bad.Pointer, "/"), "invalid", capitalize(bad.Reason)+".")
		return
	}
	r.check(number, person)
}

// capitalize makes the first letter upper-case.
func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Write writes a person as a line of JSON, which Read accepts.
func Write(w io.Writer, p Person) error {
	return json.NewEncoder(w).Encode(jsonRow{p.Email, string(p.Role), p.Name, string(p.Status), p.PasswordHash})
}

// jsonRow is a row without its empty optional members.
type jsonRow struct {
	Email        string `json:"email"`
	Role         string `json:"role"`
	Name         string `json:"name,omitempty"`
	Status       string `json:"status"`
	PasswordHash string `json:"passwordHash,omitempty"`
}
