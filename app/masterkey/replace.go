package masterkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// Forgetter replaces or ends what nothing can open any more: the values of one table with the ids, each named
// once, in the transaction of an action by the operator. It records in the trails whom that concerns. Values
// that have changed since must stay as they are only if they are sealed with the current key.
type Forgetter func(ctx context.Context, tx *access.Tx, ids []string) error

// OnLoss registers what replaces or ends the sealed values of a table after the loss of their key. Call it before
// the first use of the keys.
func (k *Keys) OnLoss(table string, forget Forgetter) { k.forgetters[table] = forget }

// Forgets reports whether OnLoss was called for the table.
func (k *Keys) Forgets(table string) bool { return k.forgetters[table] != nil }

// Lost is what is sealed with keys other than the new one.
type Lost struct {
	Keys   []string            // ids of these keys
	Tables map[string][]string // the rows with such values: their ids, by table
}

// Len returns the number of rows.
func (l Lost) Len() (n int) {
	for _, ids := range l.Tables {
		n += len(ids)
	}
	return n
}

// NotLostError says that a key that values are sealed with is in the node's key file.
type NotLostError struct{ Path, Key string }

// Error says what to do instead.
func (e *NotLostError) Error() string {
	return fmt.Sprintf("the key %s isn't lost, it is in %s. To replace it without a loss, run \"doorward key rotate-master\"", e.Key, e.Path)
}

// fieldMasterKey is the field of events with the ids of the former keys and of the new one.
const fieldMasterKey = "masterKey"

// listBatch is how many values are read at a time.
const listBatch = 1000

// Lost returns what Replace with the key would forget. Errors: *NotLostError if this node's key file has a key
// that such a value is sealed with, or that next would replace; unavailable.
func (k *Keys) Lost(ctx context.Context, next seal.Key) (Lost, error) {
	lost := Lost{Tables: map[string][]string{}}
	rows, err := k.db.Read().MasterKeys(ctx)
	if err != nil {
		return lost, err
	}
	for _, row := range rows {
		if row.Current && row.ID != next.ID().String() {
			lost.addKey(row.ID)
		}
	}
	if err := k.eachLost(ctx, next, lost.add); err != nil {
		return lost, err
	}
	for table, ids := range lost.Tables {
		lost.Tables[table] = distinct(ids)
	}
	return lost, k.checkLost(lost, rows)
}

