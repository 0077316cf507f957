// Package doctest runs the shell commands of a Markdown page as a reader would
// type them, and compares what they print with what the page says.
//
//	page := doctest.Read(t, "../../docs/tutorial.md")
//	runner := doctest.Runner{Dir: t.TempDir()}
//	for _, block := range page {
//		runner.Run(t, block)
//	}
//
// # What is run
//
// A fenced block of the language sh is run by bash, which stops at the first
// command that fails. The first text block before the next commands is the expected
// output, including standard error. In it "…" stands for anything within a line,
// and alone on its line for any number of lines. Without such a block any output is
// accepted.
//
// A block with the fence "sh background" runs until the test ends, and the next
// block waits until it has printed its text. A block "console REASON" is not run; the
// reason is required. bash, shell, zsh, shell-session and terminal are refused. Blocks of
// other languages are ignored.
//
// Each block has its own shell. Files, the working directory, exported variables and
// those with a lower-case name carry over to the next block. A background block begins in
// the runner's folder, and neither gets these variables nor passes its own on.
package doctest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/waittest"
)

// Block is some commands and what they print.
type Block struct {
	Position   string // file:line of the fence, for messages
	Script     string // what stands between the fences
	Background bool
	Output     string // what it prints, with … as in the package comment
	HasOutput  bool   // whether the page says what it prints, which may be nothing
	SkipReason string // why no test runs it; empty: a test has to
}

// Read returns the blocks of a Markdown file that are to be run, in their order.
// It fails the test when there are none, and for the reasons of All.
func Read(tb testing.TB, file string) []Block {
	tb.Helper()
	blocks := slices.DeleteFunc(All(tb, file), func(b Block) bool { return b.SkipReason != "" })
	if len(blocks) == 0 {
		tb.Fatalf("%s: there is no block of the language sh", file)
	}
	return blocks
}

// All returns all blocks with commands, including those that are not run; there may
// be none. It fails the test if a fence isn't closed, or is followed by a language that the
// package comment refuses, by another word than background after sh, or by console without
// a reason.
func All(tb testing.TB, file string) []Block {
	tb.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	blocks, err := parse(file, string(page))
	if err != nil {
		tb.Fatal(err)
	}
	return blocks
}

// rootPages are the pages at the root of the tree. A test there compares them with the files.
var rootPages = []string{"AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"}

// Pages returns the Markdown pages at the root of the tree and in docs and docs/decisions, and
// those of changelog, as paths from the root. It doesn't list the root: go test repeats a
// test if the time of an entry in a listed folder has changed, and builds change those of bin
// and artifacts.
func Pages(tb testing.TB, root string) []string {
	tb.Helper()
	pages := append(slices.Clone(rootPages), "changelog/README.md", "changelog/0.9.0.md")
	for _, folder := range []string{"docs", "docs/decisions"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil || len(found) == 0 {
			tb.Fatalf("no pages in %s: %v", filepath.Join(root, folder), err)
		}
		for _, page := range found {
			pages = append(pages, folder+"/"+filepath.Base(page))
		}
	}
	return pages
}

const fence = "```"

func parse(file, page string) ([]Block, error) {
	var blocks []Block
	lines := strings.SplitAfter(page, "\n")
	hasText := false // the last block's output was read; a further text block isn't its output
	for i := 0; i < len(lines); i++ {
		info, isFence := strings.CutPrefix(lines[i], fence)
		if !isFence {
			continue
		}
		body, n, ok := readBody(lines[i+1:])
		place := fmt.Sprintf("%s:%d", file, i+1)
		if !ok {
			return nil, fmt.Errorf("%s: the block is not closed", place)
		}
		block, hasCommands, err := parseInfo(strings.TrimSpace(info))
		block.Position, block.Script = place, body
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", place, err)
		case hasCommands:
			blocks, hasText = append(blocks, block), false
		case strings.TrimSpace(info) == "text":
			if last := len(blocks) - 1; last >= 0 && !hasText {
				blocks[last].Output, blocks[last].HasOutput = body, true
			}
			hasText = true
		}
		i += n
	}
	return blocks, nil
}

// parseInfo reads the text after a fence, and reports whether the block has commands.
func parseInfo(info string) (b Block, hasCommands bool, err error) {
	language, more, _ := strings.Cut(info, " ")
	switch language {
	case "sh":
		b.Background = more == "background"
		if more != "" && !b.Background {
			err = fmt.Errorf("unknown sh %q: write sh, sh background, or console and why no test can run it", more)
		}
	case "console":
		if b.SkipReason = more; more == "" {
			err = errors.New("the reason why no test runs this is missing: write sh, or the reason after console")
		}
	case "bash", "shell", "zsh", "shell-session", "terminal":
		err = fmt.Errorf("write sh, not %s, and a test that runs it", language)
	default:
		return b, false, nil
	}
	return b, true, err
}

// readBody returns the lines up to the closing fence, and their number including it.
func readBody(lines []string) (body string, n int, ok bool) {
	for i, line := range lines {
		if strings.TrimSpace(line) == fence {
			return strings.Join(lines[:i], ""), i + 1, true
		}
	}
	return "", 0, false
}

