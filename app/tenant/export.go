package tenant

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
)

// ExportFormat is the version of the export. It increases when the meaning of a
// member changes or a member is removed; additions don't change it.
const ExportFormat = 1

// Export writes everything about a tenant to w as one JSON document, as of one instant, except
// tokens and secrets. With hashes, the document has the password hashes of people's accounts. It
// is streamed, so a large tenant or a slow w delays no other request. The export is recorded
// before the first byte is written, so the document has that event. Errors: not_found,
// forbidden, those of w.
func (t *Tenants) Export(ctx context.Context, by doorward.Caller, id string, hashes bool, w io.Writer) error {
	return t.export(ctx, by, id, hashes, func(read store.Reader) error {
		if err := beginExport(ctx, read, id, true); err != nil {
			return err
		}
		d := &document{ctx: ctx, read: read, hashes: hashes, w: bufio.NewWriter(w)}
		d.write(id, t.db.Now())
		return d.end()
	})
}

// ExportPeople writes only the people of a tenant, in the format of user.Import: with hashes,
// all passwords work where they are imported. Errors: not_found,
// forbidden, those of w.
func (t *Tenants) ExportPeople(ctx context.Context, by doorward.Caller, id string, hashes bool, w io.Writer) error {
	return t.export(ctx, by, id, hashes, func(read store.Reader) error {
		if err := beginExport(ctx, read, id, false); err != nil {
			return err
		}
		out := bufio.NewWriter(w)
		err := read.EachMember(ctx, id, func(m store.Member) error {
			p := roster.Person{Email: m.Email, Name: m.Name, Role: m.Role, Status: m.Status}
			if hashes {
				p.PasswordHash = m.PasswordHash
			}
			progress.Add(ctx, 1)
			return roster.Write(out, p)
		})
		if err != nil {
			return err
		}
		return out.Flush()
	})
}

// beginExport begins the step of the progress: people, and events if the document has those. The rest is few.
func beginExport(ctx context.Context, read store.Reader, id string, withEvents bool) error {
	all, _, err := read.CountPeople(ctx, id, time.Time{})
	if err != nil {
		return err
	}
	if withEvents {
		chained, err := read.CountChained(ctx, false, id)
		if err != nil {
			return err
		}
		all += chained
	}
	progress.Step(ctx, "writing people and events", all, nil)
	return nil
}

// export records the export, then calls write with a snapshot of the database.
func (t *Tenants) export(ctx context.Context, by doorward.Caller, id string, hashes bool, write func(store.Reader) error) error {
	_, err := t.writer.Do(ctx, by, doorward.TenantExport, object(id), func(tx *access.Tx) error {
		if hashes {
			tx.Changed("passwordHashes", "", "exported")
		}
		_, err := find(ctx, tx.Reader, id)
		return err
	})
	if err != nil {
		return err
	}
	return t.db.Snapshot(ctx, write)
}

// document is an export while it is being written. After an error it writes
// nothing more.
type document struct {
	ctx    context.Context
	read   store.Reader
	hashes bool
	w      *bufio.Writer
	err    error
}

