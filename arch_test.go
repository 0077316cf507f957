package doorward_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// These tests check the rules of ARCHITECTURE.md. They parse the source themselves: go test
// doesn't know what a child process such as "go list" reads, so it would still answer
// "ok (cached)" after a violation.

const module = "github.com/doorward/doorward"

// siblings names the features that a feature may import. All other features that depend on
// each other share a transaction instead: each writes its own rows through app/access.
var siblings = map[string][]string{
	"signon":       {"acs", "answer", "factor", "flow", "joining", "login", "proof", "provider", "sealed", "session", "testrun"},
	"account":      {"proof", "member"},
	"acs":          {"answer", "provider", "samlprovider", "sealed"},
	"signoff":      {"member", "provider"},
	"apikey":       {"registry"},
	"assertion":    {"masterkey"},
	"clientsecret": {"provider"},
	"connection":   {"member", "provider", "samlprovider"},
	"directory":    {"invite", "member", "provider", "registry"},
	"directoryrun": {"directory", "invite", "member", "provider"},
	"evaluation":   {"apikey", "session"},
	"factor":       {"proof", "masterkey", "session"},
	"flow":         {"sealed"},
	"inbox":        {"proof", "refusal"},
	"incident":     {"proof"},
	"joining":      {"answer", "factor", "invite", "member"},
	"invite":       {"proof", "factor", "member", "sealed"},
	"login":        {"session", "proof", "factor"},
	"mail":         {"outbox"},
	"model":        {"modelfile", "rules"},
	"password":     {"proof", "refusal"},
	"policy":       {"apikey", "cedar", "decisionlog", "rules", "session"},
	"proof":        {"refusal"},
	"provider":     {"attempt", "masterkey", "samlprovider"},
	"rules":        {"cedar", "modelfile"},
	"samlprovider": {"masterkey"},
	"session":      {"proof", "registry"},
	"tenant":       {"roster"},
	"testrun":      {"answer", "joining", "provider"},
	"user":         {"member", "proof", "roster"},
	"webhook":      {"masterkey", "outbox"},
}

// upkeepPackages may write without an action of a caller: counters and last uses, what name servers say, the
// queues of mails and webhooks, the feed, keys and texts that Doorward makes for itself,
// the turns of sweeps, and the deletion of what is old, has ended or is left over.
var upkeepPackages = []string{"app", "app/account", "app/acs", "app/apikey", "app/assertion", "app/attempt", "app/audit", "app/directory", "app/directoryrun", "app/domain", "app/proof", "app/factor", "app/inbox", "app/key", "app/leak", "app/login", "app/mail", "app/masterkey", "app/overview", "app/password", "app/provider", "app/samlprovider", "app/session", "app/setuplink", "app/signoff", "app/signon", "app/tenant", "app/testrun", "app/user", "app/webhook"}

// The functions that some rules restrict, by their full names.
const (
	allowCall  = "(*" + module + ".Permissions).Allow"
	writeCall  = "(*" + module + "/store.DB).Write"
	fillCall   = "(*" + module + "/store.DB).Fill"
	upkeepCall = "(*" + module + "/app/access.Writer).Upkeep"
	batchCall  = "(*" + module + "/app/access.Writer).InBatches"
)

// leaseCalls are the functions of store that only the lease calls.
var leaseCalls = []string{
	"(*" + module + "/store.DB).Servers", "(*" + module + "/store.DB).Listen",
	"(*" + module + "/store.DB).NotifyNodes", "(*" + module + "/store.DB).MeasureClock",
}

// memberCalls are the functions that create an account or a membership.
var memberCalls = []string{
	"(*" + module + "/store.Tx).InsertAccount",
	"(*" + module + "/store.Tx).InsertMembership",
}

// floors are the folders at the root that may contain Go files.
var floors = []string{".", "app", "client", "cmd", "docs", "doorwardtest", "e2e", "examples", "internal", "node", "store", "web"}

// shippedFolders are the floors that end up in the binary.
var shippedFolders = []string{".", "app", "cmd", "docs", "internal", "node", "store", "web"}

// ioPackages are the standard packages that would let the root package do I/O.
var ioPackages = []string{
	"database/sql", "database/sql/driver", "io/fs", "io/ioutil", "net", "net/http", "net/rpc", "net/smtp",
	"net/textproto", "os", "os/exec", "os/signal", "os/user", "path/filepath", "syscall",
}

// archRule is one rule about what a file may import or call.
type archRule struct {
	name   string
	remedy string
	breaks func(reference) bool
	// violation breaks the rule once, on the line that contains "here".
	violation file
}

