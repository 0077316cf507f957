package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/colour"
	"github.com/doorward/doorward/web/front"
)

// IsColour reports whether the text is a colour like "#3b4ccf".
func IsColour(text string) bool {
	_, ok := colour.Parse(text)
	return ok
}

// Header is the top of the page.
func (f Frame) Header() doorward.Header {
	return doorward.HeaderOf(f.Tenant, f.Brand.Brand, f.Brand.Name)
}

// Accent returns the six digits of the page's accent, which name its style sheet, or "".
func (f Frame) Accent() string {
	return strings.TrimPrefix(cmp.Or(f.Tenant.Brand.Accent, f.Brand.Accent), "#")
}

// AccentSheet returns the style sheet for an accent like "#3b4ccf"; it is empty for an
// invalid colour. --fill is exactly the accent, for buttons; --accent is a shade that can be
// read as text in the current scheme; --accent-light and --accent-dark are those of each scheme.
func AccentSheet(accent string) string {
	c, ok := colour.Parse(accent)
	if !ok {
		return "/* No accent colour is set. */\n"
	}
	rule := func(s colour.Scheme) string {
		fitted, wash := s.Fit(c)
		return fmt.Sprintf(":root { --accent: %s; --accent-wash: %s; --on-accent: %s; --fill-edge: %s; }", fitted, wash, colour.TextOn(fitted), edge(c, s))
	}
	light, _ := colour.Light.Fit(c)
	dark, _ := colour.Dark.Fit(c)
	on, hover := colour.Fill(c)
	fill := fmt.Sprintf(":root { --fill: %s; --on-fill: %s; --fill-hover: %s; }\n", c, on, hover)
	for _, s := range []struct {
		name string
		colour.Scheme
	}{{"light", colour.Light}, {"dark", colour.Dark}} {
		fill += fmt.Sprintf(":root { --fill-%[1]s: %[2]s; --on-fill-%[1]s: %[3]s; --fill-edge-%[1]s: %[4]s; }\n", s.name, c, on, edge(c, s.Scheme))
	}
	return fill + fmt.Sprintf(":root { --accent-light: %s; --accent-dark: %s; }\n", light, dark) +
		rule(colour.Light) + "\n@media (prefers-color-scheme: dark) { " + rule(colour.Dark) + " }\n"
}

// edge returns the border colour of a surface of the colour: transparent if the surface
// stands out from the page (WCAG 2.2, 1.4.11).
func edge(c colour.Colour, s colour.Scheme) string {
	if colour.Contrast(c, s.Paper) >= 3 {
		return "transparent"
	}
	return "var(--edge)"
}

// brandRoutes serve the installation's accent as brand.css, and any accents and logos by their
// path only. None needs a session.
func brandRoutes() []front.Route {
	return []front.Route{
		front.On("GET /assets/brand.css", front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
			send(c, "text/css; charset=utf-8", []byte(AccentSheet(c.Site().Brand().Accent)))
			return nil
		}), front.Doc{}),
		front.On("GET /assets/accents/{file}", front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
			name, isCSS := strings.CutSuffix(c.R.PathValue("file"), ".css")
			digits, theme, isThemed := strings.Cut(name, "-")
			if !isCSS || !IsColour("#"+digits) || isThemed && !slices.Contains(themes[1:], theme) {
				return doorward.Fail(doorward.CodeNotFound, "")
			}
			sheet := AccentSheet("#" + digits)
			if isThemed {
				sheet = inTheme(sheet, theme)
			}
			send(c, "text/css; charset=utf-8", []byte(sheet))
			return nil
		}), front.Doc{}),
		front.On("GET /assets/logos/{file}", front.Public(), front.Raw(sendLogo), front.Doc{}),
	}
}

// sendLogo sends the image at Logo.Path, cacheable forever: another image has
// another path. Its policy forbids everything, in case a browser treats it as a
// page.
func sendLogo(ctx context.Context, c *front.Call) error {
	hash, isPNG := strings.CutSuffix(c.R.PathValue("file"), ".png")
	if !isPNG || !doorward.IsLogoHash(hash) {
		return doorward.Fail(doorward.CodeNotFound, "")
	}
	brand := c.Site().Brand()
	image, err := brand.Image, error(nil)
	if hash != brand.Logo.Hash {
		image, err = c.Site().App.Tenants.Logo(ctx, hash)
	}
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	send(c, "image/png", image)
	return nil
}
