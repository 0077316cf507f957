package account

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Held is the export of the data about a person. It has no secret: no password, no token, and no
// hash of one. Members that also occur in other answers of the API have the same names.
type Held struct {
	ExportedAt    time.Time         `json:"exportedAt"`
	Account       HeldAccount       `json:"account"`
	Memberships   []HeldMembership  `json:"memberships"`
	Sessions      []HeldSession     `json:"sessions"`
	Browsers      []HeldBrowser     `json:"browsers"`
	Factors       []HeldFactor      `json:"factors"`
	RecoveryCodes int               `json:"recoveryCodes" doc:"How many recovery codes are left"`
	Challenges    []HeldChallenge   `json:"challenges"`
	Identities    []HeldIdentity    `json:"identities" doc:"Who the person is at the providers of tenants, by which they sign in"`
	EmailChanges  []HeldEmailChange `json:"emailChanges"`
	Resets        []HeldReset       `json:"resets"`
	FactorResets  []HeldFactorReset `json:"factorResets"`
	FactorCodes   []HeldReset       `json:"factorCodes" doc:"Codes of mails that remove the second factors"`
	APIKeys       []HeldAPIKey      `json:"apiKeys"`
	SetupLinks    []HeldSetupLink   `json:"setupLinks" doc:"Links that the person has made for a customer's own IT"`
	Directories   []HeldDirectory   `json:"directories" doc:"What directories of organisations say of the person"`
	Groups        []HeldGroup       `json:"groups" doc:"Groups of these directories that the person is in"`
	Invitations   []HeldInvitation  `json:"invitations"`
	Mails         []HeldMail        `json:"mails"`
	Decisions     []HeldDecision    `json:"decisions" doc:"The last 1,000 decisions about the person's requests that are kept to try policies on"`
	AuditEvents   []HeldEvent       `json:"auditEvents"`
}

// HeldAccount is the account.
type HeldAccount struct {
	ID           string    `json:"id" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Email        string    `json:"email"`
	FormerEmails []string  `json:"formerEmails" doc:"Addresses that changes of the last 7 days have replaced, or have asked for"`
	Locale       string    `json:"locale,omitempty" example:"en"`
	CreatedAt    time.Time `json:"createdAt"`
	HasPassword  bool      `json:"hasPassword"`
	ManagedBy    string    `json:"managedBy,omitempty" doc:"The tenant whose sign-on has made the account; absent once the account has a password"`
}

// HeldFactorReset is a tenant's word that the second factors may be removed.
type HeldFactorReset struct {
	TenantID string    `json:"tenantId"`
	AskedAt  time.Time `json:"askedAt"`
}

// HeldMembership is a membership.
type HeldMembership struct {
	TenantID    string     `json:"tenantId"`
	TenantName  string     `json:"tenantName"`
	Name        string     `json:"name" example:"Ann Lee"`
	Role        string     `json:"role" example:"USER"`
	Status      string     `json:"status" example:"active"`
	CreatedAt   time.Time  `json:"createdAt"`
	LastLoginAt *time.Time `json:"lastLoginAt,omitempty"`
	// FormerDomains are those by which a demand for sign-on goes on covering the member.
	FormerDomains []string `json:"formerDomains,omitempty" doc:"Domains of the tenant that the address has left; a demand for its sign-on goes on covering the member"`
}

// HeldSession is a session.
type HeldSession struct {
	ID         string    `json:"id" example:"ses_2kq7m5x3yh4n6rj7wd2c5tpae7"`
	TenantID   string    `json:"tenantId"`
	CreatedAt  time.Time `json:"createdAt"`
	LastSeenAt time.Time `json:"lastSeenAt"`
	IP         string    `json:"ip" example:"192.0.2.7"`
	UserAgent  string    `json:"userAgent"`
	AAL        int       `json:"aal" example:"1"`
	AMR        []string  `json:"amr"`
	AuthAt     time.Time `json:"authAt"`

	ConnectionID string   `json:"connectionId,omitempty" doc:"The tenant's own sign-on that vouches for the session; absent for Doorward itself"`
	ProviderAMR  []string `json:"providerAmr,omitempty" doc:"What its provider said of the methods"`
	NewBrowser   bool     `json:"newBrowser" doc:"The login was from a browser that the account didn't know"`
}

// HeldBrowser is a known browser.
type HeldBrowser struct {
	CreatedAt      time.Time  `json:"createdAt"`
	LastUsedAt     *time.Time `json:"lastUsedAt,omitempty"`
	SecondFactorAt *time.Time `json:"secondFactorAt,omitempty" doc:"When a second factor was last proved in this browser. Until the tenant's limit, logins in it need none; absent: each login needs one"`
	IP             string     `json:"ip,omitempty" example:"192.0.2.7" doc:"From where the second factor was proved"`
	UserAgent      string     `json:"userAgent,omitempty" doc:"The browser that proved it"`
}

// HeldFactor is a second factor.
type HeldFactor struct {
	ID          string     `json:"id" example:"mfa_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Type        string     `json:"type" example:"totp"`
	Name        string     `json:"name" example:"My phone"`
	CreatedAt   time.Time  `json:"createdAt"`
	LastUsedAt  *time.Time `json:"lastUsedAt,omitempty"`
	ConfirmedAt *time.Time `json:"confirmedAt,omitempty" doc:"Absent while it is being set up"`
	DisabledAt  *time.Time `json:"disabledAt,omitempty"`
	Synced      bool       `json:"synced" doc:"A passkey that is kept by a service that synchronises it"`
}

