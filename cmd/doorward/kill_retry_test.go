package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
)

// The server is killed while people are invited with an Idempotency-Key, also between
// the commit and the answer. A repeated request gets the first answer, so there is one
// invitation and one mail.

func TestKilledAndRepeatedOnSQLite(t *testing.T) { killAndRepeat(t, "sqlite:doorward.db") }

func TestKilledAndRepeatedOnPostgres(t *testing.T) { killAndRepeat(t, pgtest.DSN(t)) }

func killAndRepeat(t *testing.T, dsn string) {
	if testing.Short() {
		t.Skip("TestKilledOnSQLite kills the server, too")
	}
	t.Parallel()
	rounds := fulltest.Of(3, 10)
	r := &repeatingClients{testServer: newTestServer(t, program, dsn)}
	r.runKillTest(killTest{
		rounds: rounds,
		started: func(int) {
			r.repeatUnanswered()
			r.killBeforeAnswer()
		},
		load: func(int) { r.killUnder(atOnce, 20*time.Millisecond, r.sendNew) },
		check: func() {
			r.repeatUnanswered()
			if n := r.count(sqlInvitedTwice); n > 0 {
				t.Errorf("%d people with several invitations", n)
			}
			if n := r.count(sqlWrongMails); n > 0 {
				t.Errorf("%d invitations without exactly one mail", n)
			}
		},
	})
	t.Logf("%d requests were answered at once; of those repeated %d were replayed and %d carried out; a mark refused repetitions for %v at most",
		r.answered, r.replayed, r.done, r.longest.Round(time.Millisecond))
}

const (
	sqlInvitedTwice = `SELECT count(*) FROM (SELECT email FROM invitations GROUP BY email HAVING count(*) > 1) AS several`
	sqlWrongMails   = `SELECT count(*) FROM invitations i
WHERE (SELECT count(*) FROM mails m WHERE m.kind = 'invitation' AND m.subject_id = i.id) <> 1`
)

// Negative tests: an invitation without a mail, and one with two.
func TestWrongMailsAreNoticed(t *testing.T) {
	db, err := openSQL("sqlite:doorward.db", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`CREATE TABLE invitations (id TEXT)`, `CREATE TABLE mails (kind TEXT, subject_id TEXT)`,
		`INSERT INTO invitations VALUES ('none'), ('one'), ('two')`,
		`INSERT INTO mails VALUES ('invitation', 'one'), ('invitation', 'two'), ('invitation', 'two'), ('reset', 'none')`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRow(sqlWrongMails).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d found, %v; want 2", n, err)
	}
}

// repeatingClients repeat the requests that got no answer.
type repeatingClients struct {
	*testServer

	mu         sync.Mutex
	sent       int
	answered   int
	unanswered []string // names of requests

	replayed, done int           // repeated requests: answered from the record, or carried out
	longest        time.Duration // from a kill to the last 409 idempotency_in_progress
}

// request returns the request with this name, which is its Idempotency-Key and
// the local part of the address. One in four is a bulk request, whose second address is invalid.
func (r *repeatingClients) request(name string) (path, body string) {
	invite := fmt.Sprintf(`{"email":"%s@x.example","role":"USER"}`, name)
	if !strings.HasSuffix(name, "3") {
		return "/api/v2/auth/invite", invite
	}
	return "/api/v2/auth/invite/bulk", `{"invitations":[` + invite + `,{"email":"x","role":"USER"}]}`
}

func (r *repeatingClients) newName() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	return fmt.Sprintf("request-%d.%d", r.sent, r.sent%4)
}

// send sends the request and returns the answer; an error means that there is none.
func (r *repeatingClients) send(name string) (*http.Response, []byte, error) {
	path, body := r.request(name)
	req, err := http.NewRequest(http.MethodPost, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Cookie", "JSESSIONID="+r.owner)
	req.Header.Set("Idempotency-Key", name)
	res, err := httpClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res, answer, err
}

// sendNew sends a new request, and reports whether the server has answered it.
func (r *repeatingClients) sendNew(context.Context, string) bool {
	name := r.newName()
	res, answer, err := r.send(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.unanswered = append(r.unanswered, name)
		return false
	case res.StatusCode >= 300:
		r.Errorf("%s: %d %s", name, res.StatusCode, answer)
	}
	r.answered++
	return true
}

// killBeforeAnswer kills the server after a commit, before the client reads the answer, and checks
// that a new server replays that answer.
func (r *repeatingClients) killBeforeAnswer() {
	r.Helper()
	name := r.newName()
	path, body := r.request(name)
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nCookie: JSESSIONID=%s\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, r.addr, r.owner, name, len(body), body)
	r.waitUntil("the commit", func() bool {
		return r.count(`SELECT count(*) FROM invitations WHERE email = '`+name+`@x.example'`) > 0
	})
	r.kill()
	before := r.replayed
	r.unanswered = append(r.unanswered, name)
	r.start()
	if r.repeatUnanswered(); r.replayed != before+1 {
		r.Errorf("server start %d: what was committed without an answer was not replayed", r.starts)
	}
}

// repeatUnanswered repeats each request until it is answered, and once more.
func (r *repeatingClients) repeatUnanswered() {
	r.Helper()
	for _, name := range r.unanswered {
		res, first := r.sendUntilDone(name)
		if res.Header.Get("Idempotency-Replayed") == "true" {
			r.replayed++
		} else {
			r.done++
		}
		again, second := r.sendUntilDone(name)
		if again.Header.Get("Idempotency-Replayed") != "true" || !bytes.Equal(first, second) {
			r.Errorf("%s: the second answer is %s\nwant %s", name, second, first)
		}
		if path, _ := r.request(name); strings.HasSuffix(path, "/bulk") && !isFirstCreated(first) {
			r.Errorf("%s: %s", name, first)
		}
	}
	r.unanswered = nil
}

// isFirstCreated reports whether the first row of a bulk request was created.
func isFirstCreated(answer []byte) bool {
	var bulk struct{ Items []struct{ Status int } }
	return json.Unmarshal(answer, &bulk) == nil && len(bulk.Items) == 2 && bulk.Items[0].Status == http.StatusCreated
}

// markLife is how long after a kill the mark of an interrupted attempt may still refuse a
// repetition with 409 idempotency_in_progress. It is measured in make test-all only.
const markLife = 5 * time.Second

func (r *repeatingClients) sendUntilDone(name string) (res *http.Response, answer []byte) {
	r.Helper()
	r.waitUntil(name+" is answered", func() bool {
		began := time.Now()
		var err error
		if res, answer, err = r.send(name); err != nil {
			r.Fatalf("%s: %v", name, err)
		}
		if res.StatusCode == http.StatusConflict && bytes.Contains(answer, []byte(`"idempotency_in_progress"`)) {
			if r.longest = max(r.longest, began.Sub(r.killedAt)); fulltest.On() && r.longest > markLife {
				r.Fatalf("%s: still in progress %v after the kill", name, r.longest)
			}
			return false
		}
		return true
	})
	if res.StatusCode >= 300 {
		r.Errorf("server start %d: %s repeated: %d %s", r.starts, name, res.StatusCode, answer)
	}
	return res, answer
}
