package samlsp

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/xmlsec"
)

// Ask is one request.
type Ask struct {
	// RelayState comes back with the response. It is visible to the provider, so it is never an address: at most
	// RelayStateMax bytes that mean something to the caller alone; empty: none.
	RelayState string
	// Fresh asks the provider to sign the person in again (ForceAuthn), and makes Finish demand an AuthnInstant since
	// then.
	Fresh bool
	// Contexts are the authentication contexts of which one is demanded, for a Fresh sign-in; empty: any. Compare
	// Asserted.Methods with them.
	Contexts []string
	// Trial says that the Config is one that is only tried. The provider can't tell; Response.Trial says so, too.
	Trial bool
}

// Start returns where the browser goes, and the id of the request that it takes there (saml-bindings 3.4). Keep the id
// in the browser's cookie, sealed: Response.RequestID has to be the same. Errors: a RelayState that is too long, a MACKey
// that is too short, those of the signature.
func Start(c Config, ask Ask, now time.Time) (address, id string, err error) {
	if len(ask.RelayState) > RelayStateMax {
		return "", "", errors.New("samlsp: the RelayState has more than 80 bytes")
	}
	if len(c.MACKey) < macKeyMin {
		return "", "", errors.New("samlsp: the MACKey has less than 32 bytes")
	}
	id = c.newID(now, ask)
	query := "SAMLRequest=" + url.QueryEscape(deflated(c.request(ask, id, now)))
	if ask.RelayState != "" {
		query += "&RelayState=" + url.QueryEscape(ask.RelayState)
	}
	if c.Sign != nil {
		if query, err = c.Sign.signed(query); err != nil {
			return "", "", err
		}
	}
	joint := "?"
	if strings.Contains(c.Provider.SSOURL, "?") {
		joint = "&"
	}
	return c.Provider.SSOURL + joint + query, id, nil
}

// signed adds a signature to the query (saml-bindings 3.4.4.1): it covers the text as it is sent.
func (k *Key) signed(query string) (string, error) {
	query += "&SigAlg=" + url.QueryEscape(xmlsec.RSASHA256)
	digest := sha256.Sum256([]byte(query))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.private, crypto.SHA256, digest[:])
	return query + "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature)), err
}

// request returns an AuthnRequest (saml-core 3.4.1). It names nobody.
func (c Config) request(ask Ask, id string, now time.Time) string {
	var b strings.Builder
	b.WriteString(`<samlp:AuthnRequest xmlns:samlp="` + dom.Protocol + `" xmlns:saml="` + dom.Assertion + `" ID="` + id + `" Version="2.0"`)
	b.WriteString(` IssueInstant="` + now.UTC().Format("2006-01-02T15:04:05Z") + `" Destination="` + escaped(c.Provider.SSOURL) + `"`)
	if ask.Fresh {
		b.WriteString(` ForceAuthn="true"`)
	}
	b.WriteString(` ProtocolBinding="` + dom.POST + `" AssertionConsumerServiceURL="` + escaped(c.ACSURL) + `">`)
	b.WriteString(`<saml:Issuer>` + escaped(c.EntityID) + `</saml:Issuer>`)
	if c.NameIDFormat != "" {
		b.WriteString(`<samlp:NameIDPolicy Format="` + escaped(c.NameIDFormat) + `" AllowCreate="true"/>`)
	}
	if ask.Fresh && len(ask.Contexts) > 0 {
		b.WriteString(`<samlp:RequestedAuthnContext Comparison="exact">`)
		for _, context := range ask.Contexts {
			b.WriteString(`<saml:AuthnContextClassRef>` + escaped(context) + `</saml:AuthnContextClassRef>`)
		}
		b.WriteString(`</samlp:RequestedAuthnContext>`)
	}
	b.WriteString(`</samlp:AuthnRequest>`)
	return b.String()
}

// deflated returns the text in the encoding of HTTP-Redirect (saml-bindings 3.4.4.1).
func deflated(text string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level exists
	_, _ = w.Write([]byte(text))                       // a bytes.Buffer takes everything
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// The id of a request is "_", which an XML id may begin with, and in base64url: a byte of flags, the second in which
// it was made, random bits, and a MAC over these and the connection. So acs, which has neither cookie nor row, knows
// that it was made here, for this connection, and when.
const (
	idFlagFresh  = 1
	idFlagTrial  = 2
	idTimeBytes  = 6
	idRandom     = 16
	idBody       = 1 + idTimeBytes + idRandom
	idMAC        = 16 // 128 bits; guesses are tried at acs only
	idMACPurpose = "doorward saml request\x00"
	macKeyMin    = 32
)

func (c Config) newID(now time.Time, ask Ask) string {
	var second [8]byte
	binary.BigEndian.PutUint64(second[:], uint64(now.Unix()))
	body := make([]byte, idBody, idBody+idMAC)
	if ask.Fresh {
		body[0] |= idFlagFresh
	}
	if ask.Trial {
		body[0] |= idFlagTrial
	}
	copy(body[1:], second[8-idTimeBytes:])
	_, _ = rand.Read(body[1+idTimeBytes:]) // it doesn't fail
	return "_" + base64.RawURLEncoding.EncodeToString(append(body, c.mac(body)...))
}

// readID returns when and with which flags newID wrote the id; ok is false for one that wasn't made here for this
// connection.
func (c Config) readID(id string) (began time.Time, flags byte, ok bool) {
	encoded, has := strings.CutPrefix(id, "_")
	all, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if len(c.MACKey) < macKeyMin || !has || err != nil || len(all) != idBody+idMAC {
		return time.Time{}, 0, false
	}
	body, mac := all[:idBody], all[idBody:]
	if !hmac.Equal(mac, c.mac(body)) {
		return time.Time{}, 0, false
	}
	second := binary.BigEndian.Uint64(append([]byte{0, 0}, body[1:1+idTimeBytes]...))
	return time.Unix(int64(second), 0), body[0], true
}

func (c Config) mac(body []byte) []byte {
	h := hmac.New(sha256.New, c.MACKey)
	h.Write([]byte(idMACPurpose + c.ConnectionID + "\x00"))
	h.Write(body)
	return h.Sum(nil)[:idMAC]
}
