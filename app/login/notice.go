package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/store"
)

// noticeWindow is the time in which one client causes at most one mail. A program that
// signs in without keeping cookies is a new browser each time.
const noticeWindow = 24 * time.Hour

// maxNotices bounds the mails to one person in that time: somebody with a stolen
// password can send another User-Agent with every login.
const maxNotices = 10

// notifyNewBrowser decides whether a login from a browser that is not known is worth a notice, which it
// queues: the first login of an account is not, nor is one of a client that has caused a notice within
// noticeWindow. Beyond maxNotices it queues none, and still reports that the login was worth one.
func notifyNewBrowser(ctx context.Context, tx *access.Tx, account doorward.Account) (isNew bool, err error) {
	t, err := tx.HitThrottle(ctx, newBrowserBucket(account, tx.By), noticeWindow)
	if err != nil || t.Hits > 1 {
		return false, err
	}
	signedInBefore, err := tx.SignedInBefore(ctx, account.ID)
	if err != nil || !signedInBefore {
		return false, err
	}
	t, err = tx.HitThrottle(ctx, "newcomers:"+account.ID, noticeWindow)
	if err != nil || t.Hits > maxNotices {
		return true, err
	}
	tx.RecordUserAgent()
	return true, tx.Notify(ctx, store.MailSignedIn, account.Email)
}

// newBrowserBucket returns the name of the throttle for one client of the account: a hash, so
// that it reveals neither of them. When trust in browsers ends, the generation changes, and with
// it the bucket, so the next login leads to a mail again.
func newBrowserBucket(account doorward.Account, by doorward.Caller) string {
	client := sha256.Sum256([]byte(account.ID + " " + strconv.FormatInt(account.Generation, 10) + " " + proof.Network(by.IP) + " " + by.UserAgent))
	return "newcomer:" + hex.EncodeToString(client[:16])
}
