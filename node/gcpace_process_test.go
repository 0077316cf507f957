//go:build linux

package node_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGCIsPacedUnderLoad also shows that an operator's GOGC is kept.
func TestGCIsPacedUnderLoad(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		gogc     string
		min, max float64
	}{{"", 200, 400}, {"150", 150, 150}} {
		p := newProcess(t, builtProgram(t), "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"))
		p.env = append(os.Environ(), "GOGC="+test.gogc)
		requireStarted(t, p)
		collections := p.metric(t, "go_gc_duration_seconds_count")
		p.waitUntil(t, "collections under load", func() bool {
			for range 100 {
				p.metric(t, "go_goroutines")
			}
			got := p.metric(t, "go_gc_gogc_percent")
			return got >= test.min && got <= test.max && p.metric(t, "go_gc_duration_seconds_count") > collections+4
		})
		p.kill()
	}
}
