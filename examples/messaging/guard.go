package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/doorward/doorward/client"
)

// A guard returns the middleware for handlers that need the action. In the handler,
// client.From returns the caller.
type guard func(action string) func(http.Handler) http.Handler

// askDoorward is the recommended guard: the service itself checks each request, so it
// doesn't matter how the request came.
func askDoorward(url string) (guard, error) {
	auth, err := client.New(url)
	if err != nil {
		return nil, err
	}
	return auth.Require, nil
}

// behindGateway saves the second check where a gateway has already checked. It trusts
// everybody who can connect, so it refuses an address that other machines can reach. The
// gateway's configuration (nginx.conf) then says which action a request needs.
func behindGateway(listen string) (guard, error) {
	if !isLoopback(listen) {
		return nil, fmt.Errorf("behind a gateway it listens on loopback only, since it trusts every client that connects; not on %s", listen)
	}
	return func(string) func(http.Handler) http.Handler { return trustGateway }, nil
}

func trustGateway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := client.FromGateway(r)
		if !ok {
			// 503 and not 401: the gateway failed; the caller may be valid.
			client.WriteError(w, r, errors.New("the gateway names nobody"))
			return
		}
		next.ServeHTTP(w, r.WithContext(client.NewContext(r.Context(), who)))
	})
}

func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
