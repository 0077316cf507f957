package console

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// optionalNumber returns the number in the field, or nil if the field is empty, and faults, with
// one more for anything but a whole number.
func optionalNumber(c *ui.Call, name string, faults []doorward.FieldError) (*int64, []doorward.FieldError) {
	text := strings.TrimSpace(c.Value(name))
	if text == "" {
		return nil, faults
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, append(faults, doorward.FieldError{Pointer: "/" + name, Code: "out_of_range", Message: "Write a whole number."})
	}
	return &n, faults
}

// faultsToFormFields moves the faults of a list's items to the field with the list, and renames
// the fields that have another name in the form.
func faultsToFormFields(err error) error { return renameFaults(err, fieldNames) }

// renameFaults is faultsToFormFields with other names of fields.
func renameFaults(err error, names map[string]string) error {
	var e *doorward.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	moved := *e
	moved.Fields = slices.Clone(e.Fields)
	for i, f := range moved.Fields {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		if other := names[name]; other != "" {
			name = other
		}
		moved.Fields[i].Pointer = "/" + name
	}
	return &moved
}

// fieldNames are the names of fields that differ from those of the API: the owner is an
// address here, and expiresInDays is the field of invitations, which have other limits.
var fieldNames = map[string]string{"ownerId": "owner", "expiresInDays": "days"}
