//go:build !race

package main

// raceDetected says that this binary runs under the race detector.
const raceDetected = false
