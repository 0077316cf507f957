package node_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/storetest"
)

// invited is an answer to an invitation.
type invited struct {
	answer   string // status and body
	replayed bool
	repeated bool // after a 503: the first attempt may have been carried out
}

// inviteWithKey invites with an Idempotency-Key. It repeats the request while another attempt is in
// progress, and after a 503, as the key allows.
func inviteWithKey(t *testing.T, s *doorwardtest.Server, token, key, email string) (got invited) {
	for deadline := waittest.Deadline(); ; <-time.After(20 * time.Millisecond) { // or sixteen clients would leave the nodes no CPU
		status, body, replayed := inviteOnce(t, s, token, key, email)
		got.answer, got.replayed = fmt.Sprint(status, " ", body), replayed
		unavailable := status == http.StatusServiceUnavailable
		got.repeated = got.repeated || unavailable
		inProgress := status == http.StatusConflict && strings.Contains(body, "idempotency_in_progress")
		if !unavailable && !inProgress || time.Now().After(deadline) {
			return got
		}
	}
}

func inviteOnce(t *testing.T, s *doorwardtest.Server, token, key, email string) (status int, body string, replayed bool) {
	req, err := http.NewRequest(http.MethodPost, s.URL+"/api/v2/auth/invite", strings.NewReader(`{"email":"`+email+`","role":"USER"}`))
	if err != nil {
		t.Errorf("invite: %v", err)
		return 0, "", false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("invite: %v", err)
		return 0, "", false
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("invite: %v", err)
	}
	return res.StatusCode, string(text), res.Header.Get("Idempotency-Replayed") == "true"
}

// 16 requests at once over three nodes make one invitation. All of them get the same answer,
// and so does a later request on any node.
func TestRaceOneOfManyOverNodesIsCarriedOut(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Postgres(t)
	var nodes []*doorwardtest.Server
	for range 3 {
		nodes = append(nodes, doorwardtest.Start(t, doorwardtest.Database(dsn)))
	}
	owner := nodes[0].Tenant("Acme").Owner
	sent := func() int { // when all mail is
		waittest.Until(t, "all mail to be sent", func() bool { return countMails(t, nodes[0], doorward.DeliveryQueued) == 0 })
		return countMails(t, nodes[0], doorward.DeliverySent)
	}
	before := sent() // with that to the OWNER, unless the invitation was accepted first
	const rounds = 5
	for round := range rounds {
		key, email := fmt.Sprintf("round-%d", round), fmt.Sprintf("bob%d@acme.example", round)
		var all sync.WaitGroup
		var mu sync.Mutex
		bodies, firsts, repeated := map[string]int{}, 0, 0
		for i := range 16 {
			all.Go(func() {
				got := inviteWithKey(t, nodes[i%3], owner.Token(), key, email)
				mu.Lock()
				defer mu.Unlock()
				if bodies[got.answer]++; !got.replayed {
					firsts++
				}
				if got.repeated {
					repeated++
				}
			})
		}
		all.Wait()
		for _, n := range nodes {
			bodies[inviteWithKey(t, n, owner.Token(), key, email).answer]++
		}
		if len(bodies) != 1 || firsts > 1 || firsts == 0 && repeated == 0 {
			t.Errorf("round %d: %d answers were no replay, want 1; the answers, which must be equal, are %v", round, firsts, bodies)
		}
	}
	if n := sent() - before; n != rounds {
		t.Errorf("%d mails were sent, want %d", n, rounds)
	}
}

func countMails(t *testing.T, s *doorwardtest.Server, state doorward.Delivery) int {
	t.Helper()
	n, err := storetest.CountMails(t.Context(), s.Node.DB.Read(), state)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
