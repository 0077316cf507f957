package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"

	"github.com/doorward/doorward/client"
)

// handler lists the routes and the action that each needs.
func handler(s *service, needs guard) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /messages", needs("message.send")(http.HandlerFunc(s.send)))
	mux.Handle("GET /reports", needs("report.read")(http.HandlerFunc(s.report)))
	return mux
}

// service counts sent messages, for each tenant by sender. Data is looked up by the
// caller's tenant, never by a tenant named in the request.
type service struct {
	mu   sync.Mutex
	sent map[string]map[string]int
}

func newService() *service { return &service{sent: map[string]map[string]int{}} }

type message struct {
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// maxBody is the largest message, in bytes.
const maxBody = 64 << 10

func (s *service) send(w http.ResponseWriter, r *http.Request) {
	var m message
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	if err := body.Decode(&m); err != nil {
		http.Error(w, `send {"to": "…", "text": "…"}`, http.StatusBadRequest)
		return
	}
	if m.To == "" || m.Text == "" {
		http.Error(w, `"to" and "text" must not be empty`, http.StatusUnprocessableEntity)
		return
	}
	who, _ := client.From(r.Context())
	m.From = who.Email // whatever the body says
	s.count(who)
	answer(w, http.StatusCreated, m)
}

func (s *service) count(who client.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent[who.TenantID] == nil {
		s.sent[who.TenantID] = map[string]int{}
	}
	s.sent[who.TenantID][who.Email]++
}

func (s *service) report(w http.ResponseWriter, r *http.Request) {
	who, _ := client.From(r.Context())
	answer(w, http.StatusOK, map[string]any{"sent": s.sentIn(who.TenantID)})
}

func (s *service) sentIn(tenantID string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent[tenantID] == nil {
		return map[string]int{}
	}
	return maps.Clone(s.sent[tenantID])
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // it depends on the caller
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}
