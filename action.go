package doorward

import "slices"

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
	AccountErase     Action = "account.erase"   // somebody left all tenants, and the account was deleted
	SessionStepUp    Action = "session.step_up" // its user has proved again who they are
	MFAEnrol         Action = "mfa.enrol"       // a second factor was set up, or recovery codes were made
	MFARemove        Action = "mfa.remove"      // a second factor was removed
	MFAChallenge     Action = "mfa.challenge"   // the password was right, and a second factor is asked for
	MFARefuse        Action = "mfa.refuse"      // an answer to a challenge was wrong
	MFARecover       Action = "mfa.recover"     // a recovery code, or the code of a reset, took the factor's place
	MFAClone         Action = "mfa.clone"       // a passkey was found to be a copy, and was disabled
	MFAReset         Action = "mfa.reset"       // an administrator or the operator lets a person set up factors again
	TenantUpdate     Action = "tenant.update"
	TenantClose      Action = "tenant.close"
	TenantRestore    Action = "tenant.restore"
	TenantCreate     Action = "tenant.create"
	TenantFreeze     Action = "tenant.freeze"
	TenantThaw       Action = "tenant.thaw"
	TenantQuota      Action = "tenant.quota"
	TenantExport     Action = "tenant.export"
	UserImport       Action = "user.import"
	KeyCreate        Action = "key.create"
	KeyRevoke        Action = "key.revoke"
	KeyEnable        Action = "key.enable"         // a service key works again after a restore
	SigningKeyRotate Action = "key.rotate_signing" // assertions are signed with the next key
	MasterKeyRotate  Action = "key.rotate_master"  // sealed values are sealed again, with another key
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

	InstallationBackup  Action = "installation.backup"  // a copy of its database was made
	InstallationRestore Action = "installation.restore" // its database was restored from a backup
	InstallationMove    Action = "installation.move"    // its database was moved to another server
	ModelApply          Action = "model.apply"          // the platform's model was replaced

	InstallationMaintenance Action = "installation.maintenance" // changes were paused or resumed

	AuditLink Action = "audit.link" // a link was made that opens the operator's page
	AuditOpen Action = "audit.open" // such a link was opened
	AuditEnd  Action = "audit.end"  // an operator's page was left, or all of these pages were ended
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
)

