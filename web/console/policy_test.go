package console_test

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/app/cedar"
)

const policyPath = "/console/policy"

// putPolicy puts a text in force, whatever the current version.
func putPolicy(t *testing.T, h fixture, text string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	res, answer := h.browserOf(t, "OWNER").send("PUT", "/api/v2/policy", bytes.NewReader(body), "If-Match", "*", "Content-Type", "application/json")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
}

// editedText returns the text in the editor of a page.
func editedText(page string) string {
	_, text, _ := strings.Cut(page, "<textarea")
	_, text, _ = strings.Cut(text, ">\n")
	text, _, _ = strings.Cut(text, "</textarea>")
	return html.UnescapeString(text)
}

const (
	noSettings = "@id(\"no-settings\")\nforbid(principal, action == Action::\"settings.manage\", resource);\n"
	noInviting = "@id(\"no-inviting\")\nforbid(principal, action == Action::\"user.invite\", resource);\n"
)

func TestChangingPolicies(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	page := b.get(policyPath, http.StatusOK, "There are no policies", "Start from an example", `&#34;authAge&#34;?: Long`, `Action::"user.invite"`, `value="10"`)
	lacks(t, page, "All versions")
	b.get("/console/settings", http.StatusOK, `action="/console/settings?tab=general"`)
	// As browsers send it.
	form := url.Values{"text": {strings.ReplaceAll(noSettings, "\n", "\r\n")}, "mode": {"enforce"}, "confirmMinutes": {""}, "version": {b.version(page)}}
	page = b.submit(policyPath, form, "The policies are saved", "Version 1", ">owner@acme.example<", `<li id="L2"><code>forbid(`)
	lacks(t, page, "Start from an example", "This version reverts in", "What you change", `<details class="more" open><summary>Text`) // the editor has it
	if _, answer := h.tenant.Owner.Get("/api/v2/policy"); strings.Contains(string(answer), `\r`) {
		t.Errorf("the line breaks of the browser are kept: %s", answer)
	}
	lacks(t, b.get("/console/settings", http.StatusOK), `action="/console/settings?tab=general"`)
	h.browserOf(t, "ADMIN").get(policyPath, http.StatusOK, `<details class="more" open><summary>Text`, `<li id="L2">`)
	b.get("/console/audit", http.StatusOK, "Policies changed")
}

// A text that begins with a line break keeps it: HTML drops the first one in a textarea.
func TestEditorKeepsTheText(t *testing.T) {
	h := newFixture(t)
	putPolicy(t, h, "\n\n// </textarea><script>\n"+noSettings)
	b := h.browserOf(t, "OWNER")
	page := b.get(policyPath, http.StatusOK, "&lt;/textarea&gt;&lt;script&gt;")
	if text := editedText(page); !strings.HasPrefix(text, "\n\n// </textarea>") {
		t.Errorf("the editor has %q", text)
	}
}

// Each fault is shown with its place and its line, and what was typed stays.
func TestFaultsOfPolicies(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	text := noSettings + "permit(principal, action, resource);\n@id(\"x\") forbid(principal, action == Action::\"in<voice\", resource);\n"
	form := url.Values{"text": {text}, "mode": {"enforce"}, "confirmMinutes": {"7"}, "version": {"0"}}
	page := b.post(policyPath, form, http.StatusUnprocessableEntity,
		"Line 3, column 1:", "Only “forbid” is possible.", `<code dir="ltr">permit(principal, action, resource);</code>`,
		"Line 4, column ", "Unknown action.", "in&lt;voice", `<li id="T3" class="wrong">`, `<li id="T4" class="wrong">`, `value="7"`, "What you change", "<ins>permit(")
	lacks(t, page, `<li id="T1" class="wrong">`)
	b.translate(page, policyPath, "de", "Was Sie ändern", "in&lt;voice", `value="7"`)
	form.Set("text", strings.Repeat("/", cedar.MaxBytes+1))
	b.post(policyPath, form, http.StatusUnprocessableEntity, "Too large.")
	form.Set("text", strings.Repeat("/", 1<<20))
	b.post(policyPath, form, http.StatusRequestEntityTooLarge)
	form.Set("text", "")
	for _, minutes := range []string{"0", "61", "soon", "99999999999999999999"} {
		form.Set("confirmMinutes", minutes)
		b.post(policyPath, form, http.StatusUnprocessableEntity, "Enter 1 to 60 minutes, or nothing.", `value="`+minutes+`"`)
	}
	form.Set("confirmMinutes", "")
	form.Set("text", strings.Repeat("\r\n", cedar.MaxBytes-1)+" ") // the most that browsers send for a text
	b.post(policyPath, form, http.StatusSeeOther)
}

