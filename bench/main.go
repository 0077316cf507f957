// Command bench measures Doorward and prints one table. It builds and starts
// the servers by itself and is also the load generator, so it needs no other
// tool; PostgreSQL's programs are used for the rows with several nodes.
//
// Machines differ and are noisy, so every figure that is compared comes from
// one run in which both sides took turns: the ratio is what counts, with the
// CPU time that the server's process used per request beside it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// bench is one run.
type bench struct {
	dir    string // temporary files
	binary string // doorward
	long   bool
	slice  time.Duration // duration of one turn of load, per side
	turns  int
	table  *tabwriter.Writer
}

func main() {
	bare := flag.String("bare", "", "serve the bytes of a check by net/http alone on this `address`; for the benchmark's own use")
	only := flag.String("only", "", "run only the parts whose name begins with this `prefix`: check, sessions, storm, login, revoke, start, capacity, directory")
	short := flag.Bool("short", false, "fewer sessions and shorter slices, to see that it works")
	flag.Parse()
	if *bare != "" {
		serveBare(*bare)
		return
	}
	if err := run(*only, *short); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(only string, short bool) error {
	dir, err := os.MkdirTemp("", "doorward-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{
		dir: dir, binary: filepath.Join(dir, "doorward"), long: !short, slice: 2 * time.Second, turns: 5,
		table: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0),
	}
	if short {
		b.slice, b.turns = 300*time.Millisecond, 2
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", b.binary, "./cmd/doorward")
	build.Dir = ".." // the module of the server; "go -C bench run" is in its own
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	fmt.Printf("%s, %d cores, %s\n\n", runtime.Version(), runtime.NumCPU(), cpuModel())
	fmt.Fprintln(b.table, "WHAT\tFIGURE\tAGAINST\tRATIO\tCPU PER REQUEST")
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"check", b.checks}, {"sign-on", b.signOn}, {"sessions", b.sessions}, {"storm", b.storm}, {"login", b.logins}, {"revoke", b.revocations}, {"start", b.starts}, {"capacity", b.capacity}, {"directory", b.directory},
	} {
		if !strings.HasPrefix(part.name, only) {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if err := b.table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// row prints one line of the table.
func (b *bench) row(name, figure, against, ratio, cpu string) {
	fmt.Fprintf(b.table, "%s\t%s\t%s\t%s\t%s\n", name, figure, against, ratio, cpu)
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, "\t :\n")
		}
	}
	return "unknown processor"
}
