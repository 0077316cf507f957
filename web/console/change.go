package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// change is a doorward.Change in words; programs get the raw values from the API or
// the export.
type change struct {
	Field   string
	Label   string // key of the message that names the field; empty for none
	Was, Is value
	Both    bool // show the earlier value too
}

// value is the value of a field before or after a change: the first of these that is set.
type value struct {
	Key      string        // of a message
	Duration time.Duration // a duration, in words
	At       time.Time
	Agent    string   // a User-Agent header
	Roles    []string // names of roles
	Text     string   // shown unchanged
}

// describeFields returns the changes of an event in words. One of an operator's page names who has made its link, which
// somebody else may have opened.
func describeFields(e doorward.Event, names map[string]string) []change {
	all := describeChanges(e.Changes, names)
	for i, c := range all {
		isPage := strings.HasPrefix(e.ActorID, doorward.PrefixPage) || strings.HasPrefix(e.Target.ID, doorward.PrefixPage) && e.Action != doorward.AuditLink
		if c.Field == doorward.FieldSystemUser && isPage {
			all[i].Label = "change.linkMadeBy"
		}
	}
	return all
}

// describeChanges returns the changes in words; names maps ids to names.
func describeChanges(changes []doorward.Change, names map[string]string) (all []change) {
	for _, c := range changes {
		one := change{Field: c.Field, Was: describeValue(c.Field, c.From, names), Is: describeValue(c.Field, c.To, names)}
		if key := "change." + c.Field; messageKeys()[key] {
			one.Label = key
		}
		if c.Field == "logo" && c.From != "" && c.To != "" {
			one.Is.Key = "change.otherImage"
		}
		one.Both = c.From != "" || emptyValues[c.Field] != ""
		all = append(all, one)
	}
	return all
}

// emptyValues are the messages for fields in which an empty value has a meaning.
var emptyValues = map[string]string{
	"allowedEmailDomains": "filter.all",
	"accent":              "change.inherited",
	"invitedBy":           "invitations.operator",
	"allowedIps":          "filter.all",
	"mfaRoles":            "filter.all",
}

// describeValue returns the value of a field in words.
func describeValue(field, text string, names map[string]string) value {
	if text == "" {
		return value{Key: cmp.Or(emptyValues[field], "change.nothing")}
	}
	if key := valueKey(field, text); key != "" {
		return value{Key: key}
	}
	if isDuration(field) {
		switch d, err := time.ParseDuration(text); {
		case err == nil && d == 0: // the tenant uses the installation's
			return value{Key: "change.inherited"}
		case err == nil:
			return value{Duration: d}
		}
	}
	switch field {
	case "expiresAt", "endsAt", "previousEndsAt", "failingSince", "confirmUntil", "rotateBy", "openedSince":
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return value{At: at}
		}
	case "invitedBy", "ownerId":
		if name := names[text]; name != "" {
			return value{Text: name}
		}
		if strings.HasPrefix(text, doorward.PrefixKey) { // the service key that sent it
			return value{Key: "invitations.service"}
		}
	case doorward.FieldUserAgent:
		return value{Agent: text}
	case "role", "replacedBy", "mfaRoles":
		return value{Roles: strings.Fields(text)}
	}
	return value{Text: text}
}

// isDuration reports whether the field of an event is a setting that is a duration.
func isDuration(field string) bool {
	return slices.ContainsFunc(doorward.Settings(doorward.SessionLimits{}, 0), func(s doorward.Setting) bool {
		return s.Event == field && s.Unit == doorward.InMinutes
	})
}

// valueKey is the key of the message for the value of a field; empty if there is none, as
// for a code of a newer version. Text that people typed is never looked up.
func valueKey(field, text string) string {
	switch field {
	case "logo":
		return "change.image"
	case "enabled", "factor", "maintenance", "mfa", "mode", "pause", "queue":
		if key := "change." + field + "." + text; messageKeys()[key] {
			return key
		}
	case "factorRenamed":
		return valueKey("factor", text)
	case "cause":
		if key := "did." + text; messageKeys()[key] {
			return key
		}
	case "reason", "status", "passwordHashes":
		for _, key := range []string{field + "." + text, "state." + text} {
			if messageKeys()[key] {
				return key
			}
		}
	}
	return ""
}

// Reason returns why the action was refused; nil if it was done.
func (e entry) Reason() *value {
	for _, c := range e.Fields {
		if c.Field == "reason" && e.Outcome == doorward.Refused {
			return &c.Is
		}
	}
	return nil
}
