package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/pgtest"
)

// TestKilledUnderADirectory: a directory sends 32 changes of one group at once to three nodes, 31 new members and one that
// leaves. While all wait for each other a node is killed, so that none of its answers comes; the directory repeats those at
// the other nodes. Nobody is lost, and nobody is there twice.
func TestKilledUnderADirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("TestKilledOnSQLite kills the server, too")
	}
	t.Parallel()
	s := newTestServer(t, program, pgtest.DSN(t))
	run := s.suspendByDirectory(32)
	people := s.ids(`SELECT subject_id FROM directory_effects ORDER BY id`)
	nodes := s.startThree()
	directory := scimClient{s, s.scimSecret(run.ConnectionID)}
	leaver, joiners := people[31], people[:31]
	status, answer := directory.send(nodes[0].addr, http.MethodPost, "Groups", map[string]any{"displayName": "All", "members": []any{map[string]any{"value": leaver}}})
	var group struct {
		ID      string
		Members []struct{ Value string }
	}
	if err := json.Unmarshal(answer, &group); err != nil || status != http.StatusCreated {
		t.Fatalf("the group is answered %d %s", status, answer)
	}
	release := s.holdTenants()
	defer release()
	var sending sync.WaitGroup
	var unanswered atomic.Int32
	for i, id := range people {
		change := map[string]any{"op": "add", "path": "members", "value": []any{map[string]any{"value": id}}}
		if id == leaver {
			change = map[string]any{"op": "remove", "path": fmt.Sprintf("members[value eq %q]", id)}
		}
		sending.Go(func() {
			body := map[string]any{"Operations": []any{change}}
			status, answer := directory.send(nodes[i%3].addr, http.MethodPatch, "Groups/"+group.ID, body)
			if status == 0 {
				unanswered.Add(1)
			}
			end := time.Now().Add(waitTimeout)
			for at := i; (status == 0 || status == http.StatusServiceUnavailable) && time.Now().Before(end); at++ {
				status, answer = directory.send(nodes[1+at%2].addr, http.MethodPatch, "Groups/"+group.ID, body)
			}
			if status != http.StatusNoContent {
				t.Errorf("change %d is answered %d %s", i, status, answer)
			}
		})
	}
	s.waitUntil("all nodes to wait for the tenant", func() bool {
		return s.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= 3
	})
	nodes[0].kill()
	release()
	sending.Wait()
	if n := unanswered.Load(); n < 10 {
		t.Errorf("%d changes had no answer: the node of 11 was killed before any", n)
	}
	if status, answer = directory.send(nodes[2].addr, http.MethodGet, "Groups/"+group.ID, nil); status != http.StatusOK {
		t.Fatalf("the group is answered %d %s", status, answer)
	}
	if err := json.Unmarshal(answer, &group); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range group.Members {
		got = append(got, m.Value)
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(joiners)); !slices.Equal(got, want) {
		t.Errorf("the group has %d members %q, want %d", len(got), got, len(want))
	}
	// A change and what is recorded of it are one: of each person there is one move, whichever node answered, and none is by a
	// request that was killed.
	moved := fmt.Sprintf(`SELECT member_id FROM directory_moves WHERE group_id = '%s' AND joined = `, group.ID)
	if came := s.ids(moved + `TRUE ORDER BY member_id`); !slices.Equal(came, slices.Sorted(slices.Values(people))) {
		t.Errorf("%d people are recorded to have joined, want 31 and the one who was there: %q", len(came), came)
	}
	if left := s.ids(moved + `FALSE`); !slices.Equal(left, []string{leaver}) {
		t.Errorf("%q are recorded to have left, want one", left)
	}
	nodes[1].shutDown()
	nodes[2].shutDown()
	s.checkTrail()
}

// startThree starts three nodes at addresses of their own, the first of which is s.
func (s *testServer) startThree() (nodes [3]*testServer) {
	s.Helper()
	flags := []string{"--base-url", "http://" + s.addr}
	for i := range nodes {
		node := *s
		if i > 0 {
			node.addr = freeport.AddressOn("localhost")
		}
		node.start(flags...)
		nodes[i] = &node
	}
	return nodes
}

// scimSecret makes a secret of the connection's directory.
func (s *testServer) scimSecret(connectionID string) string {
	s.Helper()
	status, answer, err := s.ask(s.owner, http.MethodPost, "/api/v2/sso/connections/"+connectionID+"/scim-secrets", map[string]any{})
	var made struct{ Secret string }
	if err == nil {
		err = json.Unmarshal(answer, &made)
	}
	if err != nil || status != http.StatusCreated {
		s.Fatalf("the secret is answered %d %s, %v", status, answer, err)
	}
	return made.Secret
}

// holdTenants holds the rows that each write of a directory locks, until release is called.
func (s *testServer) holdTenants() (release func()) {
	s.Helper()
	db, err := openSQL(s.dsn, s.dir)
	if err != nil {
		s.Fatal(err)
	}
	tx, err := db.Begin()
	if err == nil {
		_, err = tx.Exec(`SELECT id FROM tenants FOR UPDATE`)
	}
	if err != nil {
		s.Fatal(err)
	}
	return func() {
		tx.Rollback() // of what has written nothing; after the first call it does nothing
		db.Close()
	}
}

// scimClient is a directory.
type scimClient struct {
	*testServer
	secret string
}

// send returns the answer of the node at the address; a status of 0 means that there was none.
func (c scimClient) send(addr, method, path string, body any) (status int, answer []byte) {
	text, err := json.Marshal(body)
	if err != nil {
		c.Error(err)
	}
	if body == nil {
		text = nil
	}
	req, err := http.NewRequest(method, "http://"+addr+"/scim/v2/"+path, bytes.NewReader(text))
	if err != nil {
		c.Error(err)
		return 0, nil
	}
	req.Header.Set("Content-Type", "application/scim+json")
	req.Header.Set("Authorization", "Bearer "+c.secret)
	res, err := httpClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}
