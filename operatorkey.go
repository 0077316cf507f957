package doorward

import (
	"cmp"
	"slices"
)

// What operator keys may do, where they are limited, besides what services may across
// tenants.
const (
	OperatorTenantQuota Action = "tenant.quota"
	OperatorTenantClose Action = "tenant.close" // closing and restoring
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

// neededOfOperators has the permissions for acts of the operator that have another name.
var neededOfOperators = map[Action]Action{
	TenantFreeze: ServiceTenantStatus, TenantThaw: ServiceTenantStatus, TenantRestore: OperatorTenantClose,
}

// IsLimited reports whether an operator key may do only what Limits lists.
func (p *Principal) IsLimited() bool { return len(p.Limits) > 0 }

// OperatorPermission is the permission that a limited operator key needs for an act.
func OperatorPermission(act Action) Action { return cmp.Or(neededOfOperators[act], act) }
