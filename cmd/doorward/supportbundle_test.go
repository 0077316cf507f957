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
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmVk"
	for text, secret := range map[string]string{
		"X-Auth-Assertion: " + jwt:                          "eyJ",
		"kid missing in " + jwt + ", refused":               "c2lnbmVk",
		"unsigned eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.":     "eyJ",
		"spaced ewogICJhIjogMX0.ewogICJiIjogMn0.c2ln":       "ewog",
		"claims eyJzdWIiOiJhbm4ifQ of it":                   "eyJ",
		"of five parts eyJhbGciOiJkaXIifQ..aXY.dGV4dA.dGFn": "dGFn",
		"Authorization: DPoP abc123":                        "abc123",
		`"authorization":["Token abc123"]`:                  "abc123",
		"map[Authorization:[Token abc123] Accept:[*/*]]":    "abc123",
		`body {\"access_token\":\"abc123\"}`:                "abc123",
		"GET /x?access_token=abc123&y=1":                    "abc123",
		`"password":"swordfish"`:                            "swordfish",
		"Bearer  abc123":                                    "abc123",
		"bearer=abc123":                                     "abc123",
		"Cookie: a=b; JSESSIONID=abc123":                    "abc123",
		"x-api-key: abc123":                                 "abc123",
		`"token":"` + token + `"`:                           token,
		`a token at dashes "` + dashed + `" and ` + dashed:  dashed[1:],
		"JSESSIONID=" + dashed + "; x=1":                    dashed[1:],
		"key q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNF+/4=":  "q83vASNF",
		"SHA-256 " + strings.Repeat("0badc0de", 8):          "0badc0de",
		"dwo_" + strings.Repeat("aB3", 17):                  "aB3",
		"$2a$10$N9qo8uLOickgx2ZMRZoMye":                     "N9qo",
		"host=db user=door password=swordfish sslmode=on":   "swordfish",
		"authorization: Basic ZG9vcjpmaXNo":                 "ZG9v",
		"postgres://door:sword/fish@db:5432/x":              "sword",
		"GET /users?q=ann%40acme.example":                   "acme.example",
		"to <ann.o'neil@acme.example>":                      "acme.example",
		`{"msg":"mail, for development only: the destination log: sends nothing","text":"Hello Ann Lee"}`: "Ann",
	} {
		if got := scrub(text); strings.Contains(got, secret) {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, text := range []string{
		"doorward_http_request_duration_seconds_bucket{le=\"1\"} 3", `"requestId":"req_sz445j7wx5dkt2ailuaohhqq6s"`,
		`"user":"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`, "Nov 25 21:09:22 node1 doorward[7]: serving",
		"cookie-name: JSESSIONID\npassword-list: /etc/x\nadmin-token-file: /etc/y", `"code":"validation_failed","action":"session.open"`,
		"eyewitness.example.com:443", "password.reset done",
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
