//go:build race

package cedar

// The race detector multiplies memory and CPU time, which are only checked without it.
func init() { raceDetector = true }
