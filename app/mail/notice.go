package mail

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/useragent"
	"github.com/doorward/doorward/store"
)

// compose makes the mail of a row inside the transaction that claims it. It returns nil when the
// mail is not to be sent; the row is then deleted or finished.
func (m *Mail) compose(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	compose := composers[row.Kind]
	if row.Kind == store.MailDigest {
		compose = (*Mail).composeDigest
	}
	rendered, err := compose(m, ctx, tx, row)
	if errors.Is(err, store.ErrNone) {
		return nil, tx.DeleteMail(ctx, row.ID)
	}
	if rendered != nil && rendered.Style == defaultStyle {
		rendered.Style.Name = unlinked(m.brand.Load().name)
	}
	return rendered, err
}

// composers has a composer for each of store.MailKinds but the digest, which uses the others. A composer returns store.ErrNone when the
// mail is obsolete or its subject was deleted, and nil when it has finished the row itself.
var composers = map[store.MailKind]func(*Mail, context.Context, *store.Tx, store.Mail) (*renderedMail, error){
	store.MailInvitation:        (*Mail).composeInvitation,
	store.MailReset:             (*Mail).composeReset,
	store.MailPasswordForgotten: (*Mail).composeReset,
	store.MailPasswordChanged:   (*Mail).composeSecurity,
	store.MailSignedIn:          (*Mail).composeSecurity,
	store.MailRoleChanged:       (*Mail).composeMembership,
	store.MailSuspended:         (*Mail).composeMembership,
	store.MailRemoved:           (*Mail).composeMembership,

	store.MailAddressSuspended: (*Mail).composeAddressSuspended,
	store.MailTenantOwnerless:  (*Mail).composeOwnerless,

	store.MailAPIKeyExpiring:    (*Mail).composeExpiring,
	store.MailAPIKeyLeaked:      (*Mail).composeLeak,
	store.MailOperatorKeyLeaked: (*Mail).composeOperatorLeak,
	store.MailServiceKeyLeaked:  (*Mail).composeOperatorLeak,

	store.MailEmailConfirm:    (*Mail).composeEmailConfirm,
	store.MailEmailRequested:  (*Mail).composeEmailUndo,
	store.MailEmailChanged:    (*Mail).composeEmailUndo,
	store.MailEmailRestored:   (*Mail).composeEmailRestored,
	store.MailEmailSet:        (*Mail).composeSecurity,
	store.MailFactorAdded:     (*Mail).composeSecurity,
	store.MailFactorRemoved:   (*Mail).composeSecurity,
	store.MailFactorRenamed:   (*Mail).composeSecurity,
	store.MailFactorsRemoved:  (*Mail).composeSecurity,
	store.MailRecoveryCodes:   (*Mail).composeSecurity,
	store.MailRecoveryUsed:    (*Mail).composeSecurity,
	store.MailPasskeyCopied:   (*Mail).composeSecurity,
	store.MailFactorsDisabled: (*Mail).composeSecurity,
	store.MailFactorsReset:    (*Mail).composeFactorsReset,
	store.MailFactorsWord:     (*Mail).composeFactorsReset,
	store.MailFactorsDemanded: (*Mail).composeFactorsDemanded,

	store.MailWebhookFailing:  (*Mail).composeWebhook,
	store.MailWebhookDisabled: (*Mail).composeWebhook,

	store.MailClientSecretExpiring: (*Mail).composeConnection,
	store.MailCertificateExpiring:  (*Mail).composeConnection,
	store.MailSCIMSecretExpiring:   (*Mail).composeConnection,
	store.MailSCIMSecretLeaked:     (*Mail).composeConnection,
	store.MailDirectoryAlarm:       (*Mail).composeConnection,
	store.MailClientRefused:        (*Mail).composeConnection,
	store.MailProviderUnread:       (*Mail).composeConnection,
	store.MailCertificatesGone:     (*Mail).composeConnection,

	store.MailDomainLapsed: (*Mail).composeDomain,
	store.MailDomainTaken:  (*Mail).composeDomain,

	store.MailAccountErased:  (*Mail).composeErased,
	store.MailSSOBypass:      (*Mail).composeBypass,
	store.MailSecretsLost:    (*Mail).composeLost,
	store.MailAddressRefused: (*Mail).composeAddressRefused,
}

