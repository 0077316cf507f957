package domain

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/publicdomain"
)

// maxName is the longest domain whose record has a name of at most 253 bytes (RFC 1035, section 2.3.4, less the
// length of the root and the first label).
const maxName = 253 - len(doorward.DomainRecordLabel)

// checkName returns the domain as A-labels in lower case, or what is wrong with it: invalid, or public_domain
// where it can't belong to one organisation.
func checkName(typed string) (string, error) {
	name, err := mailaddr.ParseDomain(typed)
	switch {
	case err != nil || len(name) > maxName:
		return "", doorward.Invalid("/domain", "invalid", "Write a domain as in \"acme.example\".")
	case publicdomain.Is(name):
		return "", doorward.Invalid("/domain", "public_domain", "Addresses of this domain are given to anybody, so no organisation can prove it. Use a domain of your own.")
	}
	return name, nil
}
