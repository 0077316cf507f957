// Package qrsvg draws a text as a QR code in SVG: black on white whatever the page's
// colours are, without scripts, styles or references, so that it can stand inside a page
// under a strict Content-Security-Policy.
package qrsvg

import (
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// quietZone is the white border that readers need, in modules (ISO/IEC 18004, section 9.1).
const quietZone = 4

// Draw returns an svg element without a width: the page gives it one. Screen readers
// read the title. A text of more than about 2,300 bytes is an error.
func Draw(text, title string) (string, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("qrsvg: %w", err)
	}
	size := code.Bounds().Dx() + 2*quietZone
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" shape-rendering="crispEdges"><title>`, size, size)
	if err := xml.EscapeText(&out, []byte(title)); err != nil {
		return "", fmt.Errorf("qrsvg: %w", err)
	}
	fmt.Fprintf(&out, `</title><path fill="#fff" d="M0 0h%dv%dH0z"/><path fill="#000" d="`, size, size)
	drawRuns(&out, code)
	out.WriteString(`"/></svg>`)
	return out.String(), nil
}

// drawRuns writes one rectangle for each run of black modules in a row.
func drawRuns(out *strings.Builder, code image.Image) {
	size := code.Bounds().Dx()
	for y := range size {
		for x := 0; x < size; x++ {
			begin := x
			for x < size && code.At(x, y) == color.Black {
				x++
			}
			if x > begin {
				fmt.Fprintf(out, "M%d %dh%dv1H%dz", begin+quietZone, y+quietZone, x-begin, begin+quietZone)
			}
		}
	}
}
