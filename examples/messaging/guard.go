package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/doorward/doorward/client"
)

// guard returns the middleware that stands in front of a handler which needs
// action. Behind it, client.From tells who is calling.
type guard func(action string) func(http.Handler) http.Handler

// askDoorward is the way to begin with: each request is checked by the service
// itself, so it doesn't matter how the request came.
func askDoorward(url string) (guard, error) {
	door, err := client.New(url)
	if err != nil {
		return nil, err
	}
	return door.Require, nil
}

// behindGateway saves the second check where a gateway has checked already. It
// believes whoever can connect, so it insists on an address that only programs
// on this machine reach. Which action a request needs is written in the gateway's
// configuration then (nginx.conf), and not here.
func behindGateway(listen string) (guard, error) {
	if !loopback(listen) {
		return nil, fmt.Errorf("behind a gateway it listens on loopback only, since it believes whoever connects; not on %s", listen)
	}
	return func(string) func(http.Handler) http.Handler { return believeGateway }, nil
}

func believeGateway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := client.FromGateway(r)
		if !ok {
			// 503 and not 401: the gateway has failed here, the caller may be fine.
			client.WriteError(w, r, errors.New("the gateway names nobody"))
			return
		}
		next.ServeHTTP(w, r.WithContext(client.NewContext(r.Context(), who)))
	})
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
