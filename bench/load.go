package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// client is one keep-alive connection that sends prepared bytes. It uses a fraction of
// the CPU time of net/http's client, which leaves the machine to the server.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(address string) (*client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReaderSize(conn, 4096)}, nil
}

// ask sends a request and returns the status and the body of the answer.
func (c *client) ask(request []byte) (status int, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil || len(line) < 12 {
		return 0, nil, fmt.Errorf("status line %q: %v", line, err)
	}
	status, _ = strconv.Atoi(string(line[9:12]))
	length := 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	body = make([]byte, length)
	_, err = io.ReadFull(c.in, body)
	return status, body, err
}

// result is the outcome of one slice of load.
type result struct {
	requests  int
	took      time.Duration
	cpu       time.Duration
	latencies []time.Duration
}

func (r *result) add(o result) {
	r.requests += o.requests
	r.took += o.took
	r.cpu += o.cpu
	r.latencies = append(r.latencies, o.latencies...)
}

func (r result) rate() float64 { return float64(r.requests) / r.took.Seconds() }

func (r result) cpuPer() time.Duration {
	if r.requests == 0 {
		return 0
	}
	return r.cpu / time.Duration(r.requests)
}

func (r result) percentile(p float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	slices.Sort(r.latencies)
	return r.latencies[min(len(r.latencies)-1, int(p*float64(len(r.latencies))))]
}

// load runs clients at full speed for this time; next returns each request. Every answer must
// have the status want.
func load(p *process, clients int, duration time.Duration, want int, next func(client, n int) []byte) (result, error) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	results, errs := make([]result, clients), make([]error, clients)
	cpu, began := p.cpu(), time.Now()
	for i := range clients {
		wg.Go(func() {
			results[i], errs[i] = runClient(p.address, &stop, want, func(n int) []byte { return next(i, n) })
		})
	}
	time.Sleep(duration)
	stop.Store(true)
	wg.Wait()
	sum := result{}
	for _, r := range results {
		sum.add(r)
	}
	sum.took, sum.cpu = time.Since(began), p.cpu()-cpu
	for _, err := range errs {
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func runClient(address string, stop *atomic.Bool, want int, next func(n int) []byte) (result, error) {
	c, err := dial(address)
	if err != nil {
		return result{}, err
	}
	defer c.conn.Close()
	var r result
	for n := 0; !stop.Load(); n++ {
		began := time.Now()
		status, body, err := c.ask(next(n))
		if err != nil {
			return r, err
		}
		if status != want {
			return r, fmt.Errorf("status %d instead of %d: %s", status, want, body)
		}
		r.latencies = append(r.latencies, time.Since(began))
		r.requests++
	}
	return r, nil
}
