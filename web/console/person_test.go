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
			if repeated := uitest.RepeatedHeadings(page); repeated != nil {
				t.Errorf("%s in %s: headings that repeat their tab or a label: %q", s.Name, l.Tag, repeated)
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
