package doorward_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"
)

// A test that requires something within seconds fails on a slow machine. These rules refuse it:
// waits have the limit of internal/waittest, and how long something took is compared only in
// make test-all, or under the clock of testing/synctest. That something took too little is no such
// fault: a slow machine only takes longer.
var timingRules = []timingRule{
	{
		"how long something took has no upper bound", "check the deadline that the code sets, use testing/synctest, or measure in make test-all, if fulltest.On()",
		timingFiles{
			`began := time.Now(); if time.Since(began) > time.Second { t.Error("late") } // here`,
			`took := time.Since(began); if err != nil || took >= 2*limit { t.Error("late") } // here`,
			`took := time.Since(began); if limit < took { t.Error("late") } // here`,
		},
	},
	{
		"a wait has the limit of waittest", "use waittest.Until, For, Deadline or Limit; waittest.Interrupt for what is cut off on purpose",
		timingFiles{
			`for began := time.Now(); time.Since(began) < 20*time.Second; { poll() } // here`,
			`ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // here`,
			`conn.SetDeadline(time.Now().Add(brief)) // here`,
			`for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); { poll() } // here`,
			`client := &http.Client{Timeout: brief} // here`,
			`select { case <-done: case <-time.After(brief): t.Fatal("late") } // here`,
		},
	},
}

type timingRule struct {
	name, remedy string
	violations   timingFiles // bodies of tests, each with one violation
}

type timingFiles []string

// leastLimit is the shortest limit that a wait of a test may have.
const leastLimit = 30 * time.Second

func TestNoTestMeasuresTheMachine(t *testing.T) {
	for _, violation := range timingViolations(parseTree(t, ".")) {
		t.Error(violation)
	}
}

func TestTimingRulesAreEnforced(t *testing.T) {
	const head = "package x\n\nconst (\n\tlimit = 3 * time.Second\n\tbrief = 2 * time.Second\n)\n\nfunc TestX(t *testing.T) {\n\t"
	for _, rule := range timingRules {
		for _, body := range rule.violations {
			violation := file{"app/x/x_test.go", head + body + "\n}\n"}
			got := timingViolations(parseTree(t, writeTree(t, nil, violation)))
			if len(got) != 1 || !strings.Contains(got[0], position(violation)+": ") || !strings.Contains(got[0], rule.name) {
				t.Errorf("%s\nis found as %q", body, got)
			}
		}
	}
	for _, body := range []string{
		`if took := time.Since(began); took < limit { t.Error("early") }`,
		`if took := time.Since(began); fulltest.On() && took > limit { t.Error("late") }`,
		`synctest.Test(t, func(t *testing.T) { if time.Since(began) > time.Second { t.Error("late") } })`,
		`ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)`,
		`select { case <-done: case <-time.After(brief): }`,
		`expires := time.Now().Add(-brief)`,
		`if time.Since(made) > time.Minute { t.Error("not made now") }`,
	} {
		if got := timingViolations(parseTree(t, writeTree(t, nil, file{"app/x/x_test.go", head + body + "\n}\n"}))); len(got) > 0 {
			t.Errorf("%s\nis refused: %q", body, got)
		}
	}
}

// timingViolations returns a line for each violation in the tests and test support of the tree.
func timingViolations(t *tree) (out []string) {
	durations := t.durations()
	for _, f := range t.files {
		if !f.isTest && !f.isTestSupport() || f.folder == "internal/waittest" {
			continue
		}
		for _, d := range f.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			s := timingScan{constants: durations[f.folder], elapsed: map[string]bool{}}
			s.walk(function.Body)
			for _, v := range s.found {
				out = append(out, fmt.Sprintf("%s:%d: breaks the rule %q: %s", f.name, t.line(v.at), v.rule.name, v.rule.remedy))
			}
		}
	}
	return out
}

// durations returns the values of constants by folder and name, as far as they consist of literals
// and units. Local ones count, too.
func (t *tree) durations() map[string]map[string]constant.Value {
	all := map[string]map[string]constant.Value{}
	for _, f := range t.files {
		known := all[f.folder]
		if known == nil {
			known = map[string]constant.Value{}
			all[f.folder] = known
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					if v := valueOf(spec.Values[i], known); v != nil {
						known[name.Name] = v
					}
				}
			}
			return true
		})
	}
	return all
}

