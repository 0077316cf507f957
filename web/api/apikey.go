package api

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/web/front"
)

type apiKeyList struct {
	Items []front.APIKey `json:"items"`
	front.PageInfo
}

var docAPIKeys = front.Doc{
	ID: "listApiKeys", Tag: "API keys", Summary: "List the tenant's API keys",
	Description: "The newest first, ended ones included. Pages neither repeat nor skip keys when others are added.",
	List:        true,
	Sort:        []string{"createdAt", "name", "expiresAt", "lastUsedAt"},
	Query: []front.Parameter{
		{Name: "owner", Description: "Only keys of this owner, the id of a user", Example: "usr_5tqm7x3yh4n6rj7wd2c5tpae7k"},
		{Name: "status", Description: "Only keys that are in this state now", Enum: []string{"active", "disabled", "expired", "revoked"}},
		{Name: "q", Description: "Only keys whose name contains these words, in any order, without regard to case and accents", Example: "export"},
	},
}

func (a *api) apiKeys(ctx context.Context, c *front.Call, _ front.None) (out apiKeyList, err error) {
	var f apikey.Filter
	if err := c.Filters(front.To("owner", &f.Owner), front.To("status", &f.Status), front.To("q", &f.Text)); err != nil {
		return out, err
	}
	now := a.app.Now()
	out.Items, out.PageInfo, err = front.List(ctx, c, front.With(f, a.app.APIKeys.List), func(k doorward.APIKey) front.APIKey { return front.ViewAPIKey(k, now) })
	return out, err
}

var docAPIKey = front.Doc{
	ID: "getApiKey", Tag: "API keys", Summary: "Show an API key",
	Description: "Never with its secret, of which only a hash is stored.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) apiKey(ctx context.Context, c *front.Call, _ front.None) (front.APIKey, error) {
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return front.APIKey{}, err
	}
	k, err := a.app.APIKeys.Get(ctx, c.Caller, id)
	return withVersion(c, &k, err, a.viewKey)
}

// viewKey returns the view of the key as it is now.
func (a *api) viewKey(k *doorward.APIKey) front.APIKey { return front.ViewAPIKey(*k, a.app.Now()) }

type createAPIKeyInput struct {
	Name          string     `json:"name" example:"Export of the shop" doc:"What will use it; at most 100 characters"`
	Permissions   []string   `json:"permissions" example:"[\"message.send\"]" doc:"1 to 100 of those that the role grants, except apikey.manage, policy.manage, role.manage, sso.manage and tenant.destroy, and those that the model keeps from keys"`
	Role          string     `json:"role,omitempty" example:"USER" doc:"At most one's own; USER if absent"`
	ExpiresInDays *front.Int `json:"expiresInDays,omitempty" minimum:"1" doc:"At most --key-max-days, 365 by default, which is also the default here"`
	AllowedIPs    []string   `json:"allowedIps,omitempty" example:"[\"192.0.2.0/24\"]" doc:"Up to 50 addresses or networks (CIDR) that it may be used from; all if absent"`
	PerSecond     *front.Int `json:"perSecond,omitempty" minimum:"1" maximum:"10000" doc:"Requests a second, over all nodes; no limit if absent"`
	OwnerID       string     `json:"ownerId,omitempty" doc:"Id of an active member, under whose authority the key acts; the caller if absent"`
}

// issuedKey is an API key with a new secret.
type issuedKey struct {
	APIKey front.APIKey `json:"apiKey"`
	Key    string       `json:"key" example:"dwk_Ab3f…9xQ2" doc:"The secret, which no later answer shows: dwk_ and 49 letters and digits, the last six a checksum"`
}

func (a *api) viewIssued(_ *front.Call, made apikey.Issued) issuedKey {
	return issuedKey{front.ViewAPIKey(made.Key, a.app.Now()), made.Secret.Reveal()}
}

var docCreateAPIKey = front.Doc{
	ID: "createApiKey", Tag: "API keys", Summary: "Create an API key",
	Description: "For a server that uses the platform without a person. The key may do what its permissions, its role and its owner's role all allow, and ends when the owner leaves. The secret is in this answer only.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeTooManyKeys, doorward.CodeQuotaExceeded},
}

func (a *api) createAPIKey(ctx context.Context, c *front.Call, in createAPIKeyInput) (apikey.Issued, error) {
	k, s, err := a.app.APIKeys.Create(ctx, c.Caller, apikey.Draft{
		Name: in.Name, Permissions: in.Permissions, Role: in.Role, Days: (*int64)(in.ExpiresInDays), AllowedIPs: in.AllowedIPs,
		PerSecond: (*int64)(in.PerSecond), OwnerID: in.OwnerID,
	})
	return apikey.Issued{Key: k, Secret: s}, err
}

type editAPIKeyInput struct {
	Name          *string    `json:"name,omitempty" doc:"At most 100 characters"`
	Permissions   *[]string  `json:"permissions,omitempty" doc:"1 to 100 of those that the key's role grants and that keys may have"`
	AllowedIPs    *[]string  `json:"allowedIps,omitempty" doc:"Up to 50; an empty list allows all addresses"`
	PerSecond     *front.Int `json:"perSecond,omitempty" minimum:"1" maximum:"10000"`
	ExpiresInDays *front.Int `json:"expiresInDays,omitempty" minimum:"1" doc:"Counted from now"`
	OwnerID       *string    `json:"ownerId,omitempty" doc:"Id of an active member"`
	Status        *string    `json:"status,omitempty" enum:"active,disabled"`
}

