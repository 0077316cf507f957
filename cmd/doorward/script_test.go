package main

import (
	"bytes"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/internal/waittest"
)

// The scripts of commands are in testdata/*.txtar. Besides the commands of testscript they use:
//
//	exits CODE COMMAND...          runs the command and expects the exit code
//	ready                          waits until the server at $URL is ready
//	terminate [HUP|INT]            sends SIGTERM, or that signal, to the background process
//	http [-s SESSION | -k KEY] [-any] METHOD PATH [BODY]
//	                               asks the server at $URL, prints status and body;
//	                               -any sends "If-Match: *"
//	sees METHOD PATH REGEXP        asks until the answer matches
//	mail ADDRESS [TEXT]            waits for a mail to the address, with the text, in mail/, prints it
//	totp SEED                      prints the present code of an authenticator app
//	newer-schema                   makes the database's schema newer than the program's
//	tamper SQL...                  runs statements on the database
//	private FILE                   fails unless only the owner can read it
//	capture NAME REGEXP            sets a variable to the first group in stdout
//
// $ADDR and $ADMIN are free addresses of loopback, $URL is http:// and $ADDR,
// $DATABASE a new database.
func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"doorward": main})
}

// program is the path of the doorward that the tests run, first on $PATH. Under the race detector a
// command takes four times as long, so program is built without it. instrumented is the path of the
// folder that has this test's binary, perhaps with the detector, under the name doorward.
var program, instrumented string

// diskFolder is the environment variable that names the folder on the small disk, in the process
// that has one (see disk_test.go). There the program is this test's binary, even under the race
// detector.
const diskFolder = "DOORWARD_TEST_DISK"

type suite struct{ m *testing.M }

