package cedar

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// Cedar-go's own matcher takes the length of the text times that of the pattern: one tenant's policies
// could slow down everybody's checks. So "like" is evaluated here, in time proportional to
// the text and the pattern, and both have a limit.
const (
	// MaxText is the longest text, in bytes, that a policy reads; a longer one can't be read, and a
	// policy that reads it refuses.
	MaxText = 4 << 10
	// MaxMembers is the most members of a list or record that a policy reads, and maxListText the most
	// bytes of the texts in it. A condition such as containsAll looks up each member by a hash of its
	// text, and a text of policies has room for more than a thousand of these.
	MaxMembers  = 256
	maxListText = 16 << 10
	// maxLiteral is the longest text or pattern, in bytes, that a tenant's policy has.
	maxLiteral = 512
)

// pattern is the right side of "like".
type pattern struct {
	start, end string    // what the text begins and ends with
	between    []literal // what it has in this order between them
	exact      bool      // there is no *: the text is start
}

// literal is a text that a pattern looks for. fallback[i] is the length of the longest proper prefix of
// text[:i+1] that is also its suffix (Knuth, Morris, Pratt: Fast Pattern Matching in Strings, 1977).
type literal struct {
	text     string
	fallback []int
}

// newPattern reads a pattern of cedar-go, whose parts can be had only as JSON.
func newPattern(p types.Pattern) (pattern, error) {
	text, err := p.MarshalJSON()
	if err != nil {
		return pattern{}, err
	}
	var parts []any
	if err := json.Unmarshal(text, &parts); err != nil {
		return pattern{}, err
	}
	literals := []string{""}
	for _, part := range parts {
		if object, ok := part.(map[string]any); ok {
			literals[len(literals)-1], _ = object["Literal"].(string)
		} else {
			literals = append(literals, "")
		}
	}
	last := len(literals) - 1
	read := pattern{start: literals[0], end: literals[last], exact: last == 0}
	for _, l := range literals[min(1, last):last] {
		read.between = append(read.between, newLiteral(l))
	}
	return read, nil
}

func newLiteral(text string) literal {
	l := literal{text, make([]int, len(text))}
	for i, matched := 1, 0; i < len(text); i++ {
		for matched > 0 && text[i] != text[matched] {
			matched = l.fallback[matched-1]
		}
		if text[i] == text[matched] {
			matched++
		}
		l.fallback[i] = matched
	}
	return l
}

// after returns what follows the first place where the text has the literal.
func (l literal) after(text string) (rest string, found bool) {
	if l.text == "" {
		return text, true
	}
	matched := 0
	for i := range len(text) {
		for matched > 0 && text[i] != l.text[matched] {
			matched = l.fallback[matched-1]
		}
		if text[i] == l.text[matched] {
			matched++
		}
		if matched == len(l.text) {
			return text[i+1:], true
		}
	}
	return "", false
}

func (p pattern) matches(text string) bool {
	if p.exact {
		return text == p.start
	}
	rest, found := strings.CutPrefix(text, p.start)
	for _, l := range p.between {
		if found {
			rest, found = l.after(rest)
		}
	}
	return found && strings.HasSuffix(rest, p.end)
}

// like compiles a pattern to a function; nil if it can't be read, which can't happen with a
// pattern that cedar-go has parsed.
func like(p types.Pattern) func(types.String) bool {
	read, err := newPattern(p)
	if err != nil {
		return nil
	}
	return func(s types.String) bool { return read.matches(string(s)) }
}

// lookup returns an attribute of principal, resource or context, and whether it is known already. The
// value of a known attribute that is absent is nil.
type lookup func(object, name types.String) (value types.Value, known bool)

// matchLikes returns the node with "like" evaluated where the text is known, so that cedar-go
// needn't. What it can't evaluate stays, such as a text that is absent.
func matchLikes(n ast.IsNode, find lookup) ast.IsNode {
	switch n := n.(type) {
	case ast.NodeTypeAnd:
		n.Left, n.Right = matchLikes(n.Left, find), matchLikes(n.Right, find)
		return n
	case ast.NodeTypeOr:
		n.Left, n.Right = matchLikes(n.Left, find), matchLikes(n.Right, find)
		return n
	case ast.NodeTypeNot:
		n.Arg = matchLikes(n.Arg, find)
		return n
	case ast.NodeTypeIfThenElse:
		n.If, n.Then, n.Else = matchLikes(n.If, find), matchLikes(n.Then, find), matchLikes(n.Else, find)
		return n
	case ast.NodeTypeLike:
		return matchLike(n, find)
	}
	return n
}

func matchLike(n ast.NodeTypeLike, find lookup) ast.IsNode {
	object, name, ok := attributeOf(n.Arg)
	if !ok {
		return n
	}
	value, known := find(object, name)
	text, isText := value.(types.String)
	matches := like(n.Value)
	if !known || !isText || matches == nil {
		return n
	}
	return ast.NodeValue{Value: types.Boolean(matches(text))}
}

// attributeOf reports whether the node is an attribute of a variable, and returns their names.
func attributeOf(n ast.IsNode) (object, name types.String, ok bool) {
	access, isAccess := n.(ast.NodeTypeAccess)
	variable, isVariable := access.Arg.(ast.NodeTypeVariable)
	return variable.Name, access.Value, isAccess && isVariable
}

// matchAllLikes is matchLikes for the conditions of a policy.
func matchAllLikes(p *ast.Policy, find lookup) *ast.Policy {
	matched := *p
	matched.Conditions = make([]ast.ConditionType, len(p.Conditions))
	for i, c := range p.Conditions {
		matched.Conditions[i] = ast.ConditionType{Condition: c.Condition, Body: matchLikes(c.Body, find)}
	}
	return &matched
}

func hasLike(p *ast.Policy) (found bool) {
	inspect(p, func(n ast.IsNode) bool {
		_, isLike := n.(ast.NodeTypeLike)
		found = found || isLike
		return !found
	})
	return found
}

// likeFault is what is wrong with the places of "like" in a tenant's policy, or empty: each stands where
// matchLikes finds it, and its text is an attribute, so that cedar-go's matcher has nothing to do.
func likeFault(p *ast.Policy) string {
	found, all := 0, 0
	matchAllLikes(p, func(types.String, types.String) (types.Value, bool) { found++; return nil, false })
	inspect(p, func(n ast.IsNode) bool {
		if _, isLike := n.(ast.NodeTypeLike); isLike {
			all++
		}
		return true
	})
	if all == found {
		return ""
	}
	return `"like" is for an attribute of principal, resource or context, as in context.path like "/a*", and only &&, ||, ! and if join it to other conditions`
}

// literalFault returns the fault of a text or pattern that is too long, or empty.
func literalFault(n ast.IsNode) string {
	length := 0
	switch n := n.(type) {
	case ast.NodeValue:
		if text, ok := n.Value.(types.String); ok {
			length = len(text)
		}
	case ast.NodeTypeLike:
		length = len(n.Value.MarshalCedar()) - len(`""`)
	}
	if length <= maxLiteral {
		return ""
	}
	return fmt.Sprintf("a text in a policy has %d bytes at most, not %d", maxLiteral, length)
}
