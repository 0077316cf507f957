package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

func connectionFields(c *doorward.Connection) []any {
	return []any{
		&c.ID, &c.TenantID, &c.Type, &c.Name, &c.Product, &c.Status, (*storedTime)(&c.CreatedAt),
		nullableTime{&c.LastSignInAt},
		&c.JIT, &c.JITRole, &c.GroupsFrom, &c.GroupsSeen, &c.Outside, &c.EmptyByRemove, wordsOf(&c.FactorACR, parsePlainText), &c.TrustFactor, &c.Ends, &c.EndsKeys, &c.SignRequests, &c.Encrypt,
		optionalTime{&c.SwitchedAt},
	}
}

const (
	selectConnection = `SELECT c.id, c.tenant_id, c.type, c.name, c.product, c.status, c.created_at, c.last_sign_in_at,
  c.jit, c.jit_role, c.groups_from, c.groups_seen, c.directory_outside, c.empty_by_remove, c.factor_acr, c.trust_factor, c.ends, c.ends_keys, c.sign_requests, c.encrypt, c.switched_at FROM connections c
`
	sqlConnection    = selectConnection + `WHERE c.id = $1`
	sqlConnectionsOf = selectConnection + `WHERE c.tenant_id = $1 ORDER BY c.created_at, c.id`

	selectParameters = `SELECT p.connection_id, p.pending, p.issuer, p.client_id, p.client_auth, p.email_from, p.metadata_url, p.subject_from, p.removed_certificates, p.tested_at, p.revision FROM connection_parameters p `
	sqlParameters    = selectParameters + `WHERE p.connection_id = $1`
	sqlAllParameters = selectParameters + `JOIN connections c ON c.id = p.connection_id WHERE c.tenant_id = $1`
	selectMappings   = `SELECT m.connection_id, m.group_name, m.role, m.group_id, coalesce(g.display_name, ''), coalesce(g.external_id, '')
FROM connection_mappings m LEFT JOIN directory_groups g ON g.id = m.group_id `
	sqlMappings        = selectMappings + `WHERE m.connection_id = $1`
	sqlAllMappings     = selectMappings + `JOIN connections c ON c.id = m.connection_id WHERE c.tenant_id = $1`
	sqlHasActive       = `SELECT count(*) FROM connections WHERE tenant_id = $1 AND status = 'active' AND type <> 'scim'`
	sqlCountConnection = `SELECT count(*) FROM connections WHERE tenant_id = $1`
)

// Connection returns the connection with its parameters and mappings, or ErrNone.
func (r Reader) Connection(ctx context.Context, id string) (doorward.Connection, error) {
	c, err := one(ctx, r, connectionFields, sqlConnection, id)
	if err != nil {
		return c, err
	}
	all, err := completeConnections(ctx, r, []doorward.Connection{c}, sqlParameters, sqlMappings, id)
	if err == nil && len(all) == 0 {
		err = ErrNone
	}
	if err != nil {
		return c, err
	}
	return all[0], nil
}

// ConnectionsOf returns the connections of the tenant, at most doorward.ConnectionsMax, the oldest first.
func (r Reader) ConnectionsOf(ctx context.Context, tenantID string) ([]doorward.Connection, error) {
	all, err := list(ctx, r, connectionFields, sqlConnectionsOf, tenantID)
	if err != nil {
		return nil, err
	}
	return completeConnections(ctx, r, all, sqlAllParameters, sqlAllMappings, tenantID)
}

// HasActiveConnection reports whether a connection of the tenant is active, whatever its mode.
func (r Reader) HasActiveConnection(ctx context.Context, tenantID string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlHasActive, tenantID)
	return n > 0, err
}

const sqlRunningDirectories = `SELECT c.id FROM connections c WHERE c.tenant_id = $1 AND c.status = 'active'
AND EXISTS (SELECT 1 FROM scim_secrets x WHERE x.connection_id = c.id AND (x.expires_at IS NULL OR x.expires_at > $2)) ORDER BY c.id`

