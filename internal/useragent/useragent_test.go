package useragent_test

import (
	"testing"

	"github.com/doorward/doorward/internal/useragent"
)

func TestKindOf(t *testing.T) {
	for header, want := range map[string]useragent.Kind{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0":                                                               useragent.Computer,
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15":                          useragent.Computer,
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36":                                 useragent.Computer,
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                         useragent.Computer,
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36":                                useragent.Phone,
		"Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0":                                                                           useragent.Phone,
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1": useragent.Phone,
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36":                                       useragent.Tablet,
		"Mozilla/5.0 (Android 14; Tablet; rv:128.0) Gecko/128.0 Firefox/128.0":                                                                           useragent.Tablet,
		"Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1":                 useragent.Tablet,
		"Mozilla/5.0 (Linux; Android 11; BRAVIA 4K TV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36":                            useragent.Unknown,
		"curl/8.5.0": useragent.Program, "python-requests/2.32.3": useragent.Program, "Go-http-client/1.1": useragent.Program, "okhttp/4.12.0": useragent.Program,
		"Java/21.0.3 (Linux)": useragent.Program, "": useragent.Unknown, "call http://evil.example now": useragent.Unknown,
	} {
		if got := useragent.KindOf(header); got != want {
			t.Errorf("%q is a %s, want %s", header, got, want)
		}
	}
}

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
