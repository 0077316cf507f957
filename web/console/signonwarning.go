package console

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// signOnWarning is what somebody who manages sign-on has to do soon.
type signOnWarning struct {
	Kind string    // its message is "sso.overview." + Kind
	Name string    // of the connection or the domain; empty for none
	At   time.Time // when it happens; zero: it has
	Path string    // of the page to do it on
}

// signOnWarnings returns what the overview warns of: client secrets, certificates and domains that end, and a demand that
// waits to be confirmed; nothing for those who don't manage sign-on.
func (h *console) signOnWarnings(ctx context.Context, c *ui.Call) (all []signOnWarning, err error) {
	if !c.Can(doorward.SSOManage) {
		return nil, nil
	}
	policy, err := h.app.Demands.Get(ctx, c.Caller)
	if err != nil {
		return nil, err
	}
	if policy.ConfirmBy != nil {
		all = append(all, signOnWarning{"provisional", "", *policy.ConfirmBy, ssoPolicyPath})
	}
	connections, err := h.app.Connections.List(ctx, c.Caller, doorward.Window{Limit: doorward.ConnectionsMax})
	if err != nil {
		return nil, err
	}
	for _, one := range connections.Items {
		p := provider{one, c.Now()}
		if ends := p.CertificateEnds(); ends != nil && p.IsActive() {
			all = append(all, signOnWarning{"certificate", p.Name, *ends, connectionPath + "/" + p.ID + tabQuery("certificates")})
		}
		if ends := p.SecretEnds(); ends != nil && p.IsActive() {
			all = append(all, signOnWarning{"secret", p.Name, *ends, connectionPath + "/" + p.ID + tabQuery("secrets")})
		}
	}
	domains, err := h.app.Domains.List(ctx, c.Caller, doorward.Window{Limit: doorward.DomainsMax})
	for _, d := range domains.Items {
		switch {
		case d.Status == doorward.DomainLapsed:
			all = append(all, signOnWarning{Kind: "lapsed", Name: d.Name, Path: domainsPath + "/" + d.ID})
		case d.Status == doorward.DomainVerified && d.MissingSince != nil:
			all = append(all, signOnWarning{"missing", d.Name, shownDomain{Domain: d}.LapsesAt(), domainsPath + "/" + d.ID})
		}
	}
	return all, err
}
