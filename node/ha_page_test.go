package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/goldentest"
)

// TestGoldenHighAvailability: the guide shows the files that make ha runs, unchanged.
func TestGoldenHighAvailability(t *testing.T) {
	for file, language := range map[string]string{
		"etcd.env": "ini", "patroni.yml": "yaml", "member.env": "ini", "patroni.conf": "ini", "database.cfg": "haproxy", "gateway.cfg": "haproxy",
	} {
		text, err := os.ReadFile(filepath.Join("../deploy/ha", file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "```") {
			t.Fatalf("%s can't be shown in a fence", file)
		}
		goldentest.Section(t, "../docs/high-availability.md", file, "\n```"+language+"\n"+string(text)+"```\n\n")
	}
}
