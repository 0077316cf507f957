package smtp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/smtp/smtptest"
)

// files lists the directory, and fails the test if it holds anything but mails.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".eml") {
			t.Errorf("left behind: %s", e.Name())
		}
		names = append(names, filepath.Join(dir, e.Name()))
	}
	return names
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestFileIsPrivateAndKeepsLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool", "mails")
	if err := mustOpen(t, "file:"+dir).Send(testContext(t), sample()); err != nil {
		t.Fatal(err)
	}
	mails := files(t, dir)
	if len(mails) != 1 {
		t.Fatalf("%d files, want 1", len(mails))
	}
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, mails[0]: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
	raw := read(t, mails[0])
	for _, line := range []string{link, code, ".begins with a dot"} {
		if !regexp.MustCompile("(?m)^" + regexp.QuoteMeta(line) + "$").Match(raw) {
			t.Errorf("%s is not alone on a line of\n%s", line, raw)
		}
	}
	if bytes.ContainsRune(raw, '\r') {
		t.Error("the file holds CR")
	}
	got := smtptest.Parse(t, raw)
	if m := sample(); got.Subject != m.Subject || got.Text != m.Text+"\n" || got.HTML != m.HTML+"\n" {
		t.Errorf("the file is parsed as %+v", got)
	}
}

func TestDirectoryIsTakenLiterally(t *testing.T) {
	t.Chdir(t.TempDir())
	for dest, dir := range map[string]string{
		"file:mails":                       "mails",
		"file:a b?c#d%20":                  "a b?c#d%20",
		"FILE:upper":                       "upper",
		"file://" + absolute(t, "slashes"): "slashes", // three of them
	} {
		if err := mustOpen(t, dest).Send(testContext(t), sample()); err != nil {
			t.Errorf("%s: %v", dest, err)
			continue
		}
		if got := len(files(t, dir)); got != 1 {
			t.Errorf("%s: %d mails in %s, want 1", dest, got, dir)
		}
	}
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDirectoryStaysWhereItWasOpened(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	transport := mustOpen(t, "file:mails")
	t.Chdir(t.TempDir())
	if err := transport.Send(testContext(t), sample()); err != nil {
		t.Fatal(err)
	}
	if got := len(files(t, filepath.Join(home, "mails"))); got != 1 {
		t.Errorf("%d mails, want 1", got)
	}
}

func TestFilesSortByTime(t *testing.T) {
	d := mustOpen(t, "file:"+t.TempDir()).(*directory)
	var names []string
	for range 1000 {
		names = append(names, d.newName())
	}
	ahead := time.Now().Add(time.Hour)
	names = append(names, ahead.UTC().Format(timeFormat))
	d.last = ahead.UnixNano() // the clock has stepped back by an hour
	for range 10 {
		names = append(names, d.newName())
	}
	if !slices.IsSorted(names) {
		t.Error("names are not in the order of creation")
	}
	form := regexp.MustCompile(`^\d{8}T\d{6}\.\d{9}Z-[A-Z2-7]{26,}\.eml$`)
	if name := d.newName(); !form.MatchString(name) {
		t.Errorf("name %s is not of the form %s", name, form)
	}
}

// Two processes write together while this one reads: every file with the name of a mail
// is complete, and no mail is lost.
func TestProcessesShareADirectory(t *testing.T) {
	dir := t.TempDir()
	var inputs []io.Closer
	var processes []*exec.Cmd
	for range 2 {
		cmd := jobCommand(t, "write", "file:"+dir)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("the process prints %q, %v", line, err)
		}
		inputs, processes = append(inputs, in), append(processes, cmd)
	}
	for _, in := range inputs {
		in.Close() // both begin to write
	}
	done := make(chan error)
	go func() { done <- errors.Join(processes[0].Wait(), processes[1].Wait()) }()
	watch(t, dir, done)

	ids := map[string]bool{}
	for _, file := range files(t, dir) {
		ids[smtptest.Parse(t, read(t, file)).Header.Get("Message-Id")] = true
	}
	if want := 2 * mailsPerWriter; len(ids) != want {
		t.Errorf("%d different mails, want %d", len(ids), want)
	}
}

// watch reads every mail as soon as it appears, until done.
func watch(t *testing.T, dir string, done <-chan error) {
	t.Helper()
	seen := map[string]bool{}
	for {
		names, err := filepath.Glob(filepath.Join(dir, "*.eml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				if got := smtptest.Parse(t, read(t, name)).HTML; got != sample().HTML+"\n" {
					t.Errorf("%s is incomplete: HTML %q", name, got)
				}
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestDeletedDirectoryIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mails")
	transport := mustOpen(t, "file:"+dir)
	for range 2 {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := transport.Send(testContext(t), sample()); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(files(t, dir)); got != 1 {
		t.Errorf("%d mails, want 1", got)
	}
}

func TestCheckOfADirectoryLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, dest := range []string{dir, filepath.Join(dir, "not", "there")} {
		if err := mustOpen(t, "file:"+dest).Check(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestUnusableDirectoryIsTemporary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mails")
	transport := mustOpen(t, "file:"+dir)
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file is in its place
		t.Fatal(err)
	}
	for name, err := range map[string]error{"send": transport.Send(testContext(t), sample()), "check": transport.Check(testContext(t))} {
		if err == nil || IsPermanent(err) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want a temporary error that names %s", name, err, dir)
		}
	}
	if transport, err := Open("file:"+dir, sender, "", quiet); err == nil || transport != nil {
		t.Errorf("opening it again: %v, %v, want only an error", transport, err)
	}
}

func TestEndedContextWritesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := mustOpen(t, "file:"+dir).Send(ctx, sample()); !errors.Is(err, context.Canceled) || IsPermanent(err) {
		t.Errorf("got %v, want a temporary error by cancellation", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}
