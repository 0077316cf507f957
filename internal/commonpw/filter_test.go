package commonpw

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func build(t testing.TB, list string, falsePositives float64) Built {
	t.Helper()
	built, err := Build(strings.NewReader(list), falsePositives)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func saved(t testing.TB, b Built) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := b.Save(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestFilter: a filter of any form of list, saved and loaded, has the entries of the list
// and no others.
func TestFilter(t *testing.T) {
	hashed := func(password string) string { return fmt.Sprintf("%X:12", sha1.Sum([]byte(password))) }
	for _, test := range []struct {
		name, list  string
		len         int
		leftOut     int
		has, hasNot []string
	}{
		{"text", "Swordfish\nmarlin\n\nmarlin", 2, 0, []string{"swordfish", "SWORDFISH", "marlin"}, []string{"", "trout"}},
		{"CRLF", "swordfish\r\nmarlin\r\n", 2, 0, []string{"swordfish", "marlin"}, []string{"marlin\r"}},
		{"byte order mark", "\ufeffswordfish\n", 1, 0, []string{"swordfish"}, nil},
		{"normal form", "e\u0301te\u0301\n", 1, 0, []string{"été", "ÉTÉ"}, nil},
		{"not UTF-8", "swordfish\nmarl\xefn\n", 1, 1, []string{"swordfish"}, []string{"marl\xefn"}},
		{"zero bytes", "swordfish\ns\x00w\x00o\x00\n", 1, 1, []string{"swordfish"}, []string{"s\x00w\x00o\x00"}},
		{"long lines", strings.Repeat("x", 5000) + "\nswordfish\n" + strings.Repeat("y", 200_000) + "\nmarlin", 2, 2, []string{"swordfish", "marlin"}, []string{"", strings.Repeat("x", 5000)}},
		{"hashes", hashed("Swordfish") + "\r\n" + hashed("marlin") + "\r\n", 2, 0, []string{"Swordfish", "marlin", "MARLIN"}, []string{"swordfish", hashed("marlin")}},
		{"hashes alone", fmt.Sprintf("%x\n", sha1.Sum([]byte("marlin"))), 1, 0, []string{"marlin"}, nil},
		{"both", hashed("marlin") + "\nswordfish\n0123456789abcdef0123456789abcdef:9\n", 3, 0, []string{"marlin", "swordfish", "0123456789abcdef0123456789abcdef:9"}, nil},
		{"like hashes", strings.Repeat("f", 40) + ":x\n" + strings.Repeat("g", 40) + ":1\n", 2, 0, []string{strings.Repeat("f", 40) + ":x", strings.Repeat("G", 40) + ":1"}, nil},
	} {
		built := build(t, test.list, 1e-6)
		list, err := Load(bytes.NewReader(saved(t, built)))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if list.Len() != test.len || built.LeftOut != test.leftOut || list.FalsePositives() != 1e-6 {
			t.Errorf("%s: %d entries, %d left out, false positives %g, want %d, %d, 1e-6", test.name, list.Len(), built.LeftOut, list.FalsePositives(), test.len, test.leftOut)
		}
		for _, password := range test.has {
			if !list.Contains(password) {
				t.Errorf("%s: %.50q is not found", test.name, password)
			}
		}
		for _, password := range test.hasNot {
			if list.Contains(password) {
				t.Errorf("%s: %.50q is found", test.name, password)
			}
		}
	}
}

// TestFilterRefuses: a filter refuses a password for its word, and patterns, as a list of text does.
// The word ox is shorter than MinWord, so it isn't looked up without what surrounds it.
func TestFilterRefuses(t *testing.T) {
	list := build(t, "swordfish\nox\n", 1e-6).List
	for password, want := range map[string]bool{
		"Swordfish2024": true, "123456789012": true, "swordfish marlin": false, "#1234 ox 1234#": false,
	} {
		if got := list.Refuses(password); got != want {
			t.Errorf("Refuses(%q) = %v, want %v", password, got, want)
		}
	}
}

// TestFalsePositives measures the stated rate with passwords that are looked up in every
// form.
func TestFalsePositives(t *testing.T) {
	var list strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&list, "entry number %d\n", i)
	}
	for _, stated := range []float64{0.1, 0.01, 0.001} {
		filter, found := build(t, list.String(), stated).List, 0
		const tries = 200_000
		for i := range tries {
			if filter.Refuses(fmt.Sprintf("%d Other Phrase %d x %d", i, i*7919, i)) {
				found++
			}
		}
		if got := float64(found) / tries; got > stated*1.1 || got < stated/4 {
			t.Errorf("%.6f of other passwords are refused, want at most %g, and not far fewer", got, stated)
		}
		if got := filter.Len(); got < 19_800 || got > 20_000 {
			t.Errorf("%d entries for false positives of %g, want almost all of 20000", got, stated)
		}
	}
}

