package scim

import (
	"fmt"
	"strings"
	"testing"
)

// What a body says of active counts whatever it says beside that; what is no value of active makes it count for nothing.
func TestOffBesideFaults(t *testing.T) {
	for _, c := range []struct {
		body       string
		put, patch bool
	}{
		{`{"active": false}`, true, false},
		{`{"Active": "False", "userName": 7, "emails": "x", "externalId": {}}`, true, false},
		{`{"urn:ietf:params:scim:schemas:core:2.0:User": {"active": "false"}, "x[": 1}`, true, false},
		{`{"active": "no", "userName": "ann"}`, false, false},
		{`{"active": false, "ACTIVE": false}`, false, false}, // which one counts?
		{`{"active": false, "active": true}`, false, false},
		{`{"active": false, "displayName": "a\u0000\ud83d"}`, true, false},
		{"{\"active\": false, \"displayName\": \"a\xf0\x9f\"}", true, false},
		{`{"active": false, "displayName": "a`, false, false},
		{`{"active.x": false}`, false, false},
		{`{"urn:x:y": {"active": false}, "active": null}`, false, false},
		{`[{"active": false}]`, false, false},
		{`{"Operations": [{"op": "Replace", "path": "active", "value": "False"}, {"op": "replace", "path": "emails[", "value": 1}]}`, false, true},
		{`{"Operations": [{"op": "replace", "value": {"active": false, "userName": 7, "a b": 1}}]}`, false, true},
		{`{"Operations": [{"op": "add", "path": "urn:ietf:params:scim:schemas:core:2.0:User", "value": {"active": [{"value": "false"}]}}, {"op": "remove"}]}`, false, true},
		{`{"Operations": [{"op": "eat", "path": "name"}, {"op": "replace", "path": "urn:ietf:params:scim:schemas:core:2.0:User:active", "value": false}]}`, false, true},
		{`{"Operations": [{"op": "replace", "path": "active", "value": false}, {"op": "replace", "path": "active", "value": true}, {"op": "eat"}]}`, false, false},
		{`{"Operations": [{"op": "replace", "path": "active", "value": false}, {"op": "replace", "path": "active", "value": 0}]}`, false, false},
		{`{"Operations": [{"op": "eat", "path": "active", "value": false}]}`, false, false},
		{`{"Operations": [{"op": "remove", "path": "active"}]}`, false, false},
		{`{"Operations": [{"op": "replace", "path": "active[value eq \"x\"]", "value": false}]}`, false, false},
		{`{"Operations": [{"op": "replace", "path": "urn:ietf:params:scim:schemas:core:2.0:Group:active", "value": false}]}`, false, false},
		{`{"Operations": [7]}`, false, false},
		{`{"Operations": [{"op": "replace", "path": "displayName", "value": "a\u0000\ud83d"}, {"op": "replace", "path": "active", "value": false}]}`, false, true},
	} {
		if got := OffInPut([]byte(c.body)); got != c.put {
			t.Errorf("PUT %s: off is %t", c.body, got)
		}
		if got := OffInPatch([]byte(c.body)); got != c.patch {
			t.Errorf("PATCH %s: off is %t", c.body, got)
		}
	}
}

// A refusal names an attribute as RFC 7643 spells it, however it was sent.
func TestSpelling(t *testing.T) {
	for _, name := range []string{
		"userName", "externalId", "displayName", "name.givenName", "name.familyName", "name.middleName", "name.honorificPrefix", "name.honorificSuffix", "name.formatted",
		"employeeNumber", "costCenter", "organization", "division", "department", "manager.displayName", "manager.$ref", "emails.display", "emails.type",
	} {
		body := fmt.Sprintf(`{"Operations": [{"op": "ADD", "path": %q, "value": {"a": 1}}]}`, strings.ToUpper(name))
		operations, err := ParsePatch([]byte(body))
		if err == nil {
			_, err = PatchUser(User{UserName: "ann", Emails: []EmailItem{{Value: "a"}}}, operations)
		}
		if fault, is := err.(*Error); !is || !strings.Contains(fault.Detail, " "+name+".") {
			t.Errorf("%s: %v", body, err)
		}
	}
	_, err := ParseUser([]byte(`{"USERNAME": "ann", "NAME": {"GIVENNAME": []}, "name.x": 1}`))
	if fault, is := err.(*Error); !is || !strings.Contains(fault.Detail, " name.givenName.") {
		t.Errorf("a part of an object: %v", err)
	}
}
