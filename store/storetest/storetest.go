// Package storetest is the contract of package store as tests, to be run on
// every database that the store can keep its rows in:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t testing.TB, now doorward.Clock) *store.DB { … })
//	}
//
// A database that passes keeps values to the microsecond and the byte, lets
// conditional statements succeed exactly as often as they may, even with many
// concurrent callers, and reports its own faults as unavailable.
//
// Each case has its own database. What differs between databases (files, pools,
// collations, plans) is tested beside the store, not here.
package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Run runs the contract, each case on a database of its own that open returns: it has only its
// schema, lives until its test ends and takes every instant from now.
func Run(t *testing.T, open func(t testing.TB, now doorward.Clock) *store.DB) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := &clock{now: noon}
			c.test(&fixture{TB: t, DB: open(t, clock.read), clock: clock})
		})
	}
}

var cases = []struct {
	name string
	test func(*fixture)
}{
	{"tenants", tenants},
	{"settings of tenants", settingsOfTenants},
	{"statuses of tenants", statusesOfTenants},
	{"brands of tenants", brands},
	{"pages of lists", pagesOfLists},
	{"filters of lists", filtersOfLists},
	{"filters of tenants", filtersOfTenants},
	{"turns of sweeps", turnsOfSweeps},
	{"addresses of clients", addressesOfClients},
	{"trails of tenants that keep less", shortTrails},
	{"words of lists", wordsOfLists},
	{"orders of lists", ordersOfLists},
	{"totals of lists", totalsOfLists},
	{"accounts", accounts},
	{"memberships", memberships},
	{"changes of members", changesOfMembers},
	{"invitations", invitations},
	{"one pending invitation", onePendingInvitation},
	{"the end of invitations", endOfInvitations},
	{"invitations sent again", invitationsSentAgain},
	{"states of invitations", statesOfInvitations},
	{"resets", resets},
	{"changes of addresses", emailChanges},
	{"what is held about a person", personalData},
	{"stranded resets", strandedResets},
	{"sessions", sessions},
	{"incidents", incidents},
	{"proved sessions", provedSessions},
	{"the latest events of a person", latestEvents},
	{"forgotten proofs", forgottenProofs},
	{"unproved sessions", unprovedSessions},
	{"factors", factors},
	{"the end of factors", endOfFactors},
	{"challenges", challenges},
	{"factorWords", factorWords},
	{"factorDemands", factorDemands},
	{"the end of sessions", endOfSessions},
	{"the end of all sessions of a tenant", endOfTenantsSessions},
	{"the limits of sessions", limitsOfSessions},
	{"sessions under a tenant's settings", settingsOfSessions},
	{"uses of sessions", usesOfSessions},
	{"sessions that are over", expiredSessions},
	{"managed accounts", managedAccounts},
	{"connections that sign people in", signingConnections},
	{"sessions by connections", sessionsByConnection},
	{"sessions that a provider bounds", sessionsUntil},
	{"set-up links", setupLinks},
	{"secrets of directories", scimSecrets},
	{"people of directories", directoryUsers},
	{"runs of directories", directoryRuns},
	{"parts of transactions", nested},
	{"places in groups", placesHeld},
	{"undos of runs", undos},
	{"people who were removed", removedMembers},
	{"roles given by hand", rolesByHand},
	{"changes", changes},
	{"the order of changes", orderOfChanges},
	{"operator keys", operatorKeys},
	{"service keys", serviceKeys},
	{"invitations of services", invitationsOfServices},
	{"shared secrets", sharedSecrets},
	{"master keys", masterKeys},
	{"signing keys", signingKeys},
	{"values sealed again", sealedAgain},
	{"values of a lost master key", lostValues},
	{"rules of tenants", rules},
	{"roles in use", usedRoles},
	{"models", models},
	{"policies", policies},
	{"policies that observe", observedPolicies},
	{"kept decisions", keptDecisions},
	{"policies in force", policiesInForce},
	{"API keys", apiKeys},
	{"webhooks", webhooks},
	{"deliveries to webhooks", deliveries},
	{"connections", connections},
	{"parameters of connections", parametersOfConnections},
	{"discoveries", discoveries},
	{"secrets of connections", secretsOfConnections},
	{"keys of connections", keysOfConnections},
	{"metadata of SAML", metadataOfConnections},
	{"readings of metadata", readingsOfMetadata},
	{"keys of SAML", samlKeys},
	{"one key of SAML", oneSAMLKey},
	{"tests of connections", testsOfConnections},
	{"one use of a state", usedState},
	{"assertions of SAML", samlAssertions},
	{"one use of an assertion", usedAssertion},
	{"attempts at connections", attemptsAtConnections},
	{"sessions ended by a provider", endedByProvider},
	{"identities", identities},
	{"groups of directories", directoryGroups},
	{"due roles", dueRoles},
	{"places in groups of directories", directoryPlaces},
	{"places of members in groups of directories", placesOfMembers},
	{"mappings of groups of directories", mappedGroups},
	{"orders of connections", ordersOfConnections},
	{"sessions of connections", sessionsOfConnections},
	{"demands for sign-on", ssoPolicies},
	{"whom a demand for sign-on covers", ssoMembers},
	{"who has left a domain of the tenant", formerDomains},
	{"ways back", waysBack},
	{"sessions that a demand for sign-on ends", shutOutSessions},
	{"effects on sign-on", effectsOnSignOn},
	{"domains", domains},
	{"orders of domains", ordersOfDomains},
	{"the daily look at domains", looksAtDomains},
	{"the holder of a domain", holderOfADomain},
	{"domains after a clock that was ahead", futureDomains},
	{"sign-on after a clock that was ahead", futureSignOn},
	{"changes of API keys", changesOfAPIKeys},
	{"rotations of API keys", rotations},
	{"the end of API keys", endOfAPIKeys},
	{"owners of API keys", ownersOfAPIKeys},
	{"notices of API keys", noticesOfAPIKeys},
	{"uses of API keys", usesOfAPIKeys},
	{"devices", devices},
	{"the limit of devices", deviceLimit},
	{"generations of credentials", generations},
	{"trust after a restore", trustAfterARestore},
	{"orphaned accounts", orphanedAccounts},
	{"attempts in flight", attemptsInFlight},
	{"who has signed in", whoHasSignedIn},
	{"the strictest demand of a proof", strictestProofAge},
	{"throttles", throttles},
	{"the sweep of throttles", sweepOfThrottles},
	{"mails", mails},
	{"tries of a mail", triesOfAMail},
	{"blanked mails", blankedMails},
	{"notices that are held back", heldNotices},
	{"the end of notices that are held back", heldNoticesEnd},
	{"events", events},
	{"counts of a tenant", countsOfATenant},
	{"invitations by delivery", invitationsByDelivery},
	{"counts of events", countsOfEvents},
	{"days of somebody", daysOfSomebody},
	{"usage", usage},
	{"usage of a trail", usageOfTrail},
	{"a restored database", restored},
	{"a change that invalidates all", invalidateAll},
	{"actions done since an instant", doneSince},
	{"vitals", vitals},
	{"maintenance", maintenance},
	{"mails that a filter selects", selectedMails},
	{"deliveries that a filter selects", selectedDeliveries},
	{"a paused mail queue", pausedQueues},
	{"paused deliveries", pausedDeliveries},
	{"quotas", quotas},
	{"events per day", eventsPerDay},
	{"the inbox", inbox},
	{"the inbox round-robin", inboxRoundRobin},
	{"what is set aside in the inbox", inboxAside},
	{"the inbox of unknown addresses", inboxOfUnknownAddresses},
	{"races in the inbox", inboxRaces},
	{"calls with an idempotency key", idempotentCalls},
	{"the end of idempotent calls", endOfIdempotentCalls},
	{"races of idempotent calls", idempotentRaces},
	{"lists of any length", longLists},
	{"redundant invitations", redundantInvitations},

	{"closings", closings},
	{"the end of tenants and people", endsOfTenantsAndPeople},
	{"invitations of the erased", erasedInvitations},
	{"forgotten addresses", forgottenAddresses},
	{"erased addresses", erasedAddresses},
	{"former addresses", formerAddresses},
	{"erasures", erasures},
	{"made webhooks", madeWebhooks},
	{"what people leave", leftByPeople},
	{"trails of blanked invitations", blankedTrailsOfInvitations},
	{"pages of events", pagesOfEvents},
	{"events of the operator", eventsOfOperator},
	{"chains of events", chainsOfEvents},
	{"the feed", feeds},
	{"trails that are trimmed", trims},
	{"names of ids", namesOfIDs},
	{"blanked events", blankedEvents},
	{"the end of a chain", endOfChain},

	{"letter case", letterCase},
	{"order", order},
	{"unicode", unicodeText},
	{"untrusted text", untrustedText},
	{"empty is not absent", emptyIsNotAbsent},
	{"times", times},
	{"the clock", theClock},
	{"what a clock that was ahead has left", future},

	{"one instant in a transaction", oneInstant},
	{"all or nothing", allOrNothing},
	{"tried writes", triedWrites},
	{"one state in a snapshot", snapshots},
	{"many statements", manyStatements},
	{"a conflict spoils nothing", conflictSpoilsNothing},
	{"mail wakes after the commit", mailWakes},
	{"crossing locks", crossingLocks},
	{"a closed database", closedDatabase},
	{"a cancelled request", cancelledRequest},

	{"many hits at once", manyHits},
	{"one master key", oneMasterKey},
	{"many claims at once", manyClaims},
	{"many held notices at once", manyHeldNotices},
	{"many acceptances at once", manyAcceptances},
	{"many registrations at once", manyRegistrations},
	{"many invitations at once", manyInvitations},
	{"many resets at once", manyResets},
	{"one address for many accounts", oneAddress},
	{"many changes of a password at once", manyPasswords},
	{"many sessions at once", manySessions},
	{"owners demoting each other", demotions},
	{"many events at once", manyEvents},
	{"many proofs of a domain at once", manyProofsOfADomain},
}

