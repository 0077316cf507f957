package doorward

import (
	"cmp"
	"fmt"
	"slices"
)

// Action is an action such as "user.invite". The list in this file serves as permissions,
// policy actions, names of audit events, types of webhook events and metric labels, so that
// a permission and the record of its use can't drift apart.
type Action string

// The actions that roles grant; docs/permissions.md has the table.
const (
	MessageSend    Action = "message.send"
	MessageRead    Action = "message.read"
	ReportRead     Action = "report.read"
	UserRead       Action = "user.read"
	TenantRead     Action = "tenant.read"
	UserInvite     Action = "user.invite"
	UserManage     Action = "user.manage"
	SettingsManage Action = "settings.manage"
	APIKeyManage   Action = "apikey.manage"
	WebhookManage  Action = "webhook.manage"
	AuditRead      Action = "audit.read"
	BillingRead    Action = "billing.read"
	BillingManage  Action = "billing.manage"
	DataDestroy    Action = "data.destroy"
	TenantDestroy  Action = "tenant.destroy"
	PolicyManage   Action = "policy.manage"
	PolicyRead     Action = "policy.read"
	RoleManage     Action = "role.manage"
	SSOManage      Action = "sso.manage"
)

// What is done with a tenant's demand for sign-on.
const (
	SSOPolicyChange Action = "sso.policy"
	SSOConfirm      Action = "sso.confirm"
	SSORevert       Action = "sso.revert"    // it was not confirmed in time
	SSORefuse       Action = "sso.refuse"    // a sign-in by a connection was refused
	IdentityLink    Action = "identity.link" // an account was joined to who somebody is at a provider
	UserJoin        Action = "user.join"     // a sign-in by a connection has made somebody a member
	SSOBypass       Action = "sso.bypass"    // an OWNER has signed in without the sign-on that is demanded
)

