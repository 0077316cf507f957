// Command modulezip writes the zip file of a Go module, as module proxies have it. The same files
// give the same bytes.
//
//	modulezip FOLDER MODULE@VERSION FILE
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: modulezip FOLDER MODULE@VERSION FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "modulezip:", err)
		os.Exit(1)
	}
}

// write writes the module in the folder, without the modules nested in it. It replaces the file.
func write(folder, name, file string) error {
	path, version, _ := strings.Cut(name, "@")
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	err = zip.CreateFromDir(out, module.Version{Path: path, Version: version}, folder)
	return errors.Join(err, out.Close())
}
