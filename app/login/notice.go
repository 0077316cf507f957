package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/store"
)

// tellAgain: a program that signs in without keeping cookies is a new browser
// each time, and its owner hears of it once a day.
const tellAgain = 24 * time.Hour

// tellAtMost bounds the mails to one person in that time. Whoever has stolen the
// password can call his browser something else at every login; the owner has
// been told often enough by then.
const tellAtMost = 10

// notifyNewBrowser queues a notice of a login from a browser that is not known. The first
// login of an account is no news to anybody, and neither is another one from
// there on the same day.
func notifyNewBrowser(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	t, err := tx.HitThrottle(ctx, newBrowserBucket(account, tx.By), tellAgain)
	if err != nil || t.Hits > 1 {
		return err
	}
	before, err := tx.SignedInBefore(ctx, account.ID)
	if err != nil || !before {
		return err
	}
	t, err = tx.HitThrottle(ctx, "newcomers:"+account.ID, tellAgain)
	if err != nil || t.Hits > tellAtMost {
		return err
	}
	tx.ByBrowser()
	return tx.Notify(ctx, store.MailSignedIn, account.Email)
}

// newBrowserBucket names the bucket of what looks like one client of the account, so
// that the name tells nothing of either. When trust in browsers has ended, a client
// that was told of on the same day is news again.
func newBrowserBucket(account doorward.Account, by doorward.Caller) string {
	client := sha256.Sum256([]byte(account.ID + " " + strconv.FormatInt(account.Generation, 10) + " " + credential.Network(by.IP) + " " + by.UserAgent))
	return "newcomer:" + hex.EncodeToString(client[:16])
}
