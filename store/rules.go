package store

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/doorward/doorward"
)

// RulesSource is what a tenant's rules are compiled from.
type RulesSource struct {
	Version doorward.RulesVersion
	Model   string // YAML; empty: the built-in model
	Roles   []doorward.CustomRole
	Policies
}

// CompileRules compiles the rules of a tenant.
type CompileRules func(RulesSource) (*doorward.Rules, error)

// builtinOnly is used until SetCompiler is called. It compiles roles, and refuses a model.
func builtinOnly(s RulesSource) (*doorward.Rules, error) {
	if s.Model != "" {
		return nil, errors.New("store: no compiler for models was set")
	}
	return doorward.NewRules(s.Version, doorward.BuiltIn(), s.Roles), nil
}

// rulesCache keeps compiled rules. The content of a version never changes, and each row that
// is read names its version, so an entry can't be stale.
type rulesCache struct {
	compile  CompileRules
	mu       sync.RWMutex
	byTenant map[string]*doorward.Rules // "" for tenants without rules of their own
}

// maxCachedRules bounds the memory for tenants with rules of their own.
const maxCachedRules = 10_000

func newRulesCache() *rulesCache {
	return &rulesCache{compile: builtinOnly, byTenant: map[string]*doorward.Rules{}}
}

func (c *rulesCache) get(tenantID string, v doorward.RulesVersion) *doorward.Rules {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if r := c.byTenant[cacheKeyOf(tenantID, v)]; r != nil && r.Version == v {
		return r
	}
	return nil
}

func (c *rulesCache) put(tenantID string, r *doorward.Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byTenant) >= maxCachedRules {
		for key := range c.byTenant {
			delete(c.byTenant, key)
			break
		}
	}
	c.byTenant[cacheKeyOf(tenantID, r.Version)] = r
}

// cacheKeyOf returns the key of the cache. All tenants without rules of their own share one entry.
func cacheKeyOf(tenantID string, v doorward.RulesVersion) string {
	if v.Tenant == 0 {
		return ""
	}
	return tenantID
}

// SetCompiler sets how rules are compiled. Without a compiler only the built-in model can be
// read. It must be called before the first query.
func (db *DB) SetCompiler(compile CompileRules) { db.rules.compile = compile }

// rulesColumns are the revisions of the rules that hold for a row with a tenant t.
const rulesColumns = `t.rules_revision, ` + modelRevision

const modelRevision = `COALESCE((SELECT revision FROM models WHERE version = (SELECT MAX(version) FROM models)), 0)`

// rulesFields scans rulesColumns. The rules themselves are read after the rows.
func rulesFields(rules **doorward.Rules) []any {
	return []any{revision{rules, func(v *doorward.RulesVersion) *int64 { return &v.Tenant }}, revision{rules, func(v *doorward.RulesVersion) *int64 { return &v.Model }}}
}

// revision scans one revision into a version of rules that are yet to be read.
type revision struct {
	dest  **doorward.Rules
	field func(*doorward.RulesVersion) *int64
}

// Scan implements sql.Scanner.
func (s revision) Scan(v any) error {
	var n sql.NullInt64
	if err := n.Scan(v); err != nil || n.Int64 == 0 {
		return err
	}
	var version doorward.RulesVersion
	if *s.dest != nil {
		version = (*s.dest).Version
	}
	*s.field(&version) = n.Int64
	*s.dest = doorward.UnloadedRules(version)
	return nil
}

// withRules reads the rules of a row if its type has any.
func withRules(ctx context.Context, r Reader, row any) error {
	switch v := row.(type) {
	case *doorward.User:
		return r.readRules(ctx, v.TenantID, &v.Rules)
	case *doorward.Tenant:
		return r.readRules(ctx, v.ID, &v.Rules)
	case *doorward.APIKey:
		return r.readRules(ctx, v.TenantID, &v.Rules)
	case *Credential:
		return r.readRules(ctx, v.User.TenantID, &v.User.Rules)
	case *KeyCredential:
		return r.readRules(ctx, v.Key.TenantID, &v.Key.Rules)
	}
	return nil
}

