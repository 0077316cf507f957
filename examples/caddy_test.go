package examples_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/fulltest"
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
// dots, so Caddy is built from its module, which takes minutes.
func needCaddy(t *testing.T) string {
	t.Helper()
	fulltest.Only(t, "Caddy is built from source, in minutes; TestTraefik sends such requests, too")
	for _, file := range []string{"go.mod", "go.sum"} { // for go test to know that this depends on them
		if _, err := os.ReadFile("../tools/caddy/" + file); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("../tools/caddy/build.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
