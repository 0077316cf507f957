package webhook

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// message is the body of a delivery.
type message struct {
	Type      doorward.Action    `json:"type"`
	Timestamp time.Time          `json:"timestamp"`
	Data      doorward.EventView `json:"data"`
}

// payload returns the body for a webhook. It is made at each attempt, so that data erased
// since the event isn't sent.
func payload(w doorward.Webhook, e doorward.Event) ([]byte, error) {
	d := e.View()
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

// withoutAddress blanks text that may hold an e-mail address: text with an @.
func withoutAddress(text string) string {
	if strings.Contains(text, "@") {
		return ""
	}
	return text
}
