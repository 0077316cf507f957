package doorward

import (
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the longest name of a tenant or person, in code points.
const MaxNameLength = 100

// CheckName returns what is wrong with the name of a tenant or person, to be
// reported under the pointer, or nothing. The empty name passes.
func CheckName(pointer, name string) []FieldError {
	switch {
	case utf8.RuneCountInString(name) > MaxNameLength:
		return []FieldError{{Pointer: pointer, Code: "out_of_range", Message: "A name may have 100 characters at most."}}
	case hasControl(name):
		return []FieldError{{Pointer: pointer, Code: "invalid", Message: "A name may not contain control characters or change the direction of text."}}
	}
	return nil
}

// hasControl also finds the characters that turn the direction of text around
// (Unicode UAX #9): in a list of people they make one name look like another.
func hasControl(name string) bool {
	for _, r := range name {
		if unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
			return true
		}
	}
	return false
}
