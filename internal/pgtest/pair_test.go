package pgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/internal/waittest"
)

func TestPairKeepsWhatWasAnswered(t *testing.T) {
	p := StartPair(t)
	dsn := p.DSN(t)
	before := connect(t, dsn)
	execute(t, before, "CREATE TABLE mark (n int)")
	execute(t, before, "INSERT INTO mark VALUES (7)")
	p.Primary.Kill(t)
	if _, err := before.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a killed server answers")
	}
	if _, err := pgx.Connect(t.Context(), dsn); err == nil {
		t.Error("a standby without a primary is reported as writable")
	}
	p.Standby.Promote(t)
	after := connect(t, dsn)
	if n := query[int](t, after, "SELECT n FROM mark"); n != 7 {
		t.Errorf("n = %d, want 7", n)
	}
	execute(t, after, "INSERT INTO mark VALUES (8)")
}

func TestCommitWaitsForTheStandby(t *testing.T) {
	p := StartPair(t)
	conn := connect(t, p.DSN(t))
	execute(t, conn, "CREATE TABLE mark (n int)")
	p.Standby.Pause(t)
	brief, cancel := waittest.Interrupt(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(brief, "INSERT INTO mark VALUES (7)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit without the standby: %v, want a deadline exceeded", err)
	}
	p.Standby.Resume(t)
}
