package acs

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
)

const (
	// waitingMax is how many responses may wait to be judged. Each holds a form of at most samlsp.FormMax.
	waitingMax = 256
	// waitMost is how long each may wait, as a password for its hash.
	waitMost = 2 * time.Second
)

// errBusy is the cause of a 503. Nothing was judged, and the same form can be sent again.
var errBusy = errors.New("acs: too many SAML responses are being judged already")

// judging bounds what responses take of the node: acs is open to everybody, and the worst response takes a quarter of a
// second and 150 MB. Half of the cores judge, so that checks of sessions go on. It is safe for use by several goroutines.
type judging struct {
	slots   chan struct{}
	waiting atomic.Int64
}

func newJudging() *judging {
	return &judging{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// do runs fn once there is room, and returns its error. Errors of its own: unavailable, if too many wait, or for too long,
// or the caller has gone.
func (j *judging) do(ctx context.Context, fn func() error) error {
	if err := j.take(ctx); err != nil {
		return doorward.Unavailable(err)
	}
	defer func() { <-j.slots }()
	return fn()
}

func (j *judging) take(ctx context.Context) error {
	defer j.waiting.Add(-1)
	if j.waiting.Add(1) > waitingMax {
		return errBusy
	}
	timer := time.NewTimer(waitMost)
	defer timer.Stop()
	select {
	case j.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errBusy
	}
}
