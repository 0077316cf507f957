package doorward

import (
	"strconv"
	"time"
)

// Quotas limit what a tenant may have, as the operator has set them; nil: no limit.
type Quotas struct {
	People   *int64 // members, suspended ones too
	APIKeys  *int64 // that have not ended
	Webhooks *int64

	EventsPerDay *int64 // events of actions with Verb.CountsInQuota, in a day of UTC
}

// NoQuota is the new value that removes a quota.
const NoQuota = -1

// Quota names what a quota limits.
type Quota string

// The quotas.
const (
	QuotaPeople   Quota = "people"
	QuotaAPIKeys  Quota = "apiKeys"
	QuotaWebhooks Quota = "webhooks"

	QuotaEventsPerDay Quota = "eventsPerDay"
)

var quotaWords = map[Quota]string{
	QuotaPeople: "people", QuotaAPIKeys: "API keys", QuotaWebhooks: "webhooks", QuotaEventsPerDay: "events of changes a day",
}

// Words returns the name of what the quota limits, for messages.
func (q Quota) Words() string { return quotaWords[q] }

// QuotaNames lists all quotas.
var QuotaNames = []Quota{QuotaPeople, QuotaAPIKeys, QuotaWebhooks, QuotaEventsPerDay}

// At returns a pointer to the field of a quota; nil for an unknown name.
func (q *Quotas) At(name Quota) **int64 {
	switch name {
	case QuotaPeople:
		return &q.People
	case QuotaAPIKeys:
		return &q.APIKeys
	case QuotaWebhooks:
		return &q.Webhooks
	case QuotaEventsPerDay:
		return &q.EventsPerDay
	}
	return nil
}

// Check returns quota_exceeded if count, which the tenant would have after a change, is more than
// its quota.
func (q *Quotas) Check(name Quota, count int64) error {
	if e := q.exceeded(name, count, name.Words()); e != nil {
		return e
	}
	return nil
}

func (q *Quotas) exceeded(name Quota, count int64, words string) *Error {
	limit := *q.At(name)
	if limit == nil || count <= *limit {
		return nil
	}
	e := Fail(CodeQuotaExceeded, "The operator limits this tenant to %d %s.", *limit, words)
	e.Quota = name
	return e
}

// CheckEvents is Check for the events of changes in the current day of UTC.
func (q *Quotas) CheckEvents(count int64, now time.Time) error {
	e := q.exceeded(QuotaEventsPerDay, count, QuotaEventsPerDay.Words()+" (eventsPerDay)")
	if e == nil {
		return nil
	}
	next := time.Unix((DayOf(now)+1)*secondsOfDay, 0).UTC().Format(time.RFC3339)
	e.Detail += " The next day begins at " + next + "."
	return e
}

const secondsOfDay = 24 * 60 * 60

// DayOf returns the number of days of UTC since 1970-01-01.
func DayOf(now time.Time) int64 { return now.Unix() / secondsOfDay }

// QuotaText formats a quota; empty for none.
func QuotaText(limit *int64) string {
	if limit == nil {
		return ""
	}
	return strconv.FormatInt(*limit, 10)
}