// Runner runs the blocks of a page in a folder.
type Runner struct {
	Dir string   // where the commands run
	Env []string // NAME=value, besides the environment of the test

	// Rewrite, unless nil, changes commands and output before they are used, for
	// example the ports that the page names.
	Rewrite func(string) string
}

// RunPage runs all blocks of a Markdown file.
func (r Runner) RunPage(tb testing.TB, file string) {
	tb.Helper()
	for _, block := range Read(tb, file) {
		r.Run(tb, block)
	}
}

// Run runs a block and fails the test if a command fails or its output differs from
// the page. Background commands end with the test, even if it is killed.
func (r Runner) Run(tb testing.TB, b Block) {
	tb.Helper()
	if r.Rewrite != nil {
		b.Script, b.Output = r.Rewrite(b.Script), r.Rewrite(b.Output)
	}
	run := r.foreground
	if b.Background {
		run = func(b Block) (string, error) { return r.background(tb, b) }
	}
	if printed, err := run(b); err != nil {
		tb.Fatalf("%s: %v\n%s\nprinted:\n%s\nThe page says:\n%s", b.Position, err, b.Script, printed, b.Output)
	}
}

var errOutputDiffers = errors.New("it prints something else")

func (r Runner) foreground(b Block) (printed string, err error) {
	var out bytes.Buffer
	sh := r.shell(withState, b.Script, filepath.Join(r.Dir, stateFile))
	sh.Stdout, sh.Stderr = &out, &out
	if err := sh.Start(); err != nil {
		return "", err
	}
	kill := time.AfterFunc(waittest.Limit, func() { _ = syscall.Kill(-sh.Process.Pid, syscall.SIGKILL) })
	err = sh.Wait()
	switch {
	case !kill.Stop():
		err = fmt.Errorf("not done after %v", waittest.Limit)
	case err == nil && b.HasOutput && !pattern(`\A`, b.Output, `\z`).MatchString(out.String()):
		err = errOutputDiffers
	}
	return out.String(), err
}

// stateFile is the file in the runner's folder that keeps the variables and the working
// directory between blocks.
const stateFile = ".doctest"

// withState runs a script, $0, with the variables of earlier ones, and saves its variables
// in the state file, $1, if it succeeds. It uses eval, so that a here-document or a comment at
// the end can't swallow what follows.
const withState = `[ ! -e "$1" ] || . "$1"
eval "$0"
{
	export -p
	for _name in $(compgen -v | grep '^[a-z]'); do declare -p "$_name"; done
	printf 'cd %q\n' "$PWD"
} >"$1"`

// shell returns a bash that stops at the first error, in its own process group.
func (r Runner) shell(script string, args ...string) *exec.Cmd {
	sh := exec.Command("bash", append([]string{"-euo", "pipefail", "-c", script}, args...)...)
	sh.Dir, sh.Env = r.Dir, append(os.Environ(), r.Env...)
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return sh
}

// killOnClose runs a script, $0, and ends it, with all that it has started, when its own
// standard input is closed.
const killOnClose = `{ bash -euo pipefail -c "$0" </dev/null || :; echo "` + ended + `"; } &
read -r _ || :
trap "" TERM
kill -TERM 0
wait`

const ended = "[the script has ended]"

func (r Runner) background(tb testing.TB, b Block) (printed string, err error) {
	if !b.HasOutput {
		return "", errors.New("a background block needs a text block with what it prints when it is ready")
	}
	out := &output{want: pattern("(?m)^", b.Output, ""), ready: make(chan bool, 1)}
	sh := r.shell(killOnClose, b.Script)
	sh.Stdout, sh.Stderr = out, out
	stdin, err := sh.StdinPipe()
	if err == nil {
		err = sh.Start()
	}
	if err != nil {
		return "", err
	}
	tb.Cleanup(func() {
		_ = stdin.Close() // ends it
		_ = sh.Wait()     // always an error: it ends by a signal
		if tb.Failed() {
			tb.Logf("%s:\n%s\nprinted:\n%s", b.Position, b.Script, out)
		}
	})
	select {
	case ready := <-out.ready:
		if !ready {
			err = errOutputDiffers
		}
	case <-time.After(waittest.Limit):
		err = fmt.Errorf("not ready after %v", waittest.Limit)
	}
	return out.String(), err
}

// output collects what is printed, and reports once whether it matches.
type output struct {
	want  *regexp.Regexp
	ready chan bool // receives true when it matches, or false when the script has ended before

	mu       sync.Mutex
	text     bytes.Buffer
	reported bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	ready := o.want.Match(o.text.Bytes())
	if !o.reported && (ready || bytes.Contains(o.text.Bytes(), []byte(ended))) {
		o.reported = true
		o.ready <- ready
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// pattern returns the regular expression for text with "…" as in the package
// comment.
func pattern(before, text, after string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(before)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line == "…" {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `[ \r]*\n`)
	}
	b.WriteString(after)
	return regexp.MustCompile(b.String())
}