// TestBuildRefuses: the error says why no filter was made, and never quotes the list.
func TestBuildRefuses(t *testing.T) {
	ntlm := "32ED87BDB5FDC5E9CBA88547376818D4:24230577\n"
	for _, test := range []struct {
		name string
		list io.ReadSeeker
		rate float64
		says string
	}{
		{"empty", strings.NewReader("\n\r\n"), 1e-4, "holds no password"},
		{"UTF-16", strings.NewReader("\xff\xfem\x00a\x00\n\x00r\x00"), 1e-4, "holds no password"},
		{"NTLM", strings.NewReader(ntlm + ntlm), 1e-4, "not SHA-1"},
		{"no rate", strings.NewReader("marker"), 0, "must be 1e-09 to 0.1"},
		{"high rate", strings.NewReader("marker"), 0.5, "must be 1e-09 to 0.1"},
		{"broken", broken{strings.NewReader("marker")}, 1e-4, "disk on fire"},
		{"changed", &growing{Reader: strings.NewReader("marker\n")}, 1e-4, "has changed"},
	} {
		_, err := Build(test.list, test.rate)
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "marker") {
			t.Errorf("%s: %v, want it to say %q and not to quote the list", test.name, err, test.says)
		}
	}
	if _, err := newFilter(3_000_000_000, 1e-4); err == nil || !strings.Contains(err.Error(), "the most is 4") {
		t.Errorf("three billion entries: %v, want an error with the largest size", err)
	}
}

// broken fails when it is read a second time.
type broken struct{ io.ReadSeeker }

func (broken) Seek(int64, int) (int64, error) { return 0, errors.New("disk on fire") }

// growing has one more line when it is read a second time.
type growing struct{ *strings.Reader }

func (g *growing) Seek(int64, int) (int64, error) {
	g.Reader = strings.NewReader("marker\nmore\n")
	return 0, nil
}

// TestDamagedFilter: a file with a changed or an added byte, or one that is cut off, is refused.
func TestDamagedFilter(t *testing.T) {
	whole := saved(t, build(t, "swordfish\nmarlin\n", 1e-4))
	if _, err := Load(iotest.OneByteReader(bytes.NewReader(whole))); err != nil {
		t.Fatal(err)
	}
	checkRefused := func(what string, at int, file []byte) {
		t.Helper()
		if _, err := Load(bytes.NewReader(file)); err == nil {
			t.Errorf("byte %d %s, and the filter is loaded", at, what)
		}
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		checkRefused("changed", i, damaged)
		checkRefused("and the rest left out", i, whole[:i])
	}
	checkRefused("added", len(whole), append(bytes.Clone(whole), 'x'))
	newer := bytes.Clone(whole)
	newer[len(filterMagic)+3] = 9 // the last byte of the version
	if _, err := Load(bytes.NewReader(newer)); err == nil || !strings.Contains(err.Error(), "version 9, and this program reads 1") {
		t.Errorf("%v, want it to name the versions", err)
	}
	failing := io.MultiReader(bytes.NewReader(whole[:len(whole)-40]), iotest.ErrReader(errors.New("disk on fire")))
	if _, err := Load(failing); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("%v, want the error of the reader", err)
	}
}

// FuzzFilter checks that a filter has each line of the file that is a password.
func FuzzFilter(f *testing.F) {
	f.Add([]byte("b\r\nA\n\n#c"))
	f.Add([]byte("\ufeffÄ\ne\u0301\n" + strings.Repeat("a", 40) + ":1\n"))
	f.Add(saved(f, build(f, "swordfish\n", 0.1)))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _ = Load(bytes.NewReader(file))
		built, err := Build(bytes.NewReader(file), 1e-4)
		if err != nil {
			return
		}
		for line := range strings.SplitSeq(strings.TrimPrefix(string(file), "\ufeff"), "\n") {
			line = strings.TrimSuffix(line, "\r")
			_, isHash := parseHash([]byte(line))
			if strings.ContainsRune(line, 0) || len(line) > maxLine || line == "" || isHash || !utf8.ValidString(line) {
				continue
			}
			if !built.List.Contains(norm.NFC.String(line)) {
				t.Errorf("%q of %q is not found", line, file)
			}
		}
	})
}

// lines is a list of n different passwords, generated while it is read.
type lines struct {
	n, next int
	rest    []byte
}

func (l *lines) Seek(int64, int) (int64, error) {
	l.next, l.rest = 0, nil
	return 0, nil
}

func (l *lines) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(l.rest) == 0 {
			if l.next == l.n {
				return n, io.EOF
			}
			l.rest = fmt.Appendf(l.rest, "password%d\n", l.next*7919)
			l.next++
		}
		copied := copy(p[n:], l.rest)
		n, l.rest = n+copied, l.rest[copied:]
	}
	return n, nil
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				built, err := Build(&lines{n: n}, 1e-4)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(built.List.filter.bits)), "bytes")
			}
		})
	}
}

func BenchmarkFilter(b *testing.B) {
	built, err := Build(&lines{n: 10_000_000}, 1e-4)
	if err != nil {
		b.Fatal(err)
	}
	file := saved(b, built)
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(len(file)))
		for b.Loop() {
			if _, err := Load(bytes.NewReader(file)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, password := range map[string]string{"hit": "Password7919!", "miss": "Four quiet green llamas!"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				built.List.Refuses(password)
			}
		})
	}
}
