package scim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// patched applies the operations in a text, a list, to the User in another.
func patched(t *testing.T, user, operations string) (User, error) {
	t.Helper()
	before, err := ParseUser([]byte(user))
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	parsed, err := ParsePatch([]byte(`{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[` + operations + `]}`))
	if err != nil {
		return User{}, err
	}
	return PatchUser(before, parsed)
}

// wantUser fails unless u has the JSON want.
func wantUser(t *testing.T, u User, want string) {
	t.Helper()
	got, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		t.Fatal("invalid JSON", string(got), want)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestParseUser(t *testing.T) {
	u, err := ParseUser([]byte(`{
		"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", "urn:example:unknown"], "id": "1", "meta": {"x": 1}, "groups": [],
		"USERNAME": "Ann@acme.example", "externalId": "00u1", "password": "secret", "displayName": null, "nickName": "A", "locale": "en-US",
		"name": {"givenName": "Ann", "familyName": "Lee", "unknown": 1}, "active": "True",
		"emails": [{"primary": "true", "value": "ann@acme.example", "type": "work", "extra": {}}, {"value": "a@home.example"}],
		"phoneNumbers": [{"value": "1"}], "addresses": [{"type": "work"}],
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"employeeNumber": 701984, "department": "Sales", "manager": {"managerId": "26"}, "displayName": "no"},
		"urn:example:unknown": {"a": [1, 2]}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	wantUser(t, u, `{"userName": "Ann@acme.example", "externalId": "00u1", "active": true, "name": {"givenName": "Ann", "familyName": "Lee"},
		"emails": [{"primary": true, "value": "ann@acme.example", "type": "work"}, {"value": "a@home.example"}],
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"employeeNumber": "701984", "department": "Sales", "manager": {"value": "26"}}}`)
}

func TestParseUserRefuses(t *testing.T) {
	for body, scimType := range map[string]string{
		`{}`:                                InvalidValue,
		`[]`:                                InvalidValue,
		`null`:                              InvalidValue,
		`{"userName": ""}`:                  InvalidValue,
		`{"userName": null}`:                InvalidValue,
		`{"userName": 5}`:                   InvalidValue,
		`{"userName": "a", "active": "no"}`: InvalidValue,
		`{"userName": "a", "active": 0}`:    InvalidValue,
		`{"userName": "a", "name": "Ann"}`:  InvalidValue,
		`{"userName": "a", "emails": [5]}`:  InvalidValue,
		`{"userName": "a", "emails": [[]]}`: InvalidValue,
		`{"userName": "a", "emails": [{"primary": "x"}]}`:                       InvalidValue,
		`{"userName": "a", "manager": [{"value": "1"}, {"value": "2"}]}`:        InvalidValue,
		`{"userName": "` + strings.Repeat("a", 1025) + `"}`:                     InvalidValue,
		`{"userName": "a", "username": "b"}`:                                    InvalidSyntax,
		`{"userName": "a"`:                                                      InvalidSyntax,
		`{"userName": "a", "a b": 1}`:                                           InvalidPath,
		`{"userName": "a", "emails": [` + strings.Repeat(`"b",`, 100) + `"b"]}`: InvalidValue,
	} {
		_, err := ParseUser([]byte(body))
		if wantFault(t, err, scimType); t.Failed() {
			t.Fatal(body)
		}
	}
}

const annAndHer = `{"userName": "ann@acme.example", "active": true, "name": {"givenName": "Ann", "familyName": "Lee"},
	"emails": [{"type": "work", "value": "a@w", "primary": true}, {"type": "home", "value": "a@h"}],
	"manager": {"value": "1", "displayName": "Bo"}}`

const (
	ent  = `"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"`
	work = `{"type": "work", "value": "a@w", "primary": true}`
	home = `{"type": "home", "value": "a@h"}`
)

// patchesOfUser says what operations change in annAndHer, by the parts of a User.
var patchesOfUser = map[string]map[string]string{
	// active, in all forms
	`{"op": "replace", "path": "active", "value": false}`:                                                 {"active": "false"},
	`{"op": "Replace", "path": "active", "value": "False"}`:                                               {"active": "false"},
	`{"op": "REPLACE", "value": {"active": false}}`:                                                       {"active": "false"},
	`{"op": "Add", "path": "Active", "value": "false"}`:                                                   {"active": "false"},
	`{"op": "replace", "path": "urn:ietf:params:scim:schemas:core:2.0:User:active", "value": false}`:      {"active": "false"},
	`{"op": "replace", "value": {"urn:ietf:params:scim:schemas:core:2.0:User:active": "False"}}`:          {"active": "false"},
	`{"op": "replace", "path": "urn:ietf:params:scim:schemas:core:2.0:User", "value": {"active": false}}`: {"active": "false"},
	`{"op": "replace", "path": "", "value": {"id": "x", "active": false, "groups": [1]}}`:                 {"active": "false"},
	`{"op": "replace", "path": "active", "value": [{"$ref": null, "value": "False"}]}`:                    {"active": "false"},
	`{"op": "replace", "value": {"active": null}}`:                                                        {},
	// names
	`{"op": "replace", "path": "userName", "value": "B@acme.example"}`:                                      {"userName": `"B@acme.example"`},
	`{"op": "replace", "path": "name.familyName", "value": "Li"}`:                                           {"name": `{"givenName": "Ann", "familyName": "Li"}`},
	`{"op": "replace", "value": {"name.familyName": "Li", "NAME.middleName": "X"}}`:                         {"name": `{"givenName": "Ann", "familyName": "Li", "middleName": "X"}`},
	`{"op": "replace", "path": "name", "value": {"familyName": "Li"}}`:                                      {"name": `{"givenName": "Ann", "familyName": "Li"}`},
	`{"op": "add", "value": {"name": {"familyName": "Li"}}}`:                                                {"name": `{"givenName": "Ann", "familyName": "Li"}`},
	`{"op": "remove", "path": "name.familyName"}`:                                                           {"name": `{"givenName": "Ann"}`},
	`{"op": "remove", "path": "name"}`:                                                                      {"name": ""},
	`{"op": "replace", "path": "name.formatted", "value": null}`:                                            {},
	`{"op": "add", "path": "displayName", "value": "A"}, {"op": "add", "path": "externalId", "value": "1"}`: {"more": `, "displayName": "A", "externalId": "1"`},
	`{"op": "add", "path": "displayName", "value": "A"}, {"op": "remove", "path": "DISPLAYNAME"}`:           {},
	// e-mails
	`{"op": "replace", "path": "emails[type eq \"work\"].value", "value": "b@w"}`:                          {"emails": `[{"type": "work", "value": "b@w", "primary": true},` + home + `]`},
	`{"op": "Add", "path": "EMAILS[TYPE EQ \"WORK\"].VALUE", "value": "b@w"}`:                              {"emails": `[{"type": "work", "value": "b@w", "primary": true},` + home + `]`},
	`{"op": "replace", "value": {"emails[type eq \"work\"].value": "b@w"}}`:                                {"emails": `[{"type": "work", "value": "b@w", "primary": true},` + home + `]`},
	`{"op": "replace", "path": "emails[primary eq \"True\"].value", "value": "b@w"}`:                       {"emails": `[{"type": "work", "value": "b@w", "primary": true},` + home + `]`},
	`{"op": "replace", "path": "emails[primary eq true and type eq \"work\"]", "value": {"value": "b@w"}}`: {"emails": `[{"type": "work", "value": "b@w", "primary": true},` + home + `]`},
	`{"op": "replace", "path": "emails[type eq \"other\"].value", "value": "o"}`:                           {"emails": `[` + work + `,` + home + `,{"type": "other", "value": "o"}]`},
	`{"op": "add", "path": "emails[type eq \"other\"].value", "value": "o"}, {"op": "add", "path": "emails[type eq \"other\"].primary", "value": "True"}`: {
		"emails": `[{"type": "work", "value": "a@w", "primary": false},` + home + `,{"type": "other", "value": "o", "primary": true}]`,
	},
	`{"op": "replace", "path": "emails[type eq \"other\"].$ref", "value": "o"}`:   {},
	`{"op": "replace", "path": "emails[type eq \"other\"].value", "value": null}`: {},
	`{"op": "replace", "path": "emails[type eq \"home\"].value", "value": ""}`:    {"emails": `[` + work + `]`},
	`{"op": "remove", "path": "emails[type eq \"home\"]"}`:                        {"emails": `[` + work + `]`},
	`{"op": "Remove", "path": "emails[type eq \"home\"].value", "value": "a@h"}`:  {"emails": `[` + work + `]`},
	`{"op": "remove", "path": "emails", "value": [{"value": "A@H"}]}`:             {"emails": `[` + work + `]`},
	`{"op": "remove", "path": "emails[type eq \"work\"].primary"}`:                {"emails": `[{"type": "work", "value": "a@w"},` + home + `]`},
	`{"op": "remove", "path": "emails"}`:                                          {"emails": ""},
	`{"op": "replace", "path": "emails", "value": []}`:                            {"emails": ""},
	`{"op": "replace", "path": "emails", "value": null}`:                          {"emails": ""},
	`{"op": "replace", "path": "emails", "value": [{"value": "c"}]}`:              {"emails": `[{"value": "c"}]`},
	`{"op": "replace", "path": "emails", "value": "c"}`:                           {"emails": `[{"value": "c"}]`},
	`{"op": "add", "path": "emails", "value": [` + home + `,{"value": "c"}]}`:     {"emails": `[` + work + `,` + home + `,{"value": "c"}]`},
	`{"op": "add", "path": "emails", "value": {"value": "c", "primary": true}}`:   {"emails": `[{"type": "work", "value": "a@w", "primary": false},` + home + `,{"value": "c", "primary": true}]`},
	// the manager
	`{"op": "replace", "path": "manager", "value": "2"}`:                                                                                        {"manager": `{"value": "2"}`},
	`{"op": "Add", "path": "manager", "value": [{"$ref": "../Users/2", "value": "2"}]}`:                                                         {"manager": `{"value": "2", "$ref": "../Users/2"}`},
	`{"op": "add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager", "value": {"value": "2", "displayName": "Cy"}}`: {"manager": `{"value": "2", "displayName": "Cy"}`},
	`{"op": "add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value", "value": 2}`:                             {"manager": `{"value": "2"}`},
	`{"op": "replace", "value": {` + ent + `: {"manager": {"managerId": "2"}}}}`:                                                                {"manager": `{"value": "2"}`},
	`{"op": "replace", "value": {"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager": "2"}}`:                                   {"manager": `{"value": "2"}`},
	`{"op": "replace", "path": ` + ent + `, "value": {"manager": "2"}}`:                                                                         {"manager": `{"value": "2"}`},
	`{"op": "replace", "path": "manager.displayName", "value": "Cy"}`:                                                                           {"manager": `{"value": "1", "displayName": "Cy"}`},
	`{"op": "replace", "path": "manager", "value": ""}`:                                                                                         {"manager": ""},
	`{"op": "replace", "path": "manager", "value": null}`:                                                                                       {"manager": ""},
	`{"op": "replace", "path": "manager", "value": {}}`:                                                                                         {"manager": ""},
	`{"op": "replace", "path": "manager", "value": []}`:                                                                                         {"manager": ""},
	`{"op": "remove", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager"}`:                                            {"manager": ""},
	`{"op": "remove", "path": "manager.value"}`:                                                                                                 {"manager": ""},
	`{"op": "remove", "path": ` + ent + `}`:                                                                                                     {"manager": ""},
	// what isn't kept
	`{"op": "add", "path": "phoneNumbers[type eq \"work\" and primary eq true].value", "value": "1"}`: {},
	`{"op": "add", "path": "addresses[type pr or (x co \"]\")].streetAddress", "value": "1"}`:         {},
	`{"op": "replace", "path": "roles[primary eq \"True\"].value", "value": "admin"}`:                 {},
	`{"op": "replace", "path": "title", "value": {"a": [1]}}`:                                         {},
	`{"op": "replace", "path": "password", "value": "secret"}`:                                        {},
	`{"op": "add", "path": "schemas", "value": ["urn:x"]}`:                                            {},
	`{"op": "replace", "path": "urn:example:Custom:2.0:User:tag", "value": 5}`:                        {},
	`{"op": "remove", "path": "urn:example:Custom:2.0:User"}`:                                         {},
	`{"op": "replace", "value": {"urn:example:Custom:2.0:User": {"active": false}, "title": "x"}}`:    {},
}

func TestPatchUser(t *testing.T) {
	parts := map[string]string{
		"active": "true", "name": `{"givenName": "Ann", "familyName": "Lee"}`, "emails": "[" + work + "," + home + "]",
		"manager": `{"value": "1", "displayName": "Bo"}`, "userName": `"ann@acme.example"`, "more": "",
	}
	for operations, changed := range patchesOfUser {
		u, err := patched(t, annAndHer, operations)
		if err != nil {
			t.Errorf("%s: %v", operations, err)
			continue
		}
		have := func(name string) string {
			if to, ok := changed[name]; ok {
				return to
			}
			return parts[name]
		}
		want := fmt.Sprintf(`{"userName": %s, "active": %s%s`, have("userName"), have("active"), have("more"))
		for _, name := range []string{"name", "emails"} {
			if have(name) != "" {
				want += fmt.Sprintf(`, "%s": %s`, name, have(name))
			}
		}
		if have("manager") != "" {
			want += fmt.Sprintf(`, %s: {"manager": %s}`, ent, have("manager"))
		}
		if wantUser(t, u, want+"}"); t.Failed() {
			t.Fatal(operations)
		}
	}
}

func TestPatchUserRefuses(t *testing.T) {
	for operations, scimType := range map[string]string{
		``:                                    InvalidSyntax,
		`5`:                                   InvalidValue,
		`{}`:                                  InvalidSyntax,
		`{"op": "move", "path": "active"}`:    InvalidSyntax,
		`{"op": "replace", "path": "active"}`: InvalidValue,
		`{"op": "replace"}`:                   InvalidValue,
		`{"op": "replace", "value": 5}`:       InvalidValue,
		`{"op": "remove"}`:                    NoTarget,
		`{"op": "remove", "value": {"active": 1}}`:                               NoTarget,
		`{"op": "replace", "path": 5, "value": 5}`:                               InvalidValue,
		`{"op": "replace", "path": "a b", "value": 5}`:                           InvalidPath,
		`{"op": "replace", "value": {"a b": 5}}`:                                 InvalidPath,
		`{"op": "replace", "value": {"active": true, "ACTIVE": false}}`:          InvalidSyntax,
		`{"op": "replace", "path": "active", "value": 0}`:                        InvalidValue,
		`{"op": "replace", "path": "active", "value": "no"}`:                     InvalidValue,
		`{"op": "replace", "path": "active", "value": null}`:                     InvalidValue,
		`{"op": "remove", "path": "active"}`:                                     Mutability,
		`{"op": "replace", "path": "active[value eq true]", "value": true}`:      NoTarget,
		`{"op": "replace", "path": "active.value", "value": true}`:               InvalidPath,
		`{"op": "remove", "path": "userName"}`:                                   Mutability,
		`{"op": "replace", "path": "userName", "value": ""}`:                     InvalidValue,
		`{"op": "replace", "path": "userName", "value": null}`:                   InvalidValue,
		`{"op": "replace", "path": "id", "value": "x"}`:                          Mutability,
		`{"op": "remove", "path": "groups"}`:                                     Mutability,
		`{"op": "replace", "path": "displayName[a eq \"b\"]", "value": "x"}`:     NoTarget,
		`{"op": "replace", "path": "displayName", "value": {}}`:                  InvalidValue,
		`{"op": "replace", "path": "name[a eq \"b\"].familyName", "value": "x"}`: NoTarget,
		`{"op": "remove", "path": "emails[type eq \"other\"]"}`:                  NoTarget,
		`{"op": "remove", "path": "emails[type eq \"other\"].value"}`:            NoTarget,
		`{"op": "remove", "path": "emails", "value": [{"value": "x"}]}`:          NoTarget,
		`{"op": "remove", "path": "emails[type ne \"work\"]"}`:                   InvalidFilter,
		`{"op": "remove", "path": "emails[type eq \"a\" or type eq \"b\"]"}`:     InvalidFilter,
		`{"op": "remove", "path": "emails[colour eq \"red\"]"}`:                  InvalidFilter,
		`{"op": "remove", "path": "emails[emails.type eq \"work\"]"}`:            InvalidFilter,
		`{"op": "replace", "path": "manager[value eq \"1\"]", "value": "2"}`:     NoTarget,
		`{"op": "remove", "path": "urn:ietf:params:scim:schemas:core:2.0:User"}`: NoTarget,
		// all or nothing
		`{"op": "replace", "path": "active", "value": false}, {"op": "replace", "path": "active", "value": "no"}`: InvalidValue,
	} {
		got, err := patched(t, annAndHer, operations)
		wantFault(t, err, scimType)
		if !cmp.Equal(got, User{}) || t.Failed() {
			t.Fatalf("%s: %+v, %v", operations, got, err)
		}
	}
}

// The User before a PATCH stays as it was, also where the PATCH fails.
func TestPatchUserChangesACopy(t *testing.T) {
	before, err := ParseUser([]byte(annAndHer))
	if err != nil {
		t.Fatal(err)
	}
	operations, err := ParsePatch([]byte(`{"Operations": [{"op": "replace", "path": "emails[type eq \"work\"].value", "value": "b"}, {"op": "remove", "path": "emails[type eq \"home\"]"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PatchUser(before, operations); err != nil {
		t.Fatal(err)
	}
	same, _ := ParseUser([]byte(annAndHer))
	if diff := cmp.Diff(same, before); diff != "" {
		t.Error(diff)
	}
}
