package examples_test

import (
	"flag"
	"testing"

	"github.com/doorward/doorward/internal/installed"
)

// full also runs the tests that first build a gateway, which takes minutes. Debian's Caddy is too
// old: it passes headers on whose names have dots.
var full = flag.Bool("full", false, "build Caddy and test it")

func TestCaddy(t *testing.T) {
	if !*full {
		t.Skip("building Caddy takes minutes; make chaos does")
	}
	caddy := installed.Pinned(t, "../tools/caddy/build.sh")
	t.Parallel()
	testGateway(t, open(t, "caddy", func(t *testing.T, folder string) {
		// Caddy keeps its state in the user's home.
		run(t, folder, "env", "HOME="+folder, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", caddy, "run", "--config", "Caddyfile", "--adapter", "caddyfile")
	}))
}
