package pages_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/net/html"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/installed"
)

// credentials are what the examples find in the environment.
var credentials = []string{"TOKEN=token-of-a-session", "KEY=key-of-an-operator", "API_KEY=key-of-a-server"}

// The examples in all languages send the same request as the one with curl, which
// TestExamplesWorkUnchanged sends to Doorward.
func TestExamplesInEveryLanguageSendTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("this runs node, python3 and go")
	}
	rec := &recorder{seen: map[string]string{}}
	site := httptest.NewServer(rec)
	defer site.Close()
	want, texts := map[string]string{}, map[string]map[string]string{"js": {}, "go": {}, "python": {}}
	address := strings.NewReplacer("https://auth.example", site.URL)
	forEachOperation(t, start(t, doorwardtest.BaseURL("https://auth.example")), func(_, _ string, op *openapi3.Operation, part *html.Node) {
		id := op.OperationID
		req := parseCurl(t, example(part, id+"-curl"), credentials...)
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatal(err)
		}
		want[id] = describe(req, body)
		for language := range texts {
			texts[language][id] = address.Replace(example(part, id+"-"+language))
		}
	})
	for language, run := range map[string]func(*testing.T, map[string]string) *exec.Cmd{"js": nodeCommand, "go": goCommand, "python": pythonCommand} {
		t.Run(language, func(t *testing.T) {
			rec.reset()
			command := run(t, texts[language])
			command.Env = append(append(os.Environ(), credentials...), "RECORDER="+site.URL)
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for id, byCurl := range want {
				if rec.seen[id] != byCurl {
					t.Errorf("%s sends\n%s\nwhere curl sends\n%s\nby\n%s", id, rec.seen[id], byCurl, texts[language][id])
				}
			}
		})
	}
}

// recorder answers every request and records it under the operation id that a request to
// /next/ has announced.
type recorder struct {
	mu   sync.Mutex
	id   string
	seen map[string]string
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.seen)
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body) // a body cut short differs from the one that is wanted
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, announced := strings.CutPrefix(req.URL.Path, "/next/"); announced {
		r.id = id
		return
	}
	r.seen[r.id] = describe(req, body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}") // fails if the client has disconnected
}

// describe returns a request as text. A session is described alike in a cookie and a header.
func describe(req *http.Request, body []byte) string {
	credential := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if cookie := req.Header.Get("Cookie"); cookie != "" {
		_, credential, _ = strings.Cut(cookie, "=")
	}
	content := string(body)
	var members any
	if json.Unmarshal(body, &members) == nil {
		content = fmt.Sprint(members) // prints members sorted by name
	}
	if strings.HasPrefix(req.Header.Get("Content-Type"), "image/") {
		content = "a file"
	}
	return fmt.Sprintf("%s %s\ncredential %q, type %q, If-Match %q\n%s", req.Method, req.URL.RequestURI(), credential, req.Header.Get("Content-Type"), req.Header.Get("If-Match"), content)
}

// writeProgram writes a program, and the file that an example sends, to a new folder, which
// it returns.
func writeProgram(t *testing.T, name, program string) string {
	t.Helper()
	folder := t.TempDir()
	for file, content := range map[string]string{name: program, "file.png": "picture"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// nodeCommand returns the command that runs the examples with the client of clients/js.
func nodeCommand(t *testing.T, texts map[string]string) *exec.Cmd {
	node := installed.Program(t, "node", "nodejs")
	var out strings.Builder
	imports := map[string]bool{}
	for _, id := range sortedKeys(texts) {
		fmt.Fprintf(&out, "await fetch(`${process.env.RECORDER}/next/%s`);\n{\n", id)
		for line := range strings.Lines(texts[id]) {
			if strings.HasPrefix(line, "import ") {
				imports[line] = true
			} else {
				out.WriteString(line)
			}
		}
		out.WriteString("\n}\n")
	}
	source, err := filepath.Abs("../../clients/js")
	if err != nil {
		t.Fatal(err)
	}
	folder := writeProgram(t, "examples.mjs", strings.Join(sortedKeys(imports), "")+out.String())
	if err := os.MkdirAll(filepath.Join(folder, "node_modules", "@doorward"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(source, filepath.Join(folder, "node_modules", "@doorward", "client")); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), node, "examples.mjs")
	command.Dir = folder
	return command
}

// pythonCommand returns the command that runs the examples with the client of clients/python.
func pythonCommand(t *testing.T, texts map[string]string) *exec.Cmd {
	python := installed.Program(t, "python3", "python3")
	source, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "import os, sys, urllib.request\nsys.path.insert(0, %q)\nsys.dont_write_bytecode = True\n", source)
	for _, id := range sortedKeys(texts) {
		fmt.Fprintf(&out, "urllib.request.urlopen(os.environ[\"RECORDER\"] + \"/next/%s\")\n%s\n", id, texts[id])
	}
	command := exec.CommandContext(t.Context(), python, "examples.py")
	command.Dir = writeProgram(t, "examples.py", out.String())
	return command
}

// goCommand returns the command that runs the examples, each in a function of its own. The
// recorder always answers 200, so that is accepted where an example expects 201 or 204.
func goCommand(t *testing.T, texts map[string]string) *exec.Cmd {
	var calls, functions strings.Builder
	for i, id := range sortedKeys(texts) {
		fmt.Fprintf(&calls, "\tnext(%q)\n\trun%d()\n", id, i)
		fmt.Fprintf(&functions, "func run%d() {\n%s\n}\n", i, strings.ReplaceAll(texts[id], "if res.StatusCode != ", "if res.StatusCode != 200 && res.StatusCode != "))
	}
	program := "package main\n\nimport (\n\"io\"\n\"log\"\n\"net/http\"\n\"os\"\n\"strings\"\n)\n\nfunc main() {\n" + calls.String() + "}\n" + functions.String() +
		"func next(id string) {\n\tres, err := http.Get(os.Getenv(\"RECORDER\") + \"/next/\" + id)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tres.Body.Close()\n}\n"
	command := exec.CommandContext(t.Context(), "go", "run", "examples.go")
	command.Dir = writeProgram(t, "examples.go", program)
	return command
}

func sortedKeys[V any](all map[string]V) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
