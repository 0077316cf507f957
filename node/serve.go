package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// listener is one address and what answers there.
type listener struct {
	net.Listener
	handler http.Handler
}

func listen(addr string) (*listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("node: listen on %s: %w", addr, err)
	}
	return &listener{Listener: l}, nil
}

// address is what was asked for, with the port that was really taken.
func (l *listener) address(asked string) string {
	host, _, err := net.SplitHostPort(asked)
	if err != nil || host == "" {
		host = "localhost"
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}

// drainFor is how long requests under way are waited for. No request takes
// more than 3 s.
const drainFor = 5 * time.Second

// Run serves until ctx ends, then drains: requests under way and those that
// arrive meanwhile are answered before the connections close. It closes the
// node. The error is nil after a clean end.
func (n *Node) Run(ctx context.Context) error {
	upkeep, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { n.App.Run(upkeep) })
	servers := n.servers()
	failed := make(chan error, len(servers))
	for _, s := range servers {
		go func() { failed <- s.http.Serve(s.on) }()
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = n.drain(servers)
	}
	stop()
	work.Wait()
	return errors.Join(err, n.Close())
}

type server struct {
	http *http.Server
	on   net.Listener
}

func (n *Node) servers() []server {
	all := []server{{newServer(n.main.handler), n.main}}
	if n.admin != nil {
		all = append(all, server{newServer(n.admin.handler), n.admin})
	}
	return all
}

// newServer bounds what a slow or hostile client can hold. The times for body
// and answer are per request, in web/front.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		WriteTimeout:      30 * time.Second,
		MaxHeaderBytes:    32 << 10,
	}
}

func (n *Node) drain(servers []server) error {
	n.cfg.Log.Info("draining")
	n.draining.Store(true)
	time.Sleep(n.cfg.Announce)
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.http.Shutdown(ctx))
	}
	return errors.Join(errs...)
}