// eachLost calls do with each value that is sealed with another key than next.
func (k *Keys) eachLost(ctx context.Context, next seal.Key, do func(store.SealedValue)) error {
	for last := (store.SealedValue{}); ; {
		batch, err := k.db.Read().SealedWithOtherKeys(ctx, seal.HeaderOf(next.ID()), last, listBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, s := range batch {
			do(s)
		}
		last = batch[len(batch)-1]
	}
}

// distinct returns the ids once each: a row may have two sealed columns.
func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (l *Lost) add(s store.SealedValue) {
	if id, err := seal.IDOf(s.Value); err == nil {
		l.addKey(id.String())
	}
	l.Tables[s.Table] = append(l.Tables[s.Table], s.ID)
}

func (l *Lost) addKey(id string) {
	if !slices.Contains(l.Keys, id) {
		l.Keys = append(l.Keys, id)
	}
}

// checkLost returns a *NotLostError if the file that this node reads has, or opens, one of the lost keys.
func (k *Keys) checkLost(lost Lost, rows []store.MasterKey) error {
	fileKey, err := k.source.Read()
	if err != nil || fileKey.IsZero() {
		return nil // a file that can't be used has no key
	}
	keys, err := usableKeys(fileKey, rows)
	if err != nil {
		return nil
	}
	for _, key := range keys {
		if id := key.ID().String(); slices.Contains(lost.Keys, id) {
			return &NotLostError{k.source.Path, id}
		}
	}
	return nil
}

// Replace makes next the only master key, although the present one is lost, and forgets what was sealed with
// any other. It works while nodes run: those with the lost key in memory use it no more, and read the file with
// next within a minute after it was put in its place. It returns what is forgotten, also with an error. Called again,
// it goes on where it was interrupted. Errors: those of Lost; unavailable.
func (k *Keys) Replace(ctx context.Context, by doorward.Caller, next seal.Key) (Lost, error) {
	lost, err := k.Lost(ctx, next)
	if err != nil {
		return Lost{}, err
	}
	for table := range lost.Tables {
		if !k.Forgets(table) {
			return Lost{}, fmt.Errorf("masterkey: nothing is registered that forgets the sealed values of %s", table)
		}
	}
	if err := k.abandon(ctx, by, next); err != nil {
		return Lost{}, err
	}
	progress.Step(ctx, "forgetting sealed values", int64(lost.Len()), nil)
	return k.forgetAll(ctx, by, next)
}

// abandon makes next the only key, and this process use it.
func (k *Keys) abandon(ctx context.Context, by doorward.Caller, next seal.Key) error {
	_, err := k.writer.Do(ctx, by, doorward.MasterKeyReplace, object, func(tx *access.Tx) error {
		if err := tx.LockAllMasterKeys(ctx); err != nil {
			return err
		}
		rows, err := tx.MasterKeys(ctx)
		if err != nil {
			return err
		}
		id := next.ID().String()
		if len(rows) == 1 && rows[0].ID == id {
			tx.SkipEvent() // an earlier call did it
			return nil
		}
		tx.Changed(fieldMasterKey, idsOf(rows, id), id)
		return tx.AbandonMasterKeys(ctx, id, checkOf(next))
	})
	if err == nil {
		k.fileKey.Store(&next)
		k.ring.Set(next)
	}
	return err
}

// idsOf returns the ids of the keys except one.
func idsOf(rows []store.MasterKey, except string) string {
	var all []string
	for _, row := range rows {
		if row.ID != except {
			all = append(all, row.ID)
		}
	}
	return strings.Join(all, " ")
}

// forgetAll reads the values again: some have been sealed since Lost, until the key was replaced.
func (k *Keys) forgetAll(ctx context.Context, by doorward.Caller, next seal.Key) (Lost, error) {
	all := Lost{Tables: map[string][]string{}}
	for last := ""; ; {
		values, err := k.db.Read().SealedWithOtherKeys(ctx, seal.HeaderOf(next.ID()), store.SealedValue{}, batchSize)
		if err != nil || len(values) == 0 {
			return all, err
		}
		batch := Lost{Tables: map[string][]string{}}
		for _, s := range values {
			if s.Table == values[0].Table {
				batch.add(s)
			}
		}
		table, ids := values[0].Table, distinct(batch.Tables[values[0].Table])
		first := table + " " + ids[0] + " " + values[0].Column
		if first == last {
			return all, fmt.Errorf("masterkey: the value of %s was not forgotten", first)
		}
		last = first
		if err := k.forget(ctx, by, next, table, ids); err != nil {
			return all, fmt.Errorf("%s: %w", table, err)
		}
		all.Tables[table] = append(all.Tables[table], ids...)
		progress.Add(ctx, int64(len(ids)))
	}
}

func (k *Keys) forget(ctx context.Context, by doorward.Caller, next seal.Key, table string, ids []string) error {
	_, err := k.writer.Do(ctx, by, doorward.MasterKeyReplace, object, func(tx *access.Tx) error {
		if err := notifyTenants(ctx, tx, next, table, ids); err != nil {
			return err
		}
		return k.forgetters[table](ctx, tx, ids)
	})
	return err
}

// notifyTenants records in the trails of the tenants of the values what must be set again there, and mails their
// OWNERs. A tenant has one mail, with all that is lost: the first of its values finds all others not forgotten yet.
func notifyTenants(ctx context.Context, tx *access.Tx, next seal.Key, table string, ids []string) error {
	done := map[string]bool{"": true, store.RetiredWebhooksTenant: true} // the installation's own: the operator gets a mail for each
	for _, id := range ids {
		tenantID, err := tenantOf(ctx, tx, table, id)
		if errors.Is(err, store.ErrNone) || err == nil && done[tenantID] {
			continue
		}
		if err == nil {
			err = notifyTenant(ctx, tx, next, tenantID)
		}
		if err != nil {
			return err
		}
		done[tenantID] = true
	}
	return nil
}

// tenantOf returns the tenant whose people must set a value again, "" for other values, and ErrNone if it is gone: keys of
// connections are replaced, and seeds are of people.
func tenantOf(ctx context.Context, tx *access.Tx, table, id string) (string, error) {
	switch table {
	case "webhooks":
		hook, err := tx.Webhook(ctx, id)
		return hook.TenantID, err
	case "connection_secrets":
		return tx.SecretTenant(ctx, id)
	case "connection_saml_keys": // another one is made, which the provider has to learn
		return tx.SAMLKeyTenant(ctx, id)
	}
	return "", nil
}

// notifyTenant does nothing if an earlier transaction of the same replacement has done it.
func notifyTenant(ctx context.Context, tx *access.Tx, next seal.Key, tenantID string) error {
	earlier, err := tx.EventPage(ctx, tenantID, store.EventFilter{Action: doorward.MasterKeyReplace, Target: tenantID}, doorward.Window{Limit: 1})
	if err != nil || len(earlier.Items) > 0 && earlier.Items[0].Change(fieldMasterKey).To == next.ID().String() {
		return err
	}
	webhooks, connections, err := tx.LostSecrets(ctx, tenantID, seal.HeaderOf(next.ID()))
	if err != nil {
		return err
	}
	owners, err := access.EmailsOf(ctx, tx.Reader, tenantID, doorward.RoleOwner)
	if err != nil {
		return err
	}
	changes := []doorward.Change{{Field: fieldMasterKey, To: next.ID().String()}}
	for _, id := range webhooks {
		changes = append(changes, doorward.Change{Field: doorward.FieldWebhookLost, To: id})
	}
	for _, id := range connections {
		changes = append(changes, doorward.Change{Field: doorward.FieldConnectionLost, To: id})
	}
	on := doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}
	return tx.NotifyAlso(ctx, store.MailSecretsLost, owners, doorward.MasterKeyReplace, on, changes...)
}
