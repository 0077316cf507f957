package markdown

import (
	"html"
	"regexp"
	"strings"
)

// Span is a piece of a text.
type Span struct {
	Mark  Mark
	Text  string // of Plain and CodeSpan, and the words for a Picture
	To    string // where a Link leads, where a Picture is
	Spans []Span // what a Link, Strong or Emphasis is around
}

// Words is what a span says without marks.
func (s Span) Words() string { return plain([]Span{s}) }

// Mark is what a span is.
type Mark int

// The marks of spans.
const (
	Plain Mark = iota
	CodeSpan
	Strong
	Emphasis
	Link
	Picture
	Break
)

// Inline returns the spans of a text. Line breaks stay as they are.
func Inline(text string) []Span {
	s := &scanner{text: text}
	spans, _ := s.until("")
	return spans
}

// PlainText is what a text says without its marks.
func PlainText(text string) string { return plain(Inline(text)) }

func plain(spans []Span) string {
	var out strings.Builder
	for _, span := range spans {
		out.WriteString(strings.ReplaceAll(span.Text, "\n", " "))
		out.WriteString(plain(span.Spans))
	}
	return out.String()
}

type scanner struct {
	text string
	at   int
}

var (
	autolink = regexp.MustCompile(`^<(https?://[^ <>]*)>`)
	entity   = regexp.MustCompile(`^&(?:#\d+|\w+);`)
	link     = regexp.MustCompile(`^\]\(([^() ]*)\)`)
)

// until reads up to an end that stands right behind a word, and past it; ok is
// whether it is there. Without an end it reads everything.
func (s *scanner) until(end string) (spans []Span, ok bool) {
	for s.at < len(s.text) {
		if end != "" && strings.HasPrefix(s.text[s.at:], end) && s.text[s.at-1] != ' ' {
			s.at += len(end)
			return spans, true
		}
		span := s.span()
		if n := len(spans) - 1; n >= 0 && span.Mark == Plain && spans[n].Mark == Plain {
			spans[n].Text += span.Text
			continue
		}
		spans = append(spans, span)
	}
	return spans, end == ""
}

// span reads one; what looks like a mark and is none is text.
func (s *scanner) span() Span {
	rest := s.text[s.at:]
	switch rest[0] {
	case '\\':
		if len(rest) > 1 && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", rest[1]) >= 0 {
			return s.literal(2, rest[1:2])
		}
	case '`':
		return s.code(rest)
	case '*':
		return s.stressed(rest)
	case '[':
		return s.link(Link, 1)
	case '!':
		if strings.HasPrefix(rest, "![") {
			return s.link(Picture, 2)
		}
	case '<':
		if strings.HasPrefix(rest, "<br>") {
			s.at += len("<br>")
			return Span{Mark: Break}
		}
		if found := autolink.FindStringSubmatch(rest); found != nil {
			s.at += len(found[0])
			return Span{Mark: Link, To: found[1], Spans: []Span{{Text: found[1]}}}
		}
	case '&':
		if name := entity.FindString(rest); name != "" {
			return s.literal(len(name), html.UnescapeString(name))
		}
	}
	return s.words(rest)
}

// words reads up to the next sign that may be a mark, itself past it.
func (s *scanner) words(rest string) Span {
	n := 1 + strings.IndexAny(rest[1:], "\\`*[]!<&")
	if n == 0 {
		n = len(rest)
	}
	return s.literal(n, rest[:n])
}

func (s *scanner) literal(n int, text string) Span {
	s.at += n
	return Span{Text: text}
}

// code reads what stands between two equal runs of backticks.
func (s *scanner) code(rest string) Span {
	run := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
	for from := len(run); from < len(rest); {
		i := strings.Index(rest[from:], run)
		if i < 0 {
			break
		}
		end := from + i
		longer := len(rest[end:]) - len(strings.TrimLeft(rest[end:], "`"))
		if longer == len(run) {
			s.at += end + len(run)
			text := strings.ReplaceAll(rest[len(run):end], "\n", " ")
			if strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") && !blank(text) {
				text = text[1 : len(text)-1]
			}
			return Span{Mark: CodeSpan, Text: text}
		}
		from = end + longer
	}
	return s.literal(len(run), run)
}

// stressed reads **strong** or *emphasised* words.
func (s *scanner) stressed(rest string) Span {
	mark, end := Emphasis, "*"
	if strings.HasPrefix(rest, "**") {
		mark, end = Strong, "**"
	}
	begin := s.at
	s.at += len(end)
	if s.at < len(s.text) && s.text[s.at] != ' ' {
		if spans, ok := s.until(end); ok {
			return Span{Mark: mark, Spans: spans}
		}
	}
	s.at = begin
	return s.literal(len(end), end)
}

// link reads [words](address), or with a mark before it a picture.
func (s *scanner) link(mark Mark, opening int) Span {
	begin := s.at
	s.at += opening
	var inside []Span
	for s.at < len(s.text) {
		if s.text[s.at] == ']' {
			if found := link.FindStringSubmatch(s.text[s.at:]); found != nil {
				s.at += len(found[0])
				span := Span{Mark: mark, To: found[1], Spans: inside}
				if mark == Picture {
					span.Text, span.Spans = plain(inside), nil
				}
				return span
			}
			break
		}
		inside = append(inside, s.span())
	}
	s.at = begin
	return s.literal(opening, s.text[begin:begin+opening])
}
