package secret_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/secret"
)

// known is the encoding of the bytes 0x00 to 0x1f, a token that was never issued.
const known = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

func TestTokenSpelling(t *testing.T) {
	token, err := secret.Parse(known)
	if err != nil {
		t.Fatalf("Parse(known) = %v", err)
	}
	if got := token.Reveal(); got != known {
		t.Errorf("Reveal() = %q, want %q", got, known)
	}
	// Computed independently: SHA-256 of the bytes 0x00 to 0x1f.
	const want = "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd"
	hash := token.Hash()
	if got := hex.EncodeToString(hash[:]); got != want {
		t.Errorf("Hash() = %s, want %s", got, want)
	}
}

func TestNewTokensDiffer(t *testing.T) {
	seen := map[secret.Hash]bool{}
	var ones [256]int // how often each bit is set
	for range 1000 {
		token := secret.New()
		if seen[token.Hash()] {
			t.Fatal("New() repeated a token within 1,000")
		}
		seen[token.Hash()] = true

		raw, err := base64.RawURLEncoding.DecodeString(token.Reveal())
		if err != nil || len(raw) != 32 {
			t.Fatalf("Reveal() is %d bytes, error %v; want 32 bytes", len(raw), err)
		}
		if secret.Hash(sha256.Sum256(raw)) != token.Hash() {
			t.Fatal("Hash() is not the SHA-256 of the revealed bytes")
		}
		for i := range ones {
			ones[i] += int(raw[i/8] >> (i % 8) & 1)
		}
	}
	// 150 off the mean is 9.5 standard deviations: it won't happen by chance.
	for i, n := range ones {
		if n < 350 || n > 650 {
			t.Errorf("bit %d is set in %d of 1,000 tokens; it is not random", i, n)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, s := range map[string]string{
		"empty":              "",
		"one short":          known[:42],
		"one long":           known + "A",
		"padded":             known + "=",
		"padding inside":     known[:42] + "=",
		"unused bits set":    known[:42] + "9",
		"standard alphabet":  "+/" + known[2:],
		"line feed inside":   known[:10] + "\n" + known[11:],
		"carriage return":    "\r" + known[1:],
		"trailing newline":   known[:42] + "\n",
		"space":              " " + known[1:],
		"non-ASCII":          "é" + known[2:],
		"NUL":                "\x00" + known[1:],
		"all newlines":       strings.Repeat("\n", 43),
		"far too long":       strings.Repeat("A", 1<<16),
		"another tool's id":  "1A2B3C4D5E6F708192A3B4C5D6E7F809.node1",
		"another's, 43 long": "1A2B3C4D5E6F708192A3B4C5D6E7F809.node100001",
	} {
		token, err := secret.Parse(s)
		if !errors.Is(err, secret.ErrMalformed) {
			t.Errorf("%s: Parse = %v, want ErrMalformed", name, err)
		}
		if !panics(func() { token.Hash() }) || !panics(func() { token.Reveal() }) {
			t.Errorf("%s: the token returned with the error is usable", name)
		}
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// spellings returns the secret in every format that fmt has for a string or an array of
// bytes.
func spellings(raw []byte, text string) []string {
	return []string{
		text,
		strings.Trim(fmt.Sprint(raw), "[]"),
		strings.Trim(fmt.Sprintf("%b", raw), "[]"),
		strings.Trim(fmt.Sprintf("%o", raw), "[]"),
		strings.Trim(fmt.Sprintf("%q", raw), `"`),
		fmt.Sprintf("%x", raw), fmt.Sprintf("%X", raw),
		fmt.Sprintf("%x", text), fmt.Sprintf("%X", text),
		fmt.Sprintf("%#v", raw)[len("[]byte{"):],
		base64.StdEncoding.EncodeToString([]byte(text)),
	}
}

// Structs as they typically hold a secret. fmt calls no method on the unexported
// fields.
type (
	exported   struct{ Secret any }
	unexported struct {
		token secret.Token
	}
)

func TestEveryVerbIsRedacted(t *testing.T) {
	token, _ := secret.Parse(known)
	raw, _ := base64.RawURLEncoding.DecodeString(known)
	leaks := spellings(raw, known)
	inside := unexported{token: token}

	for _, verb := range "vTtbcdoOqxXUeEfFgGspwz!" {
		for _, flag := range []string{"", "+", "#", "-", " ", "0", "+#", "80", ".3", "080.90"} {
			format := "%" + flag + string(verb)
			for _, value := range []any{
				token, &token, inside, &inside,
				exported{token},
				exported{&token},
				exported{inside},
				[]secret.Token{token},
				[]any{token},
				map[string]secret.Token{"k": token},
				map[string]any{"k": inside},
			} {
				out := fmt.Sprintf(format, value)
				checkNoLeak(t, fmt.Sprintf("Sprintf(%q, %T)", format, value), out, leaks)
			}
		}
	}
}

func TestPrintedForm(t *testing.T) {
	for _, value := range []any{secret.New(), secret.Token{}} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if got := fmt.Sprintf(format, value); got != "[redacted]" {
				t.Errorf("Sprintf(%q, %T) = %q, want [redacted]", format, value, got)
			}
		}
		if got := value.(fmt.Stringer).String(); got != "[redacted]" {
			t.Errorf("%T.String() = %q, want [redacted]", value, got)
		}
		if got := fmt.Errorf("wrapped: %w", errors.New(fmt.Sprint(value))).Error(); got != "wrapped: [redacted]" {
			t.Errorf("in an error %T prints %q", value, got)
		}
	}
}

func TestLogsAreRedacted(t *testing.T) {
	token, _ := secret.Parse(known)
	raw, _ := base64.RawURLEncoding.DecodeString(known)
	leaks := spellings(raw, known)

	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		out.Reset()
		slog.New(handler).With("bound", token).WithGroup("g").Info("message",
			"token", token, "pointer", &token,
			"exported", exported{token}, "unexported", unexported{token},
			"list", []any{token}, slog.Group("deep", "token", token))
		checkNoLeak(t, fmt.Sprintf("%T", handler), out.String(), leaks)
		if got := strings.Count(out.String(), "[redacted]"); got < 5 {
			t.Errorf("%T wrote [redacted] %d times, want at least 5: %s", handler, got, &out)
		}
	}
}

func TestMarshalledFormIsRedacted(t *testing.T) {
	got, err := json.Marshal(map[string]any{
		"token": secret.New(), "map": map[string]secret.Token{"k": secret.New()},
	})
	const want = `{"map":{"k":"[redacted]"},"token":"[redacted]"}`
	if err != nil || string(got) != want {
		t.Errorf("Marshal = %s, %v; want %s", got, err, want)
	}
	if got, err := secret.New().MarshalText(); err != nil || string(got) != "[redacted]" {
		t.Errorf("MarshalText() = %s, %v", got, err)
	}
}

func checkNoLeak(t *testing.T, what, out string, leaks []string) {
	t.Helper()
	for _, leak := range leaks {
		if strings.Contains(out, leak) {
			t.Errorf("%s shows the secret as %q: %s", what, leak, out)
		}
	}
}

// sink keeps the compiler from dropping what a benchmark computes.
var sink secret.Hash

func parseAndHash(t testing.TB, s string) {
	token, err := secret.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	sink = token.Hash()
}

func TestParseAndHashDoNotAllocate(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { parseAndHash(t, known) }); got != 0 {
		t.Errorf("Parse and Hash allocate %v times a call, want 0: has Parse grown too big to be inlined?", got)
	}
	if got := testing.AllocsPerRun(100, func() { _, _ = secret.Parse("nonsense") }); got != 0 {
		t.Errorf("a refused Parse allocates %v times, want 0", got)
	}
}

func BenchmarkParseAndHash(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		parseAndHash(b, known)
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sink = secret.New().Hash()
	}
}

// FuzzParse checks that Parse accepts exactly the strings that Reveal returns
// unchanged.
func FuzzParse(f *testing.F) {
	f.Add(known)
	f.Add(known[:42] + "9")
	f.Add(known[:42] + "\n")
	f.Add(strings.Repeat("_", 42) + "8")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		token, err := secret.Parse(s)
		raw, rawErr := base64.RawURLEncoding.DecodeString(s)
		canonical := rawErr == nil && len(raw) == 32 && base64.RawURLEncoding.EncodeToString(raw) == s
		if canonical != (err == nil) {
			t.Fatalf("Parse(%q) = %v, but canonical is %v", s, err, canonical)
		}
		if err == nil && (token.Reveal() != s || token.Hash() != secret.Hash(sha256.Sum256(raw))) {
			t.Fatalf("Parse(%q) reveals %q", s, token.Reveal())
		}
	})
}
