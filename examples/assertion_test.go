package examples_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/jwt"
)

// The programs read an issuer, an audience and assertions, one a line, and print the
// subject, or "refused", for each.
const (
	nodeProgram = `
import { verifier } from "./verify.mjs";
import { readFileSync } from "node:fs";
const verify = verifier(process.argv[1], process.argv[2]);
for (const line of readFileSync(0, "utf8").split("\n").slice(0, -1))
	console.log(await verify(line).then((who) => who.sub, () => "refused"));
`
	pythonProgram = `
import sys
from verify import verifier
verify = verifier(sys.argv[1], sys.argv[2])
for line in sys.stdin:
    try:
        print(verify(line.rstrip("\n"))["sub"])
    except Exception:
        print("refused")
`
)

func TestVerifiers(t *testing.T) {
	const messages, reports = "https://messages.example", "https://reports.example"
	d := doorwardtest.Start(t, doorwardtest.Audiences(messages, reports))
	ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
	token := func(audience string) string {
		status, body := ann.Post("/api/v2/auth/token", map[string]string{"audience": audience})
		var answer struct{ Assertion string }
		if err := json.Unmarshal(body, &answer); status != http.StatusOK || err != nil {
			t.Fatalf("%d %s", status, body)
		}
		return answer.Assertion
	}
	good := token(messages)
	parts := strings.Split(good, ".")
	encode := base64.RawURLEncoding.EncodeToString
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	other, err := jwt.NewKey().Sign("doorward+jwt", json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	stolen := strings.Split(other, ".")
	d.Advance(-time.Minute)
	expired := token(messages)
	lines := []string{
		good,
		token(reports),
		expired,
		other,
		parts[0] + "." + stolen[1] + "." + stolen[2],
		encode([]byte(`{"alg":"none","typ":"doorward+jwt","kid":"x"}`)) + "." + parts[1] + ".",
		encode([]byte(`{"alg":"HS256","typ":"doorward+jwt","kid":"x"}`)) + "." + parts[1] + "." + parts[2],
		parts[0] + "." + encode([]byte(strings.Replace(string(text), "USER", "OWNER", 1))) + "." + parts[2],
		"", "..", ann.Token(),
	}
	want := ann.ID + "\n" + strings.Repeat("refused\n", len(lines)-1)
	for name, command := range map[string]func(*testing.T) []string{
		"node": func(t *testing.T) []string {
			return []string{need(t, "node"), "--input-type=module", "--eval", nodeProgram}
		},
		"python": func(t *testing.T) []string { return []string{python(t), "-c", pythonProgram} },
	} {
		t.Run(name, func(t *testing.T) {
			program := command(t)
			cmd := exec.Command(program[0], append(program[1:], d.URL, messages)...)
			cmd.Dir, cmd.Stdin, cmd.Stderr = "assertion", strings.NewReader(strings.Join(lines, "\n")+"\n"), os.Stderr
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.Output()
			if err != nil || string(out) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, out, want)
			}
		})
	}
}

// python returns a Python that has PyJWT: Debian's own, where another is in front of it.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", need(t, "python3")} {
		if exec.Command(name, "-c", "import jwt, cryptography").Run() == nil {
			return name
		}
	}
	installed.Missing(t, os.ErrNotExist)
	return ""
}
