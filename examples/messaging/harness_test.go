package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/waittest"
)

// startMessaging starts the service on a free port and returns its address.
func startMessaging(t *testing.T, args ...string) string {
	t.Helper()
	ready := start(t, []string{"MESSAGING_TEST_AS_MAIN=yes"}, "Messaging is ready at ",
		append([]string{os.Args[0], "--listen", "localhost:0"}, args...)...)
	return strings.TrimPrefix(ready, "Messaging is ready at http://")
}

// start runs a program until the test ends in any way: the shell kills it when its own
// standard input closes. It returns once the program has written a line that contains
// ready, with that line from ready on.
func start(t *testing.T, environ []string, ready string, command ...string) string {
	t.Helper()
	const keeper = `"$@" </dev/null & read -r _; kill -TERM $!; wait $!`
	child := exec.Command("sh", append([]string{"-c", keeper, "keeper"}, command...)...)
	child.Env = append(os.Environ(), environ...)
	hold, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stdout, child.Stderr = in, in
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	output := &bytes.Buffer{}
	lines := bufio.NewReader(io.TeeReader(out, output))
	rest := make(chan struct{})
	t.Cleanup(func() {
		_ = hold.Close()
		<-rest
		if err := child.Wait(); err != nil && !strings.Contains(err.Error(), "143") {
			t.Logf("%s ended with %v", filepath.Base(command[0]), err)
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(command[0]), output)
		}
	})
	for {
		text, err := lines.ReadString('\n')
		if _, after, found := strings.Cut(text, ready); found {
			go func() { _, _ = io.Copy(io.Discard, lines); close(rest) }()
			return ready + strings.TrimSpace(after)
		}
		if err != nil {
			close(rest)
			t.Fatalf("%s did not print %q", filepath.Base(command[0]), ready)
		}
	}
}

// startNginx starts nginx with this folder's configuration, at the addresses given, and
// returns when it listens.
func startNginx(t *testing.T, front, doorward, messaging string) {
	t.Helper()
	program := installed.Program(t, "nginx", "nginx")
	folder, err := os.MkdirTemp("", "messaging-nginx-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	conf := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(conf, nginxConf(t, front, doorward, messaging), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, nil, "start worker process ", program, "-p", folder, "-c", conf, "-e", "stderr")
}

// nginxConf returns the configuration with other addresses, and fails unless each replaced
// address occurs once.
func nginxConf(t *testing.T, front, doorward, messaging string) []byte {
	t.Helper()
	conf, err := os.ReadFile("nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"127.0.0.1:8000": front, "127.0.0.1:8080": doorward, "127.0.0.1:8091": messaging} {
		if n := bytes.Count(conf, []byte(from)); n != 1 {
			t.Fatalf("nginx.conf names %s %d times, want once", from, n)
		}
		conf = bytes.Replace(conf, []byte(from), []byte(to), 1)
	}
	return conf
}

// request is one to the service.
type request struct {
	method, url, token, body string
	header                   http.Header
}

func (r request) send(t *testing.T) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(r.method, r.url, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.token != "" {
		req.Header.Set("Cookie", "JSESSIONID="+r.token)
	}
	res, err := (&http.Client{Timeout: waittest.Limit}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func (r request) String() string { return fmt.Sprintf("%s %s %s", r.method, r.url, r.body) }
