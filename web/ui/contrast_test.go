package ui

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/colour"
)

// The pairs of adjacent colours and their minimum contrast: 4.5 for text, 3 for
// borders (WCAG 2.2, 1.4.3 and 1.4.11).
var pairs = []struct {
	front, back string
	minContrast float64
}{
	{"ink", "paper", 4.5},
	{"ink", "wash", 4.5},
	{"ink", "line", 4.5},
	{"ink", "accent-wash", 4.5},
	{"soft", "paper", 4.5},
	{"soft", "wash", 4.5},
	{"accent", "paper", 4.5},
	{"accent", "wash", 4.5},
	{"accent", "accent-wash", 4.5},
	{"on-accent", "accent", 4.5},
	{"good", "paper", 4.5},
	{"good", "wash", 4.5},
	{"good", "good-wash", 4.5},
	{"bad", "paper", 4.5},
	{"bad", "bad-wash", 4.5},
	{"warn", "paper", 4.5},
	{"warn", "wash", 4.5},
	{"bad", "wash", 4.5},
	{"on-fill", "fill", 4.5},
	{"on-fill", "fill-hover", 4.5},
	{"on-fill-light", "fill-light", 4.5},
	{"on-fill-dark", "fill-dark", 4.5},
	{"edge", "paper", 3},
	{"edge", "wash", 3},
}

func TestColoursHaveEnoughContrast(t *testing.T) {
	css, err := os.ReadFile("assets/ui.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(string(css), darkQuery)
	if !found {
		t.Fatal("the style sheet has no dark colours")
	}
	for scheme, colours := range map[string]map[string]colour.Colour{"light": palette(light), "dark": merge(palette(light), palette(dark))} {
		for _, p := range pairs {
			front, hasFront := colours[p.front]
			back, hasBack := colours[p.back]
			if !hasFront || !hasBack {
				t.Errorf("%s: no colour --%s or --%s", scheme, p.front, p.back)
				continue
			}
			if got := colour.Contrast(front, back); got < p.minContrast {
				t.Errorf("%s: --%s on --%s has the contrast %.2f, want %.1f", scheme, p.front, p.back, got, p.minContrast)
			}
		}
	}
}

const darkQuery = "@media (prefers-color-scheme: dark)"

var colourProperty = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// palette returns the colours among the custom properties of a style sheet.
func palette(css string) map[string]colour.Colour {
	all := map[string]colour.Colour{}
	for _, c := range colourProperty.FindAllStringSubmatch(css, -1) {
		all[c[1]] = colour.Must(c[2])
	}
	return all
}

// merge merges the colours of style sheets; later ones take precedence.
func merge(sheets ...map[string]colour.Colour) map[string]colour.Colour {
	all := map[string]colour.Colour{}
	for _, sheet := range sheets {
		maps.Copy(all, sheet)
	}
	return all
}

// The style sheet and the icon have the accent that mails have without a brand.
func TestDefaultAccent(t *testing.T) {
	for name, want := range map[string]string{"assets/ui.css": "--accent: " + doorward.DefaultAccent + ";", "assets/icon.svg": `fill="` + doorward.DefaultAccent + `"`} {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s: %v", name, want, err)
		}
	}
}

// Every accent of an installation or a tenant is readable.
func TestEveryAccentIsReadable(t *testing.T) {
	css, err := os.ReadFile("assets/ui.css")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 6 * 6 * 6 { // steps of 51 include black, white and the pure colours
		accent := fmt.Sprintf("#%02x%02x%02x", n%6*51, n/6%6*51, n/36*51)
		parts := [2][2]string{} // by style sheet, then light and dark
		parts[0][0], parts[0][1], _ = strings.Cut(string(css), darkQuery)
		parts[1][0], parts[1][1], _ = strings.Cut(AccentSheet(accent), darkQuery)
		for i, name := range []string{"light", "dark"} {
			colours := merge(palette(parts[0][0]), palette(parts[0][i]), palette(parts[1][0]), palette(parts[1][i]))
			for _, p := range pairs {
				if got := colour.Contrast(colours[p.front], colours[p.back]); got < p.minContrast {
					t.Errorf("%s on %s: --%s on --%s has the contrast %.2f, want %.1f", accent, name, p.front, p.back, got, p.minContrast)
				}
			}
		}
	}
}

func TestInvalidAccents(t *testing.T) {
	for _, text := range []string{"", "red", "#fff", "#12345g", "#1234567", "3b4ccf0", "#+1+1+1"} {
		if IsColour(text) {
			t.Errorf("%q passes for a colour", text)
		}
		if sheet := AccentSheet(text); strings.Contains(sheet, "accent:") {
			t.Errorf("%q gets into the style sheet: %s", text, sheet)
		}
	}
}
