package doorward

import (
	"cmp"
	"slices"
)

// Permissions that only operator keys can have. operatorPermissions also has those that service
// keys can have as well.
const (
	OperatorTenantQuota Action = "tenant.quota"
	OperatorTenantClose Action = "tenant.close" // by API it can only be closed, not restored
	OperatorModelRead   Action = "model.read"
	OperatorModelApply  Action = "model.apply"
)

// operatorPermissions are all that a limited operator key can have.
var operatorPermissions = []Action{
	ServiceIntrospect, ServiceEvaluate, ServiceTenantList, ServiceTenantCreate, ServiceTenantStatus,
	OperatorTenantQuota, OperatorTenantClose, OperatorModelRead, OperatorModelApply,
	WebhookManage, AuditRead,
}

// OperatorPermissions returns the permissions that an operator key can be limited to.
func OperatorPermissions() []Action { return slices.Clone(operatorPermissions) }

// operatorPermissionOf has the permission of each action that needs one of another name.
var operatorPermissionOf = map[Action]Action{
	TenantFreeze: ServiceTenantStatus, TenantThaw: ServiceTenantStatus, TenantRestore: OperatorTenantClose,
}

// IsLimited reports whether the principal is an operator key that may do only what Limits
// lists.
func (p *Principal) IsLimited() bool { return len(p.Limits) > 0 }

// OperatorPermission returns the permission that a limited operator key needs for an action.
func OperatorPermission(action Action) Action {
	return cmp.Or(operatorPermissionOf[action], action)
}
