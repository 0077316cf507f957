package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/doorward/doorward/client"
)

// withCaller returns a function that calls the service as who, without Doorward.
func withCaller(s *service, who client.Identity) func(method, path, body string) (int, string) {
	h := handler(s, func(string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler { return next }
	})
	return func(method, path, body string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(client.NewContext(r.Context(), who)))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
}

func TestTenantsSeeTheirOwn(t *testing.T) {
	s := newService()
	ann := withCaller(s, client.Identity{TenantID: "tnt_acme", Email: "ann@acme.example"})
	bob := withCaller(s, client.Identity{TenantID: "tnt_other", Email: "bob@other.example"})
	if status, body := ann("POST", "/messages", `{"from":"root@acme.example","to":"x@y.example","text":"hi"}`); status != 201 ||
		body != `{"from":"ann@acme.example","to":"x@y.example","text":"hi"}` {
		t.Errorf("sending: %d %s", status, body)
	}
	if status, body := ann("GET", "/reports", ""); status != 200 || body != `{"sent":{"ann@acme.example":1}}` {
		t.Errorf("the report of Acme: %d %s", status, body)
	}
	if status, body := bob("GET", "/reports", ""); status != 200 || body != `{"sent":{}}` {
		t.Errorf("the report of another tenant: %d %s", status, body)
	}
}

func TestMessagesAreChecked(t *testing.T) {
	s := newService()
	ann := withCaller(s, client.Identity{TenantID: "tnt_acme", Email: "ann@acme.example"})
	for body, want := range map[string]int{
		"": 400, "{": 400, `{"to":1}`: 400, `{"to":"a","text":"` + strings.Repeat("x", maxBody) + `"}`: 400,
		`{}`: 422, `{"to":"a"}`: 422, `{"text":"a"}`: 422,
	} {
		if status, answer := ann("POST", "/messages", body); status != want {
			t.Errorf("%.40s is answered %d %s, want %d", body, status, answer, want)
		}
	}
	if len(s.sent) != 0 {
		t.Errorf("refused messages are counted: %v", s.sent)
	}
}

func TestIsLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"localhost:8091": true, "127.0.0.1:0": true, "127.9.9.9:1": true, "[::1]:80": true,
		":8091": false, "0.0.0.0:8091": false, "10.0.0.1:80": false, "[::]:80": false, "example.org:80": false, "localhost": false, "": false,
	} {
		if got := isLoopback(listen); got != want {
			t.Errorf("isLoopback(%q) = %t, want %t", listen, got, want)
		}
	}
}
