package user_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// impersonalTables are tables that hold nothing about people who sign in. Every other table must
// have rows about the person before an erasure, or the search after it proves nothing.
var impersonalTables = []string{
	"api_key_secrets", "audit_chains", "backups", "change_position", "domains", "erasures", "feed", "feed_chains", "feed_state", "feed_trims", "goose_db_version", "logos", "maintenance", "master_keys", "models", "nodes",
	"oldest_binary", "operator_keys", "policy_observations", "queue_pauses", "roles", "service_keys", "shared_clock", "shared_secrets", "turns", "factor_totals", "signing_keys", "sqlite_sequence", "sso_policies", "tenants",
	"webhook_deliveries", "webhooks", // ids of events, and what an endpoint has answered in its own words
	"connections", "connection_parameters", "connection_mappings", "connection_secrets", "connection_keys", "connection_saml_keys", "scim_secrets", "directory_groups", "directory_runs", "directory_refusals", "used_states", "saml_assertions", "ended_sign_ins", "sso_policies",
	"connection_tests",         // for a day, what a provider has said of who tests
	"removed_members",          // hashes
	"former_provider_sessions", // hashes, which go with the session
	"factor_demands",           // for seconds, the id of the member who was notified last
}

// searchTerms are what an erasure has to remove: texts anywhere, ids outside of the tables that
// keep them.
type searchTerms struct {
	texts, ids []string
}

// keepIDs are tables in which the id of an erased account stays: as the one who did something,
// or in changes that nodes still have to apply to their memory.
var keepIDs = []string{"events", "erasures", "changes", "api_keys", "inbox", "policies"}

// describe leaves who the person is at a provider, and what a directory says of them.
func describe(ctx context.Context, tx *store.Tx, c doorward.Connection, p apptest.Person, address string) error {
	if _, err := tx.InsertIdentity(ctx, doorward.Identity{ID: "idn_1", ConnectionID: c.ID, TenantID: c.TenantID, UserID: p.User.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now}); err != nil {
		return err
	}
	said := doorward.DirectoryUser{ID: "usr_said", ConnectionID: c.ID, TenantID: c.TenantID, UserID: p.User.ID, UserName: address, Address: address, Attributes: `{"displayName": "Vera Vanish"}`, CreatedAt: tx.Now}
	if err := tx.InsertDirectoryUser(ctx, said); err != nil {
		return err
	}
	if err := tx.InsertDirectoryRun(ctx, doorward.DirectoryRun{ID: "run_1", ConnectionID: c.ID, TenantID: c.TenantID}); err != nil {
		return err
	}
	made := doorward.DirectoryEffect{ID: "1", RunID: "run_1", ConnectionID: c.ID, TenantID: c.TenantID, Kind: doorward.DirectoryMade, SubjectID: said.ID, UserID: p.User.ID, After: said.Attributes}
	if err := tx.InsertDirectoryEffect(ctx, made); err != nil {
		return err
	}
	group := doorward.DirectoryEffect{ID: "2", RunID: "run_1", ConnectionID: c.ID, TenantID: c.TenantID, Kind: doorward.DirectoryChanged, SubjectID: "grp_1"}
	if err := tx.InsertDirectoryEffect(ctx, group); err != nil {
		return err
	}
	return tx.InsertDirectoryMoves(ctx, group, true, []string{said.ID, p.User.ID})
}

