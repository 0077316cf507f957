package doorward

// Action is a verb such as "user.invite". The one list of them in this file
// serves as permission, policy action, audit event name, webhook event type
// and metric label, so that a permission and the record of its use can't drift
// apart.
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
)

// The acts that are recorded under a name of their own and allowed through
// something else: a broader permission, a proof, or being the operator.
const (
	SessionOpen      Action = "session.open"
	SessionRefuse    Action = "session.refuse"
	RequestRefuse    Action = "request.refuse" // turned away before it was known to be an act
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
	TenantUpdate     Action = "tenant.update"
	TenantClose      Action = "tenant.close"
	TenantRestore    Action = "tenant.restore"
	TenantCreate     Action = "tenant.create"
	TenantFreeze     Action = "tenant.freeze"
	TenantThaw       Action = "tenant.thaw"
	TenantExport     Action = "tenant.export"
	UserImport       Action = "user.import"
	KeyCreate        Action = "key.create"
	KeyRevoke        Action = "key.revoke"
	MasterKeyRotate  Action = "key.rotate_master" // what is sealed is sealed with another key

	InstallationBackup  Action = "installation.backup"  // all of it was copied
	InstallationRestore Action = "installation.restore" // its database was set back to a backup
	InstallationMove    Action = "installation.move"    // its database is another one now
)

// Authority says what makes an action allowed.
type Authority int

const (
	// ByRole actions are granted by the role of a membership.
	ByRole Authority = iota + 1
	// ByProof actions are authorised by what the caller has just proved: a
	// password, the token of a mail, or holding the very session that ends.
	ByProof
	// ByOperator actions belong to who runs the installation.
	ByOperator
)

// Verb is one row of the list of actions.
type Verb struct {
	Action Action
	By     Authority
	// Through is the permission that allows a ByRole action; for the
	// permissions themselves it is the action.
	Through Action
	roles   roleSet
}

// verbs is the one list. A new action is added here and nowhere else.
var verbs = []Verb{
	grants(MessageSend, RoleOwner, RoleAdmin, RoleUser),
	grants(MessageRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer),
	grants(ReportRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer),
	grants(UserRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer),
	grants(TenantRead, RoleOwner, RoleAdmin, RoleUser, RoleViewer),
	grants(UserInvite, RoleOwner, RoleAdmin),
	grants(UserManage, RoleOwner, RoleAdmin),
	grants(SettingsManage, RoleOwner, RoleAdmin),
	grants(APIKeyManage, RoleOwner, RoleAdmin),
	grants(WebhookManage, RoleOwner, RoleAdmin),
	grants(AuditRead, RoleOwner, RoleAdmin),
	grants(BillingRead, RoleOwner),
	grants(BillingManage, RoleOwner),
	grants(DataDestroy, RoleOwner),
	grants(TenantDestroy, RoleOwner),
	grants(PolicyManage, RoleOwner),

	through(UserManage, UserRole),
	through(UserManage, UserSuspend),
	through(UserManage, UserResume),
	through(UserManage, UserRemove),
	through(UserManage, UserRename),
	through(UserManage, UserSignOut),
	through(UserInvite, InvitationRevoke),
	through(UserInvite, InvitationResend),
	through(SettingsManage, TenantUpdate),
	through(TenantDestroy, TenantClose),
	through(TenantDestroy, TenantRestore),

	{Action: SessionOpen, By: ByProof},
	{Action: SessionRefuse, By: ByProof},
	{Action: RequestRefuse, By: ByProof},
	{Action: SessionEnd, By: ByProof},
	{Action: InvitationAccept, By: ByProof},
	{Action: UserLeave, By: ByProof},
	{Action: UserProfile, By: ByProof},
	{Action: PasswordChange, By: ByProof},
	{Action: PasswordReset, By: ByProof},
	{Action: PasswordForgot, By: ByProof},

	{Action: TenantCreate, By: ByOperator},
	{Action: TenantFreeze, By: ByOperator},
	{Action: TenantThaw, By: ByOperator},
	{Action: TenantExport, By: ByOperator},
	{Action: UserImport, By: ByOperator},
	{Action: KeyCreate, By: ByOperator},
	{Action: KeyRevoke, By: ByOperator},
	{Action: MasterKeyRotate, By: ByOperator},
	{Action: InstallationBackup, By: ByOperator},
	{Action: InstallationRestore, By: ByOperator},
	{Action: InstallationMove, By: ByOperator},
}

func grants(a Action, to ...Role) Verb {
	v := Verb{Action: a, By: ByRole, Through: a}
	for _, r := range to {
		v.roles |= r.bit()
	}
	return v
}

// through names an act that is allowed to whoever holds permission.
func through(permission, act Action) Verb {
	return Verb{Action: act, By: ByRole, Through: permission}
}

var verbOf = index()

func index() map[Action]Verb {
	m := make(map[Action]Verb, len(verbs))
	for _, v := range verbs {
		if v.By == ByRole {
			v.roles |= m[v.Through].roles
		}
		m[v.Action] = v
	}
	return m
}

// Verbs returns the list of all actions, permissions first.
func Verbs() []Verb {
	all := make([]Verb, len(verbs))
	for i, v := range verbs {
		all[i] = verbOf[v.Action]
	}
	return all
}

// Lookup returns the row of a, and whether there is one.
func Lookup(a Action) (Verb, bool) {
	v, ok := verbOf[a]
	return v, ok
}

// IsPermission reports whether a is one of the actions that roles grant by
// that name, the only ones a check may ask for.
func (a Action) IsPermission() bool {
	v, ok := verbOf[a]
	return ok && v.By == ByRole && v.Through == a
}
