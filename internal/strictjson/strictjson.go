// Package strictjson decodes the JSON body of a request strictly, with precise errors.
//
//	in, err := strictjson.Decode[loginRequest](body)
//	if err != nil {
//		bad := err.(*strictjson.Error) // Pointer "/email", Reason "send a string here"
//	}
//
// Ambiguous JSON can mean one thing to a gateway and another to the service: the
// first or the last of two equal names, a name in another case, a string cut at a
// NUL. Attacks use such differences, so these are refused:
//
//   - an empty body, a body that isn't an object, anything after the object
//   - a byte order mark, invalid UTF-8, unpaired surrogates
//   - NUL, raw or as \u0000, in any string or name
//   - a name twice in one object, however it is escaped
//   - a name that the Go struct does not have in exactly this spelling; so a name
//     in another case is unknown as well
//   - null, anywhere but inside a [Foreign] value: leave the member out instead
//   - a value of another type than the field's; for integers also 7.0 and 1e1
//   - more than 32 levels of objects and arrays
//
// The caller checks required members and values: an absent member leaves the zero
// value, or nil in a pointer field.
//
// # Errors never repeat the input
//
// People paste passwords in the wrong place. An [Error] contains no value, and of the names
// that were sent only an unknown one that is made of letters, so that a misspelled name is found:
// the pointer of an unknown member, or of a key of a map, is that of its parent.
//
// The body is read twice, once for its form and once into the type. Both are linear
// in its length, which the caller must limit.
//
// Don't use the tags that loosen the rules of github.com/go-json-experiment/json
// (case:ignore, a fallback for unknown members): they loosen them here too.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the maximum nesting of objects and arrays.
const maxDepth = 32

// Error says what is wrong with a body. It is safe to show to the sender and to log,
// because it repeats no value that was sent.
type Error struct {
	// Pointer is an RFC 6901 JSON pointer to the faulty value, or to its nearest parent
	// that the target type names. It is empty for the body itself.
	Pointer string
	// Reason says what the sender should do, as a clause without a full stop.
	Reason string
}

// Error returns the pointer and the reason.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return "JSON body: " + e.Reason
	}
	return "JSON body at " + e.Pointer + ": " + e.Reason
}

// Int is an integer that is clamped to int64, so that the caller's range check refuses
// numbers beyond it. A plain int field refuses such numbers itself.
type Int int64

// UnmarshalJSON takes a JSON integer of any length.
func (i *Int) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64) // saturates
	// Check the digits too, because ParseInt stops with a range error before it
	// reads a fraction.
	onlyDigits := len(bytes.Trim(b, "-0123456789")) == 0
	if !onlyDigits || err != nil && !errors.Is(err, strconv.ErrRange) {
		return errNotInteger
	}
	*i = Int(n)
	return nil
}

var errNotInteger = errors.New("strictjson: not an integer")

// Foreign is implemented by types of members whose form another specification defines, such
// as WebAuthn's. Inside them, null stands for an absent member. This holds only for members of
// the type that is decoded, not of the objects within it.
type Foreign interface{ Foreign() }

// Decode reads data, which must be one JSON object by the rules in the package comment,
// into a new T. Every error is an [*Error], and T is then zero. data is neither changed
// nor kept.
func Decode[T any](data []byte) (T, error) { return decodeAs[T](data, false) }

// DecodeOpen is Decode for a form that another specification defines and may extend:
// unknown names are ignored, and null stands for an absent member.
func DecodeOpen[T any](data []byte) (T, error) { return decodeAs[T](data, true) }

func decodeAs[T any](data []byte, open bool) (T, error) {
	var value, zero T
	d := decoders.Get().(*decoder)
	d.open, d.target = open, reflect.TypeFor[T]()
	err := d.decode(data, &value)
	if err != nil {
		err.Pointer = d.cutUnknown(reflect.TypeFor[T](), err.Pointer)
	}
	d.release()
	if err != nil {
		return zero, err
	}
	return value, nil
}

