package api

import "github.com/doorward/doorward"

// field is a member of the body that may not be empty.
type field struct{ pointer, value string }

// required returns one error for all fields that are empty.
func required(fields ...field) error {
	var faults []doorward.FieldError
	for _, f := range fields {
		if f.value == "" {
			faults = append(faults, doorward.FieldError{Pointer: f.pointer, Code: "required", Message: "Send this member; it may not be empty."})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return doorward.InvalidFields(faults...)
}
