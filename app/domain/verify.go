package domain

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// A tenant has maxVerifies proofs of domains within verifyWindow, over all nodes, so that nobody searches the
// DNS by them.
const (
	maxVerifies  = 120
	verifyWindow = time.Minute
)

// Verify looks at the record of a domain of the caller's tenant, and makes the tenant its holder if it is right.
// The entry of an earlier holder ends then, if it has lapsed for long enough or was released. A record that is
// not there counts as in a daily look. Errors: not_found, too_many_attempts, provider_unavailable,
// domain_not_proved with what was seen, domain_taken, those of the decision.
func (d *Domains) Verify(ctx context.Context, by doorward.Caller, id string) (after doorward.Domain, err error) {
	found, err := d.Get(ctx, by, id)
	if err == nil { // before anything is asked for the caller
		err = d.writer.Require(ctx, by, doorward.DomainVerify, object(found))
	}
	if err == nil {
		err = d.writer.CountWithin(ctx, []access.Counter{{Bucket: "verify-domain:" + by.TenantID, Limit: maxVerifies, Window: verifyWindow}})
	}
	if err != nil {
		return after, err
	}
	texts, err := d.look(ctx, found)
	if err != nil {
		return after, err
	}
	if !isProved(found, texts) {
		return after, d.refuse(ctx, found, texts)
	}
	err = d.change(ctx, by, doorward.DomainVerify, found, func(tx *access.Tx, was doorward.Domain) error {
		if after, err = d.hold(ctx, tx, was); err != nil {
			return err
		}
		if was.Status == doorward.DomainVerified {
			tx.SkipEvent()
		}
		return nil
	})
	return after, err
}

// isProved reports whether one of the texts is the value of the domain's record, byte by byte.
func isProved(of doorward.Domain, texts []string) bool {
	_, value := of.Record()
	return slices.Contains(texts, value)
}

// refuse records a look that has not found the record, and returns domain_not_proved.
func (d *Domains) refuse(ctx context.Context, of doorward.Domain, texts []string) error {
	if err := d.recordMissing(ctx, of); err != nil {
		return err
	}
	refusal := doorward.Fail(doorward.CodeDomainNotProved, "")
	refusal.Seen = shown(texts, of.Token)
	return refusal
}

// hold makes the tenant of the entry the holder of the domain, and returns the entry. Errors: domain_taken.
func (d *Domains) hold(ctx context.Context, tx *access.Tx, was doorward.Domain) (doorward.Domain, error) {
	holder, err := tx.DomainHolder(ctx, was.Name)
	if err == nil && holder.ID != was.ID {
		err = takeOver(ctx, tx, holder)
	}
	if err != nil && !errors.Is(err, store.ErrNone) {
		return was, err
	}
	if was.Status != doorward.DomainVerified {
		tx.Changed(doorward.FieldDomain, "", was.Name)
		tx.Changed(doorward.FieldStatus, string(was.Status), string(doorward.DomainVerified))
	}
	err = tx.VerifyDomain(ctx, was.ID, tx.Now.Add(lookEvery))
	if errors.Is(err, store.ErrHeld) { // since DomainHolder
		err = doorward.Fail(doorward.CodeDomainTaken, "")
	}
	if err != nil {
		return was, err
	}
	return tx.Domain(ctx, was.ID)
}

// takeOver ends the entry of an earlier holder, with an event in its trail and a mail to its OWNERs, which say
// nothing of the tenant that has proved the domain. Errors: domain_taken if the holder's entry isn't free.
func takeOver(ctx context.Context, tx *access.Tx, holder doorward.Domain) error {
	ended, err := tx.DeleteFreeDomain(ctx, holder.ID, tx.Now.Add(-doorward.DomainHeldFor))
	if err == nil && !ended {
		err = doorward.Fail(doorward.CodeDomainTaken, "")
	}
	if err != nil {
		return err
	}
	owners, err := access.EmailsOf(ctx, tx.Reader, holder.TenantID, doorward.RoleOwner)
	if err != nil {
		return err
	}
	changes := []doorward.Change{{Field: doorward.FieldDomain, From: holder.Name}}
	if holder.ConnectionID != "" {
		changes = append(changes, doorward.Change{Field: doorward.FieldConnection, From: holder.ConnectionID})
	}
	return tx.NotifyAlsoBy(ctx, access.System, store.MailDomainTaken, owners, doorward.DomainDelete, object(holder), changes...)
}
