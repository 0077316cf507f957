package connection

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

// nameID stands for the NameID where the name of an attribute is asked for.
const nameID = "NameID"

// defaultEmailAttribute is what products call the attribute with the address; samlsp knows its other names.
const defaultEmailAttribute = "email"

// setSAML is setParameters for a connection of type saml. What the metadata say is added by looked.setSAML.
func (d Draft) setSAML(p *doorward.ConnectionParameters) (faults []doorward.FieldError) {
	if d.EmailFrom != nil {
		if p.EmailFrom = *d.EmailFrom; p.EmailFrom == "" {
			p.EmailFrom = defaultEmailAttribute
		}
		faults = append(faults, checkClaim("/emailFrom", p.EmailFrom)...)
	}
	if d.SubjectFrom != nil {
		if p.SubjectFrom = *d.SubjectFrom; p.SubjectFrom == nameID {
			p.SubjectFrom = ""
		}
		faults = append(faults, checkClaim("/subjectFrom", p.SubjectFrom)...)
	}
	if typed(d.MetadataURL) != "" {
		faults = append(faults, samlprovider.CheckAddress(*d.MetadataURL)...)
	}
	switch {
	case d.Metadata != nil && typed(d.MetadataURL) != "":
		faults = append(faults, invalid("/metadata", "Give the address of the metadata or their text, not both."))
	case d.MetadataURL != nil && *d.MetadataURL == "":
		p.MetadataURL = ""
	}
	return faults
}

func invalid(pointer, message string) doorward.FieldError {
	return doorward.FieldError{Pointer: pointer, Code: "invalid", Message: message}
}

