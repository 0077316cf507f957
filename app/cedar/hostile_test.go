package cedar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/cputime"
)

// hostileTexts returns texts that try to exhaust the stack, the memory or the processor.
func hostileTexts() map[string]string {
	const head = `@id("a") forbid(principal, action, resource) when { `
	fill := func(open, middle, shut string) string {
		n := (MaxBytes - len(head) - len(middle) - 4) / (len(open) + len(shut))
		return head + strings.Repeat(open, n) + middle + strings.Repeat(shut, n) + " };"
	}
	return map[string]string{
		"a million brackets":     strings.Repeat("(", 1_000_000),
		"brackets":               fill("(", "true", ")"),
		"open brackets":          fill("(", "", ""),
		"sets":                   fill("[", "1", "]"),
		"records":                fill("{a:", "1", "}"),
		"open records":           fill("{a:", "1", ""),
		"not":                    fill("!", "true", ""),
		"minus":                  fill("-", "1", ""),
		"minus and not":          fill("!-", "1", ""),
		"if":                     fill("if ", "true", ""),
		"if then else":           fill("if true then true else ", "true", ""),
		"access":                 head + "context" + strings.Repeat(".a", 32_000) + "};",
		"index":                  head + "context" + strings.Repeat(`["a"]`, 13_000) + "};",
		"calls":                  fill("principal.contains(", "1", ")"),
		"long has":               head + "context has a" + strings.Repeat(".a", 32_000) + "};",
		"or":                     fill("true || ", "true", ""),
		"and":                    fill("true && ", "true", ""),
		"plus":                   fill("1 + ", "1 > 2", ""),
		"times":                  fill("1 * ", "1 > 2", ""),
		"comparisons":            fill("1 < ", "2", ""),
		"has":                    fill("context has aal && ", "true", ""),
		"paths":                  head + strings.Repeat("a::", 21_000) + `"b" == principal };`,
		"a long set":             head + "[" + strings.Repeat("1,", 32_000) + "1].contains(1) };",
		"a set of many types":    head + "[" + strings.Repeat(`1,"a",`, 10_000) + "1].contains(1) };",
		"many conditions":        `@id("a") forbid(principal, action, resource) ` + strings.Repeat("when { true } ", 4_600) + ";",
		"many unlesses":          `@id("a") forbid(principal, action, resource) ` + strings.Repeat("unless{false}", 5_000) + ";",
		"many actions":           `@id("a") forbid(principal, action in [` + strings.Repeat(`Action::"tenant.read",`, 2_900) + "], resource);",
		"many annotations":       strings.Repeat("@a ", 21_000) + `forbid(principal, action, resource);`,
		"many empty policies":    strings.Repeat(";", MaxBytes),
		"a long string":          `@id("` + strings.Repeat("a", MaxBytes-100) + `") forbid(principal, action, resource);`,
		"a long pattern":         head + `context.kind like "` + strings.Repeat("a*", 32_000) + `" };`,
		"brackets in a string":   `@id("` + strings.Repeat("(", MaxBytes-100) + `") forbid(principal, action, resource);`,
		"brackets in a comment":  "// " + strings.Repeat("(", MaxBytes-10),
		"brackets after escapes": head + `"\\" == "` + strings.Repeat(`\"(`, 20_000) + `" };`,
		"nul":                    strings.Repeat("\x00", MaxBytes),
		"no UTF-8":               head + "\"" + strings.Repeat("\xff", 60_000) + "\" };",
		"many wrong attributes":  head + strings.Repeat("[context.a, context.b].contains(principal.c) && ", 200) + "true };",
		"many wrong policies":    strings.Repeat(`forbid(principal, action, resource) when { context.a == principal.b && resource.c == 1 + "x" };`, 200),
	}
}