// composeSecurity makes notices about an account. They have no text that others
// can write, such as names and user agents, no link and no image: phishers imitate
// mails like this.
func (m *Mail) composeSecurity(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	browser, system := useragent.Parse(e.Change(doorward.FieldUserAgent).To)
	// An event has one of these: a factor was added, removed or renamed.
	factor := cmp.Or(e.Change(doorward.FieldFactor).To, e.Change(doorward.FieldFactor).From, e.Change(doorward.FieldFactorRenamed).To)
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, variables{
		Email: row.Recipient, Site: m.site(), At: formatTime(e.At), IP: e.IP,
		Browser: browser, System: system,
		ByMail: e.Action == doorward.PasswordReset, Factor: factor,
		CodesLeft: e.Change(doorward.FieldRecoveryCodes).To,
	}), err
}

// composeWebhook makes notices of a webhook that fails. They are obsolete once the webhook
// is deleted. A webhook of the installation has no tenant and no style.
func (m *Mail) composeWebhook(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	hook, err := tx.Webhook(ctx, e.Target.ID)
	if err != nil {
		return nil, err
	}
	v := variables{Site: m.site(), At: formatTime(e.At), Webhook: withoutScheme(e.Change(doorward.FieldURL).To), Gone: e.Change(doorward.FieldReason).To == string(doorward.DisabledGone), KeyLost: e.Change(doorward.FieldReason).To == string(doorward.DisabledKeyLost)}
	if since, err := time.Parse(time.RFC3339, e.Change(doorward.FieldFailingSince).To); err == nil {
		v.Since = formatTime(since)
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	if err != nil || hook.TenantID == "" {
		return m.texts.render(row.Kind, locale, v), err
	}
	tenant, err := tx.Tenant(ctx, hook.TenantID)
	v.Tenant = tenant.Name
	return m.texts.render(row.Kind, locale, v).withStyle(m.styleOf(tenant)), err
}

// composeDomain makes notices of a domain that has lapsed, or that another tenant has proved. The first is
// obsolete once the domain is verified again or deleted.
func (m *Mail) composeDomain(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	if row.Kind == store.MailDomainLapsed {
		domain, err := tx.Domain(ctx, e.Target.ID)
		if err == nil && domain.Status != doorward.DomainLapsed {
			err = store.ErrNone
		}
		if err != nil {
			return nil, err
		}
	}
	tenant, err := tx.Tenant(ctx, e.Target.TenantID)
	if err != nil {
		return nil, err
	}
	name := e.Change(doorward.FieldDomain)
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, variables{
		Tenant: tenant.Name, Domain: cmp.Or(name.To, name.From), Released: e.Action == doorward.DomainRelease, Site: m.site(), At: formatTime(e.At),
	}).withStyle(m.styleOf(tenant)), err
}

// composeConnection makes notices about a connection: its secrets, its provider, its directory. They are obsolete once the
// connection is deleted.
func (m *Mail) composeConnection(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	connection, err := tx.Connection(ctx, e.Target.ID)
	if err != nil {
		return nil, err
	}
	tenant, err := tx.Tenant(ctx, connection.TenantID)
	if err != nil {
		return nil, err
	}
	v := variables{Tenant: tenant.Name, Connection: connection.Name, Hint: cmp.Or(e.Change(doorward.FieldClientSecret).To, e.Change(doorward.FieldSCIMSecret).To, e.Change(doorward.FieldSCIMSecret).From), Site: m.site(), At: formatTime(e.At)}
	if e.Action == doorward.DirectoryAlarm {
		v.Suspended, v.Removed = e.Change(doorward.FieldSuspended).To, e.Change(doorward.FieldRemoved).To
		v.Link = m.baseURL + "/console/sso/connections/" + connection.ID + "/runs/" + e.Change(doorward.FieldRun).To
	}
	if e.Action == doorward.APIKeyLeak {
		v.IP = e.IP
	}
	if until, err := time.Parse(time.RFC3339, e.Change(doorward.FieldEndsAt).To); err == nil {
		v.Until = formatTime(until)
	}
	if since, err := time.Parse(time.RFC3339, e.Change(doorward.FieldFailingSince).To); err == nil {
		v.Since = formatTime(since)
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, v).withStyle(m.styleOf(tenant)), err
}

