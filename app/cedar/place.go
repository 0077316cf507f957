package cedar

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"github.com/doorward/doorward/internal/similar"
)

// finding is a fault without a place.
type finding struct {
	code    Code
	message string
}

// findings are the faults of a policy, and how often each occurs.
type findings map[finding]int

// add counts a fault; an empty message is none.
func (f findings) add(code Code, message string) {
	if message != "" {
		f[finding{code, message}]++
	}
}

// has reports whether all others are among the findings, as often.
func (f findings) has(others findings) bool {
	for other, times := range others {
		if f[other] < times {
			return false
		}
	}
	return true
}

// locate adds a fault for each finding, at its place. cedar-go's syntax trees have no places, so the
// policy is read again and again, each time to the end of one more operand of && and ||: what is found
// once more is in that operand. cost is what one reading takes of r.trials; if they are used up, the
// place is where the policy begins.
func (r *reader) locate(st statement, cost int, p *policy, find func(*policy) findings) {
	all := find(p)
	seen, from := findings{}, 0
	for _, end := range st.operandEnds() {
		if r.trials < cost || seen.has(all) {
			break
		}
		r.trials -= cost
		begun, err := parseText(st.until(end))
		if err != nil {
			continue // inside of an if
		}
		now := find(&policy{ast: begun})
		for f, times := range now {
			if times > seen[f] && all[f] > 0 {
				r.faultIn(st.tokens[from:end], f, times-seen[f])
			}
		}
		for f, times := range now {
			seen[f] = max(seen[f], times)
		}
		from = end
	}
	for f := range all {
		if seen[f] == 0 {
			r.fault(st.place, f.code, f.message)
		}
	}
}

// operandEnds returns the indexes of the tokens before which an operand of a condition ends, after that
// of the first condition: what is before it is an operand, too.
func (st statement) operandEnds() (ends []int) {
	inConditions := false
	for i, t := range st.tokens {
		isCondition := t.text == "when" || t.text == "unless"
		if !inConditions && (isCondition || t.text == ";") || inConditions && (t.text == "&&" || t.text == "||" || t.text == "}") {
			ends = append(ends, i)
		}
		inConditions = inConditions || isCondition
	}
	return ends
}

// until returns the text before a token, with what closes the brackets that are open there.
func (st statement) until(end int) string {
	var closing []string
	for _, t := range st.tokens[:end] {
		switch t.text {
		case "(":
			closing = append(closing, ")")
		case "[":
			closing = append(closing, "]")
		case "{":
			closing = append(closing, "}")
		case ")", "]", "}":
			closing = closing[:max(len(closing)-1, 0)]
		}
	}
	slices.Reverse(closing)
	return st.text[:st.tokens[end].offset-st.offset] + strings.Join(closing, "") + ";"
}

// faultIn adds a fault at each of the tokens that the finding names, as often as it occurs, or where the
// operand begins if it names none.
func (r *reader) faultIn(operand []token, f finding, times int) {
	name, left := f.named(), times
	for i, t := range operand {
		if left > 0 && name != "" && t.isName(name) && (f.code != UnknownAttribute || isAccess(operand, i)) {
			r.fault(t.place, f.code, f.message)
			left--
		}
	}
	if left == times {
		r.fault(beginning(operand), f.code, f.message)
	}
}

// isAccess reports whether the token is the name of an attribute, other than after "has".
func isAccess(operand []token, i int) bool {
	return i > 0 && (operand[i-1].text == "." || operand[i-1].text == "[")
}

// beginning is the place of the first token of the operand that isn't an operator.
func beginning(operand []token) place {
	for _, t := range operand {
		if isWord := t.text[0] == '"' || t.text[0] == '@' || isWordByte(t.text[0]); isWord && t.text != "when" && t.text != "unless" {
			return t.place
		}
	}
	return operand[0].place
}

// quoted finds a name that a message quotes: of an attribute or a type, of an action, or of a type after
// "no type".
var quoted = regexp.MustCompile("`\"?([^`\"]+)\"?`|Action::(\"(?:[^\"\\\\]|\\\\.)*\")|no type ([^ :]+):|not (\"(?:[^\"\\\\]|\\\\.)*\"):")

// named returns the first name that the finding is about; empty for none.
func (f finding) named() string {
	m := quoted.FindStringSubmatch(f.message)
	if m == nil {
		return ""
	}
	return cmp.Or(m[1:]...)
}

// isName reports whether the token is the name or a string with it. A type with a namespace is known by its
// last part.
func (t token) isName(name string) bool {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+len("::"):]
	}
	return t.text == name || t.text == `"`+name+`"`
}

// find returns the place of the first token with the text, or that of the statement.
func (st statement) find(text string) place {
	for _, t := range st.tokens {
		if t.text == text {
			return t.place
		}
	}
	return st.place
}

// attributeFault is a message about an unknown attribute, and typeFault one about an unknown type.
var (
	attributeFault = regexp.MustCompile("^attribute `([^`]*)` (?:in context|on entity type `([^`]*)`)")
	typeFault      = regexp.MustCompile("^unrecognized entity type `([^`]*)`")
)

// suggest returns a sentence with the name that a message of the validator probably is about; empty for none.
func (s *Schema) suggest(message string) string {
	if m := attributeFault.FindStringSubmatch(message); m != nil {
		return didYouMean(m[1], names(s.shape(m[2])))
	}
	if m := typeFault.FindStringSubmatch(message); m != nil {
		return s.suggestType(types.EntityType(m[1]))
	}
	return ""
}

// shape returns the attributes of the entity type, those of the context for an empty name.
func (s *Schema) shape(entity string) resolved.RecordType {
	if entity != "" {
		return s.resolved.Entities[types.EntityType(entity)].Shape
	}
	for _, action := range s.resolved.Actions {
		return action.AppliesTo.Context // the same for all
	}
	return nil
}

// suggestAction returns a sentence with the action that is probably meant; empty for none.
func (s *Schema) suggestAction(uid types.EntityUID) string {
	return didYouMean(string(uid.ID), slices.Sorted(maps.Keys(s.index)))
}

// suggestType returns a sentence with the type that is probably meant; empty for none.
func (s *Schema) suggestType(t types.EntityType) string {
	return didYouMean(string(t), append(names(s.resolved.Entities), names(s.types)...))
}

func names[K ~string, V any](m map[K]V) (all []string) {
	for name := range m {
		all = append(all, string(name))
	}
	slices.Sort(all)
	return all
}

func didYouMean(name string, known []string) string {
	if best := similar.Name(name, known); best != "" {
		return " (did you mean " + best + "?)"
	}
	return ""
}
