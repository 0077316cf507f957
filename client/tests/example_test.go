package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/doorward/doorward/client"
)

// A service with one action, and three callers: one is allowed, one isn't, one isn't
// signed in. In your own test, doorwardtest.Start(t) starts Doorward.
func Example() {
	doorward := running()
	auth, err := client.New(doorward.URL)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /messages", auth.Require("message.send")(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			who, _ := client.From(r.Context())
			fmt.Fprintf(w, "sent as %s", who.Role)
		})))
	service := httptest.NewServer(mux)
	defer service.Close()

	for _, token := range []string{person("USER").Token(), person("VIEWER").Token(), "none"} {
		req, _ := http.NewRequest(http.MethodPost, service.URL+"/messages", nil)
		req.Header.Set("Cookie", "JSESSIONID="+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			fmt.Println(res.StatusCode, string(body))
		} else {
			fmt.Println(res.StatusCode, res.Header.Get("Content-Type"))
		}
	}
	// Output:
	// 200 sent as USER
	// 403 application/problem+json
	// 401 application/problem+json
}

// The action depends on the request, so the handler itself calls Check.
func ExampleClient_Check() {
	auth, err := client.New(running().URL)
	if err != nil {
		log.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := "message.send"
		if r.FormValue("to") == "everybody" {
			action = "settings.manage"
		}
		who, err := auth.Check(r.Context(), client.Request{Action: action, Method: r.Method, Header: r.Header})
		if err != nil {
			client.WriteError(w, r, err)
			return
		}
		fmt.Fprintf(w, "sent by %s", who.Role)
	})

	token := person("USER").Token()
	for _, to := range []string{"ann", "everybody"} {
		r := httptest.NewRequest(http.MethodPost, "/messages?to="+to, nil)
		r.Header.Set("Cookie", "JSESSIONID="+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(to, w.Code)
	}
	// Output:
	// ann 200
	// everybody 403
}

// Each kind of error needs another reaction.
func ExampleError() {
	auth, err := client.New(running().URL, client.Timeout(2*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	react := func(token string) string {
		_, err := auth.Check(context.Background(), client.Request{
			Action: "billing.read", Header: http.Header{"Cookie": {"JSESSIONID=" + token}},
		})
		var e *client.Error
		switch {
		case err == nil:
			return "go on"
		case errors.Is(err, client.ErrUnauthenticated):
			return "sign in"
		case errors.Is(err, client.ErrForbidden):
			return "ask your owner"
		case errors.As(err, &e): // ErrRateLimited or ErrUnavailable
			return "try again in " + e.RetryAfter.String()
		}
		return err.Error()
	}
	fmt.Println(react("none"))
	fmt.Println(react(person("ADMIN").Token()))
	// Output:
	// sign in
	// ask your owner
}

// A browser that isn't signed in is redirected to the login page; other requests get
// the usual answer.
func ExampleOnError() {
	auth, err := client.New(running().URL, client.OnError(func(w http.ResponseWriter, r *http.Request, e *client.Error) {
		if errors.Is(e, client.ErrUnauthenticated) && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		client.WriteError(w, r, e)
	}))
	if err != nil {
		log.Fatal(err)
	}
	page := auth.Require("report.read")(http.NotFoundHandler())

	for _, mode := range []string{"navigate", "cors"} {
		r := httptest.NewRequest(http.MethodGet, "/reports", nil)
		r.Header.Set("Sec-Fetch-Mode", mode)
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		fmt.Println(mode, w.Code, w.Header().Get("Location"))
	}
	// Output:
	// navigate 303 /login
	// cors 401
}

// A worker receives credentials from a queue and checks all of them at once.
func ExampleClient_IntrospectAll() {
	doorward := running()
	key := newOperatorKey(doorward) // of: doorward key create-operator --name worker
	auth, err := client.New(doorward.URL, client.OperatorKey(key))
	if err != nil {
		log.Fatal(err)
	}
	answers, err := auth.IntrospectAll(context.Background(), []client.Question{
		{Credential: person("USER").Token(), Action: "message.send"},
		{Credential: person("VIEWER").Token(), Action: "message.send"},
		{Credential: "ended long ago", Action: "message.send"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range answers {
		fmt.Println(a.Active, a.Allowed, a.Identity.Role)
	}
	// Output:
	// true true USER
	// true false VIEWER
	// false false
}

// NewContext sets the caller for a handler that is tested alone.
func ExampleNewContext() {
	handler := func(w http.ResponseWriter, r *http.Request) {
		who, _ := client.From(r.Context())
		fmt.Fprintf(w, "reports of %s", who.TenantID)
	}
	r := httptest.NewRequest(http.MethodGet, "/reports", nil)
	r = r.WithContext(client.NewContext(r.Context(), client.Identity{TenantID: "tnt_1", Role: client.Viewer}))
	w := httptest.NewRecorder()
	handler(w, r)
	fmt.Println(w.Body)
	// Output: reports of tnt_1
}

// A service that only its gateway can reach trusts the gateway, and refuses requests
// without an identity.
func ExampleFromGateway() {
	behindGateway := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, ok := client.FromGateway(r)
			if !ok {
				http.Error(w, "the gateway names nobody", http.StatusServiceUnavailable) // its fault, not the caller's
				return
			}
			next.ServeHTTP(w, r.WithContext(client.NewContext(r.Context(), who)))
		})
	}
	service := behindGateway(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := client.From(r.Context())
		fmt.Fprint(w, who.Email)
	}))

	r := httptest.NewRequest(http.MethodGet, "/reports", nil)
	for name, value := range map[string]string{"User": "usr_1", "Tenant": "tnt_1", "Role": "USER", "Email": "ann@acme.example", "Session": "ses_1"} {
		r.Header.Set("X-Auth-"+name, value)
	}
	w := httptest.NewRecorder()
	service.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output: 200 ann@acme.example
}