// readRules completes *rules, which has only the version of the rules. It reads the rules of that
// version, or of a later one.
func (r Reader) readRules(ctx context.Context, tenantID string, rules **doorward.Rules) (err error) {
	if *rules == nil {
		return nil // the tenant has the rules of the built-in model alone
	}
	*rules, err = r.rulesAt(ctx, tenantID, (*rules).Version)
	return err
}

// maxRulesReads bounds the repeated reads when rules change during a read.
const maxRulesReads = 5

func (r Reader) rulesAt(ctx context.Context, tenantID string, v doorward.RulesVersion) (*doorward.Rules, error) {
	for range maxRulesReads {
		if cached := r.rules.get(tenantID, v); cached != nil {
			return cached, nil
		}
		source, err := r.rulesSource(ctx, tenantID, v)
		if err != nil {
			return nil, err
		}
		// The rules may have changed during the read: source is that of v only if v is still
		// the version.
		current, err := r.RulesVersion(ctx, tenantID)
		if err != nil {
			return nil, err
		}
		if current != v {
			v = current
			continue
		}
		compiled, err := r.rules.compile(source)
		if err != nil {
			return nil, doorward.Unavailable(err)
		}
		r.rules.put(tenantID, compiled)
		return compiled, nil
	}
	return nil, doorward.Unavailable(errors.New("store: the rules of a tenant changed during each of several reads"))
}

// Rules returns the current rules of a tenant; for an empty id those of the model, without
// roles and policies. nil stands for the built-in model alone. Errors: unavailable.
func (r Reader) Rules(ctx context.Context, tenantID string) (*doorward.Rules, error) {
	v, err := r.RulesVersion(ctx, tenantID)
	if err != nil || v == (doorward.RulesVersion{}) {
		return nil, err
	}
	return r.rulesAt(ctx, tenantID, v)
}

func versionFields(v *doorward.RulesVersion) []any { return []any{&v.Tenant, &v.Model} }

const sqlRulesVersion = `SELECT COALESCE((SELECT rules_revision FROM tenants WHERE id = $1), 0), ` + modelRevision

// RulesVersion returns the version of the rules that hold in a tenant.
func (r Reader) RulesVersion(ctx context.Context, tenantID string) (doorward.RulesVersion, error) {
	return one(ctx, r, versionFields, sqlRulesVersion, tenantID)
}

const sqlModelText = `SELECT text FROM models WHERE revision = $1`

func (r Reader) rulesSource(ctx context.Context, tenantID string, v doorward.RulesVersion) (s RulesSource, err error) {
	s.Version = v
	if v.Model != 0 {
		if s.Model, err = one(ctx, r, textField, sqlModelText, v.Model); err != nil {
			return s, err
		}
	}
	if v.Tenant == 0 {
		return s, nil
	}
	if s.Roles, err = r.CustomRoles(ctx, tenantID); err != nil {
		return s, err
	}
	s.Policies, err = r.Policies(ctx, tenantID)
	return s, err
}

func customRoleFields(c *doorward.CustomRole) []any {
	return []any{&c.ID, &c.Name, &c.About, wordsOf(&c.Permissions, parseAction)}
}

const sqlCustomRoles = `SELECT id, name, about, permissions FROM roles WHERE tenant_id = $1 ORDER BY created_at, id`

// CustomRoles returns the roles that the tenant has made, the oldest first.
func (r Reader) CustomRoles(ctx context.Context, tenantID string) ([]doorward.CustomRole, error) {
	return list(ctx, r, customRoleFields, sqlCustomRoles, tenantID)
}

// RoleOfTenant is a custom role with its tenant.
type RoleOfTenant struct {
	TenantID string
	doorward.CustomRole
}

func roleOfTenantFields(r *RoleOfTenant) []any {
	return append(customRoleFields(&r.CustomRole), &r.TenantID)
}

const sqlEachCustomRole = `SELECT id, name, about, permissions, tenant_id FROM roles ORDER BY tenant_id, created_at, id`

