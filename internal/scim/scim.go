// Package scim reads what directories send by SCIM 2.0 (RFC 7643, RFC 7644): people and groups,
// filters, and PATCH requests in the forms of Okta, Entra ID, OneLogin, Ping and JumpCloud. It is
// pure: it knows no store and no HTTP.
//
//	filter, err := scim.ParseFilter(scim.Users, `userName eq "ann@acme.example"`)
//	said, err := scim.ParseUser(body)              // a POST or a PUT
//	operations, err := scim.ParsePatch(body)
//	after, err := scim.PatchUser(before, operations) // all of them, or an error
//	change, err := scim.PatchGroup(operations, false)
//
// Names of attributes, operators and schema URNs count in any letter case (RFC 7643, section 2.1).
// Attributes that aren't kept are read over, here and in filters of paths: no directory fails because
// it sends more than is used. Null stands for an absent value.
//
// Every error is an [*Error] with the status and the scimType of RFC 7644, section 3.12, which repeats
// nothing of what was sent.
//
// The caller first checks the form of a body with strictjson.DecodeOpen[struct{}]: its size, encoding,
// depth, NUL characters and repeated names. All functions take time and memory that are linear in the
// length of what they are given, and hold no copy of a body, only the texts that are kept.
package scim

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// What a scimType says (RFC 7644, table 9).
const (
	InvalidFilter = "invalidFilter"
	InvalidPath   = "invalidPath"
	InvalidSyntax = "invalidSyntax"
	InvalidValue  = "invalidValue"
	Mutability    = "mutability"
	NoTarget      = "noTarget"
	Uniqueness    = "uniqueness"
)

// The schemas that are known (RFC 7643, section 8.7; RFC 7644, section 3.12).
const (
	UserSchema       = "urn:ietf:params:scim:schemas:core:2.0:User"
	GroupSchema      = "urn:ietf:params:scim:schemas:core:2.0:Group"
	EnterpriseSchema = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
	ErrorSchema      = "urn:ietf:params:scim:api:messages:2.0:Error"
)

// MaxMembers is the greatest number of members that one body may name.
const MaxMembers = 10_000

// maxText is the greatest length of a text that is kept, in bytes.
const maxText = 1024

// Error is an answer that refuses a request (RFC 7644, section 3.12).
type Error struct {
	Status int    // of HTTP
	Type   string // the scimType; empty where the RFC has none
	Detail string // what to do, for the administrator of the directory
	Advice string // for the reader of protocols; no part of the answer
}

// Error returns the detail with status and scimType.
func (e *Error) Error() string {
	return "scim: " + strconv.Itoa(e.Status) + " " + e.Type + ": " + e.Detail
}

// MarshalJSON returns the body of the answer. Its status is a text, as the RFC wants it.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Schemas []string `json:"schemas"`
		Status  string   `json:"status"`
		Type    string   `json:"scimType,omitempty"`
		Detail  string   `json:"detail"`
	}{[]string{ErrorSchema}, strconv.Itoa(e.Status), e.Type, e.Detail})
}

// refuse returns a 400.
func refuse(scimType, detail string) error {
	return &Error{Status: http.StatusBadRequest, Type: scimType, Detail: detail}
}

// Bool reads true and false, as JSON or as a text in any letter case: Entra ID sends "False", OneLogin
// "false". Anything else, such as 0 or "no", is invalidValue: to guess could leave somebody active.
func Bool(value jsontext.Value) (bool, error) {
	value = single(value)
	switch value.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		return value.Kind() == jsontext.KindTrue, nil
	case jsontext.KindString:
		switch lower(unquote(value)) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, refuse(InvalidValue, "Send true or false here.")
}

// lower returns text with A to Z in lower case. No other letter has two cases here: the Kelvin sign is no k.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, text)
}