// RunningDirectories returns the ids of the tenant's connections whose directories may write now: active ones with a
// secret that hasn't ended.
func (r Reader) RunningDirectories(ctx context.Context, tenantID string, now time.Time) ([]string, error) {
	return list(ctx, r, func(id *string) []any { return []any{id} }, sqlRunningDirectories, tenantID, micros(now))
}

// CountConnections counts the connections of the tenant, whatever their status.
func (r Reader) CountConnections(ctx context.Context, tenantID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountConnection, tenantID)
}

var connectionPages = newPages(listing[doorward.Connection]{
	head:   selectConnection,
	count:  "FROM connections c ",
	where:  "WHERE c.tenant_id = $1\n",
	args:   1,
	fields: connectionFields,
	id:     "c.id",
	idOf:   func(c doorward.Connection) string { return c.ID },
	orders: []order[doorward.Connection]{
		{name: "createdAt", column: "c.created_at", number: func(c doorward.Connection) int64 { return micros(c.CreatedAt) }},
	},
	defaultOrder: "createdAt",
})

// ConnectionPage returns connections of the tenant, the oldest first unless the window says otherwise.
// Errors: validation_failed, for an unknown order.
func (r Reader) ConnectionPage(ctx context.Context, tenantID string, w doorward.Window) (doorward.Page[doorward.Connection], error) {
	page, err := connectionPages.read(ctx, r, w, tenantID)
	if err == nil {
		page.Items, err = completeConnections(ctx, r, page.Items, sqlAllParameters, sqlAllMappings, tenantID)
	}
	return page, err
}

type parametersRow struct {
	connectionID string
	pending      bool
	doorward.ConnectionParameters
}

func parametersFields(p *parametersRow) []any {
	return []any{&p.connectionID, &p.pending, &p.Issuer, &p.ClientID, &p.ClientAuth, &p.EmailFrom, &p.MetadataURL, &p.SubjectFrom, wordsOrNone{&p.RemovedCertificates}, nullableTime{&p.TestedAt}, &p.Revision}
}

type mappingRow struct {
	connectionID string
	doorward.GroupMapping
	name, externalID string // of the group, at present; empty: there is none
}

func mappingFields(m *mappingRow) []any {
	return []any{&m.connectionID, &m.Group, &m.Role, &m.GroupID, &m.name, &m.externalID}
}

// completeConnections adds parameters and mappings, and leaves out connections that have since been
// deleted.
func completeConnections(ctx context.Context, r Reader, all []doorward.Connection, parameters, mappings, arg string) ([]doorward.Connection, error) {
	given, err := list(ctx, r, parametersFields, parameters, arg)
	if err != nil {
		return nil, err
	}
	mapped, err := list(ctx, r, mappingFields, mappings, arg)
	if err != nil {
		return nil, err
	}
	for i := range all {
		addParameters(&all[i], given)
		addMappings(&all[i], mapped)
	}
	return slices.DeleteFunc(all, func(c doorward.Connection) bool { return c.InForce.Revision == 0 }), nil
}

func addParameters(c *doorward.Connection, given []parametersRow) {
	for _, p := range given {
		switch {
		case p.connectionID != c.ID:
		case p.pending:
			c.Pending = &p.ConnectionParameters
		default:
			c.InForce = p.ConnectionParameters
		}
	}
}

// addMappings adds the mappings in the order of their groups. One whose group was renamed gets the present name, unless
// another mapping has that.
func addMappings(c *doorward.Connection, mapped []mappingRow) {
	c.Mappings = []doorward.GroupMapping{}
	mapped = slices.DeleteFunc(slices.Clone(mapped), func(m mappingRow) bool { return m.connectionID != c.ID })
	for i := range mapped {
		m := &mapped[i]
		isTaken := slices.ContainsFunc(mapped, func(o mappingRow) bool { return o.Group == m.name })
		if m.name != "" && !isTaken && m.Group != m.externalID && !strings.EqualFold(m.Group, m.name) {
			m.Group, m.Given = m.name, m.Group
		}
		c.Mappings = append(c.Mappings, m.GroupMapping)
	}
	slices.SortFunc(c.Mappings, func(a, b doorward.GroupMapping) int { return strings.Compare(a.Group, b.Group) })
}