// reference is an import of a file, or a use of one of our functions, whose name has the form
// "(*path/of/package.Type).Method". Each file also has an empty reference, at its package
// clause.
type reference struct {
	from    *source
	line    int
	imports string
	calls   string
}

type file struct{ name, text string }

var archRules = []archRule{
	{
		name:   "every Go package is on a floor",
		remedy: "put the code on a floor of ARCHITECTURE.md, or give the new floor a row there and rules here",
		breaks: func(r reference) bool {
			return r.imports+r.calls == "" && !slices.Contains(floors, floor(r.from.folder))
		},
		violation: file{"util/util.go", "package util // here"},
	},
	{
		name:   "the root package imports the standard library and Unicode's normal forms only, and no I/O",
		remedy: "do the I/O on a higher floor and pass plain values down",
		breaks: func(r reference) bool {
			return r.from.folder == "." && r.ships() && r.imports != "golang.org/x/text/unicode/norm" && (!isStandard(r.imports) || slices.Contains(ioPackages, r.imports))
		},
		violation: file{"role.go", "package doorward\n\nimport _ \"net/http\" // here"},
	},
	{
		name:   "internal packages import nothing of ours outside of internal",
		remedy: "pass plain values; a tool that knows a domain term belongs in app or store",
		breaks: func(r reference) bool {
			return r.from.isOnFloor("internal") && r.isOurs() && !r.importsWithin("internal/*")
		},
		violation: file{"internal/argon/argon.go", "package argon\n\nimport _ \"" + module + "\" // here"},
	},
	{
		name:   "internal packages do not import each other",
		remedy: "let the caller join the two; only tests may import internal/waittest and internal/npmtest",
		breaks: func(r reference) bool {
			return r.from.isOnFloor("internal") && r.importsWithin("internal/*") && !r.importsWithin(firstTwo(r.from.folder)+"/*", "internal/waittest", "internal/npmtest")
		},
		violation: file{"internal/argon/argon.go", "package argon\n\nimport _ \"" + module + "/internal/secret\" // here"},
	},
	{
		name:   "store imports doorward and internal only: it holds rows, no rule",
		remedy: "move the rule up into the feature in app that asks for the rows",
		breaks: func(r reference) bool {
			return r.from.isOnFloor("store") && r.importsOutside(".", "internal/*", "store/*")
		},
		violation: file{"store/user.go", "package store\n\nimport _ \"" + module + "/app/session\" // here"},
	},
	{
		name:   "store/lease and store/transfer do not import each other",
		remedy: "what both need belongs in store, or in store/internal",
		breaks: func(r reference) bool {
			return r.from.folder == "store/lease" && r.importsWithin("store/transfer") || r.from.folder == "store/transfer" && r.importsWithin("store/lease")
		},
		violation: file{"store/transfer/move.go", "package transfer\n\nimport _ \"" + module + "/store/lease\" // here"},
	},
	{
		name:      "app/decide imports doorward only: it decides without a store",
		remedy:    "read the rows in the feature, and pass what they say in the Principal or the Question",
		breaks:    func(r reference) bool { return r.from.folder == "app/decide" && r.importsOutside(".") },
		violation: file{"app/decide/may.go", "package decide\n\nimport _ \"" + module + "/store\" // here"},
	},
	{
		name:   "app/access imports doorward, store, store/lease, app/decide, app/decisionlog, app/refusal and internal/trace only",
		remedy: "access knows no feature: let the feature call access.Do and pass what it knows",
		breaks: func(r reference) bool {
			return r.from.folder == "app/access" && r.importsOutside(".", "app/decide", "app/decisionlog", "app/refusal", "store", "store/lease", "store/dbtest", "store/storetest", "internal/trace")
		},
		violation: file{"app/access/do.go", "package access\n\nimport _ \"" + module + "/app/session\" // here"},
	},
	{
		name:   "a feature imports doorward, store, app/access, app/decide, internal and its siblings only",
		remedy: "write the rows of both features in one access.Do, or add a sibling (see siblings in arch_test.go)",
		breaks: func(r reference) bool {
			return r.from.isFeature() && r.importsOutside(append(allowedImports(r.from.folder), ".", "store", "store/lease", "app/access", "app/decide", "internal/*")...)
		},
		violation: file{"app/invite/invite.go", "package invite\n\nimport _ \"" + module + "/app/session\" // here"},
	},
	{
		name:   "of the features only app/session, app/apikey, app/assertion and app/directory follow the lease",
		remedy: "write through access.Do, which waits for the lease; memory of credentials belongs in app/registry",
		breaks: func(r reference) bool {
			return r.from.isFeature() && r.from.folder != "app/session" && r.from.folder != "app/apikey" && r.from.folder != "app/assertion" && r.from.folder != "app/directory" && r.importsWithin("store/lease")
		},
		violation: file{"app/invite/invite.go", "package invite\n\nimport _ \"" + module + "/store/lease\" // here"},
	},
	{
		name:   "app/roster, app/modelfile and app/cedar read texts: they import doorward and internal only",
		remedy: "comparing what was read with the database belongs in the feature that calls them, as app/user",
		breaks: func(r reference) bool {
			return slices.Contains([]string{"app/roster", "app/modelfile", "app/cedar"}, r.from.folder) && r.importsOutside(".", "internal/*")
		},
		violation: file{"app/roster/roster.go", "package roster\n\nimport _ \"" + module + "/store\" // here"},
	},
	{
		name:      "app/outbox imports the standard library only: it doesn't know what it sends",
		remedy:    "pass a function (see outbox.Queue); knowledge of mails belongs in app/mail",
		breaks:    func(r reference) bool { return r.from.folder == "app/outbox" && r.ships() && !isStandard(r.imports) },
		violation: file{"app/outbox/outbox.go", "package outbox\n\nimport _ \"" + module + "/internal/smtp\" // here"},
	},
	{
		name:   "app joins the features and imports nothing above it",
		remedy: "pass plain values down; code that speaks a protocol belongs in web",
		breaks: func(r reference) bool {
			return r.from.folder == "app" && r.importsOutside(".", "store", "store/lease", "store/storetest", "app/*", "internal/*")
		},
		violation: file{"app/app.go", "package app\n\nimport _ \"" + module + "/web/front\" // here"},
	},
	{
		name:      "docs holds pages and imports no other package",
		remedy:    "code that processes the pages belongs in web/pages, to which cmd passes them",
		breaks:    func(r reference) bool { return r.from.isOnFloor("docs") && r.isOurs() },
		violation: file{"docs/docs.go", "package docs\n\nimport _ \"" + module + "\" // here"},
	},
	{
		name:   "web calls app, never store",
		remedy: "add a method to the feature in app and call that",
		breaks: func(r reference) bool {
			return r.from.isOnFloor("web") && r.importsOutside(".", "app/*", "internal/*", "web/*")
		},
		violation: file{"web/api/login.go", "package api\n\nimport _ \"" + module + "/store\" // here"},
	},
	{
		name:   "a protocol's folder in web imports no other protocol's",
		remedy: "what two protocols share belongs in web/front, or in web/ui if it is about pages; web.go joins their tables",
		breaks: func(r reference) bool {
			return r.from.isOnFloor("web") && r.from.folder != "web" && r.importsWithin("web/*") && !r.importsWithin("web/front", "web/ui", firstTwo(r.from.folder)+"/*")
		},
		violation: file{"web/pages/login.go", "package pages\n\nimport _ \"" + module + "/web/api\" // here"},
	},
	{
		name:   "only internal/trace imports OpenTelemetry",
		remedy: "begin a span with trace.Start; add what is missing to internal/trace",
		breaks: func(r reference) bool {
			return strings.HasPrefix(r.imports, "go.opentelemetry.io/") && r.ships() && firstTwo(r.from.folder) != "internal/trace"
		},
		violation: file{"app/mail/mail.go", "package mail\n\nimport _ \"go.opentelemetry.io/otel/trace\" // here"},
	},
	{
		name:   "only app/cedar imports cedar-go",
		remedy: "call app/cedar, which checks size and depth first and treats a policy with an error as a refusal",
		breaks: func(r reference) bool {
			return strings.HasPrefix(r.imports, "github.com/cedar-policy/") && r.from.folder != "app/cedar"
		},
		violation: file{"app/member/member.go", "package member\n\nimport _ \"github.com/cedar-policy/cedar-go\" // here"},
	},
	{
		name:   "only internal/samlsp imports crewjam/saml and goxmldsig",
		remedy: "call internal/samlsp, which bounds the XML first, judges it itself, and sets a global of package saml",
		breaks: func(r reference) bool {
			isSAML := strings.HasPrefix(r.imports, "github.com/crewjam/saml") || strings.HasPrefix(r.imports, "github.com/russellhaering/")
			return isSAML && firstTwo(r.from.folder) != "internal/samlsp"
		},
		violation: file{"app/member/member.go", "package member\n\nimport _ \"github.com/crewjam/saml\" // here"},
	},
	{
		name:   "only store and internal import database/sql",
		remedy: "add a method to store.Tx or store.DB",
		breaks: func(r reference) bool {
			sql := r.imports == "database/sql" || strings.HasPrefix(r.imports, "database/sql/")
			return sql && r.ships() && !r.from.isOnFloor("store") && !r.from.isOnFloor("internal")
		},
		violation: file{"cmd/doorward/main.go", "package main\n\nimport _ \"database/sql\" // here"},
	},
	{
		name:   "client imports the standard library only, except for its tests in client/tests",
		remedy: "the client speaks the HTTP API; copy the few types that it needs",
		breaks: func(r reference) bool {
			return r.from.folder == "client" && r.imports != "" && r.imports != module+"/client" && !isStandard(r.imports)
		},
		violation: file{"client/client.go", "package client\n\nimport _ \"" + module + "\" // here"},
	},
	{
		name:   "only examples/messaging and the client's tests import client, which is a module of its own",
		remedy: "go.mod would need a replace, and go install of a version refuses that: put the code into examples/messaging or client/tests",
		breaks: func(r reference) bool {
			return r.importsWithin("client/*") && !slices.Contains(readModules, r.from.folder)
		},
		violation: file{"examples/site_test.go", "package examples_test\n\nimport _ \"" + module + "/client\" // here"},
	},
	{
		name:   "test support (a package named …test) is imported by tests and test support only",
		remedy: "move the code that is needed into the package that the test support is for",
		breaks: func(r reference) bool {
			support := r.isOurs() && strings.HasSuffix(r.imports, "test")
			return support && !r.from.isTest && !r.from.isTestSupport()
		},
		violation: file{"cmd/doorward/main.go", "package main\n\nimport _ \"" + module + "/store/storetest\" // here"},
	},
	{
		name:      "doorwardtest is imported by external tests only",
		remedy:    "doorwardtest imports every floor: put the test into a package named …_test",
		breaks:    func(r reference) bool { return r.from.isTest && !r.from.isExternal && r.importsWithin("doorwardtest") },
		violation: file{"app/session/session_test.go", "package session\n\nimport _ \"" + module + "/doorwardtest\" // here"},
	},
	{
		name:   "only app/decide calls (*Permissions).Allow: it makes every decision",
		remedy: "ask decide.May, which knows the object and the state of the tenant too; Verb.Roles and Grant.Actions are for tables",
		breaks: func(r reference) bool { return r.calls == allowCall && r.ships() && r.from.folder != "app/decide" },
		violation: file{"web/api/login.go", `package api

import "` + module + `"

func may(p *doorward.Permissions) { p.Allow() } // here
`},
	},
	{
		name:   "only app/access calls (*store.DB).Write",
		remedy: "write through access.Do, so that the action is decided and recorded",
		breaks: func(r reference) bool {
			return r.calls == writeCall && r.ships() && !r.from.isOnFloor("store") && r.from.folder != "app/access"
		},
		violation: file{"app/invite/invite.go", `package invite

import "` + module + `/store"

type Invites struct{ db *store.DB }

func (i Invites) Accept() { i.db.Write(nil) } // here
`},
	},
	{
		name:   "only store/transfer calls (*store.DB).Fill",
		remedy: "write through access.Do, so that the action is decided and recorded",
		breaks: func(r reference) bool {
			return r.calls == fillCall && r.ships() && r.from.folder != "store/transfer"
		},
		violation: file{"node/restore.go", `package node

import "` + module + `/store"

func restore(db *store.DB) { db.Fill(nil) } // here
`},
	},
	{
		name:   "only store/lease calls the functions that run the lease",
		remedy: "ask lease.Lease",
		breaks: func(r reference) bool {
			return slices.Contains(leaseCalls, r.calls) && r.ships() && r.from.folder != "store/lease"
		},
		violation: file{"node/measure.go", `package node

import "` + module + `/store"

func measure(db *store.DB) { db.Servers() } // here
`},
	},
	{
		name:   "only app/member creates accounts and memberships",
		remedy: "call app/member, and name it as a sibling of the feature",
		breaks: func(r reference) bool {
			return slices.Contains(memberCalls, r.calls) && r.ships() && !r.from.isOnFloor("store") && r.from.folder != "app/member"
		},
		violation: file{"app/invite/invite.go", `package invite

import "` + module + `/app/access"

func accept(tx *access.Tx) { tx.InsertMembership() } // here
`},
	},
	{
		name:   "only upkeepPackages call access.Upkeep or InBatches",
		remedy: "an action of a caller goes through access.Do; if there is no caller, name the package in upkeepPackages in arch_test.go",
		breaks: func(r reference) bool {
			return (r.calls == upkeepCall || r.calls == batchCall) && r.ships() && r.from.folder != "app/access" && !slices.Contains(upkeepPackages, r.from.folder)
		},
		violation: file{"app/invite/invite.go", `package invite

import "` + module + `/app/access"

func Accept(writer *access.Writer) { writer.Upkeep(nil) } // here
`},
	},
}

