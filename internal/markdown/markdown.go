// Package markdown reads the part of Markdown that the documentation is written
// in: headings, paragraphs, fenced and indented code, lists, tables, links,
// pictures, **strong**, *emphasised* and `code`.
//
//	for _, block := range markdown.Parse(source) {
//		switch block.Kind {
//		case markdown.Paragraph:
//			for _, span := range markdown.Inline(block.Text) {
//
// What it reads it reads as CommonMark 0.31 and GitHub do; a test compares the
// pages with what github.com/yuin/goldmark makes of them. It knows nothing of
// HTML but comments, which it leaves out, and <br>; underscores are letters, and
// there are no quotations, references or rules. A program that reads all of it
// costs a server a megabyte at rest, for pages that are seldom asked for.
package markdown

import (
	"regexp"
	"strings"
)

// Kind is what a block is.
type Kind int

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Heading
	Code
	List
	Table
)

// Block is a part of a page.
type Block struct {
	Kind    Kind
	Text    string     // of a paragraph or a heading, for Inline; of code as it is
	Level   int        // of a heading, 1 to 6
	Info    string     // what stands behind the fence of code
	Ordered bool       // whether a list counts
	Loose   bool       // whether the items of a list stand apart
	Items   [][]Block  // of a list
	Rows    [][]string // of a table, the first its head; each cell is for Inline
}

// Parse returns the blocks of a page.
func Parse(source string) []Block {
	r := &reader{lines: strings.Split(strings.TrimRight(source, "\n"), "\n")}
	var blocks []Block
	for r.more() {
		if block, ok := r.block(); ok {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// reader goes through lines.
type reader struct {
	lines []string
	at    int
}

func (r *reader) more() bool   { return r.at < len(r.lines) }
func (r *reader) line() string { return r.lines[r.at] }

func (r *reader) next() string {
	r.at++
	return r.lines[r.at-1]
}

var (
	headingForm = regexp.MustCompile(`^(#{1,6}) +(.*?)(?: +#+)?$`)
	itemForm    = regexp.MustCompile(`^(?:([-*+])|\d{1,9}[.)]) +\S`)
	firstForm   = regexp.MustCompile(`^1[.)]`)
	ruleForm    = regexp.MustCompile(`^\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$`)
)

const (
	fence  = "```"
	indent = "    "
)

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// block reads one, or nothing worth one: a blank line or a comment.
func (r *reader) block() (Block, bool) {
	switch line := r.line(); {
	case blank(line):
		r.at++
		return Block{}, false
	case strings.HasPrefix(line, "<!--"):
		for !strings.Contains(r.next(), "-->") && r.more() {
			continue
		}
		return Block{}, false
	case strings.HasPrefix(line, fence):
		return r.fenced(), true
	case strings.HasPrefix(line, indent):
		return r.indented(), true
	case itemForm.MatchString(line):
		return r.list(), true
	case r.isTable():
		return r.table(), true
	}
	if found := headingForm.FindStringSubmatch(r.line()); found != nil {
		r.at++
		return Block{Kind: Heading, Level: len(found[1]), Text: found[2]}, true
	}
	return r.paragraph(), true
}

func (r *reader) fenced() Block {
	b := Block{Kind: Code, Info: strings.TrimSpace(strings.TrimPrefix(r.next(), fence))}
	for r.more() {
		line := r.next()
		if strings.TrimSpace(line) == fence {
			break
		}
		b.Text += line + "\n"
	}
	return b
}

func (r *reader) indented() Block {
	text := ""
	for r.more() && (blank(r.line()) || strings.HasPrefix(r.line(), indent)) {
		text += strings.TrimPrefix(r.next(), indent) + "\n"
	}
	return Block{Kind: Code, Text: strings.TrimRight(text, " \n") + "\n"}
}

// begins reports whether a line ends the paragraph above it. Of numbers only the
// first does: a sentence may have one that came to stand at the left.
func begins(line string) bool {
	return blank(line) || strings.HasPrefix(line, "<!--") || strings.HasPrefix(line, fence) || headingForm.MatchString(line) ||
		itemForm.MatchString(line) && (!ordered(line) || firstForm.MatchString(line))
}

func (r *reader) paragraph() Block {
	text := strings.TrimSpace(r.next())
	for r.more() && !begins(r.line()) {
		text += "\n" + strings.TrimSpace(r.next())
	}
	return Block{Kind: Paragraph, Text: text}
}

// list reads items of one kind. What stands as far right as an item's first
// word belongs to it, and so does a line that goes on with its paragraph.
func (r *reader) list() Block {
	b := Block{Kind: List, Ordered: ordered(r.line())}
	for r.more() && itemForm.MatchString(r.line()) && ordered(r.line()) == b.Ordered {
		lines, apart := r.item()
		b.Items = append(b.Items, Parse(strings.Join(lines, "\n")))
		again := r.more() && itemForm.MatchString(r.line()) && ordered(r.line()) == b.Ordered
		inside := strings.TrimRight(strings.Join(lines, "\n"), "\n")
		b.Loose = b.Loose || apart && again || strings.Contains(inside, "\n\n")
	}
	return b
}

// ordered reports whether the item on a line has a number.
func ordered(line string) bool { return itemForm.FindStringSubmatch(line)[1] == "" }

// item returns the lines of an item without their indent, and whether a blank
// line is behind it.
func (r *reader) item() (lines []string, apart bool) {
	first := r.next()
	width := len(itemForm.FindString(first)) - 1
	lines = []string{first[width:]}
	for r.more() {
		line := r.line()
		in := strings.HasPrefix(line, strings.Repeat(" ", width))
		goesOn := !blank(lines[len(lines)-1]) && !begins(line) && !itemForm.MatchString(line)
		if !in && !goesOn && !blank(line) {
			break
		}
		if r.at++; in {
			line = line[width:]
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines, lines[len(lines)-1] == ""
}

func (r *reader) isTable() bool {
	return r.at+1 < len(r.lines) && strings.Contains(r.line(), "|") && ruleForm.MatchString(r.lines[r.at+1]) &&
		len(cells(r.line())) == len(cells(r.lines[r.at+1]))
}

// table reads rows; each gets as many cells as the head has.
func (r *reader) table() Block {
	head := cells(r.next())
	r.at++
	b := Block{Kind: Table, Rows: [][]string{head}}
	for r.more() && !begins(r.line()) {
		row := cells(r.next())
		b.Rows = append(b.Rows, append(row, make([]string, len(head))...)[:len(head)])
	}
	return b
}

// cells takes a row apart. A bar that has a backslash before it is no border,
// in code neither.
func cells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	all := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
	for i, cell := range all {
		all[i] = strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|"))
	}
	return all
}
