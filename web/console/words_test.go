package console

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/internal/cputime"
	"github.com/doorward/doorward/web/ui"
)

// catalogue returns the keys of the messages of a language, each with its placeholders.
func catalogue(t *testing.T, tag string) map[string][]string {
	t.Helper()
	f, err := files.Open("text/" + tag + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, message, ok := strings.Cut(lines.Text(), " = "); ok {
			placeholders := regexp.MustCompile(`\{[a-z]+\}`).FindAllString(message, -1)
			slices.Sort(placeholders)
			all[key] = slices.Compact(placeholders)
		}
	}
	return all
}

func TestLanguagesSayTheSame(t *testing.T) {
	first := catalogue(t, ui.Languages[0].Tag)
	for _, l := range ui.Languages[1:] {
		if diff := cmp.Diff(first, catalogue(t, l.Tag)); diff != "" {
			t.Errorf("%s and %s say different things:\n%s", ui.Languages[0].Tag, l.Tag, diff)
		}
	}
}

// The message keys that pages compute from actions, codes, statuses, roles and states exist.
func TestMessagesOfActions(t *testing.T) {
	var keys []string
	for name, action := range memberActions {
		for _, part := range []string{"title", "text", "button"} {
			keys = append(keys, "act."+name+"."+part)
		}
		if name != "role" {
			keys = append(keys, "act."+name+".then")
		}
		keys = append(keys, "done."+name)
		if action.danger && !action.endsSessions {
			t.Errorf("%s is dangerous and ends nothing", name)
		}
	}
	for _, v := range doorward.Verbs() {
		keys = append(keys, "did."+string(v.Action))
		// Other permissions are in trails only as refusals.
		done := !v.Action.IsPermission() || v.Action == doorward.UserInvite || v.Action == doorward.TenantDestroy
		if v.By == doorward.ByRole && done {
			keys = append(keys, "tried."+string(v.Action))
		}
	}
	for _, p := range doorward.Problems() {
		if canBeReason(p) {
			keys = append(keys, "reason."+string(p.Code))
		}
	}
	for _, status := range []doorward.TenantStatus{doorward.TenantActive, doorward.TenantFrozen, doorward.TenantClosing} {
		keys = append(keys, "status."+string(status))
	}
	for _, s := range invitationStates {
		keys = append(keys, "state."+string(s))
	}
	have := catalogue(t, ui.Languages[0].Tag)
	slices.Sort(keys)
	for _, key := range keys {
		if _, ok := have[key]; !ok {
			t.Errorf("no message %q (there are %d)", key, len(have))
		}
	}
}

// The message keys that the pages of sign-on compute from settings and actions exist.
func TestMessagesOfSignOn(t *testing.T) {
	var keys []string
	add := func(prefix string, names ...string) {
		for _, name := range names {
			keys = append(keys, prefix+name)
		}
	}
	for _, name := range jits {
		add("sso.jit.", name, name+".text")
	}
	for _, name := range ssoModes {
		add("sso.mode.", name, name+".text")
		add("sso.provisional.", name)
	}
	for name, act := range connectionActions {
		add("sso."+name+".", "title", "then", "after", "button")
		add("done.connection-", name)
		if act.danger && act.preview == nil && act.of == "" && name != "discard" && name != "setup-end" {
			t.Errorf("%s is dangerous and shows no effects", name)
		}
	}
	for _, kind := range []doorward.DirectoryEffectKind{doorward.DirectoryMade, doorward.DirectoryChanged, doorward.DirectorySuspended, doorward.DirectoryResumed, doorward.DirectoryRemoved} {
		add("runs.effect.", string(kind))
	}
	add("runs.effect.", "uninvited", "invited")
	add("sso.link.", "text.draft", "text.directory", "opens.draft", "opens.directory", "then.draft", "then.directory")
	add("runs.group.", string(doorward.DirectoryMade), string(doorward.DirectoryChanged), string(doorward.DirectoryRemoved))
	for _, step := range []directoryrun.Step{directoryrun.Rejoin, directoryrun.Leave, directoryrun.Resume, directoryrun.Suspend, directoryrun.GiveRole, directoryrun.Invite, directoryrun.Uninvite, directoryrun.Move, directoryrun.Remake} {
		add("runs.does.", string(step))
	}
	for _, why := range append(undoneReasons, "unheard_of") {
		add("", undoneKey(why))
	}
	for _, state := range []doorward.UndoState{doorward.UndoRunning, doorward.UndoDone} {
		add("runs.undo.", string(state))
	}
	for _, name := range outsides {
		add("scim.outside.", name, name+".text")
	}
	for _, name := range connectionTypes {
		add("sso.type.", name, name+".text")
	}
	for _, key := range keys {
		if !messageKeys()[key] {
			t.Errorf("no message %q", key)
		}
	}
}