func (d *document) write(id string, now time.Time) {
	t, err := find(d.ctx, d.read, id)
	var logo []byte
	if err == nil && t.Brand.Logo.Hash != "" {
		logo, err = d.read.LogoImage(d.ctx, t.Brand.Logo.Hash)
	}
	d.err = err
	d.text("{\n\"format\": ")
	d.value(ExportFormat)
	d.text(",\n\"exportedAt\": ")
	d.value(now)
	d.text(",\n\"tenant\": ")
	d.value(tenantOf(t, logo))
	items(d, "people", func(add func(any) error) error {
		return d.read.EachMember(d.ctx, id, func(m store.Member) error { return add(d.person(m)) })
	})
	items(d, "roles", func(add func(any) error) error {
		all, err := d.read.CustomRoles(d.ctx, id)
		for _, r := range all {
			err = cmp.Or(err, add(exportedRole{r.ID, string(r.Name), r.About, r.Permissions}))
		}
		return err
	})
	items(d, "policies", func(add func(any) error) error { return d.policies(id, add) })
	items(d, "invitations", func(add func(any) error) error {
		return d.read.EachInvitation(d.ctx, id, func(i doorward.Invitation) error { return add(invitationOf(i, now)) })
	})
	items(d, "apiKeys", func(add func(any) error) error {
		return d.read.EachAPIKey(d.ctx, id, now, func(k doorward.APIKey) error { return add(apiKeyOf(k, now)) })
	})
	items(d, "webhooks", func(add func(any) error) error {
		return d.read.EachWebhook(d.ctx, id, func(w doorward.Webhook) error { return add(webhookOf(w)) })
	})
	items(d, "connections", func(add func(any) error) error {
		all, err := d.read.ConnectionsOf(d.ctx, id)
		for _, c := range all {
			kept, fault := d.read.KeptDiscovery(d.ctx, c.ID, false)
			if errors.Is(fault, store.ErrNone) { // deleted since
				continue
			}
			err = cmp.Or(err, fault, add(connectionOf(c, kept.Text)))
		}
		return err
	})
	items(d, "setupLinks", func(add func(any) error) error {
		all, err := d.read.SetupLinksIn(d.ctx, id)
		for _, l := range all {
			err = cmp.Or(err, add(exportedSetupLink{l.ID, l.ConnectionID, l.MakerID, l.CreatedAt, l.EndsAt, l.BegunAt}))
		}
		return err
	})
	items(d, "domains", func(add func(any) error) error {
		all, err := d.read.Domains(d.ctx, id)
		for _, one := range all {
			err = cmp.Or(err, add(domainOf(one)))
		}
		return err
	})
	d.directory(id)
	items(d, "auditEvents", func(add func(any) error) error {
		return d.read.EachEvent(d.ctx, id, func(e doorward.Event) error { return add(e.View()) })
	})
	d.text("\n}\n")
}

func (d *document) end() error {
	if d.err != nil {
		return d.err
	}
	return d.w.Flush()
}

// items writes a member with a list, one item per line.
func items(d *document, name string, each func(add func(any) error) error) {
	if d.err != nil {
		return
	}
	d.text(",\n\"" + name + "\": [")
	separator := "\n"
	err := each(func(item any) error {
		d.text(separator)
		d.value(item)
		separator = ",\n"
		progress.Add(d.ctx, 1)
		return d.err
	})
	if d.err == nil {
		d.err = err
	}
	d.text("\n]")
}

func (d *document) text(s string) {
	if d.err == nil {
		_, d.err = d.w.WriteString(s)
	}
}

func (d *document) value(v any) {
	text, err := json.Marshal(v)
	if d.err == nil {
		d.err = err
	}
	d.text(string(text))
}

// Members have the same names as in the API, if it has them.

type exportedTenant struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Status    string         `json:"status"`
	CreatedAt time.Time      `json:"createdAt"`
	ClosedAt  *time.Time     `json:"closedAt,omitempty"`
	Settings  map[string]any `json:"settings"` // the tenant's own, without those of the installation
	Logo      *exportedLogo  `json:"logo,omitempty"`
}

// exportedLogo is the image as in a data: URL, a PNG in Base64.
type exportedLogo struct {
	MediaType string `json:"mediaType"`
	Data      []byte `json:"data"`
}

func tenantOf(t doorward.Tenant, logo []byte) exportedTenant {
	out := exportedTenant{ID: t.ID, Name: t.Name, Status: string(t.Status), CreatedAt: t.CreatedAt, ClosedAt: t.ClosedAt, Settings: map[string]any{}}
	for _, s := range doorward.Settings(doorward.SessionLimits{}, 0) {
		if own := s.Own(t); own != nil {
			out.Settings[s.Name] = own
		}
	}
	if len(logo) > 0 {
		out.Logo = &exportedLogo{"image/png", logo}
	}
	return out
}

type exportedPerson struct {
	ID           string     `json:"id"`
	Email        string     `json:"email"`
	Name         string     `json:"name"`
	Role         string     `json:"role"`
	Status       string     `json:"status"`
	CreatedAt    time.Time  `json:"createdAt"`
	LastLoginAt  *time.Time `json:"lastLoginAt,omitempty"`
	HasPassword  bool       `json:"hasPassword"`
	PasswordHash string     `json:"passwordHash,omitempty"`
}

func (d *document) person(m store.Member) exportedPerson {
	p := exportedPerson{
		ID: m.ID, Email: m.Email, Name: m.Name, Role: string(m.Role), Status: string(m.Status),
		CreatedAt: m.CreatedAt, LastLoginAt: m.LastLoginAt, HasPassword: m.PasswordHash != "",
	}
	if d.hashes {
		p.PasswordHash = m.PasswordHash
	}
	return p
}