// HeldChallenge is a challenge that is not yet answered.
type HeldChallenge struct {
	Purpose   string    `json:"purpose" example:"login"`
	TenantID  string    `json:"tenantId,omitempty"`
	Methods   []string  `json:"methods"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// HeldIdentity is who the person is at the provider of a tenant.
type HeldIdentity struct {
	ID           string    `json:"id" example:"idn_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	TenantID     string    `json:"tenantId"`
	ConnectionID string    `json:"connectionId" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Issuer       string    `json:"issuer" example:"https://acme.okta.example"`
	Subject      string    `json:"subject" example:"00u1a2b3c4"`
	SubjectFrom  string    `json:"subjectFrom,omitempty" example:"objectidentifier" doc:"Of SAML: the attribute that has said so; absent: the NameID"`
	CreatedAt    time.Time `json:"createdAt"`
	LastUsedAt   time.Time `json:"lastUsedAt"`
}

// HeldEmailChange is a recent change of the address, requested or confirmed.
type HeldEmailChange struct {
	From        string     `json:"from"`
	To          string     `json:"to"`
	CreatedAt   time.Time  `json:"createdAt"`
	ConfirmedAt *time.Time `json:"confirmedAt,omitempty"`
	UndoneAt    *time.Time `json:"undoneAt,omitempty"`
	Suspend     bool       `json:"suspend" doc:"Whether confirming it suspends memberships whose tenants don't allow the new address"`
}

// HeldReset is a reset of the password that was requested recently.
type HeldReset struct {
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"`
	UsedAt    *time.Time `json:"usedAt,omitempty"`
}

// HeldDecision is a decision on a request of the person.
type HeldDecision struct {
	At       time.Time `json:"at"`
	TenantID string    `json:"tenantId"`
	Action   string    `json:"action" example:"message.send"`
	Allowed  bool      `json:"allowed"`
	IP       string    `json:"ip,omitempty" example:"192.0.2.7"`
}

// maxDecisions limits the decisions, which are in memory: a program can cause thousands.
const maxDecisions = 1000

// HeldAPIKey is an API key that the person owns.
type HeldAPIKey struct {
	ID         string     `json:"id" example:"key_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	TenantID   string     `json:"tenantId"`
	Name       string     `json:"name" example:"Nightly export"`
	Status     string     `json:"status" example:"active"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  time.Time  `json:"expiresAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"`
	LastUsedIP string     `json:"lastUsedIp,omitempty" example:"192.0.2.7"`
}

