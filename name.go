package doorward

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxNameLength is the longest name of a tenant or person, in code points.
const MaxNameLength = 100

// CleanName returns the one form of a name: composed (Unicode NFC), with single spaces between words and
// no space around them, whatever kinds were typed or pasted, and without characters that can't be seen, such
// as zero-width spaces and direction marks. Joiners and variation selectors stay where they change what is
// seen: Persian, the scripts of India and emoji are written with them. Control characters within the name
// and those that switch the direction of text stay too, for CheckName to refuse.
func CleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Zs, r):
			return ' '
		case isInvisible(r) && !joins(r):
			return -1
		}
		return r
	}, norm.NFC.String(name))
	name = strings.TrimFunc(joined(norm.NFC.String(name)), unicode.IsSpace)
	for strings.Contains(name, "  ") {
		name = strings.ReplaceAll(name, "  ", " ")
	}
	return norm.NFC.String(name) // what stood between a letter and its accent may be gone
}

// joined returns the name without the joiners and variation selectors that change nothing: those at the
// beginning or the end, beside a space, in a row, or after a letter of a script that has no such forms.
func joined(name string) string {
	var kept []rune
	base := ' ' // the last character that isn't a mark on another
	for _, r := range name {
		isRepeated := isJoiner(r) && len(kept) > 0 && kept[len(kept)-1] == r
		if isRepeated || joins(r) && (unicode.IsSpace(base) || unicode.In(base, unicode.Latin, unicode.Greek, unicode.Cyrillic)) {
			continue
		}
		if unicode.IsSpace(r) {
			kept = withoutJoiners(kept)
		}
		if !unicode.Is(unicode.Mn, r) {
			base = r
		}
		kept = append(kept, r)
	}
	return string(withoutJoiners(kept))
}

// withoutJoiners returns the text without the joiners at its end.
func withoutJoiners(text []rune) []rune {
	for len(text) > 0 && isJoiner(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

// isJoiner reports whether it is the zero-width non-joiner or joiner.
func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

// isInvisible reports whether a character is a format character (Cf) or one that renderers ignore, but
// neither one of the visible ones of Cf, as Arabic has them, nor one that switches the direction of text.
func isInvisible(r rune) bool {
	return (unicode.Is(unicode.Cf, r) || IsBlank(r)) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) && !isControl(r)
}

// joins reports whether an invisible character changes how its neighbours are written: the joiners, the
// variation selectors, and the tags that flags of regions are made of.
func joins(r rune) bool {
	return isJoiner(r) || unicode.Is(unicode.Variation_Selector, r) || r >= 0xe0020 && r <= 0xe007f
}

// RequireName is like CheckName, but the name must have a visible character; missing is the
// message if it has none.
func RequireName(pointer string, name *string, missing string) []FieldError {
	if *name = CleanName(*name); !isVisible(*name) {
		return []FieldError{{Pointer: pointer, Code: "required", Message: missing}}
	}
	return CheckName(pointer, name)
}

// CheckName cleans the name of a tenant, person or thing, see CleanName, and returns its faults, with the
// pointer. The empty name is valid, since lists then show the address; a name of invisible characters isn't.
func CheckName(pointer string, text *string) []FieldError {
	was := *text
	*text = CleanName(was)
	switch name := *text; {
	case utf8.RuneCountInString(name) > MaxNameLength:
		return []FieldError{{Pointer: pointer, Code: "out_of_range", Message: "A name may have 100 characters at most."}}
	case hasControl(name):
		return []FieldError{{Pointer: pointer, Code: "invalid", Message: "A name may not contain control characters or change the direction of text."}}
	case was != "" && !isVisible(name):
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

// hasControl reports whether the text has a character that isControl names.
func hasControl(text string) bool { return strings.ContainsFunc(text, isControl) }

// isControl reports whether it is a control character, a line or paragraph separator, or a character that
// changes the direction of text (Unicode UAX #9) and so can make one name look like another.
func isControl(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029
}

// localeForm is the form of a language tag of BCP 47: a language of two or three letters, and subtags.
var localeForm = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,4}$`)

// CheckLocale returns the faults of a language tag, with the pointer. The empty one is valid.
func CheckLocale(pointer, tag string) []FieldError {
	if tag == "" || localeForm.MatchString(tag) {
		return nil
	}
	return []FieldError{{Pointer: pointer, Code: "invalid", Message: "Write the language as in \"en\" or \"de-CH\" (BCP 47)."}}
}
