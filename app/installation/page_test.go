package installation_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/installation"
)

// TestOperatorPageOnce: of many who open one link, on several nodes, one gets the page. Link
// and page end by themselves, and a restore ends the page.
func TestOperatorPageOnce(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		at := func(i int) *installation.Installation { return f.Node(i).Installation }
		link := func() string {
			token, _, err := at(0).MakeLink(f.Context(), apptest.Operator)
			f.NoError(err)
			return token.Reveal()
		}
		shared := link()
		const callers = 16
		errs := apptest.Concurrently(callers, func(i int) error {
			return apptest.ErrorOf(at(i).OpenPage(f.Context(), apptest.Anonymous(0), shared))
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeInvalidCode: callers - 1})

		late := link()
		clock.Move(10 * time.Minute)
		if code := apptest.Code(apptest.ErrorOf(at(1).OpenPage(f.Context(), apptest.Anonymous(1), late))); code != doorward.CodeInvalidCode {
			f.Errorf("a link of ten minutes ago answers %q", code)
		}
		// open opens a page, and returns a function that requests it and returns the code.
		open := func() func() doorward.Code {
			token, err := at(0).OpenPage(f.Context(), apptest.Anonymous(1), link())
			f.NoError(err)
			return func() doorward.Code {
				_, _, err := at(1).Page(f.Context(), apptest.Anonymous(1), token)
				return apptest.Code(err)
			}
		}
		page := open()
		clock.Move(29 * time.Minute)
		before := page()
		clock.Move(time.Minute)
		if after := page(); before != "" || after != doorward.CodeUnauthenticated {
			f.Errorf("a page answers %q before its end and %q after it", before, after)
		}
		page = open()
		_, err := at(0).Restored(f.Context(), apptest.Operator, installation.Keep{Sessions: true, Links: true, Keys: true})
		f.NoError(err)
		if code := page(); code != doorward.CodeUnauthenticated {
			f.Errorf("after a restore the page answers %q", code)
		}
	})
}
