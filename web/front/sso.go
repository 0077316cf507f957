package front

import "net/url"

// StartURL returns the address at which a browser begins to sign in by the connection. With a challenge it
// is a step-up of the session that the challenge is for.
func StartURL(baseURL, connectionID, challenge string) string {
	at := baseURL + "/api/v2/auth/sso/" + url.PathEscape(connectionID) + "/start"
	if challenge != "" {
		at += "?stepup=" + url.QueryEscape(challenge)
	}
	return at
}
