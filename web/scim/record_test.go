package scim

import (
	"slices"
	"testing"
)

// The protocol names what a PATCH did to which attributes, and shows none of the values, wherever they were written.
func TestOperationsOf(t *testing.T) {
	for sent, want := range map[string]string{
		`{"op": "Replace", "path": "active", "value": false}`:                                            "replace active",
		`{"op": "add", "path": "emails[type eq \"work\"].value", "value": "ann@acme.example"}`:           "add emails.value",
		`{"op": "add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department"}`: "add urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
		`{"op": "replace", "value": {"name.givenName": "Ann", "active": true}}`:                          "replace active name.givenName",
		`{"op": "replace", "value": {"ann@acme.example": true}}`:                                         "replace …",
		`{"op": "remove", "path": "emails[value eq \"ann@acme.example\""}`:                               "remove emails…",
		`{"op": "remove", "path": "userName eq \"ann@acme.example\""}`:                                   "remove …",
		`{"op": "remove", "path": "emails[value eq \"x\"] ann@acme.example"}`:                            "remove emails…",
		`{"op": "ann@acme.example", "path": "active"}`:                                                   "… active",
	} {
		if got := operationsOf([]byte(`{"Operations": [` + sent + `]}`)); !slices.Equal(got, []string{want}) {
			t.Errorf("%s is shown as %q, not %q", sent, got, want)
		}
	}
	if got := namesIn([]byte(`{"userName": "x", "ann@acme.example": 1}`)); !slices.Equal(got, []string{"…", "userName"}) {
		t.Errorf("the names of a body are shown as %q", got)
	}
}
