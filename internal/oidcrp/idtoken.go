package oidcrp

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/doorward/doorward/internal/oidcrp/keyset"
)

// header is that of a signed token. Keys and addresses in it are not read.
type header struct {
	Alg      string         `json:"alg"`
	Kid      string         `json:"kid"`
	Typ      string         `json:"typ"`
	Critical jsontext.Value `json:"crit"`
}

// verified returns the claims of a token that a key of the provider has signed.
func (c *Client) verified(ctx context.Context, d Discovery, token string) (claims, error) {
	_, payload, err := c.Signed(ctx, d, token)
	if err != nil {
		return nil, err
	}
	return parseClaims(payload)
}

// Signed returns the type in the header (typ) and the payload of a token that a key of the provider has signed, by
// an algorithm that it announces for ID tokens. It checks nothing that the payload says. Errors: a *Fault.
func (c *Client) Signed(ctx context.Context, d Discovery, token string) (typ string, payload []byte, err error) {
	head, fault := readHeader(d, token)
	if fault != nil {
		return "", nil, fault
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(head.Alg)})
	if err != nil {
		return "", nil, &Fault{Check: CheckSignature, Seen: "no signed token", Advice: AdviceProvider, Err: err}
	}
	payload, err = c.payload(ctx, d, head, signed)
	return head.Typ, payload, err
}

// parseClaims reads an object of JSON that names nothing twice.
func parseClaims(payload []byte) (claims, error) {
	var read claims
	if err := json.Unmarshal(payload, &read); err != nil || read == nil {
		return nil, &Fault{
			Check: CheckProvider, Seen: "claims that are not an object of JSON, or name one twice", Advice: AdviceProvider,
		}
	}
	return read, nil
}

// readHeader checks form and algorithm.
func readHeader(d Discovery, token string) (header, *Fault) {
	parts := strings.Split(token, ".")
	if len(parts) == 5 {
		return header{}, &Fault{Check: CheckAlg, Seen: "an encrypted token", Wanted: "a signed token", Advice: AdviceSigning}
	}
	var head header
	text, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	if err != nil || len(parts) != 3 {
		return header{}, &Fault{Check: CheckSignature, Seen: "no signed token", Advice: AdviceProvider}
	}
	taken := slices.DeleteFunc(keyset.Algorithms(), func(a string) bool { return !slices.Contains(d.Algorithms, a) })
	switch {
	case !slices.Contains(taken, head.Alg):
		return header{}, &Fault{Check: CheckAlg, Seen: orEmpty(Clip(head.Alg)), Wanted: strings.Join(taken, " "), Advice: AdviceSigning}
	case head.Critical != nil:
		return header{}, &Fault{Check: CheckSignature, Seen: "a critical header (crit)", Advice: AdviceProvider}
	}
	return head, nil
}

// payload returns what the token says, if a key of the provider has signed it. Keys in memory are tried
// first, then those that the provider publishes by now: it may have rotated them, under the same kid,
// too.
func (c *Client) payload(ctx context.Context, d Discovery, head header, signed *jose.JSONWebSignature) ([]byte, error) {
	var fault *Fault
	isPaused := false
	for _, again := range []bool{false, true} {
		isPaused = again && c.keys.IsPaused(d.JWKSURI)
		keys, err := c.keys.At(ctx, d.JWKSURI, again)
		if err != nil {
			return nil, c.unreachable(CheckSignature, withoutAddress(err))
		}
		var text []byte
		if text, fault = signedBy(keys, head, signed); fault == nil {
			return text, nil
		}
	}
	fault.Unread = isPaused && fault.Check == CheckKid
	return nil, fault
}

// signedBy returns what the token says, if one of the keys has signed it.
func signedBy(keys keyset.Keys, head header, signed *jose.JSONWebSignature) ([]byte, *Fault) {
	text, err := keys.Verify(signed, head.Kid, head.Alg)
	switch {
	case err == nil:
		return text, nil
	case errors.Is(err, keyset.ErrUnknown):
		return nil, &Fault{Check: CheckKid, Seen: orEmpty(Clip(head.Kid)), Wanted: kidsOf(keys), Advice: AdviceKeys}
	}
	return nil, &Fault{Check: CheckSignature, Seen: "a signature of another key", Wanted: "one of the published keys", Advice: AdviceKeys}
}

func kidsOf(keys keyset.Keys) string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.KeyID
	}
	return Clip(strings.Join(names, " "))
}