// populate leaves rows in every table about one person: the only OWNER of one tenant, a member
// of a second and formerly of a third, who has changed the address.
func populate(f *apptest.Fixture) (apptest.Person, searchTerms) {
	f.Helper()
	ctx := f.Context()
	_, former := f.Tenant()
	_, owner := f.Tenant()
	_, p := f.Tenant() // the event of its creation has the first address
	first, second, third := p.User.Email, f.NewEmail("vanish.now"), f.NewEmail("vanish.soon")
	p.Caller.IP, p.Caller.UserAgent = "192.0.2.99", "the browser of vera"
	terms := searchTerms{texts: []string{first, second, third, "Vera Vanish", "192.0.2.99", "the browser of vera"}}
	f.NoError(f.Node(0).Users.SetOwnName(ctx, p.Caller, "Vera Vanish"))
	join := func(by apptest.Person) {
		_, token := f.Invite(by, first, doorward.RoleUser)
		_, err := f.Node(0).Invitations.Accept(ctx, p.Caller, token, "")
		f.NoError(err)
	}
	join(former)
	_, err := f.Node(0).Users.Leave(ctx, p.Caller, former.User.TenantID)
	f.NoError(err)
	join(owner)
	f.NoError(f.Node(0).Users.SetRole(ctx, owner.Caller, doorward.User{ID: p.User.ID, TenantID: owner.User.TenantID}, doorward.RoleViewer))
	elsewhere, err := apptest.SignedIn(f.Node(0).Login.WithPassword(ctx, apptest.Anonymous(0), first, apptest.FirstPassword, owner.User.TenantID))
	f.NoError(err)
	viewer := p.Caller
	viewer.Principal = doorward.PrincipalOf(elsewhere.User, elsewhere.Session)
	if f.Node(0).Access.Require(ctx, viewer, doorward.TenantClose, doorward.Object{TenantID: viewer.TenantID}) == nil {
		f.Fatal("a VIEWER may close the tenant")
	}
	_, err = f.Node(0).Policies.Put(ctx, p.Caller, policy.Draft{Text: "// nothing\n"}, nil)
	f.NoError(err)
	_, _, err = f.Node(0).APIKeys.Create(ctx, p.Caller, apikey.Draft{Name: "CI", Permissions: []string{"user.read"}})
	f.NoError(err)

	_, err = f.DB.Write(ctx, func(tx *store.Tx) error { // the address leaves a domain of the tenant
		d := doorward.Domain{ID: "dom_1", TenantID: p.User.TenantID, Name: mailaddr.Domain(first), Token: "1", Status: doorward.DomainPending, CreatedAt: tx.Now}
		_, err := tx.InsertDomain(ctx, d)
		return errors.Join(err, tx.VerifyDomain(ctx, d.ID, tx.Now.Add(time.Hour)))
	})
	f.NoError(err)
	f.NoError(f.Node(0).Accounts.ChangeEmail(ctx, p.Caller, second, false))
	confirm := f.MailToken(second)
	f.MailToken(first)
	_, err = f.Node(0).Accounts.ConfirmEmail(ctx, p.Caller, confirm)
	f.NoError(err)
	f.Subjects(first)
	p.User.Email = second
	for _, role := range []doorward.Role{doorward.RoleUser, doorward.RoleViewer, doorward.RoleUser, doorward.RoleViewer} { // the fourth notice is held back
		f.NoError(f.Node(0).Users.SetRole(ctx, owner.Caller, doorward.User{ID: p.User.ID, TenantID: owner.User.TenantID}, role))
	}
	f.Subjects(second)
	f.Enrol(&p)
	f.Challenge(p.Caller, p)
	for _, email := range []string{first, second} {
		if f.TryLogin(email, "not the password") == "" {
			f.Fatal("a wrong password was right")
		}
		f.NoError(f.Node(0).Passwords.Forgot(ctx, apptest.Anonymous(0), email, ""))
	}
	f.MailToken(second)
	f.NoError(f.Node(0).Passwords.Forgot(ctx, apptest.Anonymous(0), second, ""))
	f.NoError(f.Node(0).Accounts.ChangeEmail(ctx, p.Caller, third, false)) // and doesn't confirm it
	f.NoError(f.Node(0).Access.Decisions().Flush(ctx))
	f.Exec(`INSERT INTO forgotten_passwords (user_id) VALUES ('` + p.User.ID + `')`)
	_, err = f.DB.Write(ctx, func(tx *store.Tx) error {
		if err := tx.InsertAttempt(ctx, store.Attempt{ID: "1", OwnBucket: "account:" + second, WiderBucket: "ip:192.0.2.99"}, tx.Now.Add(time.Hour)); err != nil {
			return err
		}
		c := doorward.Connection{ID: "con_1", TenantID: p.User.TenantID, CreatedAt: tx.Now}
		if err := tx.InsertConnection(ctx, c); err != nil {
			return err
		}
		if err := leaveAttempts(ctx, tx, c.ID, p.User.ID, first, second); err != nil {
			return err
		}
		if err := errors.Join(describe(ctx, tx, c, p, second), leaveInGroup(ctx, tx, c, p.User.ID)); err != nil {
			return err
		}
		link := doorward.SetupLink{ID: "stl_1", TenantID: c.TenantID, ConnectionID: c.ID, MakerID: p.User.ID, CreatedAt: tx.Now, EndsAt: tx.Now.Add(time.Hour)}
		if err := tx.InsertSetupLink(ctx, link, []byte("a link")); err != nil {
			return err
		}
		if _, err := tx.GiveFactorWord(ctx, p.User.TenantID, p.User.ID); err != nil {
			return err
		}
		if err := tx.InsertFactorCode(ctx, []byte("a code"), p.User.ID, tx.Now.Add(time.Hour)); err != nil {
			return err
		}
		_, err := tx.MarkCall(ctx, doorward.IdempotentCall{ID: []byte("a call"), UserID: p.User.ID, Body: []byte(p.User.ID)})
		return err
	})
	f.NoError(err)
	for _, table := range []string{"resets", "email_changes", "factors"} {
		terms.ids = append(terms.ids, ids(f, table)...)
	}
	for _, text := range []string{first, second, "Vera Vanish"} {
		terms.texts = append(terms.texts, fold.Key(text)) // by which lists are sorted
	}
	terms.ids = append(terms.ids, p.User.ID)
	return p, terms
}

