package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// takeAll takes all jobs of a lane and returns them in order.
func takeAll(w *waiting[string], lane int) string {
	var all []string
	for {
		work, found := w.take(lane, anyHost)
		if !found {
			return strings.Join(all, " ")
		}
		all = append(all, work)
	}
}

func anyHost(string) func(string) bool { return func(string) bool { return true } }

// addAll adds jobs named after their share, host and number.
func addAll(w *waiting[string], slow bool, names ...string) {
	for _, name := range names {
		w.add(name, Job{ID: name, Share: name[:1], Host: name[1:2]}, slow)
	}
}

func TestSharesAndHostsTakeTurns(t *testing.T) {
	w := newWaiting[string]()
	addAll(w, fastHost, "Ax1", "Ax2", "Ax3", "Ay1", "Bx1", "Ax2", "Bx2", "Cz1")
	if got, want := takeAll(w, laneOf(normalWork, fastHost)), "Ax1 Bx1 Cz1 Ay1 Bx2 Ax2 Ax3"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
	if w.len() != 0 || len(w.perShare) != 0 {
		t.Errorf("%d are left, of %d shares", w.len(), len(w.perShare))
	}
}

// A job that can't start is skipped and keeps its position.
func TestJobsWithoutASlotAreSkipped(t *testing.T) {
	w := newWaiting[string]()
	addAll(w, fastHost, "Ax1", "Bx1", "By1", "Cx1")
	got, _ := w.take(laneOf(normalWork, fastHost), func(share string) func(string) bool {
		if share == "A" {
			return nil
		}
		return func(host string) bool { return host != "x" }
	})
	if got != "By1" {
		t.Errorf("the job taken is %q", got)
	}
	if got, want := takeAll(w, laneOf(normalWork, fastHost)), "Cx1 Ax1 Bx1"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
}

func TestRaceWorkMovesWithItsHost(t *testing.T) {
	w := newWaiting[string]()
	addAll(w, fastHost, "Ax1", "Ay1", "Bx1", "Ax2")
	w.move("x", slowHost)
	addAll(w, slowHost, "Ax3")
	if got, want := takeAll(w, laneOf(normalWork, fastHost)), "Ay1"; got != want {
		t.Errorf("jobs to good hosts are %s, want %s", got, want)
	}
	if got, want := takeAll(w, laneOf(normalWork, slowHost)), "Ax1 Bx1 Ax2 Ax3"; got != want {
		t.Errorf("jobs to slow hosts are %s, want %s", got, want)
	}
}

// One share can't use all memory.
func TestRaceMemoryIsShared(t *testing.T) {
	w := newWaiting[string]()
	fill := func(share string, want int) {
		t.Helper()
		got := 0
		for i := range maxWaiting + 1 {
			if w.add("", Job{ID: fmt.Sprint(share, i), Share: share}, fastHost) {
				got++
			}
		}
		if got != want {
			t.Errorf("%d jobs of share %s are kept, want %d", got, share, want)
		}
	}
	fill("A", maxWaiting)
	fill("B", maxWaiting/2)
	fill("C", maxWaiting/3)
	for i := range 2 * maxWaiting / minOfShare {
		w.add("", Job{ID: fmt.Sprint("some", i), Share: fmt.Sprint("some", i)}, fastHost)
	}
	fill("Z", minOfShare)
}

func TestHostsAreJudgedByTheirTries(t *testing.T) {
	var h hosts
	isSlowAfter := func(host, tries string) bool { // q is a quick try, s a slow one
		for _, try := range tries {
			h.score(host, try == 'q')
		}
		return h.isSlow(Job{Host: host})
	}
	for tries, slow := range map[string]bool{
		"": false, "s": true, "q": false, "qs": false, "qss": true, "ssssq": false, "ssssqs": true, "qqqqqqsss": false, "qqqqqqssss": true,
	} {
		if got := isSlowAfter("host "+tries, tries); got != slow {
			t.Errorf("after %q the host is slow: %v, want %v", tries, got, slow)
		}
	}
	for i := range maxHosts {
		h.score(fmt.Sprint("more ", i), !quick)
	}
	slow := 0
	for _, n := range h.known {
		if n < 0 {
			slow++
		}
	}
	if len(h.known) != maxHosts || h.slow != slow {
		t.Errorf("%d hosts are known, %d of them slow, counted as %d", len(h.known), slow, h.slow)
	}
}

// The threshold for slow follows the mail server's own delay, within bounds.
func TestSlowIsRelative(t *testing.T) {
	var h hosts
	want := func(after time.Duration) {
		t.Helper()
		if got := h.slowAfter(); got != after {
			t.Errorf("a try is slow after %v, want %v", got, after)
		}
	}
	want(defaultSlowAfter)
	h.succeeded(3 * time.Second)
	want(6 * time.Second)
	h.succeeded(20 * time.Millisecond)
	want(minSlowAfter)
	for range maxSamples {
		h.succeeded(time.Minute)
	}
	want(maxSlowAfter)
}

func TestPauses(t *testing.T) {
	var all time.Duration
	tries := 0
	failed := errors.New("failed")
	for state, pause := DefaultBackoff.After(tries, failed, false); state == Retry; state, pause = DefaultBackoff.After(tries, failed, false) {
		all += pause
		tries++
	}
	if _, first := DefaultBackoff.After(0, failed, false); first != 5*time.Second || all < 48*time.Hour || all > 50*time.Hour {
		t.Errorf("%d tries take %v, the second comes after %v", tries, all, first)
	}
	for _, c := range []struct {
		before    int
		err       error
		permanent bool
		want      State
	}{{0, nil, false, Sent}, {tries, nil, false, Sent}, {0, failed, true, Dead}, {tries - 1, failed, false, Retry}, {tries, failed, false, Dead}} {
		if got, _ := DefaultBackoff.After(c.before, c.err, c.permanent); got != c.want {
			t.Errorf("after %d tries and %v, permanent %v, the state is %v, want %v", c.before, c.err, c.permanent, got, c.want)
		}
	}
}
