package doorward

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Connection is a provider of one tenant, by which its people sign in.
type Connection struct {
	ID, TenantID string
	Type         ConnectionType
	Name         string
	Product      Product
	Status       ConnectionStatus
	CreatedAt    time.Time
	LastSignInAt *time.Time
	// InForce is what it signs people in by. Pending, unless nil, awaits a test and a switch.
	InForce ConnectionParameters
	Pending *ConnectionParameters

	JIT      JIT
	JITRole  Role
	Mappings []GroupMapping
	// GroupsFrom is the claim with the groups; empty: none. GroupsSeen reports whether the provider has
	// sent it.
	GroupsFrom string
	GroupsSeen bool
	// Outside is what its directory does with addresses outside of the proved domains. EmptyByRemove reports whether
	// a removal of members that names none empties a group.
	Outside       Outside
	EmptyByRemove bool
	// TrustFactor reports whether a second factor that the provider asked for counts. FactorACR are the
	// values of acr that say so.
	TrustFactor bool
	FactorACR   []string
	// Ends says which sessions of a person end when the provider revokes that person, and EndsKeys whether the
	// person's API keys end, too. A logout ends sessions of the connection alone.
	Ends     Ends
	EndsKeys bool
	// SignRequests reports whether requests to a provider of SAML are signed, and Encrypt whether it may encrypt
	// assertions.
	SignRequests, Encrypt bool
	// SwitchedAt is the last switch to another issuer, client or subjectFrom; the zero Time for none. Identities count
	// from their first use after it.
	SwitchedAt time.Time
}

// ConnectionParameters are what a connection signs people in by.
type ConnectionParameters struct {
	Issuer     string // of SAML the provider's entityID; empty: not known yet
	ClientID   string
	ClientAuth ClientAuth
	EmailFrom  string // the claim, or the attribute, with the address
	// MetadataURL is where the metadata of a provider of SAML are read; empty: they were given as a text.
	MetadataURL string
	// SubjectFrom is the attribute of SAML with the subject; empty: the NameID.
	SubjectFrom string
	// RemovedCertificates are the fingerprints of certificates of a provider of SAML that somebody has taken away by
	// hand. They sign nothing, whatever the provider says; a test isn't void because of them.
	RemovedCertificates []string
	// TestedAt is when a test of exactly these has passed; nil: none has.
	TestedAt *time.Time
	// Revision is another one after each change, also one back to earlier values, so that a test of what
	// was before is void. A change of the client's secrets gives a new one, too, where they are used.
	Revision int64
}

