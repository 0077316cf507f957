package cedar

import (
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"
)

// The expressions of most policies are compiled to functions here, since cedar-go spends
// most of a check on hashing the records of the request. A policy with any other expression
// is left to cedar-go as a whole. Values and their comparison are cedar-go's.

// result is what a condition says of a request.
type result uint8

const (
	no result = iota
	yes
	errs
	needsResource // the request lacks the resource; only evaluation.refusal returns it
)

func resultOf(holds bool) result {
	if holds {
		return yes
	}
	return no
}

type (
	// condition is a compiled expression of type Bool.
	condition func(*evaluation) result
	// term is a compiled expression of any type. It returns nil where evaluation errs.
	term func(*evaluation) types.Value
)

// compile returns nil for a policy with an expression that is not compiled. PartialPolicy
// has already evaluated what does not depend on the request, such as sets and calls whose
// arguments are constants.
func compile(p *ast.Policy) condition {
	c := &compiler{}
	compiled := c.condition(eval.PolicyToNode(p).AsIsNode())
	if c.unsupported {
		return nil
	}
	return compiled
}

// compiler compiles expressions. Once it finds one that it can't compile, unsupported is true
// and its results are invalid.
type compiler struct{ unsupported bool }

func (c *compiler) condition(n ast.IsNode) condition {
	if _, failed := eval.ToPartialError(n); failed {
		return func(*evaluation) result { return errs }
	}
	switch n := n.(type) {
	case ast.NodeTypeAnd:
		if isTrue(n.Left) { // what PolicyToNode writes for a scope that admits all
			return c.condition(n.Right)
		}
		return shortCircuit(c.condition(n.Left), c.condition(n.Right), no)
	case ast.NodeTypeOr:
		return shortCircuit(c.condition(n.Left), c.condition(n.Right), yes)
	case ast.NodeTypeNot:
		return not(c.condition(n.Arg))
	case ast.NodeTypeIfThenElse:
		return choice(c.condition(n.If), c.condition(n.Then), c.condition(n.Else))
	case ast.NodeTypeHas:
		value := c.attribute(n.Arg, n.Value)
		return func(e *evaluation) result { return resultOf(value(e) != nil) }
	case ast.NodeTypeLike:
		return test(c.term(n.Arg), c.like(n.Value))
	case ast.NodeTypeIsEmpty:
		return test(c.term(n.Arg), func(s types.Set) bool { return s.Len() == 0 })
	case ast.NodeTypeExtensionCall:
		return c.call(n)
	case ast.NodeTypeAccess, ast.NodeValue:
		return test(c.term(n), func(b types.Boolean) bool { return bool(b) })
	}
	return c.comparison(n)
}

func (c *compiler) like(p types.Pattern) func(types.String) bool {
	matches := like(p)
	c.unsupported = c.unsupported || matches == nil
	return matches
}

func (c *compiler) comparison(n ast.IsNode) condition {
	switch n := n.(type) {
	case ast.NodeTypeEquals:
		return compare(c.term(n.Left), c.term(n.Right), types.Value.Equal)
	case ast.NodeTypeNotEquals:
		return not(compare(c.term(n.Left), c.term(n.Right), types.Value.Equal))
	case ast.NodeTypeLessThan:
		return order(c.term(n.Left), c.term(n.Right), strict)
	case ast.NodeTypeLessThanOrEqual:
		return order(c.term(n.Left), c.term(n.Right), orEqual)
	case ast.NodeTypeGreaterThan:
		return order(c.term(n.Right), c.term(n.Left), strict)
	case ast.NodeTypeGreaterThanOrEqual:
		return order(c.term(n.Right), c.term(n.Left), orEqual)
	case ast.NodeTypeContains:
		return compare(c.term(n.Left), c.term(n.Right), func(set types.Set, v types.Value) bool { return set.Contains(v) })
	case ast.NodeTypeContainsAny:
		return compare(c.term(n.Left), c.term(n.Right), containsAny)
	case ast.NodeTypeContainsAll:
		return compare(c.term(n.Left), c.term(n.Right), containsAll)
	}
	c.unsupported = true
	return nil
}

// call compiles the functions of IP addresses.
func (c *compiler) call(n ast.NodeTypeExtensionCall) condition {
	switch {
	case n.Name == "isInRange" && len(n.Args) == 2:
		return compare(c.term(n.Args[0]), c.term(n.Args[1]), func(ip, prefix types.IPAddr) bool { return prefix.Contains(ip) })
	case len(n.Args) != 1:
	case n.Name == "isLoopback":
		return test(c.term(n.Args[0]), types.IPAddr.IsLoopback)
	case n.Name == "isMulticast":
		return test(c.term(n.Args[0]), types.IPAddr.IsMulticast)
	case n.Name == "isIpv4":
		return test(c.term(n.Args[0]), types.IPAddr.IsIPv4)
	case n.Name == "isIpv6":
		return test(c.term(n.Args[0]), types.IPAddr.IsIPv6)
	}
	c.unsupported = true
	return nil
}

