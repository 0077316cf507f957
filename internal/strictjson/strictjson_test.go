package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/cputime"
	"github.com/doorward/doorward/internal/strictjson"
)

// request has a field of every kind that requests use, and some more.
type request struct {
	Email    string             `json:"email,omitempty"`
	Name     *string            `json:"name,omitempty"`
	Days     int                `json:"days,omitempty"`
	Small    int8               `json:"small,omitempty"`
	Count    uint               `json:"count,omitempty"`
	Big      strictjson.Int     `json:"big,omitempty"`
	MaybeBig *strictjson.Int    `json:"maybeBig,omitempty"`
	On       bool               `json:"on,omitempty"`
	Ratio    float64            `json:"ratio,omitempty"`
	At       *time.Time         `json:"at,omitempty"`
	Blob     []byte             `json:"blob,omitempty"`
	Tags     []string           `json:"tags,omitempty"`
	Pair     *[2]int            `json:"pair,omitempty"`
	Rows     []row              `json:"rows,omitempty"`
	Settings *settings          `json:"settings,omitempty"`
	Labels   map[string]*string `json:"labels,omitempty"`
	Any      any                `json:"any,omitempty"`
	Raw      jsontext.Value     `json:"raw,omitempty"`
	Browser  foreign            `json:"browser,omitempty"`
	Untagged string
	Slashed  []int `json:"a/b~c,omitempty"`
	inherited
}

type foreign map[string]any

func (foreign) Foreign() {}

type inherited struct {
	Deep []int `json:"deep,omitempty"`
}

