package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

// healthTimeout is longer than the 3 s within which a server answers anything.
const healthTimeout = 4 * time.Second

func healthcheckCommand() *cobra.Command {
	s, ready := newSettings(), false
	cmd := &cobra.Command{
		Use: "healthcheck", Short: "Check the health of the server on this machine",
		Long: `Healthcheck asks /healthz of the server that runs with the same settings, and
exits with 0 when it answers: for containers without curl or another client.
With --ready it asks /readyz, which also needs the database, its schema and the
node's lease, and says if mails or deliveries to webhooks are paused.`,
		Example: "  doorward healthcheck --listen localhost:8080\n  doorward healthcheck --ready --config /etc/doorward/doorward.yaml", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.read(cmd)
			if err != nil {
				return err
			}
			if err := askHealth(cmd.Context(), cfg, ready); err != nil || !ready {
				return err
			}
			printPausesOf(cmd.Context(), cmd.OutOrStdout(), cfg)
			return nil
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().BoolVar(&ready, "ready", false, "check readiness, not only liveness")
	return cmd
}

// printPausesOf says which queues are paused, as the metrics of the server on this machine show it.
func printPausesOf(ctx context.Context, out io.Writer, cfg node.Config) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	m := readMetrics(ctx, cfg)
	for _, q := range []store.Queue{store.MailQueue, store.WebhookQueue} {
		if m[`doorward_queue_paused{queue="`+string(q)+`"}`] > 0 {
			fmt.Fprintf(out, "Ready, but %s are paused; \"doorward doctor\" says since when and why.\n", queueOf[q].rows)
		}
	}
}

func askHealth(ctx context.Context, cfg node.Config, ready bool) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	address, err := healthURL(cfg, ready)
	if err != nil {
		return err
	}
	res, err := askLoopback(ctx, address)
	if err != nil {
		return err
	}
	res.Body.Close()
	return nil
}

// askLoopback asks the server on this machine. Anything but 200 is an error.
func askLoopback(ctx context.Context, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	// The certificate is for the public name, and this request stays on this machine and
	// carries nothing secret.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		DialContext:     dialLoopback,
	}}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("%s answers %s", address, res.Status)
	}
	return res, nil
}

// dialLoopback dials 127.0.0.1, then ::1, for localhost: a container image may have no
// /etc/hosts.
func dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" {
		return d.DialContext(ctx, network, address)
	}
	c, err := d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	if err == nil {
		return c, nil
	}
	c, err6 := d.DialContext(ctx, network, net.JoinHostPort("::1", port))
	if err6 == nil {
		return c, nil
	}
	return nil, err
}

func healthURL(cfg node.Config, ready bool) (string, error) {
	if ready {
		return adminURL(cfg, "/readyz")
	}
	return adminURL(cfg, "/healthz")
}

// adminURL returns the URL of a path on the admin address, which never has TLS; without
// one, on the main address.
func adminURL(cfg node.Config, path string) (string, error) {
	scheme, listen := "http", cfg.Listen
	if cfg.AdminListen != "" {
		listen = cfg.AdminListen
	} else if cfg.TLS != nil {
		scheme = "https"
	}
	if _, port, _ := net.SplitHostPort(listen); port == "0" {
		return "", badConfig("the server takes a free port, which only its log shows. Give --listen or --admin-listen a port number.")
	}
	return scheme + "://" + node.Dialable(listen) + path, nil
}
