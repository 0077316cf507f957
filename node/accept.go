package node

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/doorward/doorward/internal/lograte"
)

// acceptLog logs errors of Accept, at a limited rate. net/http retries, and would log
// them at the level of client errors.
type acceptLog struct {
	log    *slog.Logger
	limit  lograte.Limiter
	failed atomic.Uint64 // for metrics
}

// logError counts and logs an error of Accept, unless this process has closed the listener.
func (a *acceptLog) logError(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	a.failed.Add(1)
	leftOut, ok := a.limit.Allow(err.Error(), time.Now())
	if !ok {
		return
	}
	attrs := []any{"err", err, "leftOut", leftOut}
	switch {
	case errors.Is(err, syscall.EMFILE):
		attrs = append(attrs, "limit", descriptorLimit(), "advice", "raise the limit of open files of this process: LimitNOFILE in its systemd unit, --ulimit nofile of a container")
	case errors.Is(err, syscall.ENFILE):
		attrs = append(attrs, "advice", "the machine has no file descriptors left: raise fs.file-max, or find the process that holds them")
	}
	a.log.Error("connections are not accepted", attrs...)
}