// Actions that are no permissions: a broader permission, a proof, or being the operator
// allows them. They are recorded under their own names.
const (
	SessionOpen      Action = "session.open"
	SessionRefuse    Action = "session.refuse"
	RequestRefuse    Action = "request.refuse" // refused before the action was known
	SessionEnd       Action = "session.end"
	InvitationAccept Action = "invitation.accept"
	UserRole         Action = "user.role"
	UserSuspend      Action = "user.suspend"
	UserResume       Action = "user.resume"
	UserRemove       Action = "user.remove"
	UserLeave        Action = "user.leave"
	UserProfile      Action = "user.profile"
	UserRename       Action = "user.rename"
	UserSignOut      Action = "user.signout"
	InvitationRevoke Action = "invitation.revoke"
	InvitationResend Action = "invitation.resend"
	PasswordChange   Action = "password.change"
	PasswordReset    Action = "password.reset"
	PasswordForgot   Action = "password.forgot"
	AccountEmail     Action = "account.email"   // a change of the address was asked for, confirmed or undone
	AccountExport    Action = "account.export"  // somebody took what is held about them
	AccountErase     Action = "account.erase"   // somebody left all tenants, and the account was deleted
	SessionStepUp    Action = "session.step_up" // its user has proved again who they are
	MFAEnrol         Action = "mfa.enrol"       // a second factor was set up, or recovery codes were made
	MFARemove        Action = "mfa.remove"      // a second factor was removed
	MFAChallenge     Action = "mfa.challenge"   // the password was right, and a second factor is asked for
	MFARefuse        Action = "mfa.refuse"      // an answer to a challenge was wrong
	MFARecover       Action = "mfa.recover"     // a recovery code, or the code of a reset, took the factor's place
	MFAKeep          Action = "mfa.keep"        // a person refused a reset of their second factors
	MFAClone         Action = "mfa.clone"       // a passkey was found to be a copy, and was disabled
	MFAReset         Action = "mfa.reset"       // an administrator or the operator lets a person set up factors again
	TenantUpdate     Action = "tenant.update"
	TenantClose      Action = "tenant.close"
	TenantRestore    Action = "tenant.restore"
	TenantCreate     Action = "tenant.create"
	TenantFreeze     Action = "tenant.freeze"
	TenantThaw       Action = "tenant.thaw"
	TenantQuota      Action = "tenant.quota"
	TenantOwnerless  Action = "tenant.ownerless" // a change has left it without an active OWNER
	TenantExport     Action = "tenant.export"
	UserImport       Action = "user.import"
	KeyCreate        Action = "key.create"
	KeyRevoke        Action = "key.revoke"
	KeyEnable        Action = "key.enable"         // a service key works again after a restore
	SigningKeyRotate Action = "key.rotate_signing" // assertions are signed with the next key
	MasterKeyRotate  Action = "key.rotate_master"  // sealed values are sealed again, with another key
	MasterKeyReplace Action = "key.replace_master" // a lost master key was replaced, and what was sealed is forgotten
	APIKeyCreate     Action = "apikey.create"
	APIKeyUpdate     Action = "apikey.update"
	APIKeyRotate     Action = "apikey.rotate"
	APIKeyRevoke     Action = "apikey.revoke"
	APIKeyExpiring   Action = "apikey.expiring" // it ends in 30 days, 7 days or a day
	APIKeyExpire     Action = "apikey.expire"   // it has ended by itself
	APIKeyLeak       Action = "apikey.leak"     // somebody has found and reported it, and it has ended
	APIKeyRefuse     Action = "apikey.refuse"   // it was presented, and was not valid or came from a refused address
	RoleCreate       Action = "role.create"
	RoleUpdate       Action = "role.update"
	RoleDelete       Action = "role.delete"
	PolicyUpdate     Action = "policy.update"
	PolicyConfirm    Action = "policy.confirm"
	PolicyRestore    Action = "policy.restore"
	WebhookCreate    Action = "webhook.create"
	WebhookUpdate    Action = "webhook.update"
	WebhookDelete    Action = "webhook.delete"
	WebhookRotate    Action = "webhook.rotate"
	WebhookTest      Action = "webhook.test"
	WebhookRetry     Action = "webhook.retry"
	WebhookReplay    Action = "webhook.replay"
	WebhookFailing   Action = "webhook.failing" // no delivery has succeeded for an hour, or for a day
	WebhookDisable   Action = "webhook.disable" // Doorward has disabled it

	ConnectionCreate       Action = "connection.create"
	ConnectionUpdate       Action = "connection.update"
	ConnectionSwitch       Action = "connection.switch" // what was pending is in force
	ConnectionEnable       Action = "connection.enable"
	ConnectionDisable      Action = "connection.disable"
	ConnectionDelete       Action = "connection.delete"
	ConnectionTry          Action = "connection.test"
	ConnectionSecretChange Action = "connection.secret"      // a client secret was added or deleted, ends soon, or the provider refuses it
	DirectoryAlarm         Action = "directory.alarm"        // a directory ends the access of many
	DirectoryUndo          Action = "directory.undo"         // a run of a directory is being undone
	SetupLinkManage        Action = "connection.setup_link"  // a link for the customer's own IT was made or ended
	SetupLinkBegin         Action = "connection.setup_begin" // a browser has begun by such a link
	IdentityUnlink         Action = "identity.unlink"
	DomainCreate           Action = "domain.create"
	DomainUpdate           Action = "domain.update" // the connection by which its people sign in was set or taken away
	DomainVerify           Action = "domain.verify"
	DomainLapse            Action = "domain.lapse"   // its record has been missing for 72 h
	DomainRelease          Action = "domain.release" // the operator frees it: the next tenant that proves it has it
	DomainDelete           Action = "domain.delete"  // by its tenant, or because another tenant has proved it

	InstallationBackup  Action = "installation.backup"  // a copy of its database was made
	InstallationRestore Action = "installation.restore" // its database was restored from a backup
	InstallationMove    Action = "installation.move"    // its database was moved to another server
	ModelApply          Action = "model.apply"          // the platform's model was replaced

	InstallationMaintenance Action = "installation.maintenance" // changes were paused or resumed

	QueueRetry Action = "queue.retry" // queued mails or deliveries were made due at once
	QueueDrop  Action = "queue.drop"  // queued mails or deliveries were given up
	QueuePause Action = "queue.pause" // a queue was paused or resumed

	IncidentSignOut    Action = "incident.sign_out"    // all sessions of a tenant, or those since a time, were ended
	IncidentForceReset Action = "incident.force_reset" // a person's password was removed, and a reset mailed

	AccountUnlock Action = "account.unlock" // the delays after wrong passwords and codes were ended
	PasswordLink  Action = "password.link"  // the operator was shown a link that sets another password

	AuditLink Action = "audit.link" // a link was made that opens the operator's page
	AuditOpen Action = "audit.open" // such a link was opened
	AuditEnd  Action = "audit.end"  // an operator's page was left, or all of these pages were ended
)