// composeAddressRefused tells a person that a directory wanted to change the address of their account. It doesn't name
// that address: whoever has the directory's secret has written it.
func (m *Mail) composeAddressRefused(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	connection, err := tx.Connection(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	tenant, err := tx.Tenant(ctx, connection.TenantID)
	if err != nil {
		return nil, err
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	v := variables{Tenant: tenant.Name, Connection: connection.Name, Site: m.site(), Email: row.Recipient, At: formatTime(row.CreatedAt)}
	return m.texts.render(row.Kind, locale, v), err
}

// composeErased makes the notice to an OWNER that somebody's account was erased. It names what the
// person has left and is still there.
func (m *Mail) composeErased(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	tenant, err := tx.Tenant(ctx, e.Target.TenantID)
	if err != nil {
		return nil, err
	}
	left, err := listedNames(ctx, tx, tenant.ID, e.Changes)
	if err != nil {
		return nil, err
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, variables{
		Tenant: tenant.Name, Site: m.site(), At: formatTime(e.At), Account: e.Target.ID, FormerRole: e.Change(doorward.FieldRole).From,
		Webhooks: left.of(doorward.FieldWebhookLeft), Keys: left.of(doorward.FieldAPIKeyLeft),
		Raised: left.of(doorward.FieldPersonRaised), Invited: left.of(doorward.FieldPersonInvited),
		KeysEnded: e.Change(doorward.FieldAPIKeysRevoked).To, InvitationsEnded: e.Change(doorward.FieldInvitationsRevoked).To,
	}).withStyle(m.styleOf(tenant)), err
}

// composeLost makes the notice of secrets that were lost with the master key. It is obsolete once all that they
// belong to is deleted.
func (m *Mail) composeLost(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	tenant, err := tx.Tenant(ctx, e.Target.TenantID)
	if err != nil {
		return nil, err
	}
	lost, err := listedNames(ctx, tx, tenant.ID, e.Changes)
	if err != nil {
		return nil, err
	}
	if len(lost) == 0 {
		return nil, store.ErrNone
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, variables{
		Tenant: tenant.Name, Site: m.site(), At: formatTime(e.At),
		Webhooks: lost.of(doorward.FieldWebhookLost), Connections: lost.of(doorward.FieldConnectionLost),
	}).withStyle(m.styleOf(tenant)), err
}

// namesByField are names of objects that an event lists, by the field.
type namesByField map[string][]string

func (n namesByField) of(field string) string { return strings.Join(n[field], ", ") }

// listedNames returns how a mail names what the changes list, without what is gone.
func listedNames(ctx context.Context, tx *store.Tx, tenantID string, changes []doorward.Change) (namesByField, error) {
	names := namesByField{}
	for _, c := range changes {
		name, err := nameOf(ctx, tx, tenantID, c)
		if err != nil {
			return nil, err
		}
		if name != "" {
			names[c.Field] = append(names[c.Field], name)
		}
	}
	return names, nil
}

// nameOf returns how a mail names what a field of an erasure has left, or what a field has lost with the master key;
// empty for another field, and for what is gone.
func nameOf(ctx context.Context, tx *store.Tx, tenantID string, c doorward.Change) (name string, err error) {
	switch c.Field {
	case doorward.FieldWebhookLeft, doorward.FieldWebhookLost:
		var hook doorward.Webhook
		hook, err = tx.Webhook(ctx, c.To)
		if hook.TenantID == tenantID {
			name, _, _ = strings.Cut(withoutScheme(hook.URL), "?") // the query may be a secret of the endpoint
		}
	case doorward.FieldAPIKeyLeft:
		var key doorward.APIKey
		key, err = tx.APIKey(ctx, c.To, tx.Now)
		name = strings.TrimSpace(key.Name + " " + key.Hint)
	case doorward.FieldConnectionLost:
		var connection doorward.Connection
		connection, err = tx.Connection(ctx, c.To)
		name = connection.Name
	case doorward.FieldPersonRaised, doorward.FieldPersonInvited:
		return nameIn(ctx, tx, tenantID, c.To)
	}
	if errors.Is(err, store.ErrNone) {
		return "", nil
	}
	return unlinked(name), err
}

func withoutScheme(url string) string {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		return url
	}
	return rest
}

// composeFactorsReset makes the mail about a tenant's word for removing the person's second factors. It
// has a code if no other tenant's word is missing when it is made; else it names those tenants, which are
// the person's own. It is obsolete once the person has another address, or is no longer an active member
// of the tenant whose administrator has asked for it. A second try has another code, which ends the first.
func (m *Mail) composeFactorsReset(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	member, err := tx.User(ctx, e.Target.TenantID, e.Target.ID)
	if err == nil && (member.Status != doorward.UserActive || member.Email != row.Recipient) {
		err = store.ErrNone
	}
	if err != nil {
		return nil, err
	}
	reset, err := tx.FactorReset(ctx, member.ID, tx.Now)
	if err == nil && len(reset.Given) == 0 { // refused, or carried out by the operator
		err = store.ErrNone
	}
	if err != nil {
		return nil, err
	}
	v := variables{Name: member.Name, Tenant: member.TenantName, Email: member.Email, Site: m.site(), At: formatTime(e.At)}
	if v.Actor, err = actorOf(ctx, tx, e); err != nil {
		return nil, err
	}
	kind := store.MailFactorsWord
	if reset.IsComplete() && row.ID != "" { // a digest has no codes
		kind = store.MailFactorsReset
		if v.Code, err = newFactorCode(ctx, tx, member.ID); err != nil {
			return nil, err
		}
		v.Link, v.Until = m.baseURL+"/factors/reset#token="+v.Code, formatTime(tx.Now.Add(doorward.FactorResetLife))
	}
	v.Waiting = namesOf(reset.Missing)
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(kind, locale, v), err
}

// composeFactorsDemanded makes the notice of a tenant's demand for a second factor. It is obsolete once the
// recipient has one or another address, or is no longer an active member whom the demand covers.
func (m *Mail) composeFactorsDemanded(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	member, err := tx.UserByEmail(ctx, e.Target.TenantID, row.Recipient)
	if err != nil {
		return nil, err
	}
	tenant, err := tx.Tenant(ctx, member.TenantID)
	if err != nil {
		return nil, err
	}
	due, isDemanded := tenant.Settings.SecondFactor.DueFrom(member.Role, member.CreatedAt)
	if !isDemanded || member.Factors > 0 || !member.IsActive() {
		return nil, store.ErrNone
	}
	v := variables{Name: member.Name, Tenant: tenant.Name, Email: member.Email, Site: m.site(), At: formatTime(e.At)}
	if due.After(tx.Now) {
		v.Until = formatTime(due)
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, v), err
}

// namesOf returns the names of the tenants of the memberships.
func namesOf(memberships []doorward.User) string {
	names := make([]string, len(memberships))
	for i, m := range memberships {
		names[i] = unlinked(m.TenantName)
	}
	return strings.Join(names, ", ")
}

// newFactorCode makes the code of the mail and stores its hash.
func newFactorCode(ctx context.Context, tx *store.Tx, userID string) (string, error) {
	token := secret.New()
	hash := token.Hash()
	return token.Reveal(), tx.InsertFactorCode(ctx, hash[:], userID, tx.Now.Add(doorward.FactorResetLife))
}

// composeMembership makes notices of another user's change to a membership.
func (m *Mail) composeMembership(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	tenant, err := tx.Tenant(ctx, e.Target.TenantID)
	if err != nil {
		return nil, err
	}
	member, err := tx.User(ctx, tenant.ID, e.Target.ID)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return nil, err
	}
	actor, err := actorOf(ctx, tx, e)
	if err != nil {
		return nil, err
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	role := e.Change(doorward.FieldRole)
	return m.texts.render(row.Kind, locale, variables{
		Name: member.Name, Tenant: tenant.Name, Actor: actor, Role: role.To, FormerRole: role.From, At: formatTime(e.At),
	}).withStyle(m.styleOf(tenant)), err
}

// composeAddressSuspended makes the notice of a membership that a change of the person's address, or
// its undo, has suspended. It goes to the person and to those who can resume the membership.
func (m *Mail) composeAddressSuspended(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, tenant, member, err := eventOfMember(ctx, tx, row)
	if err != nil {
		return nil, err
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, variables{Tenant: tenant.Name, Member: member, At: formatTime(e.At)}).withStyle(m.styleOf(tenant)), err
}

// eventOfMember returns the event that the mail is about, its tenant, and the name of the member whom it
// concerns. Errors: store.ErrNone for one who has left since.
func eventOfMember(ctx context.Context, tx *store.Tx, row store.Mail) (e doorward.Event, tenant doorward.Tenant, member string, err error) {
	if e, err = tx.Event(ctx, row.SubjectID); err != nil {
		return e, tenant, "", err
	}
	if tenant, err = tx.Tenant(ctx, e.Target.TenantID); err != nil {
		return e, tenant, "", err
	}
	if member, err = nameIn(ctx, tx, tenant.ID, e.Target.ID); err == nil && member == "" {
		err = store.ErrNone
	}
	return e, tenant, member, err
}

// composeBypass makes the notice to an OWNER that an OWNER has signed in without the sign-on that the tenant
// demands. Like other notices of sign-ins it has no link.
func (m *Mail) composeBypass(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, tenant, member, err := eventOfMember(ctx, tx, row)
	if err != nil {
		return nil, err
	}
	browser, system := useragent.Parse(e.Change(doorward.FieldUserAgent).To)
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, variables{
		Tenant: tenant.Name, Member: member, At: formatTime(e.At), IP: e.IP, Browser: browser, System: system, Site: m.site(),
	}), err
}

