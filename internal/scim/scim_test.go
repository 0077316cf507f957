package scim

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantFault fails unless err is an Error of a type.
func wantFault(t *testing.T, err error, scimType string) {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	if !ok || fault.Type != scimType || fault.Status != 400 {
		t.Errorf("got %v, want 400 %s", err, scimType)
	}
}

func TestErrorIsOfRFC7644(t *testing.T) {
	got, err := json.Marshal(refuse(NoTarget, "Send a path."))
	want := `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"400","scimType":"noTarget","detail":"Send a path."}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestBool(t *testing.T) {
	for text, want := range map[string]bool{
		`true`: true, `"True"`: true, `"TRUE"`: true, `[{"value":"True"}]`: true,
		`false`: false, `"False"`: false, `"false"`: false, `[{"$ref":null,"value":"False"}]`: false, `[false]`: false,
	} {
		if got, err := Bool([]byte(text)); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{`0`, `1`, `"no"`, `"0"`, `""`, `null`, `{}`, `[]`, `[true,false]`, `[{}]`, ``, `"falſe"`} {
		_, err := Bool([]byte(text))
		wantFault(t, err, InvalidValue)
	}
}

func TestFilter(t *testing.T) {
	for text, want := range map[string]Filter{
		`userName eq "Ann@Acme.example"`: {{Attribute: UserName, Text: "Ann@Acme.example"}},
		`USERNAME EQ "a\"\u0062"`:        {{Attribute: UserName, Text: `a"b`}},
		`id eq "usr_1"`:                  {{Attribute: ID, Text: "usr_1"}},
		`displayName eq "]) and ("`:      {{Attribute: DisplayName, Text: "]) and ("}},
		`active eq true`:                 {{Attribute: Active, Bool: true}},
		`active eq "False"`:              {{Attribute: Active}},
		`emails.value eq "a"`:            {{Attribute: Email, Text: "a"}},
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "a"`:                     {{Attribute: UserName, Text: "a"}},
		`URN:ietf:params:scim:schemas:CORE:2.0:user:emails[TYPE eq "Work"].VALUE eq "a"`: {{Attribute: WorkEmail, Text: "a"}},
		`  externalId  eq  "1"  AND (active eq true and (id eq "2")) `: {
			{Attribute: ExternalID, Text: "1"}, {Attribute: Active, Bool: true}, {Attribute: ID, Text: "2"},
		},
	} {
		got, err := ParseFilter(Users, text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]Filter{
		`displayName eq "Sales"`:                {{Attribute: DisplayName, Text: "Sales"}},
		`externalId eq "1"`:                     {{Attribute: ExternalID, Text: "1"}},
		`id eq "grp_1" and members eq "usr_1"`:  {{Attribute: ID, Text: "grp_1"}, {Attribute: Member, Text: "usr_1"}},
		`members.value eq "usr_1"`:              {{Attribute: Member, Text: "usr_1"}},
		GroupSchema + `:displayName eq "Sales"`: {{Attribute: DisplayName, Text: "Sales"}},
	} {
		got, err := ParseFilter(Groups, text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestFilterRefuses(t *testing.T) {
	for _, text := range []string{
		``, ` `, `userName`, `userName eq`, `userName eq `, `userName eq ann`, `userName eq "a`, `userName eq 'a'`, `userName eq "a\x"`,
		`userName eq "a\u0000"`, "userName eq \"a\x00\"", "userName eq \"\xff\"", `userName eq "\ud800"`, "userName eq \"a\nb\"",
		`userName ne "a"`, `userName co "a"`, `userName sw "a"`, `userName pr`, `userName eq "a" or id eq "b"`, `not (userName eq "a")`,
		`userName eq "a" and`, `userName eq "a" and and id eq "b"`, `and userName eq "a"`, `userName eq "a" id eq "b"`, `userName eq "a"x`,
		`(userName eq "a"`, `userName eq "a")`, `()`, `userName eq true`, `userName eq 5`, `userName eq null`, `active eq "no"`, `active eq 0`,
		`active eq TRUE`, `emails eq "a"`, `emails[type eq "home"].value eq "a"`, `emails[type eq "work" and value eq "a"]`, `emails[type eq "work"] eq "a"`,
		`emails[type eq "work"].type eq "a"`, `emails[type eq "work.value eq "a"`, `name.familyName eq "a"`, `title eq "a"`, `password eq "a"`, `meta.created eq "a"`,
		`members eq "usr_1"`, `userName.value eq "a"`, `urn:x:userName eq "a"`, EnterpriseSchema + `:department eq "a"`, GroupSchema + `:displayName eq "a"`,
		`userName eq"a"`, `userNameeq "a"`, `[userName] eq "a"`, `ſerName eq "a"`, `userName eq "a" or active eq true`,
	} {
		_, err := ParseFilter(Users, text)
		if wantFault(t, err, InvalidFilter); t.Failed() {
			t.Fatal(text)
		}
	}
	for _, text := range []string{`userName eq "a"`, `active eq true`, `members.display eq "a"`, `members[value eq "a"] eq "b"`, UserSchema + `:displayName eq "a"`} {
		_, err := ParseFilter(Groups, text)
		wantFault(t, err, InvalidFilter)
	}
}

func TestFilterIsBounded(t *testing.T) {
	inside := func(n int) string { return strings.Repeat("(", n) + `id eq "a"` + strings.Repeat(")", n) }
	joined := func(n int) string { return strings.Repeat(`id eq "a" and `, n-1) + `id eq "a"` }
	for _, text := range []string{inside(16), joined(16)} {
		if _, err := ParseFilter(Users, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{inside(17), joined(17), strings.Repeat("(", 1_000_000)} {
		_, err := ParseFilter(Users, text)
		wantFault(t, err, InvalidFilter)
	}
}

func TestPath(t *testing.T) {
	for text, want := range map[string]path{
		"active":                       {name: "active"},
		"Name.FamilyName":              {name: "name", sub: "familyname"},
		"members.$ref":                 {name: "members", sub: "$ref"},
		`emails[type eq "work"].value`: {name: "emails", filter: `type eq "work"`, picks: true, sub: "value"},
		`emails[value eq "a]\"]"]`:     {name: "emails", filter: `value eq "a]\"]"`, picks: true},
		"manager":                      {schema: enterprise, name: "manager"},
		EnterpriseSchema:               {schema: enterprise, only: Users},
		strings.ToUpper(EnterpriseSchema) + ":manager.Value":           {schema: enterprise, only: Users, name: "manager", sub: "value"},
		UserSchema + ":userName":                                       {only: Users, name: "username"},
		GroupSchema + ":members":                                       {only: Groups, name: "members"},
		"urn:ietf:params:scim:schemas:extension:Custom:2.0:User:tag[x": {schema: foreign},
		EnterpriseSchema + "2:x":                                       {schema: foreign},
		"urn:doorward:scim:User:state":                                 {schema: foreign},
	} {
		if got, err := parsePath(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", " ", ".", "a.", ".a", "a.b.c", "a b", "1a", "a[", "a[]", "a[ ]", `a["]`, "a]", "a[b]c", "a[b].", "a[b][c]", "/active", "a,b", "ä",
		UserSchema + ":a b", EnterpriseSchema + ":.", "a[b].c d",
	} {
		_, err := parsePath(text)
		if wantFault(t, err, InvalidPath); t.Failed() {
			t.Fatal(text)
		}
	}
}
