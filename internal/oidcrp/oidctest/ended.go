package oidctest

import (
	"encoding/json"
	"maps"
	"time"
)

// What is in the type of the header of tokens by which a provider ends sign-ins.
const (
	TypeRevocation = "global-token-revocation+jwt"
	TypeLogout     = "logout+jwt"
)

// LogoutEvent is the member of events that makes a token a logout token.
const LogoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// Revocation returns a token by which the provider revokes somebody at the address (draft-parecki-oauth-global-token-revocation).
// changes replace claims; a nil one takes its claim away.
func (p *Provider) Revocation(audience string, changes map[string]any) string {
	return p.Ending(TypeRevocation, map[string]any{"aud": audience}, changes)
}

// Logout returns a logout token for the client (OpenID Connect Back-Channel Logout 1.0, section 2.4). changes are
// those of Revocation: it needs sub or sid.
func (p *Provider) Logout(clientID string, changes map[string]any) string {
	events := map[string]any{LogoutEvent: map[string]any{}}
	return p.Ending(TypeLogout, map[string]any{"aud": clientID, "events": events}, changes)
}

// Ending returns a token of the type (empty: none), which is good for two minutes and has a jti of its own.
func (p *Provider) Ending(typ string, claims ...map[string]any) string {
	s := p.current()
	now := s.Now()
	all := map[string]any{"iss": p.Issuer(), "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": random()}
	for _, some := range claims {
		maps.Copy(all, some)
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err) // a lie that isn't JSON is a fault of the test
	}
	header := map[string]any{}
	if typ != "" {
		header["typ"] = typ
	}
	return p.sign(s.Algorithm, header, payload)
}