// HeldSetupLink is a set-up link that the person has made.
type HeldSetupLink struct {
	ID           string     `json:"id" example:"stl_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	TenantID     string     `json:"tenantId"`
	ConnectionID string     `json:"connectionId" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	CreatedAt    time.Time  `json:"createdAt"`
	ExpiresAt    time.Time  `json:"expiresAt"`
	BegunAt      *time.Time `json:"begunAt,omitempty" doc:"When a browser has begun by it"`
}

// HeldInvitation is an invitation to the person's address, or to a former one.
type HeldInvitation struct {
	ID        string    `json:"id" example:"inv_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	TenantID  string    `json:"tenantId"`
	Name      string    `json:"name" example:"Ann Lee"`
	Role      string    `json:"role" example:"USER"`
	Status    string    `json:"status" example:"PENDING"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// HeldMail is a stored mail to the person's address, or about a change of it. It has no text.
type HeldMail struct {
	ID        string       `json:"id" example:"msg_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Kind      string       `json:"kind" example:"reset"`
	State     string       `json:"state" example:"sent"`
	CreatedAt time.Time    `json:"createdAt"`
	Notices   []HeldNotice `json:"notices,omitempty" doc:"Of a digest: what it tells"`
}

// HeldNotice is what a digest tells of the notices of one kind about the same object.
type HeldNotice struct {
	Kind  string `json:"kind" example:"role_changed"`
	Count int    `json:"count"`
}

// HeldEvent is an audit event by or about the person. Of other actors it has only the type and the
// id.
type HeldEvent struct {
	ID       string       `json:"id" example:"evt_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	At       time.Time    `json:"at"`
	TenantID string       `json:"tenantId,omitempty"`
	Action   string       `json:"action" example:"session.open"`
	Outcome  string       `json:"outcome" example:"done"`
	Actor    HeldParty    `json:"actor"`
	Target   HeldParty    `json:"target"`
	IP       string       `json:"ip,omitempty" example:"192.0.2.7"`
	Changes  []HeldChange `json:"changes"`
}

// HeldChange is one field before and after.
type HeldChange doorward.Change

// HeldParty is the actor or the target of an event.
type HeldParty struct {
	Type string `json:"type" example:"user"`
	ID   string `json:"id,omitempty" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
}

// eventBatch is how many events are in memory at once.
const eventBatch = 500

// Export calls begin and then writes the data about the caller to w, as a Held in JSON. It reads
// audit events, of which there may be many, while it writes. It first records that, in the trail of each
// of the caller's active tenants. Errors: step_up_required, sign_in_required, too_many_attempts;
// unauthenticated if the account has been erased since the request began; unavailable, also after begin,
// and then the document is incomplete; the errors of w.
func (a *Accounts) Export(ctx context.Context, by doorward.Caller, begin func(), w io.Writer) error {
	_, err := a.writer.Do(ctx, by, doorward.AccountExport, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		tx.RecordUserAgent()
		return tx.CountChange(ctx)
	})
	if err != nil {
		return err
	}
	return a.write(ctx, by, begin, w)
}

// write writes the data about the person with the caller's id, after begin.
func (a *Accounts) write(ctx context.Context, by doorward.Caller, begin func(), w io.Writer) error {
	return a.db.Snapshot(ctx, func(read store.Reader) error {
		held, err := a.readAll(ctx, read, by)
		if err != nil {
			return err
		}
		text, err := json.Marshal(held)
		if err != nil {
			return err
		}
		const tail = `]}` // of the empty list of events, which is the last member
		begin()
		if _, err := w.Write(text[:len(text)-len(tail)]); err != nil {
			return err
		}
		out := &eventList{w: w}
		for _, query := range []func(context.Context, string, doorward.Position, int) ([]doorward.Event, error){read.EventsBy, read.EventsAbout} {
			if err := out.writeAll(ctx, by.ID, query); err != nil {
				return err
			}
		}
		_, err = io.WriteString(w, tail)
		return err
	})
}

// eventList writes the items of a list.
type eventList struct {
	w         io.Writer
	separator string // before the next item
}

// writeAll writes all events that the query returns for the user.
func (l *eventList) writeAll(ctx context.Context, userID string, query func(context.Context, string, doorward.Position, int) ([]doorward.Event, error)) error {
	for after := (doorward.Position{}); ; {
		events, err := query(ctx, userID, after, eventBatch)
		if err != nil {
			return err
		}
		for _, e := range events {
			text, err := json.Marshal(heldEvent(e, userID))
			if err != nil {
				return err
			}
			if _, err := io.WriteString(l.w, l.separator+string(text)); err != nil {
				return err
			}
			l.separator = ",\n"
			after = doorward.Position{At: e.At.UnixMicro(), ID: e.ID}
		}
		if len(events) < eventBatch {
			return nil
		}
	}
}

func heldEvent(e doorward.Event, userID string) HeldEvent {
	out := HeldEvent{
		ID: e.ID, At: e.At, TenantID: e.Target.TenantID, Action: string(e.Action), Outcome: string(e.Outcome),
		Actor: HeldParty{string(e.ActorType), e.ActorID}, Target: HeldParty{e.Target.Type, e.Target.ID}, Changes: []HeldChange{},
	}
	for _, c := range e.Changes {
		out.Changes = append(out.Changes, HeldChange(c))
	}
	if e.ActorID == userID {
		out.IP = e.IP
	}
	return out
}

// readAll returns everything but the events.
func (a *Accounts) readAll(ctx context.Context, read store.Reader, by doorward.Caller) (Held, error) {
	now := a.db.Now()
	h := Held{
		ExportedAt: now, Memberships: []HeldMembership{}, Sessions: []HeldSession{}, Browsers: []HeldBrowser{},
		Factors: []HeldFactor{}, Challenges: []HeldChallenge{}, Identities: []HeldIdentity{}, EmailChanges: []HeldEmailChange{}, Resets: []HeldReset{},
		FactorResets: []HeldFactorReset{}, FactorCodes: []HeldReset{},
		APIKeys: []HeldAPIKey{}, SetupLinks: []HeldSetupLink{}, Directories: []HeldDirectory{}, Groups: []HeldGroup{}, Invitations: []HeldInvitation{}, Mails: []HeldMail{}, Decisions: []HeldDecision{}, AuditEvents: []HeldEvent{},
	}
	account, err := access.OwnAccount(ctx, read, by)
	if err != nil {
		return h, err
	}
	former, err := read.FormerEmails(ctx, account)
	if err != nil {
		return h, err
	}
	h.Account = HeldAccount{account.ID, account.Email, append([]string{}, former...), account.Locale, account.CreatedAt, account.PasswordHash != "", account.ManagedBy}
	for _, add := range []func(context.Context, store.Reader, *Held, time.Time) error{addMemberships, addAccess, addPending, addResets, addAPIKeys, addSetupLinks, addDirectories, addGroups, addMail, addDecisions} {
		if err := add(ctx, read, &h, now); err != nil {
			return h, err
		}
	}
	return h, nil
}

func addMemberships(ctx context.Context, read store.Reader, h *Held, _ time.Time) error {
	all, err := read.Memberships(ctx, h.Account.ID)
	for _, m := range all {
		var left []string
		if left, err = read.FormerDomains(ctx, m.TenantID, m.ID); err != nil {
			return err
		}
		h.Memberships = append(h.Memberships, HeldMembership{m.TenantID, m.TenantName, m.Name, string(m.Role), string(m.Status), m.CreatedAt, m.LastLoginAt, left})
	}
	return err
}

// addAccess adds sessions, known browsers and factors.
func addAccess(ctx context.Context, read store.Reader, h *Held, _ time.Time) error {
	sessions, err := read.UserSessions(ctx, h.Account.ID)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		h.Sessions = append(h.Sessions, HeldSession{s.Session.ID, s.Session.TenantID, s.Session.CreatedAt, s.Session.LastSeenAt, s.Session.IP, s.Session.UserAgent, s.Session.AAL, append([]string{}, s.Session.AMR...), s.Session.ProvedAt, string(s.Session.Issuer), s.Session.ProviderAMR, s.Session.NewBrowser})
	}
	browsers, err := read.Browsers(ctx, h.Account.ID)
	if err != nil {
		return err
	}
	for _, b := range browsers {
		one := HeldBrowser{CreatedAt: b.CreatedAt, IP: b.IP, UserAgent: b.UserAgent}
		if b.UsedAt.Unix() > 0 {
			one.LastUsedAt = &b.UsedAt
		}
		if !b.SecondAt.IsZero() {
			one.SecondFactorAt = &b.SecondAt
		}
		h.Browsers = append(h.Browsers, one)
	}
	factors, err := read.Factors(ctx, h.Account.ID)
	for _, f := range factors {
		h.Factors = append(h.Factors, HeldFactor{f.ID, string(f.Kind), f.Name, f.CreatedAt, f.LastUsedAt, f.ConfirmedAt, f.DisabledAt, f.Synced})
	}
	if err != nil {
		return err
	}
	h.RecoveryCodes, err = read.CountRecoveryCodes(ctx, h.Account.ID)
	return err
}

// addPending adds identities, challenges and changes of the address.
func addPending(ctx context.Context, read store.Reader, h *Held, now time.Time) error {
	identities, err := read.IdentitiesOf(ctx, h.Account.ID)
	if err != nil {
		return err
	}
	for _, i := range identities {
		h.Identities = append(h.Identities, HeldIdentity{i.ID, i.TenantID, i.ConnectionID, i.Provider(), i.Subject, i.SubjectFrom(), i.CreatedAt, i.LastUsedAt})
	}
	challenges, err := read.ChallengesOf(ctx, h.Account.ID, now)
	if err != nil {
		return err
	}
	for _, c := range challenges {
		h.Challenges = append(h.Challenges, HeldChallenge{c.Purpose, c.TenantID, append([]string{}, c.Methods...), c.EndsAt})
	}
	changes, err := read.EmailChanges(ctx, h.Account.ID)
	for _, c := range changes {
		h.EmailChanges = append(h.EmailChanges, HeldEmailChange{c.Old, c.New, c.CreatedAt, c.ConfirmedAt, c.UndoneAt, c.Suspend})
	}
	return err
}

// addResets adds resets of the password and of the second factors.
func addResets(ctx context.Context, read store.Reader, h *Held, now time.Time) error {
	resets, err := read.ResetsOf(ctx, h.Account.ID)
	for _, r := range resets {
		h.Resets = append(h.Resets, HeldReset{r.CreatedAt, r.ExpiresAt, r.UsedAt})
	}
	if err != nil {
		return err
	}
	words, err := read.FactorWordsFor(ctx, h.Account.ID, now)
	for _, w := range words {
		h.FactorResets = append(h.FactorResets, HeldFactorReset{w.TenantID, w.AskedAt})
	}
	if err != nil {
		return err
	}
	codes, err := read.FactorCodesFor(ctx, h.Account.ID)
	for _, c := range codes {
		h.FactorCodes = append(h.FactorCodes, HeldReset{c.CreatedAt, c.ExpiresAt, c.UsedAt})
	}
	return err
}

func addDecisions(ctx context.Context, read store.Reader, h *Held, _ time.Time) error {
	decisions, err := read.DecisionsBy(ctx, h.Account.ID, maxDecisions)
	for _, d := range decisions {
		one := HeldDecision{At: d.At, TenantID: d.TenantID, Action: string(d.Action), Allowed: d.Allowed}
		if d.Request.IP.IsValid() {
			one.IP = d.Request.IP.String()
		}
		h.Decisions = append(h.Decisions, one)
	}
	return err
}

func addAPIKeys(ctx context.Context, read store.Reader, h *Held, now time.Time) error {
	keys, err := read.OwnedAPIKeys(ctx, h.Account.ID, now)
	for _, k := range keys {
		h.APIKeys = append(h.APIKeys, HeldAPIKey{k.ID, k.TenantID, k.Name, string(k.StatusAt(now)), k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.LastUsedIP})
	}
	return err
}

func addSetupLinks(ctx context.Context, read store.Reader, h *Held, _ time.Time) error {
	links, err := read.SetupLinksMadeBy(ctx, h.Account.ID)
	for _, l := range links {
		h.SetupLinks = append(h.SetupLinks, HeldSetupLink{l.ID, l.TenantID, l.ConnectionID, l.CreatedAt, l.EndsAt, l.BegunAt})
	}
	return err
}

// HeldDirectory is what the directory of a connection says of the person.
type HeldDirectory struct {
	ID           string         `json:"id" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"As the directory knows the person"`
	TenantID     string         `json:"tenantId"`
	ConnectionID string         `json:"connectionId" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	UserName     string         `json:"userName" example:"ann@acme.example"`
	ExternalID   string         `json:"externalId,omitempty" example:"00u1a2b3c4"`
	Attributes   map[string]any `json:"attributes" example:"{\"displayName\": \"Ann Lee\"}" doc:"As the directory has sent them (SCIM 2.0)"`
	CreatedAt    time.Time      `json:"createdAt"`
}

