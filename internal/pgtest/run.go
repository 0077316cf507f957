package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// runPipe is the environment variable that names the named pipe of a run. The name is the same in
// each run, since go test repeats tests when a variable that they read has changed.
const runPipe = "DOORWARD_TEST_PGRUN"

// joinRun returns the cluster of the run, which the first binary to call this starts. The file
// beside the pipe holds its port.
func joinRun(pipe string) (*Cluster, error) {
	ports, err := os.OpenFile(pipe+".port", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %s: %w", runPipe, err)
	}
	defer ports.Close()
	if err := syscall.Flock(int(ports.Fd()), syscall.LOCK_EX); err != nil { // until ports is closed
		return nil, fmt.Errorf("pgtest: lock %s: %w", ports.Name(), err)
	}
	text, err := io.ReadAll(ports)
	if err != nil {
		return nil, err
	}
	if port, err := strconv.Atoi(string(text)); err == nil {
		return &Cluster{port: port}, nil
	}
	c, err := startForRun(pipe)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprint(ports, c.port)
	return c, err
}

// startForRun starts a cluster whose keeper waits on the pipe of the run: it removes the cluster
// when nobody holds the pipe open for writing any more, so not before the run ends.
func startForRun(pipe string) (*Cluster, error) {
	bin, err := locate()
	if err != nil {
		return nil, err
	}
	// Not blocking: without a reader, so after the run, it fails.
	in, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("pgtest: no run holds %s open: %w", pipe, err)
	}
	out, err := os.Open(pipe)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer out.Close()
	keepFromChildren(pipe)
	c, err := newKeeper(bin, settings([]Option{forRun}))
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	c.stdin, c.keeper.Stdin = in, out
	return c, c.begin()
}

// keepFromChildren closes the pipe in processes that this one starts. It is inherited from
// scripts/test.sh through go test, and the keeper must not hold open what it waits for.
func keepFromChildren(pipe string) {
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range open {
		if name, err := os.Readlink(link); err != nil || name != pipe {
			continue
		}
		if fd, err := strconv.Atoi(filepath.Base(link)); err == nil {
			syscall.CloseOnExec(fd)
		}
	}
}

// forRun allows for the connections of several test binaries at once.
func forRun(settings map[string]string) { settings["max_connections"] = "600" }