func TestArchitectureRules(t *testing.T) {
	for _, violation := range violations(t, ".") {
		t.Error(violation)
	}
}

// A rule about a renamed function would find nothing, and so pass.
func TestGuardedCallsAreInUse(t *testing.T) {
	calls := parseTree(t, ".").calls()
	for _, call := range slices.Concat([]string{allowCall, writeCall, fillCall, upkeepCall, batchCall}, leaseCalls, memberCalls) {
		if !slices.ContainsFunc(calls, func(r reference) bool { return r.calls == call }) {
			t.Errorf("nothing calls %s: if it was renamed, rename it in arch_test.go", call)
		}
	}
}

func TestEachArchRuleIsEnforced(t *testing.T) {
	for _, rule := range archRules {
		t.Run(rule.name, func(t *testing.T) {
			root := writeTree(t, compliantTree, rule.violation)
			got := violations(t, root)
			if len(got) != 1 {
				t.Fatalf("one rule was broken, and %d violations were found: %q", len(got), got)
			}
			for _, want := range []string{position(rule.violation) + ": ", rule.name, rule.remedy} {
				if !strings.Contains(got[0], want) {
					t.Errorf("no %q in %q", want, got[0])
				}
			}
		})
	}
}

func TestCompliantTreeBreaksNoRule(t *testing.T) {
	for _, violation := range violations(t, writeTree(t, compliantTree, file{})) {
		t.Error(violation)
	}
}