func (c *compiler) term(n ast.IsNode) term {
	switch n := n.(type) {
	case ast.NodeValue:
		return func(*evaluation) types.Value { return n.Value }
	case ast.NodeTypeAccess:
		return c.attribute(n.Arg, n.Value)
	case ast.NodeTypeVariable:
		return c.variable(n.Name)
	case ast.NodeTypeExtensionCall:
		if n.Name == "toTime" && len(n.Args) == 1 {
			return timeOfDay(c.term(n.Args[0]))
		}
	}
	c.unsupported = true
	return nil
}

func (c *compiler) variable(name types.String) term {
	switch name {
	case "action":
		return func(e *evaluation) types.Value { return e.value(actionSlot) }
	case "resource":
		return func(e *evaluation) types.Value { return e.value(resourceSlot) }
	}
	c.unsupported = true
	return nil
}

func (c *compiler) attribute(object ast.IsNode, name types.String) term {
	variable, _ := object.(ast.NodeTypeVariable)
	slot := slices.Index(contextNames[:], name)
	switch {
	case variable.Name == "resource":
		return func(e *evaluation) types.Value { return e.attribute(name) }
	case variable.Name == "context" && slot >= 0:
		return func(e *evaluation) types.Value { return e.value(slot) }
	}
	c.unsupported = true
	return nil
}

func isTrue(n ast.IsNode) bool {
	v, _ := n.(ast.NodeValue)
	return v.Value == types.Value(types.True)
}

// shortCircuit returns the condition a && b if decisive is no, and a || b if it is yes.
func shortCircuit(a, b condition, decisive result) condition {
	return func(e *evaluation) result {
		if left := a(e); left == errs || left == decisive {
			return left
		}
		return b(e)
	}
}

func not(a condition) condition {
	return func(e *evaluation) result {
		switch a(e) {
		case no:
			return yes
		case yes:
			return no
		}
		return errs
	}
}

func choice(cond, then, otherwise condition) condition {
	return func(e *evaluation) result {
		switch cond(e) {
		case no:
			return otherwise(e)
		case yes:
			return then(e)
		}
		return errs
	}
}

// test returns a condition that applies predicate to the value. It errs if the value is not of
// the type T.
func test[T types.Value](value term, predicate func(T) bool) condition {
	return func(e *evaluation) result {
		if v, ok := value(e).(T); ok {
			return resultOf(predicate(v))
		}
		return errs
	}
}

// compare returns a condition that applies predicate to both values. It errs if one is not of its
// type.
func compare[L, R types.Value](left, right term, predicate func(L, R) bool) condition {
	return func(e *evaluation) result {
		l, lok := left(e).(L)
		r, rok := right(e).(R)
		if !lok || !rok {
			return errs
		}
		return resultOf(predicate(l, r))
	}
}

// ordered is the type of numbers, instants and durations.
type ordered interface {
	types.Value
	LessThan(types.Value) (bool, error)
	LessThanOrEqual(types.Value) (bool, error)
}

// Arguments of order: whether it accepts equal values.
const strict, orEqual = false, true

// order returns the condition left < right, or left <= right if inclusive. It errs where the
// values are not of one ordered type.
func order(left, right term, inclusive bool) condition {
	return func(e *evaluation) result {
		l, r := left(e), right(e)
		if l, ok := l.(types.Long); ok { // the usual case, without calls through interfaces
			if r, ok := r.(types.Long); ok {
				return resultOf(l < r || inclusive && l == r)
			}
		}
		return orderAny(l, r, inclusive)
	}
}

func orderAny(left, right types.Value, inclusive bool) result {
	l, ok := left.(ordered)
	if !ok {
		return errs
	}
	less := l.LessThan
	if inclusive {
		less = l.LessThanOrEqual
	}
	holds, err := less(right)
	if err != nil {
		return errs
	}
	return resultOf(holds)
}

func containsAny(set, values types.Set) bool {
	for v := range values.All() {
		if set.Contains(v) {
			return true
		}
	}
	return false
}

func containsAll(set, values types.Set) bool {
	for v := range values.All() {
		if !set.Contains(v) {
			return false
		}
	}
	return true
}

func timeOfDay(instant term) term {
	const day = 24 * 60 * 60 * 1000 // ms
	return func(e *evaluation) types.Value {
		if at, ok := instant(e).(types.Datetime); ok {
			return types.NewDurationFromMillis(at.Milliseconds() % day)
		}
		return nil
	}
}
