// Package argon hashes passwords with Argon2id, verifies its own and imported
// hashes, and limits the resources used for it.
//
// One [Pool] serves the process:
//
//	pool := argon.NewPool(argon.Default, argon.Options{})
//	phc, err := pool.Hash(ctx, password)             // "$argon2id$v=19$m=19456,t=2,p=1$…$…"
//	got, err := pool.Verify(ctx, phc, password)      // got.OK, got.Outdated
//	_, err = pool.Verify(ctx, "", password)          // no such account: same cost, never OK
//
// # The pool
//
// A hash deliberately takes 20 ms of one core and 19 MiB. Without a limit, a burst
// of logins would use every core and delay every check of a session. So there is
// one slot per core, and one fewer while Options.Yield says that checks need a
// core. Up to 64 callers queue, first come first served, each for at most 2 s. If
// the queue is full or the wait too long, the caller gets [ErrBusy], which is a 503
// with Retry-After and never a wrong password. Without Options.Child the work runs on
// the caller's goroutine. There is nothing to close. A running hash can't be
// interrupted; the context counts only while waiting.
//
// # Memory
//
// x/crypto/argon2 allocates its memory for each hash. At most slots × m KiB (19
// MiB a slot by default) are in use at once, unless one stored hash needs more; garbage
// included, a process takes two to three times that. With Options.Child, child
// processes make the hashes; they collect garbage after each hash and end when idle. A
// hash takes a slot for each of its lanes; one that needs more memory than the pool's
// parameters takes more, too. None takes more slots than there are.
//
// # Stored hashes
//
// A stored hash may come from an import, and an absurd cost in one row would stop
// all logins. So a hash is parsed strictly and its cost is checked before any work
// (see [CheckHash]). An unreadable or too expensive hash is an error, not a mismatch:
// the caller answers 503, because the password may be right.
//
// Foreign hashes (bcrypt, scrypt, PBKDF2) are verified by go-crypt and always
// reported Outdated, so that the next login replaces them.
//
// Normalising a password (NFC) and limiting its length are the caller's duty.
package argon

import (
	"fmt"
)

// Params is the cost of one Argon2id hash, named as in RFC 9106, section 3.1.
type Params struct {
	MemoryKiB   uint32 // m, in KiB
	Time        uint32 // t, passes over the memory
	Parallelism uint8  // p, lanes; each runs in its own goroutine
}

// Default is the second of the equivalent minimum settings in the OWASP
// Password Storage Cheat Sheet (m=19 MiB, t=2, p=1).
// https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id
var Default = Params{MemoryKiB: 19456, Time: 2, Parallelism: 1}

// Bounds of the cost of a hash, configured or stored.
const (
	maxMemoryKiB   = 1 << 20 // 1 GiB
	maxTime        = 64
	maxParallelism = 64

	// maxWorkKiB bounds memory × passes, to which the time of a hash is
	// proportional: with both at their maximum it would be half a minute. It is
	// the SENSITIVE setting of libsodium (1 GiB, 4 passes), a few seconds.
	maxWorkKiB = 4 << 20

	// minConfiguredKiB catches --password-memory-kib given in MiB. Stored
	// hashes may be smaller: refusing them would not add security.
	minConfiguredKiB = 1024
)

// Check reports whether p is fit to hash new passwords with. The error names
// the parameter out of bounds and says what to set instead.
func (p Params) Check() error {
	if p.MemoryKiB < minConfiguredKiB {
		return fmt.Errorf("argon: memory of %d KiB is below %d KiB: the unit is KiB, the default %d",
			p.MemoryKiB, minConfiguredKiB, Default.MemoryKiB)
	}
	if err := p.checkCost(); err != nil {
		return fmt.Errorf("argon: %w: the default is m=%d KiB, t=%d, p=%d",
			err, Default.MemoryKiB, Default.Time, Default.Parallelism)
	}
	return nil
}

// checkCost checks the bounds of configured and of stored parameters. The lower
// bound of the memory is RFC 9106's, section 3.1.
func (p Params) checkCost() error {
	switch {
	case p.Parallelism < 1 || p.Parallelism > maxParallelism:
		return fmt.Errorf("parallelism p=%d is not within 1 to %d", p.Parallelism, maxParallelism)
	case p.Time < 1 || p.Time > maxTime:
		return fmt.Errorf("time t=%d is not within 1 to %d", p.Time, maxTime)
	case p.MemoryKiB < 8*uint32(p.Parallelism) || p.MemoryKiB > maxMemoryKiB:
		return fmt.Errorf("memory m=%d KiB is not within 8 × p to %d", p.MemoryKiB, maxMemoryKiB)
	case uint64(p.MemoryKiB)*uint64(p.Time) > maxWorkKiB:
		return fmt.Errorf("memory × time, m=%d KiB × t=%d, is above %d KiB", p.MemoryKiB, p.Time, maxWorkKiB)
	}
	return nil
}
