package ui

import (
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// otherForm is the plural form that every language has.
const otherForm = "other"

// pluralForm returns the plural form for a number in a language (Unicode CLDR): zero, one, two, few,
// many or other.
func pluralForm(tag string, n int) string {
	const noDecimals = 0
	switch plural.Cardinal.MatchPlural(language.Make(tag), n, noDecimals, noDecimals, noDecimals, noDecimals) {
	case plural.Zero:
		return "zero"
	case plural.One:
		return "one"
	case plural.Two:
		return "two"
	case plural.Few:
		return "few"
	case plural.Many:
		return "many"
	}
	return otherForm
}

// pluralForms returns the plural forms that a language uses for 0 to 200, and otherForm. The value is
// whether the form is for one number only, so that its text needn't repeat it.
func pluralForms(tag string) map[string]bool {
	count := map[string]int{otherForm: 2}
	for n := range 201 {
		count[pluralForm(tag, n)]++
	}
	forms := map[string]bool{}
	for form, numbers := range count {
		forms[form] = numbers == 1
	}
	return forms
}
