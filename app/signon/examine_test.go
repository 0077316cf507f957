package signon_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// TestExamine: the operator sees what a provider and the name servers say now, and nothing is written.
func TestExamine(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		c, err := w.DB.Read().Connection(w.Context(), s.conID)
		w.NoError(err)
		before, attempts := w.rows(), w.count("connection_attempts")
		s.provider.Change(answers(oidctest.KeysPath, func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }))
		got, err := w.Node(0).Connections.Examine(w.Context(), c)
		if err != nil || got.Document != nil || got.Keys == nil || got.Keys.Code != oidcrp.CodeUnreachable {
			t.Errorf("a provider without keys: %+v, %v", got, err)
		}
		s.provider.Change(func(p *oidctest.Settings) { p.Lies.Answer = nil })
		if got, err = w.Node(0).Connections.Examine(w.Context(), c); err != nil || got.Document != nil || got.Keys != nil || got.KeyCount != 1 || got.Advice() != "" {
			t.Errorf("a provider in order: %+v, %v", got, err)
		}
		s.provider.Change(document("issuer", "https://other.example"))
		if got, err = w.Node(0).Connections.Examine(w.Context(), c); err != nil || got.Document == nil || got.Document.Code != oidcrp.CodeIssuerMismatch || got.Advice() == "" {
			t.Errorf("a provider of another name: %+v, %v", got, err)
		}
		domains, err := w.Node(0).Domains.Examine(w.Context(), s.tenantID())
		if err != nil || len(domains) != 1 || domains[0].Found || domains[0].Err != nil {
			t.Errorf("the domain: %+v, %v", domains, err)
		}
		secrets, err := w.Node(0).Connections.Secrets(w.Context(), s.tenantID())
		if err != nil || len(secrets[s.conID]) != 1 {
			t.Errorf("the secrets: %+v, %v", secrets, err)
		}
		if diff := difference(before, w.rows()); diff != "" || w.count("connection_attempts") != attempts {
			t.Errorf("looking has written %s", diff)
		}
	})
}
