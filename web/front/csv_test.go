package front

import "testing"

// Cells that a spreadsheet would read as formulas become text; others are unchanged.
func TestHarmlessCells(t *testing.T) {
	for text, want := range map[string]string{
		`=cmd|' /C calc'!A0`:  `'=cmd|' /C calc'!A0`,
		`=HYPERLINK("http:")`: `'=HYPERLINK("http:")`,
		"+1+1":                "'+1+1",
		"-2+3":                "'-2+3",
		"@SUM(1)":             "'@SUM(1)",
		"\t=1":                "'\t=1",
		"\r=1":                "'\r=1",
		"\n=1":                "'\n=1",
		"＝1":                  "'＝1",
		"＋1":                  "'＋1",
		"－1":                  "'－1",
		"＠SUM(1)":             "'＠SUM(1)",
		"Ann;=cmd|'x'!A0;":    "Ann;'=cmd|'x'!A0;",
		`a;b;"=1"`:            `a;b;'"=1"`,
		"=1;＋1":               "'=1;'＋1",
		"X11; Linux; -":       "X11; Linux; -",
		";;":                  ";;",
		`"=1"`:                `"=1"`,
		"":                    "",
		"ann@acme.example":    "ann@acme.example",
		"'=1":                 "'=1",
		"1=1":                 "1=1",
		" =1":                 " =1",
		"\xff=1":              "\xff=1",
		"🚪":                   "🚪",
	} {
		if got := harmlessCell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
