package directory

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/registry"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Prefix begins the secret of every directory.
const Prefix = "dwc_"

const (
	day = 24 * time.Hour
	// maxDays bounds the life of a secret that has an end.
	maxDays = 3650
	// endless is how long a secret without an end is kept in memory: longer than any server runs.
	endless = 100 * 365 * day
)

// NewSecret is a secret that was made, with its text, which is shown once.
type NewSecret struct {
	doorward.SCIMSecret
	Text string
}

// AddSecret makes a secret of the connection's directory; days, unless nil, is when it ends. A set-up link may, while the
// connection is a draft, and until then its secret sees nobody (docs/decisions/0032-links-secrets-see-nobody.md). Errors: not_found, too_many_secrets, forbidden, validation_failed.
func (d *Directories) AddSecret(ctx context.Context, by doorward.Caller, connectionID string, days *int64) (made NewSecret, err error) {
	if days != nil && (*days < 1 || *days > maxDays) {
		return made, doorward.Invalid("/expiresInDays", "out_of_range", "A secret is valid for 1 to 3650 days, or without an end if this is left out.")
	}
	key := secret.NewKey(Prefix)
	hash := key.Hash()
	_, err = d.onConnection(ctx, by, connectionID, func(tx *access.Tx, c doorward.Connection) error {
		if by.Kind == doorward.BySetupLink && c.Status != doorward.ConnectionDraft {
			return doorward.Fail(doorward.CodeForbidden, "By a set-up link a secret can be made while the connection is a draft. Ask the person who sent it.")
		}
		had, err := tx.SCIMSecrets(ctx, connectionID)
		if err == nil {
			err = endOver(ctx, tx, had)
		}
		if err != nil {
			return err
		}
		if alive(had, tx.Now) >= doorward.SCIMSecretsMax {
			return doorward.Fail(doorward.CodeTooManySecrets, "")
		}
		made = NewSecret{doorward.SCIMSecret{ID: doorward.NewID(doorward.PrefixSCIMSecret), ConnectionID: connectionID, Hint: key.Hint(), CreatedAt: tx.Now, BySetupLink: by.Kind == doorward.BySetupLink}, key.Reveal()}
		tx.Changed(doorward.FieldSCIMSecret, "", made.Hint)
		if days != nil {
			ends := tx.Now.Add(time.Duration(*days) * day)
			made.ExpiresAt = &ends
			tx.Changed(doorward.FieldEndsAt, "", ends.Format(time.RFC3339))
		}
		if err := tx.InsertSCIMSecret(ctx, made.SCIMSecret, hash[:]); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, made)
	})
	return made, err
}

func alive(all []doorward.SCIMSecret, now time.Time) (n int) {
	for _, s := range all {
		if !s.IsOver(now) {
			n++
		}
	}
	return n
}