var docEditAPIKey = front.Doc{
	ID: "editApiKey", Tag: "API keys", Summary: "Change, disable or enable an API key",
	Description: "All changes or none. Effective on every node before the answer. Nobody changes keys whose role is above their own. With `If-Match`, a change by somebody else since is 412.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeKeyEnded, doorward.CodePreconditionFailed, doorward.CodeQuotaExceeded},
}

func (a *api) editAPIKey(ctx context.Context, c *front.Call, in editAPIKeyInput) (front.APIKey, error) {
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return front.APIKey{}, err
	}
	k, revocation, err := a.app.APIKeys.Edit(ctx, c.Caller, id, apikey.Edit{
		Name: in.Name, Permissions: in.Permissions, AllowedIPs: in.AllowedIPs, PerSecond: (*int64)(in.PerSecond),
		Days: (*int64)(in.ExpiresInDays), OwnerID: in.OwnerID, Status: in.Status, Versions: c.Versions(),
	})
	c.SetRevocation(revocation)
	return withVersion(c, &k, err, a.viewKey)
}

type rotateInput struct {
	GraceHours *front.Int `json:"graceHours,omitempty" minimum:"0" maximum:"168" doc:"How long the present secret stays valid; 24 if absent. With 0 it ends at once"`
}

// OptionalBody implements front.OptionalBody.
func (rotateInput) OptionalBody() {}

var docRotateAPIKey = front.Doc{
	ID: "rotateApiKey", Tag: "API keys", Summary: "Give an API key a new secret",
	Description: "The key stays the same, with the same end; for the grace it has two secrets. The present secret ends at the earliest of the grace, the end of the key and `rotateBy`. One that an earlier rotation has replaced ends at once.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeKeyEnded},
}

func (a *api) rotateAPIKey(ctx context.Context, c *front.Call, in rotateInput) (apikey.Issued, error) {
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return apikey.Issued{}, err
	}
	r, err := a.app.APIKeys.Rotate(ctx, c.Caller, id, (*int64)(in.GraceHours))
	c.SetRevocation(r.Revocation)
	return r.Issued, err
}

var docEndPreviousSecret = front.Doc{
	ID: "endPreviousSecret", Tag: "API keys", Summary: "End the secret that a rotation has replaced",
	WhilePaused: true,
	Description: "On every node before the answer. 404 when there is none.",
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) endPreviousSecret(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	return a.endKey(ctx, c, a.app.APIKeys.EndPrevious)
}

var docRevokeAPIKey = front.Doc{
	ID: "revokeApiKey", Tag: "API keys", Summary: "Revoke an API key",
	WhilePaused: true,
	Description: "The key ends for good, with both of its secrets, on every node before the answer. A key that has ended is 204 as well. With `If-Match`, a change by somebody else since is 412.",
	Conditional: true,
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodePreconditionFailed},
}

func (a *api) revokeAPIKey(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	return a.endKey(ctx, c, func(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
		return a.app.APIKeys.Revoke(ctx, by, id, c.Versions()...)
	})
}

// endKey runs an operation that ends secrets of the key in the path.
func (a *api) endKey(ctx context.Context, c *front.Call, end func(context.Context, doorward.Caller, string) (doorward.Revocation, error)) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return front.None{}, err
	}
	revocation, err := end(ctx, c.Caller, id)
	c.SetRevocation(revocation)
	return front.None{}, err
}

// keyAnswer is the answer to a key that asks about itself.
type keyAnswer struct {
	APIKey front.APIKey `json:"apiKey"`
}

var docSelfKey = front.Doc{
	ID: "getOwnApiKey", Tag: "API keys", Summary: "Show the API key of the request",
	Description: "What it may do, when it ends, whether an older secret is still valid.",
}

func (a *api) selfKey(ctx context.Context, c *front.Call, _ front.None) (keyAnswer, error) {
	k, err := a.app.APIKeys.Self(ctx, c.Caller)
	if err != nil {
		return keyAnswer{}, err
	}
	return keyAnswer{front.ViewAPIKey(k, a.app.Now())}, nil
}

type reportKeyInput struct {
	Key string `json:"key" example:"dwk_Ab3f…9xQ2" doc:"The key that was found, complete"`
}

var docReportKey = front.Doc{
	ID: "reportKey", Tag: "API keys", Summary: "Report a key that was found",
	WhilePaused: true,
	Description: "For people and secret scanners that find a key where it should not be: API keys, service keys and operator keys end at once, and those responsible are told by mail. The answer is the same for every well-formed key, also for an unknown one. 30 reports in ten minutes from a client address, 300 from an IPv6 /48.",
	Errors:      []doorward.Code{doorward.CodeTooManyAttempts},
}

func (a *api) reportKey(ctx context.Context, c *front.Call, in reportKeyInput) (front.None, error) {
	if err := required(field{"/key", in.Key}); err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.Leaks.Report(ctx, c.Caller, in.Key)
}
