package picture

import (
	"image"
	"math"
)

// Ground is the ground that a picture with see-through parts needs where it
// would vanish otherwise: black letters on a dark page, white ones on a light one.
type Ground string

// The grounds.
const (
	AnyGround   Ground = ""
	LightGround Ground = "light"
	DarkGround  Ground = "dark"
)

const (
	// Luminance (WCAG 2.2) from which on a colour can't be told from white, a
	// contrast of 1.4, and up to which from a dark page, a contrast of 2 to
	// #171a21: near black the eye tells less apart.
	nearWhite, nearBlack = .70, .07
	// share of the visible pixels that may vanish.
	share = .25
)

// groundOf looks at the pixels that are more seen than seen through.
func groundOf(img *image.RGBA) Ground {
	var seen, light, dark, through float64
	for i := 0; i+3 < len(img.Pix); i += 4 {
		r, g, b, a := img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3]
		if a < 128 {
			through++
			continue
		}
		seen++
		switch l := luminance(r, g, b, a); {
		case l >= nearWhite:
			light++
		case l <= nearBlack:
			dark++
		}
	}
	switch {
	case through == 0: // it brings its own ground
		return AnyGround
	case light > share*seen && light > dark:
		return DarkGround
	case dark > share*seen:
		return LightGround
	}
	return AnyGround
}

// luminance of a pixel with its transparency multiplied in.
func luminance(r, g, b, a uint8) float64 {
	part := func(v uint8) float64 { return linear[min(255, int(v)*255/int(a))] }
	return .2126*part(r) + .7152*part(g) + .0722*part(b)
}

// linear is the light of each value of sRGB.
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
