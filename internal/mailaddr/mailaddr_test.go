package mailaddr_test

import (
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/internal/mailaddr"
)

// label returns a domain label of n letters.
func label(n int) string { return strings.Repeat("a", n) }

// longDomain returns a domain of exactly n bytes; n must not be a multiple of 64.
func longDomain(n int) string {
	return strings.Repeat(label(63)+".", n/64) + label(n%64)
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"ann@example.com", "ann@example.com"},
		{"Ann.Other@Example.COM", "ann.other@example.com"},
		{"ann+tag@example.com", "ann+tag@example.com"},
		{"a.n.n@example.com", "a.n.n@example.com"},
		{"!#$%&'*+-/=?^_`{|}~@example.com", "!#$%&'*+-/=?^_`{|}~@example.com"},
		{"-@example.com", "-@example.com"},
		{"1@2.example", "1@2.example"},
		{"a@1.2.3.example", "a@1.2.3.example"},
		{"a@b.c", "a@b.c"},
		{"a@3com.com", "a@3com.com"},
		{"a@my-shop.example", "a@my-shop.example"},
		{"a@x.0x1f", "a@x.0x1f"},

		{"mueller@bücher.example", "mueller@xn--bcher-kva.example"},
		{"MUELLER@BÜCHER.EXAMPLE", "mueller@xn--bcher-kva.example"},
		{"mueller@xn--bcher-kva.example", "mueller@xn--bcher-kva.example"},
		{"mueller@XN--BCHER-KVA.example", "mueller@xn--bcher-kva.example"},
		{"a@straße.example", "a@xn--strae-oqa.example"},
		{"a@STRAẞE.example", "a@xn--strae-oqa.example"},
		{"a@пример.рф", "a@xn--e1afmkfd.xn--p1ai"},
		{"a@ПРИМЕР.РФ", "a@xn--e1afmkfd.xn--p1ai"},
		{"a@παράδειγμα.δοκιμή", "a@xn--hxajbheg2az3al.xn--jxalpdlp"},
		{"a@例え.テスト", "a@xn--r8jz45g.xn--zckzah"},
		{"a@例子.中国", "a@xn--fsqu00a.xn--fiqs8s"},
		{"a@실례.테스트", "a@xn--9n2bp8q.xn--9t4b11yi5a"},
		{"a@उदाहरण.परीक्षा", "a@xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g"},
		{"a@مثال.إختبار", "a@xn--mgbh0fb.xn--kgbechtv"},
		{"a@דוגמה.טעסט", "a@xn--6dbbec0c.xn--deba0ad"},
		{"a@xn--f9dt7l.example", "a@xn--f9dt7l.example"}, // Cherokee
		{"a@col·lecció.cat", "a@xn--collecci-ioa91d.cat"},
		{
			"a@" + strings.Repeat(strings.Repeat("\U00020000", 50)+".", 4) + "example",
			"a@" + strings.Repeat("xn--j50i"+label(49)+".", 4) + "example", // fewer bytes than the input
		},

		{strings.Repeat("a", 64) + "@example.com", strings.Repeat("a", 64) + "@example.com"},
		{"a@" + label(63) + ".com", "a@" + label(63) + ".com"},
		{"a@" + longDomain(252), "a@" + longDomain(252)},
		{strings.Repeat("a", 64) + "@" + longDomain(189), strings.Repeat("a", 64) + "@" + longDomain(189)},
	} {
		got, err := mailaddr.Parse(test.in)
		if err != nil || got != test.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", test.in, got, err, test.want)
			continue
		}
		if again, err := mailaddr.Parse(got); err != nil || again != got {
			t.Errorf("Parse(%q) = %q, %v; want the same again", got, again, err)
		}
		if joined := mailaddr.Local(got) + "@" + mailaddr.Domain(got); joined != got || mailaddr.Domain(got) == "" {
			t.Errorf("Local and Domain of %q join to %q", got, joined)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for why, addresses := range map[string][]string{
		"no or several @": {"", "@", "ann", "ann.example.com", "ann@@example.com", "a@b@example.com", "a@example.com@", "ann＠example.com"},
		"empty part":      {"@example.com", "ann@"},
		"dots in local":   {".ann@example.com", "ann.@example.com", "a..b@example.com", ".@example.com"},
		"spaces":          {" ann@example.com", "ann@example.com ", "ann @example.com", "ann@ example.com", "a nn@example.com", "\tann@example.com", "ann@example.com\n"},
		"another syntax": {
			`"ann"@example.com`, `"a n"@example.com`, "Ann <ann@example.com>", "<ann@example.com>", "ann(comment)@example.com",
			"ann@example.com(comment)", "mailto:ann@example.com", "ann@example.com,bob@example.com", "ann@example.com;", `a\b@example.com`,
			"ann@example.com?subject=x", "ann@example.com>", "a[b]@example.com",
		},
		"not ASCII in local":   {"müller@bücher.example", "аnn@example.com", "ａnn@example.com", "ann\u200b@example.com", "a\u0301nn@example.com", "\u212a@example.com"},
		"controls":             {"a\x00@example.com", "ann@exam\x00ple.com", "a\x7f@example.com", "ann@example.com\r\nBcc: eve@example.com", "ann@exam\u0085ple.com"},
		"invalid UTF-8":        {"\xff@example.com", "ann@\xff.example", "ann@b\xc3.example", "ann@\xed\xa0\x80.example"},
		"one label":            {"ann@localhost", "ann@com", "ann@xn--p1ai"},
		"dots in domain":       {"ann@example.com.", "ann@.example.com", "ann@example..com", "ann@.", "ann@..", "ann@example。com", "ann@example．com", "ann@example｡com"},
		"address literal":      {"ann@[192.0.2.1]", "ann@[IPv6:2001:db8::1]", "ann@192.0.2.1", "ann@2001:db8::1", "ann@example.123", "ann@a.0"},
		"not LDH":              {"ann@exa_mple.com", "ann@example.c!m", "ann@exa*mple.com", "ann@example.com:25", "ann@example/com.example", "ann@exam%70le.com"},
		"hyphens":              {"ann@-example.com", "ann@example-.com", "ann@example.-com", "ann@example.com-", "ann@ab--cd.com"},
		"full width":           {"ann@ｅｘａｍｐｌｅ.com", "ann@example.ｃom", "ann@ｶﾅ.example", "ann@１.example"},
		"invisible":            {"ann@exam\u00adple.com", "ann@exam\u200bple.com", "ann@\ufeffexample.com", "ann@exam\u2060ple.com", "ann@exam\u200dple.com", "ann@نامه\u200cای.example", "ann@क्\u200dष.example", "ann@\u3164.example", "ann@\u2800.example", "ann@a\ufe0f.example", "ann@a\u034fb.example"},
		"compatibility form":   {"ann@ﬁ.example", "ann@①.example", "ann@℀.example", "ann@ℌ.example", "ann@x².example", "ann@㎏.example", "ann@ǅ.example"},
		"folds into ASCII":     {"ann@\u212Aelvin.example", "ann@\u0130nfo.example"},
		"symbols":              {"ann@☃.example", "ann@💩.example", "ann@a❤.example", "ann@€.example", "ann@a‐b.example", "ann@a⁄b.example"},
		"not composed":         {"ann@bu\u0308cher.example"},
		"Cherokee letters":     {"ann@ᏣᎳᎩ.example", "ann@ꮳꮃꭹ.example"},
		"leading mark":         {"ann@\u0301a.example"},
		"bidi rule":            {"ann@aא.example", "ann@אa.example", "ann@1א.example"},
		"not an A-label":       {"ann@xn--.example", "ann@xn--a.example", "ann@xn--abc-.example", "ann@xn--bcher-kv.example", "ann@xn--99999999999.example", "ann@xn--bücher.example"},
		"hidden in an A-label": {"ann@xn--n3h.example", "ann@xn--ls8h.example", "ann@xn--mgba3gch31f060k.example", "ann@xn--1ug.example", "ann@xn--bcher-kva-.example"},
		"too long": {
			strings.Repeat("a", 65) + "@example.com", "a@" + label(64) + ".com", "a@" + longDomain(253), strings.Repeat("a", 64) + "@" + longDomain(190),
			"a@" + strings.Repeat("ü", 60) + ".example", strings.Repeat("a", 1<<20), "a@" + strings.Repeat("a.", 1<<20) + "example",
			"a@" + strings.Repeat("ü.", 1<<20) + "example", strings.Repeat("@", 1<<20),
		},
	} {
		for _, in := range addresses {
			got, err := mailaddr.Parse(in)
			if got != "" || !errors.Is(err, mailaddr.ErrInvalid) {
				t.Errorf("%s: Parse(%.100q) = %q, %v; want ErrInvalid", why, in, got, err)
			}
			if err != nil && len(in) > 12 && strings.Contains(err.Error(), in[:12]) {
				t.Errorf("%s: the error repeats the input: %v", why, err)
			}
		}
	}
}

