package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// lintCompose checks the file by Compose's JSON schema, and that what services refer to
// exists.
func lintCompose(ctx context.Context, path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, err = loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path, Content: text}},
	})
	if err != nil {
		return []string{in(path, err)}, nil
	}
	return nil, nil
}

// lintDockerfile reports warnings as findings.
func lintDockerfile(path string) (findings []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		return []string{in(path, err)}, nil
	}
	for _, w := range parsed.Warnings {
		findings = append(findings, path+": "+w.Short)
	}
	warn := func(rule, _, _, message string, _ []parser.Range) {
		findings = append(findings, path+": "+rule+": "+message)
	}
	if _, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn})); err != nil {
		findings = append(findings, in(path, err))
	}
	return slices.Compact(findings), nil
}