// canBeReason reports whether an event can have the problem as its reason: package access
// records missing permissions and that the last OWNER can't leave; features record wrong
// passwords and too many of them. TestGoldenEvents of package web checks the recorded
// reasons.
func canBeReason(p doorward.Problem) bool {
	switch p.Kind {
	case doorward.KindForbidden, doorward.KindUnauthenticated, doorward.KindTooMany:
		return true
	}
	return p.Code == doorward.CodeLastOwner
}

func TestChangesInWords(t *testing.T) {
	names := map[string]string{"usr_ann": "Ann"}
	at := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		field, text string
		want        value
	}{
		{"reason", "invalid_credentials", value{Key: "reason.invalid_credentials"}},
		{"reason", "of_a_newer_version", value{Text: "of_a_newer_version"}},
		{"cause", "password.change", value{Key: "did.password.change"}},
		{"cause", "of.newer", value{Text: "of.newer"}},
		{"sessionIdle", "0s", value{Key: "change.inherited"}},
		{"sessionAbsolute", "1h30m0s", value{Duration: 90 * time.Minute}},
		{"sessionIdle", "soon", value{Text: "soon"}},
		{"accent", "", value{Key: "change.inherited"}},
		{"accent", "#112233", value{Text: "#112233"}},
		{"allowedEmailDomains", "", value{Key: "filter.all"}},
		{"name", "", value{Key: "change.nothing"}},
		{"name", "forbidden", value{Text: "forbidden"}},
		{"logo", "1a2b3c", value{Key: "change.image"}},
		{"role", "ADMIN", value{Roles: []string{"ADMIN"}}},
		{"replacedBy", "VIEWER", value{Roles: []string{"VIEWER"}}},
		{"role", "KING", value{Roles: []string{"KING"}}},
		{"mfaRoles", "OWNER OPS_TEAM", value{Roles: []string{"OWNER", "OPS_TEAM"}}},
		{"status", "REVOKED", value{Key: "state.REVOKED"}},
		{"status", "closing", value{Key: "status.closing"}},
		{"expiresAt", "2031-05-06T12:00:00Z", value{At: at}},
		{"expiresAt", "later", value{Text: "later"}},
		{"invitedBy", "usr_ann", value{Text: "Ann"}},
		{"invitedBy", "usr_gone", value{Text: "usr_gone"}},
		{"invitedBy", "key_router", value{Key: "invitations.service"}},
		{"invitedBy", "", value{Key: "invitations.operator"}},
		{"userAgent", "curl/8", value{Agent: "curl/8"}},
		{"sessionsEnded", "3", value{Text: "3"}},
		{"stepUp", "10m0s", value{Duration: 10 * time.Minute}},
		{"rotateBy", "2031-05-06T12:00:00Z", value{At: at}},
		{"mode", "observe", value{Key: "change.mode.observe"}},
		{"enabled", "false", value{Key: "change.enabled.false"}},
		{"factorRenamed", "passkey", value{Key: "change.factor.passkey"}},
		{"factor", "of a newer version", value{Text: "of a newer version"}},
	} {
		if diff := cmp.Diff(c.want, describeValue(c.field, c.text, names)); diff != "" {
			t.Errorf("%s %q:\n%s", c.field, c.text, diff)
		}
	}
	all := describeChanges([]doorward.Change{{Field: "sessionIdle", From: "0s", To: "1m0s"}, {Field: "allowedEmailDomains", To: "acme.example"}, {Field: "of_a_newer_version", To: "x"}, {Field: "logo", From: "1a", To: "2b"}}, nil)
	want := []change{
		{Field: "sessionIdle", Label: "change.sessionIdle", Was: value{Key: "change.inherited"}, Is: value{Duration: time.Minute}, Both: true},
		{Field: "allowedEmailDomains", Label: "change.allowedEmailDomains", Was: value{Key: "filter.all"}, Is: value{Text: "acme.example"}, Both: true},
		{Field: "of_a_newer_version", Was: value{Key: "change.nothing"}, Is: value{Text: "x"}},
		{Field: "logo", Label: "change.logo", Was: value{Key: "change.image"}, Is: value{Key: "change.otherImage"}, Both: true},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}

