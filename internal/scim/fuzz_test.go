package scim

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantOwn fails if err is anything but an answer to a directory.
func wantOwn(t *testing.T, err error) {
	t.Helper()
	if fault, ok := errors.AsType[*Error](err); err != nil && (!ok || fault.Status != 400 && fault.Status != 413 || fault.Detail == "") {
		t.Fatalf("%v is no answer", err)
	}
}

func FuzzFilter(f *testing.F) {
	for _, text := range []string{`userName eq "a" and active eq true`, `emails[type eq "work"].value eq "a"`, `((id eq "\u0061"))`, `members[value eq "]"] eq "`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, of := range []Resource{Users, Groups} {
			filter, err := ParseFilter(of, text)
			if wantOwn(t, err); err == nil && (len(filter) == 0 || len(filter) > maxConditions) {
				t.Fatalf("%d conditions", len(filter))
			}
		}
		if p, err := parsePath(text); err == nil && p.picks && p.filter == "" {
			t.Fatalf("%+v picks by nothing", p)
		}
	})
}

// A User that was accepted is the same when it is stored and read again, and after a PATCH, too.
func FuzzPatchUser(f *testing.F) {
	f.Add([]byte(annAndHer))
	f.Add([]byte(`{"Operations": [{"op": "add", "path": "emails[type eq \"x\"].value", "value": "a"}, {"op": "remove", "path": "name"}]}`))
	f.Add([]byte(`{"Operations": [{"op": "replace", "value": {"active": "False", "manager": [{"value": 5}]}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		u, err := ParseUser(body)
		if wantOwn(t, err); err == nil {
			wantStored(t, u)
			if is := u.Active != nil && !*u.Active; OffInPut(body) != is {
				t.Fatalf("a PUT is read as off: %t", !is)
			}
		}
		operations, err := ParsePatch(body)
		if wantOwn(t, err); err != nil {
			return
		}
		if OffInPatch(body) != SwitchesOff(operations) {
			t.Fatalf("a PATCH that can be read is off: %t", SwitchesOff(operations))
		}
		before, _ := ParseUser([]byte(annAndHer))
		after, err := PatchUser(before, operations)
		if wantOwn(t, err); err == nil {
			wantStored(t, after)
		}
	})
}

func wantStored(t *testing.T, u User) {
	t.Helper()
	stored, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseUser(stored)
	for i := range read.Emails { // an e-mail with nothing is read over
		u.Emails = slices.DeleteFunc(u.Emails, func(e EmailItem) bool { return e == EmailItem{} && i >= 0 })
	}
	if len(u.Emails) == 0 || len(read.Emails) == 0 {
		u.Emails, read.Emails = nil, nil
	}
	if diff := cmp.Diff(u, read); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
}

func FuzzPatchGroup(f *testing.F) {
	f.Add([]byte(`{"displayName": "a", "members": [{"value": "b"}]}`))
	f.Add([]byte(`{"Operations": [{"op": "remove", "path": "members[value eq \"a\"]"}, {"op": "add", "path": "members", "value": ["b"]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		g, err := ParseGroup(body)
		if wantOwn(t, err); err == nil && (g.DisplayName == "" || !isSet(g.Members)) {
			t.Fatalf("%+v", g)
		}
		operations, err := ParsePatch(body)
		if wantOwn(t, err); err != nil {
			return
		}
		change, err := PatchGroup(operations, true)
		if wantOwn(t, err); err != nil {
			return
		}
		if !isSet(change.In) || !isSet(change.Out) || change.Whole && change.Out != nil || !isSet(sorted(change.In, change.Out)) {
			t.Fatalf("%+v", change)
		}
	})
}

func sorted(a, b []string) []string { return slices.Sorted(slices.Values(slices.Concat(a, b))) }

func isSet(ids []string) bool {
	return slices.IsSorted(ids) && len(slices.Compact(slices.Clone(ids))) == len(ids) && !slices.Contains(ids, "")
}
