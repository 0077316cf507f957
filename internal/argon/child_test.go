package argon

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

const childVariable = "DOORWARD_TEST_HASH_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		_ = ServeChild(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// starts counts processes, and waits for their end.
type starts struct {
	t   *testing.T
	mu  sync.Mutex
	all []*exec.Cmd
	// alive are pipes that each process holds open for writing until it ends.
	alive []*os.File
}

func (s *starts) command() *exec.Cmd {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childVariable + "=1"}
	cmd.Stderr = os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { read.Close(); write.Close() })
	cmd.ExtraFiles = []*os.File{write}
	s.all, s.alive = append(s.all, cmd), append(s.alive, read, write)
	return cmd
}

// awaitEnd returns when the process has ended.
func (s *starts) awaitEnd(i int) {
	s.t.Helper()
	s.alive[2*i+1].Close() // this process's own
	if err := s.alive[2*i].SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.alive[2*i].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		s.t.Fatalf("process %d has not ended: %v", i, err)
	}
}

// TestChild: hashes made in a process and in this one are the same, one after another
// in one process, with lanes of more than one thread, too.
func TestChild(t *testing.T) {
	for _, params := range []Params{cheap, {2048, 2, 2}} {
		s := &starts{t: t}
		within, here := NewPool(params, Options{Child: s.command}), NewPool(params, Options{})
		for _, pools := range [][2]*Pool{{within, here}, {here, within}} {
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
				t.Errorf("%v: nobody's password: %+v, %v", params, got, err)
			}
		}
		if len(s.all) != 1 {
			t.Errorf("%v: %d processes for one hash at a time, want one", params, len(s.all))
		}
	}
}

// TestChildren: no more processes than workers, also for many callers.
func TestChildren(t *testing.T) {
	s := &starts{t: t}
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
		t.Errorf("%d processes, want one for each of two workers", n)
	}
}

// TestChildDies: a right password is an error, not a mismatch, and the next hash is made
// in another process.
func TestChildDies(t *testing.T) {
	s := &starts{t: t}
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
		t.Errorf("the process is dead, and the answer %+v", got)
	}
	if got, err := pool.Verify(t.Context(), phc, staple); err != nil || !got.OK {
		t.Errorf("after that: %+v, %v", got, err)
	}
	if n := pool.Stats().Busy; n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}

func TestChildEndsWhenIdle(t *testing.T) {
	s := &starts{t: t}
	c := &children{command: s.command, failed: func(err error) { t.Error(err) }, idleFor: time.Millisecond}
	r := request{Password: []byte(staple), Salt: make([]byte, saltSize), Cost: cheap, Size: tagSize}
	for i := range 2 {
		if _, err := c.derive(r); err != nil {
			t.Fatal(err)
		}
		s.awaitEnd(i)
	}
}

// TestChildCannotStart: hashes are made all the same.
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

// TestBrokenChild: what isn't a process for hashes is an error.
func TestBrokenChild(t *testing.T) {
	for name, command := range map[string]func() *exec.Cmd{
		"ends":     func() *exec.Cmd { return exec.Command("true") },
		"chatters": func() *exec.Cmd { return exec.Command("echo", "no hash") },
	} {
		pool := NewPool(cheap, Options{Child: command})
		if phc, err := pool.Hash(t.Context(), staple); err == nil {
			t.Errorf("%s: the hash is %q", name, phc)
		}
	}
}
