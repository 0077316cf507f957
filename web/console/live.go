package console

import (
	"net/http"

	"github.com/doorward/doorward/web/ui"
)

// letAsk has the page's script ask this server for the page again, which the
// policy of all other pages refuses.
func letAsk(c *ui.Call) { c.W = &asking{ResponseWriter: c.W} }

// asking adds to the policy, which is set when the answer begins.
type asking struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader is for http.ResponseWriter.
func (a *asking) WriteHeader(status int) {
	const name = "Content-Security-Policy"
	if !a.begun {
		a.Header().Set(name, a.Header().Get(name)+"; connect-src 'self'")
	}
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

// Write is for http.ResponseWriter.
func (a *asking) Write(b []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *asking) Unwrap() http.ResponseWriter { return a.ResponseWriter }
