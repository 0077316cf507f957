package scim

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseGroup(t *testing.T) {
	g, err := ParseGroup([]byte(`{"schemas": [], "displayName": "Sales", "EXTERNALID": "g1", "id": "x", "urn:x": {},
		"members": [{"value": "b", "display": "B", "$ref": null}, {"value": "a"}, "c", {"value": "a"}]}`))
	if want := (Group{DisplayName: "Sales", ExternalID: "g1", Members: []string{"a", "b", "c"}}); err != nil || !cmp.Equal(g, want) {
		t.Errorf("%+v, %v", g, err)
	}
	for body, scimType := range map[string]string{
		`{}`: InvalidValue, `{"displayName": ""}`: InvalidValue, `{"displayName": null}`: InvalidValue,
		`{"displayName": "a", "members": [{}]}`: InvalidValue, `{"displayName": "a", "members": [5]}`: InvalidValue,
		`{"displayName": "a", "members": [{"value": ""}]}`: InvalidValue,
	} {
		_, err := ParseGroup([]byte(body))
		wantFault(t, err, scimType)
	}
}

func TestPatchGroup(t *testing.T) {
	text := func(s string) *string { return &s }
	for operations, want := range map[string]GroupChange{
		`{"op": "add", "path": "members", "value": [{"value": "b"}, {"value": "a"}]}`:                                      {In: []string{"a", "b"}},
		`{"op": "Add", "path": "MEMBERS", "value": {"value": "a"}}`:                                                        {In: []string{"a"}},
		`{"op": "add", "path": "urn:ietf:params:scim:schemas:core:2.0:Group:members", "value": "a"}`:                       {In: []string{"a"}},
		`{"op": "add", "value": {"members": [{"value": "a"}]}}`:                                                            {In: []string{"a"}},
		`{"op": "remove", "path": "members[value eq \"a\"]"}`:                                                              {Out: []string{"a"}},
		`{"op": "remove", "path": "members[value eq \"a\" OR (value eq \"b\" or value eq \"c\")]"}`:                        {Out: []string{"a", "b", "c"}},
		`{"op": "Remove", "path": "members", "value": [{"value": "a"}, {"$ref": null, "value": "b"}]}`:                     {Out: []string{"a", "b"}},
		`{"op": "remove", "path": "members", "value": {"value": "a"}}`:                                                     {Out: []string{"a"}},
		`{"op": "remove", "path": "members[value eq \"a\"]"}, {"op": "add", "path": "members", "value": [{"value": "a"}]}`: {In: []string{"a"}},
		`{"op": "add", "path": "members", "value": [{"value": "a"}]}, {"op": "remove", "path": "members[value eq \"a\"]"}`: {Out: []string{"a"}},
		`{"op": "replace", "path": "members", "value": [{"value": "a"}]}`:                                                  {Whole: true, In: []string{"a"}},
		`{"op": "replace", "path": "members", "value": []}`:                                                                {Whole: true},
		`{"op": "replace", "path": "members", "value": null}`:                                                              {Whole: true},
		`{"op": "add", "path": "members", "value": "b"}, {"op": "replace", "path": "members", "value": ["a", "c"]}, {"op": "remove", "path": "members", "value": ["c", "d"]}`: {
			Whole: true, In: []string{"a"},
		},
		`{"op": "replace", "value": {"id": "x", "displayName": "New"}}`:                                 {DisplayName: text("New")},
		`{"op": "replace", "path": "displayName", "value": "New"}`:                                      {DisplayName: text("New")},
		`{"op": "replace", "path": "externalId", "value": "1"}`:                                         {ExternalID: text("1")},
		`{"op": "remove", "path": "externalId"}`:                                                        {ExternalID: text("")},
		`{"op": "replace", "path": "members[value eq \"a\"].display", "value": "A"}`:                    {},
		`{"op": "add", "path": "description", "value": "x"}`:                                            {},
		`{"op": "add", "path": "urn:ietf:params:scim:schemas:extension:x:2.0:Group:a", "value": "x"}`:   {},
		`{"op": "add", "path": "urn:ietf:params:scim:schemas:core:2.0:User:displayName", "value": "x"}`: {},
	} {
		got, err := patchedGroup(operations, false)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", operations, err, cmp.Diff(want, got))
		}
	}
}

