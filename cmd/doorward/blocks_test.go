package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/internal/doctest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
)

// TestBlocksThatNoTestRuns: the blocks of commands in the documentation that tests don't run must be
// right too, as far as that can be checked without running them.
func TestBlocksThatNoTestRuns(t *testing.T) {
	for _, page := range doctest.Pages(t, "../..") {
		for _, b := range doctest.All(t, "../../"+page) {
			if b.SkipReason == "" {
				continue
			}
			for _, fault := range faultsOf(t, b.Script) {
				t.Errorf("%s: %s", b.Position, fault)
			}
		}
	}
}

// faultsOf returns the errors in commands that are not run: a syntax error for bash,
// unknown arguments of doorward, an unknown make target, a missing file.
func faultsOf(t *testing.T, script string) (faults []string) {
	t.Helper()
	if out, err := exec.Command("bash", "-n", "-c", script).CombinedOutput(); err != nil {
		faults = append(faults, string(out))
	}
	makefile := read(t, "Makefile")
	for _, words := range commandsIn(script) {
		switch name := filepath.Base(words[0]); {
		case name == "doorward":
			if err := parse(words[1:]); err != nil {
				faults = append(faults, strings.Join(words, " ")+": "+err.Error())
			}
		case name == "make" && len(words) > 1 && !strings.Contains(makefile, "\n"+words[1]+": "):
			faults = append(faults, "make has no target "+words[1])
		}
		for _, word := range words {
			if !repoPath.MatchString(word) {
				continue
			}
			if _, err := os.Stat("../../" + word); err != nil {
				faults = append(faults, word+" is not there")
			}
		}
	}
	return faults
}

var (
	repoPath   = regexp.MustCompile(`^(?:\./)?(?:app|bench|deploy|docs|e2e|examples|scripts|store|web)/[\w./-]+$`)
	separators = regexp.MustCompile(`\|\||&&|[|;&\n]`)
	prefixes   = regexp.MustCompile(`^(?:\w+=\S*|sudo|-u|doorward=.*)$`)
	quoted     = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// commandsIn splits a script into the words of its commands: approximately, but well
// enough for the pages.
func commandsIn(script string) (commands [][]string) {
	script = quoted.ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), "quoted")
	for _, text := range separators.Split(script, -1) {
		text, _, _ = strings.Cut(text, " #")
		text, _, _ = strings.Cut(text, " >")
		text, _, _ = strings.Cut(text, " <")
		words := strings.Fields(text)
		if len(words) > 2 && words[0] == "sudo" && words[1] == "-u" {
			words = words[3:]
		}
		for len(words) > 0 && prefixes.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			commands = append(commands, words)
		}
	}
	return commands
}

// Negative tests: blocks with errors.
func TestFaultsOfBlocksAreNoticed(t *testing.T) {
	for script, faults := range map[string]int{
		"sudo -u doorward doorward doctor --config /etc/doorward/doorward.yaml\n": 0,
		"A=b doorward serve --base-url 'https://a.example?x=1;2' && make build\n": 0,
		"deploy/compose/secrets.sh\n":     0,
		"if true; then\n":                 1,
		"doorward serve --bse-url x\n":    1,
		"doorward user evict ann\n":       1,
		"cd x && bin/doorward backup\n":   1,
		"make buidl\n":                    1,
		"deploy/compose/secret.sh\n":      1,
		"doorward user \\\n  list --al\n": 1,
	} {
		if got := faultsOf(t, script); len(got) != faults {
			t.Errorf("%q: %d faults, want %d: %q", script, len(got), faults, got)
		}
	}
}

// TestNoPasswordIsShownInAFlag: all users of a machine can read the flags of its
// processes.
func TestNoPasswordIsShownInAFlag(t *testing.T) {
	for _, page := range doctest.Pages(t, "../..") {
		for _, match := range passwordInFlag.FindAllString(read(t, page), -1) {
			t.Errorf("%s: name a file instead of the password in %s", page, match)
		}
	}
	walk(command(), func(cmd *cobra.Command) {
		for _, match := range passwordInFlag.FindAllString(cmd.Example, -1) {
			t.Errorf("%s: name a file instead of the password in %s", cmd.CommandPath(), match)
		}
	})
	for _, planted := range []string{"--smtp smtps://user:password@mail", "--database=postgres://app:…@db/doorward", "--smtp 'smtp://a:b@c'", "--from-literal=url='postgres://app:…@db/doorward'"} {
		if !passwordInFlag.MatchString(planted) {
			t.Errorf("%s is not detected", planted)
		}
	}
}

var passwordInFlag = regexp.MustCompile(`--[a-z-]+[ =](?:\w+=)?['"]?\w+://[^\s/@:]+:[^\s/@]+@\S*`)

// follow runs the commands of a page, with a free port in place of 8080 and other
// replacements as pairs for strings.NewReplacer. It returns the folder.
func follow(t *testing.T, page string, replace ...string) string {
	t.Helper()
	skipPages(t)
	runner := newRunner(t, replace...)
	runner.RunPage(t, page)
	return runner.Dir
}

// skipPages skips the test of a page in a short run.
func skipPages(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes some seconds; a short run follows README.md only")
	}
}

// newRunner returns a runner of pages in a new folder.
func newRunner(t *testing.T, replace ...string) doctest.Runner {
	t.Helper()
	installed.Program(t, "bash", "bash")
	installed.Program(t, "curl", "curl")
	installed.Program(t, "awk", "mawk")
	addr := freeport.AddressOn("localhost")
	return doctest.Runner{
		Dir: t.TempDir(), Env: []string{"DOORWARD_LISTEN=" + addr},
		Rewrite: strings.NewReplacer(append(replace, "localhost:8080", addr, "bin/doorward", "doorward")...).Replace,
	}
}

// writeFile writes a file below a folder.
func writeFile(t *testing.T, folder, name, text string) {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
