package doorward_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/goldentest"
)

// versions are the places that name the version, each with the text around it.
var versions = map[string]string{
	"clients/js/package.json":       `(?m)(^  "version": ")[^"]*(")`,
	"clients/js/react/package.json": `(?m)(^  "version": ")[^"]*(")`,
	"clients/python/pyproject.toml": `(?m)(^version = ")[^"]*(")`,
	"deploy/helm/Chart.yaml":        `(?m)(^(?:version: |appVersion: "))[^"\n]*("?$)`,
}

// TestGoldenVersion: the version is in one place.
func TestGoldenVersion(t *testing.T) {
	for file, pattern := range versions {
		version := doorward.Version
		if strings.Contains(file, "python") { // PEP 440
			version = strings.Replace(version, "-dev", ".dev0", 1)
		}
		text, place := readText(t, file), regexp.MustCompile(pattern)
		if !place.MatchString(text) {
			t.Fatalf("%s names no version", file)
		}
		goldentest.File(t, file, place.ReplaceAllString(text, "${1}"+version+"${2}"))
	}
}
