package setuplink

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Look returns the link with the token, and its connection. It binds nothing. With setup_link_taken it returns
// them, too, so that the browser that has begun can go on. Errors: setup_link_over, setup_link_taken if a browser
// has begun.
func (l *Links) Look(ctx context.Context, token string) (link doorward.SetupLink, con doorward.Connection, err error) {
	link, _, err = l.byToken(ctx, l.db.Read(), token)
	if err != nil {
		return link, con, err
	}
	if con, err = l.db.Read().Connection(ctx, link.ConnectionID); errors.Is(err, store.ErrNone) {
		err = over()
	}
	if err == nil {
		err = taken(link)
	}
	return link, con, err
}

// Begin binds the link with the token to the caller's browser, and returns the secret for its cookie. Of two
// browsers one begins. Errors: setup_link_over, setup_link_taken.
func (l *Links) Begin(ctx context.Context, by doorward.Caller, token string) (browser secret.Token, err error) {
	link, principal, err := l.byToken(ctx, l.db.Read(), token)
	if err == nil {
		err = taken(link)
	}
	if err != nil {
		return browser, err
	}
	browser = secret.New()
	hash := browser.Hash()
	by.Principal = principal
	_, err = l.writer.Do(ctx, by, doorward.SetupLinkBegin, object(link.TenantID, link.ConnectionID), func(tx *access.Tx) error {
		if err := tx.LockTenant(ctx, link.TenantID); err != nil {
			return err
		}
		if _, _, err := l.byToken(ctx, tx.Reader, token); err != nil {
			return err
		}
		begun, err := tx.BeginSetupLink(ctx, link.ID, hash[:])
		if err == nil && !begun {
			err = doorward.Fail(doorward.CodeSetupLinkTaken, "")
		}
		tx.RecordUserAgent()
		return err
	})
	return browser, err
}

// Caller returns the caller of a browser that has begun, by the secret of its cookie, as far as the link's maker
// may now, and the link. Errors: setup_link_over, unavailable.
func (l *Links) Caller(ctx context.Context, by doorward.Caller, browser string) (doorward.Caller, doorward.SetupLink, error) {
	token, err := secret.Parse(browser)
	if err != nil {
		return by, doorward.SetupLink{}, over()
	}
	hash := token.Hash()
	read := l.db.Read()
	link, err := read.SetupLinkByBrowser(ctx, hash[:])
	link, principal, err := l.alive(ctx, read, link, err)
	if err != nil {
		return by, link, err
	}
	by.Principal = principal
	return by, link, nil
}

// byToken returns the link with the token, and its principal. Errors: setup_link_over.
func (l *Links) byToken(ctx context.Context, read store.Reader, text string) (doorward.SetupLink, doorward.Principal, error) {
	token, err := secret.Parse(text)
	if err != nil {
		return doorward.SetupLink{}, doorward.Principal{}, over()
	}
	hash := token.Hash()
	link, err := read.SetupLinkByToken(ctx, hash[:])
	return l.alive(ctx, read, link, err)
}

// alive returns the link as found, and its principal. Errors: setup_link_over.
func (l *Links) alive(ctx context.Context, read store.Reader, found doorward.SetupLink, err error) (doorward.SetupLink, doorward.Principal, error) {
	var p doorward.Principal
	if err == nil {
		p, err = access.SetupLinkPrincipal(ctx, read, found, l.db.Now())
	}
	if errors.Is(err, store.ErrNone) {
		err = over()
	}
	if err != nil {
		return doorward.SetupLink{}, doorward.Principal{}, err
	}
	return found, p, nil
}

func over() error { return doorward.Fail(doorward.CodeSetupLinkOver, "") }

// taken returns setup_link_taken if a browser has begun by the link.
func taken(link doorward.SetupLink) error {
	if link.BegunAt == nil {
		return nil
	}
	return doorward.Fail(doorward.CodeSetupLinkTaken, "")
}
