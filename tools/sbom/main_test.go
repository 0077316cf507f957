package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBill(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/app", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/z", Version: "v1.0.0+incompatible", Sum: "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
			{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/a", Version: "v2.0.0"}},
		},
	}
	b, err := billOf(info, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, c := range b.Components {
		refs = append(refs, c.Ref)
	}
	const want = "pkg:golang/example.com/a@v2.0.0 pkg:golang/example.com/z@v1.0.0%2Bincompatible pkg:golang/std@1.26.8"
	if got := strings.Join(refs, " "); got != want || strings.Join(b.Dependencies[0].DependsOn, " ") != want {
		t.Errorf("components are %s, want %s", got, want)
	}
	if m := b.Metadata.Component; m.Version != "1.2.3" || m.PURL != "pkg:golang/example.com/app@1.2.3" {
		t.Errorf("the application is %+v", m)
	}
	if h := b.Components[1].Hashes; len(h) != 1 || h[0].Content != strings.Repeat("00", 32) {
		t.Errorf("the hash is %v", h)
	}
}

func TestUnknownChecksum(t *testing.T) {
	if _, err := billOf(&debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/a", Sum: "h2:AA=="}}}, "1"); err == nil {
		t.Error("a checksum of an unknown form is taken")
	}
}

// TestSameTwice: nothing but the binary counts, neither its name nor the module cache.
func TestSameTwice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	copied := filepath.Join(folder, "another-name")
	if err := os.WriteFile(copied, content, 0o755); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(folder, "1.json"), filepath.Join(folder, "2.json")
	if err := write(self, "1.0.0", first); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOMODCACHE", filepath.Join(folder, "empty"))
	if err := write(copied, "1.0.0", second); err != nil {
		t.Fatal(err)
	}
	one, _ := os.ReadFile(first)
	two, _ := os.ReadFile(second)
	if !bytes.Equal(one, two) || !json.Valid(one) {
		t.Errorf("the two are different, or no JSON:\n%s\n%s", one, two)
	}
}
