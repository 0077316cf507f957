package pages_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The pairs of colours that meet, and how much they must differ: 4.5 for text,
// 3 for what only delimits (WCAG 2.2, 1.4.3 and 1.4.11).
var pairs = []struct {
	front, back string
	least       float64
}{
	{"ink", "paper", 4.5},
	{"ink", "wash", 4.5},
	{"ink", "line", 4.5},
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
	{"edge", "paper", 3},
}

func TestColoursCanBeToldApart(t *testing.T) {
	css, err := os.ReadFile("assets/doorward.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("the style sheet has no dark colours")
	}
	for scheme, colours := range map[string]map[string]float64{"light": luminances(light), "dark": luminances(dark)} {
		for _, p := range pairs {
			front, ok := colours[p.front]
			back, also := colours[p.back]
			if !ok || !also {
				t.Errorf("%s: no colour --%s or --%s", scheme, p.front, p.back)
				continue
			}
			if got := (max(front, back) + .05) / (min(front, back) + .05); got < p.least {
				t.Errorf("%s: --%s on --%s has the contrast %.2f, want %.1f", scheme, p.front, p.back, got, p.least)
			}
		}
	}
}

var colour = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)

// luminances are the relative luminances of the custom properties (WCAG 2.2).
func luminances(css string) map[string]float64 {
	all := map[string]float64{}
	for _, c := range colour.FindAllStringSubmatch(css, -1) {
		l := 0.0
		for i, weight := range []float64{.2126, .7152, .0722} {
			n, _ := strconv.ParseUint(c[2][2*i:2*i+2], 16, 8)
			v := float64(n) / 255
			if v <= .04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+.055)/1.055, 2.4)
			}
			l += weight * v
		}
		all[c[1]] = l
	}
	return all
}
