//go:build race

package main

// raceEnabled reports whether this binary runs under the race detector.
const raceEnabled = true
