package api

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/picture"
	"github.com/doorward/doorward/web/front"
)

// logoTypes are the accepted media types and their names in picture.Format.
var logoTypes = map[string]string{"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}

var docSetLogo = front.Doc{
	ID: "setTenantLogo", Tag: "Tenants", Summary: "Give the tenant a logo",
	Description: "The image is encoded again as a PNG of at most 512 by 128 pixels, without metadata; it may have 256 KiB, 4096 pixels on a side and 4 million in all. " +
		"Best is a PNG with a transparent background. It is shown on the tenant's pages and in its mails, and anybody who knows its address can get it. " +
		"An SVG can contain scripts and is refused. With `If-Match`, a change by somebody else since is 412.",
	Versioned: true, Conditional: true,
	Errors: []doorward.Code{doorward.CodeLogoRefused, doorward.CodePreconditionFailed, doorward.CodeQuotaExceeded},
}

func (a *api) setLogo(ctx context.Context, c *front.Call, mediaType string, body []byte) (tenantView, error) {
	// SetLogo refuses an SVG, with advice.
	if found := picture.Format(body); found != "svg" && found != logoTypes[mediaType] {
		e := doorward.Fail(doorward.CodeLogoRefused, "This is not of the type %s that it was sent as.", mediaType)
		e.Fields = []doorward.FieldError{{Pointer: "/logo", Code: "invalid", Message: e.Detail}}
		return tenantView{}, e
	}
	t, err := a.app.Tenants.SetLogo(ctx, c.Caller, body, c.Versions())
	if err != nil {
		return tenantView{}, err
	}
	c.SetVersion(t.Version())
	return a.viewTenant(c, t), nil
}

var docRemoveLogo = front.Doc{
	ID: "removeTenantLogo", Tag: "Tenants", Summary: "Remove the logo of the tenant",
	Description: "Pages and mails then show that of the installation, or its name. With `If-Match`, a change by somebody else since is 412.",
	Conditional: true,
	Errors:      []doorward.Code{doorward.CodePreconditionFailed, doorward.CodeQuotaExceeded},
}

func (a *api) removeLogo(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	return front.None{}, a.app.Tenants.RemoveLogo(ctx, c.Caller, c.Versions())
}
