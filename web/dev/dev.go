// Package dev has the additional pages of "doorward dev": a start page with the
// four demo people, and a mailbox with the mails that would have been sent.
//
//	mailbox.go /dev/mail and below
//	start.go   /, and its forms: /dev/sign-in, /dev/invite
package dev

import (
	"embed"

	"github.com/doorward/doorward/web/ui"
)

//go:embed html text
var files embed.FS

var set = ui.NewSet("dev", files)
