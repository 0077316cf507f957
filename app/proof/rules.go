package proof

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/internal/mailaddr"
)

// MaxPasswordLength is the longest password in code points.
const MaxPasswordLength = 128

// Rules decide which passwords may be set. They demand a length, and refuse common and
// invisible passwords, sequences, repetitions, and what contains the user's address or name.
// There are no composition rules (NIST SP 800-63B-4, section 3.1.1.2). Rules are passed by value,
// so that a request uses the same rules to its end, even if they are changed.
type Rules struct {
	MinLength int // in code points
	Common    *commonpw.List
}

// minWordLength is the length, in code points, from which names and addresses are refused in passwords.
// Shorter ones occur in good passwords by chance.
const minWordLength = 4

// CheckNew returns the faults of a new password and its confirmation, with their pointers. The codes
// are required, mismatch, too_short, too_long, too_common and contains_identity. words are the
// names of the user and of tenants; the password must contain neither them nor the address.
func (r Rules) CheckNew(password, confirm, email string, words ...string) []doorward.FieldError {
	password, confirm = norm.NFC.String(password), norm.NFC.String(confirm)
	var faults []doorward.FieldError
	if f, isFault := r.password(password, email, words); isFault {
		f.Pointer = "/password"
		faults = append(faults, f)
	}
	switch {
	case confirm == "":
		faults = append(faults, doorward.FieldError{Pointer: "/confirmPassword", Code: "required", Message: "Repeat the password."})
	case password != confirm:
		faults = append(faults, doorward.FieldError{Pointer: "/confirmPassword", Code: "mismatch", Message: "The two passwords differ. Type the same one twice."})
	}
	return faults
}

// password returns the fault of a new password, and whether there is one.
func (r Rules) password(password, email string, words []string) (doorward.FieldError, bool) {
	length := utf8.RuneCountInString(password)
	switch {
	case password == "":
		return doorward.FieldError{Code: "required", Message: "Choose a password."}, true
	case length > MaxPasswordLength || len(password) > MaxPasswordBytes:
		return doorward.FieldError{Code: "too_long", Message: "The password may have 128 characters and 1,024 bytes at most."}, true
	case length < r.MinLength:
		return doorward.FieldError{Code: "too_short", Message: "The password needs at least " + strconv.Itoa(r.MinLength) + " characters. A few words in a row are easy to remember."}, true
	}
	cause := r.Common.Cause(password)
	switch {
	case cause != "":
		return doorward.FieldError{Code: "too_common", Cause: cause, Message: commonMessages[cause]}, true
	case !anyVisible(password):
		return doorward.FieldError{Code: "too_common", Cause: "invisible", Message: "The password has no visible character: spaces and invisible characters alone are among the first to be guessed. Choose another one."}, true
	case containsAny(password, append(words, email, mailaddr.Local(email))):
		return doorward.FieldError{Code: "contains_identity", Message: "The password contains your address, your name or the name of the tenant. Leave these out."}, true
	}
	return doorward.FieldError{}, false
}

// commonMessages says why a password is too common.
var commonMessages = map[string]string{
	commonpw.Listed:     "Many people use this password, so it is among the first to be guessed. Choose another one.",
	commonpw.WordListed: "Many people use this password, with other digits or signs around it, so it is among the first to be guessed. Choose another one.",
	commonpw.Sequence:   "The password is a sequence, as of the alphabet or of the keyboard: such passwords are among the first to be guessed. Choose another one.",
	commonpw.Repetition: "The password repeats the same characters: such passwords are among the first to be guessed. Choose another one.",
}

// invisible has spaces, control and format characters. Passwords may contain spaces (NIST SP
// 800-63B-4, section 3.1.1.2), but not only these. Unassigned code points are not in it: they may
// be emoji of a newer Unicode version.
var invisible = []*unicode.RangeTable{unicode.Z, unicode.Cc, unicode.Cf}

func anyVisible(password string) bool {
	return strings.ContainsFunc(password, func(r rune) bool { return !unicode.In(r, invisible...) && !doorward.IsBlank(r) })
}

// containsAny reports whether the password contains one of the words, ignoring case. Mapping to upper
// and then to lower case covers letters whose forms don't map one to one.
func containsAny(password string, words []string) bool {
	password = fold(password)
	for _, w := range words {
		w = fold(norm.NFC.String(strings.TrimSpace(w)))
		if utf8.RuneCountInString(w) >= minWordLength && strings.Contains(password, w) {
			return true
		}
	}
	return false
}

func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }
