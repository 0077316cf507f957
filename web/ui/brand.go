package ui

import (
	"fmt"
	"math"
	"strconv"
)

// colour is red, green and blue, each 0 to 1.
type colour [3]float64

// ParseColour reports whether the text is a colour like "#3b4ccf".
func ParseColour(text string) bool {
	_, ok := parseColour(text)
	return ok
}

func parseColour(text string) (c colour, ok bool) {
	if len(text) != 7 || text[0] != '#' {
		return c, false
	}
	for i := range c {
		n, err := strconv.ParseUint(text[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return c, false
		}
		c[i] = float64(n) / 255
	}
	return c, true
}

func (c colour) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(c[0]*255+.5), int(c[1]*255+.5), int(c[2]*255+.5))
}

func (c colour) mix(with colour, share float64) (out colour) {
	for i := range c {
		out[i] = c[i]*(1-share) + with[i]*share
	}
	return out
}

// luminance is the relative luminance of WCAG 2.2.
func (c colour) luminance() float64 {
	l := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		v := c[i]
		if v <= .04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+.055)/1.055, 2.4)
		}
		l += weight * v
	}
	return l
}

func contrast(a, b colour) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// readable is the least contrast of text (WCAG 2.2, 1.4.3), with a margin for
// the rounding to bytes.
const readable = 4.55

// scheme is one of the two palettes, as far as an accent meets it.
type scheme struct{ paper, wash, ink colour }

var (
	white = colour{1, 1, 1}
	black = colour{}
	light = scheme{paper: white, wash: mustColour("#f6f7f9"), ink: black}
	dark  = scheme{paper: mustColour("#0f1116"), wash: mustColour("#171a21"), ink: white}
)

func mustColour(text string) colour {
	c, ok := parseColour(text)
	if !ok {
		panic("ui: " + text + " is no colour")
	}
	return c
}

// fit moves the accent towards the ink until it can be read on the paper, on
// the wash and on its own wash.
func (s scheme) fit(accent colour) (fitted, wash colour) {
	for share := 0.0; share <= 1; share += .02 {
		fitted = accent.mix(s.ink, share)
		wash = s.paper.mix(fitted, .1)
		if min(contrast(fitted, s.paper), contrast(fitted, s.wash), contrast(fitted, wash)) >= readable {
			break
		}
	}
	return fitted, wash
}

// on is what can be read on the colour.
func on(c colour) colour {
	if contrast(c, white) >= readable {
		return white
	}
	return black
}

// accentSheet is the style sheet that gives the pages the accent of an
// installation; without one it says nothing.
func accentSheet(accent string) string {
	c, ok := parseColour(accent)
	if !ok {
		return "/* No accent colour is set. */\n"
	}
	rule := func(s scheme) string {
		fitted, wash := s.fit(c)
		return fmt.Sprintf(":root { --accent: %s; --accent-wash: %s; --on-accent: %s; }", fitted, wash, on(fitted))
	}
	return rule(light) + "\n@media (prefers-color-scheme: dark) { " + rule(dark) + " }\n"
}
