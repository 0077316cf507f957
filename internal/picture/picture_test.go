package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
)

var fit = Bounds{Width: 512, Height: 128, Bytes: 64 << 10}

// plain returns an image of one colour.
func plain(w, h int, c color.Color) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.Set(i%w, i/w, c)
	}
	return img
}

func asPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func asJPEG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func decodeBase64(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The smallest WebPs, lossy and lossless. There is no encoder for them in the tests.
const (
	lossyWebP    = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
	losslessWebP = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
)

var red = color.NRGBA{200, 30, 40, 255}

// samples are accepted images, with the size of the result.
func samples(t testing.TB) map[string]struct {
	data          []byte
	width, height int
} {
	type sample = struct {
		data          []byte
		width, height int
	}
	paletted := image.NewPaletted(image.Rect(0, 0, 1024, 64), color.Palette{color.Transparent, red})
	return map[string]sample{
		"png":                 {asPNG(t, plain(300, 100, red)), 300, 100},
		"one pixel":           {asPNG(t, plain(1, 1, red)), 1, 1},
		"a wide png":          {asPNG(t, plain(1024, 64, red)), 512, 32},
		"a tall png":          {asPNG(t, plain(100, 1000, red)), 12, 128},
		"a line":              {asPNG(t, plain(MaxSide, 1, red)), 512, 1},
		"a paletted png":      {asPNG(t, paletted), 512, 32},
		"a png of 16 bits":    {asPNG(t, image.NewRGBA64(image.Rect(0, 0, 160, 160))), 128, 128},
		"a grey png":          {asPNG(t, image.NewGray16(image.Rect(0, 0, 640, 160))), 512, 128},
		"a wide paletted png": {asPNG(t, image.NewPaletted(image.Rect(0, 0, MaxSide, 128), color.Palette{red})), 512, 16},
		"jpeg":                {asJPEG(t, plain(300, 300, red)), 128, 128},
		"webp":                {decodeBase64(t, lossyWebP), 1, 1},
		"webp without loss":   {decodeBase64(t, losslessWebP), 1, 1},
	}
}

// The result is a PNG of the reported size, and deterministic.
func TestMake(t *testing.T) {
	for name, s := range samples(t) {
		p, err := Make(s.data, fit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		found, err := png.DecodeConfig(bytes.NewReader(p.PNG))
		if err != nil || found.Width != p.Width || found.Height != p.Height || p.Width != s.width || p.Height != s.height {
			t.Errorf("%s: %v, a PNG of %dx%d, said to be %dx%d, want %dx%d", name, err, found.Width, found.Height, p.Width, p.Height, s.width, s.height)
		}
		again, err := Make(s.data, fit)
		if err != nil || !bytes.Equal(p.PNG, again.PNG) {
			t.Errorf("%s: a different PNG the second time, %v", name, err)
		}
		once, err := Make(p.PNG, fit)
		if err != nil || !bytes.Equal(p.PNG, once.PNG) {
			t.Errorf("%s: the result is changed when processed again, %v", name, err)
		}
	}
}

// chunk returns a chunk of a PNG.
func chunk(kind string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	body := append([]byte(kind), data...)
	return binary.BigEndian.AppendUint32(append(out, body...), crc32.ChecksumIEEE(body))
}

// pngHeader returns a PNG that ends after its claimed size: it can't be decoded.
func pngHeader(w, h uint32) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	return append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(head, 8, 6, 0, 0, 0))...)
}

// The size is checked before decoding.
func TestBombs(t *testing.T) {
	for name, data := range map[string][]byte{
		"50000 by 50000":  pngHeader(50000, 50000),
		"a long line":     pngHeader(MaxSide+1, 1),
		"a tall line":     pngHeader(1, MaxSide+1),
		"too many pixels": pngHeader(2049, 2049),
	} {
		if _, err := Make(data, fit); !errors.Is(err, ErrSize) {
			t.Errorf("%s: %v, want %v", name, err, ErrSize)
		}
	}
	for _, most := range [][2]uint32{{2048, 2048}, {MaxSide, MaxPixels / MaxSide}} {
		if _, err := Make(pngHeader(most[0], most[1]), fit); !errors.Is(err, ErrUnknown) {
			t.Errorf("the maximum of pixels, and no data after the header: %v", err)
		}
	}
}

