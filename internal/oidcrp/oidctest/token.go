package oidctest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// serveToken answers a token request (RFC 6749, section 4.1.3).
func (p *Provider) serveToken(w http.ResponseWriter, r *http.Request, s Settings) {
	if r.Method != http.MethodPost || r.PostForm.Get("grant_type") != "authorization_code" {
		answer(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})
		return
	}
	app, err := p.authenticate(r, s)
	if err != nil {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": err.Error()})
		return
	}
	given, err := p.redeem(app, r)
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": err.Error()})
		return
	}
	body := map[string]any{
		"access_token": random(), "token_type": "Bearer", "expires_in": 300, "id_token": p.idToken(s, given),
	}
	if s.Lies.Token != nil {
		s.Lies.Token(body)
	}
	answer(w, http.StatusOK, body)
}

// authenticate returns the client that sent the request.
func (p *Provider) authenticate(r *http.Request, s Settings) (App, error) {
	id, secret, isBasic := r.BasicAuth()
	method := "client_secret_basic"
	switch {
	case isBasic:
		id, secret = unescape(id), unescape(secret)
	case r.PostForm.Has("client_assertion"):
		id, method = r.PostForm.Get("client_id"), "private_key_jwt"
	default:
		id, secret, method = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret"), "client_secret_post"
	}
	app, err := s.app(id)
	switch {
	case err != nil:
		return App{}, err
	case app.Auth != "" && app.Auth != method || app.Auth == "" && method == "private_key_jwt":
		return App{}, errors.New("another way of authentication is registered")
	case method == "private_key_jwt":
		return app, p.checkAssertion(app, r, s.Now())
	case !slices.Contains(app.Secrets, secret):
		return App{}, errors.New("wrong secret")
	}
	return app, nil
}

func unescape(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return ""
	}
	return plain
}

// checkAssertion checks a client assertion (RFC 7523, section 3).
func (p *Provider) checkAssertion(app App, r *http.Request, now time.Time) error {
	if r.PostForm.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
		return errors.New("another type of assertion")
	}
	signed, err := jose.ParseSignedCompact(r.PostForm.Get("client_assertion"), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return err
	}
	text, err := verifyBy(app, signed)
	if err != nil {
		return err
	}
	var claims struct {
		Iss, Sub, Aud, Jti string
		Iat, Exp           int64
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return err
	}
	audience := p.Issuer()
	if app.AudienceIsTokenEndpoint {
		audience += TokenPath
	}
	at := now.Unix()
	if claims.Iss != app.ID || claims.Sub != app.ID || claims.Aud != audience || claims.Exp <= at || claims.Exp > at+300 || claims.Iat > at+5 {
		return errors.New("iss, sub, aud, iat or exp of the assertion is wrong")
	}
	return p.once(claims.Jti)
}

func verifyBy(app App, signed *jose.JSONWebSignature) ([]byte, error) {
	if app.Keys == nil {
		return nil, errors.New("the client has no keys")
	}
	for _, text := range app.Keys() {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		if !key.IsPublic() {
			return nil, errors.New("the client publishes a private key")
		}
		if key.KeyID == signed.Signatures[0].Header.KeyID {
			return signed.Verify(key)
		}
	}
	return nil, errors.New("the client has no key of this kid")
}

// once refuses a client assertion that has been used.
func (p *Provider) once(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == "" || p.proofs[id] {
		return errors.New("the assertion has been used")
	}
	p.proofs[id] = true
	return nil
}

// redeem returns what the code stands for, once.
func (p *Provider) redeem(app App, r *http.Request) (*grant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := r.PostForm.Get("code")
	given := p.grants[code]
	delete(p.grants, code)
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	switch {
	case given == nil || given.client != app.ID:
		return nil, errors.New("the code is unknown, or has been used")
	case given.redirect != r.PostForm.Get("redirect_uri"):
		return nil, errors.New("another redirect_uri")
	case base64.RawURLEncoding.EncodeToString(sum[:]) != given.challenge:
		return nil, errors.New("wrong code_verifier")
	}
	return given, nil
}

// idToken returns the signed ID token, with all lies.
func (p *Provider) idToken(s Settings, given *grant) string {
	now := s.Now()
	claims := map[string]any{
		"iss": p.Issuer(), "sub": given.person.Subject, "aud": given.client, "nonce": given.nonce,
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "auth_time": given.at.Unix(),
	}
	if given.person.Email != "" {
		claims["email"], claims["email_verified"] = given.person.Email, given.person.IsVerified
	}
	for name, value := range given.person.Claims {
		claims[name] = value
	}
	if s.Lies.Claims != nil {
		s.Lies.Claims(claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err) // a lie that isn't JSON is a fault of the test
	}
	if s.Lies.Payload != nil {
		payload = s.Lies.Payload(payload)
	}
	return p.Sign(s.Algorithm, payload)
}
