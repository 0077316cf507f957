package domain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

const (
	// lookEvery is the time between two looks at the record of a domain that somebody holds.
	lookEvery = 24 * time.Hour
	// lookAgain is when a look is repeated that name servers didn't answer, or whose node was killed.
	lookAgain = time.Hour
	// watchEvery is how often a node asks whether looks are due.
	watchEvery = time.Minute
	// claimedAtOnce domains are looked at by looksAtOnce goroutines. Silent name servers take lookupWithin of
	// each, so one round takes a minute at most.
	claimedAtOnce = 64
	looksAtOnce   = 16
)

// Run looks at records that are due until ctx ends, each on one of the nodes.
func (d *Domains) Run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := d.Watch(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("looking at domains", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Watch looks at the records of all held domains whose daily look is due: a record that has been missing for
// doorward.DomainLapsesAfter lets the domain lapse, and one that is seen again restores it. It does nothing while
// the clock is wrong. The error joins those of the database; of name servers it says nothing, since their
// domains are looked at again.
func (d *Domains) Watch(ctx context.Context) error {
	if d.db.Clock().Wrong() {
		return nil
	}
	for {
		due, err := d.claim(ctx)
		if err == nil && len(due) > 0 {
			err = d.lookAtAll(ctx, due)
		}
		if err != nil || len(due) < claimedAtOnce {
			return err
		}
	}
}

// claim returns domains whose look is due, which no other node looks at until lookAgain.
func (d *Domains) claim(ctx context.Context) (due []doorward.Domain, err error) {
	if isDue, err := d.db.Read().IsDomainDue(ctx, d.db.Now()); err != nil || !isDue {
		return nil, err // mostly, and it writes nothing
	}
	err = d.writer.Upkeep(ctx, func(tx *store.Tx) error {
		due, err = tx.ClaimDomains(ctx, tx.Now.Add(lookAgain), claimedAtOnce)
		return err
	})
	return due, err
}

// lookAtAll looks at the records of the domains, several at once.
func (d *Domains) lookAtAll(ctx context.Context, due []doorward.Domain) error {
	var unanswered atomic.Int64
	queue, errs := make(chan doorward.Domain), make([]error, looksAtOnce)
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			for one := range queue {
				answered, err := d.lookAt(ctx, one)
				if !answered {
					unanswered.Add(1)
				}
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	for _, one := range due {
		queue <- one
	}
	close(queue)
	workers.Wait()
	if n := unanswered.Load(); n > 0 && ctx.Err() == nil {
		d.log.Warn("name servers do not answer for some domains, which are looked at again in an hour", "domains", n)
	}
	return errors.Join(errs...)
}

// lookAt looks at one record and writes what follows. Without an answer nothing does.
func (d *Domains) lookAt(ctx context.Context, of doorward.Domain) (answered bool, err error) {
	texts, err := d.look(ctx, of)
	if err != nil {
		return false, nil // claimed until lookAgain
	}
	if isProved(of, texts) {
		err = d.recordFound(ctx, of)
	} else {
		err = d.recordMissing(ctx, of)
	}
	if err == nil || doorward.HasCode(err, doorward.CodeNotFound) { // deleted since
		return true, nil
	}
	return true, fmt.Errorf("%s: %w", of.ID, err)
}

// recordFound records that the record is there. A domain that had lapsed is verified again, unless the operator
// has released it.
func (d *Domains) recordFound(ctx context.Context, of doorward.Domain) error {
	if of.Status == doorward.DomainVerified {
		return d.record(ctx, of, true)
	}
	return d.change(ctx, access.System, doorward.DomainVerify, of, func(tx *access.Tx, was doorward.Domain) error {
		if was.Status != doorward.DomainLapsed || was.Released {
			tx.SkipEvent()
			return nil
		}
		_, err := d.hold(ctx, tx, was)
		return err
	})
}

// recordMissing records that the record is not there. A verified domain lapses when it has been missing for
// doorward.DomainLapsesAfter.
func (d *Domains) recordMissing(ctx context.Context, of doorward.Domain) error {
	isDue := func(now time.Time) bool {
		return of.Status == doorward.DomainVerified && of.MissingSince != nil && !now.Before(of.MissingSince.Add(doorward.DomainLapsesAfter))
	}
	if !isDue(d.db.Now()) {
		return d.record(ctx, of, false)
	}
	return d.change(ctx, access.System, doorward.DomainLapse, of, func(tx *access.Tx, was doorward.Domain) error {
		lapsed, err := tx.LapseDomain(ctx, was.ID, tx.Now.Add(-doorward.DomainLapsesAfter), tx.Now.Add(lookEvery))
		if err != nil || !lapsed { // seen by another look since
			tx.SkipEvent()
			return err
		}
		return noticeLapse(ctx, tx, was)
	})
}

// noticeLapse records that the domain has lapsed, and tells the OWNERs.
func noticeLapse(ctx context.Context, tx *access.Tx, was doorward.Domain) error {
	tx.Changed(doorward.FieldDomain, "", was.Name)
	tx.Changed(doorward.FieldStatus, string(was.Status), string(doorward.DomainLapsed))
	return tx.NotifyHolders(ctx, store.MailDomainLapsed, was.TenantID, doorward.RoleOwner)
}

// record writes the result of a look that changes no status.
func (d *Domains) record(ctx context.Context, of doorward.Domain, found bool) error {
	return d.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if of.Status == doorward.DomainPending {
			return tx.MarkDomainChecked(ctx, of.ID)
		}
		return tx.RecordDomainLook(ctx, of.ID, found, tx.Now.Add(lookEvery))
	})
}
