package edge_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
)

// handler returns the check's handler, without a network, on a server with a USER.
func handler(f *testing.F) (check http.Handler, user *doorwardtest.Person) {
	f.Helper()
	d := doorwardtest.Start(f, signing)
	site := front.New(d.Node.App, &url.URL{Scheme: "https", Host: "platform.example"}, nil, slog.New(slog.DiscardHandler))
	return edge.Check(site, http.NotFoundHandler()), d.Tenant("Acme").Join("user@acme.example", "USER")
}

// FuzzCheck: any input gets a decision, and only a valid session is allowed. "{live}" in
// the headers stands for its token.
func FuzzCheck(f *testing.F) {
	check, user := handler(f)
	for _, headers := range []string{
		"", "Cookie: JSESSIONID={live}", "Cookie: JSESSIONID={live}; JSESSIONID={live}", "Cookie: JSESSIONID={live}\nCookie: JSESSIONID=x",
		"Cookie: JSESSIONID=" + strings.Repeat("A", 43) + "\nX-Auth-User: usr_x", "Authorization: Bearer dwo_x", "Authorization: Bearer {live}", "Authorization: Bearer {live}\nCookie: JSESSIONID={live}", "Authorization: Bearer {live}\nAuthorization: Basic x",
		"Cookie: JSESSIONID={live}\nX-Forwarded-Method: POST\nOrigin: https://platform.example", "Sec-Fetch-Site: cross-site\nX-Original-Method: PUT",
		"X-Request-Id: a\nCookie: doorward_device={live}; JSESSIONID=\"{live}\"",
	} {
		for _, query := range []string{"", "action=message.send", "action=billing.read", "action=&action", "a;b=%zz", "Action=billing.read", "action=message.send&original=/?action=x", "action=message.send&aud=" + first, "aud=x&action=billing.read"} {
			f.Add("GET", query, headers)
		}
	}
	f.Fuzz(func(t *testing.T, method, query, headers string) {
		header := http.Header{}
		for line := range strings.SplitSeq(strings.ReplaceAll(headers, "{live}", user.Token()), "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				header.Add(name, value)
			}
		}
		asCookie := strings.Contains(strings.Join(header["Cookie"], "\n"), "JSESSIONID="+user.Token())
		asBearer := len(header["Authorization"]) == 1 && len(header["Authorization"][0]) > 7 &&
			strings.EqualFold(header["Authorization"][0][:7], "bearer ") && strings.HasSuffix(strings.TrimSpace(header["Authorization"][0]), " "+user.Token())
		w := httptest.NewRecorder()
		check.ServeHTTP(w, (&http.Request{Method: method, URL: &url.URL{Path: edge.Path, RawQuery: query}, Header: header}).WithContext(t.Context()))
		yes := w.Code == http.StatusOK
		if !yes && w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden && w.Code != http.StatusBadRequest {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if yes && asCookie == asBearer {
			t.Errorf("allowed without the session, or with it in both places: %q", header)
		}
		if who := w.Header()["X-Auth-User"]; yes && !slices.Equal(who, []string{user.ID}) || !yes && !slices.Equal(who, []string{""}) {
			t.Errorf("%d for %q", w.Code, who)
		}
		if signed := w.Header()["X-Auth-Assertion"]; len(signed) != 1 || (signed[0] != "") != yes {
			t.Errorf("%d with the assertion %q", w.Code, signed)
		}
		if name, _, _ := strings.Cut(query, "="); yes && name != "action" && strings.EqualFold(name, "action") {
			t.Errorf("a misspelt action passes: %q", query)
		}
		if yes && strings.Contains(query, "action=billing.read") && !strings.Contains(query, "action=message.send") && !strings.Contains(query, ";") {
			lenient, err := url.ParseQuery(query)
			if err == nil && lenient.Get("action") == "billing.read" {
				t.Errorf("a USER is allowed %q", query)
			}
		}
	})
}

// FuzzOriginal: if a gateway puts its parameters before the client's path and query,
// no client input changes the answer.
func FuzzOriginal(f *testing.F) {
	check, user := handler(f)
	for _, text := range []string{"", "/messages", "/m?action=message.read", "&action=billing.read", "&original=&action=", "%zz;", "#", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for action, want := range map[string]int{"message.send": http.StatusOK, "billing.read": http.StatusForbidden} {
			w := httptest.NewRecorder()
			r := &http.Request{Method: "POST", URL: &url.URL{Path: edge.Path, RawQuery: "action=" + action + "&original=" + text}, Header: http.Header{}}
			r.Header.Set("Cookie", "JSESSIONID="+user.Token())
			if check.ServeHTTP(w, r.WithContext(t.Context())); w.Code != want {
				t.Errorf("%s before %q: %d %s", action, text, w.Code, w.Body)
			}
			w = httptest.NewRecorder()
			r.URL.RawQuery = "action=" + action + "&aud=" + url.QueryEscape(second) + "&original=" + text
			if check.ServeHTTP(w, r.WithContext(t.Context())); w.Code != want {
				t.Errorf("%s for an audience before %q: %d %s", action, text, w.Code, w.Body)
			}
			if want == http.StatusOK && claimsOf(t, w.Header().Get("X-Auth-Assertion"))["aud"] != second {
				t.Errorf("%q changes the audience", text)
			}
		}
	})
}
