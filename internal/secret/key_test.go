package secret

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

// documentedForm is the pattern of docs/secret-scanning.md.
var documentedForm = regexp.MustCompile(`^dw[ksoc]_[0-9A-Za-z]{49}$`)

func TestKeyForm(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		key := NewKey("dwk_")
		text := key.Reveal()
		if !documentedForm.MatchString(text) || seen[text] {
			t.Fatalf("a key is %q", text)
		}
		seen[text] = true
		if n, ok := new(big.Int).SetString(swapCase(text[4:47]), 62); !ok || n.BitLen() > 256 {
			t.Fatalf("%s holds more than 256 bits", text)
		}
		sum, _ := new(big.Int).SetString(swapCase(text[47:]), 62)
		if want := crc32.ChecksumIEEE([]byte(text[:47])); sum.Uint64() != uint64(want) {
			t.Fatalf("the checksum of %s is %d, want %d", text, sum, want)
		}
		parsed, err := ParseKey(text)
		if err != nil || parsed.Reveal() != text || parsed.Hash() != key.Hash() || parsed.Prefix() != "dwk_" {
			t.Fatalf("%s is read as %q, %v", text, parsed.Reveal(), err)
		}
		if want := text[:8] + "…" + text[49:]; key.Hint() != want {
			t.Fatalf("the hint is %q, want %q", key.Hint(), want)
		}
	}
}

// swapCase turns base62 into the digits of math/big, and back.
func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func TestWrongCharacterIsFound(t *testing.T) {
	text := NewKey("dws_").Reveal()
	for n := range text {
		for _, c := range "0Az_-é\x00" {
			wrong := text[:n] + string(c) + text[n+1:]
			if wrong == text {
				continue
			}
			if _, err := ParseKey(wrong); err == nil {
				t.Errorf("%q is a key, with another character at %d", wrong, n)
			}
		}
	}
	for _, wrong := range []string{"", text[1:], text[:52], text + "0", " " + text, "dwk_" + text[4:], strings.ToLower(text)} {
		if _, err := ParseKey(wrong); err == nil {
			t.Errorf("%q is a key", wrong)
		}
	}
}

func TestKeyRedactsItself(t *testing.T) {
	key := NewKey("dwk_")
	text := key.Reveal()[4:]
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%p"} {
		for _, v := range []any{key, &key, struct{ K Key }{key}, struct{ k Key }{key}, []Key{key}} {
			got := fmt.Sprintf(format, v)
			if strings.Contains(got, text) || strings.Contains(got, fmt.Sprintf("%x", text)) || strings.Contains(got, fmt.Sprintf("%d", []byte(text))) {
				t.Errorf("%s of %T shows the key: %s", format, v, got)
			}
		}
	}
	if got, err := json.Marshal(map[string]any{"k": key}); err != nil || string(got) != `{"k":"[redacted]"}` {
		t.Errorf("as JSON: %s, %v", got, err)
	}
}

func TestParseKeyAllocatesNothing(t *testing.T) {
	text := NewKey("dwk_").Reveal()
	var h Hash
	if n := testing.AllocsPerRun(100, func() {
		key, err := ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		h = key.Hash()
	}); n > 0 {
		t.Errorf("parsing and hashing a key allocates %v times", n)
	}
	_ = h
}

func FuzzParseKey(f *testing.F) {
	f.Add(NewKey("dwk_").Reveal())
	f.Add("dwk_")
	f.Fuzz(func(t *testing.T, s string) {
		if key, err := ParseKey(s); err == nil && key.Reveal() != s {
			t.Errorf("%q is read as %q", s, key.Reveal())
		}
	})
}

func BenchmarkParseKey(b *testing.B) {
	text := NewKey("dwk_").Reveal()
	for b.Loop() {
		key, _ := ParseKey(text)
		key.Hash()
	}
}
