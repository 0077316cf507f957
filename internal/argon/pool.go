package argon

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

// Options bound a [Pool]. A value of 0 or less stands for the default.
type Options struct {
	Workers int           // hashes at once; default one per core
	Queue   int           // callers that may wait; default 64
	Wait    time.Duration // how long each may wait; default 2 s
	// Yield, if not nil, reports whether other work needs a core now: then the pool
	// uses one worker less, but always one at least.
	Yield func() bool
	// Phase, if not nil, is called when a caller begins to wait and when its hash
	// begins; the returned function is called at the end. For traces.
	Phase func(ctx context.Context, name string) (end func())
	// Child, if not nil, returns a command that runs ServeChild. Argon2id is then made in
	// such processes, at most one for each worker, which end when they are idle for 5 s. If
	// one can't be started, the hash is made in this process.
	Child func() *exec.Cmd
	// ChildFailed, if not nil, is called when a process can't be started or fails.
	ChildFailed func(error)
}

// The names of phases.
const (
	PhaseWait = "password.wait"
	PhaseHash = "password.hash"
)

// Pool hashes and verifies a bounded number of passwords at once. It is safe
// for concurrent use, holds no goroutine and needs no closing.
type Pool struct {
	params  Params
	dummy   digest // what Verify works on when there is no stored hash
	workers int
	slots   slots
	phase   func(ctx context.Context, name string) (end func())
	hashes  atomic.Uint64
	derive  func(request) ([]byte, error)
	usage   func() Processes
}

// NewPool returns a pool that hashes new passwords with p. It panics if
// p.Check fails: check parameters where they are read, so that the operator sees the
// error.
func NewPool(p Params, o Options) *Pool {
	if err := p.Check(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	derive, usage := func(r request) ([]byte, error) { return r.derive(), nil }, func() Processes { return Processes{} }
	if o.Child != nil {
		c := newChildren(o)
		derive, usage = c.derive, c.usage
	}
	return &Pool{
		params:  p,
		derive:  derive,
		usage:   usage,
		dummy:   digest{cost: p, salt: make([]byte, saltSize), tag: make([]byte, tagSize)},
		workers: o.Workers,
		phase:   o.Phase,
		slots:   slots{queue: o.Queue, wait: o.Wait, total: o.Workers, free: o.Workers, yield: o.Yield},
	}
}

func (o Options) withDefaults() Options {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Queue <= 0 {
		o.Queue = 64
	}
	if o.Wait <= 0 {
		o.Wait = 2 * time.Second
	}
	if o.Yield == nil {
		o.Yield = func() bool { return false }
	}
	if o.Phase == nil {
		o.Phase = func(context.Context, string) func() { return func() {} }
	}
	if o.ChildFailed == nil {
		o.ChildFailed = func(error) {}
	}
	return o
}

// Hash returns the PHC string of password under a fresh random salt. Its
// errors are ErrBusy, the context's, and with Options.Child those of the process.
func (p *Pool) Hash(ctx context.Context, password string) (phc string, err error) {
	d := digest{cost: p.params, salt: make([]byte, saltSize)}
	rand.Read(d.salt) // never fails: it crashes the process instead
	var fault error
	if err := p.run(ctx, d.cost, func() { d.tag, fault = p.derive(d.request(password, tagSize)) }); err != nil {
		return "", err
	}
	if fault != nil {
		return "", fault
	}
	return d.String(), nil
}

// Result is the result of [Pool.Verify].
type Result struct {
	OK       bool // the password is the one that was hashed
	Outdated bool // Hash would now use other parameters, sizes or another algorithm: if OK, hash again and store
}

// Verify compares password with a stored hash. It does the work of exactly one
// hash: with an empty phc it does that of the pool's own parameters and never
// answers OK, so that an unknown address costs as much as a known one.
//
// Errors are ErrBusy, the context's, those of the process with Options.Child, and those
// of [CheckHash]: a hash that cannot be read is a fault of the installation. None of them
// says anything about the password.
func (p *Pool) Verify(ctx context.Context, phc, password string) (Result, error) {
	d := p.dummy
	if phc != "" {
		var err error
		if d, err = parse(phc); err != nil {
			return Result{}, err
		}
	}
	var ok bool
	var fault error
	if err := p.run(ctx, d.cost, func() { ok, fault = p.match(d, password) }); err != nil {
		return Result{}, err
	}
	if fault != nil {
		return Result{}, fault
	}
	if phc == "" {
		return Result{}, nil
	}
	return Result{OK: ok, Outdated: d.isOutdated(p.params)}, nil
}

func (p *Pool) match(d digest, password string) (bool, error) {
	if d.foreign != nil {
		ok, err := d.foreign.MatchAdvanced(password)
		if err != nil {
			err = fmt.Errorf("argon: stored hash: %w", err)
		}
		return ok, err
	}
	tag, err := p.derive(d.request(password, uint32(len(d.tag))))
	return err == nil && subtle.ConstantTimeCompare(d.tag, tag) == 1, err
}

// Stats is a snapshot for metrics.
type Stats struct {
	Workers int    // all slots
	Busy    int    // slots taken
	Queued  int    // callers waiting
	Hashes  uint64 // hashes begun, verifications included, since the start
	Refused uint64 // ErrBusy answered since the start
}

// Stats returns the pool's state at this moment.
func (p *Pool) Stats() Stats {
	free, queued, refused := p.slots.count()
	return Stats{
		Workers: p.workers,
		Busy:    p.workers - free,
		Queued:  queued,
		Hashes:  p.hashes.Load(),
		Refused: refused,
	}
}

// Processes is what the processes of Options.Child use, for metrics. CPU and Resident
// are 0 on systems without /proc.
type Processes struct {
	Running  int           // processes there are now, idle ones included
	CPU      time.Duration // used by all since the start
	Resident int64         // bytes of memory; program pages count in each process
	Failures uint64        // processes that could not be started or failed
}

// Processes returns the usage at this moment.
func (p *Pool) Processes() Processes { return p.usage() }

// run waits for the slots that a hash of this cost needs, and does the work.
func (p *Pool) run(ctx context.Context, cost Params, work func()) error {
	need := p.slotsFor(cost)
	endWait := p.phase(ctx, PhaseWait)
	err := p.slots.take(ctx, need)
	endWait()
	if err != nil {
		return err
	}
	defer p.slots.give(need)
	p.hashes.Add(1)
	defer p.phase(ctx, PhaseHash)()
	work()
	return nil
}

// slotsFor returns the number of slots that work of this cost takes, at most all: its
// lanes, or its memory divided by that of a hash of the pool, whichever is more. So cores and
// memory exceed what the pool was built for only if this hash alone needs more than all slots.
func (p *Pool) slotsFor(cost Params) int {
	memory := (cost.MemoryKiB + p.params.MemoryKiB - 1) / p.params.MemoryKiB
	return min(p.workers, max(1, int(cost.Parallelism), int(memory)))
}