// manyScans returns a square JPEG with sides of size×256 pixels. Each scan covers it in about
// twenty bytes: each of its three codes marks 32,767 blocks of 8×8 as empty, enough for size 8.
func manyScans(size byte, scans int) []byte {
	var out bytes.Buffer
	segment := func(marker byte, data ...byte) {
		out.Write([]byte{0xff, marker})
		_ = binary.Write(&out, binary.BigEndian, uint16(len(data)+2))
		out.Write(data)
	}
	out.Write([]byte{0xff, 0xd8})
	segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...) // quantisation
	segment(0xc2, 8, size, 0, size, 0, 1, 1, 0x11, 0)                   // progressive, one component
	for _, class := range []byte{0x00, 0x10} {
		// One Huffman code, of one bit: EOB14, which ends the band of the next 2^14 + n blocks,
		// where n is in the 14 bits after it.
		segment(0xc4, append(append([]byte{class, 1}, make([]byte, 15)...), 0xe0)...)
	}
	for range scans {
		segment(0xda, 1, 1, 0, 1, 63, 0)
		// Three times the code 0 and fourteen ones, and ones to the end; 0xff is
		// followed by a zero.
		out.Write([]byte{0x7f, 0xfe, 0xff, 0, 0xfd, 0xff, 0, 0xff, 0})
	}
	out.Write([]byte{0xff, 0xd9})
	return out.Bytes()
}

// A JPEG of 200 KiB could occupy a processor for minutes; encoders write about ten
// scans.
func TestManyScans(t *testing.T) {
	if _, err := Make(manyScans(8, 10_000), fit); !errors.Is(err, errManyScans) {
		t.Errorf("a JPEG with 10000 scans: %v", err)
	}
	if _, err := Make(manyScans(1, 3), fit); err != nil {
		t.Errorf("a JPEG with three scans: %v", err)
	}
}

// Anything but the three formats is refused, and SVG, unless compressed, with its own error.
func TestRefusedFormats(t *testing.T) {
	var animated bytes.Buffer
	if err := gif.Encode(&animated, plain(8, 8, red), nil); err != nil {
		t.Fatal(err)
	}
	good := asPNG(t, plain(8, 8, red))
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("logo"), "gif": animated.Bytes(), "pdf": []byte("%PDF-1.7"), "html": []byte("<!doctype html><script>alert(1)</script>"),
		"a script behind a byte of PNG": []byte("\x89<script>"), "only the signature": good[:8], "half of it": good[:len(good)/2],
		"a space before": append([]byte(" "), good...), "a wrong checksum": bytes.Replace(good, []byte("IDAT"), []byte("IDAX"), 1),
		"riff without webp": []byte("RIFF\x04\x00\x00\x00WAVEfmt "), "no pixels": pngHeader(0, 0),
		"bmp": []byte("BM\x3a\x00\x00\x00"), "tiff": []byte("II*\x00\x08\x00\x00\x00"), "compressed svg": []byte("\x1f\x8b\x08\x00"),
	} {
		if _, err := Make(data, fit); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v, want %v", name, err, ErrUnknown)
		}
	}
	for _, svg := range []string{
		`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, "\ufeff<?xml version=\"1.0\"?>\n<!-- x -->\n<svg/>",
		"  \n<SVG>", `<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x">`,
	} {
		if _, err := Make([]byte(svg), fit); !errors.Is(err, ErrVector) {
			t.Errorf("%q: %v, want %v", svg, err, ErrVector)
		}
	}
}

// A truncated image is an error, without a panic.
func TestCutOff(t *testing.T) {
	for name, s := range samples(t) {
		for n := 0; n < len(s.data)-1; n += 1 + len(s.data)/29 { // the last byte of a WebP may be padding
			if _, err := Make(s.data[:n], fit); err == nil {
				t.Errorf("%s cut off at %d of %d is accepted", name, n, len(s.data))
			}
		}
	}
}

