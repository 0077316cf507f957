package node_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/pgtest"
)

// check asks a node for access with a session and returns the answer, without its body.
func check(t *testing.T, s *doorwardtest.Server, token string) (res *http.Response) {
	t.Helper()
	s.Repeat(func() int {
		res = checkOnce(t, s, token)
		return res.StatusCode
	})
	return res
}

// countShortages returns how often the nodes were short of CPU.
func countShortages(nodes []*doorwardtest.Server) (all int64) {
	for _, n := range nodes {
		all += n.Shortages()
	}
	return all
}

func checkOnce(t *testing.T, s *doorwardtest.Server, token string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.URL+"/api/v2/access/check?action=message.read", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", "JSESSIONID="+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

func TestRaceRevocationHoldsOnEveryNode(t *testing.T) {
	t.Parallel()
	nodes := doorwardtest.StartNodes(t, 3, pgtest.DSN(t))
	ann := nodes[0].Tenant("Acme").Join("ann@acme.example", "USER")
	var took []float64
	for range 30 {
		token := ann.Login()
		for i, n := range nodes {
			for range 2 {
				if res := check(t, n, token); res.StatusCode != http.StatusOK {
					t.Fatalf("node %d refuses a live session: %s", i, res.Status)
				}
			}
		}
		shortages := countShortages(nodes)
		res := logout(t, nodes[1], token)
		if got := res.Header.Get("X-Revocation-Nodes"); got != "3" && countShortages(nodes) == shortages {
			t.Errorf("X-Revocation-Nodes = %q, want 3", got)
		}
		ms, _ := strconv.ParseFloat(res.Header.Get("X-Revocation-Ms"), 64)
		took = append(took, ms)
		for i, n := range nodes {
			if res := check(t, n, token); res.StatusCode != http.StatusUnauthorized {
				t.Fatalf("node %d accepts an ended session: %s", i, res.Status)
			}
		}
	}
	slices.Sort(took)
	t.Logf("revocation across 3 nodes: median %.2f ms, max %.2f ms", took[len(took)/2], took[len(took)-1])
}

func logout(t *testing.T, s *doorwardtest.Server, token string) (res *http.Response) {
	t.Helper()
	status := s.Repeat(func() int {
		req, err := http.NewRequest(http.MethodPost, s.URL+"/api/v2/auth/logout", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", "JSESSIONID="+token)
		if res, err = http.DefaultClient.Do(req); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	})
	if status != http.StatusNoContent {
		t.Fatalf("logout: %s", res.Status)
	}
	return res
}