// EachCustomRole calls fn with the custom roles of all tenants, until fn fails, and
// returns fn's error.
func (r Reader) EachCustomRole(ctx context.Context, fn func(RoleOfTenant) error) error {
	return each(ctx, r, roleOfTenantFields, fn, sqlEachCustomRole)
}

const sqlCustomRole = `SELECT id, name, about, permissions FROM roles WHERE tenant_id = $1 AND id = $2`

// CustomRole returns the role of a tenant, or ErrNone.
func (r Reader) CustomRole(ctx context.Context, tenantID, id string) (doorward.CustomRole, error) {
	return one(ctx, r, customRoleFields, sqlCustomRole, tenantID, id)
}

const sqlInsertCustomRole = `INSERT INTO roles (id, tenant_id, name, about, permissions, created_at)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant_id, name) DO NOTHING`

// InsertCustomRole adds the role and reports whether its name was free.
func (tx *Tx) InsertCustomRole(ctx context.Context, tenantID string, c doorward.CustomRole) (bool, error) {
	added, err := tx.affected(ctx, sqlInsertCustomRole, c.ID, tenantID, string(c.Name), c.About, joined(c.Permissions, actionText), micros(tx.Now))
	if err != nil || !added {
		return false, err
	}
	return true, tx.changeRules(ctx, tenantID)
}

const sqlUpdateCustomRole = `UPDATE roles SET name = $1, about = $2, permissions = $3 WHERE tenant_id = $4 AND id = $5`

// UpdateCustomRole replaces what can be edited and reports whether there is such a role.
// The name must be free.
func (tx *Tx) UpdateCustomRole(ctx context.Context, tenantID string, c doorward.CustomRole) (bool, error) {
	found, err := tx.affected(ctx, sqlUpdateCustomRole, string(c.Name), c.About, joined(c.Permissions, actionText), tenantID, c.ID)
	if err != nil || !found {
		return false, err
	}
	return true, tx.changeRules(ctx, tenantID)
}

const sqlDeleteCustomRole = `DELETE FROM roles WHERE tenant_id = $1 AND id = $2`

// DeleteCustomRole deletes the role and reports whether there was one. Nothing may have the
// role any more: see MoveRole.
func (tx *Tx) DeleteCustomRole(ctx context.Context, tenantID, id string) (bool, error) {
	found, err := tx.affected(ctx, sqlDeleteCustomRole, tenantID, id)
	if err != nil || !found {
		return false, err
	}
	return true, tx.changeRules(ctx, tenantID)
}

// RoleUse counts what has a role.
type RoleUse struct {
	Members     int64
	Invitations int64 // that can be accepted
	Keys        int64 // that have not ended
}

// Any reports whether anything has the role.
func (u RoleUse) Any() bool { return u != RoleUse{} }

const sqlRoleUse = `SELECT (SELECT count(*) FROM memberships WHERE tenant_id = $2 AND role = $3),
  (SELECT count(*) FROM invitations WHERE tenant_id = $2 AND role = $3 AND state = 'PENDING' AND expires_at > $1),
  (SELECT count(*) FROM api_keys WHERE tenant_id = $2 AND role = $3 AND ` + liveAPIKey + `)`

// RoleUse counts what has the role in the tenant at the instant.
func (r Reader) RoleUse(ctx context.Context, tenantID string, role doorward.Role, now time.Time) (RoleUse, error) {
	fields := func(u *RoleUse) []any { return []any{&u.Members, &u.Invitations, &u.Keys} }
	return one(ctx, r, fields, sqlRoleUse, micros(now), tenantID, string(role))
}

const (
	sqlMoveMembers     = `UPDATE memberships SET role = $1 WHERE tenant_id = $2 AND role = $3`
	sqlMoveFloors      = `UPDATE memberships SET role_floor = $1 WHERE tenant_id = $2 AND role_floor = $3`
	sqlMoveInvitations = `UPDATE invitations SET role = $1 WHERE tenant_id = $2 AND role = $3 AND state = 'PENDING'`
	sqlMoveAPIKeys     = `UPDATE api_keys SET role = $1 WHERE tenant_id = $2 AND role = $3`
	sqlMoveJITRoles    = `UPDATE connections SET jit_role = $1 WHERE tenant_id = $2 AND jit_role = $3`
	sqlMoveMappings    = `UPDATE connection_mappings SET role = $1 WHERE role = $3 AND connection_id IN (SELECT id FROM connections WHERE tenant_id = $2)`
)

