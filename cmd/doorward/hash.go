package main

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/doorward/doorward/internal/argon"
)

// hashCommand is the argument with which a server starts this program to hash passwords.
// It isn't a command for people.
const hashCommand = "hash-passwords-for-server"

// hashChild returns this program, as a process that makes password hashes. On Linux it
// is the running file even after an upgrade has replaced it. The environment, with its
// secrets, isn't passed on.
func hashChild() *exec.Cmd {
	self, err := "/proc/self/exe", error(nil)
	if runtime.GOOS != "linux" {
		self, err = os.Executable()
	}
	return &exec.Cmd{Path: self, Args: []string{os.Args[0], hashCommand}, Env: []string{}, Stderr: os.Stderr, Err: err}
}

// hashPasswords serves until the server closes its input or ends. Signals to the whole
// group or service are the server's, which hashes until its requests are answered.
func hashPasswords() {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_ = argon.ServeChild(os.Stdin, os.Stdout) // an error is the end of the server
}
