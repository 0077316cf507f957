// Package dev is what "doorward dev" has beyond a server: a page that begins
// with the four demo people, and a mailbox that shows what would have been sent.
//
//	mailbox.go /dev/mail
//	start.go   /
package dev

import (
	"embed"

	"github.com/doorward/doorward/web/ui"
)

//go:embed html text
var files embed.FS

var set = ui.NewSet(files)
