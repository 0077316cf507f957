package doorward

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the longest name of a tenant or person, in code points.
const MaxNameLength = 100

// RequireName is like CheckName, but the name must have a visible character; missing is the
// message if it has none.
func RequireName(pointer, name, missing string) []FieldError {
	if !isVisible(name) {
		return []FieldError{{Pointer: pointer, Code: "required", Message: missing}}
	}
	return CheckName(pointer, name)
}

// CheckName returns the faults of the name of a tenant or person, with the pointer. The empty
// name is valid, since lists then show the address; a name of invisible characters isn't.
func CheckName(pointer, name string) []FieldError {
	switch {
	case utf8.RuneCountInString(name) > MaxNameLength:
		return []FieldError{{Pointer: pointer, Code: "out_of_range", Message: "A name may have 100 characters at most."}}
	case hasControl(name):
		return []FieldError{{Pointer: pointer, Code: "invalid", Message: "A name may not contain control characters or change the direction of text."}}
	case name != "" && !isVisible(name):
		return []FieldError{{Pointer: pointer, Code: "invalid", Message: "A name needs a character that can be seen."}}
	}
	return nil
}

// CheckAbout returns the faults of a description of at most limit code points. Unlike a
// name it may be invisible.
func CheckAbout(pointer, text string, limit int) []FieldError {
	switch {
	case utf8.RuneCountInString(text) > limit:
		return []FieldError{{Pointer: pointer, Code: "out_of_range", Message: fmt.Sprintf("The description has %d characters at most.", limit)}}
	case hasControl(text):
		return []FieldError{{Pointer: pointer, Code: "invalid", Message: "A description may not contain control characters or change the direction of text."}}
	}
	return nil
}

// isVisible reports whether the name has a visible character: a letter, digit,
// punctuation or symbol (Unicode's categories L, N, P and S).
func isVisible(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return unicode.IsOneOf(visible, r) && !IsBlank(r) })
}

var visible = []*unicode.RangeTable{unicode.L, unicode.N, unicode.P, unicode.S}

// IsBlank reports whether a letter, mark or symbol is invisible: characters that
// renderers ignore, such as the Hangul fillers (Unicode Standard, section 5.21, and
// UAX #44), and the braille cell without dots.
func IsBlank(r rune) bool { return r == '\u2800' || unicode.In(r, ignorable...) }

var ignorable = []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}

// hasControl reports whether the name has a control character, a line or paragraph
// separator, or a character that changes the direction of text (Unicode UAX #9) and so can
// make one name look like another.
func hasControl(name string) bool {
	for _, r := range name {
		if unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
			return true
		}
	}
	return false
}
