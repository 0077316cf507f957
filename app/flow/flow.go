// Package flow keeps sign-ins at providers that have begun, each sealed in a cookie of its browser, a tab: nothing is
// written to the database until the provider has answered.
//
//	tab, err := tabs.Seal(ctx, conID, flow)                   // at the start
//	found, err := tabs.ByState(ctx, conID, state, cookies)    // at the callback, by OpenID Connect
//	found, err := tabs.ByRequest(ctx, conID, request, state, cookies) // … by SAML
//
// A flow opens in the browser that has begun it, by the same connection, for ten minutes, on every node. That it is used
// once is up to its caller (store.Tx.UseState).
package flow

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/app/sealed"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// Limits of what a browser keeps of sign-ins that have begun.
const (
	Life    = 10 * time.Minute
	MaxTabs = 5 // sign-ins at once; a further one ends the oldest
)

// Purpose is what a sign-in at the provider is for.
type Purpose string

// The purposes.
const (
	ForSignIn Purpose = "sign_in"
	ForTest   Purpose = "test"
	ForStepUp Purpose = "step_up"
)

// Flow is a sign-in at a provider that has begun.
type Flow struct {
	oidcrp.Flow
	Purpose Purpose `json:"purpose"`
	Test    string  `json:"test,omitempty"`    // the test's id
	ByLink  bool    `json:"byLink,omitempty"`  // a set-up link has asked for the test
	Session string  `json:"session,omitempty"` // of a step-up
	Return  string  `json:"return,omitempty"`  // as it was asked for, and allowed then
	// Request is the id of a request of SAML, whose RelayState is Flow.State; empty: OpenID Connect.
	Request string `json:"request,omitempty"`
}

// IsOver reports whether the flow's time has passed.
func (f Flow) IsOver(now time.Time) bool { return IsOver(f.At, now) }

// IsOver reports whether what was made at an instant is older than Life, or of a clock that was ahead.
func IsOver(made, now time.Time) bool {
	return now.After(made.Add(Life)) || now.Before(made.Add(-time.Minute))
}

// Tab is a cookie by which a browser keeps a sign-in that has begun.
type Tab struct{ Name, Value string }

// TabPrefix begins the names of these cookies.
const TabPrefix = "doorward_sso_"

// tabOf returns the name of the cookie with the flow of a state.
func tabOf(state string) string {
	sum := sha256.Sum256([]byte("tab\x00" + state))
	return TabPrefix + strings.ToLower(base32Text.EncodeToString(sum[:8]))
}

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

// Tabs seals flows into cookies, and finds them among those that a browser brings. Make it with New. It is safe for use by
// several goroutines.
type Tabs struct {
	texts *sealed.Texts
	db    *store.DB
}

// New returns the tabs, which texts seals.
func New(texts *sealed.Texts, db *store.DB) *Tabs { return &Tabs{texts: texts, db: db} }

// Seal returns the cookie with a flow by the connection. Errors: unavailable.
func (t *Tabs) Seal(ctx context.Context, conID string, f Flow) (tab Tab, err error) {
	tab.Name = tabOf(f.State)
	tab.Value, err = t.texts.Seal(ctx, conID, tab.Name, f)
	return tab, err
}

// Surplus returns the names of the cookies to delete: those that are over, and the oldest, so that with a
// further one there are MaxTabs. Cookies of other connections stay, unless there are too many. Errors:
// unavailable.
func (t *Tabs) Surplus(ctx context.Context, conID string, tabs []Tab) (drop []string, err error) {
	type open struct {
		name string
		at   time.Time
	}
	var kept []open
	for _, tab := range tabs {
		var f Flow
		isOurs, err := t.texts.Open(ctx, conID, tab.Name, tab.Value, &f)
		switch {
		case err != nil:
			return nil, err
		case isOurs && f.IsOver(t.db.Now()):
			drop = append(drop, tab.Name)
		default: // of another connection: as if it were the oldest
			kept = append(kept, open{tab.Name, f.At})
		}
	}
	slices.SortFunc(kept, func(a, b open) int { return a.at.Compare(b.at) })
	for len(kept) >= MaxTabs {
		drop, kept = append(drop, kept[0].name), kept[1:]
	}
	return drop, nil
}

// Found is what a browser has begun.
type Found struct {
	Flow       Flow
	IsBrowsers bool   // the browser has begun Flow by the connection, and it isn't over
	IsAnswer   bool   // what has come answers that
	Tab        string // the name of the cookie that is used by it; empty: none
}

// ByState finds the flow by OpenID Connect that an answer with the state is to. Errors: unavailable.
func (t *Tabs) ByState(ctx context.Context, conID, state string, tabs []Tab) (found Found, err error) {
	name := tabOf(state)
	i := slices.IndexFunc(tabs, func(tab Tab) bool { return tab.Name == name })
	if i < 0 {
		return found, nil
	}
	found.Tab = name
	isOpen, err := t.texts.Open(ctx, conID, name, tabs[i].Value, &found.Flow)
	found.IsBrowsers = isOpen && found.Flow.Request == "" && found.Flow.State == state && !found.Flow.IsOver(t.db.Now())
	found.IsAnswer = found.IsBrowsers
	return found, err
}

// ByRequest finds the flow by SAML that a response to the request is to; where that isn't known, since the response was
// refused before, the one with the state as its RelayState. Without one it returns another that the browser has begun by
// the connection, as no answer to that. Errors: unavailable.
func (t *Tabs) ByRequest(ctx context.Context, conID, request, state string, tabs []Tab) (found Found, err error) {
	for _, tab := range tabs {
		var f Flow
		isOpen, err := t.texts.Open(ctx, conID, tab.Name, tab.Value, &f)
		if err != nil {
			return found, err
		}
		if !isOpen || f.Request == "" || f.IsOver(t.db.Now()) {
			continue
		}
		found.Flow, found.IsBrowsers = f, true
		if found.IsAnswer = f.isAnsweredBy(request, state); found.IsAnswer {
			found.Tab = tab.Name
			break
		}
	}
	return found, nil
}

// isAnsweredBy reports whether the response is to the flow's request; one that was refused before that was known, by its
// RelayState.
func (f Flow) isAnsweredBy(request, state string) bool {
	if request != "" {
		return request == f.Request
	}
	return state == f.State
}
