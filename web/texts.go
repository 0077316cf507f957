package web

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/doorward/doorward/app/mail"
	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/web/console"
	"github.com/doorward/doorward/web/hosted"
	"github.com/doorward/doorward/web/ui"
)

// CheckTexts returns what is wrong with an operator's texts for pages and mails, as texts.Faults.
func CheckTexts(own *texts.File) error {
	faults := ui.CheckLanguages(own)
	sections, ofPages, err := ui.CheckTexts(own, hosted.Pages(), console.Pages())
	if err != nil {
		return err
	}
	section, ofMails := mail.CheckTexts(own)
	sections = append(sections, section)
	for _, l := range own.Languages {
		for _, s := range l.Sections {
			if !slices.Contains(sections, s.Name) {
				faults = append(faults, texts.Fault{Line: s.Line, Message: fmt.Sprintf("there is no section %q; write %s", s.Name, strings.Join(sections, ", "))})
			}
		}
	}
	faults = append(append(faults, ofPages...), ofMails...)
	if faults.Sort(); len(faults) > 0 {
		return faults
	}
	return nil
}

// ListTexts writes all texts of pages and mails in a language, with an operator's own, in the form
// of such a file. Of a language that isn't available it writes the English texts, to be translated.
func ListTexts(w io.Writer, own *texts.File, tag string) error {
	sections, err := ui.ListTexts(own, tag, hosted.Pages(), console.Pages())
	if err != nil {
		return err
	}
	l := texts.Language{Tag: tag, Sections: append(sections, mail.ListTexts(own, tag))}
	if own != nil {
		for _, one := range own.Languages {
			if one.Tag == tag {
				l.Name, l.Direction = one.Name, one.Direction
			}
		}
	}
	return texts.Write(w, l)
}