// unwatched are the packages, and tests of other packages, that start goroutines and needn't run
// under the race detector, each with the reason.
var unwatched = map[string]string{
	"app/account": inTheDatabase, "app/audit": inTheDatabase, "app/factor": inTheDatabase, "app/installation": inTheDatabase,
	"app/invite": inTheDatabase, "app/key": inTheDatabase, "app/masterkey": inTheDatabase, "app/member": inTheDatabase,
	"app/model": inTheDatabase, "app/password": inTheDatabase, "app/policy": inTheDatabase, "app/role": inTheDatabase,
	"app/tenant": inTheDatabase, "app/user": inTheDatabase,

	"app/mail":               "app/outbox, which runs the queue, is watched",
	"cmd/doorward":           inProcesses,
	"internal/guard":         "the goroutine is a server of the test",
	"internal/pgtest":        inProcesses,
	"internal/smtp/smtptest": "a mail server for tests only",

	"client": inModules, "client/tests": inModules,

	"internal/argon.TestChildren":                inProcesses,
	"internal/smtp.TestProcessesShareADirectory": inProcesses,
	"node.TestHealthWhileMigrating":              inTheDatabase,
	"node.TestHTTP2":                             inProcesses,
	"node.TestMasterKeyIsReplacedWhileNodesRun":  inProcesses,
	"node.TestRollingUpgrade":                    inProcesses,
	"store.TestIndexesBlockNobody":               inTheDatabase,
	"store.TestInterruptedIndexIsBuiltAgain":     inTheDatabase,
	"store.TestNodesBuildIndexesTogether":        inTheDatabase,
	"store/lease.TestFollowerProcess":            inProcesses,
	"store/lease.TestTwoProcesses":               inProcesses,
}

