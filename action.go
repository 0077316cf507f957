package doorward

import "slices"

// Action is an action such as "user.invite". The list in this file serves as permissions,
// policy actions, names of audit events, types of webhook events and metric labels, so that
// a permission and the record of its use can't drift apart.
type Action string

// The actions that roles grant (the table of permissions).
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
	// Through is the permission that allows a ByRole action. A permission has itself here.
	Through Action
	// WhileClosing reports whether the action is allowed in a closing tenant.
	WhileClosing bool
	// WhilePaused reports whether the action is allowed while the operator has paused changes.
	// Actions that a login needs, or that end access, are.
	WhilePaused bool
	// Counted reports whether its events count in a tenant's quota of events a day; when that
	// is used up, the action is refused. Actions that open or end access, delete something, or
	// protect an account aren't counted: a used-up quota must not lock people out or keep them in.
	Counted bool
	// NoKeys reports whether API keys can't have the permission.
	NoKeys bool
	// Platform reports whether it is an action of the platform, not of Doorward.
	Platform bool
	About    string // the description in the platform's model; empty for Doorward's own actions
	Resource string // the type of the objects that it acts on; empty: the tenant
	StepUp   bool   // whether it needs a recent proof of the user's identity
	roles    roleSet
	bit      uint16 // the position of Through in Permissions
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
func (v Verb) IsPermission() bool { return v.By == ByRole && v.Through == v.Action }

// own are Doorward's own actions.
var own = []Verb{
	grants(UserRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer),
	whileClosing(grants(TenantRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer)),
	counted(grants(UserInvite, RoleOwner, RoleAdmin)),
	whilePaused(grants(UserManage, RoleOwner, RoleAdmin)), // by itself it changes nothing
	grants(SettingsManage, RoleOwner, RoleAdmin),
	notForKeys(grants(APIKeyManage, RoleOwner, RoleAdmin)),
	grants(WebhookManage, RoleOwner, RoleAdmin),
	grants(AuditRead, RoleOwner, RoleAdmin),
	grants(PolicyRead, RoleOwner, RoleAdmin),
	notForKeys(grants(RoleManage, RoleOwner, RoleAdmin)),
	whileClosing(notForKeys(grants(TenantDestroy, RoleOwner))),
	notForKeys(grants(PolicyManage, RoleOwner)),
	notForKeys(grants(SSOManage, RoleOwner)),

	counted(through(UserManage, UserRole)),
	whilePaused(through(UserManage, UserSuspend)),
	counted(through(UserManage, UserResume)),
	through(UserManage, UserRemove),
	counted(through(UserManage, UserRename)),
	whilePaused(through(UserManage, UserSignOut)),
	through(UserManage, MFAReset),
	whilePaused(through(UserInvite, InvitationRevoke)),
	counted(through(UserInvite, InvitationResend)),
	counted(through(APIKeyManage, APIKeyCreate)),
	counted(through(APIKeyManage, APIKeyUpdate)),
	through(APIKeyManage, APIKeyRotate),
	whilePaused(through(APIKeyManage, APIKeyRevoke)),
	counted(through(RoleManage, RoleCreate)),
	counted(through(RoleManage, RoleUpdate)),
	through(RoleManage, RoleDelete),
	counted(through(PolicyManage, PolicyUpdate)),
	through(PolicyManage, PolicyConfirm),
	through(PolicyManage, PolicyRestore), // not counted: the way out of a policy that refuses too much
	counted(through(WebhookManage, WebhookCreate)),
	counted(through(WebhookManage, WebhookUpdate)),
	through(WebhookManage, WebhookDelete),
	through(WebhookManage, WebhookRotate),
	through(WebhookManage, WebhookTest), // not counted: recorded after the request was sent
	counted(through(WebhookManage, WebhookRetry)),
	counted(through(WebhookManage, WebhookReplay)),
	counted(through(SettingsManage, TenantUpdate)),
	whileClosing(through(TenantDestroy, TenantClose)),
	whileClosing(through(TenantDestroy, TenantRestore)),

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
	platform(grants(MessageSend, RoleOwner, RoleAdmin, RoleUser)),
	platform(grants(MessageRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer)),
	platform(grants(ReportRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer)),
	platform(grants(BillingRead, RoleOwner)),
	platform(notForKeys(grants(BillingManage, RoleOwner))),
	platform(notForKeys(grants(DataDestroy, RoleOwner))),
}

// grants returns a permission that the roles grant.
func grants(a Action, to ...Role) Verb {
	v := Verb{Action: a, By: ByRole, Through: a}
	for _, r := range to {
		v.roles |= r.bit()
	}
	return v
}

// through returns an action that a broader permission allows.
func through(permission, action Action) Verb {
	return Verb{Action: action, By: ByRole, Through: permission}
}

// whileClosing marks an action that is allowed while the tenant is closing.
func whileClosing(v Verb) Verb {
	v.WhileClosing = true
	return v
}

// whilePaused marks an action that is allowed while the operator has paused changes.
func whilePaused(v Verb) Verb {
	v.WhilePaused = true
	return v
}

// counted marks an action whose events count in the quota of events a day.
func counted(v Verb) Verb {
	v.Counted = true
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