// leaveInGroup leaves the person's place in a group of a directory, and that the role of it is due.
func leaveInGroup(ctx context.Context, tx *store.Tx, c doorward.Connection, userID string) error {
	if err := tx.InsertDirectoryGroup(ctx, doorward.DirectoryGroup{ID: "grp_1", ConnectionID: c.ID, TenantID: c.TenantID, DisplayName: "Sales", CreatedAt: tx.Now, ChangedAt: tx.Now}); err != nil {
		return err
	}
	_, err := tx.AddPlaces(ctx, "grp_1", []string{userID})
	return errors.Join(err, tx.AddDueRoles(ctx, c, true, []string{userID}))
}

// ids returns the ids of all rows of a table.
func ids(f *apptest.Fixture, table string) (all []string) {
	f.Helper()
	rows, err := f.SQL().QueryContext(f.Context(), `SELECT id FROM `+table)
	f.NoError(err)
	defer rows.Close()
	for rows.Next() {
		var id string
		f.NoError(rows.Scan(&id))
		all = append(all, id)
	}
	f.NoError(rows.Err())
	return all
}

// leaveAttempts leaves entries of a protocol about the account, and about the addresses, of a subject that no account has.
func leaveAttempts(ctx context.Context, tx *store.Tx, conID, userID string, addresses ...string) error {
	err := tx.InsertAttemptEntry(ctx, doorward.Attempt{ID: "1", ConnectionID: conID, At: tx.Now, Subject: "Vera Vanish", UserID: userID})
	for _, address := range addresses {
		a := doorward.Attempt{ID: "of " + address, ConnectionID: conID, At: tx.Now, Subject: "unknown", Seen: address, Address: address}
		err = errors.Join(err, tx.InsertAttemptEntry(ctx, a))
	}
	return err
}

func tableOf(row string) string {
	table, _, _ := strings.Cut(row, ": ")
	return table
}

