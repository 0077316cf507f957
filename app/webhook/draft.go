package webhook

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/guard"
)

// Draft is a webhook, or a change of one, as somebody has typed it; nil fields stay unchanged.
type Draft struct {
	URL     *string
	Events  *[]string
	About   *string
	Include *[]string
	Enabled *bool
}

// Limits of what is typed, in bytes and in code points.
const (
	urlMax   = 2048
	aboutMax = 200
)

func fault(pointer, code, message string) doorward.FieldError {
	return doorward.FieldError{Pointer: pointer, Code: code, Message: message}
}

// Values of isComplete, for apply.
const complete, partial = true, false

// apply changes the webhook by the draft and returns the faults. A complete draft must have a
// URL and events. Only a new URL is checked. Errors: those of checkURL.
func (w *Webhooks) apply(ctx context.Context, hook *doorward.Webhook, d Draft, isComplete bool) (faults []doorward.FieldError, err error) {
	before := hook.URL
	set(hook, d)
	if isComplete || hook.URL != before {
		f, err := w.checkURL(ctx, hook.URL)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f...)
	}
	if isComplete || d.Events != nil {
		faults = append(faults, checkEvents(hook.Events)...)
	}
	if d.About != nil {
		faults = append(faults, doorward.CheckAbout("/about", hook.About, aboutMax)...)
	}
	for i, word := range hook.Include {
		if word != doorward.WebhookIncludesEmail {
			faults = append(faults, fault(fmt.Sprintf("/include/%d", i), "invalid", "The only word is email."))
		}
	}
	return faults, nil
}

// set changes w by the draft, unchecked, and drops repeated words.
func set(w *doorward.Webhook, d Draft) {
	if d.URL != nil {
		w.URL = *d.URL
	}
	if d.Events != nil {
		w.Events = unique(*d.Events)
	}
	if d.About != nil {
		w.About = *d.About
	}
	if d.Include != nil {
		w.Include = unique(*d.Include)
	}
	if d.Enabled != nil {
		w.Enabled = *d.Enabled
	}
	if w.Include == nil {
		w.Include = []string{}
	}
}

func unique(words []string) []string {
	all := []string{}
	for _, word := range words {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

func checkEvents(events []string) (faults []doorward.FieldError) {
	switch {
	case len(events) == 0:
		return []doorward.FieldError{fault("/events", "required", "Say which events it gets, such as user.* or *.")}
	case len(events) > doorward.WebhookEventsMax:
		return []doorward.FieldError{fault("/events", "out_of_range", fmt.Sprintf("At most %d patterns.", doorward.WebhookEventsMax))}
	}
	for i, e := range events {
		if !doorward.IsEventPattern(e) {
			faults = append(faults, fault(fmt.Sprintf("/events/%d", i), "invalid", "Write an event such as user.invite, a group such as user.*, or *."))
		}
	}
	return faults
}

// checkURL returns the faults of a URL, such as address_refused if it leads to an address that
// may not be reached. Errors: unavailable while the resolver can't be reached.
func (w *Webhooks) checkURL(ctx context.Context, text string) ([]doorward.FieldError, error) {
	if text == "" {
		return []doorward.FieldError{fault("/url", "required", "Say where the events go.")}, nil
	}
	u, err := url.Parse(text)
	if err != nil || len(text) > urlMax || u.Hostname() == "" || !isPort(u.Port()) || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" || strings.ContainsFunc(text, isSpace) {
		return []doorward.FieldError{fault("/url", "invalid", "Write an absolute https URL of at most 2,048 bytes, without user, password and fragment.")}, nil
	}
	err = w.client.Check(ctx, u)
	switch {
	case guard.IsRefused(err):
		return []doorward.FieldError{fault("/url", "address_refused", "Endpoints are reached by https, on public addresses only.")}, nil // without the cause, which would reveal what internal names resolve to
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, doorward.Unavailable(fmt.Errorf("webhook: the name of an endpoint can't be resolved: %w", err))
	}
	return nil, nil
}

// isPort reports whether the text is empty or the number of a port.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

func isSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// field is a value that can be edited, as the trail shows it.
type field struct{ name, value string }

func fields(w doorward.Webhook) []field {
	return []field{
		{doorward.FieldURL, withoutQuery(w.URL)},
		{"events", strings.Join(w.Events, " ")},
		{"about", w.About},
		{"include", strings.Join(w.Include, " ")},
		{"enabled", fmt.Sprint(w.Enabled)},
	}
}

// withoutQuery leaves out the part of a URL that may be a secret of the endpoint.
func withoutQuery(text string) string {
	before, _, found := strings.Cut(text, "?")
	if found {
		return before + "?…"
	}
	return text
}

// recordEdit adds the differences to the event and reports whether there are any. A change of
// the URL's query counts, but isn't shown.
func recordEdit(tx *access.Tx, was, is doorward.Webhook) (changed bool) {
	after := fields(is)
	for i, before := range fields(was) {
		if before != after[i] {
			tx.Changed(before.name, before.value, after[i].value)
			changed = true
		}
	}
	return changed || was.URL != is.URL
}
