package tenant

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/colour"
	"github.com/doorward/doorward/internal/picture"
	"github.com/doorward/doorward/store"
)

// SetLogo sets the logo of the caller's tenant, re-encoded from a PNG, JPEG or
// WebP, and returns the tenant. versions, unless empty, are those that the change
// is based on; see doorward.Tenant.Version. Errors: forbidden, body_too_large,
// logo_refused, precondition_failed, unavailable.
func (t *Tenants) SetLogo(ctx context.Context, by doorward.Caller, sent []byte, versions []string) (doorward.Tenant, error) {
	on := object(by.TenantID)
	if err := t.writer.Require(ctx, by, doorward.TenantUpdate, on); err != nil {
		return doorward.Tenant{}, err
	}
	logo, image, err := t.makeLogo(ctx, sent)
	if err != nil {
		return doorward.Tenant{}, err
	}
	return t.changeLogo(ctx, by, logo, versions, func(tx *access.Tx) error { return tx.PutLogo(ctx, on.ID, logo, image) })
}

// RemoveLogo removes the logo of the caller's tenant, if it has one; for the
// versions see SetLogo. Errors: forbidden, precondition_failed.
func (t *Tenants) RemoveLogo(ctx context.Context, by doorward.Caller, versions []string) error {
	_, err := t.changeLogo(ctx, by, doorward.Logo{}, versions, func(tx *access.Tx) error {
		_, err := tx.DeleteLogo(ctx, by.TenantID)
		return err
	})
	return err
}

// changeLogo ignores the versions when the logo is already the new one: then the
// same form was sent twice (RFC 9110, section 13.1.1).
func (t *Tenants) changeLogo(ctx context.Context, by doorward.Caller, to doorward.Logo, versions []string, write func(*access.Tx) error) (doorward.Tenant, error) {
	var after doorward.Tenant
	_, err := t.writer.Do(ctx, by, doorward.TenantUpdate, object(by.TenantID), func(tx *access.Tx) error {
		before, err := find(ctx, tx.Reader, by.TenantID)
		if err != nil {
			return err
		}
		after = before
		after.Brand.Logo = to
		if before.Brand.Logo == to {
			tx.SkipEvent()
			return nil
		}
		if err := doorward.CheckVersion(before.Version(), versions); err != nil {
			return err
		}
		tx.Changed("logo", before.Brand.Logo.Hash, to.Hash)
		return write(tx)
	})
	return after, err
}

// makeLogo decodes one image at a time: each may take some 50 MB for a moment.
func (t *Tenants) makeLogo(ctx context.Context, sent []byte) (doorward.Logo, []byte, error) {
	select {
	case t.logoSlot <- struct{}{}:
		defer func() { <-t.logoSlot }()
		return MakeLogo(sent)
	case <-ctx.Done():
		return doorward.Logo{}, nil, doorward.Unavailable(ctx.Err())
	}
}

// MakeLogo returns the logo made of an image, and its PNG. Errors: body_too_large,
// logo_refused.
func MakeLogo(sent []byte) (doorward.Logo, []byte, error) {
	if len(sent) > doorward.MaxLogoSent {
		return doorward.Logo{}, nil, doorward.Fail(doorward.CodeBodyTooLarge, "The image of a logo may have 256 KiB at most.")
	}
	p, err := picture.Make(sent, picture.Bounds{Width: doorward.MaxLogoWidth, Height: doorward.MaxLogoHeight, Bytes: doorward.MaxLogoStored})
	if err != nil {
		return doorward.Logo{}, nil, refusal(err)
	}
	return doorward.Logo{Hash: doorward.HashLogo(p.PNG), Width: p.Width, Height: p.Height, Background: string(p.Background)}, p.PNG, nil
}

// refusals has the errors of package picture, each with a message that says what to do.
var refusals = []struct {
	err           error
	code, message string
}{
	{picture.ErrVector, "svg", "An SVG can contain scripts, so it is not accepted. Export it as a PNG, 512 pixels wide."},
	{picture.ErrSize, "out_of_range", "An image may have 4096 pixels on a side and 4 million in all. Scale it down to 512 by 128."},
	{picture.ErrTooDetailed, "too_detailed", "Even scaled down the image takes more than 64 KiB. Use one with fewer colours, or a smaller one."},
	{picture.ErrUnknown, "invalid", "This can't be read as PNG, JPEG or WebP. Export the image again as a PNG."},
}

func refusal(err error) error {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return &doorward.Error{
				Code: doorward.CodeLogoRefused, Detail: r.message,
				Fields: []doorward.FieldError{{Pointer: "/logo", Code: r.code, Message: r.message}},
			}
		}
	}
	return err // of encoding: a defect
}

// Logo returns the PNG of the logo with the hash, of any tenant. It is public: pages show it to
// people who aren't signed in. Errors: not_found.
func (t *Tenants) Logo(ctx context.Context, hash string) ([]byte, error) {
	image, err := t.db.Read().LogoImage(ctx, hash)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return image, err
}

// checkAccent returns the colour in canonical form; an empty one is that of the
// installation.
func checkAccent(typed string) (string, []doorward.FieldError) {
	if typed == "" {
		return "", nil
	}
	c, ok := colour.Parse(typed)
	if !ok {
		return "", []doorward.FieldError{{
			Pointer: "/settings/accent", Code: "invalid",
			Message: "Write a colour as # and six hexadecimal digits, like \"#3b4ccf\", or nothing for that of the installation.",
		}}
	}
	return c.String(), nil
}
