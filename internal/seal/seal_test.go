package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var place = Place{Table: "signing_keys", ID: "k1", Column: "private"}

func TestSealedOpensInItsPlaceOnly(t *testing.T) {
	key := NewKey()
	for _, plain := range [][]byte{nil, []byte("a"), bytes.Repeat([]byte("x"), MaxPlain)} {
		sealed := key.Seal(place, plain)
		if got, err := key.Open(place, sealed); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%d bytes open as %d, %v", len(plain), len(got), err)
		}
		for _, other := range []Place{
			{"signing_keys", "k2", "private"},
			{"webhooks", "k1", "private"},
			{"signing_keys", "k1", "public"},
			{"signing_keysk1", "", "private"},
			{"signing_key", "sk1", "private"},
			{},
		} {
			if _, err := key.Open(other, sealed); !errors.Is(err, ErrDamaged) {
				t.Errorf("opened at %v: %v, want ErrDamaged", other, err)
			}
		}
	}
}

func TestEveryByteIsAuthenticated(t *testing.T) {
	key := NewKey()
	sealed := key.Seal(place, []byte("secret"))
	for n := range sealed {
		changed := bytes.Clone(sealed)
		changed[n] ^= 1
		if _, err := key.Open(place, changed); err == nil {
			t.Errorf("with byte %d changed it opens", n)
		}
		if _, err := key.Open(place, sealed[:n]); err == nil {
			t.Errorf("cut to %d bytes it opens", n)
		}
	}
}

func TestSealingTwiceLooksDifferent(t *testing.T) {
	key := NewKey()
	a, b := key.Seal(place, []byte("secret")), key.Seal(place, []byte("secret"))
	if bytes.Equal(a, b) || bytes.Contains(a, []byte("secret")) {
		t.Error("a sealed value shows what it holds")
	}
}

func TestAnotherKeyIsNamed(t *testing.T) {
	right, wrong := NewKey(), NewKey()
	sealed := right.Seal(place, []byte("secret"))
	_, err := NewRing(wrong).Open(place, sealed)
	if unknown := (*UnknownKeyError)(nil); !errors.As(err, &unknown) || unknown.ID != right.ID() {
		t.Errorf("opened with the wrong key: %v, want the id of the right one", err)
	}
	if got, err := NewRing(wrong, right).Open(place, sealed); err != nil || string(got) != "secret" {
		t.Errorf("with both keys: %q, %v", got, err)
	}
	if id, err := ParseID(right.ID().String()); err != nil || id != right.ID() {
		t.Errorf("the id reads as %v, %v", id, err)
	}
}

func TestParse(t *testing.T) {
	key := NewKey()
	text := key.Reveal()
	for _, good := range []string{text, strings.TrimSpace(text), strings.TrimSpace(text) + "\r\n"} {
		if got, err := Parse(good); err != nil || got.ID() != key.ID() {
			t.Errorf("%q is read as %v, %v", good, got, err)
		}
	}
	for _, bad := range []string{
		"", "\n", text + "\n", " " + text, text[:20] + "\n" + text[20:], strings.TrimRight(text, "=\n"), text[:40], text + text,
		strings.Repeat("A", 43) + "=", "!" + text[1:],
	} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		} else if len(bad) > 10 && strings.Contains(err.Error(), strings.TrimSpace(bad)) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}

func TestKeyPrintsAsItsID(t *testing.T) {
	key := NewKey()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{key, &key, struct{ K Key }{key}, []Key{key}} {
			got := fmt.Sprintf(format, v)
			if strings.Contains(got, strings.TrimSpace(key.Reveal())) || strings.Contains(got, fmt.Sprintf("%x", *key.bits)) ||
				strings.Contains(got, fmt.Sprintf("%d", *key.bits)) {
				t.Errorf("%s of %T shows the key: %s", format, v, got)
			}
		}
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doorward.key")
	key, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	text, _ := os.ReadFile(path)
	if got, err := Parse(string(text)); err != nil || got.ID() != key.ID() {
		t.Errorf("the file holds %v, %v", got, err)
	}
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second Create: %v, want fs.ErrExist", err)
	}
	if again, _ := os.ReadFile(path); !bytes.Equal(again, text) {
		t.Error("the second try has changed the file")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files are left, want 1", len(left))
	}
}

func FuzzOpen(f *testing.F) {
	key := NewKey()
	f.Add(key.Seal(place, []byte("secret")))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		if plain, err := key.Open(place, sealed); err == nil && string(plain) != "secret" {
			t.Errorf("%x opens as %q", sealed, plain)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	key, plain := NewKey(), make([]byte, 64)
	for b.Loop() {
		key.Seal(place, plain)
	}
}
