package cedar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on the text of a tenant; those on nesting hold for the operator's text, too. They are
// checked before the text is parsed, since parsing, checking and evaluating recurse as deep as
// the text nests.
const (
	MaxBytes    = 64 << 10
	MaxPolicies = 200
	// MaxDepth bounds brackets, unary operators and "if" inside each other.
	MaxDepth = 32
	// MaxChain bounds the operators in a row inside one pair of brackets, as in
	// a || b || c or a.b.c: the tree of these is as deep as they are long.
	MaxChain = 256
)

// Code says what kind of fault a text has.
type Code string

// The codes of faults.
const (
	Syntax           Code = "syntax"
	OnlyForbid       Code = "only_forbid"
	UnknownAttribute Code = "unknown_attribute"
	UnknownAction    Code = "unknown_action"
	WrongType        Code = "type"
	TooDeep          Code = "too_deep"
	TooLarge         Code = "too_large"
	TooMany          Code = "too_many"
	MissingID        Code = "missing_id"
	DuplicateID      Code = "duplicate_id"
)

// Fault is what is wrong at a place in a text. Line and Column begin at 1; columns
// count characters.
type Fault struct {
	Line, Column int
	Code         Code
	Message      string
}

// Faults are the faults of a text in the order of their places.
type Faults []Fault

// Error returns a line for each fault, with its place.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fmt.Sprintf("%d:%d: %s", fault.Line, fault.Column, fault.Message)
	}
	return strings.Join(lines, "\n")
}

// maxFaults bounds the faults that are reported at once.
const maxFaults = 100

// sorted returns the faults in order, without duplicates, and no more than maxFaults.
func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Message, b.Message))
	})
	f = slices.Compact(f)
	return f[:min(len(f), maxFaults)]
}

// place is a place in a text.
type place struct{ offset, line, column int }

func (p place) fault(code Code, message string) Fault {
	return Fault{Line: p.line, Column: p.column, Code: code, Message: message}
}

// statement is one policy of a text, from its first character to its semicolon.
type statement struct {
	place
	text   string
	tokens []token
}

// token is a word, a string or an operator, with its place in the whole text.
type token struct {
	place
	text string
}

// limits are the most that a text may have.
type limits struct{ bytes, policies int }

// split cuts a text into statements and checks its size and depth. It never
// recurses, and it takes time in proportion to the text. With faults, it also returns the statements
// that have none.
func split(text string, max limits) ([]statement, Faults) {
	if len(text) > max.bytes {
		return nil, Faults{place{line: 1, column: 1}.fault(TooLarge,
			fmt.Sprintf("the text has %d bytes; %d are the most", len(text), max.bytes))}
	}
	s := &splitter{rest: text, pos: place{line: 1, column: 1}}
	for s.next() {
	}
	switch {
	case len(s.faults) > 0:
		return s.statements[:min(len(s.statements), max.policies)], s.faults
	case len(s.statements) > max.policies:
		return nil, Faults{s.statements[max.policies].fault(TooMany,
			fmt.Sprintf("there are %d policies; %d are the most", len(s.statements), max.policies))}
	}
	return s.statements, nil
}

// splitter finds the statements and counts what nests. It knows tokens, but no grammar.
type splitter struct {
	rest        string
	pos         place // of rest
	inStatement bool
	start       place   // of the statement
	body        string  // the text from start
	tokens      []token // of the statement
	levels      []level // the open brackets; levels[0] is outside of all
	statements  []statement
	faults      Faults
}

// level is what one pair of brackets holds so far.
type level struct {
	depth int // nesting of the bracket, with the operators and ifs around it
	unary int // operators like ! in a row
	ifs   int
	chain int // see MaxChain
}

// next reads a token. It reports false at the end. After a fault it goes on with the next statement.
func (s *splitter) next() bool {
	s.skipBlank()
	if s.rest == "" {
		if s.inStatement {
			s.end()
		}
		return false
	}
	if !s.inStatement {
		s.inStatement, s.start, s.body, s.tokens, s.levels = true, s.pos, s.rest, nil, []level{{}}
	}
	text := s.token()
	if text == "" {
		return s.skipStatement(Syntax, "unexpected character, or a string that does not end on its line")
	}
	if message := s.count(text); message != "" {
		return s.skipStatement(TooDeep, message)
	}
	s.tokens = append(s.tokens, token{s.pos, text})
	s.advance(len(text))
	if text == ";" { // nothing inside a policy has one, so an open bracket is a fault of this policy alone
		s.end()
	}
	return true
}

