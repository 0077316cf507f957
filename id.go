package doorward

import (
	"crypto/rand"
	"strings"
)

// The prefixes of ids.
const (
	PrefixUser         = "usr_"
	PrefixTenant       = "tnt_"
	PrefixInvitation   = "inv_"
	PrefixSession      = "ses_"
	PrefixKey          = "key_"
	PrefixEvent        = "evt_"
	PrefixDecision     = "dec_"
	PrefixMail         = "msg_"
	PrefixReset        = "rst_"
	PrefixChange       = "chg_" // of an address
	PrefixRequest      = "req_"
	PrefixRole         = "rol_"
	PrefixWebhook      = "whk_"
	PrefixDelivery     = "whd_"
	PrefixPage         = "opg_" // of the operator
	PrefixConnection   = "con_"
	PrefixIdentity     = "idn_"
	PrefixGroup        = "grp_"
	PrefixDomain       = "dom_"
	PrefixClientSecret = "ccs_" // of a connection
	PrefixSCIMSecret   = "scs_" // of a connection's directory
	PrefixRun          = "run_" // of a connection's directory
	PrefixTest         = "tst_" // of a connection
	PrefixSetupLink    = "stl_"
)

// NewID returns a new opaque id with the prefix and 130 random bits. It is in lower case, so
// that ids also differ where letter case is ignored.
func NewID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }
