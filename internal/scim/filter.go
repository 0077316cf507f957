package scim

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Resource says which resources a filter is for.
type Resource int

// The resources that can be filtered.
const (
	Users Resource = iota + 1
	Groups
)

// Attribute is one that a filter may compare.
type Attribute string

// The attributes that can be compared: the first six of users, ID, DisplayName, ExternalID and Member
// of groups.
const (
	ID          Attribute = "id"
	UserName    Attribute = "userName"
	ExternalID  Attribute = "externalId"
	DisplayName Attribute = "displayName"
	Active      Attribute = "active"
	Email       Attribute = "emails.value"
	WorkEmail   Attribute = `emails[type eq "work"].value`
	Member      Attribute = "members.value"
)

// Filter has conditions that must all be met; none is met by everything.
type Filter []Condition

// Condition demands that an attribute equals a value. ID, ExternalID and Member count as they are
// written, the other texts without letter case.
type Condition struct {
	Attribute Attribute
	Text      string // of all but Active
	Bool      bool   // of Active
}

// The limits of a filter: parentheses within each other, and conditions.
const (
	maxDepth      = 16
	maxConditions = 16
)

// comparable are the attributes of a resource by their paths in lower case.
var comparable = map[Resource]map[string]Attribute{
	Users: {
		"id": ID, "username": UserName, "externalid": ExternalID, "displayname": DisplayName,
		"active": Active, "emails.value": Email,
	},
	Groups: {
		"id": ID, "displayname": DisplayName, "externalid": ExternalID,
		"members": Member, "members.value": Member,
	},
}

var (
	errFilter = refuse(InvalidFilter, "Compare attributes that can be searched for, with eq, joined by and: "+
		"of users id, userName, externalId, displayName, active, emails.value and emails[type eq \"work\"].value, "+
		"of groups id, displayName, externalId, members and members.value.")
	errDepth = refuse(InvalidFilter, "Send at most 16 conditions, within at most 16 parentheses.")
)

// ParseFilter reads the filter of a list of users or groups. Everything but eq on the attributes above,
// joined by and, is invalidFilter: a filter that isn't understood never lists everybody.
func ParseFilter(of Resource, text string) (Filter, error) {
	comparisons, err := parseComparisons(text)
	if err != nil {
		return nil, err
	}
	filter := Filter{}
	for _, c := range comparisons {
		condition, err := c.condition(of)
		if err != nil {
			return nil, err
		}
		filter = append(filter, condition)
	}
	return filter, nil
}

// comparison is one "path eq value".
type comparison struct {
	path  path
	value jsontext.Value // a string, true or false
}

func (c comparison) condition(of Resource) (Condition, error) {
	attribute, ok := c.attribute(of)
	if !ok {
		return Condition{}, errFilter
	}
	if attribute == Active {
		is, err := Bool(c.value)
		if err != nil {
			return Condition{}, errFilter
		}
		return Condition{Attribute: Active, Bool: is}, nil
	}
	if c.value.Kind() != jsontext.KindString {
		return Condition{}, errFilter
	}
	return Condition{Attribute: attribute, Text: unquote(c.value)}, nil
}

// attribute returns which attribute a path means.
func (c comparison) attribute(of Resource) (Attribute, bool) {
	p := c.path
	if p.schema != core || p.only != 0 && p.only != of {
		return "", false
	}
	if p.picks {
		picked, err := p.email()
		isWork := err == nil && picked == (EmailItem{Type: picked.Type}) && same(picked.Type, "work")
		return WorkEmail, of == Users && p.name == "emails" && p.sub == "value" && isWork
	}
	full := p.name
	if p.sub != "" {
		full += "." + p.sub
	}
	attribute, ok := comparable[of][full]
	return attribute, ok
}

// parseComparisons reads comparisons that are joined by and, also within parentheses. The order is that
// of the text: and is commutative and associative, so that the parentheses mean nothing.
func parseComparisons(text string) ([]comparison, error) {
	return filterParser{rest: text, joint: "and", most: maxConditions}.parse()
}

// parseAlternatives is parseComparisons for comparisons that are joined by or, MaxMembers at most.
func parseAlternatives(text string) ([]comparison, error) {
	return filterParser{rest: text, joint: "or", most: MaxMembers}.parse()
}

func (p filterParser) parse() ([]comparison, error) {
	if !utf8.ValidString(p.rest) {
		return nil, errFilter
	}
	if err := p.expression(0); err != nil {
		return nil, err
	}
	if p.skipSpace(); p.rest != "" {
		return nil, errFilter
	}
	return p.found, nil
}

// filterParser reads a filter from left to right.
type filterParser struct {
	rest  string
	joint string // the word that joins comparisons
	most  int    // how many there may be
	found []comparison
}

// expression reads terms that are joined by one word, within depth parentheses.
func (p *filterParser) expression(depth int) error {
	for {
		if err := p.term(depth); err != nil {
			return err
		}
		if !p.takeWord(p.joint) {
			return nil
		}
	}
}

// term reads an expression in parentheses, or a comparison.
func (p *filterParser) term(depth int) error {
	p.skipSpace()
	inner, found := strings.CutPrefix(p.rest, "(")
	if !found {
		return p.comparison()
	}
	if depth == maxDepth {
		return errDepth
	}
	p.rest = inner
	if err := p.expression(depth + 1); err != nil {
		return err
	}
	p.skipSpace()
	if p.rest, found = strings.CutPrefix(p.rest, ")"); !found {
		return errFilter
	}
	return nil
}

func (p *filterParser) comparison() error {
	left, rest, ok := scanPath(p.rest)
	if p.rest = rest; !ok || !p.takeWord("eq") {
		return errFilter
	}
	value, ok := p.takeValue()
	if !ok {
		return errFilter
	}
	if len(p.found) == p.most {
		return errDepth
	}
	p.found = append(p.found, comparison{left, value})
	return nil
}

func (p *filterParser) skipSpace() { p.rest = strings.TrimLeft(p.rest, " ") }

// takeWord takes a word in any letter case, with a space or a parenthesis behind it.
func (p *filterParser) takeWord(word string) bool {
	p.skipSpace()
	if len(p.rest) <= len(word) || lower(p.rest[:len(word)]) != word || !strings.ContainsRune(" (", rune(p.rest[len(word)])) {
		return false
	}
	p.rest = p.rest[len(word):]
	return true
}

// takeValue takes a string, true or false (RFC 7644: compValue). Of a string it refuses NUL, which no
// database compares.
func (p *filterParser) takeValue() (jsontext.Value, bool) {
	p.skipSpace()
	for _, word := range []string{"true", "false"} {
		if strings.HasPrefix(p.rest, word) && valueEndsAt(p.rest[len(word):]) {
			p.rest = p.rest[len(word):]
			return jsontext.Value(word), true
		}
	}
	end := stringEnd(p.rest)
	if end < 0 || !valueEndsAt(p.rest[end:]) {
		return nil, false
	}
	value := jsontext.Value(p.rest[:end])
	p.rest = p.rest[end:]
	if !value.IsValid() || strings.ContainsRune(unquote(value), 0) {
		return nil, false
	}
	return value, true
}

// valueEndsAt reports whether a value may have ended before rest.
func valueEndsAt(rest string) bool {
	return rest == "" || rest[0] == ' ' || rest[0] == ')'
}

// stringEnd is the length of the JSON string at the beginning of text, or -1.
func stringEnd(text string) int {
	if !strings.HasPrefix(text, `"`) {
		return -1
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