// composeOwnerless makes the notice of a tenant without an active OWNER, in the fallback language,
// since operators have no account. It is obsolete once the tenant is destroyed or has an OWNER.
func (m *Mail) composeOwnerless(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	tenant, err := tx.Tenant(ctx, e.Target.ID)
	if err != nil {
		return nil, err
	}
	owners, err := tx.CountActiveOwners(ctx, tenant.ID)
	if err == nil && owners > 0 {
		err = store.ErrNone
	}
	return m.texts.render(row.Kind, "", variables{Site: m.site(), Tenant: tenant.Name, TenantID: tenant.ID, At: formatTime(e.At)}), err
}

// aboutAPIKey returns the key that the event is about, and the variables that all mails about
// API keys have in common.
func aboutAPIKey(ctx context.Context, tx *store.Tx, e doorward.Event) (doorward.APIKey, variables, error) {
	key, err := tx.APIKey(ctx, e.Target.ID, tx.Now)
	if err != nil {
		return key, variables{}, err
	}
	tenant, err := tx.Tenant(ctx, key.TenantID)
	if err != nil {
		return key, variables{}, err
	}
	owner, err := nameIn(ctx, tx, key.TenantID, key.OwnerID)
	v := variables{Tenant: tenant.Name, Key: key.Name, Hint: key.Hint, Owner: owner, At: formatTime(e.At), IP: e.IP}
	if key.LastUsedAt != nil {
		v.LastUsed = formatTime(*key.LastUsedAt)
	}
	return key, v, err
}

