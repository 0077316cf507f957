// Command deploylint checks the files that deploy Doorward, each with the code of the
// program that will read it:
//
//	deploylint chart FOLDER VALUES...     helm's linter and template engine, and
//	                                      the types of the Kubernetes API
//	deploylint compose FILE               Docker Compose's loader and its schema
//	deploylint dockerfile FILE            BuildKit's parser
//	deploylint settings FOLDER VALUES     prints the doorward.yaml of the chart
//
// Each finding is a line. The exit code is 0 when there is none, 1 when there is
// one, and 2 when the check could not be made.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	findings, err := run(os.Args[1:])
	for _, f := range findings {
		fmt.Println(f)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "deploylint:", err)
		os.Exit(2)
	case len(findings) > 0:
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: deploylint chart FOLDER VALUES... | compose FILE | dockerfile FILE | settings FOLDER VALUES")

func run(args []string) ([]string, error) {
	if len(args) < 2 {
		return nil, errUsage
	}
	switch kind, path := args[0], args[1]; {
	case kind == "chart" && len(args) > 2:
		return lintChart(path, args[2:])
	case kind == "settings" && len(args) == 3:
		text, err := settings(path, args[2])
		fmt.Print(text)
		return nil, err
	case kind == "compose":
		return lintCompose(context.Background(), path)
	case kind == "dockerfile":
		return lintDockerfile(path)
	}
	return nil, errUsage
}

// in names the file that a finding is about.
func in(path string, err error) string { return filepath.ToSlash(path) + ": " + err.Error() }
