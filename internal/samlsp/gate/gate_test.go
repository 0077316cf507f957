package gate_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"github.com/doorward/doorward/internal/samlsp/gate"
)

func repeat(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func nested(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }

func TestCheck(t *testing.T) {
	const none = gate.Kind("")
	for name, c := range map[string]struct {
		text string
		want gate.Kind
	}{
		"an element":                      {"<a/>", none},
		"256 KiB":                         {"<a>" + strings.Repeat("b", gate.SizeMax-7) + "</a>", none},
		"a byte more":                     {"<a>" + strings.Repeat("b", gate.SizeMax-6) + "</a>", gate.Size},
		"a document type":                 {"<!DOCTYPE a><a/>", gate.Doctype},
		"a document type with entities":   {`<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, gate.Doctype},
		"a document type within":          {"<a><!DOCTYPE a></a>", gate.Doctype},
		"an entity":                       {"<a>&b;</a>", gate.Form},
		"the entities of XML":             {"<a>&lt;&gt;&amp;&apos;&quot;&#65;</a>", none},
		"40 levels":                       {nested(40), none},
		"41 levels":                       {nested(41), gate.Limit},
		"5,000 elements":                  {"<r>" + strings.Repeat("<a/>", 4999) + "</r>", none},
		"5,001 elements":                  {"<r>" + strings.Repeat("<a/>", 5000) + "</r>", gate.Limit},
		"64 namespaces":                   {"<a" + repeat(` xmlns:n%d="u"`, 63) + ` xmlns="u"/>`, none},
		"65 namespaces":                   {"<a" + repeat(` xmlns:n%d="u"`, 64) + ` xmlns="u"/>`, gate.Limit},
		"200 attributes":                  {"<a" + repeat(` n%d=""`, 200) + "/>", none},
		"201 attributes":                  {"<a" + repeat(` n%d=""`, 201) + "/>", gate.Limit},
		"1,000 attributes":                {"<a" + repeat(` n%d=""`, 1000) + "/>", gate.Limit},
		"an id twice":                     {`<a ID="1"><b ID="1"/></a>`, gate.Form},
		"an id twice, by two names":       {`<a ID="1"><b Id="1"/></a>`, gate.Form},
		"an id twice, by XML's name":      {`<a ID="1"><b xml:id="1"/></a>`, gate.Form},
		"an id of an old assertion twice": {`<a ID="1"><b AssertionID="1"/></a>`, gate.Form},
		"two ids":                         {`<a ID="1"><b ID="2"/></a>`, none},
		"an attribute twice":              {`<a b="1" b="2"/>`, gate.Form},
		"two prefixes of an attribute":    {`<a xmlns:x="u" b="1" x:b="2"/>`, none},
		"text before":                     {"b<a/>", gate.Form},
		"text after":                      {"<a/>b", gate.Form},
		"blanks and comments around":      {" <!-- b --><a/>\n<!-- b -->", none},
		"two roots":                       {"<a/><b/>", gate.Form},
		"no root":                         {"<!-- a -->", gate.Form},
		"nothing":                         {"", gate.Form},
		"no end":                          {"<a>", gate.Form},
		"no beginning":                    {"</a>", gate.Form},
		"ends across":                     {"<a><b></a></b>", gate.Form},
		"an end with another prefix":      {`<x:a xmlns:x="u" xmlns:y="u"></y:a>`, gate.Form},
		"a declaration":                   {`<?xml version="1.0" encoding="UTF-8"?><a/>`, none},
		"a declaration of another form":   {`<?xml version="1.0" encoding="UTF-16"?><a/>`, gate.Form},
		"a declaration after a blank":     {` <?xml version="1.0"?><a/>`, gate.Form},
		"a declaration within":            {`<a><?xml version="1.0"?></a>`, gate.Form},
		"a processing instruction":        {`<?b c?><a/>`, gate.Form},
		"a prefix":                        {`<x:a xmlns:x="u"><x:b x:c=""/></x:a>`, none},
		"a prefix without declaration":    {`<x:a/>`, gate.Form},
		"an attribute's, without":         {`<a x:b=""/>`, gate.Form},
		"a prefix out of its scope":       {`<a><b xmlns:x="u"/><x:c/></a>`, gate.Form},
		"no UTF-8":                        {"<a>\xff</a>", gate.Form},
		"a NUL":                           {"<a>\x00</a>", gate.Form},
		"CDATA":                           {"<a><![CDATA[<b>]]></a>", none},
		"an attribute without quotes":     {"<a b=c/>", gate.Form},
	} {
		t.Run(name, func(t *testing.T) {
			err := gate.Check([]byte(c.text))
			refused, is := errors.AsType[*gate.Error](err)
			if err != nil && !is || is && refused.Kind != c.want || err == nil && c.want != none {
				t.Errorf("refused as %v, not as %q", err, c.want)
			}
		})
	}
}

// FuzzCheck compares what passes with what parsers make of it: they read it, as one tree, within the limits.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		"<a/>", `<x:a xmlns:x="u" ID="1"><b c="d">&lt;</b><!-- e --></x:a>`, "<!DOCTYPE a><a/>", `<?xml version="1.0"?><a><![CDATA[b]]></a>`, nested(50),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if gate.Check(text) != nil {
			return
		}
		tree := etree.NewDocument()
		if err := tree.ReadFromBytes(text); err != nil || tree.Root() == nil {
			t.Fatalf("passed, and etree says: %v", err)
		}
		decoder, elements, depth := xml.NewDecoder(strings.NewReader(string(text))), 0, 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("passed, and encoding/xml says: %v", err)
			}
			switch token.(type) {
			case xml.StartElement:
				elements++
				depth++
			case xml.EndElement:
				depth--
			case xml.Directive:
				t.Fatal("a document type passed")
			}
			if elements > gate.ElementsMax || depth > gate.DepthMax {
				t.Fatalf("%d elements, %d levels passed", elements, depth)
			}
		}
	})
}

// BenchmarkRefused is what a text costs that is refused at its last byte, and one that is refused early.
func BenchmarkRefused(b *testing.B) {
	for name, text := range map[string]string{
		"elements":   "<r>" + strings.Repeat("<a/>", 50_000) + "</r>",
		"attributes": "<r>" + strings.Repeat("<a"+repeat(` n%d=""`, 200)+"/>", 140) + "<",
		"namespaces": "<r>" + strings.Repeat("<a"+repeat(` xmlns:n%d="u"`, 64)+">", 39) + strings.Repeat("<n1:b n2:c=''/>", 4000) + "<",
		"text":       "<r>" + strings.Repeat("&lt;", 60_000) + "<",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if gate.Check([]byte(text)) == nil {
					b.Fatal("passed")
				}
			}
		})
	}
}
