package xmlsec

import (
	"crypto/rsa"
	"slices"
	"strings"

	"github.com/beevik/etree"
	"github.com/crewjam/saml/xmlenc"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// The algorithms of encryption, as our metadata name them.
const (
	OAEP      = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"
	oaep11    = "http://www.w3.org/2009/xmlenc11#rsa-oaep"
	AES128GCM = "http://www.w3.org/2009/xmlenc11#aes128-gcm"
	AES256GCM = "http://www.w3.org/2009/xmlenc11#aes256-gcm"
)

var (
	// keyTransports: RSA PKCS #1 v1.5 isn't among them, which tells by its errors what a ciphertext holds.
	keyTransports = []string{OAEP, oaep11}
	// ciphers show that nothing was changed. cbcCiphers don't, so they are taken only in a signed response, which is
	// verified before (saml-core errata E93).
	ciphers    = []string{AES256GCM, AES128GCM, "http://www.w3.org/2009/xmlenc11#aes192-gcm"}
	cbcCiphers = []string{
		"http://www.w3.org/2001/04/xmlenc#aes256-cbc", "http://www.w3.org/2001/04/xmlenc#aes128-cbc", "http://www.w3.org/2001/04/xmlenc#aes192-cbc",
	}
)

func encryption(seen, wanted, advice string) *fault.Fault {
	return &fault.Fault{Check: fault.CheckEncryption, Seen: fault.Clip(seen), Wanted: fault.Clip(wanted), Advice: advice}
}

// Decrypt returns what an EncryptedAssertion holds, as text that has to pass package gate. A nil key decrypts nothing.
// isCovered says that a verified signature covers the ciphertext. Errors: a *fault.Fault with encryption, which says
// nothing of what was decrypted.
func Decrypt(el *etree.Element, key *rsa.PrivateKey, isCovered bool) ([]byte, *fault.Fault) {
	data := dom.Only(el, dom.Encryption, "EncryptedData")
	if data == nil {
		return nil, encryption("no EncryptedData", "one", fault.AdviceEncryption)
	}
	if key == nil {
		return nil, encryption("an encrypted assertion", "none, or \"encrypt\" set for this connection", fault.AdviceEncryption)
	}
	wrapped, f := checkEncryption(el, data, isCovered)
	if f != nil {
		return nil, f
	}
	secret, err := xmlenc.Decrypt(key, wrapped)
	if err != nil {
		return nil, undecrypted()
	}
	data = data.Copy()
	for _, info := range dom.Children(data, dom.Signature, "KeyInfo") {
		data.RemoveChild(info) // package xmlenc would look for the key in it
	}
	plain, err := xmlenc.Decrypt(secret, data)
	if err != nil {
		return nil, undecrypted()
	}
	return plain, nil
}

// undecrypted is one fault for a wrong key and a wrong text.
func undecrypted() *fault.Fault {
	return encryption("an assertion that can't be decrypted", "the key in our metadata", fault.AdviceEncryption)
}

// checkEncryption checks the algorithms, and returns the EncryptedKey: within EncryptedData, or beside it.
func checkEncryption(el, data *etree.Element, isCovered bool) (*etree.Element, *fault.Fault) {
	keys := append(dom.Children(el, dom.Encryption, "EncryptedKey"), keysWithin(data)...)
	if len(keys) != 1 || dom.Count(el, "EncryptedKey") != 1 || dom.Count(el, "EncryptedData") != 1 {
		return nil, encryption("no EncryptedKey, or several", "one", fault.AdviceEncryption)
	}
	if method := methodOf(keys[0]); !slices.Contains(keyTransports, method) {
		return nil, encryption(method, OAEP, fault.AdviceEncryption)
	}
	method := methodOf(data)
	switch isCBC := slices.Contains(cbcCiphers, method); {
	case isCBC && !isCovered:
		return nil, encryption(method, "AES-GCM, or a signed response", fault.AdviceSignToo)
	case !isCBC && !slices.Contains(ciphers, method):
		return nil, encryption(method, strings.Join(ciphers[:2], " "), fault.AdviceEncryption)
	}
	return keys[0], nil
}

func keysWithin(data *etree.Element) []*etree.Element {
	if info := dom.Only(data, dom.Signature, "KeyInfo"); info != nil {
		return dom.Children(info, dom.Encryption, "EncryptedKey")
	}
	return nil
}

func methodOf(el *etree.Element) string {
	if method := dom.Only(el, dom.Encryption, "EncryptionMethod"); method != nil {
		return dom.Attribute(method, "Algorithm")
	}
	return "no EncryptionMethod"
}
