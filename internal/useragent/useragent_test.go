package useragent_test

import (
	"testing"

	"github.com/doorward/doorward/internal/useragent"
)

func TestParse(t *testing.T) {
	for header, want := range map[string][2]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0":                                                               {"Firefox", "Windows"},
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0":                  {"Edge", "Windows"},
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36":                                {"Chrome", "Android"},
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15":                          {"Safari", "macOS"},
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1": {"Chrome", "iPhone"},
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 OPR/112.0.0.0":                            {"Opera", "Linux"},
		"curl/8.5.0": {"curl", ""}, "": {"", ""}, "call http://evil.example now": {"", ""},
	} {
		if browser, system := useragent.Parse(header); [2]string{browser, system} != want {
			t.Errorf("%q is %q on %q, want %q", header, browser, system, want)
		}
	}
}
