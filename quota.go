package doorward

import (
	"strconv"
	"time"
)

// Quotas are what the operator allows a tenant to have; nil: no limit.
type Quotas struct {
	People   *int64 // members, suspended ones too
	APIKeys  *int64 // that have not ended
	Webhooks *int64

	EventsPerDay *int64 // events of changes that count, see Verb.Counted, in a day of UTC
}

// NoQuota, as a new value of a quota, removes it.
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

// Words say what the quota limits.
func (q Quota) Words() string { return quotaWords[q] }

// QuotaNames are all quotas.
var QuotaNames = []Quota{QuotaPeople, QuotaAPIKeys, QuotaWebhooks, QuotaEventsPerDay}

// At returns the field of a quota; nil for an unknown name.
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

// Check returns quota_exceeded if the tenant would have more than its quota. have counts
// what it would have after the change.
func (q *Quotas) Check(name Quota, have int64) error {
	if e := q.exceeded(name, have, name.Words()); e != nil {
		return e
	}
	return nil
}

func (q *Quotas) exceeded(name Quota, have int64, words string) *Error {
	limit := *q.At(name)
	if limit == nil || have <= *limit {
		return nil
	}
	e := Fail(CodeQuotaExceeded, "The operator limits this tenant to %d %s.", *limit, words)
	e.Quota = name
	return e
}

// CheckEvents is Check for the events of changes in the day of UTC that now is in.
func (q *Quotas) CheckEvents(have int64, now time.Time) error {
	e := q.exceeded(QuotaEventsPerDay, have, QuotaEventsPerDay.Words()+" (eventsPerDay)")
	if e == nil {
		return nil
	}
	next := time.Unix((DayOf(now)+1)*secondsOfDay, 0).UTC().Format(time.RFC3339)
	e.Detail += " The next day begins at " + next + "."
	return e
}

const secondsOfDay = 24 * 60 * 60

// DayOf numbers days of UTC, from 1970-01-01.
func DayOf(now time.Time) int64 { return now.Unix() / secondsOfDay }

// QuotaText is a quota as text; empty: none.
func QuotaText(limit *int64) string {
	if limit == nil {
		return ""
	}
	return strconv.FormatInt(*limit, 10)
}
