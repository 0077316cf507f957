package console

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/web/ui"
)

// demand is the page that says whom a demand for second factors concerns, before the
// settings are saved. It sends the form of the settings again, as confirmed.
type demand struct {
	pageData
	Preview tenant.DemandPreview
	More    int  // people who are not shown: beyond the first ones, or all if the caller may not read people
	AtOnce  bool // without days of grace
}

func (h *console) askDemand(ctx context.Context, c *ui.Call, preview tenant.DemandPreview) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if !c.Can(doorward.UserRead) {
		preview.People = nil
	}
	return ui.View{Page: "demand", Body: demand{s, preview, preview.Count - len(preview.People), !preview.At.After(c.Now())}}, err
}
