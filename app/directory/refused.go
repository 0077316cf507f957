package directory

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// refusedFor is how long a person isn't told again that a connection's directory has asked for the same address.
const refusedFor = 365 * 24 * time.Hour

// addressRefused is the error for a change of the address of an account that isn't the tenant's.
type addressRefused struct {
	error
	member doorward.User
	asked  string // canonical
}

func (e *addressRefused) Unwrap() error { return e.error }

func refuseAddress(m doorward.User, asked string) error {
	return &addressRefused{refuse(scim.Mutability, AdviceOwn, "The account is the person's own: only they change its address."), m, asked}
}

// errToldToday rolls back what records that somebody is told, since they are told another day.
var errToldToday = errors.New("directory: told today")

// tellRefused tells the person that the directory has asked for another address of their account: once for each connection
// and address, on whichever nodes the requests arrive. A tenant's directories send one such mail a day, lest they fill the
// mailbox with ever new addresses; of the next one the person is told when the directory asks again. Errors: unavailable.
func (d *Directories) tellRefused(ctx context.Context, by doorward.Caller, e *addressRefused) error {
	hash := sha256.Sum256([]byte(strings.Join([]string{"address refused", by.ConnectionID, e.member.ID, e.asked}, "\x00")))
	on := doorward.Object{Type: "user", ID: e.member.ID, TenantID: by.TenantID}
	_, err := d.writer.Do(ctx, by, doorward.UserRename, on, func(tx *access.Tx) error {
		tx.SkipEvent()
		isFirst, err := tx.TellRefused(ctx, by.ConnectionID, hash[:])
		if err != nil || !isFirst {
			return err
		}
		today, err := tx.HitThrottle(ctx, "address_refused:"+by.TenantID+":"+e.member.ID, day)
		if err != nil {
			return err
		}
		if today.Hits > 1 {
			return errToldToday
		}
		return tx.QueueMail(ctx, store.MailAddressRefused, e.member.Email, by.ConnectionID)
	})
	if errors.Is(err, errToldToday) {
		return nil
	}
	return err
}
