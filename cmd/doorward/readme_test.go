package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
)

// block is a fenced block of README.md: "sh" is for the reader's shell, "sh background"
// for a second one, "text" and "json" are the output of the block before.
type block struct{ kind, text string }

// blocksOf returns the blocks of a page. Calls name the page, so that TestEveryShellBlockIsRun
// finds that a test follows it.
func blocksOf(t *testing.T, page string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range fence.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block{found[1], found[2]})
	}
	return blocks
}

var fence = regexp.MustCompile("(?ms)^```(\\w[\\w ]*)\n(.*?)^```$")

// read returns a file at the root.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// outputAfter returns the output that README.md shows after block i, or nothing.
func outputAfter(blocks []block, i int) string {
	if i+1 < len(blocks) && (blocks[i+1].kind == "text" || blocks[i+1].kind == "json") {
		return blocks[i+1].text
	}
	return ""
}

// TestREADMEWalk follows README.md in order and compares the output.
func TestREADMEWalk(t *testing.T) {
	installed.Program(t, "sh", "dash")
	installed.Program(t, "curl", "curl")
	blocks, addr, dir := blocksOf(t, "../../README.md"), freeport.AddressOn("localhost"), t.TempDir()
	endDev := startDev(t, addr, dir)
	answers := walkThrough(t, blocks, addr, dir)
	for i, b := range blocks {
		switch b.kind {
		case "sh background":
			compareOutput(t, b.text, outputAfter(blocks, i), strings.ReplaceAll(endDev(), addr, "localhost:8080"))
		case "sh":
			compareOutput(t, b.text, outputAfter(blocks, i), strings.ReplaceAll(answers[0], addr, "localhost:8080"))
			answers = answers[1:]
		}
	}
}

// startDev does what "make run" does. The returned function ends it and returns its
// output.
func startDev(t *testing.T, addr, dir string) func() string {
	t.Helper()
	var out bytes.Buffer
	dev := exec.Command("doorward", "dev", "--listen", addr)
	dev.Dir, dev.Stdout = dir, &out
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Process.Kill() })
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(waitTimeout); ; <-tick.C {
		res, err := http.Get("http://" + addr + "/readyz")
		if err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("dev is not ready: %v", err)
		}
	}
	return func() string {
		dev.Process.Signal(syscall.SIGTERM)
		if err := dev.Wait(); err != nil {
			t.Error(err)
		}
		return out.String()
	}
}

// walkThrough runs the blocks for the shell in one shell and returns the output of
// each.
func walkThrough(t *testing.T, blocks []block, addr, dir string) []string {
	t.Helper()
	const end = "--- end of a block\n"
	var script strings.Builder
	for _, b := range blocks {
		if b.kind == "sh" {
			script.WriteString(b.text + "echo '" + strings.TrimSpace(end) + "'\n")
		}
	}
	shell := exec.Command("sh")
	shell.Dir, shell.Stdin = dir, strings.NewReader(strings.ReplaceAll(script.String(), "localhost:8080", addr))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(string(out), end)
}

func compareOutput(t *testing.T, commands, shown, answered string) {
	t.Helper()
	if diff := cmp.Diff(normalise(shown), normalise(answered)); diff != "" {
		t.Errorf("README.md (-) differs from the output (+):\n%s\n%s", commands, diff)
	}
}

// unstable lists what differs from run to run, and its replacement.
var unstable = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\b(inv|req|ses|tnt|usr)_[a-z2-7]{26}\b`), "$1_…"},
	{regexp.MustCompile(`(?m)(^|")[A-Za-z0-9_-]{43}($|")`), "${1}TOKEN$2"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`curl/[\w.-]+`), "curl"},
	{regexp.MustCompile(`Doorward \S+ is ready`), "Doorward is ready"},
}

// normalise replaces what differs from run to run, and writes JSON with one member a line.
func normalise(text string) string {
	text = strings.TrimSpace(text) + "\n"
	if i := strings.IndexByte(text, '{'); i >= 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(text[i:])); err == nil {
			text = text[:i] + strings.ReplaceAll(compact.String(), `,"`, ",\n\"")
		}
	}
	for _, u := range unstable {
		text = u.pattern.ReplaceAllString(text, u.replacement)
	}
	return text
}

// TestREADMEWalk runs "doorward dev" in place of "make run", so they must be the same.
func TestREADMECommands(t *testing.T) {
	makefile := read(t, "Makefile")
	if !strings.Contains(makefile, "\nrun: ") || !strings.Contains(makefile, "\n\tgo run ./cmd/doorward dev\n") {
		t.Error("make run is not go run ./cmd/doorward dev")
	}
	for _, b := range blocksOf(t, "../../README.md") {
		if b.kind == "sh background" && b.text != "make run\n" {
			t.Errorf("unknown command %q", b.text)
		}
	}
}
