package node_test

import (
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// http2Faults are the cases of h2spec that fail. docs/reliability.md explains each.
var http2Faults = []string{
	"http2/6.5.3: Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE",
	"http2/8.1.2.2: Sends a HEADERS frame that contains the connection-specific header field",
	`http2/8.1.2.2: Sends a HEADERS frame that contains the TE header field with any value other than "trailers"`,
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

// TestHTTP2 runs all cases of h2spec for HTTP/2 (RFC 9113) and HPACK (RFC 7541), over
// TLS, and expects exactly the known failures. h2spec's timeout is two seconds, so a
// busy machine has three attempts.
func TestHTTP2(t *testing.T) {
	if testing.Short() {
		t.Skip("builds h2spec")
	}
	t.Parallel()
	checkKnownInDocs(t)
	program := buildH2spec(t)
	address := startTLS(t).Node.Address()
	var flaws []string
	for range 3 {
		if flaws = runH2spec(t, program, address); len(flaws) == 0 {
			return
		}
	}
	t.Error(strings.Join(flaws, "\n"))
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

// runH2spec returns how its result differs from the known failures.
func runH2spec(t *testing.T, program, address string) (flaws []string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.xml")
	// The answer is longer than the first window, so that no stream ends while h2spec
	// still uses it.
	cmd := exec.Command(program, "--host", host, "--port", port, "--tls", "--insecure", "--strict", "--path", "/openapi.json", "--junit-report", file)
	out, _ := cmd.CombinedOutput() // that cases fail is an error, too
	text, err := os.ReadFile(file)
	if err != nil {
		return []string{fmt.Sprintf("h2spec made no report: %v\n%s", err, out)}
	}
	var r report
	if err := xml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	passed, skipped, failed := r.counts()
	t.Logf("h2spec: %d cases passed, %d skipped, %d failed", passed, skipped, len(failed))
	if total := passed + skipped + len(failed); total < 146 {
		flaws = append(flaws, fmt.Sprintf("only %d cases were tried:\n%s", total, out))
	}
	for _, name := range failed {
		if !slices.Contains(http2Faults, name) {
			flaws = append(flaws, name+" fails")
		}
	}
	for _, name := range http2Faults {
		if !slices.Contains(failed, name) {
			flaws = append(flaws, name+" passes now: remove it from http2Faults and from docs/reliability.md")
		}
	}
	return flaws
}

// counts returns how many cases passed or were skipped, and the failed ones, named by
// section and requirement.
func (r report) counts() (passed, skipped int, failed []string) {
	for _, suite := range r.Suites {
		for _, c := range suite.Cases {
			switch {
			case c.Failure != nil || c.Error != nil:
				failed = append(failed, strings.TrimSpace(fmt.Sprintf("%s: %s", c.Name, c.Class)))
			case c.Skipped != nil:
				skipped++
			default:
				passed++
			}
		}
	}
	return passed, skipped, failed
}