const sqlInsertConnection = `INSERT INTO connections (id, tenant_id, type, name, product, status, created_at, jit, jit_role, groups_from, factor_acr, trust_factor, ends, ends_keys, directory_outside, empty_by_remove, sign_requests, encrypt)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

// InsertConnection adds the connection with its parameters in force and its mappings.
func (tx *Tx) InsertConnection(ctx context.Context, c doorward.Connection) error {
	err := tx.run(ctx, sqlInsertConnection, c.ID, c.TenantID, c.Type, c.Name, c.Product, c.Status, micros(c.CreatedAt),
		c.JIT, string(c.JITRole), c.GroupsFrom, joined(c.FactorACR, plainText), c.TrustFactor, string(cmp.Or(c.Ends, doorward.EndsTenant)), c.EndsKeys,
		string(cmp.Or(c.Outside, doorward.OutsideInvite)), c.EmptyByRemove, c.SignRequests, c.Encrypt)
	if err != nil {
		return err
	}
	const inForce = false
	if err := tx.SetConnectionParameters(ctx, c.ID, inForce, c.InForce); err != nil {
		return err
	}
	return tx.setMappings(ctx, c)
}

// The provider's groups are another claim after a change: it hasn't been seen yet.
const sqlUpdateConnection = `UPDATE connections SET name = $2, jit = $3, jit_role = $4, groups_seen = groups_seen AND groups_from = $5, groups_from = $5,
  factor_acr = $6, trust_factor = $7, ends = $8, ends_keys = $9, directory_outside = $10, empty_by_remove = $11,
  sign_requests = $12, encrypt = $13 WHERE id = $1`

// UpdateConnection writes what is in force as soon as it is edited: name, JIT, roles, mappings, groups,
// factors, and what a revocation ends.
func (tx *Tx) UpdateConnection(ctx context.Context, c doorward.Connection) error {
	err := tx.run(ctx, sqlUpdateConnection, c.ID, c.Name, c.JIT, string(c.JITRole), c.GroupsFrom, joined(c.FactorACR, plainText), c.TrustFactor, string(c.Ends), c.EndsKeys,
		string(cmp.Or(c.Outside, doorward.OutsideInvite)), c.EmptyByRemove, c.SignRequests, c.Encrypt)
	if err != nil {
		return err
	}
	return tx.setMappings(ctx, c)
}

const (
	sqlDeleteMappings = `DELETE FROM connection_mappings WHERE connection_id = $1`
	sqlInsertMapping  = `INSERT INTO connection_mappings (connection_id, group_name, role, group_id) VALUES ($1, $2, $3, $4)`
)

// setMappings replaces the mappings.
func (tx *Tx) setMappings(ctx context.Context, c doorward.Connection) error {
	if err := tx.run(ctx, sqlDeleteMappings, c.ID); err != nil {
		return err
	}
	for _, m := range c.Mappings {
		if err := tx.run(ctx, sqlInsertMapping, c.ID, m.Written(), string(m.Role), m.GroupID); err != nil {
			return err
		}
	}
	return nil
}

const sqlSetConnectionStatus = `UPDATE connections SET status = $2 WHERE id = $1 AND status <> $2`

// SetConnectionStatus reports whether the connection had another status. DeleteIssuerSessions ends what a
// connection has opened.
func (tx *Tx) SetConnectionStatus(ctx context.Context, id string, status doorward.ConnectionStatus) (bool, error) {
	if status != doorward.ConnectionActive {
		if err := tx.noteHomeLost(ctx, id); err != nil {
			return false, err
		}
	}
	if err := tx.announceSCIMSecrets(ctx, id, ""); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlSetConnectionStatus, id, string(status))
}

const sqlDisableAllConnections = `UPDATE connections SET status = 'disabled' WHERE status = 'active' RETURNING id, tenant_id`

// ConnectionName names a connection to an operator.
type ConnectionName struct{ ID, TenantID string }

// DisableAllConnections disables the connections of all tenants after a restore: a provider, or a secret,
// that was taken away since the backup would be back. It returns those that were active, in the order of
// their ids. It ends no sessions.
func (tx *Tx) DisableAllConnections(ctx context.Context) ([]ConnectionName, error) {
	fields := func(c *ConnectionName) []any { return []any{&c.ID, &c.TenantID} }
	all, err := list(ctx, tx.Reader, fields, sqlDisableAllConnections)
	slices.SortFunc(all, func(a, b ConnectionName) int { return strings.Compare(a.ID, b.ID) })
	return all, err
}

const sqlDeleteConnection = `DELETE FROM connections WHERE id = $1`

// DeleteConnection deletes the connection with all that is its own: parameters, secrets, keys, tests,
// protocol and identities. It reports whether it existed.
func (tx *Tx) DeleteConnection(ctx context.Context, id string) (bool, error) {
	if err := tx.noteHomeLost(ctx, id); err != nil {
		return false, err
	}
	if err := tx.announceSCIMSecrets(ctx, id, ""); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlDeleteConnection, id)
}

const sqlSetParameters = `INSERT INTO connection_parameters (connection_id, pending, issuer, client_id, client_auth, email_from, revision, metadata_url, subject_from, removed_certificates)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (connection_id, pending) DO UPDATE SET discovery = CASE WHEN connection_parameters.issuer = excluded.issuer THEN connection_parameters.discovery ELSE '' END,
  discovered_at = CASE WHEN connection_parameters.issuer = excluded.issuer THEN connection_parameters.discovered_at ELSE 0 END,
  asked_at = CASE WHEN connection_parameters.issuer = excluded.issuer THEN connection_parameters.asked_at ELSE 0 END,
  failed_at = CASE WHEN connection_parameters.issuer = excluded.issuer THEN connection_parameters.failed_at ELSE 0 END,
  failing_since = CASE WHEN connection_parameters.issuer = excluded.issuer THEN connection_parameters.failing_since ELSE 0 END,
  failing_noticed = connection_parameters.issuer = excluded.issuer AND connection_parameters.failing_noticed,
  issuer = excluded.issuer, client_id = excluded.client_id, client_auth = excluded.client_auth, email_from = excluded.email_from,
  metadata_url = excluded.metadata_url, subject_from = excluded.subject_from, removed_certificates = excluded.removed_certificates,
  revision = excluded.revision, tested_at = NULL`

// SetConnectionParameters writes the parameters in force, or those that await a switch, under a new
// revision: no test of them has passed. What was read of another issuer is forgotten.
func (tx *Tx) SetConnectionParameters(ctx context.Context, id string, pending bool, p doorward.ConnectionParameters) error {
	return tx.run(ctx, sqlSetParameters, id, pending, p.Issuer, p.ClientID, string(p.ClientAuth), p.EmailFrom, newRevision(),
		p.MetadataURL, p.SubjectFrom, joined(p.RemovedCertificates, plainText))
}

const sqlDeletePendingParameters = `DELETE FROM connection_parameters WHERE connection_id = $1 AND pending`

// DeletePendingParameters drops what awaits a switch, and reports whether something did.
func (tx *Tx) DeletePendingParameters(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDeletePendingParameters, id)
}

const (
	sqlDropParameters = `DELETE FROM connection_parameters WHERE connection_id = $1 AND NOT pending