func TestErrorsSayWhichRule(t *testing.T) {
	for in, rule := range map[string]string{
		"ann":                     "exactly one @",
		"a@b@example.com":         "exactly one @",
		"a b@example.com":         "before the @",
		"ann@localhost":           "after the @",
		"a@" + longDomain(253):    "at most 254 bytes",
		strings.Repeat("a", 9999): "at most 254 bytes",
	} {
		if _, err := mailaddr.Parse(in); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("Parse(%.60q) = %v, want an error with %q", in, err, rule)
		}
	}
}

// TestNoStrangeRunePasses tries every character in every part, and accepts only visible
// ones that aren't another character's spelling.
func TestNoStrangeRunePasses(t *testing.T) {
	invisible := []*unicode.RangeTable{
		unicode.C, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Join_Control,
	}
	fullWidth := &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0xff00, Hi: 0xffef, Stride: 1}}}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if _, err := mailaddr.Parse("a" + string(r) + "b@example.com"); err == nil && (r > 0x7e || r <= ' ') {
			t.Errorf("%U passes in the local part", r)
		}
		got, err := mailaddr.Parse("a@b" + string(r) + "b.example")
		if err != nil {
			continue
		}
		const keraia = '\u0375' // a symbol that RFC 5892 admits by name
		if unicode.In(r, invisible...) || unicode.In(r, fullWidth, unicode.S) && r != keraia {
			t.Errorf("%U passes in the domain, as %s", r, got)
		}
		if r > 0x7e && !strings.HasPrefix(mailaddr.Domain(got), "xn--") {
			t.Errorf("%U becomes plain ASCII in the domain: %s", r, got)
		}
	}
}

