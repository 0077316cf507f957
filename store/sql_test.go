package store_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/doorward/doorward/store"
)

// source is the source of package store and those below it: each statement is a
// constant named sql…, made of literals and other constants.
type source struct {
	statements map[string]string // by the constant's name
	inStore    []string          // names of the constants of package store itself
	loose      []string          // positions of literals that are statements, but no constants
	used       map[string]bool   // identifiers, except in declarations
}

// engineFiles have statements for one engine only, and statements generated from
// the schema.
var engineFiles = []string{"examine.go", "postgres.go", "sqlite.go", "migrate.go", "migration.go", "transfer/move.go", "internal/cluster/cluster.go"}

func readSource() source {
	var files []string
	for _, folder := range []string{".", "lease", "transfer", "internal/cluster", "internal/rows", "internal/sqlitefile"} {
		matches, err := filepath.Glob(filepath.Join(folder, "*.go"))
		must(err)
		files = append(files, matches...)
	}
	fset, consts := token.NewFileSet(), map[string]ast.Expr{}
	s := source{statements: map[string]string{}, used: map[string]bool{}}
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			parsed, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			must(err)
			s.read(fset, parsed, consts)
			if filepath.Dir(name) == "." {
				s.inStore = slices.Collect(maps.Keys(consts))
			}
		}
	}
	for name := range consts {
		if strings.HasPrefix(name, "sql") {
			s.statements[name] = text(consts, consts[name])
		}
	}
	for i, query := range store.EveryList() {
		s.statements[fmt.Sprint(listPrefix, i)], s.used[fmt.Sprint(listPrefix, i)] = query, true
	}
	return s
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// listPrefix begins the names of the statements of lists, which are no constants.
const listPrefix = "list "

var statement = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s`)

// read collects the constants, the names in use, and literals outside constants
// that look like a statement.
func (s *source) read(fset *token.FileSet, file *ast.File, consts map[string]ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok != token.CONST {
				return true
			}
			for _, spec := range n.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						consts[name.Name] = v.Values[i]
						ast.Inspect(v.Values[i], s.use)
					}
				}
			}
			return false
		case *ast.BasicLit:
			where := fset.Position(n.Pos())
			if n.Kind == token.STRING && statement.MatchString(unquote(n)) && !slices.Contains(engineFiles, where.Filename) {
				s.loose = append(s.loose, where.String())
			}
		case *ast.Ident:
			s.use(n)
		}
		return true
	})
}

func (s *source) use(n ast.Node) bool {
	if name, ok := n.(*ast.Ident); ok {
		s.used[name.Name] = true
	}
	return true
}

func unquote(n *ast.BasicLit) string {
	return constant.StringVal(constant.MakeFromLiteral(n.Value, n.Kind, 0))
}

// text returns the value of an expression of literals and constants.
func text(consts map[string]ast.Expr, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return unquote(e)
	case *ast.BinaryExpr:
		return text(consts, e.X) + text(consts, e.Y)
	case *ast.Ident:
		return text(consts, consts[e.Name])
	}
	panic(fmt.Sprintf("a statement must be made of literals and constants, not of %T", e))
}

func TestStatementsAreUsedConstants(t *testing.T) {
	s := readSource()
	if len(s.statements) < 60 {
		t.Errorf("only %d statements were found: check the search", len(s.statements))
	}
	for name := range s.statements {
		if !s.used[name] {
			t.Errorf("%s is unused: delete it", name)
		}
	}
	for _, where := range s.loose {
		t.Errorf("%s: TestMain doesn't know whether this statement has run: make it a constant named sql…", where)
	}
}

// rules forbid constructs that both databases accept. Each has a statement that breaks it and
// a similar one that doesn't.
var rules = []struct {
	name, remedy string
	breaks       func(query string) bool
	wrong, right string
}{
	{
		"no LIKE", "SQLite ignores letter case, PostgreSQL doesn't; compare whole values",
		regexp.MustCompile(`(?i)\b(I?LIKE|GLOB|SIMILAR|REGEXP)\b`).MatchString,
		`SELECT id FROM users WHERE email LIKE $1`, `SELECT likes FROM users`,
	},
	{
		"no clock of the engine", "pass tx.Now",
		regexp.MustCompile(`(?i)\b(CURRENT_(TIMESTAMP|TIME|DATE)|LOCALTIME|LOCALTIMESTAMP|(now|clock_timestamp|datetime|date|unixepoch|strftime|julianday)\s*\()`).MatchString,
		`UPDATE users SET created_at = now()`, `SELECT known, date FROM users`,
	},
	{
		"parameters are numbered", "write $1, $2 …",
		func(query string) bool { return strings.ContainsAny(quotedText.ReplaceAllString(query, ""), "?@:") },
		`SELECT id FROM users WHERE email = ?`, `SELECT id FROM users WHERE email = $1`,
	},
	{
		"parameters have no gap", "number them from $1; SQLite binds what is missing as NULL",
		hasGap,
		`SELECT id FROM users WHERE email = $2`, `SELECT $2, $1, $10, $3, $4, $5, $6, $7, $8, $9, $1`,
	},
	{
		"order by time, number or id", "collations of text differ from database to database; sort names in Go",
		ordersByText,
		`SELECT id FROM tenants t ORDER BY t.created_at, t.name LIMIT 1`, "SELECT id FROM tenants ORDER BY created_at DESC, t.id LIMIT $1",
	},
	{
		"no folding of letter case", "store what is canonical",
		regexp.MustCompile(`(?i)\b(lower|upper|initcap|collate|nocase|casefold)\b`).MatchString,
		`SELECT id FROM users WHERE lower(email) = $1`, `SELECT lowered FROM users`,
	},
	{
		"no JSON in SQL", "decode it in Go",
		regexp.MustCompile(`(?i)\bjsonb?(_\w+)?\b|->`).MatchString,
		`SELECT json_extract(changes, '$.a') FROM events`, `SELECT reason FROM events`,
	},
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// quotedText is a literal of text.
var quotedText = regexp.MustCompile(`'[^']*'`)