type exportedRole struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	About       string            `json:"about"`
	Permissions []doorward.Action `json:"permissions"`
}

// exportedPolicies is a version of the tenant's policies.
type exportedPolicies struct {
	Version         int64            `json:"version"`
	Text            string           `json:"text"`
	Mode            store.PolicyMode `json:"mode"`
	UpdatedAt       time.Time        `json:"updatedAt"`
	UpdatedBy       string           `json:"updatedBy"`
	ConfirmUntil    *time.Time       `json:"confirmUntil,omitempty"`
	EnforcedVersion int64            `json:"enforcedVersion,omitempty"`
	TimeZone        string           `json:"timeZone,omitempty"`
}

// policyBatch is how many versions are in memory at once.
const policyBatch = 20

// policies adds all versions, the newest first.
func (d *document) policies(tenantID string, add func(any) error) error {
	for window := (doorward.Window{Limit: policyBatch}); ; {
		page, err := d.read.PolicyPage(d.ctx, tenantID, window)
		for _, v := range page.Items {
			err = cmp.Or(err, add(exportedPolicies{v.Version, v.Text, v.Mode, v.CreatedAt, v.CreatedBy, v.ConfirmUntil, v.Enforced, v.TimeZone}))
		}
		if err != nil || page.Next == nil {
			return err
		}
		window.After = *page.Next
	}
}

type exportedInvitation struct {
	ID         string     `json:"id"`
	Email      string     `json:"email"`
	Role       string     `json:"role"`
	Name       string     `json:"name"`
	Locale     string     `json:"locale,omitempty"`
	Status     string     `json:"status"`
	InvitedBy  *string    `json:"invitedBy"` // null: the operator
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  time.Time  `json:"expiresAt"`
	AcceptedAt *time.Time `json:"acceptedAt,omitempty"`
	RevokedAt  *time.Time `json:"revokedAt,omitempty"`
}

func invitationOf(i doorward.Invitation, now time.Time) exportedInvitation {
	out := exportedInvitation{
		ID: i.ID, Email: i.Email, Role: string(i.Role), Name: i.Name, Locale: i.Locale, Status: string(i.StateAt(now)),
		CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt, AcceptedAt: i.AcceptedAt, RevokedAt: i.RevokedAt,
	}
	if i.InvitedBy != "" {
		out.InvitedBy = &i.InvitedBy
	}
	return out
}

type exportedAPIKey struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Status      string            `json:"status"`
	Role        string            `json:"role"`
	Permissions []doorward.Action `json:"permissions"`
	OwnerID     string            `json:"ownerId"`
	CreatedBy   string            `json:"createdBy"`
	CreatedAt   time.Time         `json:"createdAt"`
	ExpiresAt   time.Time         `json:"expiresAt"`
	RotateBy    *time.Time        `json:"rotateBy,omitempty"`
	AllowedIPs  []string          `json:"allowedIps"`
	PerSecond   int               `json:"perSecond,omitempty"`
	LastUsedAt  *time.Time        `json:"lastUsedAt,omitempty"`
	LastUsedIP  string            `json:"lastUsedIp,omitempty"`
}

func apiKeyOf(k doorward.APIKey, now time.Time) exportedAPIKey {
	out := exportedAPIKey{
		ID: k.ID, Name: k.Name, Status: string(k.StatusAt(now)), Role: string(k.Role), Permissions: k.Permissions, OwnerID: k.OwnerID,
		CreatedBy: k.CreatedBy, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RotateBy: k.RotateBy, AllowedIPs: []string{},
		PerSecond: k.PerSecond, LastUsedAt: k.LastUsedAt, LastUsedIP: k.LastUsedIP,
	}
	for _, p := range k.AllowedIPs {
		out.AllowedIPs = append(out.AllowedIPs, doorward.AddressText(p))
	}
	return out
}

type exportedWebhook struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Events    []string  `json:"events"`
	About     string    `json:"about"`
	Include   []string  `json:"include"`
	Enabled   bool      `json:"enabled"`
	PublicKey string    `json:"publicKey"`
	CreatedAt time.Time `json:"createdAt"`
}

