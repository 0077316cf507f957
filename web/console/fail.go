package console

import (
	"context"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// failure is the page of an error inside the console.
type failure struct {
	pageData
	ui.ErrorPage
}

// errorView shows an error with the navigation of the console.
func errorView(ctx context.Context, c *ui.Call, p ui.ErrorPage) (ui.View, error) {
	h := &console{c.Site().App}
	return withTenantStyle(func(ctx context.Context, c *ui.Call) (ui.View, error) {
		s, err := h.pageData(ctx, c)
		return ui.View{Page: "error", Body: failure{s, p}}, err
	})(ctx, c)
}

// ErrorPage answers with the page of an error, for front.Site: below /console, whose unknown addresses no
// route serves, with the navigation for who is signed in.
func ErrorPage(c *front.Call, err error) bool {
	path := strings.TrimPrefix(c.R.URL.Path, c.Site().BasePath())
	if !strings.HasPrefix(path, "/console/") || !doorward.HasCode(err, doorward.CodeNotFound) || c.Caller.Kind == doorward.ByUser {
		return ui.SendErrorPage(c, err)
	}
	by, refused := front.SignedIn().Admit(c.R.Context(), c.Site(), c.R)
	if refused != nil {
		return ui.SendErrorPage(c, err)
	}
	c.Caller = by
	c.SetLogCaller(by)
	return set.ErrorPage(c, err)
}