// What the keys of services and limited operator keys can be permitted beside actions: reads, which
// are not recorded, and broader permissions than one action.
const (
	ServiceIntrospect   Action = "access.introspect"
	ServiceEvaluate     Action = "access.evaluate"
	ServiceTenantList   Action = "tenant.list"
	ServiceTenantStatus Action = "tenant.status" // freezing and thawing
	ServiceEventsRead   Action = "events.read"   // of all tenants
	OperatorModelRead   Action = "model.read"
)

// Authority says what makes an action allowed.
type Authority uint8

const (
	// ByRole actions are granted by the role of a membership.
	ByRole Authority = iota + 1
	// ByProof actions are allowed by a proof in the request: a password, the token
	// of a mail, or the session that ends.
	ByProof
	// ByOperator actions are for the operator of the installation, and for Doorward itself.
	ByOperator
	// ByGrant actions are those of ByOperator that are only permissions of keys: they are never
	// recorded, and Verbs leaves them out.
	ByGrant
)

// Scope says whose thing an action changes, and so whose word counts for it.
type Scope uint8

const (
	// OfTenant actions change what belongs to one tenant.
	OfTenant Scope = iota
	// OfMembership actions change what a person is in one tenant.
	OfMembership
	// OfAccount actions change what belongs to a person in all tenants: address, password, factors.
	OfAccount
	// OfInstallation actions change what belongs to the operator.
	OfInstallation
)

// Demand says of whom an action demands a recent proof of identity, whatever it changes. Effects say
// what else does. Keys, services and the operator never need one.
type Demand uint8

const (
	// NoProof: of nobody.
	NoProof Demand = iota
	// ProofAlways: of everybody.
	ProofAlways
	// ProofIfDemanded: of people who have a second factor, or whose tenant demands one.
	ProofIfDemanded
	// ProofIfFactor: of people who have a second factor. Others send the password in the request.
	ProofIfFactor
)

// Exemption says for whom policies can't refuse an action.
type Exemption uint8

const (
	// NotExempt: for nobody.
	NotExempt Exemption = iota
	// ExemptForOwners: for OWNERs, so that somebody can always mend the policies.
	ExemptForOwners
	// ExemptForAll: for everybody.
	ExemptForAll
)

// Verb has the properties of an action: a row of the list below. Nothing else about an action is
// written elsewhere: decisions, guards of routes and documents read it here.
type Verb struct {
	Action Action
	By     Authority
	// Permission is the permission that allows a ByRole action. A permission has itself here.
	Permission Action
	// Scope says whose thing it changes.
	Scope Scope
	// Proof says of whom a recent proof of identity is demanded.
	Proof Demand
	// Service is the permission that a service key needs; empty: no service key may do it. A
	// ByRole action needs its Permission instead.
	Service Action
	// Operator is the permission that a limited operator key needs; empty: none may do it.
	Operator Action
	// Exempt says for whom policies can't refuse it.
	Exempt Exemption
	// AllowedWhileClosing reports whether the action is allowed in a closing tenant.
	AllowedWhileClosing bool
	// AllowedWhilePaused reports whether the action is allowed while the operator has paused
	// changes. It is true for actions that a login or the operator's page needs, for those that
	// end access, and for records of refusals.
	AllowedWhilePaused bool
	// CountsInQuota reports whether its events count in a tenant's quota of events a day; when
	// that is used up, the action is refused. Signing in and actions that end access, delete something
	// or protect an account aren't counted: a used-up quota must not lock people out or keep them in.
	CountsInQuota bool
	// NoKeys reports whether API keys can't have the permission: with it a key could give itself, or
	// others, more than it was given. Of another action: no key may do it, whatever it has.
	NoKeys bool
	// SetupLink reports whether a set-up link may do it, to what belongs to its connection.
	SetupLink bool
	// Directory reports whether a connection's directory may do it to people of its tenant.
	Directory bool
	// Platform reports whether it is an action of the platform, not of Doorward.
	Platform bool
	About    string // the description in the platform's model; empty for Doorward's own actions
	Resource string // the type of the objects that it acts on; empty: the tenant
	roles    roleSet
	bit      uint16 // the position of Permission in Permissions
}

// Roles returns the built-in roles that grant the action, the highest first.
func (v Verb) Roles() (all []Role) {
	for _, r := range slices.Backward(Roles) {
		if v.roles&r.bit() != 0 {
			all = append(all, r)
		}
	}
	return all
}

// roleSet is a set of roles, one bit each.
type roleSet uint8

