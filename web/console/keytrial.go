package console

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/web/ui"
)

// trial says whether a request with the key would pass.
type trial struct {
	Action, IP string
	ResultKey  string // key of the message; keys.try.yes: it would
}

// trialOf returns the trial that the query asks for; nil for none. It decides as the check
// of the API does, from what the key and its owner may do now.
func trialOf(c *ui.Call, k apiKey) *trial {
	q := c.R.URL.Query()
	one := trial{Action: q.Get("action"), IP: strings.TrimSpace(q.Get("ip"))}
	if one.Action == "" && one.IP == "" {
		return nil
	}
	p := doorward.PrincipalOfKey(k.APIKey, c.Caller.TenantStatus)
	addr, err := netip.ParseAddr(one.IP)
	decision := decide.May(&p, &decide.Question{
		Action: doorward.Action(one.Action), On: p.Tenant(), ForService: true,
		Request: &doorward.Request{At: c.Now(), Now: c.Now(), IP: addr},
	})
	switch {
	case k.State != doorward.APIKeyActive:
		one.ResultKey = "keys.try.status"
	case one.IP != "" && err != nil:
		one.ResultKey = "keys.try.noaddress"
	case one.IP != "" && !allows(k.AllowedIPs, addr.Unmap()):
		one.ResultKey = "keys.try.ip"
	case decision.Allowed:
		one.ResultKey = "keys.try.yes"
	case decision.Reason == decide.ReasonPolicy:
		one.ResultKey = "keys.try.policy"
	case !k.Has(doorward.Action(one.Action)):
		one.ResultKey = "keys.try.permission"
	default:
		one.ResultKey = "keys.try.owner"
	}
	return &one
}

func allows(all []netip.Prefix, addr netip.Addr) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(addr) })
}
