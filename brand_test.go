package doorward_test

import (
	"testing"

	"github.com/doorward/doorward"
)

// The header names the tenant wherever one is known. A logo has the name of its owner beside it, unless it
// contains it; Doorward's own mark is only where there is neither a logo nor a tenant.
func TestHeaderOf(t *testing.T) {
	wide, square := doorward.Logo{Hash: "wide", Width: 400, Height: 80}, doorward.Logo{Hash: "square", Width: 80, Height: 80}
	acme := func(logo doorward.Logo) doorward.Tenant {
		return doorward.Tenant{Name: "Acme", Brand: doorward.Brand{Logo: logo}}
	}
	var nobody doorward.Tenant
	var none doorward.Logo
	for name, c := range map[string]struct {
		tenant doorward.Tenant
		own    doorward.Logo // of the installation
		want   doorward.Header
	}{
		"neither":                            {nobody, none, doorward.Header{Name: "Initech", Mark: true}},
		"the installation's wide logo":       {nobody, wide, doorward.Header{Logo: wide, Alt: "Initech"}},
		"the installation's square logo":     {nobody, square, doorward.Header{Logo: square, Name: "Initech"}},
		"a tenant without a logo":            {acme(none), none, doorward.Header{Name: "Acme"}},
		"a tenant by a wide logo":            {acme(none), wide, doorward.Header{Logo: wide, Alt: "Initech", Name: "Acme"}},
		"a tenant by a square logo":          {acme(none), square, doorward.Header{Logo: square, Alt: "Initech", Name: "Acme"}},
		"a tenant with a wide logo":          {acme(wide), square, doorward.Header{Logo: wide, Alt: "Acme"}},
		"a tenant with a square logo":        {acme(square), wide, doorward.Header{Logo: square, Name: "Acme"}},
		"a tenant named as the installation": {doorward.Tenant{Name: "Initech"}, wide, doorward.Header{Logo: wide, Alt: "Initech"}},
	} {
		if got := doorward.HeaderOf(c.tenant, doorward.Brand{Logo: c.own}, "Initech"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
