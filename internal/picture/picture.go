// Package picture turns an uploaded image into one that is safe to serve.
//
//	p, err := picture.Make(data, picture.Bounds{Width: 512, Height: 128, Bytes: 64 << 10})
//
// It accepts PNG, JPEG and WebP, recognised by their content. The result is encoded
// again: it has no metadata and no other data of the file. SVG can contain scripts,
// so it is refused.
//
// # Cost
//
// A few bytes can describe a large image. So the size in the header is checked
// before decoding, and so is the number of scans of a JPEG, each of which can cover
// the image in twenty bytes. Within MaxPixels an image takes some 50 MB and a few
// tenths of a second, so callers should process one at a time.
package picture

import (
	"bytes"
	"errors"
	"image"
	stddraw "image/draw"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// Limits of the decoded image, in pixels: in total, and per side.
const (
	MaxPixels = 4 << 20
	MaxSide   = 4096
)

// maxScans limits the scans of a JPEG, each of which begins with the marker 0xffda: encoders
// write about ten.
const maxScans = 20

// The errors of Make.
var (
	ErrVector      = errors.New("picture: SVG, which can hold scripts")
	ErrUnknown     = errors.New("picture: no PNG, JPEG or WebP that can be read")
	ErrSize        = errors.New("picture: too many pixels, or none")
	ErrTooDetailed = errors.New("picture: too much detail for the byte limit")
	errManyScans   = errors.Join(ErrUnknown, errors.New("picture: a JPEG with more scans than any encoder writes"))
)

// Bounds are the maximum size of a picture.
type Bounds struct {
	Width, Height int // pixels; a smaller image stays as it is
	Bytes         int // of the PNG
}

// Picture is a PNG.
type Picture struct {
	PNG           []byte
	Width, Height int
	Background    Background
}

// Format returns the format by its first bytes: "png", "jpeg", "webp", "svg", or "" for
// anything else.
func Format(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "png"
	case bytes.HasPrefix(data, []byte{0xff, 0xd8, 0xff}):
		return "jpeg"
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "webp"
	case isSVG(data):
		return "svg"
	}
	return ""
}

// isSVG only improves the error: unrecognised data is refused as well.
func isSVG(data []byte) bool {
	head := bytes.ToLower(data[:min(len(data), 1024)])
	return bytes.Contains(head, []byte("<svg")) || bytes.Contains(head, []byte("<!doctype svg"))
}

// codecs are the accepted formats.
var codecs = map[string]struct {
	config func(*bytes.Reader) (image.Config, error)
	decode func(*bytes.Reader) (image.Image, error)
}{
	"png": {
		func(r *bytes.Reader) (image.Config, error) { return png.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Image, error) { return png.Decode(r) },
	},
	"jpeg": {
		func(r *bytes.Reader) (image.Config, error) { return jpeg.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Image, error) { return jpeg.Decode(r) },
	},
	"webp": {
		func(r *bytes.Reader) (image.Config, error) { return webp.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Image, error) { return webp.Decode(r) },
	},
}

// Make decodes the image, scales it to fit and encodes it as a PNG. Errors:
// ErrVector, ErrUnknown, ErrSize, ErrTooDetailed.
func Make(data []byte, fit Bounds) (Picture, error) {
	img, err := decode(data)
	if err != nil {
		return Picture{}, err
	}
	// An image with too much detail for the byte limit may fit within half the bounds.
	for _, b := range []Bounds{fit, {Width: fit.Width / 2, Height: fit.Height / 2}} {
		small := scale(img, b)
		out, err := encode(small)
		if err != nil {
			return Picture{}, err
		}
		if len(out) <= fit.Bytes {
			size := small.Bounds()
			return Picture{PNG: out, Width: size.Dx(), Height: size.Dy(), Background: backgroundFor(small)}, nil
		}
	}
	return Picture{}, ErrTooDetailed
}

func decode(data []byte) (image.Image, error) {
	format := Format(data)
	codec, ok := codecs[format]
	switch {
	case format == "svg":
		return nil, ErrVector
	case !ok:
		return nil, ErrUnknown
	case format == "jpeg" && bytes.Count(data, []byte{0xff, 0xda}) > maxScans:
		return nil, errManyScans
	}
	claimed, err := codec.config(bytes.NewReader(data))
	if err != nil {
		return nil, errors.Join(ErrUnknown, err)
	}
	if w, h := claimed.Width, claimed.Height; w < 1 || h < 1 || w > MaxSide || h > MaxSide || w*h > MaxPixels {
		return nil, ErrSize
	}
	img, err := codec.decode(bytes.NewReader(data))
	if err != nil {
		return nil, errors.Join(ErrUnknown, err)
	}
	return img, nil
}

// scale returns a copy that fits, in proportion and never enlarged.
func scale(img image.Image, fit Bounds) *image.RGBA {
	from := img.Bounds()
	w, h := from.Dx(), from.Dy()
	if w > fit.Width {
		w, h = fit.Width, max(1, h*fit.Width/w)
	}
	if h > fit.Height {
		w, h = max(1, w*fit.Height/h), fit.Height
	}
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(to, to.Bounds(), toFastType(img), from, draw.Src, nil)
	return to
}

// toFastType converts the image to a type that the scaler handles fast: for others it calls
// an interface method for each pixel, several times.
func toFastType(img image.Image) image.Image {
	switch img.(type) {
	case *image.Gray, *image.NRGBA, *image.RGBA, *image.YCbCr:
		return img
	}
	plain := image.NewRGBA(img.Bounds())
	stddraw.Draw(plain, plain.Bounds(), img, img.Bounds().Min, stddraw.Src)
	return plain
}

func encode(img image.Image) ([]byte, error) {
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err := encoder.Encode(&out, img)
	return out.Bytes(), err
}
