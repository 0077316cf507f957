//go:build !race

package strictjson_test

// slowdown is 1 without the race detector, see race_test.go.
const slowdown = 1
