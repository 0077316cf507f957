package connection

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/metadata"
)

// Values of pending, for the store.
const inForce, pending = false, true

// Create makes a draft of a connection. With an issuer, or an address of metadata, it reads what the provider says of
// itself, within 10 s. Errors: too_many_connections, too_many_attempts, master_key_missing where a key is needed,
// validation_failed.
func (c *Connections) Create(ctx context.Context, by doorward.Caller, d Draft) (Shown, error) {
	made, faults := newConnection(by, d)
	faults = append(faults, required("/name", d.Name)...)
	faults = append(faults, d.setOwn(&made)...)
	faults = append(faults, d.setParameters(&made.InForce)...)
	if err := c.writer.Require(ctx, by, doorward.ConnectionCreate, object(made)); err != nil {
		return Shown{}, err
	}
	known, faults, err := c.look(ctx, by, made, doorward.ConnectionParameters{}, made.InForce.Issuer, d, faults)
	if err != nil {
		return Shown{}, err
	}
	if err := known.addTo(&made, d); err != nil {
		return Shown{}, err
	}
	keys, err := c.newKeys(ctx, by, doorward.ConnectionCreate, made)
	if err != nil {
		return Shown{}, err
	}
	created := Shown{}
	_, err = c.writer.Do(ctx, by, doorward.ConnectionCreate, object(made), func(tx *access.Tx) error {
		err := checkMaking(ctx, tx, made.TenantID, d, faults)
		if err != nil {
			return err
		}
		made.CreatedAt = tx.Now
		for _, f := range append(ownFields(made), parameterFields(made.Type, made.InForce, known.provider())...) {
			tx.Changed(f.name, "", f.value)
		}
		if err := tx.InsertConnection(ctx, made); err != nil {
			return err
		}
		if err := c.complete(ctx, tx, made, inForce, made.InForce, known); err != nil {
			return err
		}
		if err := c.SAML.AddKeys(ctx, tx.Tx, made.ID, keys); err != nil {
			return err
		}
		if created, err = show(ctx, tx.Reader, by, made.ID); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, created)
	})
	return created, err
}

func required(pointer string, typed *string) []doorward.FieldError {
	if typed == nil { // an empty one is a fault of setOwn
		return []doorward.FieldError{fault(pointer, "required", "Name the connection; people see it when they sign in.")}
	}
	return nil
}

// checkMaking checks what a new connection needs, under the lock on the tenant. Errors:
// too_many_connections, validation_failed.
func checkMaking(ctx context.Context, tx *access.Tx, tenantID string, d Draft, faults []doorward.FieldError) error {
	n, err := tx.CountConnections(ctx, tenantID)
	if err == nil && n >= doorward.ConnectionsMax {
		err = doorward.Fail(doorward.CodeTooManyConnections, "")
	}
	if err != nil {
		return err
	}
	return checkUnderLock(ctx, tx, tenantID, d, faults)
}