// TestEachFieldHasALabel: the trail names each field that docs/events.md describes in words.
func TestEachFieldHasALabel(t *testing.T) {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "<!-- made by a test: fields -->")
	table, _, ended := strings.Cut(table, "<!-- end: fields -->")
	if !found || !ended {
		t.Fatal("docs/events.md has no table of fields")
	}
	fields := regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)`").FindAllStringSubmatch(table, -1)
	if len(fields) < 50 {
		t.Fatalf("%d fields in docs/events.md", len(fields))
	}
	for _, field := range fields {
		if key := "change." + field[1]; !messageKeys()[key] {
			t.Errorf("text/en.txt has no %s", key)
		}
	}
}

// distinctLines returns text of the largest size of a form, with as many different lines as
// fit.
func distinctLines() string {
	var text strings.Builder
	for n := 0; text.Len() < 64<<10; n++ {
		fmt.Fprintf(&text, "%x\n", n)
	}
	return text.String()
}

// TestSplitPeopleTakesLinearTime: reading the largest text takes about 2 ms; comparing all
// pairs of lines took 140 to 580 ms.
func TestSplitPeopleTakesLinearTime(t *testing.T) {
	text, best := distinctLines(), time.Hour
	for range 5 {
		before := cputime.Used(t)
		splitPeople(text)
		best = min(best, cputime.Used(t)-before)
	}
	if best > 40*time.Millisecond {
		t.Errorf("64 KiB take %v of CPU at best", best)
	}
}

func BenchmarkSplitPeople(b *testing.B) {
	text := distinctLines()
	for b.Loop() {
		splitPeople(text)
	}
}

func TestSplitPeople(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                 nil,
		" \r\n;,":                          nil,
		"a@x\r\nb@x\n\nc@x":                {"a@x", "b@x", "c@x"},
		"a@x, b@x;c@x,":                    {"a@x", "b@x", "c@x"},
		"\"Lee, Ann\" <a@x>;B <b@x>,\n":    {"\"Lee, Ann\" <a@x>", "B <b@x>"},
		"a@x\na@x":                         {"a@x"},
		"Ann Lee <a@x>, \"Roe, Bo\" <b@x>": {"Ann Lee <a@x>", "\"Roe, Bo\" <b@x>"},
	} {
		if diff := cmp.Diff(want, splitPeople(text)); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
	for line, want := range map[string][2]string{
		"a@x":                {"", "a@x"},
		"Ann Lee <a@x>":      {"Ann Lee", "a@x"},
		"\"Lee, Ann\" < a@x": {"Lee, Ann", "a@x"},
		"<>":                 {"", ""},
	} {
		if name, email := splitNameAndAddress(line); [2]string{name, email} != want {
			t.Errorf("%q is %q, %q", line, name, email)
		}
	}
}

// Other targets are counted once each, without the entry's own. The id of an invitation that
// was never made is not shown as a target.
func TestTargetsOfEntries(t *testing.T) {
	refusedOn := func(id string) entry {
		return entry{Event: doorward.Event{Target: doorward.Object{Type: "invitation", ID: id}, Outcome: doorward.Refused}, Target: identity{ID: id, Name: id}}
	}
	one := refusedOn("inv_1")
	one.Others = []entry{refusedOn("inv_1"), refusedOn("inv_2"), refusedOn("inv_2")}
	if got := one.OtherTargets(); got != 1 {
		t.Errorf("%d other targets, want 1", got)
	}
	if one.ShowsTarget() {
		t.Error("the id of an invitation that was never made is shown")
	}
	one.Target.Name = "ann@x.example"
	if !one.ShowsTarget() {
		t.Error("an invitation that exists is not shown")
	}
}

// What an operator's page has done names who has made its link: somebody else may have opened it. A command's event
// names who ran it.
func TestWordsForTheMakerOfALink(t *testing.T) {
	by := []doorward.Change{{Field: doorward.FieldSystemUser, To: "root@db1"}}
	page := doorward.Object{Type: "page", ID: "opg_1"}
	for want, events := range map[string][]doorward.Event{
		"change.linkMadeBy": {{Action: doorward.TenantFreeze, ActorID: page.ID, Changes: by}, {Action: doorward.AuditOpen, Target: page, Changes: by}},
		"change.systemUser": {{Action: doorward.TenantFreeze, Changes: by}, {Action: doorward.AuditLink, Target: page, Changes: by}},
	} {
		for _, e := range events {
			if got := describeFields(e, nil)[0].Label; got != want {
				t.Errorf("%s by %q: %s, want %s", e.Action, e.ActorID, got, want)
			}
		}
	}
}
