// Package publicdomain says which domains can't belong to one organisation.
//
//	publicdomain.Is("co.uk")     // true: a public suffix
//	publicdomain.Is("gmail.com") // true: anybody can have an address there
//	publicdomain.Is("acme.example")
//
// Public suffixes are those of https://publicsuffix.org, with the private ones such as github.io, in the
// version of golang.org/x/net.
//
// freemail.txt has providers of mail addresses for everybody, sorted: the large ones among the lists
// free-email-domains 1.12.6 (https://github.com/Kikobeats/free-email-domains) and freemail 1.7.0
// (https://github.com/willwhite/freemail), both of the MIT licence. Companies that use their domain
// themselves are left out. The list needs no completeness: only a provider can publish records in its domain.
package publicdomain

import (
	_ "embed"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

//go:embed freemail.txt
var freemailText string

var freemail = strings.Fields(freemailText)

// Is reports whether the domain, as A-labels in lower case, is a public suffix or a provider of free mail
// addresses, or lies in the domain of such a provider.
func Is(domain string) bool {
	if suffix, _ := publicsuffix.PublicSuffix(domain); suffix == domain {
		return true
	}
	for rest, found := domain, true; found; _, rest, found = strings.Cut(rest, ".") {
		if _, isListed := slices.BinarySearch(freemail, rest); isListed {
			return true
		}
	}
	return false
}

// Registered returns the domain that somebody has registered to have this one: a public suffix with one more label, such
// as acme.co.uk for mail.acme.co.uk. Without one it returns the domain itself.
func Registered(domain string) string {
	registered, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		return domain
	}
	return registered
}