// noon is the time of the tests, with a fraction that shows whether microseconds
// survive.
var noon = time.Date(2031, 5, 6, 12, 0, 0, 123456000, time.UTC)

// clock is stopped until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// fixture is the database of one case.
type fixture struct {
	testing.TB
	*store.DB
	clock *clock
	made  int // ids, see id
}

// try runs fn in a transaction.
func (f *fixture) try(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := f.Write(ctx, fn)
	return err
}

// write runs fn in a transaction that must commit.
func (f *fixture) write(fn func(tx *store.Tx)) {
	f.Helper()
	noError(f, f.try(f.Context(), func(tx *store.Tx) error { fn(tx); return nil }))
}

// id returns a unique id.
func (f *fixture) id(prefix string) string {
	f.made++
	return fmt.Sprintf("%s%04d", prefix, f.made)
}

// tenant adds an active tenant.
func (f *fixture) tenant(name string) doorward.Tenant {
	f.Helper()
	t := doorward.Tenant{ID: f.id("tnt_"), Name: name, Status: doorward.TenantActive, CreatedAt: f.clock.read()}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertTenant(f.Context(), t)) })
	return t
}

// account adds an account with its own password.
func (f *fixture) account(email string) doorward.Account {
	f.Helper()
	id := f.id("usr_")
	a := doorward.Account{ID: id, Email: email, PasswordHash: "hash of " + id, CreatedAt: f.clock.read(), Locale: "de-CH"}
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertAccount(f.Context(), a)) })
	return a
}

