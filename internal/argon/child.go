package argon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// childIdle is how long a process lives without work. Starting one takes some 10 ms.
	childIdle = 5 * time.Second
	// startTimeout is how long a process may take to start.
	startTimeout = 5 * time.Second
	// hashTimeout is how long a process may take for a hash, and hashTimeoutPerMiB what is
	// added for each MiB and pass: many times what a core takes.
	hashTimeout       = 10 * time.Second
	hashTimeoutPerMiB = 10 * time.Millisecond
)

// children make hashes in child processes, one at a time in each. The pool's slots bound
// their number.
type children struct {
	command func() *exec.Cmd
	failed  func(error)
	idleFor time.Duration
	// The limits of a start and of a hash.
	startTimeout, hashTimeout time.Duration

	mu       sync.Mutex
	idle     []*child // most recently used last
	live     map[*child]bool
	endedCPU time.Duration // of processes that have ended
	lastCPU  time.Duration // as usage last returned it
	failures uint64
}

func newChildren(o Options) *children {
	return &children{
		command: o.Child, failed: o.ChildFailed, idleFor: childIdle, startTimeout: startTimeout, hashTimeout: hashTimeout,
		live: map[*child]bool{},
	}
}

// derive makes a hash. A process that fails is killed, and the next hash gets another one.
// If none can be started, as under a limit of processes, the hash is made here. If one
// fails later, the result is an error: it may have been killed because memory has run out.
// The password is overwritten.
func (c *children) derive(r request) ([]byte, error) {
	defer clear(r.Password)
	p, err := c.take()
	if err != nil {
		c.recordFailure(err)
		return r.derive(), nil
	}
	work := time.Duration(r.Cost.MemoryKiB>>10) * time.Duration(r.Cost.Time) // MiB × passes
	tag, err := p.ask(r, c.hashTimeout+work*hashTimeoutPerMiB)
	if err != nil {
		err = fmt.Errorf("argon: the process for hashes: %w", err)
		c.recordFailure(err)
		c.kill(p)
		return nil, err
	}
	c.putBack(p)
	return tag, nil
}

func (c *children) recordFailure(err error) {
	c.mu.Lock()
	c.failures++
	c.mu.Unlock()
	c.failed(err)
}

// take returns an idle process or a new one.
func (c *children) take() (*child, error) {
	if p := c.takeIdle(); p != nil {
		return p, nil
	}
	p, err := startChild(c.command())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.live[p] = true
	c.mu.Unlock()
	if err := p.awaitGreeting(c.startTimeout); err != nil {
		c.kill(p)
		return nil, fmt.Errorf("argon: the process for hashes has not started: %w", err)
	}
	return p, nil
}

func (c *children) takeIdle() *child {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle)
	if n == 0 {
		return nil
	}
	p := c.idle[n-1]
	c.idle = c.idle[:n-1]
	p.retire.Stop()
	return p
}

func (c *children) putBack(p *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, p)
	p.retire = time.AfterFunc(c.idleFor, func() { c.retire(p) })
}

// retire ends the process unless it has been taken since.
func (c *children) retire(p *child) {
	c.mu.Lock()
	i := slices.Index(c.idle, p)
	if i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	c.mu.Unlock()
	if i >= 0 {
		c.kill(p)
	}
}

// kill ends a process, waits for its end, and keeps the CPU time that it has used.
func (c *children) kill(p *child) {
	c.mu.Lock()
	delete(c.live, p) // another process may soon get its PID
	c.mu.Unlock()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	if state := p.cmd.ProcessState; state != nil {
		c.mu.Lock()
		c.endedCPU += state.UserTime() + state.SystemTime()
		c.mu.Unlock()
	}
}

// usage returns the number of processes, and what they use. The CPU time never decreases.
func (c *children) usage() Processes {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := Processes{Running: len(c.live), Failures: c.failures, CPU: c.endedCPU}
	for p := range c.live {
		cpu, resident := usageOf(p.cmd.Process.Pid)
		u.CPU += cpu
		u.Resident += resident
	}
	u.CPU = max(u.CPU, c.lastCPU)
	c.lastCPU = u.CPU
	return u
}

// usageOf returns the CPU time and the resident memory, in bytes, of a process: zero where
// there is no /proc. By proc_pid_stat(5), fields 14 and 15 are the user and system time, in
// ticks of 10 ms, and field 24 is the resident memory, in pages.
func usageOf(pid int) (cpu time.Duration, resident int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // fields[0] is field 3, the first after the name
	if len(fields) < 22 {
		return 0, 0
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(string(fields[i]), 10, 64); return n }
	return time.Duration(number(11)+number(12)) * 10 * time.Millisecond, number(21) * int64(os.Getpagesize())
}

// child is a process that runs ServeChild.
type child struct {
	cmd    *exec.Cmd
	in     io.Writer
	out    io.Reader
	asked  uint64 // requests so far; the ID of the last
	retire *time.Timer
}

func startChild(cmd *exec.Cmd) (*child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd: cmd, in: in, out: out}, cmd.Start()
}

// awaitGreeting returns nil if the process reads requests of this version.
func (p *child) awaitGreeting(timeout time.Duration) error {
	defer p.killAfter(timeout)()
	got := make([]byte, len(greeting))
	if _, err := io.ReadFull(p.out, got); err != nil {
		return err
	}
	if string(got) != greeting {
		return errors.New("it is another program or another version of this one")
	}
	return nil
}

// ask has the process make one hash. After an error the process can't be used any more.
func (p *child) ask(r request, timeout time.Duration) ([]byte, error) {
	defer p.killAfter(timeout)()
	p.asked++
	frame, err := r.frame(p.asked)
	if err != nil {
		return nil, err
	}
	_, err = p.in.Write(frame)
	clear(frame)
	if err != nil {
		return nil, err
	}
	answer := make([]byte, idSize+r.Size)
	if _, err := io.ReadFull(p.out, answer); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint64(answer) != p.asked {
		return nil, errors.New("its answer is to another request")
	}
	return answer[idSize:], nil
}

// killAfter kills the process after d, unless stop is called before.
func (p *child) killAfter(d time.Duration) (stop func()) {
	timer := time.AfterFunc(d, func() { _ = p.cmd.Process.Kill() })
	return func() { timer.Stop() }
}