// decoder reads one body. After an error the embedded decoder stays where that occurred.
type decoder struct {
	jsontext.Decoder
	data   []byte
	body   bytes.Buffer
	open   bool // see DecodeOpen
	target reflect.Type
}

// decoders are reused because one takes about 5 KB, many times the usual body.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// release returns d for reuse, without the body. It is not deferred: after a panic in a
// type's method the decoder's state is undefined.
func (d *decoder) release() {
	d.data = nil
	d.rewind()
	decoders.Put(d)
}

// rewind puts d back to the beginning of its data.
func (d *decoder) rewind() {
	d.body = *bytes.NewBuffer(d.data)
	d.Reset(&d.body)
}

// decode reads data into what dest, a Go pointer, points to.
func (d *decoder) decode(data []byte, dest any) *Error {
	d.data = data
	d.rewind()
	if err := d.checkForm(); err != nil {
		return err
	}
	d.rewind()
	return d.fill(dest)
}

// checkForm checks the JSON itself. Of the target type it uses only the Foreign members,
// inside which null is accepted. jsontext itself refuses duplicate names, invalid UTF-8 and
// unpaired surrogates.
func (d *decoder) checkForm() *Error {
	if reason := checkBytes(d.data); reason != "" {
		return &Error{Reason: reason}
	}
	if d.PeekKind() != jsontext.KindBeginObject {
		return &Error{Reason: "send a JSON object: the body has to begin with {"}
	}
	if err := d.checkTokens(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return &Error{Reason: "send nothing after the JSON object"}
	}
	return nil
}

// checkBytes returns what is wrong with data before it is parsed as JSON, or "".
func checkBytes(data []byte) string {
	switch {
	case len(bytes.Trim(data, " \t\r\n")) == 0:
		return "send a JSON object: the body is empty"
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return "leave out the byte order mark at the beginning"
	case bytes.IndexByte(data, 0) >= 0:
		return noNUL
	case !utf8.Valid(data):
		return "send valid UTF-8"
	}
	return ""
}

const noNUL = "leave out the NUL character"

// checkTokens reads the top-level object to its end.
func (d *decoder) checkTokens() *Error {
	nul := int64(indexEscapedNUL(d.data))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return malformed(err)
		}
		switch {
		case token.Kind() == jsontext.KindNull && !d.open && !d.inForeign():
			return d.errorHere("leave this out or give it a value: null is not accepted")
		case nul >= 0 && d.InputOffset() > nul:
			return d.errorHere(noNUL)
		case d.StackDepth() > maxDepth:
			return d.errorHere("nest at most " + strconv.Itoa(maxDepth) + " objects and arrays in each other")
		case d.StackDepth() == 0:
			return nil
		}
	}
}

// inForeign reports whether the token read last is inside a member of type Foreign.
func (d *decoder) inForeign() bool {
	name, _, inside := strings.Cut(strings.TrimPrefix(string(d.StackPointer()), "/"), "/")
	if !inside || d.target.Kind() != reflect.Struct {
		return false
	}
	t := fieldType(d.target, name)
	return t != nil && t.Implements(reflect.TypeFor[Foreign]())
}

// errorHere returns an error about the token read last.
func (d *decoder) errorHere(reason string) *Error {
	return &Error{Pointer: string(d.StackPointer()), Reason: reason}
}

// indexEscapedNUL returns the position of the first \u0000 in data, or -1. An unescaped
// backslash before it makes it plain text. Each backslash is counted only once, so the
// time is linear.
func indexEscapedNUL(data []byte) int {
	escape := []byte(`\u0000`)
	for from := 0; ; {
		i := bytes.Index(data[from:], escape)
		if i < 0 {
			return -1
		}
		i += from
		before := data[from:i]
		if (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0 {
			return i
		}
		from = i + len(escape)
	}
}

// malformed turns an error of jsontext, whose text quotes the input, into an *Error.
func malformed(err error) *Error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok || errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Reason: "complete the JSON: it ends too early"}
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{Pointer: string(syntax.JSONPointer), Reason: "send each name only once: this one is repeated"}
	}
	offset := strconv.FormatInt(syntax.ByteOffset, 10)
	return &Error{
		Pointer: string(syntax.JSONPointer),
		Reason:  "correct the JSON after byte " + offset + ": look for quotes, commas, brackets, escapes, unpaired surrogates",
	}
}

