package doorward

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Webhook is an endpoint that gets events.
type Webhook struct {
	ID             string
	TenantID       string // empty: the installation's own, which gets the events of all tenants
	URL            string
	Events         []string // patterns: "user.invite", "user.*" or "*"
	About          string
	Include        []string // optional parts of bodies: WebhookIncludesEmail
	Enabled        bool
	DisabledReason DisabledReason // empty unless Doorward has disabled it
	PublicKey      string         // whpk_ and base64
	CreatedAt      time.Time
	LastSuccessAt  *time.Time
	FailingSince   *time.Time // the first failure since the last success
	Notices        int        // mails sent since that failure
	Health         WebhookHealth
	PreviousEndsAt *time.Time // of the secret before the last rotation
	CreatedBy      string     // the user who made it, also with an API key; empty: none
	URLBy          string     // the user who gave it its URL; empty: none
}

// MadeWebhook names a webhook that goes on after the person who has made it.
type MadeWebhook struct {
	ID  string
	URL string // empty for those who don't manage webhooks
}

// Limits of webhooks.
const (
	WebhooksMax          = 20 // of a tenant, and of the installation
	WebhookEventsMax     = 100
	WebhookGraceHours    = 24 // the default
	WebhookGraceHoursMax = 168
	WebhookReplayMax     = 10_000
)

// WebhookIncludesEmail is a value of Webhook.Include: the actor's address.
const WebhookIncludesEmail = "email"

// webhookVersionSeparator is in none of the fields, so that different fields have different texts.
const webhookVersionSeparator = "\x00"

// DisabledReason is why Doorward has disabled a webhook.
type DisabledReason string

// The reasons for disabling a webhook.
const (
	DisabledGone     DisabledReason = "gone"     // the endpoint answered 410
	DisabledFailing  DisabledReason = "failing"  // for five days without a success
	DisabledRestored DisabledReason = "restored" // the database came back from a backup
	DisabledKeyLost  DisabledReason = "key_lost" // its secret was lost with the master key, and it has no other yet
)

// WebhookHealth is the state of an endpoint by its last delivery attempt.
type WebhookHealth string

// The states of an endpoint.
const (
	WebhookNew  WebhookHealth = "new"  // there was no attempt
	WebhookGood WebhookHealth = "good" // it succeeded within a second
	WebhookBad  WebhookHealth = "bad"  // it failed, or took longer
)

// Version returns a hash of the fields that can be edited, for If-Match.
func (w Webhook) Version() string {
	text := strings.Join([]string{w.ID, w.URL, strings.Join(w.Events, " "), w.About, strings.Join(w.Include, " "), fmt.Sprint(w.Enabled)}, webhookVersionSeparator)
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// CanBeEnabled reports whether the webhook may be enabled again; else its secret has to be rotated first.
func (w Webhook) CanBeEnabled() bool { return w.DisabledReason != DisabledKeyLost }

// Includes reports whether Include has the value.
func (w Webhook) Includes(value string) bool { return slices.Contains(w.Include, value) }

// Wants reports whether the webhook gets events of the action.
func (w Webhook) Wants(a Action) bool { return MatchesEvent(w.Events, a) }

// MatchesEvent reports whether one of the patterns matches the action.
func MatchesEvent(patterns []string, a Action) bool {
	for _, p := range patterns {
		group, wild := strings.CutSuffix(p, "*")
		if string(a) == p || wild && strings.HasPrefix(string(a), group) {
			return true
		}
	}
	return false
}

// IsEventPattern reports whether the text is "*", one of Doorward's own actions, or the first
// word of one and ".*".
func IsEventPattern(text string) bool {
	group, wild := strings.CutSuffix(text, "*")
	if text == "*" {
		return true
	}
	for _, v := range own {
		if !wild && string(v.Action) == text || wild && strings.HasSuffix(group, ".") && strings.HasPrefix(string(v.Action), group) {
			return true
		}
	}
	return false
}

// EventActions returns Doorward's own actions that match one of the patterns; all if there is no
// pattern.
func EventActions(patterns []string) (all []Action) {
	for _, v := range own {
		if len(patterns) == 0 || MatchesEvent(patterns, v.Action) {
			all = append(all, v.Action)
		}
	}
	return all
}

// WebhookDelivery is the sending of an event to a webhook.
type WebhookDelivery struct {
	ID        string
	WebhookID string
	EventID   string
	Type      Action
	State     DeliveryState
	Attempts  []DeliveryAttempt
	NextAt    *time.Time // of the next attempt
	CreatedAt time.Time
}

// DeliveryState is the state of a WebhookDelivery.
type DeliveryState string

// The states of a WebhookDelivery.
const (
	DeliveryPending DeliveryState = "pending"
	DeliveryDone    DeliveryState = "delivered"
	DeliveryGivenUp DeliveryState = "failed"  // retries are used up
	DeliveryDropped DeliveryState = "dropped" // the operator dropped it, or the webhook was disabled or deleted, or its tenant frozen or closed
)

// DeliveryStates lists all states.
var DeliveryStates = []DeliveryState{DeliveryPending, DeliveryDone, DeliveryGivenUp, DeliveryDropped}

// DeliveryAttempt is one attempt of a WebhookDelivery.
type DeliveryAttempt struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"` // 0: no answer
	Ms     int64     `json:"ms"`
	Error  string    `json:"error,omitempty"`
	Answer string    `json:"answer,omitempty"` // its first KiB
}
