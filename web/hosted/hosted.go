// Package hosted is the pages on which people sign in and look after their
// account: /login, /forgot, /reset, /accept, /account, and what these lead to.
//
// They ask the same features as the API and decide as little. A page that
// changes something is a form that is sent to a path of its own; a success
// leads on with 303, so that loading again sends nothing twice. The session's
// token is in a cookie that no script sees.
//
//	login.go    /login, /login/tenant, /logout
//	mail.go     /forgot, /reset
//	accept.go   /accept
//	account.go  /account
//	closing.go  /closing, for the OWNER of a tenant that is being closed
package hosted

import (
	"embed"

	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

//go:embed html text
var files embed.FS

var set = ui.NewSet(files)

// hosted has the handlers.
type hosted struct{ app *app.App }

// Routes returns the routes of the pages over the features of a.
func Routes(a *app.App) []front.Route {
	h := &hosted{a}
	page := func(pattern string, g front.Guard, e front.Endpoint) front.Route {
		return front.On(pattern, g, e, front.Doc{})
	}
	return []front.Route{
		page("GET /login", front.Optional(), set.Show(h.showLogin)),
		page("POST /login", front.Public(), set.Take("/login", h.login, h.loginAgain)),
		page("GET /login/tenant", ui.SignedIn().WhileClosing(), set.Show(h.showTenants)),
		page("POST /login/tenant", ui.SignedIn().WhileClosing(), set.Take("/login/tenant", h.chooseTenant, h.showTenants)),
		page("POST /logout", front.Public(), set.Take("/account", h.logout, h.showLogin)),
	}
}
