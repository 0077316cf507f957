package node_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/pgtest"
)

// sendJSON sends JSON to a node with a credential and returns the answer, which must have the
// status; 0 for any.
func sendJSON(t *testing.T, s *doorwardtest.Server, route, credential string, body any, status int) (got int, answer string) {
	t.Helper()
	s.Repeat(func() int {
		got, answer = sendJSONOnce(t, s, route, credential, body)
		return got
	})
	if status != 0 && got != status {
		t.Fatalf("%s: %d %s, want %d", route, got, answer, status)
	}
	return got, answer
}

func sendJSONOnce(t *testing.T, s *doorwardtest.Server, route, credential string, body any) (status int, answer string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+credential)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	return res.StatusCode, string(got)
}

// holder is a member with a session and an API key, and the operator key that asks about
// them.
type holder struct{ userID, session, keyID, key, operator, tenantID string }

// decisions returns what a node answers to each way of asking whether the member and the
// key may do the action.
func (h holder) decisions(t *testing.T, s *doorwardtest.Server, action string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	items := []map[string]any{}
	for name, credential := range map[string]string{"session": h.session, "key": h.key} {
		status, _ := sendJSON(t, s, "GET /api/v2/access/check?action="+action, credential, nil, 0)
		all["check of the "+name] = status == http.StatusOK
		if status != http.StatusOK && status != http.StatusForbidden {
			t.Fatalf("the %s is answered %d", name, status)
		}
		items = append(items, map[string]any{"credential": credential, "action": action})
	}
	_, answer := sendJSON(t, s, "POST /api/v2/access/introspect", h.operator, map[string]any{"items": items}, http.StatusOK)
	var introspected struct{ Items []struct{ Allowed bool } }
	if err := json.Unmarshal([]byte(answer), &introspected); err != nil || len(introspected.Items) != 2 {
		t.Fatal(answer, err)
	}
	for i, item := range introspected.Items {
		all[fmt.Sprint("introspection ", i)] = item.Allowed
	}
	for kind, id := range map[string]string{"user": h.userID, "session": h.session, "key": h.keyID} {
		_, answer := sendJSON(t, s, "POST /access/v1/evaluation", h.operator, map[string]any{
			"subject": map[string]any{"type": kind, "id": id}, "action": map[string]any{"name": action}, "resource": map[string]any{"type": "tenant", "id": h.tenantID},
		}, http.StatusOK)
		all["evaluation of the "+kind] = strings.Contains(answer, `"decision":true`)
	}
	return all
}

// TestRaceRoleHoldsOnEveryNode: right after a change or deletion of a role is answered, every node
// refuses what the role has lost and allows what it has gained, to those who have it and to
// their API keys, whichever way it is asked.
func TestRaceRoleHoldsOnEveryNode(t *testing.T) {
	t.Parallel()
	nodes := doorwardtest.StartNodes(t, 3, pgtest.DSN(t))
	acme := nodes[0].Tenant("Acme")
	owner, ann := acme.Owner.Token(), acme.Join("ann@acme.example", "USER")
	operator, err := nodes[0].Node.App.Keys.CreateOperator(t.Context(), doorward.OperatorAtTerminal(), "test")
	if err != nil {
		t.Fatal(err)
	}
	_, created := sendJSON(t, nodes[0], "POST /api/v2/api-keys", owner, map[string]any{"name": "k", "permissions": []string{"message.send"}, "ownerId": ann.ID}, http.StatusCreated)
	var key struct {
		Key    string
		APIKey struct{ ID string }
	}
	if err := json.Unmarshal([]byte(created), &key); err != nil || key.Key == "" || key.APIKey.ID == "" {
		t.Fatal(created, err)
	}
	h := holder{ann.ID, ann.Token(), key.APIKey.ID, key.Key, operator, acme.ID}
	requireDecision := func(step string, allowed bool) {
		t.Helper()
		for i, n := range nodes {
			for way, got := range h.decisions(t, n, "message.send") {
				if got != allowed {
					t.Fatalf("%s: the %s on node %d allows it: %v, want %v", step, way, i, got, allowed)
				}
			}
		}
	}
	const canSend = true
	rolePermissions := func(sends bool) []string {
		if sends {
			return []string{"message.read", "message.send"}
		}
		return []string{"message.read"}
	}
	for round := range 4 {
		node := nodes[round%3]
		_, created := sendJSON(t, node, "POST /api/v2/roles", owner, map[string]any{"name": "DESK", "permissions": rolePermissions(canSend)}, http.StatusCreated)
		var r struct{ ID string }
		if err := json.Unmarshal([]byte(created), &r); err != nil {
			t.Fatal(err)
		}
		sendJSON(t, node, "PATCH /api/v2/users/"+ann.ID, owner, map[string]any{"role": "DESK"}, http.StatusOK)
		requireDecision("given", true)
		for edit := range 6 {
			sends := edit%2 == 1
			sendJSON(t, nodes[(round+edit)%3], "PATCH /api/v2/roles/"+r.ID, owner, map[string]any{"permissions": rolePermissions(sends)}, http.StatusOK)
			requireDecision(fmt.Sprintf("round %d, edit %d", round, edit), sends)
		}
		sendJSON(t, node, "PATCH /api/v2/roles/"+r.ID, owner, map[string]any{"name": "COUNTER"}, http.StatusOK)
		requireDecision("renamed", true)
		replacement, sends := "VIEWER", false
		if round%2 == 1 {
			replacement, sends = "USER", true
			sendJSON(t, node, "PATCH /api/v2/roles/"+r.ID, owner, map[string]any{"permissions": rolePermissions(!canSend)}, http.StatusOK)
			requireDecision("narrowed", false)
		}
		sendJSON(t, nodes[(round+1)%3], "DELETE /api/v2/roles/"+r.ID+"?replaceBy="+replacement, owner, nil, http.StatusNoContent)
		requireDecision("deleted, replaced by "+replacement, sends)
	}
}