AND EXISTS (SELECT 1 FROM connection_parameters n WHERE n.connection_id = $1 AND n.pending)`
	sqlTakePending  = `UPDATE connection_parameters SET pending = FALSE WHERE connection_id = $1 AND pending`
	sqlMarkSwitched = `UPDATE connections SET switched_at = $2 WHERE id = $1`
)

// SwitchConnection puts in force what awaits it, and reports whether something did. With newClient, for
// another issuer or client, identities count from their first use from now on.
func (tx *Tx) SwitchConnection(ctx context.Context, id string, newClient bool) (bool, error) {
	dropped, err := tx.affected(ctx, sqlDropParameters, id)
	if err != nil || !dropped {
		return false, err
	}
	if err := tx.run(ctx, sqlTakePending, id); err != nil || !newClient {
		return true, err
	}
	return true, tx.MarkConnectionSwitched(ctx, id)
}

// MarkConnectionSwitched records that the issuer or the client in force is another one from now on:
// identities count from their next use.
func (tx *Tx) MarkConnectionSwitched(ctx context.Context, id string) error {
	return tx.run(ctx, sqlMarkSwitched, id, micros(tx.Now))
}

const (
	sqlMarkTested = `UPDATE connection_parameters SET tested_at = $4 WHERE connection_id = $1 AND pending = $2 AND revision = $3`
	sqlVoidTests  = `UPDATE connection_parameters SET tested_at = NULL, revision = $2 WHERE connection_id = $1 AND pending = $3 AND client_auth <> 'private_key_jwt'`
)

// MarkConnectionTested records that a test of the revision has passed, and reports whether the parameters
// still have it.
func (tx *Tx) MarkConnectionTested(ctx context.Context, id string, pending bool, revision int64) (bool, error) {
	return tx.affected(ctx, sqlMarkTested, id, pending, revision, micros(tx.Now))
}

// VoidTestsOfSecrets makes tests void that used the client's secrets, which have changed.
func (tx *Tx) VoidTestsOfSecrets(ctx context.Context, id string) error {
	for _, pending := range []bool{false, true} {
		if err := tx.run(ctx, sqlVoidTests, id, newRevision(), pending); err != nil {
			return err
		}
	}
	return nil
}

const sqlSignInByConnection = `UPDATE connections SET last_sign_in_at = $2, groups_seen = groups_seen OR $3 WHERE id = $1 AND status = 'active'`

// SignInByConnection records a sign-in, and reports whether the connection is active. It stays so until the
// transaction ends: disabling or deleting it waits, and then ends the session that this one opens.
// sawGroups says that the provider has sent the claim with the groups.
func (tx *Tx) SignInByConnection(ctx context.Context, id string, sawGroups bool) (bool, error) {
	return tx.affected(ctx, sqlSignInByConnection, id, micros(tx.Now), sawGroups)
}

const sqlClearClientNotice = `UPDATE connections SET client_noticed_at = 0 WHERE id = $1 AND client_noticed_at > 0`

// ClearClientNotice makes the next notice that the provider refuses the client due at once.
func (tx *Tx) ClearClientNotice(ctx context.Context, id string) error {
	return tx.run(ctx, sqlClearClientNotice, id)
}

const sqlNoticeClient = `UPDATE connections SET client_noticed_at = $2 WHERE id = $1 AND client_noticed_at <= $3`

// MarkClientNotice records that OWNERs are told that the provider refuses the client, and reports whether
// they weren't told within the time before.
func (tx *Tx) MarkClientNotice(ctx context.Context, id string, within time.Duration) (bool, error) {
	return tx.affected(ctx, sqlNoticeClient, id, micros(tx.Now), micros(tx.Now.Add(-within)))
}

// KeptDiscovery is what a provider said of itself when it was read last.
type KeptDiscovery struct {
	ConnectionID string
	Type         doorward.ConnectionType
	Pending      bool
	Issuer       string
	MetadataURL  string    // of a provider of SAML; empty: its metadata were given as a text
	Text         string    // JSON; empty: it was never read
	At, AskedAt  time.Time // read, and last asked for; zero: never
	// What the last reading said: FailedAt is when it failed, FailingSince when the first one since the last success did.
	// Zero: it has succeeded.
	FailedAt, FailingSince time.Time
	Unknown                UnknownReading
}

// UnknownReading is the last reading that a response by an unknown certificate has asked for.
type UnknownReading struct {
	At     time.Time // when it began; zero: never
	Signer string    // the fingerprint of the certificate that the response named; empty: none
	Count  int       // of the readings for this signer in a row
}

func discoveryFields(d *KeptDiscovery) []any {
	return []any{
		&d.ConnectionID, &d.Type, &d.Pending, &d.Issuer, &d.MetadataURL, &d.Text,
		optionalTime{&d.At},
		optionalTime{&d.AskedAt},
		optionalTime{&d.FailedAt},
		optionalTime{&d.FailingSince},
		optionalTime{&d.Unknown.At},
		&d.Unknown.Signer, &d.Unknown.Count,
	}
}

const (
	selectDiscovery = `SELECT p.connection_id, (SELECT t.type FROM connections t WHERE t.id = p.connection_id), p.pending, p.issuer, p.metadata_url, p.discovery, p.discovered_at, p.asked_at,
  p.failed_at, p.failing_since, p.unknown_at, p.unknown_signer, p.unknown_readings FROM connection_parameters p `
	sqlDiscovery = selectDiscovery + `WHERE p.connection_id = $1 AND p.pending = $2`
	// Not a join, for which PostgreSQL could read all connections.
	sqlDiscoveryDue = selectDiscovery + `WHERE p.issuer <> '' AND p.asked_at <= $1