const (
	inTheDatabase = "transactions meet in the database; the memory that features share is that of app/login, app/session and app/apikey"
	inProcesses   = "what runs at once are processes, which the detector can't watch"
	inModules     = "all tests of this module run under the detector"
)

// startsGoroutines reports whether a function starts some, or has several callers at once.
func startsGoroutines(fn *ast.FuncDecl) (starts bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = starts || slices.Contains([]string{"Go", "WaitGroup", "Concurrently"}, n.Sel.Name)
		}
		return !starts
	})
	return starts
}

// raceFaults returns the tests that start goroutines without TestRace in their name, and the
// names that needn't be in unwatched.
func raceFaults(all *tree, unwatched map[string]string) (faults []string) {
	found := map[string]bool{}
	for _, f := range all.files {
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !f.isTest || !isTest(fn.Name.Name) || !startsGoroutines(fn) {
				continue
			}
			test := f.folder + "." + fn.Name.Name
			found[f.folder], found[test] = true, true
			if unwatched[f.folder]+unwatched[test] == "" && !strings.HasPrefix(fn.Name.Name, "TestRace") {
				faults = append(faults, fmt.Sprintf("%s: %s starts goroutines: name it TestRace…, so that it runs under the race detector", f.name, fn.Name.Name))
			}
		}
	}
	for name := range unwatched {
		if !found[name] {
			faults = append(faults, name+" starts no goroutines: remove it from unwatched")
		}
	}
	return faults
}

