package commonpw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

func bundledEntries() []string {
	return strings.Split(strings.TrimSuffix(Bundled().lines, "\n"), "\n")
}

// TestBundledForm checks the format that the search needs. It fails if passwords.txt
// was edited by hand: run go generate instead.
func TestBundledForm(t *testing.T) {
	entries := bundledEntries()
	for i, entry := range entries {
		length := utf8.RuneCountInString(entry)
		if length < MinWord || length < 8 && Word(entry) != entry || entry != fold(norm.NFC.String(entry)) {
			t.Errorf("line %d, %q, is too short, not a word, or not folded", i+1, entry)
		}
		if i > 0 && entries[i-1] >= entry {
			t.Errorf("line %d, %q, is out of order", i+1, entry)
		}
	}
	if got := Bundled().Len(); got != len(entries) {
		t.Errorf("Len() = %d for %d lines", got, len(entries))
	}
	countOfLength := func(least, most int) int {
		return len(slices.DeleteFunc(slices.Clone(entries), func(s string) bool {
			length := utf8.RuneCountInString(s)
			return length < least || length > most
		}))
	}
	if words, all, long := countOfLength(MinWord, 7), countOfLength(8, 99), countOfLength(12, 99); words != 24_298 || all != 17_950 || long != 308 {
		t.Errorf("%d words, %d entries of 8 and more, %d of 12 and more, want the 24298, 17950 and 308 of the package comment", words, all, long)
	}
}

func TestBundledContainsAllOfItself(t *testing.T) {
	for _, entry := range bundledEntries() {
		if !Bundled().Contains(entry) || !Bundled().Contains(strings.ToUpper(entry)) {
			t.Errorf("%q is on the list and was not found", entry)
		}
		if Bundled().Contains(entry + "\x00") {
			t.Errorf("%q with a zero byte appended was found", entry)
		}
	}
}

func TestContains(t *testing.T) {
	for password, want := range map[string]bool{
		"password":                 true,
		"PassWord":                 true,
		"1234567890qwerty":         true,
		"cheeseburger":             true,
		"CHEESEBURGER":             true,
		"":                         false,
		"\n":                       false,
		"password\n":               false,
		"baseball\npassword":       false,
		" password":                false,
		"cheeseburge":              false,
		"dragon":                   true,
		"123456":                   false, // common, but too short to be kept, and not a word
		"\xff\xff\xff\xff":         false,
		"correct horse battery":    false,
		strings.Repeat("z", 1<<10): false,
	} {
		if got := Bundled().Contains(password); got != want {
			t.Errorf("Contains(%.30q) = %v, want %v", password, got, want)
		}
	}
}

func TestLoad(t *testing.T) {
	for _, test := range []struct {
		name, file, lines string
	}{
		{"LF", "b\na\n", "a\nb\n"},
		{"CRLF", "b\r\na\r\n", "a\nb\n"},
		{"no end of line", "b\na", "a\nb\n"},
		{"blank lines", "\n\nb\r\n\r\n\na\n\n", "a\nb\n"},
		{"twice", "a\nA\na\n", "a\n"},
		{"letter case", "ÄRGER\nPassWord\n", "password\närger\n"},
		{"normal form", "e\u0301te\u0301\n", "été\n"},
		{"no comments", "# one\n#1\n", "# one\n#1\n"},
		{"spaces count", " a \n \n", " \n a \n"},
		{"byte order mark", "\ufeffa\nb\n", "a\nb\n"},
		{"CR within", "a\rb\n", "a\rb\n"},
	} {
		list, err := Load(strings.NewReader(test.file))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.lines, list.lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		for entry := range strings.SplitSeq(strings.TrimSuffix(test.lines, "\n"), "\n") {
			if !list.Contains(entry) {
				t.Errorf("%s: %q is not found", test.name, entry)
			}
		}
	}
}

// endless is a file of one endless line.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestLoadRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		file io.Reader
		says string
	}{
		{"invalid UTF-8", strings.NewReader("marker\r\n\nmarker\xff\nfine\n"), "line 3 is not valid UTF-8"},
		{"UTF-16", strings.NewReader("\xff\xfem\x00a\x00"), "line 1 is not valid UTF-8"},
		{"empty", strings.NewReader(""), "holds no password"},
		{"blank", strings.NewReader("\n\r\n\n"), "holds no password"},
		{"too large", endless{}, "more than 64 MiB"},
		{"broken", iotest.ErrReader(errors.New("disk on fire")), "disk on fire"},
	} {
		list, err := Load(test.file)
		if err == nil {
			t.Errorf("%s: loaded %d entries, want an error", test.name, list.Len())
			continue
		}
		if !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "marker") {
			t.Errorf("%s: %v, want it to say %q and not to quote the file", test.name, err, test.says)
		}
	}
}

func TestLoadTakesMaxSize(t *testing.T) {
	list, err := Load(io.LimitReader(endless{}, MaxSize))
	if err != nil || list.Len() != 1 {
		t.Errorf("a list of MaxSize bytes: %v", err)
	}
}

// FuzzLoad compares Load and Contains with a map.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("b\r\nA\n\n#c"), "a")
	f.Add([]byte("\ufeffÄ\ne\u0301\n"), "ä")
	f.Add([]byte("\xff\n"), "\xff")
	f.Fuzz(func(t *testing.T, file []byte, password string) {
		list, err := Load(bytes.NewReader(file))
		if err != nil {
			return
		}
		want := map[string]bool{}
		for _, line := range strings.Split(strings.TrimPrefix(string(file), "\ufeff"), "\n") {
			want[strings.ToLower(norm.NFC.String(strings.TrimSuffix(line, "\r")))] = true
		}
		delete(want, "")
		if got := list.Contains(password); got != want[strings.ToLower(password)] {
			t.Errorf("Contains(%q) = %v in %q", password, got, file)
		}
		for entry := range want {
			if !list.Contains(entry) {
				t.Errorf("%q of %q is not found", entry, file)
			}
		}
		if list.Len() != len(want) {
			t.Errorf("Len() = %d, want %d", list.Len(), len(want))
		}
	})
}

func BenchmarkContains(b *testing.B) {
	for name, password := range map[string]string{
		"hit":  "cheeseburger",
		"miss": "correct horse battery staple",
		"fold": "CheeseBurger",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Bundled().Contains(password)
			}
		})
	}
}

// BenchmarkLoad loads a list of 10 MB and a million different entries.
func BenchmarkLoad(b *testing.B) {
	var file strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&file, "%09d\n", i*7919%1_000_003) // in no order
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(strings.NewReader(file.String())); err != nil {
			b.Fatal(err)
		}
	}
}
