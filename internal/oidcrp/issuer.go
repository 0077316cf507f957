package oidcrp

import (
	"net/url"
	"slices"
	"strings"
)

// issuerMax bounds an issuer, and each endpoint, in bytes.
const issuerMax = 1024

// documentPath is where an issuer publishes what it says of itself (OpenID Connect Discovery 1.0, section 4).
const documentPath = "/.well-known/openid-configuration"

// TrimIssuer returns the issuer whose document's address somebody has pasted: consoles of providers show that
// address beside the issuer, or instead of it. Anything else comes back as it is.
func TrimIssuer(typed string) string { return strings.TrimSuffix(typed, documentPath) }

// CheckIssuer returns a *Fault with CheckOfIssuer for what can't be the issuer of one customer:
// CodeInvalid, or CodeMultiTenant for the addresses by which Entra signs anybody in.
func CheckIssuer(issuer string) error {
	u, ok := plainURL(issuer)
	if !ok || strings.Contains(issuer, "?") {
		return &Fault{
			Check: CheckOfIssuer, Code: CodeInvalid, Seen: Clip(issuer), Advice: AdviceIssuer,
			Wanted: "an address with https, without user, query and fragment",
		}
	}
	if isEntra(u) && slices.Contains(entraForAll, strings.ToLower(firstSegment(u))) || isTemplate(issuer) {
		return multiTenant(issuer)
	}
	return nil
}

func multiTenant(issuer string) *Fault {
	return &Fault{
		Check: CheckOfIssuer, Code: CodeMultiTenant, Seen: Clip(issuer), Advice: AdviceOwnAddress,
		Wanted: "the address of one directory",
	}
}

// plainURL parses an address of https without user and fragment, in printable ASCII.
func plainURL(address string) (u *url.URL, ok bool) {
	if len(address) > issuerMax || strings.ContainsFunc(address, isOdd) {
		return nil, false
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" || u.User != nil {
		return nil, false
	}
	return u, true
}

// isOdd reports whether a character can't stand in an address, or begins its fragment.
func isOdd(r rune) bool { return r <= ' ' || r > '~' || r == '\\' || r == '#' }

// entraHosts are the issuers' hosts of Entra ID: worldwide, version 1 of its tokens, the clouds of the
// US government and of China (learn.microsoft.com, "National clouds").
var entraHosts = []string{
	"login.microsoftonline.com", "login.windows.net", "login.microsoft.com", "sts.windows.net",
	"login.microsoftonline.us", "sts.microsoftonline.us",
	"login.partner.microsoftonline.cn", "login.chinacloudapi.cn", "sts.chinacloudapi.cn",
}

// entraForAll are the names, in place of a directory, for anybody's accounts. The last is the directory
// of all personal accounts.
var entraForAll = []string{"common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad"}

func isEntra(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return slices.Contains(entraHosts, host) || strings.HasSuffix(host, ".ciamlogin.com")
}

// isTemplate reports whether Entra's document for several directories has this issuer.
func isTemplate(issuer string) bool {
	lower := strings.ToLower(issuer)
	return strings.Contains(lower, "{tenantid}") || strings.Contains(lower, "%7btenantid%7d")
}

func firstSegment(u *url.URL) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return first
}

// googleIssuer is the issuer of all of Google's accounts, of organisations and of persons.
const googleIssuer = "https://accounts.google.com"
