package doorward_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// docs/reliability.md says what happens when things around Doorward fail. These tests check
// that its table has all reliabilityFaults, and that the tests that it names exist.

const reliabilityPage = "docs/reliability.md"

// reliabilityFaults are the faults for which the page must have a row.
var reliabilityFaults = []string{
	"disk full, SQLite", "disk full, PostgreSQL", "database gone", "database restarted", "database slow", "database locked",
	"primary lost", "primary replaced, and still running", "synchronous standby gone",
	"node killed", "a node's clock is wrong", "the clock of PostgreSQL jumps", "the clock of SQLite's machine jumps forward",
	"the clock of SQLite's machine jumps backward", "a node with other settings", "mail server failing", "some mail hosts slow or dead",
	"a node killed while it sends to webhooks", "10,000 endpoints of webhooks that hang or refuse",
	"2,000 slow connections", "too many connections", "100,000 requests of junk", "HTTP/2 out of order",
}

// reliabilityRow is the row of a fault on the page. Its cells are what the caller sees, what is
// not lost, how Doorward recovers, the tests and the measurements.
type reliabilityRow struct {
	fault string
	cells []string
}

func reliabilityRows(page string) (rows []reliabilityRow) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 8 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[1]) == "Fault" {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, reliabilityRow{cells[1], cells[2:7]})
	}
	return rows
}

// reliabilityFlaws returns what is wrong with the rows. tests has the names of the tests that
// exist.
func reliabilityFlaws(rows []reliabilityRow, tests map[string]bool) (flaws []string) {
	seen := map[string]int{}
	for _, r := range rows {
		seen[r.fault]++
		if !slices.Contains(reliabilityFaults, r.fault) {
			flaws = append(flaws, r.fault+": no fault that reliability_test.go knows")
		}
		if slices.Contains(r.cells, "") {
			flaws = append(flaws, r.fault+": has an empty cell")
		}
		for _, name := range strings.FieldsFunc(r.cells[3], isSeparator) {
			if !tests[name] {
				flaws = append(flaws, r.fault+": names "+name+", which is no test here")
			}
		}
	}
	for _, fault := range reliabilityFaults {
		if seen[fault] != 1 {
			flaws = append(flaws, fault+": must have exactly one row")
		}
	}
	return flaws
}

func TestReliability(t *testing.T) {
	page, err := os.ReadFile(reliabilityPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, flaw := range reliabilityFlaws(reliabilityRows(string(page)), testNames(t)) {
		t.Errorf("%s: %s", reliabilityPage, flaw)
	}
}

// Each kind of flaw is found.
func TestFlawsOfTheReliabilityPageAreNoticed(t *testing.T) {
	tests := map[string]bool{"TestLogin": true}
	page := func(last string) string {
		text := "| Fault | a | b | c | d | e |\n|---|---|---|---|---|---|\n"
		for _, fault := range reliabilityFaults[1:] {
			text += "| " + fault + " | 503 | all | itself | TestLogin, TestLogin | 1 s |\n"
		}
		return text + last
	}
	first := reliabilityFaults[0]
	for last, want := range map[string]string{
		"| " + first + " | 503 | all | itself | TestLogin | 1 s |\n": "",
		"": first + ": must have exactly one row",
		"| " + first + " | 503 | all | itself | TestGone | 1 s |\n":                                                    first + ": names TestGone, which is no test here",
		"| " + first + " | 503 | | itself | TestLogin | 1 s |\n":                                                       first + ": has an empty cell",
		"| " + first + " | 503 | all | itself | TestLogin | 1 s |\n| flood | 503 | all | itself | TestLogin | 1 s |\n": "flood: no fault that reliability_test.go knows",
	} {
		if flaws := strings.Join(reliabilityFlaws(reliabilityRows(page(last)), tests), "; "); flaws != want {
			t.Errorf("after %q: %q, want %q", last, flaws, want)
		}
	}
}
