package doorward

import (
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
	Type     string // "user", "tenant", "invitation", "session", "key"
	ID       string
	TenantID string // empty when the object is in no tenant
	Held     Role   // the role that the object, a user, holds; else empty
	Granted  Role   // the role that the action gives; else empty
	// Grant is what the object, a custom role, shall grant; nil for other objects.
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

// FieldCount is the field of events that stand for more than one refusal.
const FieldCount = "count"

// Fields of account.erase: what may be blank in the same trail, besides the events by and
// about the person.
const (
	FieldBlankedInvitation = "blankedInvitation" // an invitation, and the events about it
	FieldBlankedEvent      = "blankedEvent"
)

// Times is the number of refusals that the event counts; 1 for a completed action.
func (e Event) Times() int {
	for _, c := range e.Changes {
		if n, err := strconv.Atoi(c.To); c.Field == FieldCount && err == nil {
			return n
		}
	}
	return 1
}
