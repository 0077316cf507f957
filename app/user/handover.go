package user

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/store"
)

// Handover says what becomes of the API keys of a member who is suspended or removed. The
// zero Handover revokes them.
type Handover struct {
	Transfer bool
	OwnerID  string // the next owner, an active member; empty: the caller, if that is a user
}

// rotateWithin is the time after which a transferred key ends unless it has been rotated: the
// former owner may know its secret.
const rotateWithin = 7 * 24 * time.Hour

// faults returns the faults of the handover that can be found without the database.
func (h Handover) faults(by doorward.Caller, target doorward.User) []doorward.FieldError {
	switch {
	case !h.Transfer && h.OwnerID != "":
		return []doorward.FieldError{{Parameter: "ownerId", Code: "invalid", Message: "Send ownerId only with apiKeys=transfer."}}
	case h.Transfer && h.owner(by) == "":
		return []doorward.FieldError{{Parameter: "ownerId", Code: "required", Message: "Say which member owns the keys from now on."}}
	case h.Transfer && h.owner(by) == target.ID:
		return []doorward.FieldError{notNextOwner}
	}
	return nil
}

var notNextOwner = doorward.FieldError{Parameter: "ownerId", Code: "invalid", Message: "Choose another active member of the tenant."}

func (h Handover) owner(by doorward.Caller) string {
	if h.OwnerID == "" && by.Kind == doorward.ByUser {
		return by.ID
	}
	return h.OwnerID
}

// handOver revokes or transfers the API keys that the member owns, with an event for each.
func handOver(ctx context.Context, tx *access.Tx, on doorward.Object, h Handover) (revoked, transferred int64, err error) {
	if h.Transfer {
		transferred, err = transferKeys(ctx, tx, on, h.owner(tx.By))
		return 0, transferred, err
	}
	revoked, err = member.RevokeKeys(ctx, tx, on)
	return revoked, 0, err
}

func transferKeys(ctx context.Context, tx *access.Tx, on doorward.Object, to string) (int64, error) {
	next, err := tx.User(ctx, on.TenantID, to)
	if errors.Is(err, store.ErrNone) || err == nil && next.Status != doorward.UserActive {
		err = doorward.InvalidFields(notNextOwner)
	}
	if err != nil {
		return 0, err
	}
	rotateBy := tx.Now.Add(rotateWithin)
	ids, err := tx.TransferAPIKeys(ctx, on.TenantID, on.ID, to, rotateBy)
	for _, id := range ids {
		if err := requireGiving(ctx, tx, on, id, next.Role); err != nil {
			return 0, err
		}
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.APIKeyUpdate, keyObject(on, id),
			doorward.Change{Field: "ownerId", From: on.ID, To: to}, doorward.Change{Field: "rotateBy", To: rotateBy.Format(time.RFC3339)}))
	}
	return int64(len(ids)), err
}

// requireGiving refuses unless the caller may give the role of the key: the role of the former
// owner may have limited the key more than that of the next one does. If the key can then do
// more, the caller needs a recent proof, as for an edit of it. Errors: forbidden, step_up_required.
func requireGiving(ctx context.Context, tx *access.Tx, member doorward.Object, id string, next doorward.Role) error {
	key, err := tx.APIKey(ctx, id, tx.Now)
	if err != nil {
		return err
	}
	on := keyObject(member, id)
	on.Granted = key.Role
	if !decide.May(&tx.By.Principal, &decide.Question{Action: doorward.UserManage, On: on, Request: tx.By.RequestAt(tx.Now)}).Allowed {
		return doorward.Fail(doorward.CodeForbidden, "The API key %s has the role %s, which is above the caller's. Let the keys end, or let an OWNER transfer them.", id, key.Role)
	}
	key.OwnerRole = member.Held
	was := key.EffectivePermissions()
	key.OwnerRole = next
	if slices.ContainsFunc(key.EffectivePermissions(), func(a doorward.Action) bool { return !slices.Contains(was, a) }) {
		return tx.NeedProof()
	}
	return nil
}

func keyObject(on doorward.Object, id string) doorward.Object {
	return doorward.Object{Type: "key", ID: id, TenantID: on.TenantID}
}
