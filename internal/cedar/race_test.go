//go:build race

package cedar

// The race detector multiplies the time on the processor, which is measured without it.
func init() { raceDetector = true }
