package oidcrp

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Asserted is what a provider says of somebody.
type Asserted struct {
	Subject         string
	Session         string // of the provider, by which it can end this sign-in (claim sid); empty: it names none
	Address         string // empty: the claim is absent, no text, or can't be an address
	AddressVerified bool   // only if the address is of the claim email, and email_verified is JSON true
	Groups          Groups
	AMR             []string // nil: absent, or no list of texts
	ACR             string
	AuthTime        time.Time // zero: absent
	IssuedAt        time.Time
	UsedSecret      int // index in Config.Secrets; -1: none

	// Claims are the claims that Doorward reads, with bounded values, and Names the names of all. With a
	// fault of a check after the signature's they are there, too: a test shows them.
	Claims map[string]any
	Names  []string
}

// Groups are those of the claim that Config.GroupsClaim names.
type Groups struct {
	State GroupsState
	Names []string // of GroupsList
}

// GroupsState says in which form groups came.
type GroupsState string

// The forms of groups.
const (
	GroupsAbsent    GroupsState = ""          // no claim, or none is asked for
	GroupsList      GroupsState = "list"      // a list of texts, which may be empty
	GroupsOverage   GroupsState = "overage"   // too many for a token; the provider names an address instead
	GroupsMalformed GroupsState = "malformed" // anything else
)

// Finish ends a sign-in at the callback: it gives the code to the provider, and checks what it answers.
// It sends nothing unless state, iss and error of the callback are right. Errors: a *Fault, with one of
// Checks. The context bounds the time.
func (c *Client) Finish(ctx context.Context, d Discovery, cfg Config, f Flow, callback url.Values) (Asserted, error) {
	none := Asserted{UsedSecret: -1}
	code, fault := checkCallback(d, cfg, f, callback)
	if fault != nil {
		return none, fault
	}
	token, used, err := c.exchange(ctx, d, cfg, f, code)
	if err != nil {
		return none, err
	}
	read, err := c.verified(ctx, d, token)
	if err != nil {
		return none, err
	}
	shown := Asserted{UsedSecret: used, Claims: read.shown(cfg), Names: read.names()}
	if fault := read.check(d, cfg, f, c.now()); fault != nil {
		return shown, fault
	}
	return read.asserted(cfg, shown), nil
}

// asserted fills in what the checked claims say.
func (c claims) asserted(cfg Config, a Asserted) Asserted {
	a.Subject, _ = c.text("sub")
	a.Session, _ = c.text("sid")
	a.Address = c.address(cfg.emailClaim())
	a.AddressVerified = a.Address != "" && cfg.emailClaim() == "email" && c.isTrue("email_verified")
	a.Groups = c.groups(cfg.GroupsClaim)
	a.AMR = c.methods()
	if acr, ok := c.text("acr"); ok && len(acr) <= acrMax {
		a.ACR = acr
	}
	a.AuthTime, _ = c.time("auth_time")
	a.IssuedAt, _ = c.time("iat")
	return a
}

func (c Config) emailClaim() string {
	if c.EmailClaim == "" {
		return "email"
	}
	return c.EmailClaim
}

const (
	addressMax = 254 // bytes of an address (RFC 5321, errata 1690)
	acrMax     = 255
	amrMax     = 20 // methods; each of at most 64 bytes
	shownMax   = 100
)

func (c claims) address(name string) string {
	address, _ := c.text(name)
	if len(address) > addressMax || strings.ContainsFunc(address, unicode.IsControl) {
		return ""
	}
	return address
}

func (c claims) methods() []string {
	methods, ok := c.texts("amr")
	if !ok || len(methods) > amrMax || slices.ContainsFunc(methods, func(m string) bool { return len(m) > 64 }) {
		return nil
	}
	return methods
}

// groups reads the claim with the groups. Entra names an address instead of more than 200 of them
// (learn.microsoft.com, "Groups overage claim"): that is never called.
func (c claims) groups(name string) Groups {
	if name == "" {
		return Groups{}
	}
	if c.isOverage(name) {
		return Groups{State: GroupsOverage}
	}
	if _, isThere := c[name]; !isThere {
		return Groups{State: GroupsAbsent}
	}
	names, ok := c.texts(name)
	if !ok {
		return Groups{State: GroupsMalformed}
	}
	return Groups{GroupsList, names}
}

func (c claims) isOverage(name string) bool {
	var elsewhere map[string]jsontext.Value
	if raw := c["_claim_names"]; raw.Kind() == '{' && json.Unmarshal(raw, &elsewhere) == nil {
		if _, isElsewhere := elsewhere[name]; isElsewhere {
			return true
		}
	}
	text, _ := c.text("hasgroups")
	_, hasLink := c["groups.link"]
	return hasLink || c.isTrue("hasgroups") || strings.EqualFold(text, "true")
}

// mappedClaims are shown with their values, beside those that Config names.
var mappedClaims = []string{
	"sub", "iss", "aud", "azp", "exp", "iat", "nbf", "auth_time", "acr", "amr", "name", "tid", "hd", "email", "email_verified",
}

// shown returns the mapped claims, bounded.
func (c claims) shown(cfg Config) map[string]any {
	out := make(map[string]any)
	for _, name := range append(slices.Clone(mappedClaims), cfg.emailClaim(), cfg.GroupsClaim) {
		if raw, ok := c[name]; ok && name != "" {
			out[name] = c.bounded(name, raw)
		}
	}
	return out
}

// bounded returns a value as it can be kept and shown: a text, a number, a list of texts. Anything else
// is its JSON, cut off.
func (c claims) bounded(name string, raw jsontext.Value) any {
	if text, ok := c.text(name); ok {
		return Clip(text)
	}
	if list, ok := c.texts(name); ok {
		for i, text := range list {
			list[i] = Clip(text)
		}
		return list[:min(len(list), shownMax)]
	}
	switch raw.Kind() {
	case 't', 'f':
		return raw.Kind() == 't'
	case '0':
		var number float64
		if json.Unmarshal(raw, &number) == nil {
			return number
		}
	}
	return Clip(string(raw))
}

// names returns the names of all claims, sorted and bounded, so that a test shows what the provider
// sends.
func (c claims) names() []string {
	names := slices.Sorted(maps.Keys(c))
	names = names[:min(len(names), shownMax)]
	for i, name := range names {
		names[i] = Clip(name)
	}
	return names
}
