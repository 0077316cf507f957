package console

import (
	"testing"

	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

func TestPersonPagesAreConsistent(t *testing.T) {
	for _, s := range samples() {
		if s.View.Page != "person" {
			continue
		}
		for _, l := range ui.Languages {
			page := uitest.Rendered(t, set, s, l)
			if same := uitest.HeadingsOfTab(page); same != nil {
				t.Errorf("%s in %s: the heading of a section repeats its tab: %q", s.Name, l.Tag, same)
			}
			if wrong := uitest.LowercaseTags(page); wrong != nil {
				t.Errorf("%s in %s: tags that begin with a small letter: %q", s.Name, l.Tag, wrong)
			}
			if wrong := uitest.FormsWithoutMainButton(page); wrong != nil {
				t.Errorf("%s in %s: forms without exactly one filled button: %q", s.Name, l.Tag, wrong)
			}
		}
	}
}
