package node_test

import (
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/commonpw"
	"github.com/doorward/doorward/node"
)

// TestNoSharedSettingIsLive: SIGHUP reaches one node, and a setting that all nodes share
// can't change on one alone.
func TestNoSharedSettingIsLive(t *testing.T) {
	for _, s := range node.Settings(&node.Config{}, &node.RawConfig{}) {
		if s.Live && s.Shared {
			t.Errorf("--%s is both Live and Shared", s.Name)
		}
	}
}

func reload(t *testing.T, s *doorwardtest.Server, cfg node.Config) {
	t.Helper()
	if err := s.Node.Reload(cfg); err != nil {
		t.Fatal(err)
	}
}

// TestRaceReload: each request sees the old settings or the new ones, also under the race
// detector, and afterwards the new ones.
func TestRaceReload(t *testing.T) {
	var cfg node.Config
	s := doorwardtest.Start(t, func(c *node.Config) { c.Brand.Name = "First"; cfg = *c })
	next := cfg
	next.Brand.Name, next.PasswordMinLength = "Second", 20
	next.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	next.Attempts = proof.Limits{PerAccount: 1, PerIP: 1}
	next.ConnectionsPerClient, next.CommonPasswords = 1000, commonpw.Bundled()
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 30 {
				if page := loginPage(t, s); !strings.Contains(page, "First") && !strings.Contains(page, "Second") {
					t.Error("a page has neither name")
				}
			}
		})
	}
	for range 20 {
		reload(t, s, next)
		reload(t, s, cfg)
	}
	reload(t, s, next)
	asking.Wait()
	if page := loginPage(t, s); !strings.Contains(page, "Second") {
		t.Error("the page has the old name")
	}
	if got := s.Node.App.PasswordRules.Load().MinLength; got != 20 {
		t.Errorf("the shortest password has %d characters, want 20", got)
	}
	if got := sendWrongPasswords(t, s, "203.0.113.5", "203.0.113.6", "203.0.113.5"); !slices.Equal(got, []int{401, 401, 429}) {
		t.Errorf("wrong passwords from two clients behind a proxy are answered %v", got)
	}
}

func loginPage(t *testing.T, s *doorwardtest.Server) string {
	res, err := http.Get(s.URL + "/login")
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// sendWrongPasswords sends a wrong password from each client, each for another account.
func sendWrongPasswords(t *testing.T, s *doorwardtest.Server, clients ...string) (statuses []int) {
	for i, client := range clients {
		body := strings.NewReader(`{"email": "a` + string(rune('a'+i)) + `@acme.example", "password": "wrong"}`)
		req, err := http.NewRequest("POST", s.URL+"/api/v2/auth/login", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Forwarded-For", client)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		statuses = append(statuses, res.StatusCode)
	}
	return statuses
}
