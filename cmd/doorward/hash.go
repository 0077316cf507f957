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
// is the running file even after an upgrade has replaced it; elsewhere the server compares
// versions when the process greets it. The environment, with its secrets, isn't passed on.
func hashChild() *exec.Cmd {
	self, err := "/proc/self/exe", error(nil)
	if runtime.GOOS != "linux" {
		self, err = os.Executable()
	}
	return &exec.Cmd{Path: self, Args: []string{os.Args[0], hashCommand}, Env: []string{}, Dir: "/", Stderr: os.Stderr, Err: err}
}

// hashPasswords serves until the server closes the pipe or ends. It ignores signals to the
// process group: the server still needs hashes for the requests that it answers.
func hashPasswords() {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	setForKernel("comm", "doorward-hash")     // in place of "exe"
	setForKernel("oom_score_adj", "1000")     // when memory runs out, the kernel kills it before the server
	_ = argon.ServeChild(os.Stdin, os.Stdout) // it fails only when the server has ended
}

// setForKernel sets an attribute of this process. Only Linux has them, and nothing depends
// on them.
func setForKernel(name, value string) {
	_ = os.WriteFile("/proc/self/"+name, []byte(value), 0o600)
}
