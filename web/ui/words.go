package ui

import (
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/useragent"
)

// paused says that the operator has paused changes, and why.
func (c catalogue) paused(reason string) string {
	if reason == "" {
		return c.firstMessageOr(doorward.CodeMaintenance.Problem().Help, []string{"error.maintenance.text"})
	}
	return c.firstMessageOr(reason, []string{"error.maintenance.reason"}, "reason", reason)
}

// refusedBy says which policy refuses something, and what its author says about it.
func (c catalogue) refusedBy(p doorward.PolicyRefusal) string {
	if p.Reason == "" {
		return c.firstMessageOr(doorward.CodeDeniedByPolicy.Problem().Help, []string{"error.denied_by_policy.text"}, "policy", p.PolicyID)
	}
	return c.firstMessageOr(p.Reason, []string{"error.denied_by_policy.reason"}, "policy", p.PolicyID, "reason", p.Reason)
}

// waitText returns how long to wait in words, rounded up so that it is never too short.
func (c catalogue) waitText(d time.Duration) (string, error) {
	switch {
	case d <= 90*time.Second:
		return c.count("seconds", ceil(d, time.Second))
	case d <= 90*time.Minute:
		return c.count("minutes", ceil(d, time.Minute))
	}
	return c.count("hours", ceil(d, time.Hour))
}

func ceil(d, unit time.Duration) int { return max(1, int((d+unit-1)/unit)) }

// duration returns a duration in words, to the second.
func (c catalogue) duration(d time.Duration) (string, error) {
	d = d.Round(time.Second)
	var parts []string
	for _, unit := range []struct {
		key    string
		length time.Duration
	}{{"hours", time.Hour}, {"minutes", time.Minute}, {"seconds", time.Second}} {
		n := int(d / unit.length)
		d %= unit.length
		if n == 0 && (unit.length > time.Second || len(parts) > 0) {
			continue
		}
		part, err := c.count(unit.key, n)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " "), nil
}

// latency returns a number of milliseconds in words: from one second on in seconds, to the tenth.
func (c catalogue) latency(ms int64) (string, error) {
	if ms < 1000 {
		return c.say("latency.ms", "n", ms)
	}
	tenths := (ms + 50) / 100
	if tenths%10 == 0 {
		return c.say("latency.s", "n", tenths/10)
	}
	return c.say("latency.tenths", "whole", tenths/10, "tenth", tenths%10)
}

// ago returns in words how long ago something was, in the largest unit of which one has passed.
func (c catalogue) ago(d time.Duration) (string, error) {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return c.say("ago.now")
	case d < time.Hour:
		return c.count("ago.minutes", int(d/time.Minute))
	case d < day:
		return c.count("ago.hours", int(d/time.Hour))
	}
	return c.count("ago.days", int(d/day))
}

// day returns a date in words.
func (c catalogue) day(at time.Time) (string, error) { return c.dayWith("month.", at) }

// shortDay is day with the month abbreviated, for a column of a list.
func (c catalogue) shortDay(at time.Time) (string, error) { return c.dayWith("month.short.", at) }

// dayWith returns a date with the name of its month, whose key begins with months.
func (c catalogue) dayWith(months string, at time.Time) (string, error) {
	month, err := c.say(months + at.UTC().Format("01"))
	if err != nil {
		return "", err
	}
	return c.say("date", "day", at.UTC().Day(), "month", month, "year", strconv.Itoa(at.UTC().Year()))
}

// moment returns a date and a time of day in words, to the minute.
func (c catalogue) moment(at time.Time) (string, error) { return c.dateAndTime(at, "15:04") }

// exact is moment, to the second.
func (c catalogue) exact(at time.Time) (string, error) { return c.dateAndTime(at, "15:04:05") }

func (c catalogue) dateAndTime(at time.Time, layout string) (string, error) {
	date, err := c.day(at)
	if err != nil {
		return "", err
	}
	return c.say("moment", "date", date, "time", at.UTC().Format(layout))
}

// role returns the name of a role: a built-in one's in the language, a tenant's own as its owner wrote it.
func (c catalogue) role(r doorward.Role) (string, error) {
	if !r.IsBuiltIn() {
		return string(r), nil
	}
	return c.say("role." + string(r))
}

// deviceKind returns the kind of device of a session, by the User-Agent header.
func deviceKind(userAgent string) string { return string(useragent.KindOf(userAgent)) }

// device describes the browser and system of a session by the User-Agent header.
func (c catalogue) device(userAgent string) (string, error) {
	browser, system := useragent.Parse(userAgent)
	switch {
	case browser == "" && system == "":
		return c.say("device.unknown")
	case browser == "" || system == "":
		return browser + system, nil
	}
	return c.say("device.on", "browser", browser, "system", system)
}
