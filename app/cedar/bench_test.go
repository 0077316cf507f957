package cedar

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// mixedPolicies returns a text of n policies such as tenants write: most name an action and
// a role. One in ten is for the benchmarks' action, and one in ten for another.
func mixedPolicies(n int) string {
	var b strings.Builder
	for i := range n {
		head := `principal in Role::"USER", action == Action::"user.invite", resource`
		condition := `context has aal && context.aal < 2`
		switch i % 10 {
		case 0:
			head, condition = `principal, action == Action::"invoice.approve", resource`, fmt.Sprintf("resource.amount > %d", 10_000+i)
		case 1:
			head = `principal, action == Action::"tenant.read", resource`
		}
		fmt.Fprintf(&b, "@id(\"p%d\") forbid(%s) when { %s };\n", i, head, condition)
	}
	return b.String()
}

var sizes = []int{0, 5, 50, 200}

func BenchmarkParse(b *testing.B) {
	for _, n := range sizes {
		schema, text := invoiceSchema(b), mixedPolicies(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, faults := Parse(text, schema); faults != nil {
					b.Fatal(faults)
				}
			}
		})
	}
}

func BenchmarkPrepare(b *testing.B) {
	for _, n := range sizes {
		benchmarkPrepare(b, fmt.Sprint(n), mixedPolicies(n))
	}
	benchmarkPrepare(b, "200 that read the principal", strings.ReplaceAll(policiesOfOneAction(200), "resource.amount >", "resource.owner != principal && resource.amount >"))
}

// benchmarkPrepare also reports the bytes that a prepared set keeps.
func benchmarkPrepare(b *testing.B, name, text string) {
	set := parse(b, text)
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			set.Prepare(admin)
		}
		kept := make([]*Prepared, 1000)
		before := heapBytes()
		for i := range kept {
			kept[i] = set.Prepare(admin)
		}
		b.ReportMetric(float64(heapBytes()-before)/1000, "B/kept")
		runtime.KeepAlive(kept)
	})
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkVerdict(b *testing.B) {
	r := requestWith(map[string]any{"amount": 5})
	for _, n := range sizes {
		p := parse(b, mixedPolicies(n)).Prepare(admin)
		for _, action := range []string{"invoice.approve", "invoice.read"} {
			b.Run(fmt.Sprintf("%d/%s", n, action), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p.Verdict(action, r).Refused {
						b.Fatal("refused")
					}
				}
			})
		}
	}
	for _, n := range []int{5, 50, 200} {
		p := parse(b, policiesOfOneAction(n)).Prepare(admin)
		b.Run(fmt.Sprintf("%d for one action", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p.Verdict("invoice.approve", r).Refused {
					b.Fatal("refused")
				}
			}
		})
	}
}

// policiesOfOneAction returns a text of n policies for the same action.
func policiesOfOneAction(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "@id(\"p%d\") forbid(principal, action == Action::\"invoice.approve\", resource) when { resource.amount > %d };\n", i, 10_000+i)
	}
	return b.String()
}

// The most that the sets of one request cost: as many conditions about them as a text of policies has room
// for, none of which decides, and as large a set as a policy reads.
func BenchmarkSets(b *testing.B) {
	for _, condition := range []string{"resource.tags.containsAll(resource.tags)", "resource.tags == resource.tags", "[resource.tags].contains(resource.tags)"} {
		p := parse(b, manyConditions(condition)).Prepare(admin)
		for _, members := range []int{MaxMembers / 4, MaxMembers} {
			r := requestWith(map[string]any{"amount": 4, "tags": differentTexts(members, maxListText/members)})
			b.Run(fmt.Sprintf("%s/%d", condition, members), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p.Verdict("invoice.approve", r).Refused {
						b.Fatal("refused")
					}
				}
			})
		}
	}
}

// manyConditions returns a text of policies that has the condition as often as there is room for it.
func manyConditions(condition string) string {
	condition += " && "
	const policies = 24 // a policy may have 256 operators in a row
	return nPolicies(policies, " when { "+strings.Repeat(condition, (MaxBytes/policies-130)/len(condition))+"resource.amount == 5 }")
}

// differentTexts returns n texts of a length.
func differentTexts(n, length int) (all []any) {
	for i := range n {
		all = append(all, fmt.Sprintf("%0*d", length, i))
	}
	return all
}