func addDirectories(ctx context.Context, read store.Reader, h *Held, _ time.Time) error {
	said, err := read.DirectoryUsersOf(ctx, h.Account.ID)
	for _, d := range said {
		held := HeldDirectory{d.ID, d.TenantID, d.ConnectionID, d.UserName, d.ExternalID, map[string]any{}, d.CreatedAt}
		if err := json.Unmarshal([]byte(d.Attributes), &held.Attributes); err != nil {
			return doorward.Unavailable(err)
		}
		h.Directories = append(h.Directories, held)
	}
	return err
}

// HeldGroup is a group of a directory.
type HeldGroup struct {
	ID           string `json:"id" example:"grp_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	TenantID     string `json:"tenantId"`
	ConnectionID string `json:"connectionId" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	DisplayName  string `json:"displayName" example:"Engineering"`
}

func addGroups(ctx context.Context, read store.Reader, h *Held, _ time.Time) error {
	groups, err := read.GroupsHeldOf(ctx, h.Account.ID)
	for _, g := range groups {
		h.Groups = append(h.Groups, HeldGroup{g.ID, g.TenantID, g.ConnectionID, g.DisplayName})
	}
	return err
}

func addMail(ctx context.Context, read store.Reader, h *Held, now time.Time) error {
	invitations, err := read.InvitationsOf(ctx, h.Account.ID, h.Account.Email)
	if err != nil {
		return err
	}
	for _, i := range invitations {
		h.Invitations = append(h.Invitations, HeldInvitation{i.ID, i.TenantID, i.Name, string(i.Role), string(i.StateAt(now)), i.CreatedAt, i.ExpiresAt})
	}
	mails, err := read.MailsOf(ctx, h.Account.ID, h.Account.Email)
	for _, m := range mails {
		one := HeldMail{ID: m.ID, Kind: string(m.Kind), State: string(m.State), CreatedAt: m.CreatedAt}
		if m.Kind == store.MailDigest {
			held, err := read.HeldNotices(ctx, m.ID)
			if err != nil {
				return err
			}
			for _, n := range held {
				one.Notices = append(one.Notices, HeldNotice{string(n.Kind), n.Notices})
			}
		}
		h.Mails = append(h.Mails, one)
	}
	return err
}
