//go:build race

package strictjson_test

// slowdown is by how much longer things may take under the race detector.
const slowdown = 10
