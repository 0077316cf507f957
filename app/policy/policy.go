// Package policy shows and changes the policies of a tenant: Cedar text of "forbid"
// policies, which narrow what roles allow.
//
// A version can also only observe. Then it refuses nothing, what it would have refused is
// counted, and the version that refused before keeps refusing.
//
// All versions are kept. A change is in force on every node before the call returns. A
// version that has to be confirmed, and isn't, ends by itself on every node when its time is
// over. The version that was confirmed last is then in force again.
package policy

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/cedar"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/store"
)

// Version is one version of a tenant's policies.
type Version = store.PolicyVersion

// Mode says what a version does.
type Mode = store.PolicyMode

// InForce is the version in force.
type InForce struct {
	store.PolicyVersion
	// Observed counts what a version that only observes would have refused, for each policy of
	// its text; nil for a version that refuses.
	Observed []Observed
}

// Observed counts the decisions that a policy would have been the first to refuse.
type Observed struct {
	ID      string
	Refused int64
}

// The modes of a version.
const (
	Enforces = store.PolicyEnforces
	Observes = store.PolicyObserves // it refuses nothing
)

// ConfirmMinutesMax is how many minutes there may be to confirm a version.
const ConfirmMinutesMax = 60

// Policies is the feature. Make it with New.
type Policies struct {
	writer   *access.Writer
	db       *store.DB
	sessions *session.Sessions
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, sessions *session.Sessions) *Policies {
	return &Policies{writer, db, sessions}
}

// Tag returns the ETag of the version in force. It changes when the version is confirmed, and
// when it ends.
func Tag(v store.PolicyVersion) string {
	tag := strconv.FormatInt(v.Version, 10)
	if v.ConfirmUntil != nil {
		tag += "-unconfirmed"
	}
	return tag
}

// Current returns the version in force in the caller's tenant. Version 0 has no text.
// The counts of what it observes are up to date for this node, and up to a second old for
// others. Errors: unavailable.
func (p *Policies) Current(ctx context.Context, by doorward.Caller) (InForce, error) {
	s, err := stateOf(ctx, p.db.Read(), by.TenantID, p.db.Now())
	if err != nil {
		return InForce{}, err
	}
	return p.observed(ctx, s.inForce)
}

// observed returns the version with the counts of what it observes.
func (p *Policies) observed(ctx context.Context, v store.PolicyVersion) (InForce, error) {
	inForce := InForce{PolicyVersion: v}
	if v.Mode != store.PolicyObserves {
		return inForce, nil
	}
	if err := p.writer.Decisions().Flush(ctx); err != nil {
		return inForce, err
	}
	counts, err := p.db.Read().ObservedCounts(ctx, v.TenantID, v.Version)
	if err != nil {
		return inForce, err
	}
	schema, err := schemaOf(ctx, p.db.Read())
	if err != nil {
		return inForce, err
	}
	set, _, err := cedar.ParseStored(v.Text, schema)
	if err != nil {
		return inForce, doorward.Unavailable(err)
	}
	for _, id := range set.IDs() {
		inForce.Observed = append(inForce.Observed, Observed{id, counts[id]})
	}
	return inForce, nil
}

// state has a tenant's policies at an instant.
type state struct {
	store.Policies
	inForce store.PolicyVersion
	last    int64 // the highest version number
}

func stateOf(ctx context.Context, read store.Reader, tenantID string, at time.Time) (s state, err error) {
	s.inForce = store.PolicyVersion{TenantID: tenantID, Mode: store.PolicyEnforces}
	if s.Policies, err = read.Policies(ctx, tenantID); err != nil || s.Latest == nil {
		return s, err
	}
	s.last = s.Latest.Version
	if v := s.At(at); v != nil {
		s.inForce = *v
	}
	return s, nil
}

// enforcedBeside returns the version that keeps refusing while the version observed
// only observes; 0 for none. Usually that is the version that refuses now. But an unconfirmed
// version ends with its successor: if one is in force, the version that refused under the last
// confirmed one keeps refusing. A version with the text and time zone of the observing one doesn't refuse.
func (s state) enforcedBeside(observed store.PolicyVersion) int64 {
	base := &s.inForce
	if base.ConfirmUntil != nil {
		base = s.Confirmed
	}
	v := s.Refusing(base)
	if v == nil || v.Text == "" || v.Text == observed.Text && v.TimeZone == observed.TimeZone {
		return 0
	}
	return v.Version
}

// Versions returns the versions of the caller's tenant, the newest first. Errors:
// unavailable.
func (p *Policies) Versions(ctx context.Context, by doorward.Caller, w doorward.Window) (doorward.Page[store.PolicyVersion], error) {
	return p.db.Read().PolicyPage(ctx, by.TenantID, w)
}

// Get returns a version of the caller's tenant. Errors: not_found, unavailable.
func (p *Policies) Get(ctx context.Context, by doorward.Caller, version int64) (store.PolicyVersion, error) {
	v, err := p.db.Read().PolicyVersion(ctx, by.TenantID, version)
	if errors.Is(err, store.ErrNone) {
		return v, noVersion(version)
	}
	return v, err
}