// join makes the account an active member.
func (f *fixture) join(t doorward.Tenant, a doorward.Account, role doorward.Role) doorward.User {
	f.Helper()
	u := doorward.User{
		ID: a.ID, Email: a.Email, Name: "name of " + a.ID, Role: role, Status: doorward.UserActive,
		TenantID: t.ID, TenantName: t.Name, TenantStatus: t.Status, CreatedAt: f.clock.read(),
		HasPassword: a.PasswordHash != "", ManagedBy: a.ManagedBy,
	}
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertMembership(f.Context(), u)) })
	return u
}

// member adds an account and makes it a member.
func (f *fixture) member(t doorward.Tenant, email string, role doorward.Role) doorward.User {
	f.Helper()
	return f.join(t, f.account(email), role)
}

// invitation adds a pending invitation for a day, by the operator.
func (f *fixture) invitation(t doorward.Tenant, email string) doorward.Invitation {
	f.Helper()
	i := f.draft(t, email)
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertInvitation(f.Context(), i)) })
	return i
}

// draft returns an invitation that isn't stored yet.
func (f *fixture) draft(t doorward.Tenant, email string) doorward.Invitation {
	return doorward.Invitation{
		ID: f.id("inv_"), TenantID: t.ID, Email: email, Role: doorward.RoleUser, Name: "Nan", Locale: "de-CH",
		State: doorward.InvitationPending, CreatedAt: f.clock.read(), ExpiresAt: f.clock.read().Add(24 * time.Hour),
		Delivery: doorward.DeliveryQueued,
	}
}