// canonical is the form of a canonical address, without the limits on lengths. It is written
// independently of the code.
var canonical = regexp.MustCompile("^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*" +
	`@([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"Ann.Other+tag@Example.COM", "mueller@BÜCHER.example", "a@xn--bcher-kva.example", "a@例え.テスト", "a@مثال.إختبار",
		"a@نامه\u200cای.example", "a@\u0130.\u212a", "a@xn--abc-.example", "a@[192.0.2.1]", "a@1.2.3.4", `"a b"@c.d`, "a@b。c", "a@ｂ.c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := mailaddr.Parse(in)
		if err != nil {
			if got != "" || !errors.Is(err, mailaddr.ErrInvalid) {
				t.Fatalf("Parse(%q) = %q, %v; want only ErrInvalid", in, got, err)
			}
			return
		}
		if again, err := mailaddr.Parse(got); err != nil || again != got {
			t.Fatalf("Parse(%q) = %q, but Parse of that = %q, %v", in, got, again, err)
		}
		if err := checkForm(got); err != nil {
			t.Fatalf("Parse(%q) = %q: %v", in, got, err)
		}
		if strings.EqualFold(in, got) != isASCII(in) {
			t.Fatalf("Parse(%q) = %q changed more than letter case or an internationalised name", in, got)
		}
	})
}

// checkForm checks a canonical address against the documented form and the standard
// library's parser.
func checkForm(s string) error {
	if len(s) > 254 || !canonical.MatchString(s) || !isASCII(s) {
		return errors.New("not of canonical shape")
	}
	if len(mailaddr.Local(s)) > 64 {
		return errors.New("local part too long")
	}
	for part := range strings.SplitSeq(mailaddr.Domain(s), ".") {
		if len(part) > 63 {
			return fmt.Errorf("label of %d bytes", len(part))
		}
	}
	if parsed, err := mail.ParseAddress(s); err != nil || parsed.Address != s {
		return fmt.Errorf("net/mail reads %v, %v", parsed, err)
	}
	return nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func BenchmarkParse(b *testing.B) {
	for name, in := range map[string]string{
		"ascii":   "Ann.Other@Example.com",
		"idn":     "mueller@bücher.example",
		"hostile": "a@" + strings.Repeat("ü.", 330) + "example",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = mailaddr.Parse(in)
			}
		})
	}
}
