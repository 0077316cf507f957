package doorward_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logLevels are methods of slog.Logger that write what an operator sees; debug isn't shown by default.
var logLevels = []string{"Info", "Warn", "Error", "LogAttrs"}

// logMessages returns the messages that the program logs, with a place of each.
func logMessages(t *tree) map[string]string {
	all := map[string]string{}
	for _, f := range t.files {
		if f.isTest || f.isTestSupport() || strings.HasPrefix(f.folder, "web/dev") || f.isOnFloor("client") || f.isOnFloor("examples") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if message := loggedBy(call); message != "" {
					all[message] = t.Position(call.Pos()).String()
				}
			}
			return true
		})
	}
	return all
}

// loggedBy returns the message of a call such as log.Info("draining"); empty for other calls.
func loggedBy(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(logLevels, method.Sel.Name) || !isLogger(method.X) {
		return ""
	}
	for _, argument := range call.Args {
		if text, ok := argument.(*ast.BasicLit); ok {
			message, _ := strconv.Unquote(text.Value)
			return message
		}
	}
	return ""
}

// isLogger reports whether an expression ends in log or Log.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log"
	case *ast.SelectorExpr:
		return x.Sel.Name == "log" || x.Sel.Name == "Log"
	}
	return false
}

// undocumentedMessages returns the messages that the page doesn't have, each as `message`.
func undocumentedMessages(messages map[string]string, page string) (faults []string) {
	spaces := regexp.MustCompile(`\s+`)
	page = spaces.ReplaceAllString(page, " ")
	for message, place := range messages {
		if !strings.Contains(page, "`"+message+"`") {
			faults = append(faults, place+": "+message)
		}
	}
	slices.Sort(faults)
	return faults
}

// TestLogMessagesAreDocumented: an operator who meets a line in the log finds it in docs/operations.md.
func TestLogMessagesAreDocumented(t *testing.T) {
	messages := logMessages(parseTree(t, "."))
	if len(messages) < 20 {
		t.Errorf("only %d messages were found", len(messages))
	}
	for _, fault := range undocumentedMessages(messages, readText(t, "docs/operations.md")) {
		t.Errorf("docs/operations.md doesn't explain this line of the log: %s", fault)
	}
}

func TestUndocumentedMessagesAreNoticed(t *testing.T) {
	root := writeTree(t, []file{{"node/run.go", "package node\n\nfunc (n *Node) run() {\n\tn.cfg.Log.Info(\"draining\", \"a\", 1)\n\tn.log.Warn(\"cut off\")\n\tt.Error(\"no log\")\n}\n"}}, file{})
	got := undocumentedMessages(logMessages(parseTree(t, root)), "`draining` is here, and `cut\noff` is, too")
	if len(got) != 0 {
		t.Errorf("documented messages are reported: %q", got)
	}
	got = undocumentedMessages(logMessages(parseTree(t, root)), "draining is here, and `cut off` is, too")
	if len(got) != 1 || !strings.HasSuffix(got[0], ": draining") {
		t.Errorf("reported are %q, want the message draining", got)
	}
}
