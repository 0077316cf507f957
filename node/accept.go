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

// acceptLog tells of connections that couldn't be taken. net/http goes on trying,
// and would say so at the level of what clients do wrong.
type acceptLog struct {
	log    *slog.Logger
	limit  lograte.Limiter
	failed atomic.Uint64 // for metrics
}

// note writes a line for an error of Accept, but for that of a listener which this
// process has closed.
func (a *acceptLog) note(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	a.failed.Add(1)
	leftOut, ok := a.limit.Line(err.Error(), time.Now())
	if !ok {
		return
	}
	says := []any{"err", err, "leftOut", leftOut}
	switch {
	case errors.Is(err, syscall.EMFILE):
		says = append(says, "limit", descriptorLimit(), "advice", "raise the limit of open files of this process: LimitNOFILE in its systemd unit, --ulimit nofile of a container")
	case errors.Is(err, syscall.ENFILE):
		says = append(says, "advice", "the machine has no file descriptors left: raise fs.file-max, or look at who has them")
	}
	a.log.Error("connections are not accepted", says...)
}
