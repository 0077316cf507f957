package pages

import (
	"html/template"
	"regexp"
	"strings"
)

// classComment is the class of comments, besides those of examples.
const classComment = "comment"

// lexers find the tokens of a language, in groups with the names of their classes. They know words, but
// no grammar.
var lexers = map[string]*regexp.Regexp{
	"cedar": lexer(`//[^\n]*`, `\b(?:permit|forbid|when|unless|true|false|if|then|else|in|is|has|like|\d+)\b`, `@\w+|\b(?:principal|action|resource|context)\b`),
	"yaml":  lexer(`(?:^|\s)#[^\n]*`, `\b(?:true|false|null|\d+)\b`, `[A-Za-z_][\w./-]*:(?:\s|$)`),
	"json":  lexer(`//[^\n]*`, `\b(?:true|false|null|-?\d+(?:\.\d+)?)\b`, `"(?:[^"\\\n]|\\.)*"\s*:`),
	"go":    lexer(`//[^\n]*`, `\b(?:package|import|func|return|if|else|for|range|var|const|type|struct|map|go|defer|switch|case|nil|true|false|\d+)\b`, `\b[A-Za-z_]\w*\(`),
	"js":    lexer(`//[^\n]*`, `\b(?:import|from|export|const|let|function|return|if|else|for|of|new|await|async|null|true|false|\d+)\b`, `\b[A-Za-z_]\w*\(`),
	"sh":    lexer(`(?:^|\s)#[^\n]*`, `\b(?:if|then|else|fi|for|do|done|while|export|cd)\b`, `(?:^|\s)--?[A-Za-z][\w-]*|\$\{?\w+\}?`),
}

// lexer returns the lexer of a language whose strings have double quotes.
func lexer(comment, word, name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?P<` + classComment + `>` + comment + `)|(?P<` + className + `>` + name + `)|(?P<` + classString + `>"(?:[^"\\\n]|\\.)*")|(?P<` + classWord + `>` + word + `)`)
}

// highlight returns the code as HTML, with an element around each token that the language's lexer finds;
// without any for a language that has no lexer.
func highlight(code, language string) string {
	lex := lexers[language]
	if lex == nil {
		return template.HTMLEscapeString(code)
	}
	var out strings.Builder
	at := 0
	for _, found := range lex.FindAllStringSubmatchIndex(code, -1) {
		out.WriteString(template.HTMLEscapeString(code[at:found[0]]))
		for group, class := range lex.SubexpNames() {
			if from, to := found[2*group], found[2*group+1]; group > 0 && from >= 0 {
				text := code[from:to]
				token := strings.Trim(text, " \t\n:(")
				before, after, _ := strings.Cut(text, token)
				out.WriteString(before + `<span class="` + class + `">` + template.HTMLEscapeString(token) + `</span>` + after)
			}
		}
		at = found[1]
	}
	out.WriteString(template.HTMLEscapeString(code[at:]))
	return out.String()
}
