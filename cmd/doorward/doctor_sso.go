package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/domain"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/node"
)

// ssoDoctorTime bounds all questions to providers and name servers.
const ssoDoctorTime = 5 * time.Minute

func ssoDoctorCommand() *cobra.Command {
	s := withoutMigration()
	cmd := &cobra.Command{
		Use: "sso TENANT-ID", Short: "Check the sign-on of a tenant's own, and say how to fix what is wrong",
		Long: `Sso asks each provider of the tenant for its document and its keys, or its metadata,
and the name servers for the records of its domains, now and from this machine. It
shows the state of connections, their tests, the ends of their client secrets and of
certificates, what the tenant demands, and who would still get in without a provider.
Disabled connections are not asked. Give it --sso-allow and --dns-server as the servers
have them, or it asks otherwise than they do. It changes nothing: what it finds is in no
protocol, and no domain lapses by it. Exit code 0 means that nothing is wrong.`,
		Example: "  doorward doctor sso tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", Args: oneArg("TENANT-ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := s.read(cmd)
			if err != nil {
				return err
			}
			n, err := node.Open(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			defer n.Close()
			if _, err := n.App.Tenants.Get(cmd.Context(), args[0]); err != nil {
				return err
			}
			return examineSSO(cmd.Context(), cmd.OutOrStdout(), n, args[0])
		},
	}
	s.register(cmd.Flags()) // as a server has them: which addresses providers may have, and the name server
	return cmd
}

func examineSSO(ctx context.Context, out io.Writer, n *node.Node, tenantID string) error {
	ctx, cancel := context.WithTimeout(ctx, ssoDoctorTime)
	defer cancel()
	connections, err := findConnections(ctx, n, tenantID)
	if err != nil {
		return err
	}
	domains, err := n.App.Domains.Examine(ctx, tenantID)
	if err != nil {
		return err
	}
	demands, err := findDemand(ctx, n, tenantID)
	if err != nil {
		return err
	}
	isWrong := false
	for _, f := range slices.Concat(connections, findDomains(domains), demands) {
		f.print(out)
		isWrong = isWrong || f.wrong != ""
	}
	if isWrong {
		return &failure{exitFailed, errors.New("some checks failed")}
	}
	return nil
}

func findConnections(ctx context.Context, n *node.Node, tenantID string) (all []finding, err error) {
	connections, err := n.App.Connections.Of(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	secrets, err := n.App.Connections.Secrets(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	if len(connections) == 0 {
		return []finding{{check: "connection", fine: "the tenant has none"}}, nil
	}
	for _, c := range connections {
		all = append(all, describeConnection(c))
		if c.Status == doorward.ConnectionDisabled || c.InForce.Issuer == "" {
			continue
		}
		examined, err := n.App.Connections.Examine(ctx, c)
		if err != nil {
			return nil, err
		}
		if c.Type == doorward.SAML {
			all = append(all, findMetadata(c, examined, n.App.Now())...)
			continue
		}
		all = append(all, findProvider(examined)...)
		all = append(all, findClient(c, secrets[c.ID], n.App.Now()))
	}
	return all, nil
}

func describeConnection(c doorward.Connection) finding {
	text := fmt.Sprintf("%s %s: %s", c.ID, c.Name, c.Status)
	switch {
	case c.Type == doorward.SCIMDirectory:
		text += ", a directory alone"
	case c.InForce.Issuer == "" && c.Type == doorward.SAML:
		text += ", without metadata yet"
	case c.InForce.Issuer == "":
		text += ", without an issuer yet"
	}
	if c.Type == doorward.SCIMDirectory {
		return finding{check: "connection", fine: text}
	}
	if c.InForce.TestedAt == nil {
		text += ", not tested"
	} else {
		text += ", tested " + day(*c.InForce.TestedAt)
	}
	if c.Pending != nil {
		text += ", a change of it waits for a test and a switch"
	}
	if c.Status == doorward.ConnectionActive && c.Type == doorward.OpenIDConnect {
		text += ", a revocation by the provider ends " + describeEnds(c)
	}
	if c.LastSignInAt != nil {
		text += ", last sign-in " + day(*c.LastSignInAt)
	}
	return finding{check: "connection", fine: text}
}

// describeEnds says what a revocation ends.
func describeEnds(c doorward.Connection) string {
	text := "all sessions of a person"
	if c.Ends == doorward.EndsConnection {
		text = "a person's sessions by it"
	}
	if c.EndsKeys {
		text += " and API keys"
	}
	return text
}

func findProvider(e provider.Examined) []finding {
	document := finding{check: "  document", fine: "as it has to be"}
	if e.Document != nil {
		document.wrong, document.remedy = describeFault(e.Document.Code, e.Document.Seen), e.Advice()
		return []finding{document}
	}
	keys := finding{check: "  keys", fine: fmt.Sprintf("%d verify signatures", e.KeyCount)}
	if e.Keys != nil {
		keys.wrong = describeFault(e.Keys.Code, e.Keys.Seen)
		keys.remedy = "Nobody can sign in while the provider's keys can't be read. Ask who runs the provider."
	}
	return []finding{document, keys}
}

// findMetadata names the certificates of a provider of SAML and their ends. That the last one has ended, or soon does, is a
// finding, although it is still taken: the provider is likely to sign with another one then.
func findMetadata(c doorward.Connection, e provider.Examined, now time.Time) []finding {
	read := finding{check: "  metadata", fine: "as they have to be"}
	if c.InForce.MetadataURL == "" {
		read.fine = "given as a text: a new certificate has to be entered by hand"
	}
	if e.Metadata != nil {
		read.wrong, read.remedy = describeFault(e.Metadata.Code, e.Metadata.Seen), e.Advice()
		return []finding{read}
	}
	if e.Removed > 0 {
		read.fine += "; " + counted(e.Removed, "certificate was taken away by hand", "certificates were taken away by hand")
	}
	all := []finding{read}
	last := samlprovider.Until(e.SAML)
	for _, certificate := range e.SAML.Certificates {
		f := finding{check: "  certificate", fine: fmt.Sprintf("%s, from %s until %s", certificate.Fingerprint, day(certificate.From), day(certificate.Until))}
		if certificate.Until.Equal(last) && last.Sub(now) <= secretWarning {
			f.wrong = f.fine
			f.remedy = "An OWNER has the next certificate made at the provider, and changes the metadata of the connection if they have no address."
		}
		all = append(all, f)
	}
	if len(e.SAML.Certificates) == 0 {
		all = append(all, finding{check: "  certificate", wrong: "none is left", remedy: "Nobody can sign in. An OWNER changes the metadata of the connection."})
	}
	return all
}

func describeFault(code, seen string) string {
	if seen == "" {
		return code
	}
	return code + ": " + seen
}

// secretWarning is when the end of the last secret is a finding: the second mail about it is sent then, too.
const secretWarning = 7 * 24 * time.Hour

// findClient says how Doorward authenticates, and until when: by the secret that ends last.
func findClient(c doorward.Connection, secrets []doorward.ConnectionSecret, now time.Time) finding {
	f := finding{check: "  client", remedy: "An OWNER makes a new secret at the provider and adds it to the connection."}
	if c.InForce.ClientAuth == doorward.PrivateKeyJWT {
		f.fine = "by a key, which the provider reads from the connection's jwksUrl"
		return f
	}
	hasLost := slices.ContainsFunc(secrets, func(s doorward.ConnectionSecret) bool { return s.IsLost })
	secrets = slices.DeleteFunc(secrets, func(s doorward.ConnectionSecret) bool { return s.IsLost })
	switch {
	case len(secrets) == 0 && hasLost:
		f.wrong = "the client secret was lost with the master key"
		return f
	case len(secrets) == 0:
		f.wrong = "there is no client secret"
		return f
	}
	var end time.Time
	for _, s := range secrets {
		if s.ExpiresAt == nil {
			f.fine = "by a secret, whose end is not known"
			return f
		}
		if s.ExpiresAt.After(end) {
			end = *s.ExpiresAt
		}
	}
	switch {
	case !end.After(now):
		f.wrong = "the client secret has ended on " + day(end)
	case end.Sub(now) <= secretWarning:
		f.wrong = "the client secret ends on " + day(end)
	default:
		f.fine = "by a secret, until " + day(end)
	}
	return f
}

func findDomains(domains []domain.Examined) (all []finding) {
	if len(domains) == 0 {
		return []finding{{check: "domain", fine: "the tenant has none"}}
	}
	for _, d := range domains {
		all = append(all, findDomain(d))
	}
	return all
}

func findDomain(d domain.Examined) finding {
	name, value := d.Record()
	f := finding{check: "domain", fine: fmt.Sprintf("%s: %s, its record is there", d.Name, d.Status)}
	switch {
	case d.Err != nil:
		f.wrong = fmt.Sprintf("%s: %s, and the name servers don't say whether its record is there", d.Name, d.Status)
		f.remedy = "Nothing lapses by that. Check that this machine reaches its name servers (--dns-server), and those of the domain."
	case !d.Found && d.Status == doorward.DomainPending:
		f.fine = d.Name + ": pending, its record isn't there yet"
	case !d.Found:
		f.wrong = fmt.Sprintf("%s: %s, and its record is missing", d.Name, d.Status)
		f.remedy = fmt.Sprintf("Publish the TXT record %s with the value %q again. After 72 hours without it a domain lapses. If it is there, see whether this machine asks the name server of the servers (--dns-server).", name, value)
	case d.Status == doorward.DomainPending:
		f.fine = d.Name + ": pending, its record is there; an OWNER has it looked at"
	case d.ConnectionID == "":
		f.fine += "; no connection signs its people in"
	}
	return f
}

func findDemand(ctx context.Context, n *node.Node, tenantID string) ([]finding, error) {
	by := doorward.Caller{Principal: doorward.Principal{TenantID: tenantID}}
	policy, err := n.App.Demands.Get(ctx, by)
	if err != nil {
		return nil, err
	}
	ready, err := n.App.Demands.Readiness(ctx, by)
	if err != nil {
		return nil, err
	}
	withWayBack := 0
	for _, owner := range ready.Owners {
		if owner.HasWayBack {
			withWayBack++
		}
	}
	ways := finding{check: "ways back", fine: fmt.Sprintf("%d of %d OWNERs get in without the provider", withWayBack, len(ready.Owners))}
	if policy.Mode == doorward.SSORequired && withWayBack == 0 {
		ways.wrong = "no OWNER gets in without the provider"
		ways.remedy = "An OWNER sets up a second factor or a passkey. If nobody gets in: doorward sso off " + tenantID
	}
	return []finding{describePolicy(policy, ready.NeverCount), ways}, nil
}

func describePolicy(p doorward.SSOPolicy, never int) finding {
	f := finding{check: "policy", fine: string(p.Mode)}
	switch {
	case !p.SignsIn():
		f.fine = "off: no connection signs anybody in"
	case p.Mode == doorward.SSORequired && p.GuestsRefused:
		f.fine += ", guests refused"
	case p.Mode == doorward.SSORequired:
		f.fine += ", guests allowed"
	}
	if p.ConfirmBy != nil {
		f.fine += ", until " + p.ConfirmBy.UTC().Format(time.RFC3339) + " unless it is confirmed"
	}
	if p.SignsIn() && never > 0 {
		f.fine += "; " + counted(never, "member who is covered has never signed in by a connection", "members who are covered have never signed in by a connection")
	}
	return f
}
