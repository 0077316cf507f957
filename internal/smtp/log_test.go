package smtp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogShowsTheMailInOneLine(t *testing.T) {
	var lines bytes.Buffer
	transport, err := Open("log:", sender, "", slog.New(slog.NewJSONHandler(&lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	m := sample()
	if err := errors.Join(transport.Check(testContext(t)), transport.Send(testContext(t), m)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(lines.String(), "\n"); got != 1 {
		t.Errorf("%d lines, want 1:\n%s", got, lines.String())
	}
	var got map[string]string
	if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got["msg"], "development only") {
		t.Errorf("message %q does not say what it is for", got["msg"])
	}
	delete(got, "time")
	delete(got, "msg")
	want := map[string]string{"level": "INFO", "to": m.To, "subject": m.Subject, "text": m.Text}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestLogThatDropsTheLineFails(t *testing.T) {
	log := slog.New(slog.NewTextHandler(new(bytes.Buffer), &slog.HandlerOptions{Level: slog.LevelWarn}))
	transport, err := Open("log:", sender, "", log)
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Send(testContext(t), sample()); err == nil || IsPermanent(err) {
		t.Errorf("got %v, want a temporary error", err)
	}
}

func TestLogRespectsTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := mustOpen(t, "log:").Send(ctx, sample()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}