// skipStatement adds a fault at the present place, and goes to the end of the statement: behind the next
// semicolon that ends a line, since the others may be in a text. It reports whether to go on.
func (s *splitter) skipStatement(code Code, message string) bool {
	s.faults = append(s.faults, s.pos.fault(code, message))
	s.inStatement = false
	for s.rest != "" {
		end := strings.IndexByte(s.rest, '\n') + 1
		if end == 0 {
			end = len(s.rest)
		}
		line := s.rest[:end]
		s.advance(end)
		if strings.HasSuffix(strings.TrimRight(line, " \t\r\n"), ";") {
			break
		}
	}
	return len(s.faults) < maxFaults
}

func (s *splitter) end() {
	s.inStatement = false
	s.statements = append(s.statements, statement{s.start, s.body[:s.pos.offset-s.start.offset], s.tokens})
}

func (s *splitter) advance(bytes int) {
	for _, r := range s.rest[:bytes] {
		if s.pos.column++; r == '\n' {
			s.pos.line, s.pos.column = s.pos.line+1, 1
		}
	}
	s.pos.offset += bytes
	s.rest = s.rest[bytes:]
}

func (s *splitter) skipBlank() {
	for {
		blank := len(s.rest) - len(strings.TrimLeft(s.rest, " \t\r\n"))
		if strings.HasPrefix(s.rest, "//") {
			if blank = strings.IndexByte(s.rest, '\n'); blank < 0 {
				blank = len(s.rest)
			}
		}
		if blank == 0 {
			return
		}
		s.advance(blank)
	}
}

// token returns the next token: a word, a string, or an operator; "" where Cedar
// has none. It refuses comments with /*, which cedar-go reads and Cedar does not.
func (s *splitter) token() string {
	switch c := s.rest[0]; {
	case isWordByte(c):
		return s.rest[:len(s.rest)-len(strings.TrimLeftFunc(s.rest, func(r rune) bool {
			return r < utf8.RuneSelf && isWordByte(byte(r))
		}))]
	case c == '"':
		return stringToken(s.rest)
	case strings.IndexByte("@.,;(){}[]+-*:!<>=|&", c) < 0:
		return ""
	}
	for _, operator := range []string{"::", "!=", "<=", ">=", "==", "||", "&&"} {
		if strings.HasPrefix(s.rest, operator) {
			return operator
		}
	}
	return s.rest[:1]
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// stringToken returns the string that text begins with, "" if it does not end on its line
// or is not UTF-8.
func stringToken(text string) string {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\n':
			return ""
		case '\\':
			i++
		case '"':
			if !utf8.ValidString(text[:i+1]) {
				return ""
			}
			return text[:i+1]
		}
	}
	return ""
}

// count adds the token to its level. It returns a message if brackets nest too deep, or if too
// many operators follow each other.
func (s *splitter) count(token string) string {
	top := &s.levels[len(s.levels)-1]
	if token != "!" && token != "-" { // ends a run of unary operators, after it was counted
		defer func(l *level) { l.unary = 0 }(top)
	}
	switch token {
	case "(", "[", "{":
		top.chain++ // it may be a call or an index, as in a["b"]["c"]
		s.levels = append(s.levels, level{depth: top.nesting() + 1})
		top = &s.levels[len(s.levels)-1]
	case ")", "]", "}":
		if len(s.levels) > 1 {
			s.levels = s.levels[:len(s.levels)-1]
		}
	case "!", "-":
		top.unary++
		top.chain++
	case "if":
		top.ifs++
	case ",":
		top.chain, top.ifs = 0, 0
	case "||", "&&", "+", "*", ".", "::":
		top.chain++
	case "when", "unless": // several conditions become one, joined by &&
		top.chain++
	}
	if top.nesting() > MaxDepth {
		return fmt.Sprintf("nested deeper than %d", MaxDepth)
	}
	if top.chain > MaxChain {
		return fmt.Sprintf("more than %d operators in a row", MaxChain)
	}
	return ""
}

func (l *level) nesting() int { return l.depth + l.unary + l.ifs }