AND (SELECT c.status FROM connections c WHERE c.id = p.connection_id AND (c.type <> 'saml' OR p.metadata_url <> '')) = 'active' ORDER BY p.asked_at LIMIT $2`

	sqlAskDiscovery  = `UPDATE connection_parameters SET asked_at = $4, retry_at = CASE WHEN retry_at > 0 THEN $5 ELSE retry_at END WHERE connection_id = $1 AND pending = $2 AND asked_at = $3`
	sqlKeepDiscovery = `UPDATE connection_parameters SET discovery = $4, discovered_at = $5, asked_at = $5, ` + readingSucceeded + ` WHERE connection_id = $1 AND pending = $2 AND issuer = $3`
)

// KeptDiscovery returns what is kept for the parameters in force, or those that await a switch; or ErrNone.
func (r Reader) KeptDiscovery(ctx context.Context, id string, pending bool) (KeptDiscovery, error) {
	return one(ctx, r, discoveryFields, sqlDiscovery, id, pending)
}

// DiscoveryDue returns what active connections keep of what can be read at an address, and nobody has asked for since an instant, at most
// limit.
func (r Reader) DiscoveryDue(ctx context.Context, since time.Time, limit int) ([]KeptDiscovery, error) {
	return list(ctx, r, discoveryFields, sqlDiscoveryDue, micros(since), limit)
}

// AskDiscovery reports whether nobody else has begun to read it since d was read: of all nodes one does.
func (tx *Tx) AskDiscovery(ctx context.Context, d KeptDiscovery) (bool, error) {
	return tx.affected(ctx, sqlAskDiscovery, d.ConnectionID, d.Pending, microsOrZero(d.AskedAt), micros(tx.Now), micros(tx.Now.Add(retryFirst)))
}

// KeepDiscovery keeps what the provider says of itself, and reports whether the issuer is still the one
// that was asked.
func (tx *Tx) KeepDiscovery(ctx context.Context, id string, pending bool, issuer, text string) (bool, error) {
	return tx.affected(ctx, sqlKeepDiscovery, id, pending, issuer, text, micros(tx.Now))
}

const sqlRoleMapped = `SELECT count(*) FROM connections c WHERE c.tenant_id = $1 AND (c.jit_role = $2
  OR EXISTS (SELECT 1 FROM connection_mappings m WHERE m.connection_id = c.id AND m.role = $2))`

// CountConnectionsGiving counts the connections of the tenant that give the role.
func (r Reader) CountConnectionsGiving(ctx context.Context, tenantID string, role doorward.Role) (int, error) {
	return one(ctx, r, countColumn, sqlRoleMapped, tenantID, string(role))
}

const (
	sqlDeleteIssuerSessions  = `DELETE FROM sessions WHERE tenant_id = $5 AND issuer = $6 RETURNING NOT ` + expired
	sqlEndIssuerChallenges   = `DELETE FROM challenges WHERE tenant_id = $1 AND issuer = $2`
	sqlEndIssuerChallengesOf = `DELETE FROM challenges WHERE user_id = $1 AND issuer = $2`
	sqlDeleteIdentitySession = `DELETE FROM sessions WHERE tenant_id = $5 AND issuer = $6 AND user_id = $7 RETURNING NOT ` + expired
)

// DeleteIssuerSessions ends all sessions in the tenant that the connection has vouched for, and its
// sign-ins that await a second factor. It returns how many sessions had not expired.
func (tx *Tx) DeleteIssuerSessions(ctx context.Context, life SessionLifetime, tenantID string, issuer doorward.Issuer) (int64, error) {
	tx.announce(ChangeTenant, tenantID)
	if err := tx.run(ctx, sqlEndIssuerChallenges, tenantID, issuer); err != nil {
		return 0, err
	}
	return tx.endSessions(ctx, life, sqlDeleteIssuerSessions, tenantID, issuer)
}

// DeleteIssuerSessionsOf is DeleteIssuerSessions for one person.
func (tx *Tx) DeleteIssuerSessionsOf(ctx context.Context, life SessionLifetime, tenantID string, issuer doorward.Issuer, userID string) (int64, error) {
	tx.announce(ChangeUser, userID)
	if err := tx.run(ctx, sqlEndIssuerChallengesOf, userID, issuer); err != nil {
		return 0, err
	}
	return tx.endSessions(ctx, life, sqlDeleteIdentitySession, tenantID, issuer, userID)
}

// IssuerSessions are a person's sessions of one connection.
type IssuerSessions struct {
	UserID, Email string
	Sessions      int64
}

const sqlIssuerSessions = `SELECT s.user_id, u.email, s.sessions FROM (
  SELECT user_id, count(*) AS sessions FROM sessions WHERE tenant_id = $5 AND issuer = $6 AND NOT ` + expired + ` GROUP BY user_id) s
