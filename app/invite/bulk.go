package invite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
)

// Sent is the result of one of several offers.
type Sent struct {
	Invitation doorward.Invitation
	// Err is the error of this offer, as Send would return it.
	Err error
}

// SendAll is Send for several offers, in their order, in one transaction: a
// hundred commits would exceed the time limit of a request. A failed offer doesn't
// affect the others. If SendAll itself returns an error, such as unavailable or
// unauthenticated, nothing was sent.
func (i *Invitations) SendAll(ctx context.Context, by doorward.Caller, offers []Offer) ([]Sent, error) {
	sent, operations := i.operations(ctx, by, offers)
	if err := i.sendTogether(ctx, by, operations, sent); err != nil {
		return nil, err
	}
	for n := range sent { // record refusals, as Send does
		sent[n].Err = i.writer.RecordIfRefusal(ctx, by, doorward.UserInvite, object(sent[n].Invitation), sent[n].Err)
	}
	return sent, nil
}

// errDryRun rolls a dry run back.
var errDryRun = errors.New("invite: a dry run")

// CheckAll returns the error with which SendAll would refuse each offer, nil for those that it would
// send. It writes nothing, and records no refusal. It doesn't say whether SendAll needs a recent proof.
// Errors: those of SendAll itself.
func (i *Invitations) CheckAll(ctx context.Context, by doorward.Caller, offers []Offer) ([]error, error) {
	sent, operations := i.operations(ctx, by, offers)
	if len(operations) > 0 {
		last := &operations[len(operations)-1]
		write := last.Write
		last.Write = func(tx *access.Tx) error { return cmp.Or(write(tx), errDryRun) }
		if _, err := i.writer.DoAll(ctx, by, operations...); !errors.Is(err, errDryRun) {
			return nil, err
		}
	}
	errs := make([]error, len(sent))
	for n, s := range sent {
		errs[n] = s.Err
	}
	return errs, nil
}

// operations returns an operation for each offer that the caller may make, and what becomes of each offer
// when they were performed.
func (i *Invitations) operations(ctx context.Context, by doorward.Caller, offers []Offer) (sent []Sent, operations []access.Operation) {
	sent = make([]Sent, len(offers))
	for n, o := range offers {
		o.backdatedBy = time.Duration(len(offers)-1-n) * time.Microsecond // so that lists keep the order
		inv, faults := o.invitation(by)
		sent[n] = Sent{inv, decide.May(&by.Principal, &decide.Question{Action: doorward.UserInvite, On: object(inv), Request: by.RequestAt(i.db.Now())}).Err()}
		if sent[n].Err != nil {
			continue
		}
		operations = append(operations, access.Operation{Action: doorward.UserInvite, On: object(inv), Write: func(tx *access.Tx) error {
			sent[n] = Sent{Invitation: inv}
			return sent[n].keepOfferError(tx, send(ctx, tx, &sent[n].Invitation, o, faults))
		}})
	}
	return sent, operations
}

// sendTogether performs the operations. The last one also stores the answer, in case the
// request is repeated.
func (i *Invitations) sendTogether(ctx context.Context, by doorward.Caller, operations []access.Operation, sent []Sent) error {
	if len(operations) == 0 {
		return i.writer.KeepAnswerAlone(ctx, by, sent)
	}
	last := &operations[len(operations)-1]
	write := last.Write
	last.Write = func(tx *access.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, sent)
	}
	_, err := i.writer.DoAll(ctx, by, operations...)
	return err
}

// offerKinds are the kinds of errors that concern one offer only.
var offerKinds = []doorward.Kind{doorward.KindConflict, doorward.KindInvalid, doorward.KindTooMany}

// keepOfferError stores an error that concerns this offer only, so that the other offers are
// sent. It returns any other error.
func (s *Sent) keepOfferError(tx *access.Tx, err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || !slices.Contains(offerKinds, e.Kind()) {
		return err
	}
	tx.SkipEvent()
	s.Err = e
	return nil
}

// Outcome is the result of ResendAll or RevokeAll for one invitation.
type Outcome struct {
	ID  string
	Err error // as Resend or Revoke returns it
}

// ResendAll is Resend for several invitations, each in its own transaction, see
// access.RunSeparately. Errors: unavailable or unauthenticated, if nothing was done.
func (i *Invitations) ResendAll(ctx context.Context, by doorward.Caller, ids []string) ([]Outcome, error) {
	return outcomes(ctx, ids, func(id string) error {
		_, err := i.Resend(ctx, by, id)
		return err
	})
}

// RevokeAll is Revoke for several invitations. Errors: those of ResendAll.
func (i *Invitations) RevokeAll(ctx context.Context, by doorward.Caller, ids []string) ([]Outcome, error) {
	return outcomes(ctx, ids, func(id string) error { return i.Revoke(ctx, by, id) })
}

func outcomes(ctx context.Context, ids []string, do func(id string) error) ([]Outcome, error) {
	errs, err := access.RunSeparately(ctx, ids, func(_ int, id string) error { return do(id) })
	if err != nil {
		return nil, err
	}
	all := make([]Outcome, len(ids))
	for n, id := range ids {
		all[n] = Outcome{id, errs[n]}
	}
	return all, nil
}