func typed(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// source is where the metadata are that a change names: at an address, or a text. entityID is the provider that is meant;
// empty: the only one there.
type source struct{ address, text, entityID string }

// source returns which metadata the change needs, by what the parameters were before. An OWNER who names the same address
// again, though certificates were taken away by hand, wants them back.
func (d Draft) source(before doorward.ConnectionParameters, byLink bool) (s source, isNeeded bool) {
	s.entityID = typed(d.EntityID)
	address := typed(d.MetadataURL)
	isAgain := address == before.MetadataURL && (byLink || len(before.RemovedCertificates) == 0)
	switch {
	case d.Metadata != nil:
		s.text = *d.Metadata
		return s, true
	case address != "" && !isAgain:
		s.address = address
		if address == before.MetadataURL && s.entityID == "" {
			s.entityID = before.Issuer
		}
		return s, true
	case s.entityID != "" && s.entityID != before.Issuer:
		s.address = before.MetadataURL
		return s, true
	}
	return s, false
}

// checkEntity returns the fault of an entityID without metadata in which it could be looked for.
func (s source) checkEntity(d Draft, before doorward.ConnectionParameters) []doorward.FieldError {
	switch {
	case s.address != "" || d.Metadata != nil:
		return nil
	case before.Issuer == "":
		return []doorward.FieldError{{Pointer: "/metadataUrl", Code: "required", Message: "Enter the address of the provider's metadata, or the metadata themselves: its entityID is looked for there."}}
	}
	return []doorward.FieldError{samlprovider.UnknownEntity(before.Issuer)}
}

// lookSAML is look for a connection of type saml.
func (c *Connections) lookSAML(ctx context.Context, by doorward.Caller, of doorward.Connection, before doorward.ConnectionParameters, d Draft, faults []doorward.FieldError) (l looked, all []doorward.FieldError, err error) {
	from, isNeeded := d.source(before, by.Kind == doorward.BySetupLink)
	if !isNeeded || len(faults) > 0 {
		return l, faults, nil
	}
	if faults = from.checkEntity(d, before); len(faults) > 0 {
		return l, faults, nil
	}
	l.from = from
	l.saml, faults, err = c.LookSAML(ctx, of.TenantID, from.address, from.text, from.entityID)
	return l, faults, err
}

// setSAML adds what the metadata say to the parameters. Metadata that are an OWNER's bring back what was taken away by
// hand. Errors: precondition_failed if the connection has got others at the same time; validation_failed if all of their
// certificates were taken away.
func (l looked) setSAML(d Draft, before doorward.ConnectionParameters, after *doorward.ConnectionParameters, byLink bool) error {
	from, isNeeded := d.source(before, byLink)
	if !isNeeded {
		return nil
	}
	if l.saml == nil || l.from != from {
		return doorward.Fail(doorward.CodePreconditionFailed, "Somebody else has changed the provider at the same time.")
	}
	after.Issuer, after.MetadataURL = l.saml.EntityID, from.address
	if !byLink {
		after.RemovedCertificates = nil
	}
	if len(samlprovider.Without(*l.saml, after.RemovedCertificates).Certificates) == 0 {
		return doorward.InvalidFields(samlprovider.AllRemoved(from.address != ""))
	}
	return nil
}

// keepSAML keeps the metadata that were read, or else those in force for what is pending since this change.
func (c *Connections) keepSAML(ctx context.Context, tx *access.Tx, was doorward.Connection, isPending bool, after doorward.ConnectionParameters, l looked) error {
	if l.saml != nil {
		_, err := samlprovider.Keep(ctx, tx.Tx, was.ID, isPending, after.MetadataURL, *l.saml)
		return err
	}
	if !isPending || was.Pending != nil {
		return nil
	}
	kept, err := tx.KeptDiscovery(ctx, was.ID, inForce)
	if err != nil || kept.Text == "" {
		return err
	}
	said, err := samlprovider.Read(kept.Text)
	if err != nil {
		return err
	}
	if _, err := tx.KeepDiscovery(ctx, was.ID, pending, after.Issuer, kept.Text); err != nil {
		return err
	}
	return tx.SetCertificatesEnd(ctx, was.ID, pending, samlprovider.Until(samlprovider.Without(said, after.RemovedCertificates)))
}

// ReadAt returns when what is kept of the connection's provider was read, or given as a text; the zero Time: it never was.
// Errors: not_found.
func (c *Connections) ReadAt(ctx context.Context, by doorward.Caller, id string, isPending bool) (time.Time, error) {
	read := c.db.Read()
	if _, err := find(ctx, read, by, id); err != nil {
		return time.Time{}, err
	}
	kept, err := read.KeptDiscovery(ctx, id, isPending)
	if errors.Is(err, store.ErrNone) {
		return time.Time{}, nil
	}
	return kept.At, err
}

// samlFields are parameterFields of a connection of type saml.
func samlFields(p doorward.ConnectionParameters, said metadata.Provider) []field {
	return []field{
		{"entityId", p.Issuer},
		{"metadataUrl", p.MetadataURL},
		{"ssoUrl", said.SSOURL},
		{fieldCertificates, fingerprints(said)},
		{"subjectFrom", p.SubjectFrom},
		{"emailFrom", p.EmailFrom},
	}
}

const fieldCertificates = "certificates"

// checkCertificates returns the faults of what doesn't need the provider's certificates.
func (d Draft) checkCertificates() []doorward.FieldError {
	if d.Certificates != nil && (d.Metadata != nil || d.MetadataURL != nil || d.EntityID != nil) {
		return []doorward.FieldError{invalid("/certificates", "Change the metadata, or take certificates away, one after the other.")}
	}
	return nil
}

// writeCertificates keeps those of the provider's certificates that the change names, and takes the others away at once,
// also from what is pending. It reports whether that took any away. Errors: certificate_needed, validation_failed; forbidden for a set-up
// link.
func writeCertificates(ctx context.Context, tx *access.Tx, was doorward.Connection, d Draft) (bool, error) {
	if d.Certificates == nil {
		return false, nil
	}
	if tx.By.Kind == doorward.BySetupLink {
		return false, doorward.Fail(doorward.CodeForbidden, "By a set-up link no certificate can be taken away. Ask the person who sent it.")
	}
	had, has, err := samlprovider.KeepCertificates(ctx, tx.Tx, was, *d.Certificates)
	if err != nil || len(had.Certificates) == len(has.Certificates) {
		return false, err
	}
	tx.Changed(fieldCertificates, fingerprints(had), fingerprints(has))
	return true, nil
}

// fingerprints are those of the provider's certificates, as the trail shows them.
func fingerprints(said metadata.Provider) string {
	return strings.Join(samlprovider.Fingerprints(said), " ")
}

// newKeys makes the keys that the connection needs as it is to become, outside of a transaction. Errors: forbidden.
func (c *Connections) newKeys(ctx context.Context, by doorward.Caller, action doorward.Action, is doorward.Connection) (map[store.SAMLPurpose]*samlsp.Key, error) {
	if is.Type != doorward.SAML || !is.SignRequests && !is.Encrypt {
		return nil, nil
	}
	if err := c.writer.Require(ctx, by, action, object(is)); err != nil {
		return nil, err
	}
	return c.SAML.NewKeys(ctx, is)
}
