package node_test

import (
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// http2Faults are the cases of h2spec that fail. docs/reliability.md explains each.
var http2Faults = []string{
	"http2/6.5.3: Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE",
	"http2/8.1.2.2: Sends a HEADERS frame that contains the connection-specific header field",
	`http2/8.1.2.2: Sends a HEADERS frame that contains the TE header field with any value other than "trailers"`,
}

// http2Races are the cases that fail if the answer, 405 here, comes before the body that is wrong. A
// server may answer a request before it has read all of it (RFC 9113, section 8.1).
var http2Races = []string{
	`http2/8.1.2.6: Sends a HEADERS frame with the "content-length" header field which does not equal the DATA frame payload length`,
	`http2/8.1.2.6: Sends a HEADERS frame with the "content-length" header field which does not equal the sum of the multiple DATA frames payload length`,
}

// report is h2spec's output: an element for each section of a specification.
type report struct {
	Suites []struct {
		Package string `xml:"package,attr"`
		Cases   []struct {
			Name    string  `xml:"package,attr"`
			Class   string  `xml:"classname,attr"`
			Failure *string `xml:"failure"`
			Error   *string `xml:"error"`
			Skipped *string `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// h2specParts are the parts of h2spec. They run at the same time, since many cases wait until a
// timeout.
var h2specParts = []string{"generic", "hpack", "http2/3", "http2/4", "http2/5", "http2/6", "http2/7", "http2/8"}

// TestHTTP2 runs all cases of h2spec for HTTP/2 (RFC 9113) and HPACK (RFC 7541), over
// TLS, and expects exactly the known failures. A part with others is repeated with a longer timeout.
func TestHTTP2(t *testing.T) {
	if testing.Short() {
		t.Skip("builds h2spec")
	}
	t.Parallel()
	checkKnownInDocs(t)
	program := buildH2spec(t)
	address := startTLS(t).Node.Address()
	results := make([]result, len(h2specParts))
	var running sync.WaitGroup
	for i, part := range h2specParts {
		running.Go(func() {
			results[i] = runH2spec(t, program, address, part, 2*time.Second)
			if slices.ContainsFunc(results[i].failed, isNew) {
				results[i] = runH2spec(t, program, address, part, 30*time.Second)
			}
		})
	}
	running.Wait()
	var all result
	for _, r := range results {
		all = result{all.passed + r.passed, all.skipped + r.skipped, append(all.failed, r.failed...)}
	}
	t.Logf("h2spec: %d cases passed, %d skipped, %d failed", all.passed, all.skipped, len(all.failed))
	for _, flaw := range all.flaws() {
		t.Error(flaw)
	}
}

func checkKnownInDocs(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range http2Faults {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/reliability.md doesn't explain %q", name)
		}
	}
}

func buildH2spec(t *testing.T) string {
	t.Helper()
	if _, err := os.ReadFile("../tools/h2spec/go.sum"); err != nil { // so that go test reruns this test when it changes
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "h2spec")
	if out, err := exec.Command("go", "-C", "../tools/h2spec", "build", "-o", program, "github.com/summerwind/h2spec/cmd/h2spec").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// result has how many cases passed or were skipped, and the names of those that failed.
type result struct {
	passed, skipped int
	failed          []string
}

func isNew(failed string) bool {
	return !slices.Contains(http2Faults, failed) && !slices.Contains(http2Races, failed)
}

// flaws returns how the result of all parts differs from the known failures.
func (r result) flaws() (flaws []string) {
	if total := r.passed + r.skipped + len(r.failed); total < 146 {
		flaws = append(flaws, fmt.Sprintf("only %d cases were tried", total))
	}
	for _, name := range r.failed {
		if isNew(name) {
			flaws = append(flaws, name+" fails")
		}
	}
	for _, name := range http2Faults {
		if !slices.Contains(r.failed, name) {
			flaws = append(flaws, name+" passes now: remove it from http2Faults and from docs/reliability.md")
		}
	}
	return flaws
}

// runH2spec runs a part of h2spec.
func runH2spec(t *testing.T, program, address, part string, timeout time.Duration) result {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Error(err)
		return result{}
	}
	file := filepath.Join(t.TempDir(), "report.xml")
	// The answer is longer than the first window, so that no stream ends while h2spec
	// still uses it.
	cmd := exec.Command(program, part, "--host", host, "--port", port, "--tls", "--insecure", "--strict", "--path", "/openapi.json",
		"--timeout", strconv.Itoa(int(timeout.Seconds())), "--junit-report", file)
	out, _ := cmd.CombinedOutput() // that cases fail is an error, too
	var r report
	text, err := os.ReadFile(file)
	if err == nil {
		err = xml.Unmarshal(text, &r)
	}
	if err != nil {
		t.Errorf("h2spec made no report: %v\n%s", err, out)
	}
	return r.result()
}

// result names the failed cases by section and requirement.
func (r report) result() (all result) {
	for _, suite := range r.Suites {
		for _, c := range suite.Cases {
			switch {
			case c.Failure != nil || c.Error != nil:
				all.failed = append(all.failed, strings.TrimSpace(fmt.Sprintf("%s: %s", c.Name, c.Class)))
			case c.Skipped != nil:
				all.skipped++
			default:
				all.passed++
			}
		}
	}
	return all
}
