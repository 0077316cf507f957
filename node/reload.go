package node

import (
	"cmp"

	"github.com/doorward/doorward/web/front"
)

// Reload puts the settings of cfg that are Live into force, for requests that begin from
// now on; a request under way keeps to what it has read. The level of the log is the
// caller's. Of cfg.Database the password alone is taken, for connections that are made from now on. All
// other settings stay as they were at the start. cfg must be checked and complete, as for Start. After an
// error nothing is changed.
func (n *Node) Reload(cfg Config) error {
	if err := n.DB.SetPassword(cfg.Database); err != nil {
		return err
	}
	n.site.SetProxies(cfg.Proxies)
	n.tracer.Trust(cfg.Proxies)
	for _, l := range n.listeners() {
		l.limiter.limits.Store(cfg.connLimits())
	}
	s := cfg.Settings
	s.Name, s.MailBrand = cfg.brand().Name, cfg.Brand.Brand
	n.App.Reload(s)
	n.site.SetBrand(cfg.brand())
	n.reloadFailed.Store(false)
	return nil
}

// SetReloadFailed notes, for the metric, that new settings were refused and the earlier ones
// are in force.
func (n *Node) SetReloadFailed() { n.reloadFailed.Store(true) }

func (n *Node) listeners() []*listener {
	if n.admin == nil {
		return []*listener{n.main}
	}
	return []*listener{n.main, n.admin.listener}
}

// brand returns the brand of the pages, with Doorward's name unless another is set.
func (c Config) brand() front.Brand {
	b := c.Brand
	b.Name = cmp.Or(b.Name, front.DefaultName)
	return b
}

func (c Config) connLimits() *connLimits {
	return &connLimits{perClient: c.ConnectionsPerClient, proxies: c.Proxies}
}