// composeExpiring makes the notice to the owner of a key that ends soon. It is obsolete once
// the key has ended, or its end, its owner or the owner's address has changed.
func (m *Mail) composeExpiring(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	key, v, err := aboutAPIKey(ctx, tx, e)
	if err != nil {
		return nil, err
	}
	owner, err := tx.User(ctx, key.TenantID, key.OwnerID)
	if err != nil {
		return nil, err
	}
	ends := key.EndsAt()
	if key.HasEnded(tx.Now) || ends.Format(time.RFC3339) != e.Change(doorward.FieldEndsAt).To || owner.Email != row.Recipient {
		return nil, store.ErrNone
	}
	tenant, err := tx.Tenant(ctx, key.TenantID)
	if err != nil {
		return nil, err
	}
	v.Name, v.Until, v.RotateBy = owner.Name, formatTime(ends), ends.Before(key.ExpiresAt)
	v.Link = m.baseURL + "/console/keys/" + key.ID
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, v).withStyle(m.styleOf(tenant)), err
}

// composeLeak makes the notice of a leaked API key. Like other security notices it has no link
// and no image.
func (m *Mail) composeLeak(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	_, v, err := aboutAPIKey(ctx, tx, e)
	if err != nil {
		return nil, err
	}
	locale, err := localeOf(ctx, tx, row.Recipient)
	return m.texts.render(row.Kind, locale, v), err
}

