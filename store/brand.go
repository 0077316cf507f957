package store

import (
	"context"

	"github.com/doorward/doorward"
)

// brandFields has the order of brandColumns.
func brandFields(b *doorward.Brand) []any {
	l := &b.Logo
	return []any{&b.Accent, nullableText{&l.Hash}, nullableInt{&l.Width}, nullableInt{&l.Height}, nullableText{&l.Background}}
}

// brandColumns are the columns of tenants t with logos l, without the image.
const brandColumns = `t.accent, l.hash, l.width, l.height, l.ground`

const (
	sqlPutLogo = `INSERT INTO logos (tenant_id, hash, width, height, ground, image) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant_id) DO UPDATE SET hash = excluded.hash, width = excluded.width, height = excluded.height,
  ground = excluded.ground, image = excluded.image`
	sqlDeleteLogo = `DELETE FROM logos WHERE tenant_id = $1`
	sqlLogoImage  = `SELECT image FROM logos WHERE hash = $1 ORDER BY tenant_id LIMIT 1`
)

// PutLogo sets or replaces the tenant's logo. The hash is that of the image.
func (tx *Tx) PutLogo(ctx context.Context, tenantID string, l doorward.Logo, image []byte) error {
	return tx.run(ctx, sqlPutLogo, tenantID, l.Hash, l.Width, l.Height, l.Background, image)
}

// DeleteLogo deletes the tenant's logo, and reports whether it had one.
func (tx *Tx) DeleteLogo(ctx context.Context, tenantID string) (bool, error) {
	return tx.affected(ctx, sqlDeleteLogo, tenantID)
}

// LogoImage returns the image with the hash, of any tenant, or ErrNone.
func (r Reader) LogoImage(ctx context.Context, hash string) ([]byte, error) {
	return one(ctx, r, bytesColumn, sqlLogoImage, hash)
}
