package doorward

import (
	"slices"
	"strconv"
	"time"
)

// Outcome says whether an action was done or refused.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
)

// Object is the object of an action.
type Object struct {
	Type     string // such as "user" or "session"
	ID       string
	TenantID string // empty when the object is in no tenant
	// ConnectionID is the connection that the object is, or belongs to: a domain; empty for others.
	ConnectionID string
	Held         Role // the current role of the object: a user, a key or a role; else empty
	Granted      Role // the role that the action gives; else empty
	// Grant is what a custom role is to grant after the action; nil for other objects.
	Grant *Grant
}

// Change is one field before and after.
type Change struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// Event is one event of the audit trail. It holds no secret.
type Event struct {
	ID         string
	Seq        int64 // its number in the trail of its tenant, from 1 without gaps; 0 before it is written
	At         time.Time
	Action     Action
	Outcome    Outcome
	ActorType  PrincipalKind
	ActorID    string
	ActorEmail string
	Target     Object
	IP         string
	RequestID  string
	Changes    []Change
}

// EventView is an event as JSON: in the API, in webhooks and in exports.
type EventView struct {
	ID        string     `json:"id" example:"evt_3mq7m5x3yh4n6rj7wd2c5tpae7"`
	Seq       *int64     `json:"seq,omitempty" example:"1042" doc:"Its number in the trail of its tenant, from 1 without gaps; only in the answers of GET /api/v2/events"`
	At        time.Time  `json:"at" example:"2026-03-02T09:41:12Z"`
	Action    Action     `json:"action" example:"user.role"`
	Outcome   Outcome    `json:"outcome" enum:"done,refused"`
	Actor     ActorView  `json:"actor"`
	Target    TargetView `json:"target"`
	TenantID  string     `json:"tenantId"`
	IP        string     `json:"ip" doc:"Address of the client; empty for actions at the command line and by Doorward itself"`
	RequestID string     `json:"requestId" example:"req_4kq7m5x3yh4n6rj7wd2c5tpae7" doc:"X-Request-Id of the answer; empty for the same actions"`
	Changes   []Change   `json:"changes,omitempty" doc:"What was changed; for a refusal its reason, a problem's code"`
}

// ActorView is the actor of an event.
type ActorView struct {
	Type  PrincipalKind `json:"type" enum:"user,key,service,operator,system,anonymous,connection,setup_link"`
	ID    string        `json:"id,omitempty" doc:"Of the user, the key, the connection or the set-up link"`
	Email string        `json:"email,omitempty"`
}

