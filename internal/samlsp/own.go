package samlsp

import (
	"encoding/xml"
	"strings"

	"github.com/doorward/doorward/internal/samlsp/dom"
	"github.com/doorward/doorward/internal/samlsp/xmlsec"
)

// Metadata returns ours, for the connection: where providers send responses, the certificate that signs requests, and
// the one that assertions can be encrypted to. There is no single logout and no artifact in it. It is the same at each
// call, so that a provider that compares sees no change.
func Metadata(c Config) []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	b.WriteString(`<md:EntityDescriptor xmlns:md="` + dom.Metadata + `" xmlns:ds="` + dom.Signature + `" entityID="` + escaped(c.EntityID) + `">`)
	b.WriteString(`<md:SPSSODescriptor AuthnRequestsSigned="` + yesNo(c.Sign != nil) + `" WantAssertionsSigned="true" protocolSupportEnumeration="` + dom.Protocol + `">`)
	if c.Sign != nil {
		b.WriteString(`<md:KeyDescriptor use="signing">` + keyInfo(c.Sign) + `</md:KeyDescriptor>`)
	}
	if c.Decrypt != nil {
		b.WriteString(`<md:KeyDescriptor use="encryption">` + keyInfo(c.Decrypt))
		for _, algorithm := range []string{xmlsec.AES256GCM, xmlsec.AES128GCM, xmlsec.OAEP} {
			b.WriteString(`<md:EncryptionMethod Algorithm="` + algorithm + `"/>`)
		}
		b.WriteString(`</md:KeyDescriptor>`)
	}
	if c.NameIDFormat != "" {
		b.WriteString(`<md:NameIDFormat>` + escaped(c.NameIDFormat) + `</md:NameIDFormat>`)
	}
	b.WriteString(`<md:AssertionConsumerService Binding="` + dom.POST + `" Location="` + escaped(c.ACSURL) + `" index="0" isDefault="true"/>`)
	b.WriteString(`</md:SPSSODescriptor></md:EntityDescriptor>` + "\n")
	return []byte(b.String())
}

func keyInfo(k *Key) string {
	return `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + k.Certificate() + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`
}

func yesNo(yes bool) string {
	if yes {
		return "true"
	}
	return "false"
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}
