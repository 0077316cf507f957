package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
)

// A service that demands a recent proof refuses an older one and says what is needed. With
// OnError it redirects browsers to the step-up page, and back.
func TestProof(t *testing.T) {
	s := doorwardtest.Start(t)
	ann := s.Tenant("Acme").Join("ann@acme.example", "USER")
	ann.Login()
	c, err := client.New(s.URL, client.OnError(func(w http.ResponseWriter, r *http.Request, e *client.Error) {
		if e.StepUp != nil && r.Method == http.MethodGet {
			http.Redirect(w, r, client.StepUpURL(s.URL+"/", r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		client.WriteError(w, r, e)
	}))
	if err != nil {
		t.Fatal(err)
	}
	check := func(p client.Proof) *client.StepUp {
		t.Helper()
		_, err := c.Check(t.Context(), client.Request{Action: "message.send", Method: "GET", Header: http.Header{"Authorization": {"Bearer " + ann.Token()}}, Proof: p})
		var e *client.Error
		if errors.As(err, &e) {
			if e.Code != "step_up_required" || e.Status != http.StatusForbidden || e.StepUp == nil {
				t.Fatal(err)
			}
			return e.StepUp
		}
		return nil
	}
	page := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/reports?a=1&b=2", nil)
		r.Header.Set("Cookie", "JSESSIONID="+ann.Token())
		w := httptest.NewRecorder()
		c.RequireProof("report.read", client.Proof{MaxAge: 5 * time.Minute})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })).ServeHTTP(w, r)
		return w
	}
	if need := check(client.Proof{MaxAge: time.Minute, AAL: 1}); need != nil || page().Code != http.StatusNoContent {
		t.Errorf("just after the login: %+v", need)
	}
	if need := check(client.Proof{AAL: 2}); need == nil || need.ACR != "aal2" {
		t.Errorf("without a second factor: %+v", need)
	}
	s.Advance(6 * time.Minute)
	if need := check(client.Proof{MaxAge: 5 * time.Minute}); need == nil || need.MaxAge == nil || *need.MaxAge != 300 || strings.Join(need.Methods, " ") != "password" {
		t.Errorf("after six minutes: %+v", need)
	}
	if need := check(client.Proof{}); need != nil {
		t.Errorf("without a demand: %+v", need)
	}
	if w := page(); w.Code != http.StatusSeeOther || w.Header().Get("Location") != s.URL+"/step-up?return=%2Freports%3Fa%3D1%26b%3D2" {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
}
