package invite

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Sent is what has come of one of several offers.
type Sent struct {
	Invitation doorward.Invitation
	// Err is what lies with this offer, as Send would have said it; nil when it
	// was sent.
	Err error
}

// SendAll is Send for several offers, in their order, in one transaction: a
// hundred commits of their own would take longer than an answer may. What lies
// with an offer stops no other. Any other error, such as a fault or that the
// session has ended meanwhile, is returned, and then nothing was sent.
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
			return sent[n].keep(tx, send(ctx, tx, &sent[n].Invitation, o, faults))
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

// ownFault are the kinds of errors that lie with one offer.
var ownFault = []doorward.Kind{doorward.KindConflict, doorward.KindInvalid, doorward.KindTooMany}

// keep takes an error that lies with the offer out of the way of the others.
func (s *Sent) keep(tx *access.Tx, err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || !slices.Contains(ownFault, e.Kind()) {
		return err
	}
	tx.SkipEvent()
	s.Err = e
	return nil
}
