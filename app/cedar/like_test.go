package cedar

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/doorward/doorward"
)

// Random patterns and texts of two letters match as cedar-go says.
func TestLikeAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(letters string, most int) string {
		b := make([]byte, random.IntN(most))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	matched := 0
	for range 200_000 {
		var parts []any
		for _, r := range text("ab*", 9) {
			if r == '*' {
				parts = append(parts, types.Wildcard{})
			} else {
				parts = append(parts, string(r))
			}
		}
		theirs, s := types.NewPattern(parts...), types.String(text("ab", 12))
		ours, err := newPattern(theirs)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := ours.matches(string(s)), theirs.Match(s); got != want {
			t.Fatalf("%q like %s: %t, not %t", s, theirs.MarshalCedar(), got, want)
		} else if got {
			matched++
		}
	}
	if matched < 10_000 {
		t.Errorf("only %d of the texts matched", matched)
	}
}

// What a text costs grows with its length and not with the pattern's: each byte is compared at most
// twice for each part of the pattern.
func TestLikeIsLinear(t *testing.T) {
	l := newLiteral(strings.Repeat("a", maxLiteral-2) + "ba")
	for i, fallback := range l.fallback {
		if fallback > i {
			t.Fatalf("fallback[%d] is %d", i, fallback)
		}
	}
	if _, found := l.after(strings.Repeat("a", MaxText)); found {
		t.Error("found where it isn't")
	}
	if rest, found := l.after(strings.Repeat("a", MaxText) + "baX"); !found || rest != "X" {
		t.Errorf("found %t, then %q", found, rest)
	}
}

// A policy has no "like" that would be left to cedar-go, and no long text.
func TestPlacesOfLike(t *testing.T) {
	schema := invoiceSchema(t)
	long := strings.Repeat("a", maxLiteral+1)
	for when, want := range map[string]Code{
		`context has path && context.path like "/a*"`:                                         "",
		`!(context has path && (if context has host then context.path like "/a*" else true))`: "",
		`principal is User && principal.email like "*@a.example"`:                             "",
		`[principal is User && principal.email like "a*"].contains(true)`:                     WrongType,
		`(context has path && context.path like "a*") == true`:                                WrongType,
		`"text" like "t*"`: WrongType,
		`context has path && (if context has host then context.path else context.path) like "/a*"`: WrongType,
		`context has path && context.path like "*` + long + `*"`:                                   TooLarge,
		`context has path && context.path == "` + long + `"`:                                       TooLarge,
		`context has path && ["` + long + `"].contains(context.path)`:                              TooLarge,
		`context has path && context.path like "*` + strings.Repeat("a*", (maxLiteral-2)/2) + `"`:  "",
	} {
		_, faults := Parse(`@id("a") forbid(principal, action, resource) when { `+when+` };`, schema)
		got := Code("")
		if len(faults) > 0 {
			got = faults[0].Code
		}
		if got != want {
			t.Errorf("%.80s: %q, not %q: %v", when, got, want, faults)
		}
	}
}

// A policy refuses if it reads a text that is too long, whether or not it is compiled; others don't.
func TestLongTextsAreUnreadable(t *testing.T) {
	for when, refuses := range map[string]bool{
		`resource.state like "x*"`:                            true,
		`resource has state && resource.state == "x"`:         true,
		`resource.state like "x*" && resource.amount + 1 > 2`: true,
		`resource.tags.contains("x")`:                         true,
		`resource.amount > 9`:                                 false,
		`context has path && context.path like "x*"`:          false,
	} {
		set, faults := Parse(`@id("a") forbid(principal, action == Action::"invoice.approve", resource is invoice) when { `+when+` };`, invoiceSchema(t))
		if faults != nil {
			t.Fatal(faults)
		}
		for _, length := range []int{MaxText, MaxText + 1} {
			long := strings.Repeat("a", length)
			r := &Request{Resource: &doorward.Resource{Type: "invoice", ID: "i", Attributes: map[string]any{"state": long, "tags": []any{"a", long}, "amount": 1}}}
			want := refuses && length > MaxText
			v := set.Prepare(Principal{ID: "usr_1", Role: "USER"}).Verdict("invoice.approve", r)
			if v.Refused != want || v.Erred != want {
				t.Errorf("%s with %d bytes: %+v", when, length, v)
			}
		}
	}
}

// So it does if it reads a list or a record with too many members, or with too many bytes of text.
func TestLargeListsAreUnreadable(t *testing.T) {
	text := func(when string) string {
		return `@id("a") forbid(principal, action == Action::"invoice.approve", resource is invoice) when { ` + when + ` };`
	}
	for when, refuses := range map[string]bool{
		`resource.tags.containsAll(resource.tags) && resource.amount == 5`:   true,
		`resource has tags && resource.amount == 5`:                          true,
		`[resource.tags].contains(resource.tags) && resource.amount + 1 > 9`: true,
		`resource.amount > 9`: false,
	} {
		p := parse(t, text(when)).Prepare(admin)
		for _, c := range []struct {
			members, bytes int
			unreadable     bool
		}{{MaxMembers, 1, false}, {MaxMembers, maxListText, false}, {MaxMembers + 1, 1, true}, {5, maxListText, false}, {5, maxListText + 5, true}} {
			list := differentTexts(c.members, c.bytes/c.members)
			want := refuses && c.unreadable
			if v := p.Verdict("invoice.approve", requestWith(map[string]any{"amount": 1, "tags": list})); v.Refused != want || v.Erred != want {
				t.Errorf("%s with %d members in %d bytes: %+v", when, c.members, c.bytes, v)
			}
		}
	}
	set, faults := ParsePlatform(text(`context.subject has tags && resource.note has x`), platformSchema(t, entitiesJSON))
	if faults != nil {
		t.Fatal(faults)
	}
	record := func(n int) map[string]any {
		m := map[string]any{}
		for _, name := range differentTexts(n, 4) {
			m[name.(string)] = true
		}
		return m
	}
	for name, c := range map[string]struct {
		subject, note map[string]any
		want          bool
	}{
		"small":                {record(MaxMembers), record(MaxMembers), false},
		"many of the subject":  {record(MaxMembers + 1), nil, true},
		"many of the resource": {nil, record(MaxMembers + 1), true},
		"many deep inside":     {map[string]any{"a": []any{record(MaxMembers + 1)}}, nil, true},
	} {
		r := requestWith(map[string]any{"note": c.note})
		r.SubjectSays = c.subject
		if v := set.Prepare(admin).Verdict("invoice.approve", r); v.Refused != c.want || v.Erred != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