// session opens a session of the user.
func (f *fixture) session(u doorward.User) doorward.Session {
	f.Helper()
	s := doorward.Session{
		ID: f.id("ses_"), UserID: u.ID, TenantID: u.TenantID, CreatedAt: f.clock.read(), LastSeenAt: f.clock.read(),
		IP: "192.0.2.7", UserAgent: "curl", NewBrowser: true, Role: u.Role, JoinedAt: u.CreatedAt,
		Assurance: doorward.Assurance{AAL: 1, AMR: []string{doorward.MethodPassword}, ProvedAt: f.clock.read()},
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertSession(f.Context(), s, hashOf(s))) })
	return s
}

// hashOf is the hash of the session's token.
func hashOf(s doorward.Session) []byte {
	hash := sha256.Sum256([]byte(s.ID))
	return hash[:]
}

// live returns the ids of the sessions that exist.
func (f *fixture) live(all ...doorward.Session) (ids []string) {
	f.Helper()
	for _, s := range all {
		_, err := f.Read().Session(f.Context(), s.ID)
		if err == nil {
			ids = append(ids, s.ID)
		} else if !errors.Is(err, store.ErrNone) {
			f.Fatal(err)
		}
	}
	return ids
}

// noError ends the test on an error.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal fails unless two values are equal.
func equal(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("got another value than expected (-want +got):\n%s", diff)
	}
}

// value returns the result of a query; an error ends the test.
func (f *fixture) value(got any, err error) any {
	f.Helper()
	noError(f, err)
	return got
}

// wantChange fails unless a conditional statement succeeds.
func (f *fixture) wantChange(changed bool, err error) {
	f.Helper()
	noError(f, err)
	if !changed {
		f.Error("no row was changed, want one")
	}
}

// wantNoChange fails if a conditional statement changes a row.
func (f *fixture) wantNoChange(changed bool, err error) {
	f.Helper()
	noError(f, err)
	if changed {
		f.Error("a row was changed, want none")
	}
}

// wantNone fails if a query finds something.
func (f *fixture) wantNone(got any, err error) {
	f.Helper()
	if !errors.Is(err, store.ErrNone) {
		f.Errorf("got %+v, %v: want store.ErrNone", got, err)
	}
}

// wantUnavailable fails unless the error is that of a fault in the database.
func wantUnavailable(t testing.TB, err error) {
	t.Helper()
	wantFault(t, "it", err)
}

// wantFault is wantUnavailable for a named function.
func wantFault(t testing.TB, function string, err error) {
	t.Helper()
	if !doorward.HasCode(err, doorward.CodeUnavailable) || errors.Is(err, store.ErrNone) {
		t.Errorf("%s returns %v: want the code unavailable, not an absent row", function, err)
	}
}

// pointerTo returns a pointer to the instant.
func pointerTo(t time.Time) *time.Time { return &t }