func TestRacesAreNamed(t *testing.T) {
	for _, fault := range raceFaults(parseTree(t, "."), unwatched) {
		t.Error(fault)
	}
}

// Each way to start goroutines is noticed.
func TestUnnamedRacesAreNoticed(t *testing.T) {
	for body, want := range map[string]int{"go f()": 1, "group.Go(f)": 1, "var all sync.WaitGroup": 1, "f.Concurrently(2)": 1, "f()": 0} {
		root := writeTree(t, []file{
			{"web/other_test.go", "package web\n\nfunc TestRaceOther() { " + body + " }\n\nfunc help() { go f() }"},
			{"app/user/user_test.go", "package user\n\nfunc TestUser() { go f() }"},
		}, file{"web/web_test.go", "package web\n\nfunc TestWeb() { " + body + " }"})
		if got := raceFaults(parseTree(t, root), map[string]string{"app/user": "a reason"}); len(got) != want {
			t.Errorf("%s: %q, want %d faults", body, got, want)
		}
		if got := raceFaults(parseTree(t, root), map[string]string{"app/user": "a reason", "app/key": "none"}); len(got) != want+1 {
			t.Errorf("%s: an idle exception isn't noticed: %q", body, got)
		}
	}
}

// compliantTree is a small tree that does everything that the rules allow.
var compliantTree = []file{
	{"doorward.go", "package doorward\n\nimport _ \"net/netip\"\n\ntype Permissions struct{}\n\nfunc (p *Permissions) Allow() {}"},
	{"internal/secret/secret.go", "package secret\n\nimport _ \"os\""},
	{"internal/pgtest/pgtest.go", "package pgtest\n\nimport _ \"github.com/jackc/pgx/v5\""},
	{"store/store.go", `package store

import (
	_ "database/sql"
	_ "` + module + `"
	_ "` + module + `/internal/secret"
)

type DB struct{}

func (db *DB) Write(fn func()) {}

func (db *DB) Fill(fn func()) {}

func (db *DB) Servers() {}

type Tx struct{}

func (tx *Tx) InsertAccount()    {}
func (tx *Tx) InsertMembership() {}
`},
	{"store/internal/rows/rows.go", "package rows\n\nimport _ \"" + module + "\""},
	{"store/lease/lease.go", `package lease

import (
	"` + module + `/store"
	_ "` + module + `/store/internal/rows"
)

func Run(db *store.DB) { db.Servers(); db.Write(nil) }
`},
	{"store/transfer/move.go", `package transfer

import "` + module + `/store"

func Move(to *store.DB) { to.Fill(nil) }
`},
	{"store/store_test.go", "package store\n\nimport _ \"" + module + "/internal/pgtest\""},
	{"store/storetest/storetest.go", "package storetest\n\nimport _ \"" + module + "/internal/pgtest\""},
	{"app/app.go", "package app\n\nimport _ \"" + module + "/app/login\""},
	{"app/access/access.go", `package access

import "` + module + `/store"

type Writer struct{ db *store.DB }

func (w *Writer) Upkeep(fn func()) { w.db.Write(fn) }

type Tx struct{ *store.Tx }
`},
	{"app/member/member.go", `package member

import "` + module + `/app/access"

func Add(tx *access.Tx) { tx.InsertAccount(); tx.InsertMembership() }
`},
	{"app/session/session.go", `package session

import (
	"` + module + `/app/access"
	_ "` + module + `/store/lease"
)

func Touch(writer *access.Writer) { writer.Upkeep(nil) }
`},
	{"app/session/session_test.go", "package session_test\n\nimport _ \"" + module + "/doorwardtest\""},
	{"app/login/login.go", "package login\n\nimport _ \"" + module + "/app/session\""},
	{"app/apptest/fixture.go", "package apptest\n\nimport (\n\t_ \"database/sql\"\n\t_ \"" + module + "/app\"\n)"},
	{"app/login/login_test.go", "package login_test\n\nimport _ \"" + module + "/app/apptest\""},
	{"web/web.go", "package web\n\nimport _ \"" + module + "/web/api\""},
	{"web/front/front.go", "package front\n\nimport _ \"" + module + "/internal/secret\""},
	{"web/ui/ui.go", "package ui\n\nimport _ \"" + module + "/web/front\""},
	{"web/hosted/hosted.go", "package hosted\n\nimport _ \"" + module + "/web/ui\""},
	{"web/api/api.go", "package api\n\nimport (\n\t_ \"" + module + "/app\"\n\t_ \"" + module + "/web/front\"\n)"},
	{"client/go.mod", "module client"},
	{"client/client.go", "package client\n\nimport _ \"net/http\""},
	{"client/tests/client_test.go", "package client_test\n\nimport _ \"" + module + "/client\""},
	{"doorwardtest/doorwardtest.go", "package doorwardtest\n\nimport (\n\t_ \"database/sql\"\n\t_ \"" + module + "/web\"\n)"},
	{"node/node.go", "package node\n\nimport (\n\t_ \"" + module + "/store\"\n\t_ \"" + module + "/web\"\n)"},
	{"cmd/doorward/main.go", "package main\n\nimport _ \"" + module + "/node\""},
	{"examples/messaging/main.go", "package main\n\nimport _ \"" + module + "/client\""},
	{"tools/go.mod", "module tools"},
	{"tools/lint.go", "package tools\n\nimport _ \"" + module + "/store\""},
	{"app/testdata/x.go", "this is no Go"},
}