func patchedGroup(operations string, emptyByRemove bool) (GroupChange, error) {
	parsed, err := ParsePatch([]byte(`{"Operations": [` + operations + `]}`))
	if err != nil {
		return GroupChange{}, err
	}
	return PatchGroup(parsed, emptyByRemove)
}

func TestPatchGroupRefuses(t *testing.T) {
	for operations, scimType := range map[string]string{
		`{"op": "remove", "path": "members"}`:                                                            NoTarget,
		`{"op": "remove", "path": "members", "value": []}`:                                               NoTarget,
		`{"op": "remove", "path": "members", "value": null}`:                                             NoTarget,
		`{"op": "remove", "path": "members[type eq \"User\"]"}`:                                          NoTarget,
		`{"op": "remove", "path": "members[display eq \"Ann\"]"}`:                                        NoTarget,
		`{"op": "remove", "path": "members[value eq \"a\" and type eq \"User\"]"}`:                       NoTarget,
		`{"op": "remove", "path": "members[value eq true]"}`:                                             NoTarget,
		`{"op": "remove", "path": "members[value ne \"a\"]"}`:                                            InvalidFilter,
		`{"op": "remove", "path": "members[value eq \"a\" or type eq \"User\"]"}`:                        NoTarget,
		`{"op": "remove", "path": "members[value eq \"a\" and value eq \"b\"]"}`:                         NoTarget,
		`{"op": "remove", "path": "members[value eq \"a\" or value eq \"b\" and value eq \"c\"]"}`:       InvalidFilter,
		`{"op": "remove", "path": "members[value eq \"a\" or]"}`:                                         InvalidFilter,
		`{"op": "add", "path": "members[value eq \"a\"]", "value": {"value": "b"}}`:                      Mutability,
		`{"op": "replace", "path": "members[value eq \"a\"].value", "value": "b"}`:                       Mutability,
		`{"op": "add", "path": "members", "value": [{"display": "Ann"}]}`:                                InvalidValue,
		`{"op": "add", "path": "members", "value": null}`:                                                InvalidValue,
		`{"op": "remove", "path": "displayName"}`:                                                        Mutability,
		`{"op": "replace", "path": "displayName", "value": ""}`:                                          InvalidValue,
		`{"op": "replace", "path": "displayName[value eq \"x\"]", "value": "y"}`:                         NoTarget,
		`{"op": "replace", "path": "id", "value": "y"}`:                                                  Mutability,
		`{"op": "add", "path": "members", "value": "a"}, {"op": "add", "path": "members", "value": [5]}`: InvalidValue,
	} {
		_, err := patchedGroup(operations, false)
		if wantFault(t, err, scimType); t.Failed() {
			t.Fatal(operations)
		}
	}
}

func TestEmptyByRemove(t *testing.T) {
	for _, operation := range []string{`{"op": "remove", "path": "members"}`, `{"op": "remove", "path": "members", "value": []}`} {
		got, err := patchedGroup(operation, true)
		if want := (GroupChange{Whole: true}); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %+v, %v", operation, got, err)
		}
	}
}

func TestMembersAreBounded(t *testing.T) {
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"value":"%d"}`, i)
		}
		return b.String()[1:]
	}
	if g, err := ParseGroup([]byte(`{"displayName": "a", "members": [` + list(MaxMembers) + `]}`)); err != nil || len(g.Members) != MaxMembers {
		t.Errorf("%d members, %v", len(g.Members), err)
	}
	_, err := ParseGroup([]byte(`{"displayName": "a", "members": [` + list(MaxMembers+1) + `]}`))
	if fault, ok := errors.AsType[*Error](err); !ok || fault.Status != 413 {
		t.Errorf("one more: %v", err)
	}
	one := `,{"op":"add","path":"members","value":"a"}`
	_, err = ParsePatch([]byte(`{"Operations": [` + strings.Repeat(one, MaxMembers+1)[1:] + `]}`))
	if fault, ok := errors.AsType[*Error](err); !ok || fault.Status != 413 {
		t.Errorf("too many operations: %v", err)
	}
}
