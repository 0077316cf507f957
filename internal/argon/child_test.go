package argon

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/waittest"
)

const childVariable = "DOORWARD_TEST_HASH_CHILD"

// childKinds are the main functions of child processes: one that works and broken ones.
var childKinds = map[string]func(){
	"works":           func() { _ = ServeChild(os.Stdin, os.Stdout) },
	"ends at once":    func() {},
	"does not greet":  func() { _, _ = io.Copy(io.Discard, os.Stdin) },
	"another version": func() { fmt.Print("doorward password hashes, protocol 2\n"); _ = ServeChild(os.Stdin, os.Stdout) },
	"hangs":           func() { fmt.Print(greeting); _, _ = io.Copy(io.Discard, os.Stdin) },
	"ends in a hash":  func() { fmt.Print(greeting); _, _, _ = readRequest(os.Stdin) },
	"wrong answer": func() {
		fmt.Print(greeting)
		if r, id, err := readRequest(os.Stdin); err == nil {
			_, _ = os.Stdout.Write(append(binary.LittleEndian.AppendUint64(nil, id+1), r.derive()...))
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
}

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		childKinds[kind]()
		return
	}
	os.Exit(m.Run())
}

// recorder makes the commands of child processes, counts them, and waits for their end.
type recorder struct {
	t    *testing.T
	kind string // of childKinds; empty: one that works
	mu   sync.Mutex
	all  []*exec.Cmd
	// pipes has two files for each process: the reading and the writing end of a pipe. The
	// process keeps the writing end open until it ends.
	pipes []*os.File
}

func (s *recorder) command() *exec.Cmd {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childVariable + "=" + cmp.Or(s.kind, "works")}
	cmd.Stderr = os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { read.Close(); write.Close() })
	cmd.ExtraFiles = []*os.File{write}
	s.all, s.pipes = append(s.all, cmd), append(s.pipes, read, write)
	return cmd
}

// awaitEnd returns when the i-th process, from 0, has ended.
func (s *recorder) awaitEnd(i int) {
	s.t.Helper()
	s.pipes[2*i+1].Close() // the test's own copy of the writing end
	if err := s.pipes[2*i].SetReadDeadline(waittest.Deadline()); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.pipes[2*i].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		s.t.Fatalf("process %d has not ended: %v", i, err)
	}
}

// TestChild: hashes made in a child and in this process are the same, also with several
// lanes. One child makes all of them.
func TestChild(t *testing.T) {
	for _, params := range []Params{cheap, {2048, 2, 2}} {
		s := &recorder{t: t}
		inChild, here := NewPool(params, Options{Child: s.command}), NewPool(params, Options{})
		for _, pools := range [][2]*Pool{{inChild, here}, {here, inChild}} {
			phc, err := pools[0].Hash(t.Context(), staple)
			if err != nil {
				t.Fatal(err)
			}
			for password, want := range map[string]bool{staple: true, staple + " ": false, "": false} {
				if got, err := pools[1].Verify(t.Context(), phc, password); err != nil || got.OK != want {
					t.Errorf("%v: Verify(%q) = %+v, %v, want %v", params, password, got, err, want)
				}
			}
			if got, err := pools[1].Verify(t.Context(), "", staple); err != nil || got.OK {
				t.Errorf("%v: without a stored hash: %+v, %v", params, got, err)
			}
		}
		if len(s.all) != 1 {
			t.Errorf("%v: %d processes for one hash at a time, want one", params, len(s.all))
		}
	}
}

// TestChildren: there are no more children than workers, also for many callers.
func TestChildren(t *testing.T) {
	s := &recorder{t: t}
	pool := NewPool(cheap, Options{Workers: 2, Child: s.command, Wait: time.Minute})
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if _, err := pool.Hash(t.Context(), staple); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := len(s.all); n < 1 || n > 2 {
		t.Errorf("%d processes, want at most one for each of two workers", n)
	}
}

