package argon

import (
	"encoding/gob"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"
)

const (
	// childIdle is how long a process lives without work. It starts in some 10 ms.
	childIdle = 5 * time.Second
	// childTimeout ends a process that doesn't answer; the costliest hash takes a few
	// seconds of a core.
	childTimeout = time.Minute
)

// request is one hash to make.
type request struct {
	Password []byte
	Salt     []byte
	Cost     Params
	Size     uint32 // of the tag, in bytes
}

func (r request) derive() []byte {
	return argon2.IDKey(r.Password, r.Salt, r.Cost.Time, r.Cost.MemoryKiB, r.Cost.Parallelism, r.Size)
}

// children make hashes in processes of their own, one hash at a time in each. The
// pool's slots bound their number.
type children struct {
	command func() *exec.Cmd
	failed  func(error) // to start
	idleFor time.Duration

	mu   sync.Mutex
	idle []*child // the last one was used last
}

// derive makes a hash. A process that fails is ended, and the next hash gets another one.
// If none can be started, as under a limit of processes, the hash is made here.
func (c *children) derive(r request) ([]byte, error) {
	p, err := c.take()
	if err != nil {
		c.failed(err)
		return r.derive(), nil
	}
	tag, err := p.ask(r)
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("argon: the process for hashes: %w", err)
	}
	c.give(p)
	return tag, nil
}

func (c *children) take() (*child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		p := c.idle[n-1]
		c.idle = c.idle[:n-1]
		p.retire.Stop()
		return p, nil
	}
	return startChild(c.command())
}

func (c *children) give(p *child) {
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
		p.end()
	}
}

// child is a process that runs ServeChild.
type child struct {
	cmd     *exec.Cmd
	in      io.Closer
	encoder *gob.Encoder
	decoder *gob.Decoder
	retire  *time.Timer
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
	return &child{cmd: cmd, in: in, encoder: gob.NewEncoder(in), decoder: gob.NewDecoder(out), retire: time.NewTimer(0)}, cmd.Start()
}

func (p *child) ask(r request) (tag []byte, err error) {
	overdue := time.AfterFunc(childTimeout, func() { _ = p.cmd.Process.Kill() })
	defer overdue.Stop()
	if err := p.encoder.Encode(r); err != nil {
		return nil, err
	}
	err = p.decoder.Decode(&tag)
	return tag, err
}

// end has the process see the end of its input.
func (p *child) end() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

func (p *child) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// ServeChild makes the hashes that a pool asks for, until in ends. Call it in a process
// that does nothing else: it turns the garbage collector off and collects after each
// answer, so that one hash is all of the memory.
func ServeChild(in io.Reader, out io.Writer) error {
	debug.SetGCPercent(-1)
	requests, answers := gob.NewDecoder(in), gob.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			return err
		}
		runtime.GOMAXPROCS(int(r.Cost.Parallelism)) // one thread for each lane
		if err := answers.Encode(r.derive()); err != nil {
			return err
		}
		runtime.GC()
	}
}