// Run finds or builds the program, runs the tests and removes temporary files.
func (s suite) Run() int {
	folder, err := prepare()
	code := 1
	if err == nil {
		code = s.m.Run()
	}
	if err := errors.Join(err, os.RemoveAll(folder)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// prepare sets program and instrumented. It returns the folder to remove, if there is any.
func prepare() (folder string, err error) {
	if program, err = exec.LookPath("doorward"); err != nil {
		return "", err
	}
	instrumented = filepath.Dir(program)
	if !raceEnabled || os.Getenv(diskFolder) != "" {
		return "", nil
	}
	if folder, err = os.MkdirTemp("", "doorward-test"); err != nil {
		return "", err
	}
	program = filepath.Join(folder, "doorward")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		return folder, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return folder, os.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// postgresScripts are the scripts that run on PostgreSQL, too: those with several servers on one
// database. If this binary runs under the race detector, so does the program there. What a single
// command does on PostgreSQL is tested by package store/storetest, the replacement of keys while
// servers run by package node.
var postgresScripts = []string{"serve", "agreement"}

func TestSessions(t *testing.T) {
	p := testscript.Params{Dir: "testdata"}
	if testing.Short() {
		p = testscript.Params{Files: shortSessions}
	}
	runScripts(t, p, "sqlite:doorward.db")
}

// shortSessions are those of a short run, of the commands used most. Each session starts
// dozens of processes, most of which migrate a database.
var shortSessions = []string{"testdata/admin.txtar", "testdata/help.txtar", "testdata/print.txtar", "testdata/serve.txtar", "testdata/user.txtar"}

func TestSessionsOnPostgres(t *testing.T) {
	path := instrumented + string(os.PathListSeparator) + os.Getenv("PATH")
	for _, name := range postgresScripts {
		runScripts(t, testscript.Params{Files: []string{"testdata/" + name + ".txtar"}}, pgtest.DSN(t), "PATH", path)
	}
}

// TestSessionsBetweenDatabases: in testdata/both $DATABASE is SQLite and $OTHER
// PostgreSQL, of its own for each script.
func TestSessionsBetweenDatabases(t *testing.T) {
	files, err := filepath.Glob("testdata/both/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, file := range files {
		runScripts(t, testscript.Params{Files: []string{file}}, "sqlite:doorward.db", "OTHER", pgtest.DSN(t))
	}
}

// runScripts runs scripts with the variables set, given as names and values alternately.
func runScripts(t *testing.T, p testscript.Params, database string, variables ...string) {
	p.RequireExplicitExec, p.RequireUniqueNames = true, true
	p.Setup = func(env *testscript.Env) error {
		addr := freeport.AddressOn("localhost")
		env.Setenv("ADDR", addr)
		env.Setenv("URL", "http://"+addr)
		env.Setenv("ADMIN", freeport.AddressOn("localhost"))
		env.Setenv("DATABASE", database)
		for pair := range slices.Chunk(variables, 2) {
			env.Setenv(pair[0], pair[1])
		}
		return nil
	}
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "ready": ready, "terminate": terminate, "http": ask, "sees": sees, "mail": mail, "totp": totpCode, "newer-schema": newerSchema, "tamper": tamper, "private": private, "capture": capture,
	}
	testscript.Run(t, p)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// waitTimeout is the limit of all waits.
const waitTimeout = waittest.Limit

// eventually polls until isDone returns true.
func eventually(ts *testscript.TestScript, description string, isDone func() bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(waitTimeout); !isDone(); <-tick.C {
		if time.Now().After(end) {
			ts.Fatalf("%s: not within %v", description, waitTimeout)
		}
	}
}

func ready(ts *testscript.TestScript, _ bool, _ []string) {
	eventually(ts, "ready", func() bool {
		res, err := http.Get(ts.Getenv("URL") + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func terminate(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]os.Signal{"": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": os.Interrupt}[strings.Join(args, "")]
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(sig))
	}
}

func ask(ts *testscript.TestScript, _ bool, args []string) {
	header, media, client := http.Header{}, "application/json", *http.DefaultClient
	switch args[0] {
	case "-form":
		media, args = "application/x-www-form-urlencoded", args[1:]
	case "-stay": // where the address leads
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		args = args[1:]
	case "-s":
		header.Set("Cookie", "JSESSIONID="+args[1])
		args = args[2:]
	case "-k":
		header.Set("Authorization", "Bearer "+args[1])
		args = args[2:]
	}
	if args[0] == "-any" { // replace any version
		header.Set("If-Match", "*")
		args = args[1:]
	}
	body := strings.Join(args[2:], " ")
	req, err := http.NewRequest(args[0], ts.Getenv("URL")+args[1], strings.NewReader(body))
	ts.Check(err)
	req.Header = header
	if body != "" {
		req.Header.Set("Content-Type", media)
	}
	_, err = io.WriteString(ts.Stdout(), answerBy(ts, &client, req))
	ts.Check(err)
}

// answer returns the status on a line, then the body.
func answer(ts *testscript.TestScript, req *http.Request) string {
	return answerBy(ts, http.DefaultClient, req)
}

// answerBy is answer for a client. Of an answer that leads elsewhere it returns the address, too.
func answerBy(ts *testscript.TestScript, client *http.Client, req *http.Request) string {
	res, err := client.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	status := res.Status + "\n"
	if to := res.Header.Get("Location"); to != "" {
		status += "Location: " + to + "\n"
	}
	return status + string(body)
}

func sees(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[2])
	req, err := http.NewRequest(args[0], ts.Getenv("URL")+args[1], nil)
	ts.Check(err)
	eventually(ts, args[1]+" with "+args[2], func() bool { return want.MatchString(answer(ts, req)) })
}

// totpCode prints the present code of an authenticator app with the seed, as Doorward answers it.
func totpCode(ts *testscript.TestScript, _ bool, args []string) {
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(args[0])
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), totp.Code(seed, totp.Step(time.Now())))
}

// mail waits for a mail to the address, of those with the text if there is one, and prints it.
func mail(ts *testscript.TestScript, _ bool, args []string) {
	to := []byte("\nTo: <" + args[0] + ">\n")
	eventually(ts, "a mail to "+args[0], func() bool {
		names, err := filepath.Glob(ts.MkAbs("mail/*.eml"))
		ts.Check(err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			ts.Check(err)
			if bytes.Contains(text, to) && (len(args) == 1 || bytes.Contains(text, []byte(args[1]))) {
				_, err := ts.Stdout().Write(text)
				ts.Check(err)
				return true
			}
		}
		return false
	})
}

func capture(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("stdout has no %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

func tamper(ts *testscript.TestScript, _ bool, statements []string) {
	db, err := openSQL(ts.Getenv("DATABASE"), ts.MkAbs("."))
	ts.Check(err)
	defer db.Close()
	for _, s := range statements {
		_, err = db.Exec(s)
		ts.Check(err)
	}
}

// newerSchema makes the database look as if a later version had migrated it.
func newerSchema(ts *testscript.TestScript, _ bool, _ []string) {
	db, err := openSQL(ts.Getenv("DATABASE"), ts.MkAbs("."))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(`UPDATE goose_db_version SET version_id = 9999 WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	ts.Check(err)
}

func private(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if mode := info.Mode(); mode.Perm() != 0o600 || !mode.IsRegular() {
		ts.Fatalf("%s has the mode %v", args[0], mode)
	}
}
