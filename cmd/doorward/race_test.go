//go:build race

package main

// raceEnabled: this binary runs under the race detector.
const raceEnabled = true
