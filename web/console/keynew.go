package console

import (
	"context"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/web/ui"
)

// newKey is the form for a key.
type newKey struct {
	pageData
	Roles []roleChoice
	Role  doorward.Role
	// Suggested are the members that it can belong to.
	Suggested suggestions
	permissionForm
	keyLimits
}

// defaultKeyRole is the role of a key unless another one is chosen, as in the API.
const defaultKeyRole = doorward.RoleUser

func (h *console) newKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	body := newKey{pageData: s, Role: requestedRole(c), keyLimits: h.keyLimits()}
	if !c.Caller.Rules.Has(body.Role) || body.Role == doorward.RoleOwner {
		body.Role = defaultKeyRole
	}
	for _, role := range highestFirst(c.Caller.Rules) {
		if role != doorward.RoleOwner && c.CanOn(doorward.APIKeyCreate, doorward.Object{TenantID: s.Tenant.ID, Granted: role}) {
			body.Roles = append(body.Roles, roleChoice{role, role == body.Role})
		}
	}
	body.permissionForm = keyPermissions(c.Caller.Rules, body.Role, sentPermissions(c))
	c.Suggest("owner", c.Caller.Email)
	body.Suggested, err = h.suggestMembers(ctx, c, c.Value("owner"))
	return ui.View{Page: "keynew", Body: body, Wide: true}, err
}

// RolePicker is the field for the role. Its button shows what the role lets a key have.
func (n newKey) RolePicker(f ui.Frame) rolePicker {
	return rolePicker{Frame: f, Choices: n.Roles, Fault: f.Faults["role"], Button: "keys.role.button", Action: f.Base + "/console/keys/new/role"}
}

// keySecret is the only page that shows the secret of a key.
type keySecret struct {
	pageData
	Key     apiKey
	Secret  string
	Rotated bool
}

// createKey shows the secret in its answer, which can't be loaded again.
func (h *console) createKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	draft := apikey.Draft{
		Name: c.Value("name"), Role: c.Value("role"), Permissions: c.Values("permissions"), AllowedIPs: strings.Fields(c.Value("allowedIps")),
	}
	var faults []doorward.FieldError
	draft.Days, faults = optionalNumber(c, "days", faults)
	draft.PerSecond, faults = optionalNumber(c, "perSecond", faults)
	ownerID, faults, err := h.ownerOf(ctx, c, faults)
	if err != nil {
		return ui.View{}, err
	}
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	draft.OwnerID = ownerID
	k, secret, err := h.app.APIKeys.Create(ctx, c.Caller, draft)
	if err != nil {
		return ui.View{}, faultsToFormFields(err)
	}
	return h.showSecret(ctx, c, k, secret.Reveal(), firstSecret)
}

// Values of the parameter rotated of showSecret and showWebhookSecret.
const (
	firstSecret   = false
	rotatedSecret = true
)

func (h *console) showSecret(ctx context.Context, c *ui.Call, k doorward.APIKey, secret string, rotated bool) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	one, err := h.apiKey(ctx, c, k)
	c.DropForm() // the language switch would send the form again, and the secret would be lost
	return ui.View{Page: "keysecret", Scripts: []string{"secret.js"}, Body: keySecret{s, one, secret, rotated}}, err
}

// ownerOf returns the id of the member whose address is in the field, or of the caller if the
// field is empty, and faults, with one more if no member has the address.
func (h *console) ownerOf(ctx context.Context, c *ui.Call, faults []doorward.FieldError) (string, []doorward.FieldError, error) {
	email := strings.ToLower(strings.TrimSpace(c.Value("owner")))
	if email == "" || email == c.Caller.Email {
		return c.Caller.ID, faults, nil
	}
	u, err := h.app.Users.GetByEmail(ctx, c.Caller, email)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return "", append(faults, doorward.FieldError{Pointer: "/owner", Code: "invalid", Message: "No member has this address."}), nil
	}
	return u.ID, faults, err
}
