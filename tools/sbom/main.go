// Command sbom writes what is in a Go binary as a CycloneDX bill of materials, in JSON:
//
//	sbom BINARY VERSION FILE
//
// It reads only what the linker has recorded in the binary: the modules with their versions and
// checksums, and the version of Go. So the same binary gives the same bytes on every machine, whatever
// is in its module cache.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write replaces the file.
func write(binary, version, file string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	all, err := billOf(info, version)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// bill is the part of a CycloneDX 1.6 document that is filled in.
type bill struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"` // of the document itself
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Scope   string `json:"scope,omitempty"`
	Hashes  []sum  `json:"hashes,omitempty"`
	PURL    string `json:"purl"`
}

type sum struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

func billOf(info *debug.BuildInfo, version string) (bill, error) {
	main := component{Type: "application", Name: info.Main.Path, Version: version, PURL: purl(info.Main.Path, version)}
	main.Ref = main.PURL
	b := bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{main}, Components: []component{library("std", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := library(m.Path, m.Version)
		if m.Sum != "" {
			digest, err := hexOf(m.Sum)
			if err != nil {
				return bill{}, fmt.Errorf("%s: %w", m.Path, err)
			}
			c.Hashes = []sum{{"SHA-256", digest}}
		}
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	uses := dependency{Ref: main.Ref}
	for _, c := range b.Components {
		uses.DependsOn = append(uses.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{uses}
	return b, nil
}

func library(path, version string) component {
	return component{Ref: purl(path, version), Type: "library", Name: path, Version: version, Scope: "required", PURL: purl(path, version)}
}

// purl returns the package URL of a module (purl specification, type golang), whose name and version
// have no character that has to be encoded, except +.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// hexOf turns a checksum of go.sum, h1: and a SHA-256 in Base64, into hexadecimal digits.
func hexOf(checksum string) (string, error) {
	text, found := strings.CutPrefix(checksum, "h1:")
	if !found {
		return "", fmt.Errorf("the checksum %s has an unknown form", checksum)
	}
	digest, err := base64.StdEncoding.DecodeString(text)
	return hex.EncodeToString(digest), err
}
