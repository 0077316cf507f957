package ui

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/doorward/doorward/internal/returnto"
)

// accountPath is where people land by default.
const accountPath = "/account"

// ParseHome parses the address where people land after signing in, for front.Site.Home:
// a path or full address below the base URL, or an address in places, the list of
// --return-to. The default, the account, becomes empty. The error says what to write
// instead.
func ParseHome(base *url.URL, places returnto.List, address string) (string, error) {
	path := strings.TrimSuffix(base.Path, "/")
	origin := strings.TrimSuffix(strings.TrimSuffix(base.String(), "/"), path)
	to, externalOrigin, ok := parseReturnAddress(origin, path, places, address)
	if !ok {
		return "", fmt.Errorf("write a path below --base-url, like %s/inbox, or a full address that --return-to allows", path)
	}
	if externalOrigin != "" {
		return to, nil
	}
	u, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	switch page := strings.TrimPrefix(u.Path, path); {
	case page == "/login" || strings.HasPrefix(page, "/login/"):
		return "", errors.New("people who are signed in would be redirected in a loop; leave it out, and they land on their account")
	case to == path+accountPath:
		return "", nil
	}
	return to, nil
}
