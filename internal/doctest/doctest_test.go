package doctest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page returns a page of these lines, in which ~~~ stands for a fence.
func page(lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, "\n"), "~~~", fence) + "\n"
}

func TestBlocksAreRead(t *testing.T) {
	got, err := parse("p.md", page(
		"# Title", "~~~text", "of nothing", "~~~",
		"~~~sh", "echo a", "", "echo b", "~~~", "It says:", "~~~text", "a", "~~~", "~~~text", "no more", "~~~",
		"~~~sh background", "serve", "~~~", "~~~go", "var x", "~~~", "~~~text", "ready", "~~~",
		"~~~sh", "true", "~~~", "~~~sh", "false", "~~~", "~~~text", "~~~",
		"~~~console needs root", "reboot", "~~~", "~~~text", "bye", "~~~",
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{Position: "p.md:5", Script: "echo a\n\necho b\n", Output: "a\n", HasOutput: true},
		{Position: "p.md:17", Script: "serve\n", Background: true, Output: "ready\n", HasOutput: true},
		{Position: "p.md:26", Script: "true\n"},
		{Position: "p.md:29", Script: "false\n", HasOutput: true},
		{Position: "p.md:34", Script: "reboot\n", Output: "bye\n", HasOutput: true, SkipReason: "needs root"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFaultyBlocksAreRefused(t *testing.T) {
	for _, text := range []string{
		page("~~~sh", "echo"), page("~~~sh", "echo", "~~~", "~~~text", "x"), page("~~~sh later", "echo", "~~~"),
		page("~~~bash", "echo", "~~~"), page("~~~console", "echo", "~~~"), page("~~~console ", "echo", "~~~"),
	} {
		if got, err := parse("p.md", text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestOutputIsCompared(t *testing.T) {
	r := Runner{Dir: t.TempDir(), Env: []string{"COLOUR=red"}}
	tests := []struct {
		name, script, output string
		want                 error
	}{
		{"the same", "echo a; echo b >&2", "a\nb\n", nil},
		{"less", "echo a", "a\nb\n", errOutputDiffers},
		{"more", "echo a; echo b", "a\n", errOutputDiffers},
		{"nothing", "true", "", nil},
		{"nothing wanted", "echo a", "", errOutputDiffers},
		{"anything in a line", "echo token=abc end", "token=… end\n", nil},
		{"anything in a line, but not two", "printf 'token=abc\\nend\\n'", "token=… end\n", errOutputDiffers},
		{"any lines", "seq 9", "1\n…\n9\n", nil},
		{"any lines, also none", "seq 2", "1\n…\n2\n", nil},
		{"spaces at the end", "echo 'a  '", "a\n", nil},
		{"regexp metacharacters", "echo 'a.*(b'", "a.*(b\n", nil},
		{"regexp metacharacters match only themselves", "echo axb", "a.b\n", errOutputDiffers},
		{"environment", "echo $COLOUR", "red\n", nil},
		{"nothing to read", "cat", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := r.foreground(Block{Script: tt.script, Output: tt.output, HasOutput: true}); !errors.Is(err, tt.want) {
				t.Errorf("printed %q, error %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestFirstFaultEndsABlock(t *testing.T) {
	r := Runner{Dir: t.TempDir()}
	for _, script := range []string{"false\necho on", "false | cat\necho on", "echo $UNKNOWN\necho on"} {
		if got, err := r.foreground(Block{Script: script}); err == nil || strings.Contains(got, "on\n") {
			t.Errorf("%q: printed %q, error %v", script, got, err)
		}
	}
}

func TestFilesStay(t *testing.T) {
	r := Runner{Dir: t.TempDir(), Rewrite: strings.NewReplacer("8080", "9090").Replace}
	r.Run(t, Block{Script: "echo 8080 > port"})
	r.Run(t, Block{Script: "cat port", Output: "8080\n", HasOutput: true})
	if text, err := os.ReadFile(filepath.Join(r.Dir, "port")); err != nil || string(text) != "9090\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestStateCarriesOver(t *testing.T) {
	r := Runner{Dir: t.TempDir(), Env: []string{"COLOUR=red"}}
	r.Run(t, Block{Script: "export COLOUR=blue\nname='Ann  \"Lee\"\n$x'\nNOT_EXPORTED=1\nmkdir below\ncd below\ncat <<END\nlast\nEND", Output: "last\n", HasOutput: true})
	r.Run(t, Block{Script: "echo \"$name\"; sh -c 'echo $COLOUR'; basename \"$PWD\"; echo ${NOT_EXPORTED-none} # end", Output: "Ann  \"Lee\"\n$x\nblue\nbelow\nnone\n", HasOutput: true})
	if _, err := r.foreground(Block{Script: "name=other; false"}); err == nil {
		t.Error("a failed command is not an error")
	}
}

func TestBackgroundRunsUntilTheTestEnds(t *testing.T) {
	folder := t.TempDir()
	t.Run("reader", func(t *testing.T) {
		r := Runner{Dir: folder}
		r.Run(t, Block{
			Script:     "trap 'echo over > over; exit' TERM\necho begun\necho ready on 1\nwhile :; do sleep 0.01; done",
			Background: true, Output: "ready on …\n", HasOutput: true,
		})
		r.Run(t, Block{Script: "ls", Output: "", HasOutput: true})
	})
	if _, err := os.Stat(filepath.Join(folder, "over")); err != nil {
		t.Errorf("the script was not ended: %v", err)
	}
}

func TestBackgroundThatIsNeverReady(t *testing.T) {
	r := Runner{Dir: t.TempDir()}
	for _, b := range []Block{
		{Script: "echo refused", Output: "ready\n", HasOutput: true},
		{Script: "exit 3", Output: "ready\n", HasOutput: true},
		{Script: "echo ready"},
	} {
		if got, err := r.background(t, b); err == nil {
			t.Errorf("%q counts as ready having printed %q", b.Script, got)
		}
	}
}