// A text that observes shows what it would have refused, and what refuses at the same time.
func TestObservingPolicies(t *testing.T) {
	h := newFixture(t)
	putPolicy(t, h, noInviting)
	b := h.browserOf(t, "OWNER")
	form := url.Values{"text": {noSettings}, "mode": {"observe"}, "confirmMinutes": {""}, "version": {b.version(b.get(policyPath, http.StatusOK))}}
	page := b.submit(policyPath, form, "This text only observes", `<code dir="ltr">no-settings</code></th><td>0</td>`, `value="observe" checked`)
	if status, _ := h.tenant.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"name":"Acme 2"}`)); status != http.StatusOK {
		t.Fatal(status)
	}
	b.get("/console/invitations/new", http.StatusForbidden)
	b.get(policyPath, http.StatusOK, `no-settings</code></th><td>1</td>`)
	for title, want := range map[string][2]string{"now-title": {"Version 1", "no-inviting"}, "observing-title": {"Version 2", "no-settings"}} {
		_, section, _ := strings.Cut(page, `<section aria-labelledby="`+title)
		section, _, _ = strings.Cut(section, "</section>")
		if !strings.Contains(section, want[0]) || !strings.Contains(section, want[1]) {
			t.Errorf("%s has not %q:\n%s", title, want, section)
		}
	}
	state := regexp.MustCompile(`(?s)id="v(\d)".*?<td role="cell">(.*?)</td>`)
	want := [][]string{{"2", `<span class="tag warm">Only observes</span>`}, {"1", `<span class="tag">In force</span>`}}
	for i, found := range state.FindAllStringSubmatch(b.get(policyPath+"/versions", http.StatusOK), -1) {
		if !slices.Equal(found[1:], want[i]) {
			t.Errorf("version %q, want %q", found[1:], want[i])
		}
	}
	b.get(policyPath+"/versions/1", http.StatusOK, `<p class="tags"><span class="tag">In force</span></p>`)
	putPolicy(t, h, noInviting) // another text, which ends the observing
	b.get(policyPath+"/versions/2", http.StatusOK, `<p class="tags"><span class="tag quiet">Earlier</span> <span class="tag quiet">Only observed</span></p>`)
	form.Set("mode", "dream")
	form.Set("version", "3")
	b.post(policyPath, form, http.StatusUnprocessableEntity, "Choose what the policies do")
}

// If somebody else has saved first, a person sees both texts and may save over the other.
func TestPolicyConflict(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	form := url.Values{"text": {noInviting}, "mode": {"enforce"}, "confirmMinutes": {""}, "version": {b.version(b.get(policyPath, http.StatusOK))}}
	putPolicy(t, h, noSettings)
	page := b.post(policyPath, form, http.StatusPreconditionFailed, "Somebody else has changed the policies", "<del>@id(&#34;no-settings&#34;)</del>", "<ins>@id(&#34;no-inviting&#34;)</ins>", `<li id="L1"><code>@id(&#34;no-settings&#34;)`)
	b.translate(page, policyPath, "de", "Jemand anderes hat die Regeln geändert", "<ins>@id(&#34;no-inviting&#34;)</ins>")
	form.Set("version", b.version(page))
	b.submit(policyPath, form, "The policies are saved", "Version 2", "no-inviting")
}

