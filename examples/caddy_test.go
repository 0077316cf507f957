package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/installed"
)

func TestCaddy(t *testing.T) {
	caddy := needCaddy(t)
	t.Parallel()
	testGateway(t, open(t, "caddy", func(t *testing.T, folder string) {
		// Caddy keeps its state in the user's home.
		run(t, folder, "env", "HOME="+folder, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", caddy, "run", "--config", "Caddyfile", "--adapter", "caddyfile")
	}))
}

// needCaddy returns the path of Caddy. Debian's version passes on headers whose names have
// dots, so Caddy is built from its module, which takes minutes. Where gateways aren't
// required, the test is skipped unless it has been built before.
func needCaddy(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("no gateways under -short; make test runs everything")
	}
	for _, file := range []string{"go.mod", "go.sum"} { // for go test to know that this depends on them
		if _, err := os.ReadFile("../tools/caddy/" + file); err != nil {
			t.Fatal(err)
		}
	}
	mode := "--path"
	if installed.Required() {
		mode = "--build"
	}
	out, err := exec.Command("../tools/caddy/build.sh", mode).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	caddy := lines[len(lines)-1]
	if _, err := os.Stat(caddy); err != nil {
		installed.Missing(t, fmt.Errorf("no Caddy here: tools/caddy/build.sh builds it: %w", err))
	}
	return caddy
}
