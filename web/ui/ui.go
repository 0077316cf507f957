// Package ui has what the pages rendered per request share: the hosted pages, the
// console and "doorward dev".
//
// A protocol has a folder with html/*.html, one template named "page" each, and
// text/en.txt and text/de.txt, and makes a Set of them:
//
//	//go:embed html text
//	var files embed.FS
//	var set = ui.NewSet("hosted", files)
//
//	front.On("GET /team", ui.SignedIn(), set.Show(h.team), front.Doc{})
//	front.On("POST /team/rename", ui.SignedIn(), set.Take("/team", h.rename, h.team), front.Doc{})
//
// Show answers with the View that the function returns. Take reads a form first; a
// refusal shows the page again, each fault at its field, with the status of the
// API. A form with a language (lang) only switches the page to it. A page that
// needs a session redirects to /login and back; a server fault is an error page and
// keeps the session.
//
//	set.go      templates, by language and page; their functions
//	call.go     a request: language, form, links, where to return to
//	answer.go   Show, Take, the frame that the layout shows
//	fail.go     errors: back to the form, to /login, an error page
//	text.go     the catalogues of messages
//	language.go the language of a request
//	words.go    times, waits and devices in words
//	field.go    inputs of forms
//	connection.go
//	            a connection to a provider: instructions, parameters, tests, attempts
//	home.go     where people land after signing in
//	notice.go   messages after a redirect, such as ?done=saved
//	theme.go    light and dark
//	brand.go    logo and accent colour
//	assets.go   style sheet, scripts, icon
package ui

import "embed"

//go:embed html text
var files embed.FS

//go:embed assets
var assets embed.FS

// errorPages has the error pages, which all protocols share.
var errorPages = NewSet(sharedSection, nil)
