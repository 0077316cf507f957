// Package dom reads SAML's elements: by namespace and local name, and attributes without a prefix.
//
//	root, err := dom.Parse(text) // which has passed package gate
//	issuer := dom.Text(dom.Only(root, dom.Assertion, "Issuer"))
package dom

import (
	"strings"
	"time"

	"github.com/beevik/etree"
)

// The namespaces of elements: of SAML 2.0, XML Signature and XML Encryption.
const (
	Protocol   = "urn:oasis:names:tc:SAML:2.0:protocol"
	Assertion  = "urn:oasis:names:tc:SAML:2.0:assertion"
	Metadata   = "urn:oasis:names:tc:SAML:2.0:metadata"
	Signature  = "http://www.w3.org/2000/09/xmldsig#"
	Encryption = "http://www.w3.org/2001/04/xmlenc#"
)

// The bindings.
const (
	Redirect = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
	POST     = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
)

// Parse returns the root element of a text that has passed the gate. Errors: no XML.
func Parse(text []byte) (*etree.Element, error) {
	document := etree.NewDocument()
	if err := document.ReadFromBytes(text); err != nil {
		return nil, err
	}
	return document.Root(), nil
}

// Is reports whether the element has the name.
func Is(el *etree.Element, namespace, tag string) bool {
	return el != nil && el.Tag == tag && el.NamespaceURI() == namespace
}

// Children returns the child elements of the name.
func Children(el *etree.Element, namespace, tag string) (found []*etree.Element) {
	for _, child := range el.ChildElements() {
		if Is(child, namespace, tag) {
			found = append(found, child)
		}
	}
	return found
}

// Only returns the child element of the name; nil: there is none, or there are several.
func Only(el *etree.Element, namespace, tag string) *etree.Element {
	if el == nil {
		return nil
	}
	if found := Children(el, namespace, tag); len(found) == 1 {
		return found[0]
	}
	return nil
}

// Attribute returns the value of the attribute without a prefix; empty: absent. etree's own SelectAttr takes one
// with any prefix.
func Attribute(el *etree.Element, name string) string {
	for i := range el.Attr {
		if a := &el.Attr[i]; a.Space == "" && a.Key == name {
			return a.Value
		}
	}
	return ""
}

// Text returns the whole text of an element, around comments and in elements within it, without blanks around it:
// those of XML, so that a name with another kind of blank stays another name.
func Text(el *etree.Element) string {
	if el == nil {
		return ""
	}
	var all strings.Builder
	write(&all, el)
	return Trim(all.String())
}

// Trim returns the text without the blanks of XML around it.
func Trim(text string) string { return strings.Trim(text, " \t\r\n") }

func write(to *strings.Builder, el *etree.Element) {
	for _, child := range el.Child {
		switch child := child.(type) {
		case *etree.CharData:
			to.WriteString(child.Data)
		case *etree.Element:
			write(to, child)
		}
	}
}

// Count returns how many elements have one of the local names, whatever their namespace: what another reader
// might take for the same.
func Count(el *etree.Element, tags ...string) (n int) {
	for _, tag := range tags {
		if el.Tag == tag {
			n++
		}
	}
	for _, child := range el.ChildElements() {
		n += Count(child, tags...)
	}
	return n
}

// Time returns the time in the attribute, which SAML writes in UTC (saml-core 1.3.3); an offset is read, too.
// Zero: absent. ok is false for anything that is no time.
func Time(el *etree.Element, name string) (at time.Time, ok bool) {
	value := Attribute(el, name)
	if value == "" {
		return time.Time{}, true
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	return at, err == nil
}

// WithoutBlanks returns the text without blanks, as base64 in XML may have them.
func WithoutBlanks(text string) string { return strings.Join(strings.Fields(text), "") }
