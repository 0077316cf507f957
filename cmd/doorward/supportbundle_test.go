package main

import (
	"strings"
	"testing"
)

// TestScrub: secrets and personal data are removed entirely, whatever is next to them; what
// helps to find a fault stays.
func TestScrub(t *testing.T) {
	const token = "3q2-7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWc"
	dashed := "-" + token[1:42] + "-"
	for text, secret := range map[string]string{
		`"token":"` + token + `"`:                          token,
		`a token at dashes "` + dashed + `" and ` + dashed: dashed[1:],
		"JSESSIONID=" + dashed + "; x=1":                   dashed[1:],
		"key q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNF+/4=": "q83vASNF",
		"SHA-256 " + strings.Repeat("0badc0de", 8):         "0badc0de",
		"dwo_" + strings.Repeat("aB3", 17):                 "aB3",
		"$2a$10$N9qo8uLOickgx2ZMRZoMye":                    "N9qo",
		"host=db user=door password=swordfish sslmode=on":  "swordfish",
		"authorization: Basic ZG9vcjpmaXNo":                "ZG9v",
		"postgres://door:sword/fish@db:5432/x":             "sword",
		"GET /users?q=ann%40acme.example":                  "acme.example",
		"to <ann.o'neil@acme.example>":                     "acme.example",
		`{"msg":"mail, for development only: the destination log: sends nothing","text":"Hello Ann Lee"}`: "Ann",
	} {
		if got := scrub(text); strings.Contains(got, secret) {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, text := range []string{
		"doorward_http_request_duration_seconds_bucket{le=\"1\"} 3", `"requestId":"req_sz445j7wx5dkt2ailuaohhqq6s"`,
		`"user":"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`, "Nov 25 21:09:22 node1 doorward[7]: serving",
	} {
		if got := clientAddress.ReplaceAllString(scrub(text), "<client>"); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, address := range []string{"203.0.113.9", "2001:db8::5", "2001:db8:1:2::/64", "::1", "fe80:1:2:3:4:5:6:7", "::ffff:192.0.2.7", "2001:db8::"} {
		if got := clientAddress.ReplaceAllString("from "+address+" at 12:30:05.", "<client>"); got != "from <client> at 12:30:05." {
			t.Errorf("%s becomes %q", address, got)
		}
	}
}
