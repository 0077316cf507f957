package main

import (
	"cmp"
	"os"
	"os/user"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
)

// reasonFlag is the flag of all commands that record something.
const reasonFlag = "reason"

// isRecording marks the commands that recording has made. The --reason of "maintenance on" is another one:
// it is what people are told.
const isRecording = "is recording"

// recording adds --reason to a command that records what it does.
func recording(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{isRecording: "yes"}
	cmd.Flags().String(reasonFlag, "", "`text` for the audit trail that says why; tenants see it in theirs")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := doorward.CheckOperatorReason(terminal(cmd).Reason); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return refuseEmpty(cmd, reasonFlag)
}

// terminal returns who runs the command, and why.
func terminal(cmd *cobra.Command) doorward.Terminal {
	t := doorward.Terminal{SystemUser: systemUser()}
	if cmd.Annotations[isRecording] != "" {
		t.Reason = strings.TrimSpace(cmd.Flags().Lookup(reasonFlag).Value.String())
	}
	return t
}

// maxSystemUser limits the length of a user and of a host, in bytes. A name of a host has 253 at most
// (RFC 1035, section 2.3.4).
const maxSystemUser = 253

// systemUser returns the user of the system and the host, as in root@db1. With sudo it is the user who has
// called it. A user without a name is named by the number, as in a container.
func systemUser() string {
	name := os.Getenv("SUDO_USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	host, _ := os.Hostname()
	return printable(cmp.Or(name, "uid "+strconv.Itoa(os.Getuid()))) + "@" + printable(cmp.Or(host, "unknown host"))
}

// printable removes what a trail can't show in one line.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return strings.ToValidUTF8(name[:min(len(name), maxSystemUser)], "")
}
