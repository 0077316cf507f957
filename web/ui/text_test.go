package ui

import (
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// placeholders are those of a message, such as {name}.
var placeholders = regexp.MustCompile(`\{[a-z]+\}`)

// checkSameKeys requires that all languages of a folder have the same messages with the
// same placeholders.
func checkSameKeys(t *testing.T, fsys fs.FS) {
	t.Helper()
	first := catalogue{}
	if err := first.read(fsys, "text/"+Languages[0].Tag+".txt"); err != nil {
		t.Fatal(err)
	}
	for _, l := range Languages[1:] {
		other := catalogue{}
		if err := other.read(fsys, "text/"+l.Tag+".txt"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(other))); diff != "" {
			t.Errorf("%s and %s have different messages (-%[1]s +%[2]s):\n%s", Languages[0].Tag, l.Tag, diff)
		}
		for key, message := range other {
			if diff := cmp.Diff(distinct(placeholders.FindAllString(first[key], -1)), distinct(placeholders.FindAllString(message, -1))); diff != "" {
				t.Errorf("%s: %s has other placeholders:\n%s", l.Tag, key, diff)
			}
		}
	}
}

func distinct(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

func TestLanguagesSayTheSame(t *testing.T) {
	for _, folder := range []string{".", "../hosted", "../dev"} {
		t.Run(folder, func(t *testing.T) { checkSameKeys(t, os.DirFS(folder)) })
	}
}

func TestWordsOfTimes(t *testing.T) {
	all, err := errorPages.pages(nil)
	if err != nil {
		t.Fatal(err)
	}
	en, de := all["en error"].words, all["de error"].words
	for _, c := range []struct {
		say  func() (string, error)
		want string
	}{
		{func() (string, error) { return en.waitText(time.Second) }, "1 second"},
		{func() (string, error) { return en.duration(0) }, "0 seconds"},
		{func() (string, error) { return en.duration(time.Minute) }, "1 minute"},
		{func() (string, error) { return en.duration(24 * time.Hour) }, "24 hours"},
		{func() (string, error) { return de.duration(90*time.Minute + time.Second) }, "1 Stunde 30 Minuten 1 Sekunde"},
		{func() (string, error) { return en.waitText(90 * time.Second) }, "90 seconds"},
		{func() (string, error) { return en.waitText(91 * time.Second) }, "2 minutes"},
		{func() (string, error) { return de.waitText(89*time.Minute + time.Second) }, "90 Minuten"},
		{func() (string, error) { return de.waitText(23*time.Hour + time.Second) }, "24 Stunden"},
		{func() (string, error) { return en.latency(999) }, "999 ms"},
		{func() (string, error) { return en.latency(15_000) }, "15 s"},
		{func() (string, error) { return de.latency(1_449) }, "1,4 s"},
		{func() (string, error) { return en.ago(-time.Second) }, "just now"},
		{func() (string, error) { return en.ago(59 * time.Second) }, "just now"},
		{func() (string, error) { return en.ago(59 * time.Minute) }, "59 minutes ago"},
		{func() (string, error) { return en.ago(time.Hour) }, "1 hour ago"},
		{func() (string, error) { return en.ago(89 * time.Minute) }, "1 hour ago"},
		{func() (string, error) { return en.ago(24 * time.Hour) }, "1 day ago"},
		{func() (string, error) { return en.ago(1200 * 24 * time.Hour) }, "1,200 days ago"},
		{func() (string, error) { return en.moment(time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)) }, "21 November 2026, 09:05 UTC"},
		{func() (string, error) { return de.exact(time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)) }, "21. November 2026, 09:05:07 UTC"},
		{func() (string, error) { return en.number(int64(1234567)), nil }, "1,234,567"},
		{func() (string, error) { return de.number(1000), nil }, "1.000"},
		{func() (string, error) { return de.number(999), nil }, "999"},
		{func() (string, error) { return en.ago(2 * time.Minute) }, "2 minutes ago"},
		{func() (string, error) { return de.ago(2 * time.Hour) }, "vor 2 Stunden"},
		{func() (string, error) { return de.ago(48 * time.Hour) }, "vor 2 Tagen"},
		{func() (string, error) { return de.day(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) }, "1. März 2026"},
		{func() (string, error) { return de.shortDay(time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)) }, "1. Sept. 2026"},
		{func() (string, error) { return en.shortDay(time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)) }, "1 Sep 2026"},
		{func() (string, error) {
			return en.device("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0")
		}, "Edge on Windows"},
		{func() (string, error) {
			return en.device("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1")
		}, "Safari on iPhone"},
		{func() (string, error) { return en.device("curl/8.5.0") }, "curl"},
		{func() (string, error) { return de.device("") }, "Unbekanntes Gerät"},
	} {
		if got, err := c.say(); err != nil || got != c.want {
			t.Errorf("got %q, %v; want %q", got, err, c.want)
		}
	}
}

// Input must not become markup of the page or a placeholder of the message.
func TestRichEscapesWhatIsFilledIn(t *testing.T) {
	c := catalogue{"k": "a <b> {x} {y}"}
	got, err := c.rich("k", "x", "<i>{y}", "y", "&")
	if want := "a &lt;b&gt; <strong><bdi>&lt;i&gt;{y}</bdi></strong> <strong><bdi>&amp;</bdi></strong>"; err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}
