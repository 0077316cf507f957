package node_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/node"
)

// signingKeyID returns the id of the key that a node signs with.
func signingKeyID(t *testing.T, s *doorwardtest.Server, token string) string {
	t.Helper()
	res := check(t, s, token)
	header, _, _ := strings.Cut(res.Header.Get("X-Auth-Assertion"), ".")
	var h struct{ Kid string }
	text, err := base64.RawURLEncoding.DecodeString(header)
	if res.StatusCode != http.StatusOK || err != nil || json.Unmarshal(text, &h) != nil {
		t.Fatalf("%s, %q", res.Status, header)
	}
	return h.Kid
}

// TestRaceSigningKeyIsReplacedOnEveryNode: right after a rotation with immediate effect is answered,
// no node signs with the old key, nor answers with an assertion that it has signed with it.
func TestRaceSigningKeyIsReplacedOnEveryNode(t *testing.T) {
	t.Parallel()
	dsn, keyFile := pgtest.DSN(t), filepath.Join(t.TempDir(), "master.key")
	if _, err := seal.Create(keyFile); err != nil {
		t.Fatal(err)
	}
	var nodes []*doorwardtest.Server
	for range 3 {
		nodes = append(nodes, doorwardtest.Start(t, doorwardtest.Database(dsn), doorwardtest.Audiences("https://messages.example"),
			func(c *node.Config) { c.MasterKeyFile = keyFile }))
	}
	token := nodes[0].Tenant("Acme").Owner.Token()
	const atOnce = true
	current := ""
	for round := range 5 {
		for i, n := range nodes {
			if kid := signingKeyID(t, n, token); current != "" && kid != current {
				t.Fatalf("in round %d node %d signs with %s, want %s", round, i, kid, current)
			}
		}
		rotated, err := nodes[round%3].Node.App.Assertions.Rotate(t.Context(), doorward.OperatorAtTerminal(), atOnce)
		if err != nil || rotated.KeyID == current {
			t.Fatalf("%+v, %v", rotated, err)
		}
		current = rotated.KeyID
		for i, n := range nodes {
			if kid := signingKeyID(t, n, token); kid != current {
				t.Fatalf("in round %d node %d answers %s, signed with the old key, after the rotation to %s", round, i, kid, current)
			}
		}
	}
}
