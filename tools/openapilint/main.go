// Command openapilint checks an OpenAPI 3.1 document: first against the
// specification itself, then against the rules listed in rules.yaml beside this
// file.
//
//	openapilint FILE
//
// Every finding is one line, "FILE:LINE:COLUMN severity rule message". The exit
// code is 0 when there is none, 1 when there is one, and 2 when the file could
// not be checked. Hints are left out: a rule is either worth failing for or not
// worth printing.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/speakeasy-api/openapi/linter"
	"github.com/speakeasy-api/openapi/openapi"
	openapilinter "github.com/speakeasy-api/openapi/openapi/linter"
	"github.com/speakeasy-api/openapi/references"
	"github.com/speakeasy-api/openapi/validation"
)

//go:embed rules.yaml
var rules []byte

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: openapilint FILE")
		os.Exit(2)
	}
	findings, err := lintFile(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapilint:", err)
		os.Exit(2)
	}
	for _, finding := range findings {
		fmt.Println(finding)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

func lintFile(ctx context.Context, name string) ([]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return lint(ctx, name, file)
}

// lint returns a line for every breach of the specification or of a rule in the
// document read from r. An error means that it couldn't be checked, for example because it
// is no OpenAPI document at all.
func lint(ctx context.Context, name string, r io.Reader) ([]string, error) {
	doc, invalid, err := openapi.Unmarshal(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	config, err := linter.LoadConfig(bytes.NewReader(rules))
	if err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	checker, err := openapilinter.NewLinter(config)
	if err != nil {
		return nil, err
	}
	// References to other files or hosts are not fetched.
	offline := &linter.LintOptions{ResolveOptions: &references.ResolveOptions{DisableExternalRefs: true}}
	out, err := checker.Lint(ctx, linter.NewDocumentInfo(doc, name), invalid, offline)
	if err != nil {
		return nil, err
	}
	return lines(name, out.Results), nil
}

func lines(name string, results []error) []string {
	var out []string
	for _, result := range results {
		var found *validation.Error
		switch {
		case !errors.As(result, &found):
			out = append(out, fmt.Sprintf("%s: %v", name, result))
		case found.Severity != validation.SeverityHint:
			out = append(out, fmt.Sprintf("%s:%d:%d %s %s %v", name,
				found.GetLineNumber(), found.GetColumnNumber(), found.Severity, found.Rule, found.UnderlyingError))
		}
	}
	return out
}
