// Package npmtest asks npm packages for a second opinion in tests: testdata/reference.mjs of the package under test reads
// questions as JSON, and writes what its dependencies answer.
package npmtest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// installed is what npm says of testdata/package-lock.json. It runs once in a test's program.
var installed = sync.OnceValues(func() ([]byte, error) {
	command := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	command.Dir = "testdata"
	return command.CombinedOutput()
})

// Install installs the packages of testdata/package-lock.json, unless the program has done so. Ask does, too; a test whose
// questions are good for a short time only calls it first.
func Install(tb testing.TB) {
	tb.Helper()
	for _, file := range []string{"testdata/package-lock.json", "testdata/reference.mjs"} {
		if _, err := os.Stat(file); err != nil { // so that go test reruns the test when it changes
			tb.Fatal(err)
		}
	}
	if out, err := installed(); err != nil {
		tb.Fatalf("npm ci: %v\n%s", err, out)
	}
}

// Ask has testdata/reference.mjs read questions, and decodes what it writes to answers, a pointer.
func Ask(tb testing.TB, questions, answers any) {
	tb.Helper()
	Install(tb)
	input, err := json.Marshal(questions)
	if err != nil {
		tb.Fatal(err)
	}
	node := exec.Command("node", "testdata/reference.mjs")
	node.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	node.Stderr = &stderr
	out, err := node.Output()
	if err != nil {
		tb.Fatalf("reference.mjs: %v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, answers); err != nil {
		tb.Fatalf("reference.mjs: %v\n%s", err, out)
	}
}