func hasGap(query string) bool {
	seen := map[string]bool{}
	for _, p := range parameter.FindAllString(query, -1) {
		seen[p] = true
	}
	for i := range len(seen) {
		if !seen["$"+strconv.Itoa(i+1)] {
			return true
		}
	}
	return false
}

var (
	orderBy = regexp.MustCompile(`(?is)ORDER\s+BY\s+(.*?)(?:\bLIMIT\b|\)|$)`)
	sortKey = regexp.MustCompile(`(?i)^\s*(\w+\.)?(\w+_(at|until)|at|(\w+_)?id|seq|pos|version)(\s+(ASC|DESC))?\s*$`)
)

func ordersByText(query string) bool {
	for _, clause := range orderBy.FindAllStringSubmatch(query, -1) {
		for _, key := range strings.Split(clause[1], ",") {
			if !sortKey.MatchString(key) {
				return true
			}
		}
	}
	return false
}

func TestStatementsKeepTheRules(t *testing.T) {
	for name, query := range readSource().statements {
		for _, r := range rules {
			isExempt := strings.HasPrefix(name, listPrefix) && r.name == "order by time, number or id" // see order in list.go
			if r.breaks(query) && !isExempt {
				t.Errorf("%s breaks the rule %q: %s:\n%s", name, r.name, r.remedy, query)
			}
		}
	}
}

// unordered are lists whose callers need no order, or that Go sorts.
var unordered = []string{
	"sqlConfirmedFormerEmails", "sqlDeviceHashes", "sqlFormerEmails", "sqlHomeLost", "sqlInboxSources", "sqlKnownDevices", "sqlMappedRolesOf", "sqlObserved", "sqlOverdueSSOPolicies", "sqlOverdueSessions",
	"sqlQueuePauses", "sqlReadingsFailing", "sqlRequestedEmails", "sqlSessionsByTokens", "sqlTenantCreations", "sqlTenantsOwned",
}

// TestListsHaveAnOrder: without ORDER BY both databases often return rows in the right order, so
// no other test would notice.
func TestListsHaveAnOrder(t *testing.T) {
	statements, found := readSource().statements, 0
	eachCall(func(call *ast.CallExpr) {
		if function, _ := call.Fun.(*ast.Ident); function == nil || function.Name != "list" {
			return
		}
		for _, arg := range call.Args {
			name, _ := arg.(*ast.Ident)
			if name == nil || !strings.HasPrefix(statements[name.Name], "SELECT") || strings.Contains(statements[name.Name], "GROUP BY") {
				continue
			}
			found++
			if strings.Contains(statements[name.Name], "ORDER BY") == slices.Contains(unordered, name.Name) {
				t.Errorf("%s has no ORDER BY, or needn't be in the list unordered:\n%s", name.Name, statements[name.Name])
			}
		}
	})
	if found < 40 {
		t.Errorf("only %d lists were found: check the search", found)
	}
}

// eachCall visits the calls in package store.
func eachCall(visit func(*ast.CallExpr)) {
	files, err := filepath.Glob("*.go")
	must(err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		must(err)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				visit(call)
			}
			return true
		})
	}
}