// wantTraces fails unless every table that is about people has rows about the person.
func wantTraces(f *apptest.Fixture, terms searchTerms) {
	f.Helper()
	all := f.AllRows()
	found := map[string]bool{}
	for _, row := range apptest.RowsWith(all, slices.Concat(terms.texts, terms.ids)...) {
		found[tableOf(row)] = true
	}
	for _, table := range f.Tables() {
		if !found[table] && !slices.Contains(impersonalTables, table) {
			f.Errorf("before the erasure, the table %s has nothing about the person: leave a row there, or list it among those that are not about people", table)
		}
	}
}

// exported has, for each table with rows about people, the member of the export that shows
// them.
var exported = map[string]string{
	"users": "account", "memberships": "memberships", "former_domains": "memberships", "sessions": "sessions", "devices": "browsers", "factors": "factors", "identities": "identities", "setup_links": "setupLinks", "directory_users": "directories", "directory_places": "groups", "recovery_codes": "recoveryCodes",
	"challenges": "challenges", "email_changes": "emailChanges", "resets": "resets", "factor_words": "factorResets", "factor_codes": "factorCodes", "api_keys": "apiKeys", "invitations": "invitations", "mails": "mails", "held_notices": "mails",
	"decisions": "decisions", "events": "auditEvents",
}

// notExported says why a table with rows about people is not in the export.
var notExported = map[string]string{
	"attempts": "passwords that are being tried", "throttles": "counters of attempts", "changes": "ids of what changed in the last minutes",
	"idempotency": "answers that only their request opens", "inbox": "events that are recorded within a minute", "link_tokens": "hashes",
	"forgotten_passwords": "for seconds, ids of people who get a mail",
	"directory_moves":     "who has joined or left groups, as directory_effects",
	"directory_effects":   "what directories of tenants have changed, for 30 days, so that it can be taken back",
	"due_roles":           "whose role is about to follow a group",
	"connection_attempts": "what administrators of a tenant see of attempts at its provider, for 30 days",
	"policies":            "texts of tenants, with the id of who wrote them",
}

// wantExported fails unless the export has rows of every table that is about people.
func wantExported(f *apptest.Fixture, p apptest.Person) {
	f.Helper()
	var export bytes.Buffer
	f.NoError(f.Node(0).Accounts.Export(f.Context(), p.Caller, func() {}, &export))
	var document map[string]any
	f.NoError(json.Unmarshal(export.Bytes(), &document))
	for _, table := range f.Tables() {
		member, reason := exported[table], notExported[table]
		if slices.Contains(impersonalTables, table) {
			continue
		}
		if (member == "") == (reason == "") {
			f.Errorf("list the table %s in exported, or in notExported with the reason", table)
		}
		rows, isList := document[member].([]any)
		if member != "" && (document[member] == nil || document[member] == 0.0 || isList && len(rows) == 0) { // recoveryCodes is a number
			f.Errorf("the export has no %s of the table %s: %v", member, table, document[member])
		}
	}
	for _, secret := range []string{"$argon2", p.Token.Reveal()} {
		if strings.Contains(export.String(), secret) {
			f.Errorf("the export has %q", secret)
		}
	}
	if !strings.Contains(export.String(), `"kind":"digest","state":"queued"`) || !strings.Contains(export.String(), `"notices":[{"kind":"role_changed","count":1}]`) {
		f.Error("the export has no notice that is held back")
	}
	if mails := strings.Count(export.String(), `"kind":"email_confirm"`); mails != 2 {
		f.Errorf("the export has %d mails to new addresses, want 2", mails)
	}
	if invitations, _ := document["invitations"].([]any); len(invitations) != 3 { // to the former address
		f.Errorf("the export has %d invitations, want the 3 that were accepted", len(invitations))
	}
}

// wantNoTraces fails if a row of any table has a text about the person, or an id outside of
// the tables that keep them.
func wantNoTraces(f *apptest.Fixture, terms searchTerms) {
	f.Helper()
	all := slices.DeleteFunc(f.AllRows(), func(row string) bool { // counters of networks, which many people share
		return strings.HasPrefix(row, "throttles: ip:") || strings.HasPrefix(row, "throttles: forgotten:")
	})
	if found := apptest.RowsWith(all, terms.texts...); len(found) > 0 {
		f.Errorf("rows with what is personal are left:\n%s", strings.Join(found, "\n"))
	}
	for _, row := range apptest.RowsWith(all, terms.ids...) {
		if !slices.Contains(keepIDs, tableOf(row)) {
			f.Errorf("a row is left: %s", row)
		}
	}
}