// endOver deletes secrets that have ended.
func endOver(ctx context.Context, tx *access.Tx, all []doorward.SCIMSecret) error {
	for _, s := range all {
		if !s.IsOver(tx.Now) {
			continue
		}
		if _, err := tx.DeleteSCIMSecret(ctx, s.ConnectionID, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// DeleteSecret ends a secret, on every node before it returns. Errors: not_found.
func (d *Directories) DeleteSecret(ctx context.Context, by doorward.Caller, connectionID, id string) (doorward.Revocation, error) {
	return d.onConnection(ctx, by, connectionID, func(tx *access.Tx, c doorward.Connection) error {
		if by.Kind == doorward.BySetupLink && c.Status != doorward.ConnectionDraft {
			return doorward.Fail(doorward.CodeForbidden, "By a set-up link a secret can be ended while the connection is a draft. Ask the person who sent it.")
		}
		return deleteSecret(ctx, tx, connectionID, id)
	})
}

func deleteSecret(ctx context.Context, tx *access.Tx, connectionID, id string) error {
	all, err := tx.SCIMSecrets(ctx, connectionID)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.ID == id {
			tx.Changed(doorward.FieldSCIMSecret, s.Hint, "")
		}
	}
	deleted, err := tx.DeleteSCIMSecret(ctx, connectionID, id)
	if err == nil && !deleted {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return err
}

// onConnection does an action on the secrets of a connection of the caller's tenant.
func (d *Directories) onConnection(ctx context.Context, by doorward.Caller, id string, write func(*access.Tx, doorward.Connection) error) (doorward.Revocation, error) {
	found, err := provider.Find(ctx, d.db.Read(), by, id)
	if err != nil {
		return doorward.Revocation{}, err
	}
	return d.writer.Do(ctx, by, doorward.ConnectionSecretChange, provider.Object(found), func(tx *access.Tx) error {
		c, err := provider.Find(ctx, tx.Reader, by, id)
		if err != nil {
			return err
		}
		return write(tx, c)
	})
}

// HashOf returns the hash under which a secret is stored. The error never quotes the text.
func HashOf(text string) (secret.Hash, error) {
	key, err := secret.ParseKey(text)
	if err != nil || key.Prefix() != Prefix {
		return secret.Hash{}, secret.ErrMalformedKey
	}
	return key.Hash(), nil
}

// EndLeaked ends a leaked secret, given by its hash, on every node before it returns. OWNERs are told. An unknown one is no error.
func (d *Directories) EndLeaked(ctx context.Context, by doorward.Caller, hash secret.Hash) error {
	found, err := d.db.Read().SCIMSecretByHash(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = d.writer.Do(ctx, by, doorward.APIKeyLeak, provider.Object(found.Connection), func(tx *access.Tx) error {
		if err := tx.LockTenant(ctx, found.Connection.TenantID); err != nil {
			return err
		}
		err := deleteSecret(ctx, tx, found.Connection.ID, found.Secret.ID)
		if doorward.HasCode(err, doorward.CodeNotFound) {
			tx.SkipEvent()
			return nil
		}
		if err != nil {
			return err
		}
		return tx.NotifyHolders(ctx, store.MailSCIMSecretLeaked, found.Connection.TenantID, doorward.RoleOwner)
	})
	return err
}

// draft is what a check needs beside the principal of a secret in memory.
type draft struct{ is, seesNobody bool }

// Check verifies the secret of a directory, and returns the caller with the directory's principal. It does no I/O for one in
// memory while the lease is valid. Errors: unauthenticated, the same for unknown, ended and resting secrets;
// tenant_frozen, tenant_closing; too_many_attempts after many unknown ones from the client's network; unavailable.
func (d *Directories) Check(ctx context.Context, by doorward.Caller, text string) (doorward.Caller, error) {
	hash, err := HashOf(text)
	if err != nil {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	p, found := d.remembered(hash)
	if !found {
		p, err = d.load(ctx, by, hash)
	}
	if err != nil {
		return by, err
	}
	by.Principal, by.KeyHash = p, hash[:]
	switch p.TenantStatus {
	case doorward.TenantActive:
		return by, nil
	case doorward.TenantClosing:
		return by, doorward.Fail(doorward.CodeTenantClosing, "")
	}
	return by, doorward.Fail(doorward.CodeTenantFrozen, "")
}

// remembered returns the principal from memory. It tests the lease before it reads the entry, as sessions do.
func (d *Directories) remembered(hash secret.Hash) (p doorward.Principal, found bool) {
	if !d.lease.Valid() || d.db.Clock().Wrong() {
		return p, false
	}
	e, now := d.registry.Get(hash), d.db.Now().UnixMicro()
	if e == nil {
		return p, false
	}
	p, extra, inTime := e.Check(now)
	if inTime {
		of := extra.(*draft)
		p.ConnectionID, p.IsDraft, p.SeesNobody = p.ID, of.is, of.seesNobody
		d.registry.Use(hash, e, now)
	}
	return p, inTime
}

func (d *Directories) load(ctx context.Context, by doorward.Caller, hash secret.Hash) (p doorward.Principal, err error) {
	if err := d.db.Clock().Err(); err != nil {
		return p, err // whether it has ended can't be determined
	}
	mark := d.registry.Mark() // before the row is read (docs/lease.md, rule 5)
	var found store.SCIMCredential
	err = d.queries.Do(func() (err error) {
		found, err = d.db.Read().SCIMSecretByHash(ctx, hash[:])
		return err
	})
	now := d.db.Now()
	switch {
	case errors.Is(err, store.ErrNone):
		if err := d.writer.CountUnknownKey(ctx, by); err != nil {
			return p, err
		}
		return p, doorward.Fail(doorward.CodeUnauthenticated, "")
	case err != nil:
		return p, err
	case found.Secret.IsOver(now) || found.Connection.Status == doorward.ConnectionDisabled:
		return p, &RefusedSecret{found.Connection.ID, found.Secret.Hint, found.Secret.IsOver(now)}
	}
	p = doorward.PrincipalOfDirectory(found.Secret, found.Connection, found.Tenant)
	d.remember(hash, p, found.Secret, mark)
	return p, nil
}

// remember puts the secret into memory, and records its use. The first use is written at once, not after a minute.
func (d *Directories) remember(hash secret.Hash, p doorward.Principal, s doorward.SCIMSecret, mark uint64) {
	until, seen := p.AuthAt.Add(endless), time.UnixMicro(0)
	if s.ExpiresAt != nil {
		until = *s.ExpiresAt
	}
	if s.LastUsedAt != nil {
		seen = *s.LastUsedAt
	}
	e := registry.NewKeyEntry(p, until, seen, &draft{p.IsDraft, p.SeesNobody}, mark)
	d.registry.Put(hash, e)
	d.registry.Use(hash, e, d.db.Now().UnixMicro())
}

// apply removes secrets from memory that changes on any node have made outdated. The lease calls it.
func (d *Directories) apply(_ context.Context, changes []store.Change) error {
	for _, c := range changes {
		d.registry.Forget(c)
	}
	return nil
}

// Run writes last uses until ctx ends, then all that remain.
func (d *Directories) Run(ctx context.Context) {
	d.registry.Run(ctx, func() int64 { return d.db.Now().UnixMicro() }, d.writeUses)
}

// writeTimeout bounds one write: otherwise a hanging connection would delay the writes for up to
// 15 minutes, the timeout of TCP.
const writeTimeout = 5 * time.Second

func (d *Directories) writeUses(ctx context.Context, uses []store.Use) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return d.writer.Upkeep(ctx, func(tx *store.Tx) error { return tx.TouchSCIMSecrets(ctx, uses) })
}
