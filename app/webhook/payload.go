package webhook

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// message is the body of a delivery.
type message struct {
	Type      doorward.Action `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      data            `json:"data"`
}

// data is an audit event, as GET /api/v2/audit-events shows it, with its number.
type data struct {
	ID        string            `json:"id"`
	Seq       int64             `json:"seq"`
	At        time.Time         `json:"at"`
	Action    doorward.Action   `json:"action"`
	Outcome   doorward.Outcome  `json:"outcome"`
	Actor     actor             `json:"actor"`
	Target    target            `json:"target"`
	TenantID  string            `json:"tenantId"`
	IP        string            `json:"ip"`
	RequestID string            `json:"requestId"`
	Changes   []doorward.Change `json:"changes,omitempty"`
}

type actor struct {
	Type  doorward.PrincipalKind `json:"type"`
	ID    string                 `json:"id,omitempty"`
	Email string                 `json:"email,omitempty"`
}

type target struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// payload returns the body for a webhook. It is made when it is sent, so that what is erased
// until then isn't sent.
func payload(w doorward.Webhook, e doorward.Event) ([]byte, error) {
	d := data{
		ID: e.ID, Seq: e.Seq, At: e.At, Action: e.Action, Outcome: e.Outcome,
		Actor:  actor{e.ActorType, e.ActorID, e.ActorEmail},
		Target: target{e.Target.Type, e.Target.ID}, TenantID: e.Target.TenantID, IP: e.IP, RequestID: e.RequestID,
		Changes: e.Changes,
	}
	if !w.Includes(doorward.WebhookIncludesEmail) {
		d.Actor.Email, d.Changes = "", withoutAddresses(e.Changes)
		d.Target.ID = withoutAddress(e.Target.ID)
	}
	return json.Marshal(message{e.Action, e.At, d})
}

func withoutAddresses(changes []doorward.Change) (all []doorward.Change) {
	for _, c := range changes {
		all = append(all, doorward.Change{Field: c.Field, From: withoutAddress(c.From), To: withoutAddress(c.To)})
	}
	return all
}

// withoutAddress blanks whatever could hold an e-mail address: what has an @.
func withoutAddress(text string) string {
	if strings.Contains(text, "@") {
		return ""
	}
	return text
}