// violations returns a line for each violation of a rule in the tree at root.
func violations(t *testing.T, root string) []string {
	t.Helper()
	tree := parseTree(t, root)
	var out []string
	for _, r := range append(tree.imports(), tree.calls()...) {
		for _, rule := range archRules {
			if rule.breaks(r) {
				out = append(out, fmt.Sprintf("%s:%d: %s breaks the rule %q: %s", r.from.name, r.line, r, rule.name, rule.remedy))
			}
		}
	}
	return out
}

// writeTree writes files into a new folder, and then the violation, which may replace one of them.
func writeTree(t *testing.T, files []file, violation file) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range append(slices.Clone(files), violation) {
		if f.name == "" {
			continue
		}
		name := filepath.Join(root, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// position returns the file and line of "here" in a violation.
func position(violation file) string {
	before, _, _ := strings.Cut(violation.text, "here")
	return fmt.Sprintf("%s:%d", violation.name, strings.Count(before, "\n")+1)
}

// tree is the Go source under a root, without nested modules and testdata.
type tree struct {
	*token.FileSet
	folders []string // every folder, with Go in it or not
	files   []*source
}

// source is one file.
type source struct {
	*ast.File
	name       string // from the root, with slashes
	folder     string // "." for the root
	isTest     bool   // its name ends in _test.go
	isExternal bool   // a test whose package's name ends in _test
}

// readModules are the nested modules to which the rules apply, too. They aren't part of
// Doorward's own module, because go install refuses a version of a module with a replace.
var readModules = []string{"client", "client/tests", "examples/messaging"}

// ignoredFolders are folders that hold no source of ours.
var ignoredFolders = []string{"artifacts", "bin", "doorward-dev", "node_modules", "testdata"}

// parseTree parses the Go source under a root.
func parseTree(t *testing.T, root string) *tree {
	t.Helper()
	all := &tree{FileSet: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return all.addFolder(name, filepath.ToSlash(relative))
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		return all.addFile(name, filepath.ToSlash(relative))
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// addFolder returns fs.SkipDir for a folder to which the rules don't apply.
func (t *tree) addFolder(name, relative string) error {
	base := path.Base(relative)
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	nested := relative != "." && err == nil && !slices.Contains(readModules, relative)
	if nested || slices.Contains(ignoredFolders, base) || base != "." && strings.ContainsAny(base[:1], "._") {
		return filepath.SkipDir
	}
	t.folders = append(t.folders, relative)
	return nil
}

func (t *tree) addFile(name, relative string) error {
	parsed, err := parser.ParseFile(t.FileSet, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(relative, "_test.go")
	t.files = append(t.files, &source{
		File: parsed, name: relative, folder: path.Dir(relative),
		isTest: isTest, isExternal: isTest && strings.HasSuffix(parsed.Name.Name, "_test"),
	})
	return nil
}

func (t *tree) line(pos token.Pos) int { return t.Position(pos).Line }

// imports returns a reference for each package clause and each import.
func (t *tree) imports() (all []reference) {
	for _, f := range t.files {
		all = append(all, reference{from: f, line: t.line(f.Package)})
		for _, spec := range f.Imports {
			to, _ := strconv.Unquote(spec.Path.Value)
			all = append(all, reference{from: f, line: t.line(spec.Pos()), imports: to})
		}
	}
	return all
}

// calls returns the uses of our own functions and methods outside of tests. It type-checks only
// our own source, treats packages of other modules as empty and ignores errors. So it takes
// milliseconds instead of half a minute.
func (t *tree) calls() (all []reference) {
	checker := &ownTypes{tree: t, seen: map[string]*types.Package{}, uses: map[*ast.Ident]types.Object{}}
	for _, folder := range t.folders {
		checker.Import(path.Join(module, folder))
	}
	for _, f := range t.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			name, _ := n.(*ast.Ident)
			if used, ok := checker.uses[name].(*types.Func); ok {
				all = append(all, reference{from: f, line: t.line(name.Pos()), calls: used.FullName()})
			}
			return true
		})
	}
	return all
}

// ownTypes is a types.Importer that knows only the tree.
type ownTypes struct {
	*tree
	seen map[string]*types.Package // by import path
	uses map[*ast.Ident]types.Object
}

// Import never fails. It returns an empty package for one that isn't in the tree.
func (o *ownTypes) Import(importPath string) (*types.Package, error) {
	if p, ok := o.seen[importPath]; ok {
		return p, nil
	}
	empty := types.NewPackage(importPath, path.Base(importPath))
	empty.MarkComplete()
	o.seen[importPath] = empty // ends an import cycle, too
	var files []*ast.File
	for _, f := range o.files {
		if !f.isTest && path.Join(module, f.folder) == importPath {
			files = append(files, f.File)
		}
	}
	if len(files) > 0 {
		lenient := types.Config{Importer: o, Error: func(error) {}}
		o.seen[importPath], _ = lenient.Check(importPath, o.FileSet, files, &types.Info{Uses: o.uses})
	}
	return o.seen[importPath], nil
}

func (r reference) String() string {
	switch {
	case r.imports != "":
		return "importing " + r.imports
	case r.calls != "":
		return "using " + r.calls
	default:
		return "package " + r.from.Name.Name
	}
}

// floor returns the first name of a folder.
func floor(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	return first
}

// firstTwo returns the first two names of a folder: app/login of app/login/x.
func firstTwo(folder string) string {
	names := strings.SplitN(folder, "/", 3)
	return path.Join(names[:min(2, len(names))]...)
}

// allowedImports returns the folder of the feature and its siblings.
func allowedImports(folder string) []string {
	allowed := []string{firstTwo(folder) + "/*"}
	for _, name := range siblings[path.Base(firstTwo(folder))] {
		allowed = append(allowed, "app/"+name)
	}
	return allowed
}

// isStandard reports whether an import path is of the standard library.
func isStandard(imports string) bool { return !strings.Contains(floor(imports), ".") }

// isOnFloor reports whether the file is on that floor. It is false for tests.
func (f *source) isOnFloor(name string) bool { return !f.isTest && floor(f.folder) == name }

// isFeature reports whether the file is of a feature in app. It is false for tests and test
// support.
func (f *source) isFeature() bool {
	return f.isOnFloor("app") && f.folder != "app" && firstTwo(f.folder) != "app/access" && !f.isTestSupport()
}

// isTestSupport reports whether the file is of a package for tests, such as app/apptest.
// A rule keeps other packages from importing it.
func (f *source) isTestSupport() bool { return strings.HasSuffix(f.folder, "test") }

// ships reports whether the file ends up in the binary.
func (r reference) ships() bool {
	return !r.from.isTest && !r.from.isTestSupport() && slices.Contains(shippedFolders, floor(r.from.folder))
}

// isOurs reports whether the reference is an import of this module.
func (r reference) isOurs() bool {
	return r.imports == module || strings.HasPrefix(r.imports, module+"/")
}

// importsWithin reports whether the reference is an import of one of our folders; "web/*"
// means web and everything below.
func (r reference) importsWithin(folders ...string) bool {
	if !r.isOurs() {
		return false
	}
	to := "." + strings.TrimPrefix(r.imports, module)
	return slices.ContainsFunc(folders, func(folder string) bool {
		if above, ok := strings.CutSuffix(folder, "/*"); ok {
			return to == "./"+above || strings.HasPrefix(to, "./"+above+"/")
		}
		return path.Clean(to) == folder
	})
}

// importsOutside reports whether the reference imports one of our packages outside folders.
func (r reference) importsOutside(folders ...string) bool {
	return r.isOurs() && !r.importsWithin(folders...)
}