// Fingerprint returns a hash of the parameters with their revision, for a test of exactly these.
func (p ConnectionParameters) Fingerprint() []byte {
	text := strings.Join([]string{p.Issuer, p.ClientID, string(p.ClientAuth), p.EmailFrom, strconv.FormatInt(p.Revision, 10)}, connectionVersionSeparator)
	if p.MetadataURL != "" || p.SubjectFrom != "" {
		text += connectionVersionSeparator + p.MetadataURL + connectionVersionSeparator + p.SubjectFrom
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// IdentityIssuer returns the issuer under which identities of subjects are kept (Identity.Issuer): subjects that are read
// from another attribute are other people's.
func (p ConnectionParameters) IdentityIssuer() string {
	if p.SubjectFrom == "" {
		return p.Issuer
	}
	return p.Issuer + subjectFromSeparator + p.SubjectFrom
}

// subjectFromSeparator is neither in an entityID nor in the name of an attribute: they have no control characters.
const subjectFromSeparator = "\x1f"

// connectionVersionSeparator is in none of the fields, so that different fields have different texts.
const connectionVersionSeparator = "\x00"

// Version returns a hash of the fields that can be edited, for If-Match.
func (c Connection) Version() string {
	parts := []string{
		c.ID, c.Name, string(c.Status), string(c.JIT), string(c.JITRole), c.GroupsFrom, fmt.Sprint(c.TrustFactor), strings.Join(c.FactorACR, " "),
		string(c.Ends), fmt.Sprint(c.EndsKeys), string(c.Outside), fmt.Sprint(c.EmptyByRemove),
		string(c.InForce.Fingerprint()),
	}
	if c.Type == SAML {
		parts = append(parts, fmt.Sprint(c.SignRequests, c.Encrypt), strings.Join(c.InForce.RemovedCertificates, " "))
	}
	if c.Pending != nil {
		parts = append(parts, string(c.Pending.Fingerprint()))
	}
	for _, m := range c.Mappings {
		parts = append(parts, m.Group, string(m.Role))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, connectionVersionSeparator)))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// ToTest returns the parameters that a test tries: those that await a switch, else those in force.
func (c Connection) ToTest() (p ConnectionParameters, pending bool) {
	if c.Pending != nil {
		return *c.Pending, true
	}
	return c.InForce, false
}

// ConnectionType is the protocol of a connection.
type ConnectionType string

// The protocols by which connections sign people in. SCIMDirectory signs nobody in.
const (
	OpenIDConnect ConnectionType = "oidc" // OpenID Connect Core 1.0
	SAML          ConnectionType = "saml" // SAML 2.0
)

// ConnectionStatus says what a connection is used for.
type ConnectionStatus string

// The states of a connection.
const (
	ConnectionDraft    ConnectionStatus = "draft"    // can be tested
	ConnectionActive   ConnectionStatus = "active"   // signs people in, unless the tenant's mode is off
	ConnectionDisabled ConnectionStatus = "disabled" // has ended its sessions
)

// Product is what a tenant's provider is, which decides on defaults and instructions.
type Product string

// The products.
const (
	Okta         Product = "okta"
	Entra        Product = "entra"
	Google       Product = "google"
	Keycloak     Product = "keycloak"
	Ping         Product = "ping"
	OneLogin     Product = "onelogin"
	JumpCloud    Product = "jumpcloud"
	OtherProduct Product = "other"
)

// Products are all of them, in the order in which they are offered.
var Products = []Product{Okta, Entra, Google, Keycloak, Ping, OneLogin, JumpCloud, OtherProduct}

// ClientAuth is how Doorward authenticates to the token endpoint (OpenID Connect Core 1.0, section 9).
type ClientAuth string

// The ways of authentication.
const (
	SecretBasic   ClientAuth = "secret_basic"
	SecretPost    ClientAuth = "secret_post"
	PrivateKeyJWT ClientAuth = "private_key_jwt"
)

// DefaultClientAuth returns how clients of the product authenticate unless somebody says otherwise: by
// keys, which need no change by hand, where the product reads them from an address.
func (p Product) DefaultClientAuth() ClientAuth {
	switch p {
	case Okta, Keycloak, Ping:
		return PrivateKeyJWT
	}
	return SecretBasic
}

// OffersKeys reports whether clients of the product can authenticate by keys that it reads from an address
// (docs/sign-on-*.md). Others know client secrets alone, or keys that a person uploads.
func (p Product) OffersKeys() bool {
	return p.DefaultClientAuth() == PrivateKeyJWT || p == OtherProduct
}

// UsesKeys reports whether clients authenticate by keys now, or would after the switch that waits.
func (c Connection) UsesKeys() bool {
	return c.InForce.ClientAuth == PrivateKeyJWT || c.Pending != nil && c.Pending.ClientAuth == PrivateKeyJWT
}

// JIT says whom a connection makes a member at the first sign-in.
type JIT string

// The values of JIT.
const (
	JITOff     JIT = "off"     // nobody
	JITInvited JIT = "invited" // who has a pending invitation
	JITDomains JIT = "domains" // people with an address in a proved domain of the connection
)

// Ends says which sessions of a person end when the provider revokes that person.
type Ends string

// The values of Ends.
const (
	EndsConnection Ends = "connection" // those that the connection has vouched for
	EndsTenant     Ends = "tenant"     // all in the tenant
)

// GroupMapping is the role that a group of the provider gives.
type GroupMapping struct {
	Group string // the name or, of a directory's group, the externalId
	Role  Role
	// GroupID is the group of the connection's directory that Group has been found to mean; empty: none so
	// far. It stays the same one when the directory renames it, and Group is then its present name.
	GroupID string
	Given   string // what Group was when it was written, if that is something else
}

// Written is what Group was when it was written.
func (m GroupMapping) Written() string { return cmp.Or(m.Given, m.Group) }

// DirectoryGroup is a group that the directory of a connection has made.
type DirectoryGroup struct {
	ID, ConnectionID, TenantID string
	DisplayName                string // unique in the connection, without letter case
	ExternalID                 string // unique in the connection, as it is written; empty: none
	CreatedAt, ChangedAt       time.Time
}

// Limits of connections.
const (
	ConnectionsMax       = 10 // of a tenant
	ConnectionSecretsMax = 2  // of a connection
	// ConnectionSessionsMax is how many sessions a person has by one connection; a further one ends the oldest.
	ConnectionSessionsMax = 10
	MappingsMax           = 200 // of a connection
	FactorACRMax          = 10
	AttemptsMax           = 200 // of each kind that the protocol of a connection keeps
	AttemptRequestsMax    = 10  // ids of requests that an entry keeps
)

// ConnectionSecret is a client secret, without the secret.
type ConnectionSecret struct {
	ID, ConnectionID, Hint string
	CreatedAt              time.Time
	ExpiresAt, LastUsedAt  *time.Time
	IsLost                 bool // with the master key that it was sealed with: it has to be entered again
}

// Identity is who somebody is at a connection: (connection, issuer, subject). The address is no part of it.
type Identity struct {
	ID, ConnectionID, TenantID string
	Issuer, Subject            string
	UserID                     string
	CreatedAt, LastUsedAt      time.Time
}

// Provider returns how the identity's provider calls itself, see ConnectionParameters.IdentityIssuer.
func (i Identity) Provider() string {
	name, _, _ := strings.Cut(i.Issuer, subjectFromSeparator)
	return name
}

// SubjectFrom returns the attribute from which the subject was read; empty: the subject of the token, or the NameID.
func (i Identity) SubjectFrom() string {
	_, attribute, _ := strings.Cut(i.Issuer, subjectFromSeparator)
	return attribute
}

// Key names whom the identity's issuer means, at whatever connection.
func (i Identity) Key() string { return i.Issuer + connectionVersionSeparator + i.Subject }

// EndedUser names whose sign-ins a provider has ended: the person with the id. See store.Tx.EndSignIns.
func EndedUser(id string) string { return "user" + connectionVersionSeparator + id }

// EndedSubject is EndedUser for the subject that the issuer names.
func EndedSubject(issuer, subject string) string {
	return "subject" + connectionVersionSeparator + Identity{Issuer: issuer, Subject: subject}.Key()
}

// EndedAddress is EndedUser for the person whom the provider calls by the canonical address.
func EndedAddress(address string) string { return "address" + connectionVersionSeparator + address }

// EndedSession is EndedUser for all sign-ins of the session at the provider: a value of Assurance.ProviderSession.
func EndedSession(providerSession string) string {
	return "session" + connectionVersionSeparator + providerSession
}

// EndedEverybody is EndedUser for all who sign in by the connection: it was disabled, or its tenant has turned sign-on off.
const EndedEverybody = "everybody"

// Attempt is an entry of a connection's protocol. Equal faults in a row are one entry.
type Attempt struct {
	ID, ConnectionID string
	Kind             AttemptKind
	At               time.Time // the last time
	Outcome          AttemptOutcome
	Check            string // the check that refused
	Seen             string // what the provider said, bounded; no token
	Advice           string // the key of a text
	Subject, UserID  string // of the person, if known
	Address          string // the one in Seen or Subject, canonical; empty: none is there
	Count            int
	RequestIDs       []string // of the last AttemptRequestsMax, the newest last
}

// IsSame reports whether the entry is the same fault as the other one, or the same request of a directory.
func (a Attempt) IsSame(b Attempt) bool {
	isFault := a.Outcome == AttemptRefused || a.Outcome == AttemptUnavailable || a.Kind == AttemptSCIM
	return isFault && a.Kind == b.Kind && a.Outcome == b.Outcome && a.Check == b.Check && a.Seen == b.Seen && a.Advice == b.Advice && a.Subject == b.Subject && a.UserID == b.UserID
}

// AttemptKind is what was attempted at a provider.
type AttemptKind string

// The kinds of attempts.
const (
	AttemptSignIn   AttemptKind = "sign_in"
	AttemptTest     AttemptKind = "test"
	AttemptStepUp   AttemptKind = "step_up"
	AttemptRevoke   AttemptKind = "revoke"   // the provider ended sessions itself: a revocation, or a logout
	AttemptMetadata AttemptKind = "metadata" // the reading of what the provider says of itself
	AttemptSCIM     AttemptKind = "scim"     // a request of its directory
)

// AttemptKinds lists all kinds.
var AttemptKinds = []AttemptKind{AttemptSignIn, AttemptTest, AttemptStepUp, AttemptRevoke, AttemptMetadata, AttemptSCIM}

// AttemptOutcome is how an attempt has ended.
type AttemptOutcome string

// The outcomes of attempts.
const (
	AttemptSignedIn    AttemptOutcome = "signed_in"
	AttemptAsked       AttemptOutcome = "asked" // the person is asked for something more
	AttemptDone        AttemptOutcome = "done"
	AttemptRefused     AttemptOutcome = "refused"
	AttemptUnavailable AttemptOutcome = "unavailable" // a fault, which is no refusal
)

// ConnectionTest is a sign-in that tests a connection, and opens no session.
type ConnectionTest struct {
	ID, ConnectionID string
	Pending          bool   // whether it tests what awaits a switch
	BrowserHash      []byte // of the session that asked for it
	Fingerprint      []byte // of the parameters that it tests
	Status           TestStatus
	CreatedAt        time.Time
	BegunAt, EndedAt *time.Time
	Claims           json.RawMessage // of the provider, for OWNERs; empty: there are none
	Checks           []TestCheck
}

// IsOf reports whether the test is of exactly what a test of the connection would try now.
func (t ConnectionTest) IsOf(c Connection) bool {
	now, isPending := c.ToTest()
	return t.Pending == isPending && bytes.Equal(t.Fingerprint, now.Fingerprint())
}

// TestStatus says how far a test is.
type TestStatus string

// The states of a test.
const (
	TestWaiting TestStatus = "waiting"
	TestPassed  TestStatus = "passed"
	TestFailed  TestStatus = "failed"
)

// TestCheck is what a test says of one check.
type TestCheck struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Seen   string `json:"seen,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	Advice string `json:"advice,omitempty"`
}

// How long tests count.
const (
	TestLife  = 10 * time.Minute // within which it begins and ends
	TestsKept = 24 * time.Hour
)

// SSOMode says whether people of a tenant sign in by its connections.
type SSOMode string

// The modes.
const (
	SSOOff      SSOMode = "off"
	SSOOptional SSOMode = "optional"
	SSORequired SSOMode = "required"
)

// SSOPolicy is what a tenant demands of sign-on.
type SSOPolicy struct {
	TenantID      string
	Mode          SSOMode
	GuestsRefused bool
	Revision      int64 // grows with each change; 0: there was none
	ChangedAt     time.Time
	// ConfirmBy is when the change returns to what was before unless it is confirmed; nil: nothing to
	// confirm.
	ConfirmBy           *time.Time
	BeforeMode          SSOMode
	BeforeGuestsRefused bool
}

// Domain is a DNS domain that a tenant has proved, or is about to.
type Domain struct {
	ID, TenantID string
	Name         string // A-labels, lower case
	ConnectionID string // by which its people sign in; empty: none
	Status       DomainStatus
	Token        string // of the record
	CreatedAt    time.Time
	VerifiedAt   *time.Time
	CheckedAt    *time.Time
	MissingSince *time.Time // the record is gone since
	LapsedAt     *time.Time
	Released     bool // by the operator: only a proof makes it anybody's
}

// DomainStatus says whether a tenant has proved a domain.
type DomainStatus string

// The states of a domain.
const (
	DomainPending  DomainStatus = "pending"
	DomainVerified DomainStatus = "verified"
	DomainLapsed   DomainStatus = "lapsed" // its record has been missing for 72 h
)

// Limits of domains.
const (
	DomainsMax = 100 // of a tenant
	// DomainLapsesAfter is how long the record of a verified domain may be missing.
	DomainLapsesAfter = 72 * time.Hour
	// DomainHeldFor is how long a domain that has lapsed stays its holder's: only then can another tenant prove it.
	DomainHeldFor = 30 * 24 * time.Hour
)

// Record returns the name and the value of the TXT record that proves the domain.
func (d Domain) Record() (name, value string) {
	return DomainRecordLabel + d.Name, DomainRecordPrefix + d.Token
}

// What the record's name and value begin with.
const (
	DomainRecordLabel  = "_doorward."
	DomainRecordPrefix = "doorward-verification="
)

// IsFree reports whether another tenant that proves the domain takes it over, now.
func (d Domain) IsFree(now time.Time) bool {
	return d.Status == DomainLapsed && (d.Released || d.LapsedAt != nil && !now.Before(d.LapsedAt.Add(DomainHeldFor)))
}

// Version returns a hash of what can be edited, for If-Match.
func (d Domain) Version() string {
	sum := sha256.Sum256([]byte(d.ID + " " + d.ConnectionID))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