// fill decodes the checked body into what dest points to. It uses the decoder, not
// json.Unmarshal, so that cutUnknown can ask for its position.
func (d *decoder) fill(dest any) *Error {
	err := json.UnmarshalDecode(&d.Decoder, dest, json.RejectUnknownMembers(!d.open))
	if err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok: // a repeated name, which only shows when names are matched with fields
		return malformed(err)
	case errors.Is(err, json.ErrUnknownName):
		return &Error{Pointer: string(wrong.JSONPointer.Parent()), Reason: knownNames(wrong.GoType, wrong.JSONPointer.LastToken())}
	}
	if own, ok := errors.AsType[*Error](err); ok { // of a type's own UnmarshalJSON
		return &Error{Pointer: string(wrong.JSONPointer), Reason: own.Reason}
	}
	return &Error{Pointer: string(wrong.JSONPointer), Reason: mismatch(wrong)}
}

// knownNames is the reason for an unknown name: it says which one it is, if that looks like a name, and
// lists those that t has.
func knownNames(t reflect.Type, unknown string) string {
	names := fieldNames(t)
	if len(names) == 0 {
		return "leave out what stands in here: no name is known"
	}
	which := "unknown name"
	if looksLikeName.MatchString(unknown) {
		which += " " + strconv.Quote(unknown)
	}
	return "leave out the " + which + ", or correct its spelling: known here are " +
		strings.Join(names, ", ") + " (upper and lower case count)"
}

// looksLikeName matches what people write as the name of a member. All secrets that Doorward gives out are
// longer or have digits.
var looksLikeName = regexp.MustCompile(`^[A-Za-z][A-Za-z_-]{0,39}$`)

// mismatch says what to send instead of a value of the wrong type.
func mismatch(err *json.SemanticError) string {
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "send a number closer to zero"
	case err.GoType == nil:
		return "send the documented type here"
	}
	return "send " + expected(err.GoType) + " here"
}

// expected names the JSON that t is decoded from.
func expected(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string of the documented form"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer, without fraction or exponent,"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer that is not negative, without fraction or exponent,"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a base64 string"
		}
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "the documented type"
}

// cutUnknown returns the part of pointer that leads through fields of t and elements of
// arrays. The rest would repeat names from the sender.
func (d *decoder) cutUnknown(t reflect.Type, pointer string) string {
	var known jsontext.Pointer
	level := 0
	for token := range jsontext.Pointer(pointer).Tokens() {
		level++
		if level > d.StackDepth() {
			break // the rest comes from a type's own UnmarshalJSON
		}
		// Where t has an array and the body an object, a token that looks like
		// an index is a name: {"list": {"4711": null}}.
		container, _ := d.StackIndex(level)
		if t = member(t, container, token); t == nil {
			break
		}
		known = known.AppendToken(token)
	}
	return string(known)
}

// member returns the type of t's member that token leads to, or nil if t doesn't name
// it. container says whether the body has an object or an array there.
func member(t reflect.Type, container jsontext.Kind, token string) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && container == jsontext.KindBeginArray:
		return t.Elem()
	case t.Kind() == reflect.Struct && container == jsontext.KindBeginObject:
		return fieldType(t, token)
	}
	return nil
}

// fieldType returns the type of the field that is called name in JSON, or nil.
func fieldType(t reflect.Type, name string) reflect.Type {
	for _, field := range reflect.VisibleFields(t) {
		if nameOf(field) == name {
			return field.Type
		}
	}
	return nil
}

// fieldNames returns the JSON names of the fields of t, in their order.
func fieldNames(t reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(t) {
		if name := nameOf(field); field.IsExported() && !field.Anonymous && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func nameOf(field reflect.StructField) string {
	tagged, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return cmp.Or(tagged, field.Name)
}
