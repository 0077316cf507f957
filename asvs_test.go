package doorward_test

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/goldentest"
)

// docs/asvs.md says which requirements of three chapters of OWASP ASVS 5.0 Doorward
// meets. These tests compare it with the list of requirements, and check that the tests that
// it names exist.

const asvsPage = "docs/asvs.md"

// asvsLevels has the levels of the requirements of each section, one digit for each: 6.1 has
// three requirements, of the levels 1, 2 and 2.
// https://github.com/OWASP/ASVS/tree/v5.0.0/5.0/en (0x15, 0x16, 0x17)
var asvsLevels = map[string]string{
	"6.1": "122", "6.2": "111111112222", "6.3": "11223333", "6.4": "112233",
	"6.5": "22222333", "6.6": "2223", "6.7": "33", "6.8": "2222",
	"7.1": "222", "7.2": "1111", "7.3": "22", "7.4": "11222", "7.5": "223", "7.6": "22",
	"8.1": "1233", "8.2": "1123", "8.3": "133", "8.4": "23",
}

var asvsVerdicts = []string{"met", "partly", "not", "does not apply"}

// asvsRow is the row of a requirement on the page.
type asvsRow struct {
	id, level, summary, verdict, explanation string
	tests                                    []string
}

var asvsID = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// asvsRows reads the tables of the page: the rows that begin with the number of
// a requirement.
func asvsRows(page string) (rows []asvsRow) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == 8 && asvsID.MatchString(cells[1]) {
			rows = append(rows, asvsRow{cells[1], cells[2], cells[3], cells[4], cells[5], strings.FieldsFunc(cells[6], isSeparator)})
		}
	}
	return rows
}

// isSeparator reports whether the character separates names of tests.
func isSeparator(c rune) bool { return c == ',' || c == ' ' }

// asvsFaults returns what is wrong with the rows. tests has the names of the tests that exist.
func asvsFaults(rows []asvsRow, tests map[string]bool) (faults []string) {
	fault := func(id, format string, args ...any) {
		faults = append(faults, id+": "+fmt.Sprintf(format, args...))
	}
	seen := map[string]int{}
	for _, r := range rows {
		seen[r.id]++
		switch level := asvsLevel(r.id); {
		case level == "":
			fault(r.id, "no requirement of the chapters V6 to V8")
		case level != r.level:
			fault(r.id, "is of level %s, not %s", level, r.level)
		case !slices.Contains(asvsVerdicts, r.verdict):
			fault(r.id, "%q is none of the verdicts %q", r.verdict, asvsVerdicts)
		case r.summary == "" || r.explanation == "":
			fault(r.id, "has an empty cell")
		case r.verdict == "met" && len(r.tests) == 0:
			fault(r.id, "is met, and no test shows it: name one, or say partly")
		}
		for _, name := range r.tests {
			if !tests[name] {
				fault(r.id, "names %s, which is no test here", name)
			}
		}
	}
	for _, id := range asvsIDs() {
		if seen[id] != 1 {
			fault(id, "has %d rows", seen[id])
		}
	}
	return faults
}

// asvsLevel is the level of a requirement, or empty when there is none.
func asvsLevel(id string) string {
	for section, levels := range asvsLevels {
		for i, level := range levels {
			if id == fmt.Sprintf("%s.%d", section, i+1) {
				return string(level)
			}
		}
	}
	return ""
}

func asvsIDs() (ids []string) {
	for section, levels := range asvsLevels {
		for i := range levels {
			ids = append(ids, fmt.Sprintf("%s.%d", section, i+1))
		}
	}
	slices.Sort(ids)
	return ids
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, f := range parseTree(t, ".").files {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.isTest && fn.Recv == nil && isTest(fn.Name.Name) {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

func isTest(name string) bool {
	return name != "TestMain" && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz"))
}

func readASVSRows(t *testing.T) []asvsRow {
	t.Helper()
	page, err := os.ReadFile(asvsPage)
	if err != nil {
		t.Fatal(err)
	}
	return asvsRows(string(page))
}

func TestASVS(t *testing.T) {
	for _, fault := range asvsFaults(readASVSRows(t), testNames(t)) {
		t.Errorf("%s: %s", asvsPage, fault)
	}
}

// TestGoldenASVS counts the requirements by level and verdict.
func TestGoldenASVS(t *testing.T) {
	rows := [][]string{append([]string{"Level"}, asvsVerdicts...)}
	for _, level := range []string{"1", "2", "3"} {
		row := []string{level}
		for _, verdict := range asvsVerdicts {
			n := 0
			for _, r := range readASVSRows(t) {
				if r.level == level && r.verdict == verdict {
					n++
				}
			}
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	goldentest.Section(t, asvsPage, "sum", table(rows...))
}

// Each kind of fault is found.
func TestFaultsOfTheASVSPageAreNoticed(t *testing.T) {
	tests := map[string]bool{"TestLogin": true}
	var valid []asvsRow
	for _, id := range asvsIDs() {
		valid = append(valid, asvsRow{id, asvsLevel(id), "short", "met", "how", []string{"TestLogin"}})
	}
	if faults := asvsFaults(valid, tests); len(faults) > 0 {
		t.Fatalf("a page without faults: %q", faults)
	}
	for want, damage := range map[string]func([]asvsRow) []asvsRow{
		"6.1.1: has 0 rows": func(rows []asvsRow) []asvsRow { return rows[1:] },
		"6.1.1: has 2 rows": func(rows []asvsRow) []asvsRow { return append(rows, rows[0]) },
		"9.1.1: no requirement of the chapters V6 to V8": func(rows []asvsRow) []asvsRow {
			return append(rows, asvsRow{"9.1.1", "1", "short", "met", "how", []string{"TestLogin"}})
		},
		"6.1.1: is of level 1, not 3":                  func(rows []asvsRow) []asvsRow { rows[0].level = "3"; return rows },
		`6.1.1: "mostly" is none of the verdicts`:      func(rows []asvsRow) []asvsRow { rows[0].verdict = "mostly"; return rows },
		"6.1.1: has an empty cell":                     func(rows []asvsRow) []asvsRow { rows[0].explanation = ""; return rows },
		"6.1.1: is met, and no test shows it":          func(rows []asvsRow) []asvsRow { rows[0].tests = nil; return rows },
		"6.1.1: names TestGone, which is no test here": func(rows []asvsRow) []asvsRow { rows[0].tests = []string{"TestGone"}; return rows },
	} {
		faults := asvsFaults(damage(slices.Clone(valid)), tests)
		if len(faults) != 1 || !strings.HasPrefix(faults[0], want) {
			t.Errorf("want %q, got %q", want, faults)
		}
	}
}
