package api

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/front"
)

// memberView is a user in a list of a tenant's people, without the fields that are
// the same for all.
type memberView struct {
	ID          string              `json:"id" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Email       string              `json:"email" format:"email"`
	Name        string              `json:"name" doc:"Empty when not given"`
	Role        doorward.Role       `json:"role" example:"USER"`
	Status      doorward.UserStatus `json:"status" enum:"active,suspended"`
	SuspendedBy []string            `json:"suspendedBy,omitempty" example:"[\"administrator\"]" doc:"Why the person is suspended: administrator, and the ids of the connections whose directories have switched the person off; absent for active people"`
	CreatedAt   time.Time           `json:"createdAt" doc:"When the person joined the tenant"`
	LastLoginAt *time.Time          `json:"lastLoginAt,omitempty" doc:"Absent before the first login to the tenant"`
	MFAReset    *front.MFAReset     `json:"mfaReset,omitempty" doc:"While the tenant's word for a reset of the second factors holds"`
}

type userList struct {
	Items []memberView `json:"items"`
	front.PageInfo
}

// csvFormat chooses a file in place of JSON.
var csvFormat = front.Parameter{Name: "format", Description: "Format of the answer; json if absent. `spreadsheet` is csv with a byte order mark, by which spreadsheets know UTF-8", Enum: []string{"json", "csv", front.Spreadsheet}}

var docUsers = front.Doc{
	ID: "listUsers", Tag: "People", Summary: "List the people of the tenant",
	Description: "The oldest membership first, unless sorted otherwise. Pages neither repeat nor skip people when others are added or removed. With `format=csv` the answer is a file for spreadsheets, for which a session needs a recent proof of identity; text that a spreadsheet would take for a formula begins with an apostrophe.",
	List:        true,
	Sort:        []string{"createdAt", "name", "email", "role", "status", "lastLoginAt"},
	Query: []front.Parameter{
		{Name: "role", Description: "Only people with this role, built in or made by the tenant", Example: "USER"},
		{Name: "status", Description: "Only people with this status", Enum: []string{"active", "suspended"}},
		{Name: "factor", Description: "Only people who have any second factor that can be used, or none; for those who manage people", Enum: []string{"any", "none"}},
		csvFormat,
		{Name: "q", Description: "Only people whose address or name contains these words, in any order, without regard to case and accents", Example: "ann"},
	},
	Errors: []doorward.Code{doorward.CodeStepUpRequired},
}

func (a *api) users(ctx context.Context, c *front.Call, _ front.None) (out userList, err error) {
	f, err := userFilter(c)
	if err != nil {
		return out, err
	}
	out.Items, out.PageInfo, err = front.List(ctx, c, front.With(f, a.app.Users.List), func(u doorward.User) memberView {
		return memberView{
			ID: u.ID, Email: u.Email, Name: u.Name, Role: u.Role, Status: u.Status, SuspendedBy: u.Suspensions(), CreatedAt: u.CreatedAt, LastLoginAt: u.LastLoginAt,
			MFAReset: front.ViewMFAReset(u),
		}
	})
	return out, err
}

func userFilter(c *front.Call) (f user.Filter, err error) {
	err = c.Filters(front.To("role", &f.Role), front.To("status", &f.Status), front.To("factor", &f.Factor), front.To("q", &f.Text))
	return f, err
}

func (a *api) userRows(ctx context.Context, c *front.Call, w doorward.Window) ([][]string, *doorward.Position, error) {
	f, err := userFilter(c)
	if err != nil {
		return nil, nil, err
	}
	page, err := a.app.Users.List(ctx, c.Caller, f, w)
	return front.UserRows(page.Items), page.Next, err
}

var docUser = front.Doc{
	ID: "getUser", Tag: "People", Summary: "Show a person of the tenant",
	Versioned: true,
	Errors:    []doorward.Code{doorward.CodeNotFound},
}

func (a *api) user(ctx context.Context, c *front.Call, _ front.None) (front.User, error) {
	target, err := member(c)
	if err != nil {
		return front.User{}, err
	}
	u, err := a.app.Users.Get(ctx, c.Caller, target.ID)
	return withVersion(c, u, err, front.ViewUser)
}

// member returns the user of the path, in the caller's tenant, by id alone: the database isn't
// read.
func member(c *front.Call) (doorward.User, error) {
	id, err := c.ID("id", doorward.PrefixUser)
	return doorward.User{ID: id, TenantID: c.Caller.TenantID}, err
}

// changedMember is member for a change. It refuses unknown parameters: a misspelt
// one, or one of a later version, may have been meant to restrict the change.
func changedMember(c *front.Call) (doorward.User, error) {
	if err := c.RefuseUnknownParameters(); err != nil {
		return doorward.User{}, err
	}
	return member(c)
}

// dryRun asks for the answer that the action would have, without doing it.
var dryRun = front.Parameter{Name: "dryRun", Description: "With `true` nothing is changed, recorded or mailed: the answer says what would be", Enum: []string{"true", "false"}}

// endParameters are those of operations that may end what depends on a membership.
var endParameters = []front.Parameter{
	dryRun,
	{Name: "apiKeys", Description: "What becomes of the API keys that the person owns in this tenant: `end`, the default, or `transfer` to another owner; transferred keys end unless they are rotated within 7 days", Enum: []string{"end", "transfer"}},
	{Name: "ownerId", Description: "With `apiKeys=transfer` the next owner, an active member; if absent the caller, who must then be a person"},
}

// handover reads the parameters about API keys.
func handover(c *front.Call) (h user.Handover, err error) {
	keys, isGiven, err := c.Given("apiKeys")
	if err != nil {
		return h, err
	}
	if isGiven && keys != "end" && keys != "transfer" {
		return h, doorward.InvalidFields(doorward.FieldError{Parameter: "apiKeys", Code: "invalid", Message: "Write apiKeys=end or apiKeys=transfer."})
	}
	h.Transfer = keys == "transfer"
	if h.OwnerID, isGiven, err = c.Given("ownerId"); err == nil && isGiven && h.OwnerID == "" {
		err = doorward.InvalidFields(doorward.FieldError{Parameter: "ownerId", Code: "invalid", Message: "Name the next owner, or leave this out."})
	}
	return h, err
}

type editUserInput struct {
	Role   *string `json:"role,omitempty" example:"USER"`
	Status *string `json:"status,omitempty" enum:"active,suspended"`
	Name   *string `json:"name,omitempty" doc:"At most 100 characters; empty clears it"`
	// FromDirectory is a pointer, so that false is refused and doesn't look as if it did something.
	FromDirectory *bool `json:"fromDirectory,omitempty" doc:"With true, the role is that of the directory's groups from now on, also below one that an OWNER gave by hand. Only an OWNER may send it, and not with a role; false is 422 invalid: give a role"`
}

type editedUser struct {
	User  front.User  `json:"user"`
	Ended front.Ended `json:"ended" doc:"What a suspension has ended"`
}

// overrideParameter lets an OWNER lift what a directory has decided.
var overrideParameter = front.Parameter{Name: "override", Description: "With `true` and `status` active, a suspension by a directory that runs ends, too. Only an OWNER may send `true`", Enum: []string{"true", "false"}}

var docEditUser = front.Doc{
	ID: "editUser", Tag: "People", Summary: "Change role, status or name of a person",
	Description: "All changes or none. Effective on every node before the answer. An ADMIN changes USERs and VIEWERs and grants up to ADMIN; only an OWNER changes ADMINs and OWNERs. A suspension ends the sessions in this tenant, the API keys that the person owns (unless `apiKeys` is `transfer`), the invitations that the person has sent, and reset links when no active membership is left; webhooks that the person has made go on, and are named in the answer; a change of role ends no session and counts at once. Making somebody active ends the administrator's suspension; one by a directory that runs stays, and alone it is 409 `managed_by_directory`. With `If-Match`, a change by somebody else since is 412. Suspending oneself clears the cookie. A person changes the own name at most 120 times an hour, together with other changes of the account.",
	Versioned:   true,
	Query:       append(slices.Clone(endParameters), overrideParameter),
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeInvalidQuery, doorward.CodeNotFound, doorward.CodeLastOwner, doorward.CodeNoWayBack, doorward.CodeManagedByDirectory, doorward.CodePreconditionFailed, doorward.CodeQuotaExceeded, doorward.CodeTooManyAttempts},
}

func (a *api) editUser(ctx context.Context, c *front.Call, in editUserInput) (editedUser, error) {
	target, err := changedMember(c)
	if err != nil {
		return editedUser{}, err
	}
	isDryRun, err := c.Flag("dryRun")
	if err != nil {
		return editedUser{}, err
	}
	override, err := c.Flag("override")
	if err != nil {
		return editedUser{}, err
	}
	keys, err := handover(c)
	if err != nil {
		return editedUser{}, err
	}
	if in.FromDirectory != nil && !*in.FromDirectory {
		return editedUser{}, doorward.Invalid("/fromDirectory", "invalid", "Send true, or give a role.")
	}
	u, ended, err := a.app.Users.Edit(ctx, c.Caller, target, user.Edit{
		FromDirectory: in.FromDirectory != nil,
		Role:          (*doorward.Role)(in.Role), Status: (*doorward.UserStatus)(in.Status), Name: in.Name, Keys: keys, Override: override, Versions: c.Versions(), DryRun: isDryRun,
	})
	if err != nil || isDryRun {
		return editedUser{front.ViewUser(u), front.ViewEnded(ended)}, err
	}
	if u.ID == c.Caller.ID && u.Status == doorward.UserSuspended {
		c.ClearSession()
	}
	c.SetRevocation(ended.Revocation)
	c.SetVersion(u.Version())
	return editedUser{front.ViewUser(u), front.ViewEnded(ended)}, nil
}

// endOnly is the answer of an operation that returns only the counts of what has ended.
type endOnly struct {
	Ended front.Ended `json:"ended"`
}

var docRemoveUser = front.Doc{
	ID: "removeUser", Tag: "People", Summary: "Remove a person from the tenant",
	Description: "Ends the membership and everything that a suspension ends. The account stays, and so do memberships in other tenants. With `If-Match`, a change by somebody else since is 412. Removing oneself clears the cookie.",
	Conditional: true,
	Query:       endParameters,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeInvalidQuery, doorward.CodeNotFound, doorward.CodeLastOwner, doorward.CodeNoWayBack, doorward.CodePreconditionFailed, doorward.CodeValidationFailed},
}

func (a *api) removeUser(ctx context.Context, c *front.Call, _ front.None) (endOnly, error) {
	target, err := changedMember(c)
	if err != nil {
		return endOnly{}, err
	}
	isDryRun, err := c.Flag("dryRun")
	if err != nil {
		return endOnly{}, err
	}
	keys, err := handover(c)
	if err != nil {
		return endOnly{}, err
	}
	if isDryRun {
		counts, err := a.app.Users.TryRemove(ctx, c.Caller, target, keys, c.Versions())
		return endOnly{front.ViewEnded(counts)}, err
	}
	return a.endUser(ctx, c, func(ctx context.Context, by doorward.Caller, target doorward.User) (doorward.Ended, error) {
		return a.app.Users.Remove(ctx, by, target, keys, c.Versions())
	})
}

var docSignOutUser = front.Doc{
	ID: "signOutUser", Tag: "People", Summary: "Sign a person out of the tenant",
	WhilePaused: true,
	Description: "Ends the sessions in this tenant, on every node before the answer. Signing oneself out clears the cookie.",
	Errors:      []doorward.Code{doorward.CodeInvalidQuery, doorward.CodeNotFound},
}

func (a *api) signOutUser(ctx context.Context, c *front.Call, _ front.None) (endOnly, error) {
	return a.endUser(ctx, c, a.app.Users.SignOut)
}

// endUser runs an operation that ends the person's sessions, perhaps the caller's own.
func (a *api) endUser(ctx context.Context, c *front.Call, act func(context.Context, doorward.Caller, doorward.User) (doorward.Ended, error)) (endOnly, error) {
	target, err := changedMember(c)
	if err != nil {
		return endOnly{}, err
	}
	counts, err := act(ctx, c.Caller, target)
	c.SetRevocation(counts.Revocation)
	if err == nil && target.ID == c.Caller.ID {
		c.ClearSession()
	}
	return endOnly{front.ViewEnded(counts)}, err
}