// exportedConnection has no secret and no key: those are made anew where it is made again.
type exportedConnection struct {
	ID                  string            `json:"id"`
	Type                string            `json:"type"`
	Name                string            `json:"name"`
	Product             string            `json:"product"`
	Status              string            `json:"status"`
	CreatedAt           time.Time         `json:"createdAt"`
	Issuer              string            `json:"issuer"`
	ClientID            string            `json:"clientId"`
	ClientAuth          string            `json:"clientAuth"`
	EmailFrom           string            `json:"emailFrom"`
	EntityID            string            `json:"entityId,omitempty"`
	MetadataURL         string            `json:"metadataUrl,omitempty"`
	Metadata            json.RawMessage   `json:"metadata,omitempty"`
	RemovedCertificates []string          `json:"removedCertificates,omitempty"`
	SubjectFrom         string            `json:"subjectFrom,omitempty"`
	SignRequests        bool              `json:"signRequests,omitempty"`
	Encrypt             bool              `json:"encrypt,omitempty"`
	JIT                 string            `json:"jit"`
	JITRole             string            `json:"jitRole"`
	Mappings            []exportedMapping `json:"mappings"`
	GroupsFrom          string            `json:"groupsFrom,omitempty"`
	FactorACR           []string          `json:"factorAcr"`
	TrustProviderFactor bool              `json:"trustProviderFactor"`
	Ends                string            `json:"ends"`
	EndsKeys            bool              `json:"endsKeys"`
}

type exportedMapping struct {
	Group string `json:"group"`
	Role  string `json:"role"`
}

// connectionOf returns a connection of whose provider the text is kept.
func connectionOf(c doorward.Connection, kept string) exportedConnection {
	e := exportedConnection{
		ID: c.ID, Type: string(c.Type), Name: c.Name, Product: string(c.Product), Status: string(c.Status), CreatedAt: c.CreatedAt,
		Issuer: c.InForce.Issuer, ClientID: c.InForce.ClientID, ClientAuth: string(c.InForce.ClientAuth), EmailFrom: c.InForce.EmailFrom,
		JIT: string(c.JIT), JITRole: string(c.JITRole), Mappings: []exportedMapping{}, GroupsFrom: c.GroupsFrom, FactorACR: c.FactorACR, TrustProviderFactor: c.TrustFactor, Ends: string(c.Ends), EndsKeys: c.EndsKeys,
	}
	if c.Type == doorward.SAML {
		e.Issuer, e.EntityID, e.MetadataURL, e.Metadata = "", c.InForce.Issuer, c.InForce.MetadataURL, json.RawMessage(kept)
		e.RemovedCertificates, e.SubjectFrom, e.SignRequests, e.Encrypt = c.InForce.RemovedCertificates, c.InForce.SubjectFrom, c.SignRequests, c.Encrypt
	}
	for _, m := range c.Mappings {
		e.Mappings = append(e.Mappings, exportedMapping{m.Group, string(m.Role)})
	}
	return e
}

func webhookOf(w doorward.Webhook) exportedWebhook {
	return exportedWebhook{w.ID, w.URL, w.Events, w.About, w.Include, w.Enabled, w.PublicKey, w.CreatedAt}
}

// exportedSetupLink has no token: another installation makes a link of its own.
type exportedSetupLink struct {
	ID           string     `json:"id"`
	ConnectionID string     `json:"connectionId"`
	MadeBy       string     `json:"madeBy"`
	CreatedAt    time.Time  `json:"createdAt"`
	ExpiresAt    time.Time  `json:"expiresAt"`
	BegunAt      *time.Time `json:"begunAt,omitempty"`
}

// exportedDomain has no record: another installation makes one of its own.
type exportedDomain struct {
	ID           string     `json:"id"`
	Domain       string     `json:"domain"`
	ConnectionID string     `json:"connectionId,omitempty"`
	Status       string     `json:"status"`
	CreatedAt    time.Time  `json:"createdAt"`
	VerifiedAt   *time.Time `json:"verifiedAt,omitempty"`
	CheckedAt    *time.Time `json:"checkedAt,omitempty"`
	MissingSince *time.Time `json:"missingSince,omitempty"`
}

func domainOf(d doorward.Domain) exportedDomain {
	return exportedDomain{d.ID, d.Name, d.ConnectionID, string(d.Status), d.CreatedAt, d.VerifiedAt, d.CheckedAt, d.MissingSince}
}
