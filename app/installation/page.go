package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// The operator's page shows the installation in a browser. The operator makes a link to it at the terminal of a server.
// The link works once, within linkLife, and opens the page for pageLife; no operator key is ever in a browser.
// Without PageActs the page changes nothing; with some, it can do these to tenants.
//
// Link and page are challenges without a user: SessionID has the id of the page, Methods its acts, State who has
// made the link. A restore ends them, and factor.Factors.Sweep deletes them.
const (
	linkPurpose = "operator-link"
	pagePurpose = "operator-page"

	linkLife = 10 * time.Minute
	pageLife = 30 * time.Minute

	maxTries = 1 // no try is counted: the token is the whole proof
)

// FieldActs is the field of events with the acts of a link and of its page.
const FieldActs = "acts"

// pageActs are what a link can let its page do to tenants, in the order in which they are listed.
var pageActs = []struct {
	name   string
	action doorward.Action
}{{"freeze", doorward.TenantFreeze}, {"thaw", doorward.TenantThaw}, {"close", doorward.TenantClose}}

// PageActs returns the names of the acts that a link can have.
func PageActs() (names []string) {
	for _, a := range pageActs {
		names = append(names, a.name)
	}
	return names
}

// ActionOf returns the action of an act by its name; false if no page has it.
func ActionOf(act string) (doorward.Action, bool) {
	for _, a := range pageActs {
		if a.name == act {
			return a.action, true
		}
	}
	return "", false
}

// CheckActs returns the named acts in order, each once. Errors: validation_failed.
func CheckActs(names []string) (acts []string, err error) {
	for _, name := range names {
		if _, known := ActionOf(name); !known {
			return nil, doorward.Invalid("/act", "invalid", fmt.Sprintf("There is no act %q. A link can have %s.", name, strings.Join(PageActs(), ", ")))
		}
	}
	for _, a := range pageActs {
		if slices.Contains(names, a.name) {
			acts = append(acts, a.name)
		}
	}
	return acts, nil
}

func pageObject(id string) doorward.Object { return doorward.Object{Type: "page", ID: id} }

// MakeLink returns the token of a link that opens the operator's page, and when it ends. The page may do the acts;
// none: it shows, and changes nothing. Events of the page say who has made the link. Errors: validation_failed.
func (i *Installation) MakeLink(ctx context.Context, by doorward.Caller, acts ...string) (token secret.Token, ends time.Time, err error) {
	if acts, err = CheckActs(acts); err != nil {
		return token, ends, err
	}
	made, err := json.Marshal(by.Terminal)
	if err != nil {
		return token, ends, err
	}
	token = secret.New()
	hash, id := token.Hash(), doorward.NewID(doorward.PrefixPage)
	_, err = i.writer.Do(ctx, by, doorward.AuditLink, pageObject(id), func(tx *access.Tx) error {
		ends = tx.Now.Add(linkLife)
		recordActs(tx, acts)
		return tx.InsertChallenge(ctx, hash[:], store.Challenge{Purpose: linkPurpose, SessionID: id, Methods: acts, State: made, EndsAt: ends})
	})
	return token, ends, err
}

// recordActs adds the acts to the event, if there are any.
func recordActs(tx *access.Tx, acts []string) {
	if len(acts) > 0 {
		tx.Changed(FieldActs, "", strings.Join(acts, " "))
	}
}

// madeBy returns who has made the link of a challenge.
func madeBy(c store.Challenge) (t doorward.Terminal, err error) {
	if len(c.State) == 0 { // of an earlier version
		return t, nil
	}
	err = json.Unmarshal(c.State, &t)
	return t, err
}

