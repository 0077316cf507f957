package mail

import "strings"

// token is a part of the User-Agent header and its display name. The first match
// counts: most browsers claim to be others as well.
type token struct{ part, name string }

var browsers = []token{
	{"Edg", "Edge"},
	{"OPR/", "Opera"},
	{"SamsungBrowser/", "Samsung Internet"},
	{"Vivaldi/", "Vivaldi"},
	{"Firefox/", "Firefox"},
	{"FxiOS/", "Firefox"},
	{"CriOS/", "Chrome"},
	{"Chromium/", "Chromium"},
	{"Chrome/", "Chrome"},
	{"Safari/", "Safari"},
	{"curl/", "curl"},
	{"Wget/", "Wget"},
	{"PostmanRuntime/", "Postman"},
	{"python-", "Python"},
	{"Python/", "Python"},
	{"Go-http-client/", "Go"},
	{"okhttp/", "okhttp"},
	{"Java", "Java"},
	{"node", "Node.js"},
	{"doorward", "Doorward"},
}

var systems = []token{
	{"Windows", "Windows"},
	{"iPhone", "iPhone"},
	{"iPad", "iPad"},
	{"Android", "Android"},
	{"CrOS", "ChromeOS"},
	{"Macintosh", "macOS"},
	{"Linux", "Linux"},
}

// nameOf returns the display name of the first matching token, or nothing. The
// header itself never gets into a mail: an attacker with a stolen password
// controls it.
func nameOf(known []token, userAgent string) string {
	for _, t := range known {
		if strings.Contains(userAgent, t.part) {
			return t.name
		}
	}
	return ""
}