// The result contains only the image, even if the input is also something else.
func TestPolyglots(t *testing.T) {
	const payload = "<script>alert(document.domain)</script>"
	whole := asPNG(t, plain(40, 20, red))
	head, rest := whole[:33], whole[33:] // after IHDR
	text := append(append([]byte{}, head...), append(chunk("tEXt", []byte("Comment\x00"+payload)), rest...)...)
	photo := asJPEG(t, plain(40, 20, red))
	comment := append([]byte{0xff, 0xd8, 0xff, 0xfe, 0, byte(len(payload) + 2)}, payload...)
	for name, data := range map[string][]byte{
		"a page behind a PNG":    append(append([]byte{}, whole...), payload...),
		"a page in a PNG's text": text,
		"a page in a JPEG":       append(comment, photo[2:]...),
		"a page behind a JPEG":   append(append([]byte{}, photo...), payload...),
		"a zip behind a PNG":     append(append([]byte{}, whole...), "PK\x05\x06"+payload...),
	} {
		p, err := Make(data, fit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if bytes.Contains(p.PNG, []byte("script")) || bytes.Contains(p.PNG, []byte("tEXt")) || bytes.Contains(p.PNG, []byte("PK")) {
			t.Errorf("%s is still in the result: %q", name, p.PNG)
		}
	}
}

// noise returns an incompressible image.
func noise(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	source := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(source.Uint32())
	}
	return img
}

// An image with too much detail for the byte limit is scaled to half the bounds. One that is no
// larger than that is refused.
func TestDetail(t *testing.T) {
	if _, err := Make(asPNG(t, noise(256, 64)), fit); !errors.Is(err, ErrTooDetailed) {
		t.Errorf("noise: %v, want %v", err, ErrTooDetailed)
	}
	p, err := Make(asPNG(t, noise(512, 128)), Bounds{Width: 512, Height: 128, Bytes: 100 << 10})
	if err != nil || p.Width != 256 || p.Height != 64 || len(p.PNG) > 100<<10 {
		t.Errorf("noise with a higher limit: %d bytes, %dx%d, %v", len(p.PNG), p.Width, p.Height, err)
	}
}

// twoColours returns a picture with two colours, left and right.
func twoColours(left, right color.Color) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 60, 20))
	for i := range 60 * 20 {
		c := left
		if i%60 >= 30 {
			c = right
		}
		img.Set(i%60, i/60, c)
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // into memory
	return out.Bytes()
}

func TestBackground(t *testing.T) {
	clear := color.NRGBA{}
	navy, yellow := color.NRGBA{10, 20, 60, 255}, color.NRGBA{255, 204, 0, 255}
	for name, c := range map[string]struct {
		data []byte
		want Background
	}{
		"black letters":            {twoColours(color.Black, clear), LightBackground},
		"white letters":            {twoColours(color.White, clear), DarkBackground},
		"dark blue letters":        {twoColours(navy, clear), LightBackground},
		"yellow letters":           {twoColours(yellow, clear), AnyBackground},
		"red letters":              {twoColours(red, clear), AnyBackground},
		"black letters on white":   {twoColours(color.Black, color.White), AnyBackground},
		"nothing to be seen":       {twoColours(clear, clear), AnyBackground},
		"nearly transparent black": {twoColours(color.NRGBA{0, 0, 0, 20}, clear), AnyBackground},
	} {
		p, err := Make(c.data, fit)
		if err != nil || p.Background != c.want {
			t.Errorf("%s: background %q, %v; want %q", name, p.Background, err, c.want)
		}
	}
}

func FuzzMake(f *testing.F) {
	f.Add(asPNG(f, plain(3, 2, red)))
	f.Add(asJPEG(f, plain(8, 8, red)))
	f.Add(decodeBase64(f, lossyWebP))
	f.Add(decodeBase64(f, losslessWebP))
	f.Add(manyScans(1, 3))
	f.Add(pngHeader(9, 9))
	f.Add([]byte(strings.Repeat("<svg", 9)))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Make(data, fit)
		if err != nil {
			return
		}
		found, err := png.DecodeConfig(bytes.NewReader(p.PNG))
		if err != nil || found.Width > fit.Width || found.Height > fit.Height || len(p.PNG) > fit.Bytes {
			t.Errorf("a PNG of %d bytes, %dx%d, %v", len(p.PNG), found.Width, found.Height, err)
		}
	})
}