func (r Role) bit() roleSet {
	if r.rank() < 0 {
		return 0
	}
	return 1 << r.rank()
}

// from returns the roles that rank at least as high as the lowest.
func from(lowest Role) (set roleSet) {
	for _, r := range Roles[lowest.rank():] {
		set |= r.bit()
	}
	return set
}

// IsPermission reports whether roles grant the action by its own name.
func (v *Verb) IsPermission() bool { return v.By == ByRole && v.Permission == v.Action }

// WrongType says why nobody may do the action to a resource of the type: it acts on those of another
// type, "tenant" unless the model names one. It is empty for the right type.
func (v *Verb) WrongType(t string) string {
	if want := cmp.Or(v.Resource, "tenant"); t != want {
		return fmt.Sprintf("%s acts on resources of the type %s, and this is one of the type %s. For an action of the platform, \"resource\" in the model names the type.", v.Action, want, t)
	}
	return ""
}

// ForPeople reports whether only a person may do it, in a session: no key may, whatever it has.
func (v *Verb) ForPeople() bool { return v.NoKeys && !v.IsPermission() }

// own are Doorward's own actions.
var own = slices.Concat(by(ByRole, permissions), by(ByRole, allowed), by(ByProof, proved), by(ByOperator, operated), by(ByGrant, granted))

// by completes rows: their authority, the permission of those that roles grant, and the scope of those
// that are the operator's.
func by(a Authority, rows []Verb) []Verb {
	for i := range rows {
		v := &rows[i]
		v.By = a
		switch {
		case a == ByRole:
			v.Permission = cmp.Or(v.Permission, v.Action)
		case a == ByOperator || a == ByGrant:
			v.Scope = OfInstallation
		}
	}
	return rows
}

// permissions are what roles grant. Service and Operator have the action itself where such keys
// can have it.
var permissions = []Verb{
	{Action: UserRead, roles: from(RoleViewer), Service: UserRead},
	{Action: TenantRead, roles: from(RoleViewer), Service: TenantRead, AllowedWhileClosing: true},
	{Action: UserInvite, roles: from(RoleAdmin), Service: UserInvite, CountsInQuota: true, Directory: true},
	{Action: UserManage, roles: from(RoleAdmin), Service: UserManage, AllowedWhilePaused: true, Directory: true}, // by itself it changes nothing
	{Action: SettingsManage, roles: from(RoleAdmin)},
	{Action: APIKeyManage, roles: from(RoleAdmin), Service: APIKeyManage, NoKeys: true},
	{Action: WebhookManage, roles: from(RoleAdmin), Service: WebhookManage, Operator: WebhookManage},
	{Action: AuditRead, roles: from(RoleAdmin), Service: AuditRead, Operator: AuditRead},
	{Action: PolicyRead, roles: from(RoleAdmin), Exempt: ExemptForOwners},
	{Action: RoleManage, roles: from(RoleAdmin), NoKeys: true},
	{Action: TenantDestroy, roles: from(RoleOwner), NoKeys: true, AllowedWhileClosing: true},
	{Action: PolicyManage, roles: from(RoleOwner), Exempt: ExemptForOwners, NoKeys: true},
	{Action: SSOManage, roles: from(RoleOwner), NoKeys: true},
}

