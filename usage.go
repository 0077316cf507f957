package doorward

import "time"

// UsageKept is how long counts of usage are kept: no chart shows more.
const UsageKept = 90 * 24 * time.Hour

// UsageCount is how often something happened to a webhook, a connection or an API key, or was written in the trail of a
// tenant, within an hour or a day of UTC.
type UsageCount struct {
	SubjectID string
	At        time.Time // the beginning of the hour or day
	Outcome   UsageOutcome
	Times     int64
}

// UsageOutcome says what is counted.
type UsageOutcome string

// Outcomes of the attempts to deliver to a webhook, by the hour; of the sign-ins by a connection, by the hour; and the
// requests with an API key, by the day. Of a tenant the sessions opened are counted, by the hour, and each Action that was
// refused, as an outcome of that name.
const (
	UsageDelivered   UsageOutcome = "delivered"   // answered with 2xx
	UsageRefused     UsageOutcome = "refused"     // answered with another status; or a sign-in was refused
	UsageSilent      UsageOutcome = "silent"      // no answer
	UsageSignedIn    UsageOutcome = "signed_in"   // a session was opened
	UsageUnavailable UsageOutcome = "unavailable" // the provider was out of reach
	UsageUsed        UsageOutcome = "used"
)
