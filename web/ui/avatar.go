package ui

import (
	"hash/fnv"
	"strings"
	"unicode"
)

// Avatar is shown in place of a picture of a person: the initials, on the person's colour. Its template
// is "avatar".
type Avatar struct{ Name, Email, ID string }

// Initials are the first letters of the first and the last name, or the first of the address.
func (a Avatar) Initials() string {
	words := strings.FieldsFunc(a.Name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r) })
	if len(words) == 0 {
		words = []string{a.Email}
	}
	text := firstLetter(words[0])
	if len(words) > 1 {
		text += firstLetter(words[len(words)-1])
	}
	return text
}

func firstLetter(word string) string {
	for _, r := range word {
		return string(unicode.ToUpper(r))
	}
	return ""
}

// hues is how many colours there are in ui.css: that of .avatar, and .hue-1 to .hue-5.
const hues = 6

// Hue is the number of the person's colour, from 0.
func (a Avatar) Hue() int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(a.ID)) // a hash takes everything
	return int(sum.Sum32() % hues)
}