// wantIntact fails if a chain has faults.
func wantIntact(f *apptest.Fixture) {
	f.Helper()
	n, err := f.Node(1).Audit.VerifyAll(f.Context())
	f.NoError(err)
	if n != 0 {
		f.Errorf("the trails have %d faults", n)
	}
}

// TestErase: after an erasure no table has anything about the person but ids, no node accepts
// the session, and the trails verify.
func TestErase(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.HighLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		p, terms := populate(f)
		wantTraces(f, terms)
		wantExported(f, p)
		wantIntact(f)
		if !f.IsValid(p.Token) { // loads it into the memory of every node
			f.Fatal("the session is not valid before the erasure")
		}

		_, err := f.Node(0).Users.EraseAddress(f.Context(), apptest.Operator, p.User.Email)
		if apptest.Code(err) != doorward.CodeLastOwner || !strings.Contains(err.Error(), p.User.TenantID) {
			f.Errorf("the last OWNER was erased: %v", err)
		}
		wantTraces(f, terms)
		heir := f.Join(p, doorward.RoleOwner)
		done, err := f.Node(0).Users.EraseAddress(f.Context(), apptest.Operator, strings.ToUpper(p.User.Email))
		f.NoError(err)
		if len(done.Tenants) != 2 || done.APIKeys != 1 || done.Sessions == 0 {
			f.Errorf("the erasure has ended %+v", done)
		}
		if f.IsValid(p.Token) {
			f.Error("the session is still valid")
		}
		wantNoTraces(f, terms)
		wantIntact(f)
		if !f.IsValid(heir.Token) {
			f.Error("the session of another member has ended")
		}
		if _, err := f.Node(0).Users.EraseAddress(f.Context(), apptest.Operator, p.User.Email); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("erased again: %v", err)
		}
		clock.Move(2 * time.Hour)
		f.NoError(f.Node(1).Users.Sweep(f.Context()))
		if n := f.CountRows("erasures"); n != 0 {
			f.Errorf("%d erasures are left to be swept", n)
		}
		f.Exec(`UPDATE events SET actor_email = '', ip = '', changes = '', salt = NULL WHERE actor_id = $1 AND tenant_id <> ''`, heir.User.ID)
		if n, err := f.Node(0).Audit.VerifyAll(f.Context()); err != nil || n == 0 {
			f.Errorf("blanks of somebody who is not erased are not found: %v", err)
		}
	})
}

// TestSweepPassesFailingErasures: a sweep that can't finish one erasure finishes the others, and its error
// names the account.
func TestSweepPassesFailingErasures(t *testing.T) {
	t.Parallel()
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	_, owner := f.Tenant()
	for range 3 {
		p := f.Join(owner, doorward.RoleUser)
		_, err := f.Node(0).Users.EraseAddress(f.Context(), apptest.Operator, p.User.Email)
		f.NoError(err)
	}
	clock.Move(2 * time.Hour)
	var failing string
	f.NoError(f.SQL().QueryRow(`SELECT user_id FROM erasures ORDER BY at, user_id LIMIT 1`).Scan(&failing))
	f.Exec(fmt.Sprintf(`CREATE TRIGGER fail BEFORE DELETE ON erasures WHEN old.user_id = '%s' BEGIN SELECT RAISE(ABORT, 'this row is broken'); END`, failing))
	if err := f.Node(0).Users.Sweep(f.Context()); err == nil || !strings.Contains(err.Error(), failing) {
		t.Errorf("the sweep ends with %v, want the error of %s", err, failing)
	}
	if n := f.CountRows("erasures"); n != 1 {
		t.Errorf("%d erasures are left, want the failing one", n)
	}
}
