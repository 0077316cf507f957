package app

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Shared are the settings that have to be the same on all nodes. Strict are those
// with which a node would end sessions that others hold valid, or destroy what they
// have promised to keep; the others only cost something: links that lead elsewhere,
// longer waits.
func (s Settings) Shared() []store.Setting {
	return []store.Setting{
		{Name: "session-idle", Value: s.Sessions.Idle.String(), Strict: true},
		{Name: "session-absolute", Value: s.Sessions.Absolute.String(), Strict: true},
		{Name: "session-limit", Value: strconv.Itoa(s.Sessions.PerUser), Strict: true},
		{Name: "tenant-hold", Value: s.TenantHold.String(), Strict: true},
		{Name: "base-url", Value: s.BaseURL},
		{Name: "revocation-lease", Value: s.Lease.String()},
	}
}

// Join registers this process as a node, before Run, and cuts what a clock that was
// ahead has left. The error is a *store.DiffersError. A database that can't be asked
// is none: the node starts, and registers when it can.
func (a *App) Join(ctx context.Context) error {
	err := a.Watch.Join(ctx)
	if err == nil && !a.db.Clock().Wrong() {
		err = a.cutFuture(ctx)
	}
	if doorward.HasCode(err, doorward.CodeUnavailable) {
		a.log.Warn("the node starts without the database", "err", err)
		return nil
	}
	return err
}

// Differing counts the nodes that have a setting otherwise, by its name.
func (a *App) Differing(name string) (n float64) {
	for _, d := range a.Watch.Differences() {
		if d.Setting.Name == name {
			n++
		}
	}
	return n
}

func (a *App) cutFuture(ctx context.Context) error {
	n, err := a.Sessions.CutFuture(ctx)
	if err == nil && n > 0 {
		a.log.Warn("sessions from a clock that was ahead are cut: they end as if they had been opened now", "sessions", n)
	}
	return err
}

// observer says once when something begins and once when it ends. It is called by
// one goroutine.
type observer struct {
	log      *slog.Logger
	clock    *store.Clock
	watch    *store.Watch
	reported clockState
	differ   map[store.Difference]bool
}

// clockState is how far the clocks are apart, in steps that mean something.
type clockState int

const (
	clockRight clockState = iota
	clockOff              // worth a warning
	clockWrong            // nothing is judged by it
)

func (o *observer) look() {
	o.lookAtClock()
	o.lookAtSettings()
}

// lookAtClock takes a difference for over below half of what begins it, so that
// one at the limit doesn't fill the log.
func (o *observer) lookAtClock() {
	drift, state := o.clock.Drift(), clockRight
	switch {
	case o.clock.Wrong():
		state = clockWrong
	case drift.Abs() > store.ClockWarning, o.reported != clockRight && drift.Abs() > store.ClockWarning/2:
		state = clockOff
	}
	if state == o.reported {
		return
	}
	o.reported = state
	ahead := slog.String("ahead", drift.Round(time.Millisecond).String())
	switch state {
	case clockWrong:
		o.log.Error("this node's clock and the database's are too far apart: nothing is judged by time here until they agree", ahead)
	case clockOff:
		o.log.Warn("this node's clock and the database's differ: set this machine's clock right", ahead)
	case clockRight:
		o.log.Info("this node's clock and the database's agree again", ahead)
	}
}

func (o *observer) lookAtSettings() {
	now := map[store.Difference]bool{}
	for _, d := range o.watch.Differences() {
		now[d] = true
		if !o.differ[d] {
			o.log.Warn("a setting differs from that of another node: set it alike on all", "setting", d.Setting.Name, "here", d.Setting.Value, "there", d.Theirs, "node", d.Node)
		}
	}
	for d := range o.differ {
		if !now[d] {
			o.log.Info("a setting no longer differs from that of another node", "setting", d.Setting.Name, "here", d.Setting.Value, "node", d.Node)
		}
	}
	o.differ = now
}
