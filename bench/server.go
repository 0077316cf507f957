package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server under load.
type process struct {
	cmd     *exec.Cmd
	address string
	ready   time.Duration // from its start to its first answer
}

// doorward starts the real binary on a database.
func (b *bench) doorward(database string, flags ...string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"serve", "--listen", address, "--database", database, "--smtp", "file:" + filepath.Join(b.dir, "mail"), "--log-level", "error",
		"--limit-login-account", "0", "--limit-login-ip", "0", "--session-limit", "0", "--session-idle", "24h",
	}, flags...)
	return start(exec.Command(b.binary, args...), address)
}

// bare starts this program as the baseline server.
func (b *bench) bare() (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(exec.Command(self, "-bare", address), address)
}

// serveBare answers the same bytes as a check, without checking anything.
func serveBare(address string) {
	headers := map[string][]string{
		"Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}, "Referrer-Policy": {"no-referrer"},
		"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"}, "X-Request-Id": {"req_aaaaaaaaaaaaaaaaaaaaaaaaaa"},
		"X-Auth-User": {"usr_aaaaaaaaaaaaaaaaaaaaaaaaaa"}, "X-Auth-Tenant": {"tnt_aaaaaaaaaaaaaaaaaaaaaaaaaa"}, "X-Auth-Role": {"USER"},
		"X-Auth-Email": {"user00000000@bench.example"}, "X-Auth-Session": {"ses_aaaaaaaaaaaaaaaaaaaaaaaaaa"}, "X-Auth-Key": {""},
	}
	err := http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for name, value := range headers {
			h[name] = value
		}
	}))
	fmt.Fprintln(os.Stderr, err)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func start(cmd *exec.Cmd, address string) (*process, error) {
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, address: address}
	for time.Since(began) < 20*time.Second {
		if p.answers() {
			p.ready = time.Since(began)
			return p, nil
		}
		time.Sleep(200 * time.Microsecond)
	}
	p.stop()
	return nil, errors.New("the server does not answer")
}

func (p *process) answers() bool {
	conn, err := net.DialTimeout("tcp", p.address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", p.address)
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "HTTP/1.1 200")
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill() // its data isn't needed any more
	_ = p.cmd.Wait()
}

// cpu is the time that the server and its processes have used so far.
func (p *process) cpu() time.Duration {
	sum := cpuOf(p.cmd.Process.Pid)
	for _, pid := range childrenOf(p.cmd.Process.Pid) {
		sum += cpuOf(pid)
	}
	return sum
}

// cpuOf returns the time of a process and of its children that have ended (proc(5): utime,
// stime, cutime, cstime, in ticks of 10 ms).
func cpuOf(pid int) (sum time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	for _, field := range strings.Fields(rest)[11:15] {
		ticks, _ := strconv.Atoi(field)
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}

func childrenOf(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		text, _ := os.ReadFile(name) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(field)
			all = append(all, child)
		}
	}
	return all
}

// watchMemory samples the memory of the server and its processes every 100 ms. Pages that
// several of them share count once (Pss). highest ends the sampling and returns the largest
// sample, in bytes.
func (p *process) watchMemory() (highest func() int64) {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for tick := time.Tick(100 * time.Millisecond); ; {
			select {
			case <-stop:
				result <- most
				return
			case <-tick:
				most = max(most, p.pss())
			}
		}
	}()
	return func() int64 { close(stop); return <-result }
}

// pss returns the memory of the server and its processes, see watchMemory.
func (p *process) pss() (sum int64) {
	pid := p.cmd.Process.Pid
	for _, pid := range append(childrenOf(pid), pid) {
		sum += bytesIn(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
	}
	return sum
}

// memory returns a line of /proc/PID/status of the server in bytes: VmRSS or VmHWM.
func (p *process) memory(name string) int64 {
	return bytesIn(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid), name)
}

// bytesIn returns the value of a line "name: n kB" of a file, in bytes; 0 without such a line.
func bytesIn(file, name string) int64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
