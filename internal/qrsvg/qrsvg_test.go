package qrsvg

import (
	"encoding/xml"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/installed"
)

const uri = "otpauth://totp/M%C3%BCller%20%26%20S%C3%B6hne:john.doe@example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" +
	"&issuer=M%C3%BCller%20%26%20S%C3%B6hne&algorithm=SHA1&digits=6&period=30"

// Two independent programs check the code: one draws the SVG, the other reads the picture.
func TestCodeIsReadable(t *testing.T) {
	convert := installed.Program(t, "rsvg-convert", "librsvg2-bin")
	zbar := installed.Program(t, "zbarimg", "zbar-tools")
	for name, text := range map[string]string{
		"an address": uri,
		"one letter": "a",
		"long":       uri + strings.Repeat("x", 900),
	} {
		t.Run(name, func(t *testing.T) {
			drawn, err := Draw(text, "")
			if err != nil {
				t.Fatal(err)
			}
			picture := filepath.Join(t.TempDir(), "code.png")
			render := exec.Command(convert, "--width=800", "--output="+picture)
			render.Stdin = strings.NewReader(drawn)
			if out, err := render.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			read, err := exec.Command(zbar, "--quiet", "--raw", "--set", "*.enable=0", "--set", "qrcode.enable=1", picture).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(string(read), "\n"); got != text {
				t.Errorf("read %q, want %q", got, text)
			}
		})
	}
}

// The picture has no script, and nothing that a page's policy would block.
func TestPlainSVG(t *testing.T) {
	const title = `</title><script>alert("1")</script>`
	drawn, err := Draw(uri, title)
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"xmlns", "viewBox", "role", "shape-rendering", "fill", "d"}
	var elements []string
	var text strings.Builder
	decoder := xml.NewDecoder(strings.NewReader(drawn))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements = append(elements, token.Name.Local)
			for _, attribute := range token.Attr {
				if !slices.Contains(allowed, attribute.Name.Local) {
					t.Errorf("the attribute %s is not allowed", attribute.Name.Local)
				}
			}
		case xml.CharData:
			text.Write(token)
		}
	}
	if want := []string{"svg", "title", "path", "path"}; !slices.Equal(elements, want) {
		t.Errorf("elements %q, want %q", elements, want)
	}
	if text.String() != title {
		t.Errorf("title %q, want %q", text.String(), title)
	}
}

func TestTooLong(t *testing.T) {
	if _, err := Draw(strings.Repeat("x", 3000), ""); err == nil {
		t.Error("3,000 bytes are accepted")
	}
}