// TestChildDies: verifying the right password fails with an error, not as a mismatch, and
// the next hash is made in another child.
func TestChildDies(t *testing.T) {
	s := &recorder{t: t}
	pool := NewPool(cheap, Options{Child: s.command})
	phc, err := pool.Hash(t.Context(), staple)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.all[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.awaitEnd(0)
	if got, err := pool.Verify(t.Context(), phc, staple); err == nil {
		t.Errorf("the process is dead, and Verify returns %+v without an error", got)
	}
	if got, err := pool.Verify(t.Context(), phc, staple); err != nil || !got.OK {
		t.Errorf("in the next child: %+v, %v", got, err)
	}
	if n := pool.Stats().Busy; n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}

// newChildrenAndRequest returns children that have started no process yet, and a request for a
// hash.
func newChildrenAndRequest(s *recorder) (*children, request) {
	c := newChildren(Options{Child: s.command, ChildFailed: func(error) {}})
	return c, request{Password: []byte(staple), Salt: make([]byte, saltSize), Cost: cheap, Size: tagSize}
}

func TestChildEndsWhenIdle(t *testing.T) {
	s := &recorder{t: t}
	c, r := newChildrenAndRequest(s)
	c.idleFor = time.Millisecond
	for i := range 2 {
		if _, err := c.derive(r); err != nil {
			t.Fatal(err)
		}
		s.awaitEnd(i)
	}
	if c.failures != 0 {
		t.Errorf("%d processes have failed", c.failures)
	}
}

// TestBrokenChild: if the child fails before it is ready, this process makes the hash. If it
// fails later, the result is an error, never a wrong tag, and the child is killed.
func TestBrokenChild(t *testing.T) {
	for kind, started := range map[string]bool{
		"ends at once": false, "does not greet": false, "another version": false,
		"hangs": true, "ends in a hash": true, "wrong answer": true,
	} {
		t.Run(kind, func(t *testing.T) {
			s := &recorder{t: t, kind: kind}
			c, r := newChildrenAndRequest(s)
			c.hashTimeout = time.Millisecond
			if kind == "wrong answer" { // the only one that answers
				c.hashTimeout = time.Minute
			}
			if !started { // the others may take longer than this until they greet
				c.startTimeout = 50 * time.Millisecond
			}
			want := r.derive()
			tag, err := c.derive(r)
			if !bytes.Equal(r.Password, make([]byte, len(staple))) {
				t.Error("the password is still there")
			}
			if started && (err == nil || tag != nil) {
				t.Errorf("the tag is %x, %v, want an error", tag, err)
			}
			if !started && (err != nil || !bytes.Equal(tag, want)) {
				t.Errorf("the tag is %x, %v, want that of a hash made here", tag, err)
			}
			s.awaitEnd(0)
			if u := c.usage(); u.Running != 0 || u.Failures != 1 {
				t.Errorf("usage is %+v, want no process and one failure", u)
			}
		})
	}
}

// TestChildUsage: idle processes count, too, and the CPU time of those that have ended.
func TestChildUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	s := &recorder{t: t}
	c, r := newChildrenAndRequest(s)
	r.Cost = Params{MemoryKiB: 64 << 10, Time: 4, Parallelism: 1} // over 10 ms, a tick
	if _, err := c.derive(r); err != nil {
		t.Fatal(err)
	}
	alive := c.usage()
	if alive.Running != 1 || alive.CPU <= 0 || alive.Resident < 1<<20 {
		t.Errorf("with an idle process the usage is %+v", alive)
	}
	c.retire(c.idle[0])
	c.lastCPU = 0 // usage must not depend on it here
	if ended := c.usage(); ended.Running != 0 || ended.CPU < alive.CPU || ended.Resident != 0 {
		t.Errorf("after its end the usage is %+v, before it %+v", ended, alive)
	}
}

// TestRequestLimits: neither side takes a request beyond the limits, so that a broken one
// can't make the process allocate without limit.
func TestRequestLimits(t *testing.T) {
	good := request{Password: make([]byte, maxPassword), Salt: make([]byte, maxSalt), Cost: cheap, Size: maxTag}
	frame, err := good.frame(7)
	if err != nil {
		t.Fatal(err)
	}
	got, id, err := readRequest(bytes.NewReader(frame))
	if diff := gocmp.Diff(good, got); err != nil || id != 7 || diff != "" {
		t.Errorf("a request at the limits is read with the id %d, %v (-want +got):\n%s", id, err, diff)
	}
	for name, change := range map[string]func(*request){
		"password": func(r *request) { r.Password = make([]byte, maxPassword+1) },
		"salt":     func(r *request) { r.Salt = make([]byte, maxSalt+1) },
		"tag":      func(r *request) { r.Size++ },
		"no tag":   func(r *request) { r.Size = 0 },
		"cost":     func(r *request) { r.Cost.MemoryKiB = maxMemoryKiB + 1 },
	} {
		bad := good
		change(&bad)
		if _, err := bad.frame(7); err == nil {
			t.Errorf("%s: a request beyond the limit is sent", name)
		}
		h := header{ID: 7, Cost: bad.Cost, Size: bad.Size, Salt: uint32(len(bad.Salt)), Password: uint32(len(bad.Password))}
		sent, err := binary.Append(nil, binary.LittleEndian, h)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := readRequest(bytes.NewReader(append(sent, make([]byte, 1<<20)...))); err == nil {
			t.Errorf("%s: a request beyond the limit is read", name)
		}
	}
}

// TestChildCannotStart: if no child can be started, this process makes the hashes.
func TestChildCannotStart(t *testing.T) {
	var fault error
	pool := NewPool(cheap, Options{
		Child:       func() *exec.Cmd { return exec.Command("/nonexistent") },
		ChildFailed: func(err error) { fault = err },
	})
	phc, err := pool.Hash(t.Context(), staple)
	if err != nil || fault == nil {
		t.Fatalf("%v; reported is %v", err, fault)
	}
	if got, err := NewPool(cheap, Options{}).Verify(t.Context(), phc, staple); err != nil || !got.OK {
		t.Errorf("%+v, %v", got, err)
	}
}
