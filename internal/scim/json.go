package scim

import (
	"bytes"
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// reader reads one object or array. Values that it yields lie in the body itself.
type reader struct {
	jsontext.Decoder
	body bytes.Buffer
}

// readers are reused: a body can have ten thousand objects, and a decoder takes some kilobytes.
var readers = sync.Pool{New: func() any { return new(reader) }}

// open returns a reader of value after its first bracket.
func open(value jsontext.Value) (*reader, error) {
	r := readers.Get().(*reader)
	r.body = *bytes.NewBuffer(value)
	r.Reset(&r.body)
	_, err := r.ReadToken()
	return r, err
}

// close returns the reader for reuse, without the body.
func (r *reader) close() {
	r.body = bytes.Buffer{}
	r.Reset(&r.body)
	readers.Put(r)
}

// maxNames is the greatest number of names in one object, those that are read over included: it bounds
// what is remembered of them.
const maxNames = 1000

// eachMember calls do for the members of an object, in their order. Another kind of value is
// invalidValue with the text wrong; a name that occurs in two letter cases, and too many, invalidSyntax.
func eachMember(object jsontext.Value, wrong string, do func(name string, value jsontext.Value) error) error {
	if object.Kind() != jsontext.KindBeginObject {
		return refuse(InvalidValue, wrong)
	}
	r, err := open(object)
	defer r.close()
	seen := map[string]bool{}
	for err == nil && r.PeekKind() != jsontext.KindEndObject {
		token, fault := r.ReadToken()
		if fault != nil {
			return syntax(fault)
		}
		name := token.String() // the token is gone with the next one
		value, fault := r.ReadValue()
		if fault != nil {
			return syntax(fault)
		}
		if seen[lower(name)] || len(seen) == maxNames {
			return refuse(InvalidSyntax, "Send each name once, whatever its letter case, and at most 1000 in one object.")
		}
		seen[lower(name)] = true
		if err := do(name, value); err != nil {
			return err
		}
	}
	return syntax(err)
}

// eachItem calls do for the items of an array, or for the value itself if it is no array.
func eachItem(value jsontext.Value, do func(item jsontext.Value) error) error {
	if value.Kind() != jsontext.KindBeginArray {
		return do(value)
	}
	r, err := open(value)
	defer r.close()
	for err == nil && r.PeekKind() != jsontext.KindEndArray {
		item, fault := r.ReadValue()
		if fault != nil {
			return syntax(fault)
		}
		if err := do(item); err != nil {
			return err
		}
	}
	return syntax(err)
}

// syntax returns what to answer to JSON that can't be read. The error of the decoder would repeat it.
func syntax(err error) error {
	if err == nil {
		return nil
	}
	return refuse(InvalidSyntax, "Send valid JSON.")
}

// single unwraps a value that came as a list of one, [{"value": x}] or [x]: old forms of Entra ID.
func single(value jsontext.Value) jsontext.Value {
	if value.Kind() != jsontext.KindBeginArray {
		return value
	}
	inner, items := value, 0
	err := eachItem(value, func(item jsontext.Value) error {
		if inner, items = item, items+1; items > 1 {
			return errEnough
		}
		return nil
	})
	if err != nil || items != 1 {
		return value
	}
	if inner.Kind() == jsontext.KindBeginObject {
		inner, _ = valueOf(inner)
	}
	return inner
}

// errEnough ends a walk early.
var errEnough = errors.New("scim: enough was read")

// valueOf returns the member "value" of an object; empty: it has none.
func valueOf(object jsontext.Value) (value jsontext.Value, err error) {
	err = eachMember(object, "", func(name string, v jsontext.Value) error {
		if lower(name) == "value" {
			value = v
		}
		return nil
	})
	return value, err
}

// isEmptyList reports whether a value is a list without items.
func isEmptyList(value jsontext.Value) bool {
	return value.Kind() == jsontext.KindBeginArray && eachItem(value, func(jsontext.Value) error { return errEnough }) == nil
}

// unquote returns the text of a JSON string.
func unquote(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// isNull reports whether a value says that there is none.
func isNull(value jsontext.Value) bool {
	return len(value) == 0 || value.Kind() == jsontext.KindNull
}

// text reads a text of at most maxText bytes for the attribute called name. Null is the empty text.
func text(name string, value jsontext.Value) (string, error) {
	value = single(value)
	if isNull(value) {
		return "", nil
	}
	if value.Kind() != jsontext.KindString {
		return "", refuse(InvalidValue, "Send a text as "+name+".")
	}
	t := unquote(value)
	if len(t) > maxText {
		return "", refuse(InvalidValue, "Send a shorter "+name+": at most 1024 bytes.")
	}
	return t, nil
}

// textOrNumber is text that takes a number, too, as it is written.
func textOrNumber(name string, value jsontext.Value) (string, error) {
	value = single(value)
	if value.Kind() == jsontext.KindNumber && len(value) <= maxText {
		return string(value), nil
	}
	return text(name, value)
}
