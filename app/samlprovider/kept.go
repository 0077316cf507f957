package samlprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

// Kept returns what is kept of a connection's provider, in force or pending by the parameters, without the certificates that
// were taken away by hand; the zero Provider: nothing is. Errors: unavailable.
func Kept(ctx context.Context, read store.Reader, id string, isPending bool, p doorward.ConnectionParameters) (said metadata.Provider, err error) {
	kept, err := read.KeptDiscovery(ctx, id, isPending)
	if errors.Is(err, store.ErrNone) {
		return said, nil
	}
	if err == nil {
		said, err = Read(kept.Text)
	}
	return Without(said, p.RemovedCertificates), err
}

// Fingerprints returns those of the provider's certificates, in its order.
func Fingerprints(said metadata.Provider) (all []string) {
	for _, certificate := range said.Certificates {
		all = append(all, certificate.Fingerprint)
	}
	return all
}

// KeepCertificates keeps of the certificates of the provider in force those with the fingerprints, and takes the others
// away, also from what is pending. It returns the provider before and after. Errors: certificate_needed where none would
// be left; validation_failed for a fingerprint that it doesn't have.
func KeepCertificates(ctx context.Context, tx *store.Tx, of doorward.Connection, keep []string) (had, has metadata.Provider, err error) {
	if had, err = Kept(ctx, tx.Reader, of.ID, false, of.InForce); err != nil {
		return had, had, err
	}
	gone, faults := takenAway(Fingerprints(had), keep)
	switch {
	case len(keep) == 0:
		return had, had, doorward.Fail(doorward.CodeCertificateNeeded, "")
	case len(faults) > 0:
		return had, had, doorward.InvalidFields(faults...)
	case len(gone) == 0:
		return had, had, nil
	}
	if err := removeCertificates(ctx, tx, of.ID, false, of.InForce, gone); err != nil {
		return had, had, err
	}
	if of.Pending != nil {
		if err := removeCertificates(ctx, tx, of.ID, true, *of.Pending, gone); err != nil {
			return had, had, err
		}
	}
	return had, Without(had, gone), nil
}

// takenAway returns which fingerprints aren't among those to keep, and the faults of those that aren't there.
func takenAway(has, keep []string) (gone []string, faults []doorward.FieldError) {
	named := []string{}
	for i, one := range keep {
		one = strings.ToLower(strings.ReplaceAll(one, ":", "")) // as browsers and consoles of providers show them
		if !slices.Contains(has, one) {
			faults = append(faults, doorward.FieldError{Pointer: fmt.Sprintf("/certificates/%d", i), Code: "invalid", Message: "The provider has no certificate with this fingerprint now. Reload, and choose again."})
		}
		named = append(named, one)
	}
	for _, one := range has {
		if !slices.Contains(named, one) {
			gone = append(gone, one)
		}
	}
	return gone, faults
}

func removeCertificates(ctx context.Context, tx *store.Tx, id string, isPending bool, p doorward.ConnectionParameters, gone []string) error {
	all := slices.Clone(p.RemovedCertificates)
	for _, one := range gone {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	if err := tx.RemoveCertificates(ctx, id, isPending, all); err != nil {
		return err
	}
	p.RemovedCertificates = all
	is, err := Kept(ctx, tx.Reader, id, isPending, p)
	if err != nil {
		return err
	}
	return tx.SetCertificatesEnd(ctx, id, isPending, Until(is))
}