// TestStatementsOfOneTenant: a statement that is given the id of a tenant selects by it. Insertions
// write it.
func TestStatementsOfOneTenant(t *testing.T) {
	statements, found := readSource().statements, 0
	eachCall(func(call *ast.CallExpr) {
		constant, number := tenantParameter(call)
		if number == 0 {
			return
		}
		found++
		if query := statements[constant]; !strings.HasPrefix(query, "INSERT") && !selectsTenant(query, number) {
			t.Errorf("%s doesn't compare tenant_id with $%d, which is a tenantID:\n%s", constant, number, query)
		}
	})
	if found < 80 {
		t.Errorf("only %d statements with a tenantID were found: check the search", found)
	}
	for _, wrong := range []string{`SELECT id FROM roles WHERE $1 <> '-' AND id = $2`, `DELETE FROM roles WHERE id = $1`} {
		if selectsTenant(wrong, 1) {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

// tenantParameter returns the statement of a call that passes tenantID to it, and the number of
// that parameter; 0 for other calls.
func tenantParameter(call *ast.CallExpr) (constant string, number int) {
	at := 0
	for i, arg := range call.Args {
		switch name, _ := arg.(*ast.Ident); {
		case name == nil:
		case strings.HasPrefix(name.Name, "sql"):
			constant, at = name.Name, i
		case name.Name == "tenantID" && constant != "":
			return constant, i - at
		}
	}
	return "", 0
}

// selectsTenant reports whether a query compares the parameter with the id of a tenant. Four
// parameters of a SessionLifetime may precede those of the call.
func selectsTenant(query string, number int) bool {
	return regexp.MustCompile(fmt.Sprintf(`(?s)\btenant_id (= |IN \('', )\$(%d|%d)\b|\b(FROM|UPDATE) tenants .*\bid = \$%[1]d\b`, number, number+4)).MatchString(query)
}

func TestRulesFindViolations(t *testing.T) {
	for _, r := range rules {
		if !r.breaks(r.wrong) {
			t.Errorf("the rule %q accepts %q", r.name, r.wrong)
		}
		if r.breaks(r.right) {
			t.Errorf("the rule %q refuses %q", r.name, r.right)
		}
	}
}

// authority are the columns by which somebody may do something, by table.
var authority = map[string]string{
	"memberships": `role|status`,
	"invitations": `role|state|expires_at|invited_by|service_key_id`,
	"tenants":     `session_idle|session_absolute|invitation_days|allowed_domains|mfa_\w+|step_up_minutes`,
	"api_keys":    `role|permissions|status|owner_id|expires_at|ends_at|allowed_ips|per_second`,
	"roles":       `permissions`,
}

// noted are the statements that give authority, with what notes it in Tx.Effects or why nothing has to.
var noted = map[string]string{
	"sqlInsertMembership": "InsertMembership", "sqlSetUserRole": "SetUserRole", "sqlSetUserStatus": "setStatus", "sqlMoveMembers": "MoveRole",
	"sqlInsertInvitation": "InsertInvitation", "sqlRenewInvitation": "RenewInvitation", "sqlMoveInvitations": "MoveRole",
	"sqlEditTenant":   "EditTenant",
	"sqlInsertAPIKey": "InsertAPIKey", "sqlUpdateAPIKey": "UpdateAPIKey", "sqlTransferAPIKeys": "TransferAPIKeys", "sqlMoveAPIKeys": "MoveRole",
	"sqlInsertCustomRole": "role.create always demands a proof", "sqlUpdateCustomRole": "role.update always demands a proof",
	"sqlAPIKeyRotated": "it is what apikey.rotate does, which demands a proof itself",

	"sqlRevokeInvitation": "ends it", "sqlRetireExpiredInvitation": "ends it", "sqlRevokeInvitationsBy": "ends it", "sqlRevokeInvitationsOfService": "ends it",
	"sqlRevokeRedundantInvitations": "ends it", "sqlForgetInviter": "ends it", "sqlBlankInvitationsAccepted": "ends it", "sqlBlankInvitationsTo": "ends it", "sqlClampInvitations": "shortens it",
	"sqlAcceptInvitation": "the offer was judged",
	"sqlRevokeAPIKey":     "ends it", "sqlRevokeAPIKeysOf": "ends it", "sqlDisableAllAPIKeys": "ends it", "sqlExpireAPIKey": "ends it", "sqlClampAPIKeys": "shortens it",
	"sqlClampDemands": "of the installation's clock",
}

// givesAuthority reports whether a statement writes one of the columns of authority. A new tenant has
// no settings yet.
func givesAuthority(query string) bool {
	for table, columns := range authority {
		set := regexp.MustCompile(`(?is)UPDATE\s+` + table + `\s+SET\s+(.*?)(\bWHERE\b|$)`).FindStringSubmatch(query)
		isWritten := set != nil && regexp.MustCompile(`\b(`+columns+`)(\s*=|[\w\s,]*\)\s*=)`).MatchString(set[1])
		if isWritten || table != "tenants" && regexp.MustCompile(`(?is)INSERT\s+INTO\s+`+table+`\b`).MatchString(query) {
			return true
		}
	}
	return false
}

// TestStatementsNoteTheirEffects: every statement that writes who may do what is listed, so that access
// can judge the change before the commit.
func TestStatementsNoteTheirEffects(t *testing.T) {
	for name, query := range readSource().statements {
		if givesAuthority(query) != (noted[name] != "") {
			t.Errorf("%s writes who may do what: %v; note it in Tx.Effects and list it in noted:\n%s", name, givesAuthority(query), query)
		}
	}
	for name := range noted {
		if _, exists := readSource().statements[name]; !exists {
			t.Errorf("noted lists %s, which is no statement", name)
		}
	}
	for query, want := range map[string]bool{
		`UPDATE memberships SET role = $1 WHERE tenant_id = $2`: true, `UPDATE memberships SET name = $1 WHERE role = $2`: false,
		`INSERT INTO api_keys (id) VALUES ($1)`: true, `DELETE FROM memberships WHERE role = $1`: false,
	} {
		if givesAuthority(query) != want {
			t.Errorf("%s: want %v", query, want)
		}
	}
}
