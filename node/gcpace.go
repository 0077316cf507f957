package node

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcHeadroom is how many bytes may be allocated between two collections of a small heap.
	gcHeadroom = 16 << 20
	// maxGCPercent is the highest percentage that is set.
	maxGCPercent = 400
	// gcBusy is the longest time between two collections at which the percentage is raised.
	// An idle node collects only every few seconds or minutes.
	gcBusy = time.Second
)

// PaceGC frees the memory that only the start needed. Unless GOGC is set, it then makes the garbage
// collector run less often while a small heap is busy: with 3 MB live and Go's default of
// 100 %, every 3 MB that checks allocate would cause a collection. A large heap stays at
// 100 %, and GOMEMLIMIT is respected. Call it once.
func PaceGC() {
	runtime.GC() // a sync.Pool survives one collection; FreeOSMemory runs the second. Reading the migrations leaves 12 MB in pools.
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

// arm makes the next collection call adjust, when it frees the marker.
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

// gcPercent returns the percentage for a heap with this many live bytes, this long after the
// last collection. It is the nearest multiple of 100, because each change of the percentage stops the
// process for a moment.
func gcPercent(live uint64, sinceLast time.Duration) int {
	if sinceLast > gcBusy {
		return 100
	}
	live = max(live, 1)
	return int(min(max((gcHeadroom+live/2)/live*100, 100), maxGCPercent))
}
