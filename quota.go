package doorward

import "strconv"

// Quotas are what the operator allows a tenant to have; nil: as many as it likes.
type Quotas struct {
	People   *int64 // members, suspended ones too
	APIKeys  *int64 // that have not ended
	Webhooks *int64
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
)

var quotaWords = map[Quota]string{QuotaPeople: "people", QuotaAPIKeys: "API keys", QuotaWebhooks: "webhooks"}

// QuotaNames are all quotas.
var QuotaNames = []Quota{QuotaPeople, QuotaAPIKeys, QuotaWebhooks}

// At returns the place of a quota; nil for an unknown name.
func (q *Quotas) At(name Quota) **int64 {
	switch name {
	case QuotaPeople:
		return &q.People
	case QuotaAPIKeys:
		return &q.APIKeys
	case QuotaWebhooks:
		return &q.Webhooks
	}
	return nil
}

// Exceeds returns quota_exceeded if the tenant would have more than its quota. have counts
// what it would have after the change.
func (q *Quotas) Exceeds(name Quota, have int64) error {
	limit := *q.At(name)
	if limit == nil || have <= *limit {
		return nil
	}
	e := Fail(CodeQuotaExceeded, "The operator limits this tenant to %d %s.", *limit, quotaWords[name])
	e.Quota = name
	return e
}

// QuotaText is a quota in the trail; empty: none.
func QuotaText(limit *int64) string {
	if limit == nil {
		return ""
	}
	return strconv.FormatInt(*limit, 10)
}