// TargetView is the object of an event.
type TargetView struct {
	Type string `json:"type" example:"user"`
	ID   string `json:"id" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
}

// View returns the event for JSON, with its number.
func (e Event) View() EventView {
	return EventView{
		ID: e.ID, Seq: &e.Seq, At: e.At, Action: e.Action, Outcome: e.Outcome,
		Actor:  ActorView{e.ActorType, e.ActorID, e.ActorEmail},
		Target: TargetView{e.Target.Type, e.Target.ID}, TenantID: e.Target.TenantID, IP: e.IP, RequestID: e.RequestID, Changes: e.Changes,
	}
}

// Change returns the change of the field; the zero Change if the event has none.
func (e Event) Change(field string) Change {
	for _, c := range e.Changes {
		if c.Field == field {
			return c
		}
	}
	return Change{}
}

// Fields of events that notices say, or that are read in the trail. A notice has no text of its own: it
// says what its event says, and is erased with it.
const (
	FieldName               = "name"
	FieldEmail              = "email"
	FieldRole               = "role"
	FieldRoleByHand         = "roleByHand" // below which no group of a directory lowers the member's
	FieldSuspendedBy        = "suspendedBy"
	FieldFactor             = "factor"        // its kind: added or removed
	FieldFactorRenamed      = "factorRenamed" // the kind of the one renamed
	FieldRecoveryCodes      = "recoveryCodes" // how many are left
	FieldURL                = "url"           // of a webhook, without its query
	FieldReason             = "reason"        // why a webhook is disabled, or something was refused
	FieldFailingSince       = "failingSince"  // RFC 3339
	FieldSSOMode            = "ssoMode"       // what a tenant demands of sign-on: off, optional, required
	FieldSSOGuests          = "ssoGuests"     // allowed, refused
	FieldConfirmBy          = "confirmBy"     // RFC 3339
	FieldSCIMSecret         = "scimSecret"    // of a connection's directory: its first and last characters
	FieldClientSecret       = "clientSecret"  // of a connection: its last characters
	FieldEndsAt             = "endsAt"        // of a key, RFC 3339
	FieldDomain             = "domain"
	FieldRun                = "run"       // of a directory: its id
	FieldSuspended          = "suspended" // people whom a run had suspended
	FieldRemoved            = "removed"   // people whom it had removed
	FieldSetupLink          = "setupLink" // its id
	FieldStatus             = "status"
	FieldAPIKeysRevoked     = "apiKeysRevoked"
	FieldInvitationsRevoked = "invitationsRevoked"
)

// FieldCount is the field of events that stand for more than one refusal.
const FieldCount = "count"

// FieldUserAgent is the field with the user agent of the client, for notices and investigations.
const FieldUserAgent = "userAgent"

// Fields of each event that a command at the terminal has written.
const (
	FieldSystemUser     = "systemUser"     // who ran it: the user of the system and the host, as in root@db1
	FieldOperatorReason = "operatorReason" // the text of --reason
)

// AddTerminal adds to the event who ran the caller's command, and why; nothing for requests.
func (e *Event) AddTerminal(by Caller) { e.Changes = append(e.Changes, by.Terminal.changes()...) }

// SplitChanges returns the changes that are about the actor, as the address and the IP are, and
// the values, which are about the target. Each part is erased with the person it is about.
func (e Event) SplitChanges() (personal, values []Change) {
	personal, values = []Change{}, e.Changes
	isPersonal := func(c Change) bool { return c.Field == FieldUserAgent || c.Field == FieldSystemUser }
	if !slices.ContainsFunc(e.Changes, isPersonal) {
		return personal, values
	}
	values = []Change{}
	for _, c := range e.Changes {
		if isPersonal(c) {
			personal = append(personal, c)
		} else {
			values = append(values, c)
		}
	}
	return personal, values
}

// Fields of account.erase events. They name other events of the same trail whose personal data
// was blanked, besides the events by and about the person.
const (
	FieldBlankedInvitation = "blankedInvitation" // an invitation, and the events about it
	FieldBlankedEvent      = "blankedEvent"
)

// Fields of key.replace_master events in the trail of a tenant: ids of what must be set again.
const (
	FieldWebhookLost    = "webhookLost"
	FieldConnectionLost = "connectionLost"
)

// Fields of account.erase events that name, by ids, what the person has left at work in the tenant.
const (
	FieldWebhookLeft   = "webhookLeft"   // a webhook that goes on
	FieldAPIKeyLeft    = "apiKeyLeft"    // an API key of somebody else that goes on, and whose secret the person was shown
	FieldConnection    = "connectionId"  // the connection that vouches for a session
	FieldPersonRaised  = "personRaised"  // a member whose present role the person gave
	FieldPersonInvited = "personInvited" // a member who came by the person's invitation
)

// RefusalCount returns the number of refusals that the event stands for; 1 without FieldCount.
func (e Event) RefusalCount() int {
	for _, c := range e.Changes {
		if n, err := strconv.Atoi(c.To); c.Field == FieldCount && err == nil {
			return n
		}
	}
	return 1
}

// NewEvent returns the event of an action of the caller, with a new id and no changes.
func NewEvent(by Caller, action Action, on Object, outcome Outcome) Event {
	return Event{
		ID: NewID(PrefixEvent), Action: action, Outcome: outcome,
		ActorType: by.Kind, ActorID: by.ID, ActorEmail: by.Email,
		Target: on, IP: by.IP, RequestID: by.RequestID, Changes: []Change{},
	}
}
