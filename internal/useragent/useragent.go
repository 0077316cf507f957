// Package useragent names the browser and the system of a User-Agent header, and the kind of device. It is only
// a hint: the sender chooses the header. No text of the header is ever returned, so that
// nobody can put their own words into a mail or a page.
package useragent

import (
	"cmp"
	"strings"
)

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
}

var programs = []pattern{
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
	return cmp.Or(find(browsers, header), find(programs, header)), find(systems, header)
}

// Kind is what a device seems to be.
type Kind string

// The kinds.
const (
	Computer Kind = "computer"
	Phone    Kind = "phone"
	Tablet   Kind = "tablet"
	Program  Kind = "program" // a client of the API, no browser
	Unknown  Kind = "unknown"
)

// KindOf returns the kind of device that sends the header. Two kinds can't be told apart: an iPad sends the header of
// a Mac, unless somebody has asked it for mobile pages.
func KindOf(header string) Kind {
	system := find(systems, header)
	switch {
	case find(browsers, header) == "" && find(programs, header) != "":
		return Program
	case system == "" || strings.Contains(header, "TV"): // televisions with Android claim to be tablets
		return Unknown
	case system == "iPad" || system == "Android" && !strings.Contains(header, "Mobi"): // by Chrome and Firefox a tablet isn't "Mobile"
		return Tablet
	case system == "iPhone" || system == "Android":
		return Phone
	}
	return Computer
}

func find(known []pattern, header string) string {
	for _, p := range known {
		if strings.Contains(header, p.part) {
			return p.name
		}
	}
	return ""
}