JOIN users u ON u.id = s.user_id ORDER BY s.user_id`

// EachIssuerSessions calls fn with whose sessions DeleteIssuerSessions would end, and how many, until fn
// fails, and returns fn's error.
func (r Reader) EachIssuerSessions(ctx context.Context, life SessionLifetime, now time.Time, tenantID string, issuer doorward.Issuer, fn func(IssuerSessions) error) error {
	fields := func(s *IssuerSessions) []any { return []any{&s.UserID, &s.Email, &s.Sessions} }
	return each(ctx, r, fields, fn, sqlIssuerSessions, life.args(now, tenantID, issuer)...)
}

const sqlCountManaged = `SELECT count(DISTINCT i.user_id) FROM identities i JOIN users u ON u.id = i.user_id
WHERE i.connection_id = $1 AND u.managed_by = i.tenant_id AND NOT EXISTS (
  SELECT 1 FROM identities o JOIN connections c ON c.id = o.connection_id
  WHERE o.user_id = i.user_id AND o.tenant_id = i.tenant_id AND o.connection_id <> $1 AND c.status = 'active')`

// CountManagedBy counts the managed accounts that sign in by the connection and by no other active one of
// its tenant.
func (r Reader) CountManagedBy(ctx context.Context, connectionID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountManaged, connectionID)
}
