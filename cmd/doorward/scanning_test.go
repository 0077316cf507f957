package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/secret"
)

// TestScanningPage: the rule for gitleaks in docs/secret-scanning.md finds each key in each
// place, and nothing else.
func TestScanningPage(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/secret-scanning.md")
	gitleaks := needGitleaks(t)
	folder, want := t.TempDir(), map[string]int{}
	for i, prefix := range []string{"dwk_", "dws_", "dwo_"} {
		for j, place := range []string{
			"%s", "key: \"%s\"", "KEY=%s", "MY_KEY_%s", "x%s", "9%s_old", "Authorization: Bearer %s\r", "{\"key\":\"%s\"}", "https://h/?k=%s&x=1", "'%s',", "before%sbehind-it",
		} {
			key := secret.NewKey(prefix).Reveal()
			writeFile(t, folder, fmt.Sprintf("file-%d-%d.txt", i, j), fmt.Sprintf("a line\n"+place+"\nanother\n", key))
			want[key]++
		}
	}
	key := secret.NewKey("dwk_").Reveal()
	writeFile(t, folder, "others.txt", strings.Join([]string{
		"dwk_" + strings.Repeat("x", 49), "dwk_" + strings.Repeat("A", 49), "dwx_" + key[4:], key[4:], key[:52] + "-", "dw_" + key[4:], "Dwk_" + key[4:], "dwk-" + key[4:],
	}, "\n"))

	rules := filepath.Join(t.TempDir(), "gitleaks.toml")
	writeFile(t, filepath.Dir(rules), "gitleaks.toml", "[[rules]]"+between(t, page, "[[rules]]", "```"))
	found := map[string]int{}
	for _, leak := range scan(t, gitleaks, rules, folder) {
		found[leak]++
	}
	for key := range want {
		if found[key] != 1 {
			t.Errorf("the rule of gitleaks finds a key %d times, want once", found[key])
		}
		delete(found, key)
	}
	if len(found) > 0 {
		t.Errorf("it finds %q, which are no keys", slices.Sorted(maps.Keys(found)))
	}
}

// TestScanningPageForGitHub: the fields of the custom pattern, put together, find keys.
func TestScanningPageForGitHub(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/secret-scanning.md")
	field := func(name string) string {
		return strings.ReplaceAll(between(t, page, "| "+name+" | `", "`"), `\|`, "|")
	}
	format := field("Secret format")
	if !strings.Contains(page, "```text\n"+format+"\n```") || !strings.Contains(page, "regex = '''"+format+"'''") {
		t.Errorf("the rules of the page differ from %s", format)
	}
	rule := regexp.MustCompile("(?s)(?:" + field("Before secret") + ")(" + format + ")(?:" + field("After secret") + ")")
	for _, prefix := range []string{"dwk_", "dws_", "dwo_"} {
		key := secret.NewKey(prefix).Reveal()
		for _, text := range []string{key, "x" + key, "KEY_" + key + "\n", "\n" + key + "\"", "9" + key + "_"} {
			if got := rule.FindStringSubmatch(text); got == nil || got[1] != key {
				t.Errorf("the pattern finds %q in a text with a key of %s", got, prefix)
			}
		}
	}
}

// between returns the text between two others; it fails the test if they aren't there.
func between(t *testing.T, page, from, to string) string {
	t.Helper()
	_, after, found := strings.Cut(page, from)
	text, _, ended := strings.Cut(after, to)
	if !found || !ended {
		t.Fatalf("the page has nothing between %q and %q", from, to)
	}
	return text
}

// needGitleaks returns the path of gitleaks, which it builds if necessary.
func needGitleaks(t *testing.T) string {
	t.Helper()
	fulltest.Only(t, "gitleaks is built from source, in minutes; TestScanningPageForGitHub has the pattern")
	for _, file := range []string{"go.mod", "go.sum"} { // so that go test reruns this test when they change
		read(t, "tools/gitleaks/"+file)
	}
	out, err := exec.Command("../../tools/gitleaks/build.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// scan returns the secrets that gitleaks finds in a folder.
func scan(t *testing.T, gitleaks, rules, folder string) (found []string) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command(gitleaks, "dir", folder, "--config", rules, "--report-path", report, "--report-format", "json", "--exit-code", "0", "--no-banner")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var leaks []struct{ Secret string }
	if err := json.Unmarshal(text, &leaks); err != nil {
		t.Fatal(err)
	}
	for _, leak := range leaks {
		found = append(found, leak.Secret)
	}
	return found
}