// composeOperatorLeak makes the notice of a leaked operator key or service key. The key is
// deleted, so its name is taken from the event. It is in the fallback language, since operators
// have no account.
func (m *Mail) composeOperatorLeak(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	e, err := tx.Event(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	return m.texts.render(row.Kind, "", variables{Site: m.site(), Key: e.Change(doorward.FieldName).From, At: formatTime(e.At), IP: e.IP}), nil
}

// actorOf returns the name of the event's actor. A user who has left is named by the address, an
// erased one and a deleted API key by the id. Other actors have no name; mails call them the operator.
func actorOf(ctx context.Context, tx *store.Tx, e doorward.Event) (string, error) {
	switch e.ActorType {
	case doorward.ByUser:
	case doorward.ByKey:
		key, err := tx.APIKey(ctx, e.ActorID, e.At)
		if errors.Is(err, store.ErrNone) {
			return e.ActorID, nil
		}
		return unlinked(key.Name), err
	default:
		return "", nil
	}
	name, err := nameIn(ctx, tx, e.Target.TenantID, e.ActorID)
	return cmp.Or(name, shownAddress(e.ActorEmail), e.ActorID), err
}

// nameIn returns the name and address of a member as mails show them; empty when there is no
// such member.
func nameIn(ctx context.Context, tx *store.Tx, tenantID, userID string) (string, error) {
	user, err := tx.User(ctx, tenantID, userID)
	switch {
	case errors.Is(err, store.ErrNone):
		return "", nil
	case err != nil || user.Name == "":
		return shownAddress(user.Email), err
	}
	return unlinked(user.Name) + " (" + shownAddress(user.Email) + ")", nil
}

// shownAddress returns another person's address for a mail: whole, but unlinked if what is before
// the @ could be a link of its own, such as evil.example/pay.
func shownAddress(email string) string {
	if strings.ContainsAny(email, "/?#&=|{}`") {
		return unlinked(email)
	}
	return email
}

// localeOf returns the language of the account with the address; empty when there is none.
func localeOf(ctx context.Context, tx *store.Tx, email string) (string, error) {
	account, err := tx.AccountByEmail(ctx, email)
	if errors.Is(err, store.ErrNone) {
		return "", nil
	}
	return account.Locale, err
}

// site returns the base URL without its scheme.
func (m *Mail) site() string {
	_, site, _ := strings.Cut(m.baseURL, "://")
	return site
}

// formatTime formats a time to the minute, the same in every language.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