// largeSchema has 500 actions and 50 types of resources.
func largeSchema(t testing.TB) *Schema {
	t.Helper()
	resources := map[string]map[string]Type{}
	actions := []Action{{Name: "tenant.read"}, {Name: "invoice.approve", Resource: "invoice"}}
	resources["invoice"] = map[string]Type{"amount": Long}
	for i := range 498 {
		name := fmt.Sprintf("thing%d", i%49)
		resources[name] = map[string]Type{"amount": Long}
		actions = append(actions, Action{Name: fmt.Sprintf("%s.act%d", name, i), Resource: name})
	}
	schema, err := NewSchema(actions, resources)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestHostileTexts(t *testing.T) {
	t.Run("small schema", func(t *testing.T) { checkHostileTexts(t, invoiceSchema(t)) })
	t.Run("large schema", func(t *testing.T) { checkHostileTexts(t, largeSchema(t)) })
}

func checkHostileTexts(t *testing.T, schema *Schema) {
	for name, text := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			set, faults, allocated := parseAndCount(text, schema)
			if (set == nil) == (len(faults) == 0) {
				t.Errorf("set %v and faults %v", set, faults)
			}
			if allocated > maxAllocated && !raceDetector {
				t.Errorf("allocated %d KiB", allocated>>10)
			}
			if ratio := costRatio(t, text, schema); ratio > maxCostRatio && !raceDetector {
				t.Errorf("costs as much as %.0f honest texts", ratio)
			}
			for _, fault := range faults {
				if fault.Line < 1 || fault.Column < 1 || fault.Code == "" || len(fault.Message) > 310 {
					t.Errorf("fault %+v", fault)
				}
			}
			if set != nil {
				set.Prepare(admin).Explain("invoice.approve", requestWith(nil))
			}
		})
	}
}

// What a hostile text may cost: bytes allocated, which don't depend on other processes, and,
// for work that allocates nothing, CPU time as a multiple of an honest text's.
const (
	maxAllocated = 48 << 20
	maxCostRatio = 50
)

// parseAndCount is Parse. It also returns the bytes that were allocated.
func parseAndCount(text string, schema *Schema) (set *Set, faults Faults, bytes uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	set, faults = Parse(text, schema)
	runtime.ReadMemStats(&after)
	return set, faults, after.TotalAlloc - before.TotalAlloc
}

// costRatio returns the CPU time as a multiple of that of an honest text, which is measured
// right after it, because other processes slow down both. While the ratio is too high it
// measures again, up to five times, and the lowest counts.
func costRatio(t *testing.T, text string, schema *Schema) (ratio float64) {
	ratio = math.Inf(1)
	for tries := 0; tries < 5 && ratio > maxCostRatio; tries++ {
		took, usual := parseTime(t, text, schema), parseTime(t, honest, schema)
		ratio = min(ratio, float64(took)/float64(usual))
	}
	return ratio
}

// honest has as many policies as a text may have, in more than half of the bytes.
var honest = nPolicies(MaxPolicies, ` when { context has aal && context.aal < 2 && resource.amount > 5 && context.ip.isInRange(ip("10.0.0.0/8")) }`)

// parseTime returns the CPU time in nanoseconds.
func parseTime(t *testing.T, text string, schema *Schema) int64 {
	before := cputime.Used(t)
	Parse(text, schema)
	return int64(cputime.Used(t) - before)
}

// raceDetector: the test runs under the race detector, see race_test.go.
var raceDetector bool

// FuzzParse looks for texts that kill the process, and for valid texts whose evaluation in
// two steps differs from that in one.
func FuzzParse(f *testing.F) {
	f.Add(nPolicies(3, ` when { context has aal && resource.amount > 3 }`))
	for seed := range uint64(20) {
		g := generator{rand.New(rand.NewPCG(seed, 3))}
		f.Add(g.text())
		f.Add(g.platformText())
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, faults := Parse(text, invoiceSchema(t))
		if (set == nil) == (len(faults) == 0) {
			t.Fatalf("set %v and faults %v", set, faults)
		}
		if set != nil {
			checkAgreement(t, set, admin, "invoice.approve", requestWith(map[string]any{"amount": 5}))
			checkAgreement(t, set, key, "tenant.read", &request)
		}
		if set, _ = ParsePlatform(text, platformSchema(t, entitiesJSON)); set != nil {
			checkAgreement(t, set, admin, "invoice.approve", requestWith(map[string]any{"amount": "5", "note": true}))
			checkAgreement(t, set, Principal{Type: "user", ID: "morty"}, "report.read", &request)
		}
	})
}
