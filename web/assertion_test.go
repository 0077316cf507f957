package web_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

const (
	tokenPath = "POST /api/v2/auth/token"
	jwksPath  = "GET /.well-known/jwks.json"
)

// Signing and the key set are 409 while the signing keys can't be opened, and 503 while they
// are not in memory and the database is out of reach. No empty key set is published.
func TestAssertionsWithoutSigningKeys(t *testing.T) {
	const audience = "https://messages.example"
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		sign := func() answer { return d.send(t, tokenPath, m{"audience": audience}, as(owner.Token())) }
		sign().ok(http.StatusOK).members("", "assertion", "expiresAt")
		d.sealSigningKeysElsewhere(t)
		sign().fails(http.StatusConflict, "master_key_missing")
		d.send(t, jwksPath, nil).fails(http.StatusConflict, "master_key_missing")

		if err := d.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		d.Node.App.Assertions.Forget()
		sign().fails(http.StatusServiceUnavailable, "unavailable")
		d.send(t, jwksPath, nil).fails(http.StatusServiceUnavailable, "unavailable")
	}, doorwardtest.Audiences(audience))
}

// sealSigningKeysElsewhere seals the signing keys with a master key that the server doesn't
// have.
func (s *server) sealSigningKeysElsewhere(t *testing.T) {
	t.Helper()
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		rows, err := tx.SigningKeys(t.Context())
		for _, row := range rows {
			row.Sealed = seal.NewKey().Seal(seal.Place{Table: "signing_keys", ID: row.ID, Column: "private_sealed"}, []byte("key"))
			if err = tx.DeleteSigningKey(t.Context(), row.ID); err == nil {
				err = tx.InsertSigningKey(t.Context(), row)
			}
			if err != nil {
				return err
			}
		}
		tx.AnnounceSigningKeys()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Node.App.Assertions.Forget()
}
