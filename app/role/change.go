package role

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// Draft is a new role, as typed.
type Draft struct {
	Name, About string
	Permissions []string
}

// Edit has the changes to a role; nil fields stay unchanged.
type Edit struct {
	Name, About *string
	Permissions *[]string
	// Versions, unless empty, are the versions that the edit is based on; see
	// doorward.CustomRole.Version.
	Versions []string
}

var nameForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,31}$`)

func fault(pointer, code, message string) doorward.FieldError {
	return doorward.FieldError{Pointer: pointer, Code: code, Message: message}
}

func checkName(name string) []doorward.FieldError {
	switch {
	case name == "":
		return []doorward.FieldError{fault("/name", "required", "Name the role.")}
	case !nameForm.MatchString(name):
		return []doorward.FieldError{fault("/name", "invalid", "A name has 2 to 32 capital letters, digits and underscores, and begins with a letter.")}
	case doorward.Role(name).IsBuiltIn():
		return []doorward.FieldError{fault("/name", "taken", "This is the name of a built-in role.")}
	}
	return nil
}

// parsePermissions returns the permissions, sorted and each once, and the faults: none given,
// more than there are, or one that the model doesn't have.
func parsePermissions(m *doorward.Model, typed []string) (all []doorward.Action, faults []doorward.FieldError) {
	if len(typed) == 0 {
		return nil, []doorward.FieldError{fault("/permissions", "required", "Say what the role may do: at least one permission.")}
	}
	if len(typed) > len(m.Verbs()) {
		return nil, []doorward.FieldError{fault("/permissions", "out_of_range", "These are more permissions than there are.")}
	}
	for i, text := range typed {
		if a := doorward.Action(text); m.IsPermission(a) {
			all = append(all, a)
		} else {
			faults = append(faults, fault(fmt.Sprintf("/permissions/%d", i), "invalid", "There is no such permission."))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), faults
}

// Create adds a role to the caller's tenant. Errors: forbidden for permissions that the
// caller lacks, too_many_roles, validation_failed.
func (r *Roles) Create(ctx context.Context, by doorward.Caller, d Draft) (created Role, err error) {
	permissions, faults := parsePermissions(by.Rules.Model(), d.Permissions)
	faults = slices.Concat(checkName(d.Name), doorward.CheckAbout("/about", d.About, doorward.RoleAboutMax), faults)
	c := doorward.CustomRole{ID: doorward.NewID(doorward.PrefixRole), Name: doorward.Role(d.Name), About: d.About, Permissions: permissions}
	if len(checkName(d.Name)) > 0 {
		c.Name = "" // refusals quote the name, which isn't valid
	}
	on := object(by, c.ID, "")
	on.Grant = grant(by.Rules, c)
	_, err = r.writer.DoAll(ctx, by, access.Operation{
		Action: doorward.RoleCreate, On: on,
		ReadObject: r.objectUnderLock(ctx, by, on, func(rules *doorward.Rules, on *doorward.Object) { on.Grant = grant(rules, c) }),
		Write: func(tx *access.Tx) error {
			if len(faults) > 0 {
				return doorward.InvalidFields(faults...)
			}
			if err := insert(ctx, tx, by.TenantID, c); err != nil {
				return err
			}
			if created, err = get(ctx, tx.Reader, by.TenantID, c.ID); err != nil {
				return err
			}
			return tx.KeepAnswer(ctx, created)
		},
	})
	return created, err
}

// objectUnderLock returns a function that reads the object under the lock on the tenant: the
// rules may have changed since the first decision.
func (r *Roles) objectUnderLock(ctx context.Context, by doorward.Caller, on doorward.Object, fill func(*doorward.Rules, *doorward.Object)) func(*store.Tx) (doorward.Object, error) {
	return func(tx *store.Tx) (doorward.Object, error) {
		locked := on
		rules, err := tx.Rules(ctx, by.TenantID)
		if err == nil {
			fill(rules, &locked)
		}
		return locked, err
	}
}

func insert(ctx context.Context, tx *access.Tx, tenantID string, c doorward.CustomRole) error {
	others, err := tx.CustomRoles(ctx, tenantID)
	if err != nil {
		return err
	}
	if len(others) >= doorward.CustomRolesMax {
		return doorward.Fail(doorward.CodeTooManyRoles, "")
	}
	added, err := tx.InsertCustomRole(ctx, tenantID, c)
	if err == nil && !added {
		err = nameTaken()
	}
	record(tx, doorward.CustomRole{}, c)
	return err
}

func nameTaken() error {
	return doorward.Invalid("/name", "taken", "The tenant has a role of this name.")
}

// record adds the differences to the event and reports whether there are any.
func record(tx *access.Tx, was, is doorward.CustomRole) (changed bool) {
	for _, f := range []struct{ name, was, is string }{
		{doorward.FieldName, string(was.Name), string(is.Name)},
		{"about", was.About, is.About},
		{"permissions", joinActions(was.Permissions), joinActions(is.Permissions)},
	} {
		if f.was != f.is {
			tx.Changed(f.name, f.was, f.is)
			changed = true
		}
	}
	return changed
}

func joinActions(all []doorward.Action) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = string(a)
	}
	return strings.Join(texts, " ")
}

// Edit changes the role and returns it. The edit is applied completely or not at all. It is in
// force on every node when Edit returns, and everything that has the role gets its new name.
// Errors: not_found, forbidden for a built-in role, a role above the caller's or permissions that
// the caller lacks, denied_by_policy, precondition_failed, validation_failed.
func (r *Roles) Edit(ctx context.Context, by doorward.Caller, id string, e Edit) (after Role, revocation doorward.Revocation, err error) {
	write := func(tx *access.Tx, was doorward.CustomRole) error {
		rules, err := tx.Rules(ctx, by.TenantID)
		if err != nil {
			return err
		}
		is, err := e.apply(rules, was)
		if err != nil {
			return err
		}
		use, err := tx.RoleUse(ctx, by.TenantID, was.Name, tx.Now)
		if err == nil && !sameForHolders(was, is) {
			err = checkPolicies(&tx.By, tx.Now, use)
		}
		if err == nil && grant(rules, is).Rank.Outranks(doorward.RoleAdmin) {
			err = checkConnections(ctx, tx, by.TenantID, was.Name)
		}
		if err != nil {
			return err
		}
		if err := update(ctx, tx, by.TenantID, was, is); err != nil {
			return err
		}
		after, err = get(ctx, tx.Reader, by.TenantID, id)
		return err
	}
	revocation, err = r.change(ctx, by, doorward.RoleUpdate, id, write, e.setGrant)
	return after, revocation, err
}

// sameForHolders reports whether the edit changes nothing for those who have the role. The name
// counts, since policies read it.
func sameForHolders(was, is doorward.CustomRole) bool {
	return was.Name == is.Name && slices.Equal(was.Permissions, is.Permissions)
}

// checkPolicies returns the refusal if policies forbid the caller to change the role of members, the
// invitations or the API keys that have the role. Errors: denied_by_policy.
func checkPolicies(by *doorward.Caller, now time.Time, use store.RoleUse) error {
	for _, affected := range []struct {
		count  int64
		action doorward.Action
	}{{use.Members, doorward.UserRole}, {use.Invitations, doorward.UserInvite}, {use.Keys, doorward.APIKeyUpdate}} {
		if affected.count == 0 {
			continue
		}
		if err := decide.May(&by.Principal, &decide.Question{Action: affected.action, Request: by.RequestAt(now), Implied: true}).Err(); err != nil {
			return err
		}
	}
	return nil
}

// setGrant adds to the object what the edited role would grant.
func (e Edit) setGrant(rules *doorward.Rules, was doorward.CustomRole, on *doorward.Object) {
	if e.Permissions != nil {
		is, _ := e.change(rules.Model(), was)
		on.Grant = grant(rules, is)
	}
}

// apply returns the role as it is after the edit. Errors: precondition_failed,
// validation_failed.
func (e Edit) apply(rules *doorward.Rules, was doorward.CustomRole) (doorward.CustomRole, error) {
	if err := checkVersion(rules, was, e.Versions); err != nil {
		return was, err
	}
	is, faults := e.change(rules.Model(), was)
	if len(faults) > 0 {
		return was, doorward.InvalidFields(faults...)
	}
	return is, nil
}

// checkVersion is doorward.CheckVersion for the role as callers see it: only with the
// permissions that the model has.
func checkVersion(rules *doorward.Rules, c doorward.CustomRole, versions []string) error {
	return doorward.CheckVersion(view(rules, c, 0).Version(), versions) // the number of members is not in the version
}

// change returns the edited role, and the faults of the edit.
func (e Edit) change(m *doorward.Model, c doorward.CustomRole) (_ doorward.CustomRole, faults []doorward.FieldError) {
	if e.Name != nil {
		if faults = checkName(*e.Name); len(faults) == 0 {
			c.Name = doorward.Role(*e.Name)
		}
	}
	if e.About != nil {
		c.About = *e.About
		faults = append(faults, doorward.CheckAbout("/about", c.About, doorward.RoleAboutMax)...)
	}
	if e.Permissions != nil {
		permissions, wrong := parsePermissions(m, *e.Permissions)
		c.Permissions, faults = permissions, append(faults, wrong...)
	}
	return c, faults
}

// update writes the role, and replaces its old name in memberships, invitations, keys and the
// demand for second factors. Errors: validation_failed if the new name is taken.
func update(ctx context.Context, tx *access.Tx, tenantID string, was, is doorward.CustomRole) error {
	if !record(tx, was, is) {
		tx.SkipEvent()
		return nil
	}
	if was.Name != is.Name {
		taken, err := tx.HasRole(ctx, tenantID, is.Name)
		if err != nil {
			return err
		}
		if taken {
			return nameTaken()
		}
		if err := tx.MoveRole(ctx, tenantID, was.Name, is.Name); err != nil {
			return err
		}
		if err := updateDemand(ctx, tx, tenantID, was.Name, is.Name); err != nil {
			return err
		}
	}
	_, err := tx.UpdateCustomRole(ctx, tenantID, is)
	return err
}

// Delete deletes the role. If versions are given, the role must have one of them. Members,
// invitations and keys that have the role get replaceBy instead; if replaceBy is empty, there
// must be none. Errors: not_found, forbidden for a built-in role, a role above the caller's or a
// replacement that the caller can't give, precondition_failed, role_in_use, validation_failed.
func (r *Roles) Delete(ctx context.Context, by doorward.Caller, id string, replaceBy doorward.Role, versions ...string) (doorward.Revocation, error) {
	write := func(tx *access.Tx, was doorward.CustomRole) error {
		rules, err := tx.Rules(ctx, by.TenantID)
		if err == nil {
			err = checkVersion(rules, was, versions)
		}
		if err != nil {
			return err
		}
		tx.Changed(doorward.FieldName, string(was.Name), "")
		use, err := tx.RoleUse(ctx, by.TenantID, was.Name, tx.Now)
		if err == nil {
			err = checkConnections(ctx, tx, by.TenantID, was.Name)
		}
		if err != nil {
			return err
		}
		if replaceBy != "" {
			if err := checkPolicies(&tx.By, tx.Now, use); err != nil {
				return err
			}
			if err := replace(ctx, tx, by.TenantID, was.Name, replaceBy, use); err != nil {
				return err
			}
		} else if use.Any() {
			return doorward.Fail(doorward.CodeRoleInUse, "The role belongs to %d members, %d pending invitations and %d API keys.", use.Members, use.Invitations, use.Keys)
		}
		if err := updateDemand(ctx, tx, by.TenantID, was.Name, ""); err != nil {
			return err
		}
		_, err = tx.DeleteCustomRole(ctx, by.TenantID, id)
		return err
	}
	return r.change(ctx, by, doorward.RoleDelete, id, write, func(_ *doorward.Rules, _ doorward.CustomRole, on *doorward.Object) {
		on.Granted = replaceBy
	})
}

// checkConnections returns role_in_use if connections give the role: they may not give one that ranks above
// ADMIN, nor one that is gone.
func checkConnections(ctx context.Context, tx *access.Tx, tenantID string, role doorward.Role) error {
	n, err := tx.CountConnectionsGiving(ctx, tenantID, role)
	if err == nil && n > 0 {
		err = doorward.Fail(doorward.CodeRoleInUse, "It is given to people who sign in by %d of the tenant's connections. Choose another one there first.", n)
	}
	return err
}

func replace(ctx context.Context, tx *access.Tx, tenantID string, was, next doorward.Role, use store.RoleUse) error {
	known, err := tx.HasRole(ctx, tenantID, next)
	switch {
	case err != nil:
		return err
	case !known || next == was:
		return badReplacement("This is not another role of the tenant.")
	case next == doorward.RoleOwner && use.Keys > 0:
		return badReplacement("API keys have the role, and no key can be OWNER.")
	}
	tx.Changed("replacedBy", "", string(next))
	for _, n := range []struct {
		field string
		count int64
	}{{"members", use.Members}, {"invitations", use.Invitations}, {"apiKeys", use.Keys}} {
		if n.count > 0 {
			tx.Changed(n.field, "", strconv.FormatInt(n.count, 10))
		}
	}
	return tx.MoveRole(ctx, tenantID, was, next)
}

// updateDemand replaces the role old by next in the tenant's demand for second factors, or
// removes it if next is empty. Errors: role_in_use if the demand covers no other role, since
// without any it would cover everybody.
func updateDemand(ctx context.Context, tx *access.Tx, tenantID string, old, next doorward.Role) error {
	tenant, err := tx.Tenant(ctx, tenantID)
	if err != nil {
		return err
	}
	demand := &tenant.Settings.SecondFactor
	before, at := demand.RoleNames(), slices.Index(demand.Roles, old)
	switch {
	case at < 0:
		return nil
	case next != "":
		demand.Roles[at] = next
	case len(demand.Roles) == 1:
		return doorward.Fail(doorward.CodeRoleInUse, "The setting mfaRoles names this role alone. Change that setting first.")
	default:
		demand.Roles = slices.Delete(demand.Roles, at, at+1)
	}
	slices.Sort(demand.Roles)
	tx.Changed("mfaRoles", before, demand.RoleNames())
	return tx.EditTenant(ctx, tenant)
}

func badReplacement(message string) error {
	return doorward.InvalidFields(doorward.FieldError{Parameter: "replaceBy", Code: "invalid", Message: message})
}

// change runs write on a custom role of the caller's tenant, read again under the lock on
// the tenant. setGrant adds to the object what the change would grant.
func (r *Roles) change(ctx context.Context, by doorward.Caller, action doorward.Action, id string,
	write func(*access.Tx, doorward.CustomRole) error, setGrant func(*doorward.Rules, doorward.CustomRole, *doorward.Object),
) (doorward.Revocation, error) {
	readObject := func(read store.Reader) (doorward.Object, error) {
		c, err := current(ctx, read, by.TenantID, id)
		if err != nil {
			return doorward.Object{}, err
		}
		rules, err := read.Rules(ctx, by.TenantID)
		on := object(by, id, c.Name)
		if err == nil {
			setGrant(rules, c, &on)
		}
		return on, err
	}
	on, err := readObject(r.db.Read())
	if err != nil {
		refused := doorward.Object{Type: "role", ID: id, TenantID: by.TenantID}
		return doorward.Revocation{}, r.writer.RecordIfRefusal(ctx, by, action, refused, err)
	}
	return r.writer.DoAll(ctx, by, access.Operation{
		Action: action, On: on,
		ReadObject: func(tx *store.Tx) (doorward.Object, error) { return readObject(tx.Reader) },
		Write: func(tx *access.Tx) error {
			was, err := current(ctx, tx.Reader, by.TenantID, id)
			if err != nil {
				return err
			}
			return write(tx, was)
		},
	})
}