type row struct {
	Email string   `json:"email,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

type settings struct {
	Idle *int `json:"idle,omitempty"`
}

func TestDecodeAccepts(t *testing.T) {
	for in, want := range map[string]request{
		`{}`:                {},
		" \t\r\n{ } \t\r\n": {},
		`{"email":"a@b.c"}`: {Email: "a@b.c"},
		`{"email":""}`:      {},
		`{"browser":{"a":null,"b":{"c":[null]}}}`: {Browser: foreign{"a": nil, "b": map[string]any{"c": []any{nil}}}},
		`{"name":""}`: {Name: new("")},
		`{"\u0065mail":"\u0061\ud83d\ude00\t\/"}`:     {Email: "a😀\t/"},
		`{"email":"\\u0000"}`:                         {Email: `\u0000`},
		`{"email":"\\\\u0000\\u0000"}`:                {Email: `\\u0000\u0000`},
		`{"email":"null"}`:                            {Email: "null"},
		"{\"email\":\"\ufeff\ufffd\"}":                {Email: "\ufeff\ufffd"},
		`{"days":7,"small":-128}`:                     {Days: 7, Small: -128},
		`{"days":-0}`:                                 {},
		`{"big":9223372036854775807}`:                 {Big: math.MaxInt64},
		`{"big":9223372036854775808}`:                 {Big: math.MaxInt64},
		`{"big":-9223372036854775809}`:                {Big: math.MinInt64},
		`{"big":-0}`:                                  {},
		`{"big":` + strings.Repeat("9", 60_000) + `}`: {Big: math.MaxInt64},
		`{"maybeBig":12}`:                             {MaybeBig: new(strictjson.Int(12))},
		`{"maybeBig":0}`:                              {MaybeBig: new(strictjson.Int(0))},
		`{"on":true,"ratio":1.5e3}`:                   {On: true, Ratio: 1500},
		`{"ratio":7}`:                                 {Ratio: 7},
		`{"blob":"AAE="}`:                             {Blob: []byte{0, 1}},
		`{"tags":["x","x"],"pair":[1,2]}`:             {Tags: []string{"x", "x"}, Pair: &[2]int{1, 2}},
		`{"rows":[{"email":"a"},{"email":"a"}]}`:      {Rows: []row{{Email: "a"}, {Email: "a"}}},
		`{"settings":{}}`:                             {Settings: &settings{}},
		`{"settings":{"idle":0}}`:                     {Settings: &settings{Idle: new(0)}},
		`{"labels":{"k":"v","K":"v"}}`:                {Labels: map[string]*string{"k": new("v"), "K": new("v")}},
		`{"any":{"a":[1,"x",true]}}`:                  {Any: map[string]any{"a": []any{1.0, "x", true}}},
		`{"raw":{"a":1}}`:                             {Raw: jsontext.Value(`{"a":1}`)},
		`{"Untagged":"x","deep":[1]}`:                 {Untagged: "x", inherited: inherited{Deep: []int{1}}},
		`{"at":"2026-01-02T03:04:05Z"}`:               {At: new(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
		`{"any":` + nested(31) + `}`:                  {Any: nestedValue(31)},
	} {
		got, err := strictjson.Decode[request]([]byte(in))
		if err != nil {
			t.Errorf("Decode(%.100s) = %v", in, err)
		} else if !reflect.DeepEqual(got, want) { // cmp.Diff is exponential in the depth
			t.Errorf("Decode(%.100s) = %+v, want %+v", in, got, want)
		}
	}
}

// nested returns n nested arrays.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func nestedValue(n int) any {
	value := any([]any{})
	for range n - 1 {
		value = []any{value}
	}
	return value
}

// Parts of the expected reasons.
const (
	empty      = "the body is empty"
	object     = "begin with {"
	after      = "nothing after"
	bom        = "byte order mark"
	nul        = "NUL"
	utf8       = "UTF-8"
	syntax     = "correct the JSON"
	early      = "ends too early"
	depth      = "nest at most 32"
	null       = "null is not accepted"
	twice      = "only once"
	unknown    = "unknown name"
	str        = "send a string"
	integer    = "send an integer, without"
	tooLarge   = "closer to zero"
	boolean    = "true or false"
	documented = "documented"
)

// refused are bodies with their errors. hunter2 and 4711 are names and values that no error
// may repeat.
var refused = []struct{ in, pointer, reason string }{
	{"", "", empty},
	{" \n\t\r", "", empty},
	{"null", "", object},
	{"[]", "", object},
	{`"x"`, "", object},
	{"7", "", object},
	{"x", "", object},
	{"\v{}", "", object},
	{"\u00a0{}", "", object},
	{"\ufeff{}", "", bom},
	{"{}\ufeff", "", after},
	{"{\ufeff}", "", syntax},
	{"\xff\xfe{\x00}\x00", "", nul},
	{"{}{}", "", after},
	{"{} x", "", after},
	{"{},", "", after},
	{"{}}", "", after},
	{"{}null", "", after},
	{"{} // comment", "", after},
	{"{}\x00", "", nul},

	{`{"email":"a` + "\x00" + `b"}`, "", nul},
	{`{"email":"a\u0000b"}`, "/email", nul},
	{`{"email":"\\\u0000"}`, "/email", nul},
	{`{"email":"\\u0000\u0000"}`, "/email", nul},
	{`{"tags":["x","\u0000"]}`, "/tags/1", nul},
	{`{"email\u0000":"x"}`, "", nul},
	{`{"labels":{"\u0000":"x"}}`, "/labels", nul},
	{`{"any":{"a":"\u0000"}}`, "/any", nul},

	{"{\"email\":\"\xff\"}", "", utf8},
	{"{\"email\":\"\xc0\xaf\"}", "", utf8},
	{"{\"email\":\"\xed\xa0\x80\"}", "", utf8},
	{"{\"\xff\":1}", "", utf8},
	{`{"email":"\ud800"}`, "/email", syntax},
	{`{"email":"\udc00"}`, "/email", syntax},
	{`{"email":"\ud800\u0041"}`, "/email", syntax},
	{`{"email":"\ud800\ud800"}`, "/email", syntax},
	{`{"\ud800":"x"}`, "", syntax},
	{`{"any":"\udfff"}`, "/any", syntax},

	{"{", "", early},
	{`{"email"`, "", early},
	{`{"email":`, "", early},
	{`{"email":"a`, "", early},
	{`{"email":"a"`, "", early},
	{`{"tags":["a",`, "", early},
	{`{"any":tru`, "", early},
	{`{"email":"a",}`, "", syntax},
	{`{,}`, "", syntax},
	{`{"email" "a"}`, "/email", syntax},
	{`{"email":}`, "/email", syntax},
	{`{email:"a"}`, "", syntax},
	{`{'email':'a'}`, "", syntax},
	{`{"email":'a'}`, "/email", syntax},
	{"{\"email\":\"a\tb\"}", "/email", syntax},
	{"{\"email\":\"a\nb\"}", "/email", syntax},
	{`{"email":"\x41"}`, "/email", syntax},
	{`{"email":"\u00g0"}`, "/email", syntax},
	{`{"days":07}`, "", syntax},
	{`{"days":+7}`, "/days", syntax},
	{`{"days":0x7}`, "", syntax},
	{`{"days":.7}`, "/days", syntax},
	{`{"days":7.}`, "/days", syntax},
	{`{"days":1_000}`, "", syntax},
	{`{"days":NaN}`, "/days", syntax},
	{`{"days":-}`, "/days", syntax},
	{`{"tags":[1 2]}`, "/tags", syntax},
	{`{"tags":["a",]}`, "/tags", syntax},
	{`{"tags":[}`, "/tags/0", syntax},
	{`{7:"a"}`, "", syntax},
	{`{"email":"a"]`, "", syntax},
	{`{/**/}`, "", syntax},
	{`{"email":True}`, "/email", syntax},

	{`{"any":` + nested(32) + `}`, "/any", depth},
	{`{"email":` + nested(32) + `}`, "/email", depth},
	{`{"nope":` + nested(40) + `}`, "", depth},
	{`{"raw":` + nested(32) + `}`, "/raw/0", depth},
	{strings.Repeat(`{"any":`, 20_000), "/any", depth},

	{`{"email":null}`, "/email", null},
	{`{"name":null}`, "/name", null},
	{`{"maybeBig":null}`, "/maybeBig", null},
	{`{"tags":[null]}`, "/tags/0", null},
	{`{"tags":null}`, "/tags", null},
	{`{"settings":null}`, "/settings", null},
	{`{"browser":null}`, "/browser", null},
	{`{"browser":{"a":null},"tags":[null]}`, "/tags/0", null},
	{`{"rows":[{},{"email":null}]}`, "/rows/1/email", null},
	{`{"labels":{"hunter2":null}}`, "/labels", null},
	{`{"any":[null]}`, "/any", null},
	{`{"raw":[null]}`, "/raw/0", null},
	{`{"deep":[1,null]}`, "/deep/1", null},
	{`{"Untagged":null}`, "/Untagged", null},
	{`{"":null}`, "", null},
	{`{"a/b~c":[null]}`, "/a~1b~0c/0", null},

	{`{"email":"a","email":"b"}`, "/email", twice},
	{`{"email":"a","\u0065mail":"b"}`, "/email", twice},
	{`{"email":"a","e\u006dail":"a"}`, "/email", twice},
	{`{"settings":{"idle":1,"idle":1}}`, "/settings/idle", twice},
	{`{"hunter2":1,"hunter2":2}`, "", twice},
	{`{"labels":{"hunter2":"a","hunter2":"b"}}`, "/labels", twice},
	{`{"any":{"hunter2":"a","hunter2":"b"}}`, "/any", twice},
	{`{"raw":{"hunter2":"a","hunter2":"b"}}`, "/raw", twice},
	{`{"any":[{"a":{"hunter2":"a","b":1,"hunter2":"b"}}]}`, "/any", twice},

	{`{"hunter2":"x"}`, "", unknown + ","}, // perhaps a password
	{`{"EMAIL":"x"}`, "", unknown},
	{`{"Email":"x"}`, "", unknown + ` "Email"`},
	{`{"email":"x","Email":"x"}`, "", unknown},
	{`{"e_mail":"x"}`, "", unknown},
	{`{"email ":"x"}`, "", unknown},
	{"{\"ema\u0131l\":\"x\"}", "", unknown},
	{`{"untagged":"x"}`, "", unknown},
	{`{"":"x"}`, "", unknown},
	{`{"inherited":{}}`, "", unknown},
	{`{"settings":{"hunter2":1}}`, "/settings", "known here are idle (upper"},
	{`{"rows":[{"email":"a"},{"hunter2":1}]}`, "/rows/1", "known here are email, tags (upper"},
	{`{"rows":[{"Email":"a"}]}`, "/rows/0", unknown},

	{`{"email":7}`, "/email", str},
	{`{"email":["a"]}`, "/email", str},
	{`{"email":{"hunter2":"a"}}`, "/email", str},
	{`{"name":true}`, "/name", str},
	{`{"tags":["a",7]}`, "/tags/1", str},
	{`{"tags":"a"}`, "/tags", "send an array"},
	{`{"tags":{}}`, "/tags", "send an array"},
	{`{"tags":{"4711":null}}`, "/tags", null},
	{`{"tags":{"4711":"a"}}`, "/tags", "send an array"},
	{`{"tags":{"4711":x}}`, "/tags", syntax},
	{`{"tags":[["hunter2"]]}`, "/tags/0", str},
	{`{"settings":[]}`, "/settings", "send an object"},
	{`{"settings":"x"}`, "/settings", "send an object"},
	{`{"settings":[{"hunter2":null}]}`, "/settings", null},
	{`{"rows":[[]]}`, "/rows/0", "send an object"},
	{`{"labels":[]}`, "/labels", "send an object"},
	{`{"labels":{"hunter2":7}}`, "/labels", str},
	{`{"blob":"!"}`, "/blob", "base64"},
	{`{"at":"hunter2"}`, "/at", documented},
	{`{"at":7}`, "/at", documented},
	{`{"pair":[1]}`, "/pair", documented},
	{`{"pair":[1,2,3]}`, "/pair", documented},

	{`{"days":"7"}`, "/days", integer},
	{`{"days":7.0}`, "/days", integer},
	{`{"days":7.5}`, "/days", integer},
	{`{"days":1e1}`, "/days", integer},
	{`{"days":1E0}`, "/days", integer},
	{`{"days":true}`, "/days", integer},
	{`{"days":9223372036854775808}`, "/days", tooLarge},
	{`{"small":128}`, "/small", tooLarge},
	{`{"count":-1}`, "/count", "not negative"},
	{`{"count":1.0}`, "/count", "not negative"},
	{`{"big":"7"}`, "/big", integer},
	{`{"big":7.0}`, "/big", integer},
	{`{"big":1e1}`, "/big", integer},
	{`{"big":1e999999999}`, "/big", integer},
	{`{"big":99999999999999999999.0}`, "/big", integer},
	{`{"big":99999999999999999999e1}`, "/big", integer},
	{`{"big":true}`, "/big", integer},
	{`{"big":""}`, "/big", integer},
	{`{"big":"-"}`, "/big", integer},
	{`{"big":[]}`, "/big", integer},
	{`{"big":{"hunter2":1}}`, "/big", integer},
	{`{"maybeBig":7.0}`, "/maybeBig", integer},
	{`{"ratio":"1"}`, "/ratio", "send a number"},
	{`{"ratio":1e999}`, "/ratio", tooLarge},
	{`{"on":1}`, "/on", boolean},
	{`{"on":"true"}`, "/on", boolean},
}

func TestDecodeRefuses(t *testing.T) {
	for _, test := range refused {
		got, err := strictjson.Decode[request]([]byte(test.in))
		bad, ok := err.(*strictjson.Error)
		if !ok {
			t.Errorf("Decode(%.100q) = %v, want an *Error", test.in, err)
			continue
		}
		if bad.Pointer != test.pointer || !strings.Contains(bad.Reason, test.reason) {
			t.Errorf("Decode(%.100q) = %q %q, want %q and a reason with %q", test.in, bad.Pointer, bad.Reason, test.pointer, test.reason)
		}
		if !reflect.DeepEqual(got, request{}) {
			t.Errorf("Decode(%.100q) = %+v with the error, want the zero value", test.in, got)
		}
		if text := fmt.Sprintf("%s %+v", err, bad); strings.Contains(text, "hunter2") || strings.Contains(text, "4711") {
			t.Errorf("Decode(%.100q) repeats what was sent: %s", test.in, text)
		}
	}
}

// TestErrorsUnwrapToNothing: errors don't wrap the parser's errors, whose text quotes the
// input.
func TestErrorsUnwrapToNothing(t *testing.T) {
	_, err := strictjson.Decode[request]([]byte(`{"days":"hunter2"}`))
	if inner := errors.Unwrap(err); inner != nil {
		t.Errorf("the error wraps %v", inner)
	}
	if got, want := err.Error(), "JSON body at /days: send an integer, without fraction or exponent, here"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	_, err = strictjson.Decode[request](nil)
	if got, want := err.Error(), "JSON body: send a JSON object: the body is empty"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

// TestLooseTagIsStillSafe: a name with two spellings is not accepted twice, even if a
// tag is lenient.
func TestLooseTagIsStillSafe(t *testing.T) {
	type loose struct {
		Email string `json:"email,case:ignore"`
	}
	_, err := strictjson.Decode[loose]([]byte(`{"email":"a","EMAIL":"b"}`))
	bad, ok := err.(*strictjson.Error)
	if !ok || !strings.Contains(bad.Reason, "only once") {
		t.Errorf("Decode = %v, want an error about a duplicate name", err)
	}
}

// wrapped decodes itself with the same library, whose errors then have a pointer that
// continues inside.
type wrapped struct{ inner map[string]int }

func (w *wrapped) UnmarshalJSON(b []byte) error { return jsonv2.Unmarshal(b, &w.inner) }

func TestPointerEndsBeforeCustomTypes(t *testing.T) {
	type outer struct {
		Wrapped []wrapped `json:"wrapped"`
	}
	_, err := strictjson.Decode[outer]([]byte(`{"wrapped":[{"hunter2":"x"}]}`))
	bad, ok := err.(*strictjson.Error)
	if !ok || bad.Pointer != "/wrapped/0" {
		t.Errorf("Decode = %v, want an error at /wrapped/0", err)
	}
}

func TestDecodeKeepsItsInput(t *testing.T) {
	in := []byte(` {"email":"\u0061","tags":["x"],"raw":{"a":1}} `)
	before := bytes.Clone(in)
	got, err := strictjson.Decode[request](in)
	if err != nil || !bytes.Equal(in, before) {
		t.Fatalf("Decode = %v and changed its input to %q", err, in)
	}
	clear(in) // like a server that reuses the buffer
	want := request{Email: "a", Tags: []string{"x"}, Raw: jsontext.Value(`{"a":1}`)}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("the result changed with the input (-want +got):\n%s", diff)
	}
}

// FuzzDecode compares with encoding/json, which is lenient and independent:
// what Decode accepts means the same there, and survives a round trip.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"email":"a@b.c","name":"x","days":7,"big":99999999999999999999,"on":true,"ratio":-1.5e-3}`,
		`{"tags":["a","\ud83d\ude00"],"rows":[{"email":"\\u0000"}],"settings":{"idle":0},"labels":{"k":"v"}}`,
		`{"any":{"a":[1,"x",true,{}]},"Untagged":"\u0041","deep":[1],"blob":"AAE=","at":"2026-01-02T03:04:05Z"}`,
		`{"email":"a","\u0065mail":"b"}`, `{"Email":"a"}`, `{"email":null}`, `{"days":7.0}`, `{"email":"\u0000"}`, "\ufeff{}", `{} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := strictjson.Decode[request](in)
		if err != nil {
			checkHarmless(t, in, err)
			return
		}
		var want request
		if err := json.Unmarshal(in, &want); err != nil {
			t.Fatalf("Decode accepts %q, encoding/json says %v", in, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("Decode(%q) = %+v, encoding/json reads %+v", in, got, want)
		}
		out, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := strictjson.Decode[request](out)
		if err != nil {
			t.Fatalf("Decode accepts %q, but not the same re-encoded %q: %v", in, out, err)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(out, second) {
			t.Fatalf("%q became %q and then %q, %v", in, out, second, err)
		}
	})
}

// checkHarmless checks that a pointer contains only names of the type.
func checkHarmless(t *testing.T, in []byte, err error) {
	bad, ok := err.(*strictjson.Error)
	if !ok || bad.Reason == "" {
		t.Fatalf("Decode(%q) = %#v, want an *Error with a reason", in, err)
	}
	const names = " email name days small count big maybeBig on ratio at blob tags pair rows settings idle labels any raw Untagged a/b~c deep "
	for token := range jsontext.Pointer(bad.Pointer).Tokens() {
		if !strings.Contains(names, " "+token+" ") && strings.Trim(token, "0123456789") != "" {
			t.Fatalf("Decode(%q) repeats a name that was sent: %q", in, bad.Pointer)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	type login struct {
		Email    string  `json:"email"`
		Password string  `json:"password"`
		TenantID *string `json:"tenantId"`
	}
	body := []byte(`{"email": "grace.hopper@example.com", "password": "correct horse battery staple"}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := strictjson.Decode[login](body); err != nil {
			b.Fatal(err)
		}
	}
}

// hostileBodies are bodies of 64 KiB, the maximum of a server, that make careless parsers
// quadratic.
func hostileBodies() map[string]string {
	const size = 64 << 10
	fill := func(before, unit, after string) string {
		return before + strings.Repeat(unit, (size-len(before)-len(after))/len(unit)) + after
	}
	numbered := func(format string, count int) string {
		var members []string
		for i := range count {
			members = append(members, fmt.Sprintf(format, i))
		}
		return strings.Join(members, ",")
	}
	return map[string]string{
		"open arrays":       fill(`{"any":`, "[", ""),
		"open objects":      fill("", `{"any":`, ""),
		"arrays at limit":   fill(`{"any":[`, nested(30)+",", "1]}"),
		"objects at limit":  fill(`{"any":[`, strings.Repeat(`{"a":`, 30)+"1"+strings.Repeat("}", 30)+",", "1]}"),
		"known names":       `{"labels":{` + numbered(`"%05d":""`, 5900) + `}}`,
		"same prefix":       `{"labels":{` + numbered(`"aaaaaaaaaaaaaaaaaaaa%05d":""`, 2100) + `}}`,
		"escaped names":     `{"labels":{` + numbered(`"\u0061\u0061%05d":""`, 2800) + `}}`,
		"names in any":      `{"any":{` + numbered(`"%05d":1`, 6500) + `}}`,
		"unknown names":     `{` + numbered(`"%05d":1`, 6500) + `}`,
		"duplicate at end":  `{"any":{` + numbered(`"%05d":1`, 6400) + `,"00000":1}}`,
		"one long name":     fill(`{"`, "a", `":null}`),
		"long name, deep":   strings.Repeat(`{"`+strings.Repeat("a", 2000)+`":`, 32) + "null",
		"escapes":           fill(`{"email":"`, `\u0061`, `"}`),
		"surrogate pairs":   fill(`{"email":"`, `\ud83d\ude00`, `"}`),
		"backslashes":       fill(`{"email":"`, `\\`, `"}`),
		"plain u0000":       fill(`{"email":"`, `\\u0000`, `"}`),
		"backslashes, NUL":  fill(`{"email":"`, `\\`, `\u0000"}`),
		"long string":       fill(`{"email":"`, "a", `"}`),
		"unterminated":      fill(`{"email":"`, "a", ""),
		"spaces":            fill("{", " ", "}"),
		"spaces only":       fill("", " ", ""),
		"spaces after":      fill("{}", " ", "x"),
		"digits":            fill(`{"big":`, "9", "}"),
		"digits in integer": fill(`{"days":`, "9", "}"),
		"fraction":          fill(`{"ratio":0.`, "9", "}"),
		"exponent":          fill(`{"ratio":1e`, "9", "}"),
		"numbers":           fill(`{"any":[`, "1,", "1]}"),
		"rows":              fill(`{"rows":[`, `{"email":"a"},`, "{}]}"),
		"null at end":       fill(`{"any":[`, "1,", "null]}"),
		"wrong at end":      fill(`{"tags":[`, `"",`, "1]}"),
		"two-byte letters":  fill(`{"email":"`, "é", `"}`),
	}
}

// TestHostileBodiesAreCheap fails if a body of 64 KiB takes quadratic time. The worst
// takes 2 to 5 ms (see BenchmarkHostile). The best CPU time of several attempts counts, so
// that a busy machine does not fail the test.
func TestHostileBodiesAreCheap(t *testing.T) {
	const limit = 30 * time.Millisecond * slowdown
	for name, body := range hostileBodies() {
		if len(body) < 60_000 || len(body) > 64<<10 {
			t.Errorf("%s: the body has %d bytes; it should about fill 64 KiB", name, len(body))
		}
		best := time.Hour
		for try := 0; try < 20 && best >= limit; try++ {
			start := cputime.Used(t)
			_, _ = strictjson.Decode[request]([]byte(body))
			best = min(best, cputime.Used(t)-start)
		}
		if best >= limit {
			t.Errorf("%s: %v, want less than %v", name, best, limit)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, body := range hostileBodies() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = strictjson.Decode[request]([]byte(body))
			}
		})
	}
}