// allowed are what a broader permission allows.
var allowed = []Verb{
	{Action: UserRole, Permission: UserManage, Scope: OfMembership, CountsInQuota: true, Directory: true},
	{Action: UserSuspend, Permission: UserManage, Scope: OfMembership, AllowedWhilePaused: true, Directory: true},
	{Action: UserResume, Permission: UserManage, Scope: OfMembership, CountsInQuota: true, Directory: true},
	{Action: UserRemove, Permission: UserManage, Scope: OfMembership, Directory: true},
	{Action: UserRename, Permission: UserManage, Scope: OfMembership, CountsInQuota: true, Directory: true},
	{Action: UserSignOut, Permission: UserManage, Scope: OfMembership, Exempt: ExemptForAll, AllowedWhilePaused: true},
	{Action: MFAReset, Permission: UserManage, Scope: OfAccount, NoKeys: true},
	{Action: InvitationRevoke, Permission: UserInvite, AllowedWhilePaused: true, Directory: true},
	{Action: InvitationResend, Permission: UserInvite, CountsInQuota: true, Directory: true},
	{Action: APIKeyCreate, Permission: APIKeyManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: APIKeyUpdate, Permission: APIKeyManage, CountsInQuota: true}, // a proof where it can do more afterwards
	{Action: APIKeyRotate, Permission: APIKeyManage},
	{Action: APIKeyRevoke, Permission: APIKeyManage, AllowedWhilePaused: true},
	{Action: RoleCreate, Permission: RoleManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: RoleUpdate, Permission: RoleManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: RoleDelete, Permission: RoleManage, Proof: ProofAlways},
	{Action: PolicyUpdate, Permission: PolicyManage, Proof: ProofAlways, Exempt: ExemptForOwners, CountsInQuota: true},
	{Action: PolicyConfirm, Permission: PolicyManage, Exempt: ExemptForOwners},
	{Action: PolicyRestore, Permission: PolicyManage, Proof: ProofAlways, Exempt: ExemptForOwners}, // not counted: the way out of a policy that refuses too much
	{Action: WebhookCreate, Permission: WebhookManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: WebhookUpdate, Permission: WebhookManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: WebhookDelete, Permission: WebhookManage, Proof: ProofAlways},
	{Action: WebhookRotate, Permission: WebhookManage, Proof: ProofAlways},
	{Action: WebhookTest, Permission: WebhookManage}, // not counted: recorded after the request was sent
	{Action: WebhookRetry, Permission: WebhookManage, CountsInQuota: true},
	{Action: WebhookReplay, Permission: WebhookManage, CountsInQuota: true},
	{Action: SSOPolicyChange, Permission: SSOManage, Proof: ProofAlways, NoKeys: true}, // not counted: it ends access, too
	{Action: SSOConfirm, Permission: SSOManage, NoKeys: true},
	{Action: ConnectionCreate, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: ConnectionUpdate, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true, SetupLink: true}, // what it signs in by: connection.Edit refuses links the rest
	{Action: ConnectionSwitch, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: ConnectionEnable, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: ConnectionDisable, Permission: SSOManage, Proof: ProofAlways, AllowedWhilePaused: true},
	{Action: ConnectionDelete, Permission: SSOManage, Proof: ProofAlways},
	{Action: ConnectionTry, Permission: SSOManage, CountsInQuota: true, SetupLink: true},
	{Action: DirectoryUndo, Permission: SSOManage, Proof: ProofAlways}, // not counted: it brings people back
	{Action: SetupLinkManage, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: ConnectionSecretChange, Permission: SSOManage, Proof: ProofAlways, SetupLink: true}, // not counted: a secret that ends must not lock people out
	{Action: IdentityUnlink, Permission: SSOManage, Scope: OfMembership, Proof: ProofAlways, AllowedWhilePaused: true},
	{Action: DomainCreate, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: DomainUpdate, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true},
	{Action: DomainVerify, Permission: SSOManage, Proof: ProofAlways, CountsInQuota: true, SetupLink: true},
	{Action: DomainDelete, Permission: SSOManage, Proof: ProofAlways},
	{Action: TenantUpdate, Permission: SettingsManage, CountsInQuota: true},
	{Action: TenantClose, Permission: TenantDestroy, Operator: TenantClose, Proof: ProofIfDemanded},
	{Action: TenantRestore, Permission: TenantDestroy, Operator: TenantClose, Exempt: ExemptForAll, AllowedWhileClosing: true},
}

// proved are what a proof in the request allows.
var proved = []Verb{
	{Action: SessionOpen, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: SessionRefuse, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: RequestRefuse, AllowedWhilePaused: true},
	{Action: SessionEnd, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: InvitationAccept, Scope: OfMembership, CountsInQuota: true},
	{Action: UserLeave, Scope: OfMembership, Proof: ProofAlways},
	{Action: UserProfile, Scope: OfMembership, CountsInQuota: true},
	{Action: PasswordChange, Scope: OfAccount, Proof: ProofIfFactor},
	{Action: PasswordReset, Scope: OfAccount},
	{Action: PasswordForgot, Scope: OfAccount},
	{Action: AccountEmail, Scope: OfAccount, Proof: ProofAlways},
	{Action: AccountExport, Scope: OfAccount, Proof: ProofAlways, AllowedWhilePaused: true},
	{Action: AccountErase, Scope: OfAccount, Proof: ProofAlways},
	{Action: SessionStepUp, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: MFAEnrol, Scope: OfAccount, Proof: ProofAlways},
	{Action: MFARemove, Scope: OfAccount, Proof: ProofAlways},
	{Action: MFAChallenge, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: MFARefuse, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: MFARecover, Scope: OfAccount, AllowedWhilePaused: true},
	{Action: MFAKeep, Scope: OfAccount},
	{Action: MFAClone, Scope: OfAccount, AllowedWhilePaused: true},
	{Action: SSOBypass, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: SSORefuse, AllowedWhilePaused: true},
	{Action: IdentityLink, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: UserJoin, Scope: OfMembership, AllowedWhilePaused: true},
	{Action: SetupLinkBegin, AllowedWhilePaused: true, SetupLink: true},
	{Action: APIKeyLeak, AllowedWhilePaused: true},
	{Action: APIKeyRefuse, AllowedWhilePaused: true},
	{Action: AuditOpen, Scope: OfInstallation, AllowedWhilePaused: true},
	{Action: AuditEnd, Scope: OfInstallation, AllowedWhilePaused: true},
}

