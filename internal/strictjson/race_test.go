//go:build race

package strictjson_test

// slowdown is the allowed slowdown under the race detector.
const slowdown = 10
