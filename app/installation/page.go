package installation

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// The operator's page shows the installation's own trail in a browser, and changes nothing.
// The operator makes a link to it at the terminal of a server. The link works once, within
// linkLife, and opens the page for pageLife; no operator key is ever in a browser.
// Link and page are challenges without a user; SessionID has the id of the page. A restore ends
// them, and factor.Factors.Sweep deletes them.
const (
	linkPurpose = "operator-link"
	pagePurpose = "operator-page"

	linkLife = 10 * time.Minute
	pageLife = 30 * time.Minute

	maxTries = 1 // no try is counted: the token is the whole proof
)

func pageObject(id string) doorward.Object { return doorward.Object{Type: "page", ID: id} }

// MakeLink returns the token of a link that opens the operator's page, and when it ends.
func (i *Installation) MakeLink(ctx context.Context, by doorward.Caller) (token secret.Token, ends time.Time, err error) {
	token = secret.New()
	hash, id := token.Hash(), doorward.NewID(doorward.PrefixPage)
	_, err = i.writer.Do(ctx, by, doorward.AuditLink, pageObject(id), func(tx *access.Tx) error {
		ends = tx.Now.Add(linkLife)
		return tx.InsertChallenge(ctx, hash[:], store.Challenge{Purpose: linkPurpose, SessionID: id, EndsAt: ends})
	})
	return token, ends, err
}

// OpenPage uses up the token of a link and returns the token of the page. Errors:
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
	if err != nil {
		return token, err
	}
	token = secret.New()
	pageHash := token.Hash()
	_, err = i.writer.Do(ctx, by, doorward.AuditOpen, pageObject(found.SessionID), func(tx *access.Tx) error {
		taken, err := tx.TakeChallenge(ctx, hash[:])
		if err == nil && !taken {
			err = doorward.Fail(doorward.CodeInvalidCode, "")
		}
		if err != nil {
			return err
		}
		tx.RecordUserAgent()
		return tx.InsertChallenge(ctx, pageHash[:], store.Challenge{Purpose: pagePurpose, SessionID: found.SessionID, EndsAt: tx.Now.Add(pageLife)})
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

// Page returns the caller of the operator's page, and when the page ends. The caller may read
// the installation's trail. It has no operator key, so access.Do refuses its writes.
// Errors: unauthenticated.
func (i *Installation) Page(ctx context.Context, by doorward.Caller, token secret.Token) (doorward.Caller, time.Time, error) {
	hash := token.Hash()
	found, err := i.db.Read().Challenge(ctx, hash[:], pagePurpose, maxTries, i.db.Now())
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return by, time.Time{}, err
	}
	by.Principal = doorward.Principal{Kind: doorward.Operator, ID: found.SessionID, Limits: []doorward.Action{doorward.AuditRead}}
	return by, found.EndsAt, nil
}

// LeavePage ends the page. If the page has already ended, it does nothing.
func (i *Installation) LeavePage(ctx context.Context, by doorward.Caller, token secret.Token) error {
	hash := token.Hash()
	found, err := i.db.Read().Challenge(ctx, hash[:], pagePurpose, maxTries, i.db.Now())
	if errors.Is(err, store.ErrNone) {
		return nil
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