// operated are what the operator does, and Doorward itself.
var operated = []Verb{
	{Action: TenantCreate, Service: TenantCreate, Operator: TenantCreate},
	{Action: TenantFreeze, Service: ServiceTenantStatus, Operator: ServiceTenantStatus, AllowedWhilePaused: true},
	{Action: TenantThaw, Service: ServiceTenantStatus, Operator: ServiceTenantStatus},
	{Action: TenantQuota, Operator: TenantQuota},
	{Action: TenantOwnerless},
	{Action: TenantExport},
	{Action: UserImport},
	{Action: KeyCreate},
	{Action: KeyRevoke, AllowedWhilePaused: true},
	{Action: KeyEnable},
	{Action: MasterKeyRotate},
	{Action: MasterKeyReplace, AllowedWhilePaused: true},
	{Action: SigningKeyRotate},
	{Action: APIKeyExpiring},
	{Action: APIKeyExpire},
	{Action: WebhookFailing},
	{Action: WebhookDisable},
	{Action: SSORevert},
	{Action: DirectoryAlarm},
	{Action: DomainLapse},
	{Action: DomainRelease},
	{Action: InstallationBackup},
	{Action: InstallationRestore},
	{Action: InstallationMove},
	{Action: ModelApply, Operator: ModelApply},
	{Action: InstallationMaintenance},
	{Action: QueueRetry},
	{Action: QueueDrop},
	{Action: QueuePause},
	{Action: AccountUnlock, AllowedWhilePaused: true},
	{Action: PasswordLink},
	{Action: IncidentSignOut, AllowedWhilePaused: true},
	{Action: IncidentForceReset, AllowedWhilePaused: true},
	{Action: AuditLink, AllowedWhilePaused: true},
}

// granted are only permissions of keys.
var granted = []Verb{
	{Action: ServiceIntrospect, Service: ServiceIntrospect, Operator: ServiceIntrospect},
	{Action: ServiceEvaluate, Service: ServiceEvaluate, Operator: ServiceEvaluate},
	{Action: ServiceTenantList, Service: ServiceTenantList, Operator: ServiceTenantList},
	{Action: ServiceEventsRead, Service: ServiceEventsRead, Operator: ServiceEventsRead},
	{Action: OperatorModelRead, Operator: OperatorModelRead},
}

// ServicePermissions returns the permissions that a service key can have: first those across
// tenants, then those inside one.
func ServicePermissions() []Action { return column(func(v Verb) Action { return v.Service }) }

// OperatorPermissions returns the permissions that an operator key can be limited to.
func OperatorPermissions() []Action { return column(func(v Verb) Action { return v.Operator }) }

// column returns the different values of a column of own, first those across tenants.
func column(of func(Verb) Action) (all []Action) {
	for _, v := range slices.Concat(granted, operated, permissions, allowed) {
		if a := of(v); a != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// messaging are the actions of a messaging platform, the default. An applied model replaces them.
var messaging = []Verb{
	platform(MessageSend, RoleUser),
	platform(MessageRead, RoleViewer),
	platform(ReportRead, RoleViewer),
	platform(BillingRead, RoleOwner),
	platform(BillingManage, RoleOwner),
	platform(DataDestroy, RoleOwner),
}

// platform returns a permission that is not Doorward's own, which the lowest role and higher ones
// grant. Keys can't have two of them, as docs/model.md says.
func platform(a Action, lowest Role) Verb {
	return Verb{Action: a, By: ByRole, Permission: a, roles: from(lowest), NoKeys: a == BillingManage || a == DataDestroy, Platform: true}
}