// DecodeOpen accepts unknown names and null. It refuses everything else that Decode refuses.
func TestDecodeOpen(t *testing.T) {
	type open struct {
		Name  string          `json:"name,omitempty"`
		Inner struct{ A int } `json:"inner,omitzero"`
	}
	got, err := strictjson.DecodeOpen[open]([]byte(`{"name": "x", "new": {"a": [null, {}]}, "inner": {"A": 1, "B": null}}`))
	if err != nil || got.Name != "x" || got.Inner.A != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := strictjson.DecodeOpen[open]([]byte(`{"name": null, "inner": null}`)); err != nil || got != (open{}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, body := range []string{
		"", "[]", "null", "{", "{} {}", `{"name": 1}`, `{"inner": []}`, `{"name": "x", "name": "y"}`, `{"new": 1, "new": 2}`, `{"new": "\u0000"}`,
		"{\"new\": \"\xff\"}", "\ufeff{}", `{"new": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
	} {
		if _, err := strictjson.DecodeOpen[open]([]byte(body)); err == nil {
			t.Errorf("%q is accepted", body)
		}
	}
	if _, err := strictjson.Decode[open]([]byte(`{"new": 1}`)); err == nil {
		t.Error("Decode takes unknown names after DecodeOpen")
	}
}
