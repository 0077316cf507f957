// Package clientsecret adds and deletes the secrets by which Doorward authenticates to providers of OpenID Connect.
//
//	made, err := secrets.Add(ctx, by, conID, clientsecret.Typed{Secret: text, ExpiresAt: end})
//	err := secrets.Delete(ctx, by, conID, made.ID)
//
// A connection has two at most, so that one can take the other's place without a refused sign-in. Package provider seals
// them, tries them at the provider, and tells OWNERs before they end.
package clientsecret

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/store"
)

// Secrets is the feature. Make it with New. It is safe for use by several goroutines.
type Secrets struct {
	writer    *access.Writer
	db        *store.DB
	providers *provider.Client
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, providers *provider.Client) *Secrets {
	return &Secrets{writer: writer, db: db, providers: providers}
}

const (
	secretMax = 1000 // bytes
	// hintLength is how many characters of a secret are shown, of one that has three times as many.
	hintLength = 4
	// secretYearsMax bounds the end of a secret, which is typed by hand.
	secretYearsMax = 10
)

// Typed is a client secret, as typed.
type Typed struct {
	Secret    string
	ExpiresAt *time.Time // as the provider says; nil: never, or not known
}

// check returns the faults of what is typed.
func (t Typed) check(now time.Time) (faults []doorward.FieldError) {
	switch {
	case t.Secret == "":
		faults = append(faults, fault("/clientSecret", "required", "Copy the secret from the provider."))
	case len(t.Secret) > secretMax || strings.ContainsFunc(t.Secret, unicode.IsControl) || strings.TrimSpace(t.Secret) != t.Secret:
		faults = append(faults, fault("/clientSecret", "invalid", "Copy the secret from the provider: at most 1,000 bytes, without blanks around it."))
	}
	if t.ExpiresAt != nil && (!t.ExpiresAt.After(now) || t.ExpiresAt.After(now.AddDate(secretYearsMax, 0, 0))) {
		faults = append(faults, fault("/expiresAt", "out_of_range", "A secret ends in the future, within ten years. Leave this out if it doesn't."))
	}
	return faults
}

func fault(pointer, code, message string) doorward.FieldError {
	return doorward.FieldError{Pointer: pointer, Code: code, Message: message}
}

// hint returns the last characters of a secret that is long enough to stay secret.
func hint(secret string) string {
	runes := []rune(secret)
	if len(runes) < 3*hintLength {
		return ""
	}
	return string(runes[len(runes)-hintLength:])
}

// Add adds a client secret. The newest is tried first. What was tested with other secrets has to be
// tested again before the connection is enabled or switched; an active one goes on. Errors: not_found,
// too_many_secrets, master_key_missing, validation_failed.
func (s *Secrets) Add(ctx context.Context, by doorward.Caller, id string, typed Typed) (made doorward.ConnectionSecret, err error) {
	if faults := typed.check(s.db.Now()); len(faults) > 0 {
		return made, doorward.InvalidFields(faults...)
	}
	found, err := provider.Find(ctx, s.db.Read(), by, id)
	if err == nil && found.Type == doorward.SAML {
		err = doorward.Invalid("/clientSecret", "invalid", "A connection of type saml has no client secrets.")
	}
	if err != nil {
		return made, err
	}
	made = doorward.ConnectionSecret{ID: doorward.NewID(doorward.PrefixClientSecret), ConnectionID: id, Hint: hint(typed.Secret)}
	if typed.ExpiresAt != nil {
		at := doorward.Instant(*typed.ExpiresAt)
		made.ExpiresAt = &at
	}
	_, err = s.writer.Do(ctx, by, doorward.ConnectionSecretChange, provider.Object(found), func(tx *access.Tx) error {
		if _, err := provider.Find(ctx, tx.Reader, by, id); err != nil {
			return err
		}
		if err := tx.DropLostSecrets(ctx, id); err != nil { // this one takes their place
			return err
		}
		had, err := tx.ConnectionSecrets(ctx, id)
		if err == nil && len(had) >= doorward.ConnectionSecretsMax {
			err = doorward.Fail(doorward.CodeTooManySecrets, "")
		}
		if err != nil {
			return err
		}
		made.CreatedAt = tx.Now
		if err := s.insert(ctx, tx, made, typed.Secret); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, made)
	})
	return made, err
}

func (s *Secrets) insert(ctx context.Context, tx *access.Tx, made doorward.ConnectionSecret, secret string) error {
	sealed, err := s.providers.SealSecret(ctx, tx.Tx, made.ID, secret)
	if err != nil {
		return err
	}
	tx.Changed(doorward.FieldClientSecret, "", made.Hint)
	if made.ExpiresAt != nil {
		tx.Changed(doorward.FieldEndsAt, "", made.ExpiresAt.Format(time.RFC3339))
	}
	if err := tx.InsertConnectionSecret(ctx, store.SealedConnectionSecret{ConnectionSecret: made, Sealed: sealed}); err != nil {
		return err
	}
	if err := tx.ClearClientNotice(ctx, made.ConnectionID); err != nil {
		return err
	}
	return tx.VoidTestsOfSecrets(ctx, made.ConnectionID)
}

// Delete deletes a client secret. Errors: not_found.
func (s *Secrets) Delete(ctx context.Context, by doorward.Caller, id, secretID string) error {
	found, err := provider.Find(ctx, s.db.Read(), by, id)
	if err != nil {
		return err
	}
	_, err = s.writer.Do(ctx, by, doorward.ConnectionSecretChange, provider.Object(found), func(tx *access.Tx) error {
		if _, err := provider.Find(ctx, tx.Reader, by, id); err != nil {
			return err
		}
		all, err := tx.ConnectionSecrets(ctx, id)
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.ID == secretID {
				tx.Changed(doorward.FieldClientSecret, one.Hint, "")
			}
		}
		deleted, err := tx.DeleteConnectionSecret(ctx, id, secretID)
		if err == nil && !deleted {
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return err
		}
		return tx.VoidTestsOfSecrets(ctx, id)
	})
	return err
}