// Verb has the properties of an action: a row of the list below.
type Verb struct {
	Action Action
	By     Authority
	// Permission is the permission that allows a ByRole action. A permission has itself here.
	Permission Action
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
	// NoKeys reports whether API keys can't have the permission.
	NoKeys bool
	// Platform reports whether it is an action of the platform, not of Doorward.
	Platform bool
	About    string // the description in the platform's model; empty for Doorward's own actions
	Resource string // the type of the objects that it acts on; empty: the tenant
	StepUp   bool   // whether it needs a recent proof of the user's identity
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

// IsPermission reports whether roles grant the action by its own name.
func (v Verb) IsPermission() bool { return v.By == ByRole && v.Permission == v.Action }

// own are Doorward's own actions.
var own = []Verb{
	grantedTo(UserRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer),
	whileClosing(grantedTo(TenantRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer)),
	counted(grantedTo(UserInvite, RoleOwner, RoleAdmin)),
	whilePaused(grantedTo(UserManage, RoleOwner, RoleAdmin)), // by itself it changes nothing
	grantedTo(SettingsManage, RoleOwner, RoleAdmin),
	notForKeys(grantedTo(APIKeyManage, RoleOwner, RoleAdmin)),
	grantedTo(WebhookManage, RoleOwner, RoleAdmin),
	grantedTo(AuditRead, RoleOwner, RoleAdmin),
	grantedTo(PolicyRead, RoleOwner, RoleAdmin),
	notForKeys(grantedTo(RoleManage, RoleOwner, RoleAdmin)),
	whileClosing(notForKeys(grantedTo(TenantDestroy, RoleOwner))),
	notForKeys(grantedTo(PolicyManage, RoleOwner)),
	notForKeys(grantedTo(SSOManage, RoleOwner)),

	counted(allowedBy(UserManage, UserRole)),
	whilePaused(allowedBy(UserManage, UserSuspend)),
	counted(allowedBy(UserManage, UserResume)),
	allowedBy(UserManage, UserRemove),
	counted(allowedBy(UserManage, UserRename)),
	whilePaused(allowedBy(UserManage, UserSignOut)),
	allowedBy(UserManage, MFAReset),
	whilePaused(allowedBy(UserInvite, InvitationRevoke)),
	counted(allowedBy(UserInvite, InvitationResend)),
	counted(allowedBy(APIKeyManage, APIKeyCreate)),
	counted(allowedBy(APIKeyManage, APIKeyUpdate)),
	allowedBy(APIKeyManage, APIKeyRotate),
	whilePaused(allowedBy(APIKeyManage, APIKeyRevoke)),
	counted(allowedBy(RoleManage, RoleCreate)),
	counted(allowedBy(RoleManage, RoleUpdate)),
	allowedBy(RoleManage, RoleDelete),
	counted(allowedBy(PolicyManage, PolicyUpdate)),
	allowedBy(PolicyManage, PolicyConfirm),
	allowedBy(PolicyManage, PolicyRestore), // not counted: the way out of a policy that refuses too much
	counted(allowedBy(WebhookManage, WebhookCreate)),
	counted(allowedBy(WebhookManage, WebhookUpdate)),
	allowedBy(WebhookManage, WebhookDelete),
	allowedBy(WebhookManage, WebhookRotate),
	allowedBy(WebhookManage, WebhookTest), // not counted: recorded after the request was sent
	counted(allowedBy(WebhookManage, WebhookRetry)),
	counted(allowedBy(WebhookManage, WebhookReplay)),
	counted(allowedBy(SettingsManage, TenantUpdate)),
	whileClosing(allowedBy(TenantDestroy, TenantClose)),
	whileClosing(allowedBy(TenantDestroy, TenantRestore)),

	whilePaused(Verb{Action: SessionOpen, By: ByProof}),
	whilePaused(Verb{Action: SessionRefuse, By: ByProof}),
	whilePaused(Verb{Action: RequestRefuse, By: ByProof}),
	whilePaused(Verb{Action: SessionEnd, By: ByProof}),
	counted(Verb{Action: InvitationAccept, By: ByProof}),
	{Action: UserLeave, By: ByProof},
	counted(Verb{Action: UserProfile, By: ByProof}),
	{Action: PasswordChange, By: ByProof},
	{Action: PasswordReset, By: ByProof},
	{Action: PasswordForgot, By: ByProof},
	{Action: AccountEmail, By: ByProof},
	{Action: AccountErase, By: ByProof},
	whilePaused(Verb{Action: SessionStepUp, By: ByProof}),
	{Action: MFAEnrol, By: ByProof},
	{Action: MFARemove, By: ByProof},
	whilePaused(Verb{Action: MFAChallenge, By: ByProof}),
	whilePaused(Verb{Action: MFARefuse, By: ByProof}),
	whilePaused(Verb{Action: MFARecover, By: ByProof}),
	whilePaused(Verb{Action: MFAClone, By: ByProof}),
	whilePaused(Verb{Action: APIKeyLeak, By: ByProof}),
	whilePaused(Verb{Action: APIKeyRefuse, By: ByProof}),
	whilePaused(Verb{Action: AuditOpen, By: ByProof}),
	whilePaused(Verb{Action: AuditEnd, By: ByProof}),

	{Action: TenantCreate, By: ByOperator},
	whilePaused(Verb{Action: TenantFreeze, By: ByOperator}),
	{Action: TenantThaw, By: ByOperator},
	{Action: TenantQuota, By: ByOperator},
	{Action: TenantExport, By: ByOperator},
	{Action: UserImport, By: ByOperator},
	{Action: KeyCreate, By: ByOperator},
	whilePaused(Verb{Action: KeyRevoke, By: ByOperator}),
	{Action: KeyEnable, By: ByOperator},
	{Action: MasterKeyRotate, By: ByOperator},
	{Action: SigningKeyRotate, By: ByOperator},
	{Action: APIKeyExpiring, By: ByOperator},
	{Action: APIKeyExpire, By: ByOperator},
	{Action: WebhookFailing, By: ByOperator},
	{Action: WebhookDisable, By: ByOperator},
	{Action: InstallationBackup, By: ByOperator},
	{Action: InstallationRestore, By: ByOperator},
	{Action: InstallationMove, By: ByOperator},
	{Action: ModelApply, By: ByOperator},
	{Action: InstallationMaintenance, By: ByOperator},
	whilePaused(Verb{Action: AuditLink, By: ByOperator}),
}

// messaging are the actions of a messaging platform, the default. An applied model replaces them.
var messaging = []Verb{
	platform(grantedTo(MessageSend, RoleOwner, RoleAdmin, RoleUser)),
	platform(grantedTo(MessageRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer)),
	platform(grantedTo(ReportRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer)),
	platform(grantedTo(BillingRead, RoleOwner)),
	platform(notForKeys(grantedTo(BillingManage, RoleOwner))),
	platform(notForKeys(grantedTo(DataDestroy, RoleOwner))),
}

// grantedTo returns a permission that the roles grant.
func grantedTo(a Action, to ...Role) Verb {
	v := Verb{Action: a, By: ByRole, Permission: a}
	for _, r := range to {
		v.roles |= r.bit()
	}
	return v
}

// allowedBy returns an action that a broader permission allows.
func allowedBy(permission, action Action) Verb {
	return Verb{Action: action, By: ByRole, Permission: permission}
}

// whileClosing marks an action that is allowed while the tenant is closing.
func whileClosing(v Verb) Verb {
	v.AllowedWhileClosing = true
	return v
}

// whilePaused marks an action that is allowed while the operator has paused changes.
func whilePaused(v Verb) Verb {
	v.AllowedWhilePaused = true
	return v
}

// counted marks an action whose events count in the quota of events a day.
func counted(v Verb) Verb {
	v.CountsInQuota = true
	return v
}

// notForKeys marks a permission that no API key can have: with it a key could give
// itself, or others, more than it was given.
func notForKeys(v Verb) Verb {
	v.NoKeys = true
	return v
}

// platform marks an action that is not Doorward's own.
func platform(v Verb) Verb {
	v.Platform = true
	return v
}
