package mail

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// builtInTexts has a catalogue for each language and the layout.
//
//go:embed text
var builtInTexts embed.FS

// fallback is the language for recipients without a language, or with one that has
// no catalogue.
const fallback = "en"

// catalogue has the texts of all mails in one language.
type catalogue struct {
	Direction string             // of writing: ltr or rtl
	Roles     map[string]string  // display names, by doorward.Role
	Mails     map[string]message `yaml:",inline"` // by store.MailKind
	isOwn     bool               // with texts of the operator
}

// roleName returns the display name of a role. A tenant's own role is shown by its name.
func (c catalogue) roleName(role string) string {
	if name, ok := c.Roles[role]; ok {
		return name
	}
	return role
}

// message has the texts of one mail; nil parts are left out.
type message struct {
	Subject    *sentence
	Greeting   *sentence
	Paragraphs []*sentence
	Details    []*sentence // short lines
	Advice     []*sentence // paragraphs below them
	OpenLink   *sentence   `yaml:"open_link"` // above the link, in the text part
	Button     *sentence   // on the link, in the HTML part
	EnterCode  *sentence   `yaml:"enter_code"`
	Note       *sentence
	Item       *sentence // of a digest
}

// sentence is a template that is executed with variables.
type sentence struct{ *template.Template }

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *sentence) UnmarshalYAML(node *yaml.Node) error {
	var source string
	if err := node.Decode(&source); err != nil {
		return err
	}
	t, err := template.New("").Funcs(template.FuncMap{"strong": strong}).Parse(source)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	s.Template = t
	return nil
}

// fill returns the sentence on one line, with the variables filled in; a nil sentence is empty.
// An error is a defect of a catalogue, which the tests of this package find.
func (s *sentence) fill(v variables) (text, error) {
	if s == nil {
		return "", nil
	}
	var out bytes.Buffer
	err := s.Execute(&out, v)
	return text(strings.Join(strings.Fields(out.String()), " ")), err
}

// catalogueSet has the catalogue of each language, by its tag in lower case.
type catalogueSet map[string]catalogue

// catalogues are those that are built in.
var catalogues = sync.OnceValue(func() catalogueSet {
	all, err := readCatalogues(builtInTexts)
	if err != nil {
		panic(fmt.Sprintf("mail: %v", err))
	}
	return all
})

func readCatalogues(files fs.FS) (catalogueSet, error) {
	names, err := fs.Glob(files, "text/*.yaml")
	if err != nil {
		return nil, err
	}
	all := catalogueSet{}
	for _, name := range names {
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		c, err := readCatalogue(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[strings.TrimSuffix(path.Base(name), ".yaml")] = c
	}
	return all, nil
}

// readCatalogue rejects unknown names within a mail. It takes an unknown name at the top level
// for a mail; only the tests reject that.
func readCatalogue(source []byte) (c catalogue, err error) {
	d := yaml.NewDecoder(bytes.NewReader(source))
	d.KnownFields(true)
	err = d.Decode(&c)
	return c, err
}

// language returns the tag of the catalogue for a BCP 47 tag, found by removing subtags
// from the end (RFC 4647, section 3.4).
func (c catalogueSet) language(locale string) string {
	for tag := strings.ToLower(locale); tag != ""; {
		if _, ok := c[tag]; ok {
			return tag
		}
		tag = tag[:max(0, strings.LastIndexByte(tag, '-'))]
	}
	return fallback
}
