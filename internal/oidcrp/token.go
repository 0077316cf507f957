package oidcrp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/doorward/doorward/internal/oidcrp/cause"
)

// exchange gives the code to the token endpoint, and returns the ID token and the index of the secret
// that the provider took, -1 without one.
func (c *Client) exchange(ctx context.Context, d Discovery, cfg Config, f Flow, code string) (token string, used int, err error) {
	if cfg.Auth == PrivateKeyJWT {
		token, _, err = c.tryAuth(ctx, d, cfg, f, code, "")
		return token, -1, err
	}
	err = &Fault{Check: CheckClient, Seen: "no client secret", Wanted: "a client secret", Advice: AdviceClientSecret}
	for i, secret := range cfg.Secrets {
		var isRefused bool
		if token, isRefused, err = c.tryAuth(ctx, d, cfg, f, code, secret); !isRefused {
			return token, i, err
		}
	}
	return "", -1, err
}

// tryAuth is one attempt of exchange. isRefused reports whether the provider refused the client's
// authentication, so that the code is still good.
func (c *Client) tryAuth(ctx context.Context, d Discovery, cfg Config, f Flow, code, secret string) (token string, isRefused bool, err error) {
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(f.Verifier)}
	if cfg.Auth == PrivateKeyJWT {
		proof, err := c.clientAssertion(d, cfg)
		if err != nil {
			return "", false, err
		}
		options = append(options, proof...)
	}
	answer, err := cfg.oauth(d, secret).Exchange(context.WithValue(ctx, oauth2.HTTPClient, c.http), code, options...)
	if err != nil {
		fault := c.exchangeFault(ctx, err, cfg, secret, code, f.Verifier)
		return "", fault.Check == CheckClient, fault
	}
	token, _ = answer.Extra("id_token").(string)
	if token == "" {
		return "", false, &Fault{Check: CheckProvider, Seen: "no id_token", Wanted: "an id_token", Advice: AdviceScope}
	}
	return token, false, nil
}

// clientAssertion returns the parameters of private_key_jwt.
func (c *Client) clientAssertion(d Discovery, cfg Config) ([]oauth2.AuthCodeOption, error) {
	if cfg.Key == nil {
		return nil, &Fault{Check: CheckClient, Seen: "no client key", Wanted: "a client key", Advice: AdviceClientKey}
	}
	audience := d.Issuer
	if cfg.AudienceIsTokenEndpoint {
		audience = d.TokenEndpoint
	}
	assertion, err := cfg.Key.assertion(cfg.ClientID, audience, c.now())
	if err != nil {
		return nil, &Fault{Check: CheckClient, Unavailable: true, Advice: AdviceRetry, Err: err}
	}
	return []oauth2.AuthCodeOption{
		oauth2.SetAuthURLParam("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
		oauth2.SetAuthURLParam("client_assertion", assertion),
	}, nil
}

// exchangeFault says what the token endpoint's answer means. Without an error code of OAuth 2.0 nobody
// refused anything: a gateway's page, a fault, no answer. The error of package oauth2 is dropped, since
// it holds the whole answer.
func (c *Client) exchangeFault(ctx context.Context, err error, cfg Config, secrets ...string) *Fault {
	refusal, isAnswer := errors.AsType[*oauth2.RetrieveError](err)
	if !isAnswer {
		if _, isNetwork := errors.AsType[*url.Error](err); !isNetwork && ctx.Err() == nil {
			err = errNotJSON
		}
		return c.unreachable(CheckProvider, withoutAddress(err))
	}
	status := cause.StatusError(refusal.Response.StatusCode)
	isFault := status >= 500 || status == http.StatusTooManyRequests || refusal.ErrorCode == "" || slices.Contains(passing, refusal.ErrorCode)
	fault := providerFault(refusal.ErrorCode, refusal.ErrorDescription, secrets...)
	fault.Err = status
	switch {
	case isFault:
		why, seen := cause.Of(status)
		fault.Unavailable, fault.Advice = true, cmp.Or(adviceAbout[why], AdviceRetry)
		if fault.Seen == "" {
			fault.Seen = seen
		}
	case isClientRefused(refusal.ErrorCode, status):
		fault.Check = CheckClient
		if fault.Advice = AdviceClientSecret; cfg.Auth == PrivateKeyJWT {
			fault.Advice = AdviceClientKey
		}
	}
	return fault
}

// isClientRefused reports whether the authentication was refused. Keycloak says unauthorized_client with
// 401 for a wrong secret, where RFC 6749 has invalid_client.
func isClientRefused(code string, status cause.StatusError) bool {
	return code == "invalid_client" || code == "unauthorized_client" && status == http.StatusUnauthorized
}

// passing are the error codes by which a provider says that it can't answer now.
var passing = []string{"server_error", "temporarily_unavailable", "slow_down"}

// adviceOf has the advice for the error codes of RFC 6749 (4.1.2.1, 5.2) and OpenID Connect Core 1.0
// (3.1.2.6).
var adviceOf = map[string]string{
	"access_denied":              AdviceAssignment,
	"consent_required":           AdviceConsent,
	"interaction_required":       AdviceConsent,
	"invalid_scope":              AdviceScope,
	"unauthorized_client":        AdviceClientID,
	"unsupported_response_type":  AdviceClientID,
	"unsupported_grant_type":     AdviceClientID,
	"invalid_client":             AdviceClientID,
	"login_required":             AdviceStartAgain,
	"account_selection_required": AdviceStartAgain,
	"invalid_grant":              AdviceStartAgain,
	"redirect_uri_mismatch":      AdviceRedirectURI, // Google's, as the next one
	"org_internal":               AdviceAssignment,
	"server_error":               AdviceRetry,
	"temporarily_unavailable":    AdviceRetry,
}

// adviceBy has words of descriptions that say more than the code, such as Entra's AADSTS50011.
var adviceBy = []struct{ word, advice string }{
	{"redirect", AdviceRedirectURI},
	{"aadsts50011", AdviceRedirectURI},
	{"pkce", AdvicePKCE},
	{"code_verifier", AdvicePKCE},
	{"code verifier", AdvicePKCE},
	{"code_challenge", AdvicePKCE},
	{"code challenge", AdvicePKCE},
	{"aadsts65001", AdviceConsent},
	{"consent", AdviceConsent},
	{"aadsts50105", AdviceAssignment},
	{"not assigned", AdviceAssignment},
	{"aadsts700016", AdviceClientID},
}

// providerFault returns the fault of an error of the provider, with what helps.
func providerFault(code, description string, secrets ...string) *Fault {
	fault := &Fault{Check: CheckProvider, Seen: said(code, secrets...), Advice: adviceOf[code]}
	if description != "" {
		fault.Seen = said(code+": "+description, secrets...)
	}
	lower := strings.ToLower(description)
	for _, known := range adviceBy {
		if strings.Contains(lower, known.word) {
			fault.Advice = known.advice
			break
		}
	}
	if fault.Advice == "" {
		fault.Advice = AdviceProvider
	}
	fault.Unavailable = slices.Contains(passing, code)
	return fault
}
