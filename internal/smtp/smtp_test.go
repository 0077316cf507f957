package smtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/internal/waittest"
)

const (
	sender = "Doorward <no-reply@doorward.example>"
	code   = "q3Jr-1vY_0aXkzEw9PbT7uHsLmN2cDfGiOoRtVxZy45"
)

// link is longer than any line that quoted-printable leaves unfolded.
var link = "https://doorward.example/platform/accept?" + strings.Repeat("tenant=acme&", 40) + "#token=" + code

var quiet = slog.New(slog.DiscardHandler)

// The text is not ASCII, to test 8bit, and one line begins with a dot, which SMTP must
// double.
func sample() Message {
	return Message{
		ID:      "evt_0123456789",
		To:      "ada@example.com",
		Subject: "Invitation à Café Zürich – bienvenue chez une équipe au nom vraiment très long, 株式会社ドアワード",
		Text:    "Grüß Gott, 株式会社!\n\n" + link + "\n\n" + code + "\n\n.begins with a dot\nEnde",
		HTML:    "<p>Grüß Gott</p>\n<a href=\"" + link + "\">" + code + "</a>",
	}
}

// testContext is a context with a time limit for a hanging test.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	t.Cleanup(cancel)
	return ctx
}

func mustOpen(t *testing.T, dest string) Transport {
	t.Helper()
	transport, err := Open(dest, sender, "", quiet)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// jobVariable is the environment variable that makes the test binary do a job instead of
// running tests.
const jobVariable = "DOORWARD_SMTP_TEST_JOB"

func TestMain(m *testing.M) {
	switch os.Getenv(jobVariable) {
	case "":
		os.Exit(m.Run())
	case "write":
		os.Exit(writeJob(os.Args[1]))
	case "check":
		os.Exit(checkJob(os.Args[1]))
	}
	os.Exit(2)
}

// jobCommand returns a command that runs the test binary as another process, which does the
// job on dest.
func jobCommand(t *testing.T, job, dest string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), self, dest)
	cmd.Env = append(os.Environ(), jobVariable+"="+job)
	return cmd
}

// mailsPerWriter is how many mails a process with the job "write" sends.
const mailsPerWriter = 100

// writeJob waits until its input is closed, so that all writers start together, and
// sends mails from several goroutines.
func writeJob(dest string) int {
	transport, err := Open(dest, sender, "", quiet)
	if err != nil {
		return fail(err)
	}
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin)
	var group sync.WaitGroup
	errs := make([]error, mailsPerWriter)
	for i := range mailsPerWriter {
		group.Go(func() {
			m := sample()
			m.ID = fmt.Sprintf("evt_%d_%d", os.Getpid(), i)
			errs[i] = transport.Send(context.Background(), m)
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return fail(err)
	}
	return 0
}

func checkJob(dest string) int {
	transport, err := Open(dest, sender, "", quiet)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	if err := transport.Check(ctx); err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