// MoveRole replaces one role by another in all members, pending invitations and API keys of
// the tenant, and in what its connections give.
func (tx *Tx) MoveRole(ctx context.Context, tenantID string, from, to doorward.Role) error {
	tx.announce(ChangeTenant, tenantID)
	tx.Effects.Roles = append(tx.Effects.Roles, doorward.RoleEffect{Before: from, After: to})
	for _, move := range []string{sqlMoveMembers, sqlMoveFloors, sqlMoveInvitations, sqlMoveAPIKeys, sqlMoveJITRoles, sqlMoveMappings} {
		if err := tx.run(ctx, move, string(to), tenantID, string(from)); err != nil {
			return err
		}
	}
	return nil
}

// HasRole reports whether there is such a role in the tenant. Under the tenant's lock the
// answer is valid until the commit.
func (r Reader) HasRole(ctx context.Context, tenantID string, role doorward.Role) (bool, error) {
	if role.IsBuiltIn() {
		return true, nil
	}
	rules, err := r.Rules(ctx, tenantID)
	return err == nil && rules.Has(role), err
}

// ModelVersion is one version of the platform's model.
type ModelVersion struct {
	Version   int64
	Text      string // YAML
	CreatedAt time.Time
	CreatedBy string // id of an operator key; empty at the command line
}

func modelFields(m *ModelVersion) []any {
	return []any{&m.Version, &m.Text, (*storedTime)(&m.CreatedAt), &m.CreatedBy}
}

const sqlModel = `SELECT version, text, created_at, created_by FROM models WHERE version = (SELECT MAX(version) FROM models)`

// Model returns the current version of the model, or ErrNone for the built-in one.
func (r Reader) Model(ctx context.Context) (ModelVersion, error) {
	return one(ctx, r, modelFields, sqlModel)
}

const sqlModelVersions = `SELECT version, text, created_at, created_by FROM models ORDER BY version`

// ModelVersions returns all versions of the model, the oldest first.
func (r Reader) ModelVersions(ctx context.Context) ([]ModelVersion, error) {
	return list(ctx, r, modelFields, sqlModelVersions)
}

const sqlLockModel = `UPDATE shared_clock SET moved = moved WHERE id = 1`

// LockModel makes other transactions that call it wait until this one ends, so that no policy is
// added to what a new model was compared with. Since the built-in model has no row, it locks that
// of the shared clock, which nodes lock only when they join.
func (tx *Tx) LockModel(ctx context.Context) error { return tx.run(ctx, sqlLockModel) }

const sqlInsertModel = `INSERT INTO models (version, revision, text, created_at, created_by)
VALUES ($1, $2, $3, $4, $5) ON CONFLICT (version) DO NOTHING`

// InsertModel adds a version, which is in force from the commit on, and reports whether its
// number was free.
func (tx *Tx) InsertModel(ctx context.Context, m ModelVersion) (bool, error) {
	tx.announce(ChangeAll, "")
	return tx.affected(ctx, sqlInsertModel, m.Version, newRevision(), m.Text, micros(m.CreatedAt), m.CreatedBy)
}

const sqlChangeRules = `UPDATE tenants SET rules_revision = $1 WHERE id = $2`

// changeRules makes every node read the tenant's rules again. Each statement that changes
// them calls it.
func (tx *Tx) changeRules(ctx context.Context, tenantID string) error {
	tx.announce(ChangeTenant, tenantID)
	return tx.run(ctx, sqlChangeRules, newRevision(), tenantID)
}

// newRevision is a random number: rules that were cached inside a transaction that is then
// rolled back must not be found under the number of a later one.
func newRevision() int64 { return 1 + rand.Int64N(1<<62) }
