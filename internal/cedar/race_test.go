//go:build race

package cedar

// The race detector multiplies the CPU time, which is only checked without it.
func init() { raceDetector = true }
