package cedar

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// placePattern finds the place in an error of cedar-go's parser, and the token there.
	placePattern = regexp.MustCompile(`^(?:parse error at )?<input>:(\d+):(\d+):? ?(?:"(?:[^"\\]|\\.)*": )?`)
	// numberPattern finds the number that is too large.
	numberPattern = regexp.MustCompile(`^strconv\.ParseInt: parsing "(-?\d+)"`)
	// wantPattern finds the token that cedar-go expected; namePattern one that it refuses.
	wantPattern = regexp.MustCompile(`^(exact )?got (.*) want (.*)$`)
	namePattern = regexp.MustCompile("^`([^`]+)` |^([A-Za-z]+) expects |^duplicate (?:key: |annotation: @)(.*)$")
)

// functions are the names that can be called in a condition.
var functions = []string{
	"ip", "decimal", "datetime", "duration", "contains", "containsAll", "containsAny", "isEmpty", "lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual",
	"isIpv4", "isIpv6", "isLoopback", "isMulticast", "isInRange", "toDate", "toTime", "offset", "durationSince", "toDays", "toHours", "toMinutes", "toSeconds", "toMilliseconds",
}

// syntaxFault returns the fault that an error of cedar-go is about: of its scanner, of a number, or of its
// parser.
func (st statement) syntaxFault(message string) Fault {
	if m := numberPattern.FindStringSubmatch(message); m != nil {
		return st.lastNamed(m[1], len(st.tokens)).fault(Syntax, shorten("the number "+m[1]+" is too large"))
	}
	m := placePattern.FindStringSubmatch(message)
	if m == nil {
		return st.fault(Syntax, shorten(message))
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	if line == 1 {
		column += st.column - 1
	}
	at := place{line: line + st.line - 1, column: column}
	rest := strings.TrimPrefix(message, m[0])
	if !strings.HasPrefix(message, "parse error at") {
		return at.fault(Syntax, shorten(rest))
	}
	return st.refusedToken(st.tokenAt(at), rest)
}

// tokenAt returns the index of the token at a place; len(st.tokens) for the end.
func (st statement) tokenAt(at place) int {
	i := slices.IndexFunc(st.tokens, func(t token) bool { return cmp.Or(t.line-at.line, t.column-at.column) >= 0 })
	if i < 0 || at.line < st.line { // cedar-go has no place for the end of the text
		return len(st.tokens)
	}
	return i
}

// refusedToken returns the fault that cedar-go reports at the token next: that of the token before it, which
// cedar-go has read by then, unless the message says otherwise.
func (st statement) refusedToken(next int, message string) Fault {
	if m := wantPattern.FindStringSubmatch(message); m != nil {
		if m[1] != "" && m[2] != "" {
			next--
		}
		found := "the end of the policy"
		if m[2] != "" {
			found = strconv.Quote(m[2])
		}
		return st.placeOf(next).fault(Syntax, shorten(fmt.Sprintf("expected %q, found %s", m[3], found)))
	}
	if m := namePattern.FindStringSubmatch(message); m != nil {
		name := cmp.Or(m[1:]...)
		if m[1] != "" {
			message += didYouMean(name, functions)
		}
		return st.lastNamed(name, next).fault(Syntax, shorten(message))
	}
	found := st.tokens[max(min(next, len(st.tokens))-1, 0)]
	switch message {
	case "invalid primary", "unexpected token":
		message = fmt.Sprintf("unexpected %q", found.text)
	case "unexpected effect: " + found.text:
		message = fmt.Sprintf("a policy begins with forbid or permit, not %q", found.text) + didYouMean(found.text, []string{"forbid", "permit"})
	default:
		message += fmt.Sprintf(", found %q", found.text)
	}
	return found.fault(Syntax, shorten(message))
}

// placeOf returns the place of a token, or the end of the last one.
func (st statement) placeOf(i int) place {
	if i >= 0 && i < len(st.tokens) {
		return st.tokens[i].place
	}
	last := st.tokens[len(st.tokens)-1]
	last.column += len([]rune(last.text))
	return last.place
}

// lastNamed returns the place of the last token with the name before another token.
func (st statement) lastNamed(name string, before int) place {
	for i := min(before, len(st.tokens)) - 1; i >= 0; i-- {
		if st.tokens[i].isName(name) {
			return st.tokens[i].place
		}
	}
	return st.placeOf(before - 1)
}
