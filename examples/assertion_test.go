package examples_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/jwt"
)

// The programs read an issuer, an audience and assertions, one a line, and print the
// subject, "refused" or "unavailable" for each.
const (
	nodeProgram = `
import { KeysUnavailable, verifier } from "./verify.mjs";
import { readFileSync } from "node:fs";
const verify = verifier(process.argv[1], process.argv[2]);
for (const line of readFileSync(0, "utf8").split("\n").slice(0, -1))
	console.log(await verify(line).then((who) => who.sub, (error) => error instanceof KeysUnavailable ? "unavailable" : "refused"));
`
	pythonProgram = `
import sys
import jwt
from verify import KeysUnavailable, verifier
verify = verifier(sys.argv[1], sys.argv[2])
for line in sys.stdin:
    try:
        print(verify(line.rstrip("\n"))["sub"])
    except KeysUnavailable:
        print("unavailable")
    except jwt.PyJWTError:
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
	d.Advance(4 * time.Second) // the verifiers' clocks are behind, as PyJWT notices
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
	otherParts := strings.Split(other, ".")
	d.Advance(-time.Minute)
	expired := token(messages)
	lines := []string{
		good,
		token(reports),
		expired,
		other,
		parts[0] + "." + otherParts[1] + "." + otherParts[2],
		encode([]byte(`{"alg":"none","typ":"doorward+jwt","kid":"x"}`)) + "." + parts[1] + ".",
		encode([]byte(`{"alg":"HS256","typ":"doorward+jwt","kid":"x"}`)) + "." + parts[1] + "." + parts[2],
		parts[0] + "." + encode([]byte(strings.Replace(string(text), "USER", "OWNER", 1))) + "." + parts[2],
		"", "..", ann.Token(),
	}
	want := ann.ID + "\n" + strings.Repeat("refused\n", len(lines)-1)
	for range 20 {
		made, err := jwt.NewKey().Sign("doorward+jwt", json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		lines, want = append(lines, made), want+"refused\n"
	}
	keys := newKeySite(t)
	for name, command := range map[string]func(*testing.T) []string{
		"node": func(t *testing.T) []string {
			return []string{need(t, "node"), "--input-type=module", "--eval", nodeProgram}
		},
		"python": func(t *testing.T) []string { return []string{python(t), "-c", pythonProgram} },
	} {
		t.Run(name, func(t *testing.T) {
			program := command(t)
			verify := func(issuer string, lines ...string) string {
				cmd := exec.Command(program[0], append(program[1:], issuer, messages)...)
				cmd.Dir, cmd.Stdin, cmd.Stderr = "assertion", strings.NewReader(strings.Join(lines, "\n")+"\n"), os.Stderr
				cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			if out := verify(d.URL, lines...); out != want {
				t.Errorf("%s\nwant\n%s", out, want)
			}
			// What can't be verified now says nothing about the caller.
			if out := verify(keys.URL, good, good, other); out != "unavailable\nunavailable\nunavailable\n" {
				t.Errorf("without keys: %s", out)
			}
			if n := keys.asked.Swap(0); n != 1 {
				t.Errorf("the keys were asked for %d times within 5 s", n)
			}
		})
	}
}

// keySite answers 503 to every request for keys, and counts them.
type keySite struct {
	*httptest.Server
	asked atomic.Int64
}

func newKeySite(t *testing.T) *keySite {
	k := &keySite{}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		k.asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(k.Close)
	return k
}

// python returns a Python that has PyJWT. Debian's own comes first: another one may precede
// it in PATH.
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
