package hosted

import (
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// ownSamples calls check with the HTML of each page of one's account, in each language.
func ownSamples(t *testing.T, check func(name, page string)) {
	t.Helper()
	for _, s := range samples() {
		if s.View.Page != "account" && s.View.Page != "security" {
			continue
		}
		for _, l := range ui.Languages {
			check(l.Tag+"-"+s.Name, uitest.Rendered(t, set, s, l))
		}
	}
}

func TestOwnPagesAreConsistent(t *testing.T) {
	ownSamples(t, func(name, page string) {
		if repeated := uitest.RepeatedHeadings(page); repeated != nil {
			t.Errorf("%s: headings that repeat their tab or a label: %q", name, repeated)
		}
		if wrong := uitest.LowercaseTags(page); wrong != nil {
			t.Errorf("%s: tags that begin with a small letter: %q", name, wrong)
		}
		if wrong := uitest.FormsWithoutMainButton(page); wrong != nil {
			t.Errorf("%s: forms without exactly one filled button: %q", name, wrong)
		}
	})
}

var (
	rowsOrForms = regexp.MustCompile(`(?s)<ul class="rows">.*?</ul>|<form [^>]*action="[^"]*/account/(?:name|email|password\?change=password)">.*?</form>`)
	wordAndTag  = regexp.MustCompile(`<strong><bdi>([^<]*)</bdi></strong> <span class="tag[^"]*">([^<]*)</span>`)
)

// Each section has its text at the left, and at the right the button that changes what the text says.
func TestButtonsStandBesideTheirText(t *testing.T) {
	ownSamples(t, func(name, page string) {
		for _, part := range strings.Split(page, `<section class="part"`)[1:] {
			part = rowsOrForms.ReplaceAllString(part, "")
			if strings.Contains(part, `class="button `) && !strings.Contains(part, `class="status"`) {
				t.Errorf("%s: a button without a text beside it: %.80q", name, part)
			}
		}
	})
}

// The erasure has a section of its own, which says what is erased.
func TestErasureIsApartFromTheDownload(t *testing.T) {
	ownSamples(t, func(name, page string) {
		for _, part := range strings.Split(page, "<section")[1:] {
			if strings.Contains(part, "/account/export") && strings.Contains(part, "/account/erase") {
				t.Errorf("%s: one section has the download and the erasure", name)
			}
		}
	})
}

// A factor without a name of its own is shown by its kind alone, in the language of the page.
func TestKindOfFactorIsSaidOnce(t *testing.T) {
	ownSamples(t, func(name, page string) {
		for _, m := range wordAndTag.FindAllStringSubmatch(page, -1) {
			if strings.EqualFold(strings.ReplaceAll(m[1], " ", "-"), strings.ReplaceAll(m[2], " ", "-")) {
				t.Errorf("%s: %q is named twice", name, m[1])
			}
		}
	})
}

// A factor that Doorward has disabled has the tone of an alarm, and says since when, why, and what to do.
func TestDisabledFactorSaysWhy(t *testing.T) {
	why := map[string][]string{
		"en-security-blocked": {`<span class="tag alarm">Blocked</span>`, "Blocked on 21 November 2026: it may have been copied, or set up by somebody else. Remove it", "Blocked on 21 November 2026: it may have been set up by somebody else. Remove it"},
		"en-security-lost":    {`<span class="tag alarm">Blocked</span>`, "Doorward can’t check its codes any more, which isn’t your fault. Set up a new one, then remove this one."},
		"de-security-lost":    {`<span class="tag alarm">Gesperrt</span>`, "Richten Sie eine neue ein, und entfernen Sie dann diese."},
		"de-security-blocked": {`<span class="tag alarm">Gesperrt</span>`, "Gesperrt am 21. November 2026: Er wurde vielleicht kopiert", "Gesperrt am 21. November 2026: Sie wurde vielleicht"},
	}
	ownSamples(t, func(name, page string) {
		for _, text := range why[name] {
			if !strings.Contains(page, text) {
				t.Errorf("%s lacks %q", name, text)
			}
		}
		delete(why, name)
	})
	if len(why) > 0 {
		t.Errorf("there are no samples for %v", why)
	}
}

// What ends a factor or the recovery codes is a link to a page that asks first.
func TestSecurityAsksBeforeItEndsSomething(t *testing.T) {
	ownSamples(t, func(name, page string) {
		for _, form := range []string{`/account/security/remove`, `/account/security/recovery`} {
			if strings.Contains(page, `action="`+form) {
				t.Errorf("%s posts to %s without a question", name, form)
			}
		}
	})
}

// signs are the signs of pages, by the beginning of the sample's name; the first that fits counts. All other
// pages have none.
var signs = [][2]string{
	{"closing", ui.SignClosed},
	{"error", ui.SignClosed},
	{"ended-already_member", ui.SignOpen},
	{"ended-", ui.SignClosed},
	{"code-", ui.SignGuarded},
	{"setup-code", ui.SignGuarded},
	{"sent", ui.SignGuarded},
	{"enrol", ui.SignGuarded},
	{"second", ui.SignGuarded},
	{"ssosecond", ui.SignGuarded},
	{"ssocontinue-replace", ""},
	{"ssocontinue", ui.SignGuarded},
	{"step-up-done", ui.SignOpen},
	{"step-up", ui.SignGuarded},
	{"ssotest-passed", ui.SignOpen},
	{"ssotest-failed", ui.SignClosed},
	{"ssotest-waiting", ui.SignGuarded},
	{"login-registered", ui.SignOpen},
	{"login-signed-out", ui.SignClosed},
	{"tenants-joined", ui.SignGuarded},
	{"account-saved", ""},
	{"setupprotocol-none", ui.SignOpen},
}

// drawn is what only one sign has: the leaf of the door, its handle, the keyhole.
var drawn = map[string]string{ui.SignOpen: `d="M6.5 3.7l6 2.8`, ui.SignClosed: `cx="14.75"`, ui.SignGuarded: `d="M10.9 12.6`}

var signPattern = regexp.MustCompile(`(?s)<svg class="sign ([a-z]*)".*?</svg>`)

// Each outcome has the sign of what has become of it, drawn as that state and no other. A saved form has none.
func TestSignsOfOutcomes(t *testing.T) {
	found := map[string]bool{}
	for _, sample := range samples() {
		want := ""
		for _, one := range signs {
			if strings.HasPrefix(sample.Name, one[0]) {
				want, found[one[0]] = one[1], true
				break
			}
		}
		all := signPattern.FindAllStringSubmatch(uitest.Rendered(t, set, sample, ui.Languages[0]), -1)
		if len(all) > 1 || (len(all) == 1) != (want != "") {
			t.Errorf("%s has the signs %q, want %q alone", sample.Name, all, want)
		}
		for _, one := range all {
			for state, shape := range drawn {
				if one[1] != want || strings.Contains(one[0], shape) != (state == want) {
					t.Errorf("%s has the sign %s, want one that is %s", sample.Name, one[0], want)
				}
			}
		}
	}
	if len(found) != len(signs) {
		t.Errorf("only %d of %d signs have a sample: %v", len(found), len(signs), found)
	}
}
