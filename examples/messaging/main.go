// Messaging is a small service of the platform that Doorward protects: people send
// messages and see reports in their tenant, if their role allows it. It keeps its
// counts in memory.
//
//	messaging                       asks Doorward about each request
//	messaging --behind-gateway      trusts its gateway, which has asked
//
// messaging.go is the service, which doesn't handle sessions. guard.go chooses the
// check in front of its handlers: read it first. README.md says how to run it, with
// and without nginx.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "messaging:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("messaging", flag.ExitOnError)
	listen := flags.String("listen", "localhost:8090", "`address` to serve on, HOST:PORT")
	doorward := flags.String("doorward", "http://localhost:8080", "`URL` of the Doorward to ask")
	behind := flags.Bool("behind-gateway", false, "trust the gateway's X-Auth-* headers instead; loopback only")
	_ = flags.Parse(args) // ExitOnError

	guard, err := askDoorward(*doorward)
	if *behind {
		guard, err = behindGateway(*listen)
	}
	if err != nil {
		return err
	}
	return serve(ctx, *listen, handler(newService(), guard))
}

// serve answers until ctx ends, and then completes the open requests.
func serve(ctx context.Context, address string, h http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	fmt.Printf("Messaging is ready at http://%s\n", listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(end), ignoreClosed(<-failed))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