func noVersion(version int64) error {
	return doorward.Fail(doorward.CodeNotFound, "There is no version %d.", version)
}

// Schema returns what policies may name, in Cedar's syntax for schemas. Errors:
// unavailable.
func (p *Policies) Schema(ctx context.Context) (string, error) {
	schema, err := schemaOf(ctx, p.db.Read())
	if err != nil {
		return "", err
	}
	return schema.Text(), nil
}

func schemaOf(ctx context.Context, read store.Reader) (*cedar.Schema, error) {
	model, err := modelOf(ctx, read)
	if err != nil {
		return nil, err
	}
	return rules.SchemaOf(model)
}

// modelOf returns the text of the model; empty is the built-in one.
func modelOf(ctx context.Context, read store.Reader) (string, error) {
	model, err := read.Model(ctx)
	if errors.Is(err, store.ErrNone) {
		return "", nil
	}
	return model.Text, err
}

// Draft is a new version.
type Draft struct {
	Text string
	Mode store.PolicyMode // empty: enforce
	// ConfirmMinutes is after how many minutes the version ends unless it is confirmed; 0: it
	// needs no confirmation.
	ConfirmMinutes int
	TimeZone       string // in which the text reads context.hour and context.weekday, an IANA name; empty: UTC
}

// check checks the mode, the time zone and the minutes, and sets the mode if it is empty. Errors:
// validation_failed.
func (d *Draft) check() error {
	faults := d.checkTimeZone()
	if d.Mode == "" {
		d.Mode = store.PolicyEnforces
	}
	if d.Mode != store.PolicyEnforces && d.Mode != store.PolicyObserves {
		faults = append(faults, doorward.FieldError{Pointer: "/mode", Code: "invalid", Message: "The modes are enforce and observe."})
	}
	if d.ConfirmMinutes < 0 || d.ConfirmMinutes > ConfirmMinutesMax {
		faults = append(faults, doorward.FieldError{Pointer: "/confirmMinutes", Code: "out_of_range", Message: "Give 1 to 60 minutes to confirm, or leave it out."})
	}
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

// checkTimeZone returns the fault of the time zone. UTC has one form, the empty one.
func (d *Draft) checkTimeZone() []doorward.FieldError {
	if d.TimeZone == "UTC" {
		d.TimeZone = ""
	}
	if _, err := rules.TimeZone(d.TimeZone); err != nil {
		return []doorward.FieldError{{Pointer: "/timeZone", Code: "invalid", Message: "Give the name of a time zone in the IANA database, such as Europe/Berlin, or leave it out for UTC."}}
	}
	return nil
}

// isAs reports whether the draft decides as the version does.
func (d *Draft) isAs(v store.PolicyVersion) bool {
	return d.Text == v.Text && d.Mode == v.Mode && d.TimeZone == v.TimeZone
}

// Check returns validation_failed unless the text has no faults, with the line and column
// of each.
func (p *Policies) Check(ctx context.Context, text string) error {
	schema, err := schemaOf(ctx, p.db.Read())
	if err != nil {
		return err
	}
	return check(text, schema)
}

// maxFaults is how many faults are reported at once.
const maxFaults = 50

func check(text string, schema *cedar.Schema) error {
	_, faults := cedar.Parse(text, schema)
	if len(faults) == 0 {
		return nil
	}
	var fields []doorward.FieldError
	for _, f := range faults[:min(len(faults), maxFaults)] {
		fields = append(fields, doorward.FieldError{Pointer: "/text", Line: f.Line, Column: f.Column, Code: string(f.Code), Message: f.Message})
	}
	return doorward.InvalidFields(fields...)
}

// Changed is a version that is in force on every node.
type Changed struct {
	InForce
	Revocation doorward.Revocation
}

// Put adds a version, which is in force on every node when Put returns. If the same text,
// mode and time zone are already in force and neither version needs a confirmation, there is no new version.
// If there are tags, the version in force must have one of them. Errors: validation_failed,
// precondition_failed, forbidden, unavailable.
func (p *Policies) Put(ctx context.Context, by doorward.Caller, d Draft, tags []string) (Changed, error) {
	if err := d.check(); err != nil {
		return Changed{}, err
	}
	if err := p.Check(ctx, d.Text); err != nil { // before the tenant's lock
		return Changed{}, err
	}
	return p.change(ctx, by, doorward.PolicyUpdate, tags, func(*access.Tx) (Draft, error) { return d, nil })
}

// Restore adds a version with the text, mode and time zone of an earlier one. Tags and errors
// are as for Put; not_found if there is no such version.
func (p *Policies) Restore(ctx context.Context, by doorward.Caller, version int64, tags []string) (Changed, error) {
	return p.change(ctx, by, doorward.PolicyRestore, tags, func(tx *access.Tx) (Draft, error) {
		v, err := tx.PolicyVersion(ctx, by.TenantID, version)
		if errors.Is(err, store.ErrNone) {
			return Draft{}, noVersion(version)
		}
		tx.Changed("restored", "", strconv.FormatInt(version, 10))
		return Draft{Text: v.Text, Mode: v.Mode, TimeZone: v.TimeZone}, err
	})
}

// change adds the version that draft returns.
func (p *Policies) change(ctx context.Context, by doorward.Caller, act doorward.Action, tags []string, draft func(*access.Tx) (Draft, error)) (c Changed, err error) {
	var v store.PolicyVersion
	c.Revocation, err = p.writer.Do(ctx, by, act, object(by), func(tx *access.Tx) error {
		s, err := stateOf(ctx, tx.Reader, by.TenantID, tx.Now)
		if err != nil {
			return err
		}
		before := s.inForce
		if err := doorward.CheckVersion(Tag(before), tags); err != nil {
			return err
		}
		d, err := draft(tx)
		if err != nil {
			return err
		}
		if v = before; d.isAs(before) && d.ConfirmMinutes == 0 && before.ConfirmUntil == nil {
			tx.SkipEvent()
			return nil
		}
		if err := checkNow(ctx, tx, d.Text); err != nil {
			return err
		}
		v = d.version(tx, by, s.last+1)
		if v.Mode == store.PolicyObserves {
			v.Enforced = s.enforcedBeside(v)
		}
		record(tx, before, v)
		return tx.InsertPolicy(ctx, v)
	})
	return p.withObserved(ctx, c, v, err)
}

// checkNow checks the text again, since the model may have changed. No other model is applied until
// the transaction ends.
func checkNow(ctx context.Context, tx *access.Tx, text string) error {
	if err := tx.LockModel(ctx); err != nil {
		return err
	}
	schema, err := schemaOf(ctx, tx.Reader)
	if err != nil {
		return err
	}
	return check(text, schema)
}

// withObserved adds the version, with what it has observed, to the answer of a change. It returns
// err if that is set.
func (p *Policies) withObserved(ctx context.Context, c Changed, v store.PolicyVersion, err error) (Changed, error) {
	if err == nil {
		c.InForce, err = p.observed(ctx, v)
	}
	return c, err
}

func (d Draft) version(tx *access.Tx, by doorward.Caller, number int64) store.PolicyVersion {
	v := store.PolicyVersion{
		TenantID: by.TenantID, Version: number, Text: d.Text, Mode: d.Mode, TimeZone: d.TimeZone, CreatedAt: tx.Now, CreatedBy: by.ID,
	}
	if d.ConfirmMinutes > 0 {
		until := tx.Now.Add(time.Duration(d.ConfirmMinutes) * time.Minute)
		v.ConfirmUntil = &until
	}
	return v
}

// record adds the change to the event, without the texts, since all versions are kept.
func record(tx *access.Tx, from, to store.PolicyVersion) {
	tx.Changed("version", strconv.FormatInt(from.Version, 10), strconv.FormatInt(to.Version, 10))
	if from.Mode != to.Mode {
		tx.Changed("mode", string(from.Mode), string(to.Mode))
	}
	if from.TimeZone != to.TimeZone {
		tx.Changed("timeZone", from.TimeZone, to.TimeZone)
	}
	if to.ConfirmUntil != nil {
		tx.Changed("confirmUntil", "", to.ConfirmUntil.UTC().Format(time.RFC3339))
	}
}

// Confirm keeps the version in force from ending. The caller's session must still
// be allowed to read the tenant and its people, so that a version that locks its author out
// ends by itself. Tags are as for Put. Errors: not_found if nothing waits to be confirmed,
// precondition_failed, forbidden, denied_by_policy, unavailable.
func (p *Policies) Confirm(ctx context.Context, by doorward.Caller, tags []string) (c Changed, err error) {
	var v store.PolicyVersion
	c.Revocation, err = p.writer.Do(ctx, by, doorward.PolicyConfirm, object(by), func(tx *access.Tx) error {
		s, err := stateOf(ctx, tx.Reader, by.TenantID, tx.Now)
		if err != nil {
			return err
		}
		before := s.inForce
		if err := doorward.CheckVersion(Tag(before), tags); err != nil {
			return err
		}
		if before.ConfirmUntil == nil {
			return doorward.Fail(doorward.CodeNotFound, "No version waits to be confirmed.")
		}
		for _, needed := range []doorward.Action{doorward.TenantRead, doorward.UserRead} {
			if err := decide.May(&tx.By.Principal, &decide.Question{Action: needed, On: tx.By.Tenant(), Request: tx.By.RequestAt(tx.Now)}).Err(); err != nil {
				return err
			}
		}
		if _, err := tx.ConfirmPolicy(ctx, by.TenantID, before.Version); err != nil {
			return err
		}
		v, v.ConfirmUntil = before, nil
		tx.Changed("version", "", strconv.FormatInt(before.Version, 10))
		return nil
	})
	return p.withObserved(ctx, c, v, err)
}

func object(by doorward.Caller) doorward.Object {
	return doorward.Object{Type: "policy", TenantID: by.TenantID}
}
