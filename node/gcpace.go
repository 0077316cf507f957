package node

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcHeadroom is how much is allocated between two collections of a small heap, in
	// bytes.
	gcHeadroom = 16 << 20
	// maxGCPercent is the highest percentage that is set.
	maxGCPercent = 400
	// gcBusy is how soon after another a collection has to end for the percentage to be
	// raised. A node at rest collects every few seconds or minutes and stays small.
	gcBusy = time.Second
)

// PaceGC frees what the start leaves behind, then makes the garbage collector of this
// process run less often while a small heap is allocated from quickly: with 3 MB live
// and Go's 100 %, checks take a collection every 3 MB. The percentage is 100 again before
// the heap is large. It is left alone if the environment sets GOGC; GOMEMLIMIT holds at
// any percentage. Call it once.
func PaceGC() {
	runtime.GC() // twice: pools, with 12 MB from reading the migrations, outlive the first
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		p := &gcPacer{percent: 100, last: time.Now()}
		p.arm()
	}
}

// gcPacer sets the percentage after each collection.
type gcPacer struct {
	percent int
	last    time.Time // end of the last collection
}

// arm has the next collection call adjust: it frees the marker.
func (p *gcPacer) arm() {
	marker := new([2]*byte) // with pointers, so that it shares its memory with no other object
	runtime.AddCleanup(marker, (*gcPacer).adjust, p)
}

func (p *gcPacer) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	now := time.Now()
	if percent := gcPercent(live[0].Value.Uint64(), now.Sub(p.last)); percent != p.percent {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
	p.last = now
	p.arm()
}

// gcPercent is the percentage for a heap with so many bytes live, when the last
// collection was so long ago. It goes in steps of 100, as each change stops the process
// for a moment.
func gcPercent(live uint64, sinceLast time.Duration) int {
	if sinceLast > gcBusy {
		return 100
	}
	return int(min(max(gcHeadroom/max(live, 1)*100, 100), maxGCPercent))
}
