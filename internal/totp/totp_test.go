package totp

import (
	"encoding/hex"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/qrsvg"
)

var rfcSeed = []byte("12345678901234567890")

// The SHA-1 rows of RFC 6238, appendix B, of which six digits are the last six of eight.
func TestRFC6238(t *testing.T) {
	for at, want := range map[int64]string{
		59:          "94287082",
		1111111109:  "07081804",
		1111111111:  "14050471",
		1234567890:  "89005924",
		2000000000:  "69279037",
		20000000000: "65353130",
	} {
		if got := Code(rfcSeed, Step(time.Unix(at, 0))); got != want[2:] {
			t.Errorf("at %d: %s, want %s", at, got, want[2:])
		}
	}
}

// The rows of RFC 4226, appendix D: the same function of a counter.
func TestRFC4226(t *testing.T) {
	for step, want := range []string{
		"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
	} {
		if got := Code(rfcSeed, int64(step)); got != want {
			t.Errorf("step %d: %s, want %s", step, got, want)
		}
	}
}

func TestOathtoolAgrees(t *testing.T) {
	oathtool := installed.Program(t, "oathtool", "oathtool")
	for range 20 {
		seed := NewSeed()
		at := time.Unix(int64(seed[0])<<24|int64(seed[1])<<16|int64(seed[2])<<8|int64(seed[3]), 0)
		out, err := exec.Command(oathtool, "--totp", "--base32", "--digits=6",
			"--now=@"+strconv.FormatInt(at.Unix(), 10), Base32(seed)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got, want := Code(seed, Step(at)), strings.TrimSpace(string(out)); got != want {
			t.Errorf("seed %x at %d: %s, oathtool says %s", seed, at.Unix(), got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	step := Step(now)
	code := func(offset int64) string { return Code(rfcSeed, step+offset) }
	right := code(0)
	for name, c := range map[string]struct {
		code  string
		after int64
		want  int64 // 0: refused
	}{
		"now":                      {right, 0, step},
		"the step before":          {code(-1), 0, step - 1},
		"the next step":            {code(1), 0, step + 1},
		"two steps before":         {code(-2), 0, 0},
		"two steps after":          {code(2), 0, 0},
		"used":                     {right, step, 0},
		"older than the used one":  {code(-1), step, 0},
		"newer than the used one":  {code(1), step, step + 1},
		"with another separator":   {right[:3] + "-" + right[3:], 0, 0},
		"empty":                    {"", 0, 0},
		"only spaces":              {"      ", 0, 0},
		"five digits":              {right[:5], 0, 0},
		"seven digits":             {right + "0", 0, 0},
		"a zero byte at the end":   {right + "\x00", 0, 0},
		"digits of another script": {strings.Map(func(r rune) rune { return r - '0' + '٠' }, right), 0, 0},
	} {
		got, ok := Match(rfcSeed, c.code, now, c.after)
		if got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: step %d, %v; want %d", name, got-step, ok, c.want-step)
		}
	}
	if _, ok := Match(NewSeed(), right, now, 0); ok {
		t.Error("the code of another seed matches")
	}
}

// Where two steps within reach have the same code, using it once must use up both.
func TestSameCodeTwice(t *testing.T) {
	const step = 910737 // found by search: the first such step of this seed
	if Code(rfcSeed, step) != Code(rfcSeed, step+1) {
		t.Fatal("the codes differ")
	}
	now := time.Unix(step*period, 0)
	used, ok := Match(rfcSeed, Code(rfcSeed, step), now, 0)
	if !ok || used != step+1 {
		t.Fatalf("step %d, %v; want the later one, %d", used, ok, step+1)
	}
	if _, ok := Match(rfcSeed, Code(rfcSeed, step), now, used); ok {
		t.Error("the code is valid twice")
	}
}

func TestNewSeed(t *testing.T) {
	first, second := NewSeed(), NewSeed()
	if len(first) != 20 || string(first) == string(second) {
		t.Errorf("%s, %s: want 20 random bytes", hex.EncodeToString(first), hex.EncodeToString(second))
	}
}

func TestURI(t *testing.T) {
	const want = "otpauth://totp/ACME%20Co:john.doe@example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" +
		"&issuer=ACME%20Co&algorithm=SHA1&digits=6&period=30"
	if got := URI("ACME Co", "john.doe@example.com", rfcSeed); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The longest brand and the longest account still fit a QR code.
func TestURIOfLongNames(t *testing.T) {
	account := strings.Repeat("a", 64) + "@" + strings.Repeat("b.", 90) + "example"
	for issuer, want := range map[string]string{
		strings.Repeat("Brand ", 16): "Brand Brand Brand Brand Brand Brand Brand Brand Brand Bra…",
		strings.Repeat("🦙", 100):     strings.Repeat("🦙", 14) + "…",
		strings.Repeat("x", 60):      strings.Repeat("x", 60),
	} {
		text := URI(issuer, account, rfcSeed)
		parsed, err := url.Parse(text)
		if err != nil || parsed.Query().Get("issuer") != want {
			t.Errorf("%s, %v; want the issuer %q", text, err, want)
		}
		if _, err := qrsvg.Draw(text, "code"); err != nil {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}

func TestURIEscapes(t *testing.T) {
	const issuer, account = `Müller & Söhne: 100 %/?#`, `"a:b"+c&d=e@example.com`
	text := URI(issuer, account, rfcSeed)
	if strings.Contains(text, "+") {
		t.Errorf("%s has a plus sign, which apps read in two ways", text)
	}
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	label := strings.Split(strings.TrimPrefix(parsed.Path, "/"), ":")
	clean := func(s string) string { return strings.ReplaceAll(s, ":", " ") }
	if len(label) != 2 || label[0] != clean(issuer) || label[1] != clean(account) {
		t.Errorf("the label is %q", label)
	}
	if got := parsed.Query().Get("issuer"); got != clean(issuer) {
		t.Errorf("the issuer is %q", got)
	}
}
