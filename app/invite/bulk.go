package invite

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Sent is the result of one of several offers.
type Sent struct {
	Invitation doorward.Invitation
	// Err is why this offer was not sent, as Send would have returned it; else nil.
	Err error
}

// SendAll is Send for several offers, in their order, in one transaction: a hundred
// commits would take longer than an answer may. An offer that can't be sent stops no
// other. With any other error, such as a fault or a session that has ended, nothing
// was sent.
func (i *Invitations) SendAll(ctx context.Context, by doorward.Caller, offers []Offer) ([]Sent, error) {
	sent := make([]Sent, len(offers))
	var operations []access.Operation
	for n, o := range offers {
		inv, faults := o.invitation(by)
		sent[n] = Sent{inv, access.Can(&by.Principal, doorward.UserInvite, object(inv)).Err()}
		if sent[n].Err != nil {
			continue
		}
		operations = append(operations, access.Operation{Action: doorward.UserInvite, On: object(inv), Write: func(tx *access.Tx) error {
			sent[n] = Sent{Invitation: inv}
			return sent[n].keepOwnFault(tx, send(ctx, tx, &sent[n].Invitation, o, faults))
		}})
	}
	if len(operations) > 0 {
		if _, err := i.door.DoAll(ctx, by, operations...); err != nil {
			return nil, err
		}
	}
	for n := range sent { // what the role doesn't allow is recorded, as Send does
		sent[n].Err = i.door.Refused(ctx, by, doorward.UserInvite, object(sent[n].Invitation), sent[n].Err)
	}
	return sent, nil
}

// ownFault are the kinds of errors that concern one offer alone.
var ownFault = []doorward.Kind{doorward.KindConflict, doorward.KindInvalid, doorward.KindTooMany}

// keepOwnFault stores an error of this offer alone, so that the others go on. It
// returns any other error.
func (s *Sent) keepOwnFault(tx *access.Tx, err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || !slices.Contains(ownFault, e.Kind()) {
		return err
	}
	tx.SkipEvent()
	s.Err = e
	return nil
}
