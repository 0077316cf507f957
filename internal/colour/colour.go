// Package colour computes the contrast of colours, and adjusts a colour until it is
// readable on others (WCAG 2.2, 1.4.3).
//
//	accent, ok := colour.Parse("#ffd400")
//	fitted, tint := colour.Light.Fit(accent) // readable on white, and on its own tint
//	text := colour.TextOn(fitted)            // white or black, readable on it
package colour

import (
	"fmt"
	"math"
	"strconv"
)

// Colour is red, green and blue in sRGB, each 0 to 1.
type Colour [3]float64

// Parse reads a colour like "#3b4ccf", and reports whether it is one.
func Parse(text string) (c Colour, ok bool) {
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

// Must is Parse for constants; it panics for an invalid colour.
func Must(text string) Colour {
	c, ok := Parse(text)
	if !ok {
		panic("colour: " + text + " is not a colour")
	}
	return c
}

// String is the colour as Parse reads it, in lower case.
func (c Colour) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(c[0]*255+.5), int(c[1]*255+.5), int(c[2]*255+.5))
}

func (c Colour) mix(with Colour, share float64) (out Colour) {
	for i := range c {
		out[i] = c[i]*(1-share) + with[i]*share
	}
	return out
}

// luminance is the relative luminance of WCAG 2.2.
func (c Colour) luminance() float64 {
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

// Contrast is the contrast ratio of WCAG 2.2, 1 to 21.
func Contrast(a, b Colour) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// minContrast is the least contrast of text (WCAG 2.2, 1.4.3), with a margin for
// the rounding to bytes.
const minContrast = 4.55

// Scheme is one of the two palettes of pages: the background (Paper) and the shaded background
// (Wash) of ui.css, and black or white (Ink), towards which an accent is moved.
type Scheme struct{ Paper, Wash, Ink Colour }

var (
	white = Colour{1, 1, 1}
	black = Colour{}
)

// The schemes of pages, see web/ui/assets/ui.css.
var (
	Light = Scheme{Paper: white, Wash: Must("#f6f7f9"), Ink: black}
	Dark  = Scheme{Paper: Must("#0f1116"), Wash: Must("#171a21"), Ink: white}
)

// Fit moves the accent towards black or white until it is readable on the page's
// background, on the shaded background, and on its own tint, which it also returns.
func (s Scheme) Fit(accent Colour) (fitted, tint Colour) {
	for share := 0.0; share <= 1; share += .02 {
		fitted = accent.mix(s.Ink, share)
		tint = s.Paper.mix(fitted, .1)
		if min(Contrast(fitted, s.Paper), Contrast(fitted, s.Wash), Contrast(fitted, tint)) >= minContrast {
			break
		}
	}
	return fitted, tint
}

// Fill returns the text colour on a surface of the colour, and the surface's colour under the
// pointer, with more contrast to the text.
func Fill(c Colour) (text, hover Colour) {
	if text = TextOn(c); text == white {
		return text, c.mix(black, .12)
	}
	return text, c.mix(white, .12)
}

// TextOn returns the text colour that is readable on the colour: white or black.
func TextOn(c Colour) Colour {
	if Contrast(c, white) >= minContrast {
		return white
	}
	return black
}
