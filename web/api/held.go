package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/web/front"
)

type heldView struct {
	ExportedAt   time.Time         `json:"exportedAt"`
	Account      heldAccount       `json:"account"`
	Memberships  []heldMembership  `json:"memberships"`
	Sessions     []front.Session   `json:"sessions"`
	Browsers     []heldBrowser     `json:"browsers" doc:"Browsers that have signed in before and are known"`
	Factors      []heldFactor      `json:"factors"`
	EmailChanges []heldEmailChange `json:"emailChanges"`
	APIKeys      []heldKey         `json:"apiKeys" doc:"Keys that the person owns"`
	Invitations  []heldInvitation  `json:"invitations" doc:"To the address, in all tenants"`
	Mails        []heldMail        `json:"mails" doc:"Mails to the address, queued or finished in the last day"`
	AuditEvents  []eventView       `json:"auditEvents" doc:"What the person did, in the trails of the person's tenants and of the installation"`
	MoreEvents   bool              `json:"moreAuditEvents,omitempty" doc:"There are more than the 10,000 above; an administrator of the tenant can list them"`
}

type heldAccount struct {
	ID          string    `json:"id"`
	Email       string    `json:"email"`
	Locale      string    `json:"locale,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
	HasPassword bool      `json:"hasPassword"`
}

type heldMembership struct {
	TenantID    string     `json:"tenantId"`
	TenantName  string     `json:"tenantName"`
	Name        string     `json:"name"`
	Role        string     `json:"role"`
	Status      string     `json:"status"`
	CreatedAt   time.Time  `json:"createdAt"`
	LastLoginAt *time.Time `json:"lastLoginAt,omitempty"`
}

type heldBrowser struct {
	CreatedAt time.Time  `json:"createdAt"`
	UsedAt    *time.Time `json:"usedAt,omitempty" doc:"Last sign-in after the first, to a day"`
}

type heldFactor struct {
	ID         string     `json:"id"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"`
}

type heldEmailChange struct {
	From        string     `json:"from"`
	To          string     `json:"to"`
	CreatedAt   time.Time  `json:"createdAt"`
	ConfirmedAt *time.Time `json:"confirmedAt,omitempty"`
	UndoneAt    *time.Time `json:"undoneAt,omitempty"`
}

type heldKey struct {
	ID         string     `json:"id"`
	TenantID   string     `json:"tenantId"`
	Name       string     `json:"name"`
	Hint       string     `json:"hint" doc:"First and last characters of the secret"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  time.Time  `json:"expiresAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"`
	LastUsedIP string     `json:"lastUsedIp,omitempty"`
}

type heldInvitation struct {
	ID        string    `json:"id"`
	TenantID  string    `json:"tenantId"`
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	State     string    `json:"state"`
	CreatedAt time.Time `json:"createdAt"`
}

type heldMail struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	State     string    `json:"state"`
	CreatedAt time.Time `json:"createdAt"`
}

var docExportAccount = front.Doc{
	ID: "exportAccount", Tag: "Account", Summary: "Export what is held about oneself",
	Description: "Account, memberships, sessions, known browsers, second factors, changes of the address, API keys, invitations, mails, and events by oneself. Never a secret or a hash.",
}

func (a *api) exportAccount(ctx context.Context, c *front.Call, _ front.None) (heldView, error) {
	h, err := a.app.Accounts.Held(ctx, c.Caller)
	if err != nil {
		return heldView{}, err
	}
	now := a.app.Now()
	c.W.Header().Set("Content-Disposition", `attachment; filename="account.json"`)
	return heldView{
		ExportedAt: now,
		Account:    heldAccount{h.Account.ID, h.Account.Email, h.Account.Locale, h.Account.CreatedAt, h.Account.PasswordHash != ""},
		Memberships: each(h.Memberships, func(m doorward.User) heldMembership {
			return heldMembership{m.TenantID, m.TenantName, m.Name, string(m.Role), string(m.Status), m.CreatedAt, m.LastLoginAt}
		}),
		Sessions: each(h.Sessions, func(s account.Session) front.Session {
			return front.ViewSession(s.Session, s.Session.ID == c.Caller.SessionID, a.app.Sessions.Limits())
		}),
		Browsers: each(h.Browsers, viewBrowser),
		Factors: each(h.Factors, func(f account.Factor) heldFactor {
			return heldFactor{f.ID, string(f.Kind), f.Name, f.CreatedAt, f.LastUsedAt}
		}),
		EmailChanges: each(h.EmailChanges, func(e account.EmailChange) heldEmailChange {
			return heldEmailChange{e.From, e.To, e.CreatedAt, e.Confirmed, e.Undone}
		}),
		APIKeys: each(h.APIKeys, func(k doorward.APIKey) heldKey {
			return heldKey{k.ID, k.TenantID, k.Name, k.Hint, k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.LastUsedIP}
		}),
		Invitations: each(h.Invitations, func(i doorward.Invitation) heldInvitation {
			return heldInvitation{i.ID, i.TenantID, i.Name, string(i.Role), string(i.StateAt(now)), i.CreatedAt}
		}),
		Mails:       each(h.Mails, func(m account.Mail) heldMail { return heldMail{m.ID, string(m.Kind), string(m.State), m.CreatedAt} }),
		AuditEvents: each(h.Events, viewEvent), MoreEvents: h.MoreEvents,
	}, nil
}

// each returns the views of all items; an empty list is not null.
func each[T, V any](items []T, view func(T) V) []V {
	views := make([]V, 0, len(items))
	for _, item := range items {
		views = append(views, view(item))
	}
	return views
}

func viewBrowser(b account.Browser) heldBrowser {
	v := heldBrowser{CreatedAt: b.CreatedAt}
	if !b.UsedAt.IsZero() {
		v.UsedAt = &b.UsedAt
	}
	return v
}