// checkUnderLock returns validation_failed for the faults and those of roles, which may have changed since
// the draft was typed.
func checkUnderLock(ctx context.Context, tx *access.Tx, tenantID string, d Draft, faults []doorward.FieldError) error {
	rules, err := tx.Rules(ctx, tenantID)
	if err != nil {
		return err
	}
	if faults = append(faults, d.checkRoles(rules)...); len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

// looked is what a provider has said of itself to a change that names it; the zero value: it wasn't asked.
type looked struct {
	oidc *oidcrp.Discovery
	saml *metadata.Provider
	from source // of saml
}

// look asks the provider that a change of the connection names, unless there are faults already: the issuer, if it is
// another one than before, or the metadata. It returns the faults with those that it has found. Errors: forbidden,
// too_many_attempts, those of ctx.
func (c *Connections) look(ctx context.Context, by doorward.Caller, of doorward.Connection, before doorward.ConnectionParameters, issuer string, d Draft, faults []doorward.FieldError) (l looked, all []doorward.FieldError, err error) {
	if of.Type == doorward.SAML {
		return c.lookSAML(ctx, by, of, before, d, faults)
	}
	if issuer == before.Issuer {
		return l, faults, nil
	}
	said, seen, err := c.Look(ctx, of.TenantID, issuer, faults)
	l.oidc = said
	return l, append(faults, seen...), err
}

// provider returns what the provider of type saml has said; the zero value: nothing.
func (l looked) provider() (said metadata.Provider) {
	if l.saml != nil {
		said = *l.saml
	}
	return said
}

// addTo adds to a new connection of type saml what its provider has said: also whether it wants signed requests, unless
// the draft says that.
func (l looked) addTo(made *doorward.Connection, d Draft) error {
	if l.saml == nil {
		return nil
	}
	if d.SignRequests == nil {
		made.SignRequests = l.saml.WantsSigned
	}
	const byLink = false // which makes no connection
	return l.setSAML(d, doorward.ConnectionParameters{}, &made.InForce, byLink)
}

// complete keeps what the provider has said, and makes the first key where one is needed.
func (c *Connections) complete(ctx context.Context, tx *access.Tx, was doorward.Connection, isPending bool, p doorward.ConnectionParameters, l looked) error {
	if was.Type == doorward.SAML {
		return c.keepSAML(ctx, tx, was, isPending, p, l)
	}
	if l.oidc != nil {
		if err := provider.Keep(ctx, tx.Tx, was.ID, isPending, p.Issuer, *l.oidc); err != nil {
			return err
		}
	}
	if p.ClientAuth != doorward.PrivateKeyJWT {
		return nil
	}
	return c.EnsureKey(ctx, tx.Tx, was.ID)
}

// Change is how a connection is to be changed.
type Change struct {
	Draft
	// Versions, unless empty, are those that the change is based on.
	Versions []string
	// DryRun returns what disabling would end, and changes nothing.
	DryRun bool
}

// Edit changes a connection, completely or not at all, and returns it with what disabling it has ended.
// What an active connection signs people in by is pending until it has passed a test and is switched; of a
// draft it is in force at once. Errors: not_found, precondition_failed, connection_not_tested,
// too_many_attempts, master_key_missing, certificate_needed, validation_failed; unavailable also where the connection is changed and some people
// don't have their new roles yet: a sweep gives them, as does the same call again.
func (c *Connections) Edit(ctx context.Context, by doorward.Caller, id string, change Change) (after Shown, ended Ended, err error) {
	found, err := find(ctx, c.db.Read(), by, id)
	if err != nil {
		return after, ended, err
	}
	operations, err := c.operations(ctx, by, found, change, &ended)
	if err != nil {
		return after, ended, err
	}
	last := &operations[len(operations)-1]
	write := last.Write
	last.Write = func(tx *access.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		after, err = show(ctx, tx.Reader, by, id)
		return err
	}
	ended.Revocation, err = c.perform(ctx, by, change.DryRun, operations...)
	if err == nil && !change.DryRun {
		err = member.FinishMappings(ctx, c.db, c.writer, by, found)
	}
	return after, ended, err
}

// operations returns the steps of a change: what is edited, then the status.
func (c *Connections) operations(ctx context.Context, by doorward.Caller, found doorward.Connection, change Change, ended *Ended) (all []access.Operation, err error) {
	checked := func(_ *access.Tx, was doorward.Connection) error {
		return doorward.CheckVersion(was.Version(), change.Versions)
	}
	if change.changesAny() || change.Status == nil {
		write, err := c.edit(ctx, by, found, change.Draft)
		if err != nil {
			return nil, err
		}
		all = append(all, onConnection(ctx, by, doorward.ConnectionUpdate, found, checked, write))
	}
	if change.Status == nil {
		return all, nil
	}
	if len(all) > 0 {
		checked = func(*access.Tx, doorward.Connection) error { return nil } // the first step has, and changes it
	}
	switch doorward.ConnectionStatus(*change.Status) {
	case doorward.ConnectionActive:
		return append(all, onConnection(ctx, by, doorward.ConnectionEnable, found, checked, enable(ctx))), nil
	case doorward.ConnectionDisabled:
		return append(all, onConnection(ctx, by, doorward.ConnectionDisable, found, checked, c.disable(ctx, change.DryRun, ended))), nil
	}
	return nil, doorward.Invalid("/status", "invalid", "Write active or disabled.")
}

// writeConnection changes a connection, which is read again under the lock on its tenant.
type writeConnection func(tx *access.Tx, was doorward.Connection) error

// onConnection returns the operation that reads the connection again, and then calls each function.
func onConnection(ctx context.Context, by doorward.Caller, action doorward.Action, found doorward.Connection, writes ...writeConnection) access.Operation {
	return access.Operation{Action: action, On: object(found), Write: func(tx *access.Tx) error {
		was, err := find(ctx, tx.Reader, by, found.ID)
		for _, write := range writes {
			if err == nil {
				err = write(tx, was)
			}
		}
		return err
	}}
}

// edit returns the function that writes the draft. A new provider is asked before, as the caller may, and keys are made.
func (c *Connections) edit(ctx context.Context, by doorward.Caller, found doorward.Connection, d Draft) (writeConnection, error) {
	d.Type = string(found.Type)
	proposed := found
	parameters, _ := found.ToTest()
	before := parameters
	faults := append(d.setOwn(&proposed), d.setParameters(&parameters)...)
	if parameters.Issuer != before.Issuer || found.Type == doorward.SAML {
		if err := c.writer.Require(ctx, by, doorward.ConnectionUpdate, object(found)); err != nil {
			return nil, err
		}
	}
	known, faults, err := c.look(ctx, by, found, before, parameters.Issuer, d, faults)
	if err != nil {
		return nil, err
	}
	keys, err := c.newKeys(ctx, by, doorward.ConnectionUpdate, proposed)
	if err != nil {
		return nil, err
	}
	return func(tx *access.Tx, was doorward.Connection) error {
		if err := checkUnderLock(ctx, tx, was.TenantID, d, faults); err != nil {
			return err
		}
		ownChanged, err := writeOwn(ctx, tx, was, d)
		if err != nil {
			return err
		}
		certificatesChanged, err := writeCertificates(ctx, tx, was, d)
		if err != nil {
			return err
		}
		parametersChanged, err := c.writeParameters(ctx, tx, was, d, known)
		if err == nil && !ownChanged && !certificatesChanged && !parametersChanged {
			tx.SkipEvent()
		}
		if err == nil {
			err = c.SAML.AddKeys(ctx, tx.Tx, was.ID, keys)
		}
		return err
	}, nil
}

// writeOwn writes what is in force at once, and reports whether it has changed. It is the one place where these
// settings of a connection change. Errors: forbidden for a set-up link, whatever it would change here.
func writeOwn(ctx context.Context, tx *access.Tx, was doorward.Connection, d Draft) (bool, error) {
	is := was
	d.setOwn(&is)
	if !record(tx, ownFields(was), ownFields(is)) {
		return false, nil
	}
	if tx.By.Kind == doorward.BySetupLink {
		return false, doorward.Fail(doorward.CodeForbidden, "By a set-up link only what the connection signs in by can be changed. Ask the person who sent it for the rest.")
	}
	if err := tx.UpdateConnection(ctx, is); err != nil {
		return false, err
	}
	return true, member.ApplyMappings(ctx, tx, was)
}

// writeParameters writes what the connection signs people in by, and reports whether it has changed: of a
// draft what is in force, of an active connection what is pending. A provider that somebody has changed at
// the same time, so that nobody has asked it, is a conflict.
func (c *Connections) writeParameters(ctx context.Context, tx *access.Tx, was doorward.Connection, d Draft, known looked) (bool, error) {
	before, wasPending := was.ToTest()
	isPending := wasPending || was.Status == doorward.ConnectionActive
	after := before
	d.setParameters(&after)
	isChanged, err := c.recordParameters(ctx, tx, was, d, before, &after, known)
	if err != nil || !isChanged {
		return false, err
	}
	if isPending {
		if was.Type == doorward.OpenIDConnect && (after.Issuer == "" || after.ClientID == "") {
			return false, doorward.Invalid(emptyOf(after), "required", "A connection that has signed people in needs this.")
		}
		tx.Changed("pending", "", "true")
	}
	if was.Type == doorward.OpenIDConnect && after.Issuer != before.Issuer && after.Issuer != "" && (known.oidc == nil || known.oidc.Issuer != after.Issuer) {
		return false, doorward.Fail(doorward.CodePreconditionFailed, "Somebody else has changed the issuer at the same time.")
	}
	if err := tx.SetConnectionParameters(ctx, was.ID, isPending, after); err != nil {
		return false, err
	}
	if !isPending && was.Status == doorward.ConnectionDisabled && isOtherClient(before, after) {
		if err := tx.MarkConnectionSwitched(ctx, was.ID); err != nil {
			return false, err
		}
	}
	return true, c.complete(ctx, tx, was, isPending, after, known)
}

// recordParameters adds what the provider has said to the parameters, and the differences to the event, and reports
// whether there are any. Errors: precondition_failed, validation_failed.
func (c *Connections) recordParameters(ctx context.Context, tx *access.Tx, was doorward.Connection, d Draft, before doorward.ConnectionParameters, after *doorward.ConnectionParameters, known looked) (bool, error) {
	if was.Type != doorward.SAML {
		none := metadata.Provider{}
		return record(tx, parameterFields(was.Type, before, none), parameterFields(was.Type, *after, none)), nil
	}
	if err := known.setSAML(d, before, after, tx.By.Kind == doorward.BySetupLink); err != nil {
		return false, err
	}
	_, wasPending := was.ToTest()
	saidBefore, err := samlprovider.Kept(ctx, tx.Reader, was.ID, wasPending, before)
	saidAfter := saidBefore
	if known.saml != nil {
		saidAfter = samlprovider.Without(*known.saml, after.RemovedCertificates)
	}
	return record(tx, samlFields(before, saidBefore), samlFields(*after, saidAfter)), err
}

func emptyOf(p doorward.ConnectionParameters) (pointer string) {
	if p.Issuer == "" {
		return "/issuer"
	}
	return "/clientId"
}

// isOtherClient reports whether subjects may mean other people.
func isOtherClient(a, b doorward.ConnectionParameters) bool {
	return a.Issuer != b.Issuer || a.ClientID != b.ClientID || a.SubjectFrom != b.SubjectFrom
}

// record adds the differences to the event and reports whether there are any.
func record(tx *access.Tx, was, is []field) (changed bool) {
	for i, before := range was {
		if before != is[i] {
			tx.Changed(before.name, before.value, is[i].value)
			changed = true
		}
	}
	return changed
}

// Refresh reads what the provider of a connection says of itself now, and returns the connection as it is then. What can't
// be read changes nothing. Errors: not_found, forbidden, too_many_attempts, provider_unavailable; validation_failed for
// what the provider says, and for what can't be read at an address.
func (c *Connections) Refresh(ctx context.Context, by doorward.Caller, id string) (Shown, error) {
	found, err := find(ctx, c.db.Read(), by, id)
	if err != nil {
		return Shown{}, err
	}
	if err := c.writer.Require(ctx, by, doorward.ConnectionUpdate, object(found)); err != nil {
		return Shown{}, err
	}
	if err := c.ReadNow(ctx, by, found); err != nil {
		return Shown{}, err
	}
	return show(ctx, c.db.Read(), by, id)
}

// Switched is what a switch has put in force, or would.
type Switched struct {
	Shown
	// Identities is how many identities count only once they are used again, since issuer or client are
	// others. People has some of those whom that concerns, in a dry run.
	Identities int
	People     []Person
}

// Switch puts in force what is pending, once a test of exactly that has passed. A dry run changes nothing.
// Errors: not_found, nothing_pending, connection_not_tested, certificate_needed.
func (c *Connections) Switch(ctx context.Context, by doorward.Caller, id string, isDryRun bool) (done Switched, err error) {
	found, err := find(ctx, c.db.Read(), by, id)
	if err != nil {
		return done, err
	}
	_, err = c.perform(ctx, by, isDryRun, onConnection(ctx, by, doorward.ConnectionSwitch, found, func(tx *access.Tx, was doorward.Connection) error {
		done = Switched{}
		switch {
		case was.Pending == nil:
			return doorward.Fail(doorward.CodeNothingPending, "")
		case was.Pending.TestedAt == nil:
			return doorward.Fail(doorward.CodeConnectionNotTested, "")
		}
		if err := recordSwitch(ctx, tx, was); err != nil {
			return err
		}
		newClient := isOtherClient(was.InForce, *was.Pending)
		if newClient {
			if err := done.concern(ctx, tx.Reader, id); err != nil {
				return err
			}
		}
		if _, err := tx.SwitchConnection(ctx, id, newClient); err != nil {
			return err
		}
		done.Shown, err = show(ctx, tx.Reader, by, id)
		return err
	}))
	return done, err
}

// recordSwitch adds to the event what a switch changes. Errors: certificate_needed if all certificates of the provider to
// come were taken away since the test.
func recordSwitch(ctx context.Context, tx *access.Tx, was doorward.Connection) error {
	var now, next metadata.Provider
	if was.Type == doorward.SAML {
		var err error
		if now, err = samlprovider.Kept(ctx, tx.Reader, was.ID, inForce, was.InForce); err != nil {
			return err
		}
		if next, err = samlprovider.Kept(ctx, tx.Reader, was.ID, pending, *was.Pending); err != nil {
			return err
		}
		if len(next.Certificates) == 0 {
			return doorward.Fail(doorward.CodeCertificateNeeded, "")
		}
	}
	record(tx, parameterFields(was.Type, was.InForce, now), parameterFields(was.Type, *was.Pending, next))
	return nil
}

// DropPending drops what is pending. Errors: not_found, nothing_pending.
func (c *Connections) DropPending(ctx context.Context, by doorward.Caller, id string) error {
	found, err := find(ctx, c.db.Read(), by, id)
	if err != nil {
		return err
	}
	_, err = c.perform(ctx, by, false, onConnection(ctx, by, doorward.ConnectionUpdate, found, func(tx *access.Tx, was doorward.Connection) error {
		dropped, err := tx.DeletePendingParameters(ctx, id)
		if err == nil && !dropped {
			err = doorward.Fail(doorward.CodeNothingPending, "")
		}
		tx.Changed("pending", "true", "")
		return err
	}))
	return err
}
