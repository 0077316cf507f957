package picture

import (
	"image"
	"math"
)

// Background is the background that a picture with transparent parts needs where it would
// be invisible otherwise: black letters on a dark page, white ones on a light one.
type Background string

// The backgrounds.
const (
	AnyBackground   Background = ""
	LightBackground Background = "light"
	DarkBackground  Background = "dark"
)

const (
	// Luminance (WCAG 2.2): a colour above nearWhite is invisible on white (contrast
	// 1.4), one below nearBlack on a dark page (contrast 2 to #171a21, since the eye
	// distinguishes less near black).
	nearWhite, nearBlack = .70, .07
	// maxInvisible is the share of the opaque pixels that may be invisible on the page.
	maxInvisible = .25
)

// backgroundFor returns the background that the picture needs. Pixels count as opaque from
// half opacity on.
func backgroundFor(img *image.RGBA) Background {
	var opaque, light, dark, transparent float64
	for i := 0; i+3 < len(img.Pix); i += 4 {
		r, g, b, a := img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3]
		if a < 128 {
			transparent++
			continue
		}
		opaque++
		switch l := luminance(r, g, b, a); {
		case l >= nearWhite:
			light++
		case l <= nearBlack:
			dark++
		}
	}
	switch {
	case transparent == 0: // it has its own background
		return AnyBackground
	case light > maxInvisible*opaque && light > dark:
		return DarkBackground
	case dark > maxInvisible*opaque:
		return LightBackground
	}
	return AnyBackground
}

// luminance returns the luminance of a pixel with premultiplied alpha.
func luminance(r, g, b, a uint8) float64 {
	light := func(v uint8) float64 { return linear[min(255, int(v)*255/int(a))] }
	return .2126*light(r) + .7152*light(g) + .0722*light(b)
}

// linear maps each sRGB value to linear light.
var linear = func() (t [256]float64) {
	for i := range t {
		if v := float64(i) / 255; v <= .04045 {
			t[i] = v / 12.92
		} else {
			t[i] = math.Pow((v+.055)/1.055, 2.4)
		}
	}
	return t
}()