// OpenPage uses up the token of a link and returns the token of the page. Of two browsers one gets it. Errors:
// invalid_code; too_many_attempts after many unknown tokens from the client's network.
func (i *Installation) OpenPage(ctx context.Context, by doorward.Caller, text string) (token secret.Token, err error) {
	link, err := secret.Parse(text)
	if err != nil {
		return token, i.refuseLink(ctx, by)
	}
	hash := link.Hash()
	found, err := i.db.Read().Challenge(ctx, hash[:], linkPurpose, maxTries, i.db.Now())
	if errors.Is(err, store.ErrNone) {
		return token, i.refuseLink(ctx, by)
	}
	if err == nil {
		by.Terminal, err = madeBy(found)
	}
	if err != nil {
		return token, err
	}
	token = secret.New()
	pageHash := token.Hash()
	page := store.Challenge{Purpose: pagePurpose, SessionID: found.SessionID, Methods: found.Methods, State: found.State}
	_, err = i.writer.Do(ctx, by, doorward.AuditOpen, pageObject(found.SessionID), func(tx *access.Tx) error {
		taken, err := tx.TakeChallenge(ctx, hash[:])
		if err == nil && !taken {
			err = doorward.Fail(doorward.CodeInvalidCode, "")
		}
		if err != nil {
			return err
		}
		tx.RecordUserAgent()
		recordActs(tx, found.Methods)
		page.EndsAt = tx.Now.Add(pageLife)
		return tx.InsertChallenge(ctx, pageHash[:], page)
	})
	return token, err
}

// refuseLink counts and records an unknown link, and returns why it is refused.
func (i *Installation) refuseLink(ctx context.Context, by doorward.Caller) error {
	if err := i.writer.CountUnknownKey(ctx, by); err != nil {
		return err
	}
	return i.writer.Refuse(ctx, by, doorward.AuditOpen, pageObject(""), doorward.Fail(doorward.CodeInvalidCode, ""))
}

// Page is an open page of the operator.
type Page struct {
	By     doorward.Caller
	Acts   []string // what it may do to tenants, of PageActs; none: it only shows
	EndsAt time.Time
}

// Page returns the page of the token. Its caller may read the installation's trail, and do the acts of the link:
// access.Do refuses all else, and the acts too once the page has ended. Errors: unauthenticated.
func (i *Installation) Page(ctx context.Context, by doorward.Caller, token secret.Token) (page Page, err error) {
	hash := token.Hash()
	found, err := i.db.Read().Challenge(ctx, hash[:], pagePurpose, maxTries, i.db.Now())
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err == nil {
		by.Terminal, err = madeBy(found)
	}
	if err != nil {
		return page, err
	}
	by.Principal = doorward.Principal{Kind: doorward.Operator, ID: found.SessionID, IsPage: true, Limits: []doorward.Action{doorward.AuditRead}}
	by.KeyHash = hash[:]
	for _, act := range found.Methods {
		if action, known := ActionOf(act); known {
			by.Limits = append(by.Limits, action)
		}
	}
	return Page{By: by, Acts: found.Methods, EndsAt: found.EndsAt}, nil
}

// LeavePage ends the page. If the page has already ended, it does nothing.
func (i *Installation) LeavePage(ctx context.Context, by doorward.Caller, token secret.Token) error {
	hash := token.Hash()
	found, err := i.db.Read().Challenge(ctx, hash[:], pagePurpose, maxTries, i.db.Now())
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err == nil {
		by.Terminal, err = madeBy(found)
	}
	if err != nil {
		return err
	}
	_, err = i.writer.Do(ctx, by, doorward.AuditEnd, pageObject(found.SessionID), func(tx *access.Tx) error {
		taken, err := tx.TakeChallenge(ctx, hash[:])
		if !taken {
			tx.SkipEvent()
		}
		return err
	})
	return err
}

// EndPages ends all pages and links, and returns how many. No request that begins afterwards
// gets a page, since Page asks the database in each request.
func (i *Installation) EndPages(ctx context.Context, by doorward.Caller) (ended int64, err error) {
	_, err = i.writer.Do(ctx, by, doorward.AuditEnd, object, func(tx *access.Tx) (err error) {
		if ended, err = tx.EndChallengesFor(ctx, linkPurpose, pagePurpose); ended == 0 {
			tx.SkipEvent()
		}
		return err
	})
	return ended, err
}
