package colour_test

import (
	"fmt"
	"testing"

	"github.com/doorward/doorward/internal/colour"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"#000000", "#3b4ccf", "#ffffff", "#010203"} {
		if c, ok := colour.Parse(text); !ok || c.String() != text {
			t.Errorf("%s is read as %s, %v", text, c, ok)
		}
	}
	if c, ok := colour.Parse("#FFD400"); !ok || c.String() != "#ffd400" {
		t.Errorf("capitals are read as %s, %v", c, ok)
	}
	for _, text := range []string{"", "red", "#fff", "#12345g", "#1234567", "3b4ccf0", "#+1+1+1", "#3b4cc\n", "#３b4c"} {
		if _, ok := colour.Parse(text); ok {
			t.Errorf("%q is accepted as a colour", text)
		}
	}
}

// The examples are from WCAG's own tools.
func TestContrast(t *testing.T) {
	for pair, want := range map[[2]string]string{
		{"#000000", "#ffffff"}: "21.00", {"#ffffff", "#ffffff"}: "1.00", {"#777777", "#ffffff"}: "4.48", {"#0000ff", "#ffffff"}: "8.59",
	} {
		if got := fmt.Sprintf("%.2f", colour.Contrast(colour.Must(pair[0]), colour.Must(pair[1]))); got != want {
			t.Errorf("%s on %s has the contrast %s, want %s", pair[0], pair[1], got, want)
		}
	}
}

// minContrast is that of text (WCAG 2.2, 1.4.3).
const minContrast = 4.5

// A colour is fitted to be readable on both backgrounds and on its tint, and text is readable
// on it. The test takes 512 colours from the whole range.
func TestEveryColourCanBeFitted(t *testing.T) {
	for n := range 8 * 8 * 8 {
		c := colour.Must(fmt.Sprintf("#%02x%02x%02x", min(255, n%8*37), min(255, n/8%8*37), min(255, n/64*37)))
		for name, s := range map[string]colour.Scheme{"light": colour.Light, "dark": colour.Dark} {
			fitted, tint := s.Fit(c)
			// Pages use 8-bit colours.
			fitted, tint = colour.Must(fitted.String()), colour.Must(tint.String())
			for on, ground := range map[string]colour.Colour{"paper": s.Paper, "wash": s.Wash, "its tint": tint, "text on it": colour.TextOn(fitted)} {
				if got := colour.Contrast(fitted, ground); got < minContrast {
					t.Errorf("%s in the %s scheme is %s: the contrast with %s is %.2f", c, name, fitted, on, got)
				}
			}
		}
	}
}

// A readable colour stays unchanged.
func TestFitKeepsReadableColour(t *testing.T) {
	if fitted, _ := colour.Light.Fit(colour.Must("#3b4ccf")); fitted != colour.Must("#3b4ccf") {
		t.Errorf("the colour becomes %s", fitted)
	}
}