var units = map[string]time.Duration{"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// valueOf returns the value of an expression, or nil if it doesn't consist of known constants.
func valueOf(e ast.Expr, known map[string]constant.Value) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT {
			return constant.MakeFromLiteral(e.Value, token.INT, 0)
		}
	case *ast.Ident:
		return known[e.Name]
	case *ast.ParenExpr:
		return valueOf(e.X, known)
	case *ast.UnaryExpr:
		if x := valueOf(e.X, known); x != nil && e.Op == token.SUB {
			return constant.UnaryOp(token.SUB, x, 0)
		}
	case *ast.SelectorExpr:
		if unit, ok := units[e.Sel.Name]; ok && isPackage(e.X, "time") {
			return constant.MakeInt64(int64(unit))
		}
	case *ast.BinaryExpr:
		x, y := valueOf(e.X, known), valueOf(e.Y, known)
		if x == nil || y == nil || !slices.Contains([]token.Token{token.MUL, token.ADD, token.SUB}, e.Op) {
			return nil
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return nil
}

func isPackage(e ast.Expr, name string) bool {
	x, ok := e.(*ast.Ident)
	return ok && x.Name == name
}

// isCall reports whether the node is a call of package.function.
func isCall(n ast.Node, in, function string) (*ast.CallExpr, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return call, ok && selector.Sel.Name == function && isPackage(selector.X, in)
}

// timingScan searches one function.
type timingScan struct {
	constants map[string]constant.Value
	elapsed   map[string]bool // the variables that hold how long something took
	found     []timingFault
}

type timingFault struct {
	at   token.Pos
	rule timingRule
}

func (s *timingScan) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if _, fake := isCall(n, "synctest", "Test"); fake || mentionsFull(n) {
			return false
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			s.note(n)
			if isPackage(n.Lhs[0], "deadline") && s.isSoon(n.Rhs[0]) {
				s.found = append(s.found, timingFault{n.Pos(), timingRules[1]})
			}
		case *ast.ForStmt:
			if c, ok := n.Cond.(*ast.BinaryExpr); ok && c.Op == token.LSS && s.isElapsed(c.X) && s.isShort(c.Y) {
				s.found = append(s.found, timingFault{c.Pos(), timingRules[1]})
			}
		case *ast.BinaryExpr:
			over, under := n.Op == token.GTR || n.Op == token.GEQ, n.Op == token.LSS || n.Op == token.LEQ
			if over && s.isElapsed(n.X) && !s.isLong(n.Y) || under && s.isElapsed(n.Y) && !s.isLong(n.X) {
				s.found = append(s.found, timingFault{n.Pos(), timingRules[0]})
			}
		case *ast.CallExpr, *ast.KeyValueExpr, *ast.CommClause:
			if s.isShortWait(n) {
				s.found = append(s.found, timingFault{n.Pos(), timingRules[1]})
			}
		}
		return true
	})
}

// mentionsFull reports whether the node is a condition, or a statement with one, that holds
// only if fulltest.On().
func mentionsFull(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		return mentionsFull(n.Cond)
	case *ast.BinaryExpr:
		return n.Op == token.LAND && (mentionsFull(n.X) || mentionsFull(n.Y))
	case *ast.CallExpr:
		_, ok := isCall(n, "fulltest", "On")
		return ok
	}
	return false
}

// note remembers variables that are assigned a time.Since.
func (s *timingScan) note(a *ast.AssignStmt) {
	for i, right := range a.Rhs {
		if name, ok := a.Lhs[min(i, len(a.Lhs)-1)].(*ast.Ident); ok {
			s.elapsed[name.Name] = s.isElapsed(right)
		}
	}
}

// isElapsed reports whether the expression depends on how long something took. What another
// function makes of it doesn't count.
func (s *timingScan) isElapsed(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, since := isCall(n, "time", "Since"); since {
			found = true
		}
		if call, ok := n.(*ast.CallExpr); ok && !isPackage(call.Fun, "max") && !isPackage(call.Fun, "min") {
			found = found || s.isElapsed(call.Fun)
			return false
		}
		name, ok := n.(*ast.Ident)
		found = found || ok && s.elapsed[name.Name]
		return !found
	})
	return found
}

// isLong reports whether the expression is waittest.Limit or known to be leastLimit at least.
func (s *timingScan) isLong(e ast.Expr) bool {
	limit, ok := e.(*ast.SelectorExpr)
	if ok && isPackage(limit.X, "waittest") {
		return true
	}
	v := valueOf(e, s.constants)
	return v != nil && constant.Compare(v, token.GEQ, constant.MakeInt64(int64(leastLimit)))
}

// isShort reports whether the expression is known to be positive and less than leastLimit.
func (s *timingScan) isShort(e ast.Expr) bool {
	v := valueOf(e, s.constants)
	return v != nil && constant.Sign(v) > 0 && !s.isLong(e)
}

// isShortWait reports whether the node ends a wait, or makes a test fail, after less than leastLimit.
func (s *timingScan) isShortWait(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		return isPackage(n.Key, "Timeout") && s.isShort(n.Value)
	case *ast.CommClause:
		received, ok := n.Comm.(*ast.ExprStmt)
		if !ok {
			return false
		}
		from, ok := received.X.(*ast.UnaryExpr)
		if !ok {
			return false
		}
		after, ok := isCall(from.X, "time", "After")
		return ok && s.isShort(after.Args[0]) && fails(n.Body)
	}
	if call, ok := isCall(n, "context", "WithTimeout"); ok {
		return s.isShort(call.Args[1])
	}
	call := n.(*ast.CallExpr)
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(method.Sel.Name, "Set") && strings.HasSuffix(method.Sel.Name, "Deadline") && len(call.Args) == 1 && s.isSoon(call.Args[0])
}

// isSoon reports whether the expression is time.Now().Add of less than leastLimit.
func (s *timingScan) isSoon(e ast.Expr) bool {
	add, ok := e.(*ast.CallExpr)
	if !ok || len(add.Args) != 1 || !s.isShort(add.Args[0]) {
		return false
	}
	from, ok := add.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	_, now := isCall(from.X, "time", "Now")
	return now
}

// fails reports whether the statements make a test fail.
func fails(body []ast.Stmt) (found bool) {
	for _, statement := range body {
		ast.Inspect(statement, func(n ast.Node) bool {
			method, ok := n.(*ast.SelectorExpr)
			found = found || ok && slices.Contains([]string{"Fatal", "Fatalf", "Error", "Errorf"}, method.Sel.Name)
			return !found
		})
	}
	return found
}
