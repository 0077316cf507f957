// Package ui is the kit of the pages that are made for one request: what the
// hosted pages, the console and "doorward dev" have in common.
//
// A protocol has a folder with html/*.html, one template named "page" each, and
// text/en.txt and text/de.txt, and makes a Set of them:
//
//	//go:embed html text
//	var files embed.FS
//	var set = ui.NewSet(files)
//
//	front.On("GET /team", ui.SignedIn(), set.Show(h.team), front.Doc{})
//	front.On("POST /team/rename", ui.SignedIn(), set.Take("/team", h.rename, h.team), front.Doc{})
//
// Show answers with the View that the function returns. Take reads a form
// first; what the function refuses is shown on the page again, each fault at
// its field, with the status that the API would have answered. A form that names
// a language (lang) wants the page in it, and nothing done. A page that
// needs somebody to be signed in leads to /login and back; a fault of ours
// never does, it says so and that the session is still there.
//
//	set.go      templates, by language and page; what they can call
//	call.go     a request: language, form, links, where to return to
//	answer.go   Show, Take, the frame that the layout shows
//	fail.go     what goes wrong: back to the form, to /login, an error page
//	text.go     the catalogues of messages
//	language.go which of them a request gets
//	words.go    times, waits and devices in words
//	brand.go    the accent colour, made readable
//	assets.go   style sheet, scripts, icon
package ui

import "embed"

//go:embed html text
var files embed.FS

//go:embed assets
var assets embed.FS

// kit has the pages that belong to no protocol: those of errors.
var kit = NewSet(nil)
