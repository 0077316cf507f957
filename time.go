package doorward

import (
	"errors"
	"strings"
	"time"
)

// errNoTime is the error of ParseTime for every text that is none.
var errNoTime = errors.New("not a time of RFC 3339")

// ParseTime reads a time of RFC 3339, also with the letters t and z in lower case (section 5.6, note),
// and a leap second, 23:59:60 of UTC, as the second after it.
func ParseTime(text string) (time.Time, error) {
	text = strings.ToUpper(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	const minute, second = len("2006-01-02T15:04"), len("2006-01-02T15:04:05")
	if len(text) < second || text[minute:second] != ":60" {
		return time.Time{}, errNoTime
	}
	at, err := time.Parse(time.RFC3339, text[:minute]+":59"+text[second:])
	if utc := at.UTC(); err != nil || utc.Hour() != 23 || utc.Minute() != 59 {
		return time.Time{}, errNoTime
	}
	return at.Truncate(time.Second).Add(time.Second), nil
}