// What a text would change is shown before it is saved, with the text still in the editor.
func TestPlanningPolicies(t *testing.T) {
	h := newFixture(t)
	putPolicy(t, h, noInviting)
	b := h.browserOf(t, "OWNER")
	if res, _ := h.browserOf(t, "ADMIN").send("GET", "/api/v2/invitations", nil); res.StatusCode != http.StatusForbidden {
		t.Fatalf("an ADMIN may list invitations: %d", res.StatusCode)
	}
	form := url.Values{"text": {noSettings}, "mode": {"enforce"}, "confirmMinutes": {"7"}, "version": {b.version(b.get(policyPath, http.StatusOK))}}
	page := b.post(policyPath+"/plan", form, http.StatusOK, "What this text would change", "Nothing is saved yet", "user.invite", "settings.manage",
		">admin@acme.example<", `<strong>Allowed</strong>`, `value="7"`, `<button type="submit" form="draft" class="button">Save</button>`)
	// A permit is kept, too, at random.
	if !regexp.MustCompile(`Kept and decided again: [1-9]\d*\. Different: 1\.`).MatchString(page) {
		t.Errorf("not one kept decision is different:\n%s", page)
	}
	if editedText(page) != noSettings {
		t.Errorf("the editor has %q", editedText(page))
	}
	// Each change leads to the policy: one of the text in force, or one of the typed text.
	for _, want := range []string{`<td class="changes"><a href="#why-1">`, `<li id="why-1"`, `<a href="#T1"><code dir="ltr">no-settings</code>`, `<a href="#L1"><code dir="ltr">no-inviting</code>`, `<li id="T1"><code>`, `<li id="L1"><code>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	b.translate(page, policyPath+"/plan", "de", "Was dieser Text ändern würde", "<strong>Erlaubt</strong>")
	form.Set("text", noInviting)
	// No refusal becomes allowed. A permit from before the policies may be kept, and would be refused.
	lacks(t, b.post(policyPath+"/plan", form, http.StatusOK, "Nothing changes for any role", "Different: "), "<strong>Allowed</strong>")
	form.Set("text", "permit(principal, action, resource);")
	b.post(policyPath+"/plan", form, http.StatusUnprocessableEntity, "Line 1, column 1:", "Only “forbid” is possible.")
	lacks(t, b.get(policyPath, http.StatusOK, "Version 1", "no-inviting"), "What this text would change")
	h.browserOf(t, "ADMIN").post(policyPath+"/plan", form, http.StatusForbidden)
}

func TestConfirmingPolicies(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	form := url.Values{"text": {noSettings}, "mode": {"enforce"}, "confirmMinutes": {"5"}, "version": {b.version(b.get(policyPath, http.StatusOK))}}
	page := b.submit(policyPath, form, "This version reverts in", "What this version changes", `<a href="/console/policy/versions/1#L1"><code dir="ltr">no-settings</code>`)
	stale := url.Values{"version": {"0"}}
	if text := editedText(b.post(policyPath+"/confirm", stale, http.StatusPreconditionFailed, "This version reverts in")); text != noSettings {
		t.Errorf("after a refused confirmation the editor has %q", text)
	}
	h.browserOf(t, "ADMIN").get(policyPath, http.StatusOK, "This version reverts in")
	lacks(t, b.submit(policyPath+"/confirm", url.Values{"version": {b.version(page)}}, "The policies are confirmed"), "This version reverts in")
	b.post(policyPath+"/confirm", url.Values{}, http.StatusNotFound)

	form = url.Values{"text": {"@id(\"all\") forbid(principal, action, resource);"}, "mode": {"enforce"}, "confirmMinutes": {"5"}, "version": {"1"}}
	page = b.submit(policyPath, form, "This version reverts in") // an owner still reads and changes policies
	b.get("/console/people", http.StatusForbidden)
	b.post(policyPath+"/confirm", url.Values{"version": {b.version(page)}}, http.StatusForbidden, "This version reverts in")
	h.Advance(6 * time.Minute)
	b.get("/console/people", http.StatusOK)
	lacks(t, b.get(policyPath, http.StatusOK, "Version 1", "no-settings"), "This version reverts in")
	b.get(policyPath+"/versions", http.StatusOK, "Ended unconfirmed", "In force")
}

func TestVersionsOfPolicies(t *testing.T) {
	h := newFixture(t)
	for _, text := range []string{noSettings, noSettings + noInviting, ""} {
		putPolicy(t, h, text)
	}
	b, second := h.browserOf(t, "OWNER"), policyPath+"/versions/2"
	b.get(policyPath+"/versions", http.StatusOK, `href="/console/policy/versions/3">Version 3<`, "owner@acme.example", "In force", "Earlier")
	page := b.get(second, http.StatusOK, "What it changed in version 1", "<ins>@id(&#34;no-inviting&#34;)</ins>", "What would change if it were restored")
	lacks(t, page, "<del>")
	b.get(policyPath+"/versions/3", http.StatusOK, "<del>@id(&#34;no-inviting&#34;)</del>")
	b.get(policyPath+"?from=2", http.StatusOK, `@id(&#34;no-inviting&#34;)`+"\n")
	page = b.get(second+"/restore", http.StatusOK, "Restore this version?", "<ins>@id(&#34;no-settings&#34;)</ins>", "actions change.", `<a href="/console/policy/versions/2#L1"><code dir="ltr">no-settings</code>`)
	form := url.Values{"version": {b.version(page)}}
	putPolicy(t, h, noInviting)
	page = b.post(second+"/restore", form, http.StatusPreconditionFailed, "Somebody else has changed this", "<ins>@id(&#34;no-settings&#34;)</ins>")
	lacks(t, page, "<ins>@id(&#34;no-inviting&#34;)</ins>")
	b.submit(second+"/restore", url.Values{"version": {b.version(page)}}, "The earlier policies are restored", "Version 5", "no-inviting", "no-settings")
	b.post(policyPath+"/versions/99/restore", url.Values{}, http.StatusNotFound)
}

// A page of the list leads to the next.
func TestManyVersions(t *testing.T) {
	h := newFixture(t)
	for i := range 51 {
		putPolicy(t, h, strings.Repeat("\n", i)+noSettings)
	}
	b := h.browserOf(t, "OWNER")
	page := b.get(policyPath+"/versions", http.StatusOK, ">Version 51<", ">Version 2<")
	lacks(t, page, ">Version 1<")
	next := b.findOn(regexp.MustCompile(`href="(\?cursor=[^"]+)" rel="next"`), page)
	b.get(policyPath+"/versions"+next, http.StatusOK, ">Version 1<")
}

// Every example can be saved as it is, whatever the model.
func TestExamplesOfPolicies(t *testing.T) {
	h := newFixture(t)
	applyModel(t, h, "actions: {}")
	b := h.browserOf(t, "OWNER")
	links := exampleLink.FindAllStringSubmatch(b.get(policyPath, http.StatusOK), -1)
	if len(links) < 3 {
		t.Errorf("the examples are %q", links)
	}
	for _, link := range links {
		text := editedText(b.post(policyPath+"/example", url.Values{"version": {"0"}, "example": {link[1]}, "text": {"typed"}, "mode": {"observe"}, "timeZone": {"Asia/Tokyo"}, "confirmMinutes": {"7"}}, http.StatusOK, `value="observe" checked`, `value="Asia/Tokyo"`, `value="7"`))
		if err := h.Node.App.Policies.Check(t.Context(), text); err != nil || !strings.Contains(text, "forbid(") {
			t.Errorf("%s: %v", text, err)
		}
	}
	lacks(t, b.post(policyPath+"/example", url.Values{"version": {"0"}, "example": {"none"}}, http.StatusOK), "forbid(principal")
}

var exampleLink = regexp.MustCompile(`name="example" value="([a-z]+)"`)
