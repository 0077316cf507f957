package oidcrp

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/doorward/doorward/internal/oidcrp/keyset"
)

// Discovery is what Doorward needs of a provider's document (OpenID Connect Discovery 1.0, section 3).
// It can be kept as JSON.
type Discovery struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorizationEndpoint"`
	TokenEndpoint         string   `json:"tokenEndpoint"`
	JWKSURI               string   `json:"jwksUri"`
	Algorithms            []string `json:"algorithms"`              // of ID tokens, of those that Doorward takes
	PromisesIss           bool     `json:"promisesIss"`             // of each callback (RFC 9207, section 3)
	TokenAuthMethods      []string `json:"tokenAuthMethods"`        // of the token endpoint
	HasGroupsScope        bool     `json:"hasGroupsScope,omitzero"` // the scope "groups" is announced
}

// document is the provider's own form.
type document struct {
	Issuer                string         `json:"issuer"`
	AuthorizationEndpoint string         `json:"authorization_endpoint"`
	TokenEndpoint         string         `json:"token_endpoint"`
	JWKSURI               string         `json:"jwks_uri"`
	Algorithms            []string       `json:"id_token_signing_alg_values_supported"`
	PromisesIss           bool           `json:"authorization_response_iss_parameter_supported"`
	TokenAuthMethods      []string       `json:"token_endpoint_auth_methods_supported"`
	Scopes                jsontext.Value `json:"scopes_supported"`
}

// Discover reads the provider's document, under the issuer's address. Errors: a *Fault with
// CheckOfIssuer and one of its codes; those of CodeUnreachable and CodeAddressRefused are Unavailable.
func (c *Client) Discover(ctx context.Context, issuer string) (Discovery, error) {
	if err := CheckIssuer(issuer); err != nil {
		return Discovery{}, err
	}
	body, err := c.getJSON(ctx, strings.TrimSuffix(issuer, "/")+documentPath)
	if err != nil {
		return Discovery{}, c.unreachable(CheckOfIssuer, withoutAddress(err))
	}
	var read document
	if err := json.Unmarshal(body, &read); err != nil {
		return Discovery{}, c.unreachable(CheckOfIssuer, errNotJSON)
	}
	if fault := read.check(issuer); fault != nil {
		return Discovery{}, fault
	}
	return read.discovery(), nil
}

// check returns the fault of the document, nil if it has none.
func (d document) check(issuer string) *Fault {
	switch {
	case isTemplate(d.Issuer):
		return multiTenant(d.Issuer)
	case d.Issuer != issuer:
		return &Fault{
			Check: CheckOfIssuer, Code: CodeIssuerMismatch, Seen: Clip(d.Issuer), Wanted: Clip(issuer), Advice: AdviceIssuer,
		}
	}
	for _, endpoint := range []string{d.AuthorizationEndpoint, d.TokenEndpoint, d.JWKSURI} {
		if _, ok := plainURL(endpoint); !ok {
			return &Fault{
				Check: CheckOfIssuer, Code: CodeInvalid, Seen: Clip(endpoint), Advice: AdviceProvider,
				Wanted: "endpoints with https for authorization, tokens and keys",
			}
		}
	}
	if d.algorithms() == nil {
		return &Fault{
			Check: CheckOfIssuer, Code: CodeInvalid, Seen: Clip(strings.Join(d.Algorithms, " ")),
			Wanted: strings.Join(keyset.Algorithms(), " "), Advice: AdviceSigning,
		}
	}
	return nil
}

func (d document) discovery() Discovery {
	methods := d.TokenAuthMethods
	if methods == nil {
		methods = []string{"client_secret_basic"} // the default of the specification
	}
	methods = slices.DeleteFunc(slices.Clone(methods), func(m string) bool { return Clip(m) != m })
	scopes, _ := claims{groupsScope: d.Scopes}.texts(groupsScope)
	return Discovery{
		Issuer: d.Issuer, AuthorizationEndpoint: d.AuthorizationEndpoint, TokenEndpoint: d.TokenEndpoint,
		JWKSURI: d.JWKSURI, Algorithms: d.algorithms(), PromisesIss: d.PromisesIss,
		TokenAuthMethods: methods[:min(len(methods), 20)],
		HasGroupsScope:   slices.Contains(scopes, groupsScope),
	}
}

// algorithms returns which of the announced ones Doorward takes; nil: none. RS256 is what a provider
// without an announcement has to sign by.
func (d document) algorithms() []string {
	if d.Algorithms == nil {
		return []string{"RS256"}
	}
	var taken []string
	for _, name := range keyset.Algorithms() {
		if slices.Contains(d.Algorithms, name) {
			taken = append(taken, name)
		}
	}
	return taken
}

// CountKeys reads the keys that the provider publishes, and returns how many verify signatures. Errors: a *Fault
// with CheckSignature, Unavailable.
func (c *Client) CountKeys(ctx context.Context, d Discovery) (int, error) {
	keys, err := c.keys.At(ctx, d.JWKSURI, true)
	if err != nil {
		return 0, c.unreachable(CheckSignature, withoutAddress(err))
	}
	return len(keys), nil
}
