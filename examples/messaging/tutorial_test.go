package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/doctest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
)

const root = "../.."

// The test follows the tutorial in a folder with the files of the clone that it needs, and
// with free ports in place of those on the page.
func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("the tutorial builds two programs; make test runs it")
	}
	front, doorward, asking, trusting := freeport.AddressOn("127.0.0.1"), freeport.AddressOn("127.0.0.1"), freeport.AddressOn("127.0.0.1"), freeport.AddressOn("127.0.0.1")
	runner := doctest.Runner{
		Dir:     t.TempDir(),
		Env:     []string{"DOORWARD_LISTEN=" + doorward, "PATH=" + os.Getenv("PATH") + ":/usr/sbin"},
		Rewrite: strings.NewReplacer(ports("8000", front, "8080", doorward, "8090", asking, "8091", trusting)...).Replace,
	}
	conf := filepath.Join(runner.Dir, "examples", "messaging", "nginx.conf")
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, nginxConf(t, front, doorward, trusting), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks := doctest.Read(t, "../../docs/tutorial.md")
	build(t, blocks[0], runner.Dir)
	for _, block := range blocks[1:] {
		if strings.HasPrefix(block.Script, "nginx") {
			installed.Program(t, "nginx", "nginx")
		}
		runner.Run(t, block)
	}
	sendLargeBody(t, "http://"+front)
}

// sendLargeBody sends a large body through nginx. nginx started by root can't store it in a
// file, since its workers then run as a user who can't open the folder.
func sendLargeBody(t *testing.T, base string) {
	t.Helper()
	body := `{"email": "owner@acme.example", "password": "` + strings.Repeat("x", 60<<10) + `"}`
	res, err := http.Post(base+"/api/v2/auth/login", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a body of 60 KiB: %s, want the 401 of Doorward", res.Status)
	}
}

// ports returns pairs for a strings.Replacer: each port on the page, by both
// names of loopback, becomes an address.
func ports(portsAndAddresses ...string) (pairs []string) {
	for pair := range slices.Chunk(portsAndAddresses, 2) {
		for _, host := range []string{"localhost:", "127.0.0.1:"} {
			pairs = append(pairs, host+pair[0], pair[1])
		}
	}
	return pairs
}

// build runs the first block in this checkout instead of a new clone, and puts the programs
// into folder.
func build(t *testing.T, b doctest.Block, folder string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(b.Script), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "git clone ") || lines[1] != "cd doorward" {
		t.Fatalf("%s: this is not the block that builds:\n%s", b.Position, b.Script)
	}
	for _, line := range lines[2:] {
		args := strings.Fields(line)
		out := slices.IndexFunc(args, func(arg string) bool { return arg == "bin/" || arg == "../../bin/" })
		if args[0] != "go" || out < 0 {
			t.Fatalf("%s: %q does not build into bin", b.Position, line)
		}
		args[out] = filepath.Join(folder, "bin") + "/"
		command := exec.Command("go", args[1:]...)
		command.Dir = root
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", b.Position, err, output)
		}
	}
}
