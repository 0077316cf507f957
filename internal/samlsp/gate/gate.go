// Package gate refuses XML that no provider sends before a parser builds a tree of it.
//
//	if err := gate.Check(text); err != nil { … } // a *gate.Error, which says what kind of fault it is
//
// It reads tokens only, so a text that is refused costs no more than its own size. A text that passes:
//
//   - has at most SizeMax bytes of UTF-8, one root element, and nothing but blanks and comments around it;
//   - has no document type (so no entities but the five of XML) and no processing instruction;
//   - has at most DepthMax levels, ElementsMax elements, and in one element at most NamespacesMax
//     declarations and AttributesMax attributes, all with different names;
//   - declares each prefix that it uses, and has each id once.
//
// What these limits stop: entities that expand, trees that take a hundred times the memory of their text,
// and texts that two parsers read as different trees.
package gate

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// The limits. A response of a large directory has some hundred elements; one for each group of the person.
const (
	SizeMax       = 256 << 10 // bytes
	DepthMax      = 40
	ElementsMax   = 5000
	NamespacesMax = 64  // declarations in one element
	AttributesMax = 200 // in one element, without those declarations
)

// Kind says what is wrong with a text.
type Kind string

// The kinds of faults.
const (
	Size    Kind = "size"      // more than SizeMax
	Doctype Kind = "doctype"   // a document type
	Limit   Kind = "limit"     // another of the limits
	Form    Kind = "structure" // no XML, or XML that parsers read differently
)

// Error is a fault. What says what is wrong, and holds nothing of the text but names of elements and attributes.
type Error struct {
	Kind Kind
	What string
}

// Error says what is wrong.
func (e *Error) Error() string { return "XML refused: " + e.What }

func fault(kind Kind, format string, parts ...any) error {
	return &Error{kind, fmt.Sprintf(format, parts...)}
}

// Check returns an *Error unless the text is as the package describes.
func Check(text []byte) error {
	if len(text) > SizeMax {
		return fault(Size, "%d bytes, more than %d", len(text), SizeMax)
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return fault(Form, "no UTF-8")
	}
	w := walk{ids: make(map[string]bool), inScope: make(map[string]int), decoder: xml.NewDecoder(bytes.NewReader(text))}
	for {
		token, err := w.decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return w.end()
		}
		if err != nil {
			return fault(Form, "no XML at byte %d", w.decoder.InputOffset())
		}
		if err := w.token(token); err != nil {
			return err
		}
	}
}

// walk is where the reading of a text stands.
type walk struct {
	decoder  *xml.Decoder
	open     []xml.Name     // the elements that are open; Space is the prefix
	declared []string       // the prefixes declared by them
	counts   []int          // how many of declared were there before each of open
	inScope  map[string]int // how often each prefix is in declared
	elements int
	hasRoot  bool
	begun    bool // something came before
	ids      map[string]bool
}

func (w *walk) token(token xml.Token) error {
	first := !w.begun
	w.begun = true
	switch token := token.(type) {
	case xml.StartElement:
		return w.start(token)
	case xml.EndElement:
		return w.close(token.Name)
	case xml.CharData:
		if len(w.open) == 0 && len(bytes.TrimSpace(token)) > 0 {
			return fault(Form, "text outside of the root element")
		}
	case xml.Directive:
		return fault(Doctype, "a document type")
	case xml.ProcInst:
		if token.Target != "xml" || !first {
			return fault(Form, "a processing instruction")
		}
	}
	return nil
}

func (w *walk) start(element xml.StartElement) error {
	if len(w.open) == 0 && w.hasRoot {
		return fault(Form, "two root elements")
	}
	w.hasRoot = true
	if w.elements++; w.elements > ElementsMax {
		return fault(Limit, "more than %d elements", ElementsMax)
	}
	if len(w.open) == DepthMax {
		return fault(Limit, "more than %d levels", DepthMax)
	}
	w.counts = append(w.counts, len(w.declared))
	w.open = append(w.open, element.Name)
	if err := w.attributes(element.Attr); err != nil {
		return err
	}
	return w.prefixes(element)
}

// attributes counts the attributes, keeps the prefixes that they declare, and the ids.
func (w *walk) attributes(attributes []xml.Attr) error {
	if len(attributes) > NamespacesMax+AttributesMax {
		return fault(Limit, "an element with %d attributes", len(attributes))
	}
	seen, namespaces := make(map[xml.Name]bool, len(attributes)), 0
	for _, a := range attributes {
		if seen[a.Name] {
			return fault(Form, "an attribute twice in one element: %s", a.Name.Local)
		}
		seen[a.Name] = true
		switch {
		case a.Name.Space == "xmlns":
			namespaces++
			w.declared = append(w.declared, a.Name.Local)
			w.inScope[a.Name.Local]++
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			namespaces++
		case isID(a.Name):
			if w.ids[a.Value] {
				return fault(Form, "an id twice")
			}
			w.ids[a.Value] = true
		}
	}
	if namespaces > NamespacesMax || len(attributes)-namespaces > AttributesMax {
		return fault(Limit, "an element with %d declarations and %d attributes", namespaces, len(attributes)-namespaces)
	}
	return nil
}

// isID reports whether an attribute is an id, by its name: of SAML, of XML Signature and Encryption, of XML.
func isID(name xml.Name) bool {
	switch name.Local {
	case "ID", "Id", "id", "AssertionID", "ResponseID":
		return true
	}
	return false
}

// prefixes checks that the element, and its attributes, use no prefix that isn't declared.
func (w *walk) prefixes(element xml.StartElement) error {
	if !w.knows(element.Name.Space) {
		return fault(Form, "a prefix without a declaration, of element %s", element.Name.Local)
	}
	for _, a := range element.Attr {
		if a.Name.Space != "xmlns" && !w.knows(a.Name.Space) {
			return fault(Form, "a prefix without a declaration, of attribute %s", a.Name.Local)
		}
	}
	return nil
}

func (w *walk) knows(prefix string) bool {
	return prefix == "" || prefix == "xml" || w.inScope[prefix] > 0
}

func (w *walk) close(name xml.Name) error {
	last := len(w.open) - 1
	if last < 0 || w.open[last] != name {
		return fault(Form, "an end without its beginning: %s", name.Local)
	}
	for _, prefix := range w.declared[w.counts[last]:] {
		w.inScope[prefix]--
	}
	w.declared, w.counts, w.open = w.declared[:w.counts[last]], w.counts[:last], w.open[:last]
	return nil
}

func (w *walk) end() error {
	if !w.hasRoot || len(w.open) > 0 {
		return fault(Form, "an element that doesn't end, or none")
	}
	return nil
}
