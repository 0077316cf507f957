package hosted

import (
	"context"

	"github.com/doorward/doorward"
	accounts "github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/web/ui"
)

// recentEvent is an event, and the key of the message that describes it.
type recentEvent struct {
	accounts.Recent
	Key string
}

// shownRecent is how many of the recent events are shown at once; the others are behind a button.
const shownRecent = 4

// Newest are the recent events that are shown at once.
func (a account) Newest() []recentEvent { return a.Recent[:min(len(a.Recent), shownRecent)] }

// Earlier are the other recent events.
func (a account) Earlier() []recentEvent { return a.Recent[min(len(a.Recent), shownRecent):] }

func describeAll(recent []accounts.Recent) (all []recentEvent) {
	for _, r := range recent {
		key := "recent." + string(r.Action)
		if r.Variant != "" {
			key += "." + r.Variant
		}
		all = append(all, recentEvent{r, key})
	}
	return all
}

func (h *hosted) forgetBrowser(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "id"); err != nil { // an empty id would forget all browsers
		return ui.View{}, err
	}
	return afterForget(c, h.app.Factors.ForgetBrowser(ctx, c.Caller, c.Value("id")))
}

func (h *hosted) forgetBrowsers(ctx context.Context, c *ui.Call) (ui.View, error) {
	return afterForget(c, h.app.Factors.ForgetBrowser(ctx, c.Caller, ""))
}

// afterForget redirects after browsers were forgotten, also if that has happened before.
func afterForget(c *ui.Call, err error) (ui.View, error) {
	if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
		return ui.View{}, err
	}
	return c.To(securityPage + "?done=forgotten"), nil
}
