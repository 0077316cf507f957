package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/internal/gatewayprobe"
	"github.com/doorward/doorward/internal/secretfile"
)

// sessionFileVariable names the variable that stands in for --session-file.
const sessionFileVariable = "DOORWARD_SESSION_FILE"

func gatewayDoctorCommand() *cobra.Command {
	var sessionFile, cookie, upstream string
	cmd := &cobra.Command{
		Use: "gateway URL", Short: "Ask through a gateway as an attacker would, and say what to correct",
		Long: `Gateway checks the configuration of a gateway in front of a service: forged identities
in every spelling, forged addresses, hosts and paths, duplicate cookies, ambiguous paths,
requests of other origins, what becomes of the credential, and whether the service sets
the session's cookie.

Run examples/upstream behind the gateway, in place of the service: it answers with the
request that it got. URL is a path of it, and --session-file names a file with the token
of a session that may read it; without one only what needs none is checked. The
variable DOORWARD_SESSION_FILE names the file, too. Exit code 0 means that nothing is
wrong.`,
		Example: "  doorward doctor gateway https://platform.example/reports --session-file token",
		Args:    oneArg("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := parseProbe(args[0], cmp.Or(sessionFile, os.Getenv(sessionFileVariable)), cookie, upstream)
			if err != nil {
				return err
			}
			return probeGateway(cmd.Context(), cmd.OutOrStdout(), p)
		},
	}
	cmd.Flags().StringVar(&sessionFile, "session-file", "", "`FILE` with the token of a session, that nobody else may read")
	cmd.Flags().StringVar(&cookie, "cookie-name", "JSESSIONID", "`NAME` of the session's cookie, as the server's")
	cmd.Flags().StringVar(&upstream, "upstream", "", "`HOST:PORT` of the service itself, which must not answer here; on loopback it is asked by the other addresses of this machine")
	return cmd
}

func parseProbe(address, sessionFile, cookie, upstream string) (p gatewayprobe.Probe, err error) {
	p = gatewayprobe.Probe{Cookie: cookie, Upstream: upstream}
	if p.URL, err = url.Parse(address); err != nil || p.URL.Scheme != "http" && p.URL.Scheme != "https" || p.URL.Hostname() == "" || p.URL.User != nil || p.URL.RawQuery != "" {
		return p, usageError("%q is no address of a gateway: write https://HOST/PATH, with a path of the service.", address)
	}
	if p.URL.Path == "" {
		p.URL.Path = "/"
	}
	if _, _, err := net.SplitHostPort(upstream); upstream != "" && err != nil {
		return p, usageError("--upstream is %q: write HOST:PORT.", upstream)
	}
	if sessionFile == "" {
		return p, nil
	}
	token, err := secretfile.Read(sessionFile)
	p.Token = strings.TrimSpace(string(token))
	if err == nil && (p.Token == "" || strings.ContainsFunc(p.Token, func(r rune) bool { return r <= ' ' || r > '~' || r == ';' })) {
		err = fmt.Errorf("the file %s has no session's token: write the value of the cookie into it, and nothing else", sessionFile)
	}
	return p, err
}

func probeGateway(ctx context.Context, out io.Writer, p gatewayprobe.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	failed := false
	for _, f := range p.Run(ctx) {
		finding{check: f.Check, fine: f.Fine, wrong: f.Wrong, remedy: f.Remedy}.print(out)
		failed = failed || f.Wrong != ""
	}
	if p.Token == "" {
		fmt.Fprintln(out, "\nWhat needs a session was not checked: give --session-file.")
	}
	if failed {
		return &failure{exitFailed, errors.New("some checks failed")}
	}
	return nil
}
