// Package useragent names the browser and the system of a User-Agent header. It is only
// a hint: the sender chooses the header. No text of the header is ever returned, so that
// nobody can put their own words into a mail or a page.
package useragent

import "strings"

// pattern is a part of the header and what it stands for.
type pattern struct{ part, name string }

// The first match counts: most browsers claim to be others as well.
var browsers = []pattern{
	{"Edg", "Edge"}, // Edg/, EdgA/ on Android, EdgiOS/
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

var systems = []pattern{
	{"Windows", "Windows"},
	{"iPhone", "iPhone"},
	{"iPad", "iPad"},
	{"Android", "Android"},
	{"CrOS", "ChromeOS"},
	{"Macintosh", "macOS"},
	{"Linux", "Linux"},
}

// Parse returns the names of browser and system, each empty if it is unknown.
func Parse(header string) (browser, system string) {
	return find(browsers, header), find(systems, header)
}

func find(known []pattern, header string) string {
	for _, p := range known {
		if strings.Contains(header, p.part) {
			return p.name
		}
	}
	return ""
}
