package store

import (
	"context"
	"strings"

	"github.com/doorward/doorward"
)

// Named is the name and the address of a person, an invitation or an API key of a tenant.
type Named struct {
	ID, Name, Email string // Email is empty for a key
}

func namedFields(n *Named) []any { return []any{&n.ID, &n.Name, &n.Email} }

// namesAtOnce is how many ids a statement looks up: those of idList.
const namesAtOnce = 100

// The statements that look up ids: people, invitations, API keys.
const (
	sqlNamesOfPeople      = `SELECT m.user_id, m.name, u.email FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.tenant_id = $1 AND m.user_id IN (` + idList + `)`
	sqlNamesOfInvitations = `SELECT i.id, i.name, i.email FROM invitations i WHERE i.tenant_id = $1 AND i.id IN (` + idList + `)`
	sqlNamesOfKeys        = `SELECT k.id, k.name, '' FROM api_keys k WHERE k.tenant_id = $1 AND k.id IN (` + idList + `)`
	idList                = `$2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
  $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41,
  $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61,
  $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81,
  $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101`
)

var namesBy = map[string]string{"usr_": sqlNamesOfPeople, "inv_": sqlNamesOfInvitations, "key_": sqlNamesOfKeys}

// Names returns the names and addresses of people, invitations and API keys of a tenant as
// they are now. Other ids are left out.
func (r Reader) Names(ctx context.Context, tenantID string, ids []string) (map[string]Named, error) {
	all := map[string]Named{}
	for prefix, query := range namesBy {
		found, err := listByIDs(ctx, r, namedFields, query, tenantID, withPrefix(ids, prefix))
		if err != nil {
			return nil, err
		}
		for _, n := range found {
			all[n.ID] = n
		}
	}
	return all, nil
}

const sqlRemovals = selectEvent + `WHERE tenant_id = $1 AND target_id IN (` + idList + `) AND action = 'user.remove' AND outcome = 'done' ORDER BY seq`

// Removals returns the events by which the people were removed from the tenant, for each
// person the newest last.
func (r Reader) Removals(ctx context.Context, tenantID string, ids []string) ([]doorward.Event, error) {
	return listByIDs(ctx, r, eventFields, sqlRemovals, tenantID, withPrefix(ids, "usr_"))
}

func withPrefix(ids []string, prefix string) (found []string) {
	for _, id := range ids {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	return found
}

// listByIDs runs a statement that takes a tenant and namesAtOnce ids, as often as needed.
func listByIDs[T any](ctx context.Context, r Reader, dest fields[T], query, tenantID string, ids []string) (all []T, err error) {
	for ; len(ids) > 0; ids = ids[min(namesAtOnce, len(ids)):] {
		args := make([]any, namesAtOnce+1)
		args[0] = tenantID
		for i := range namesAtOnce {
			args[i+1] = ""
			if i < len(ids) {
				args[i+1] = ids[i]
			}
		}
		found, err := list(ctx, r, dest, query, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
