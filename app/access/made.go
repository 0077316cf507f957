package access

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// MadeWebhooks returns the webhooks of the tenant that the user has made and that go on when the
// user is suspended or removed, with their URLs if the caller manages webhooks.
func MadeWebhooks(ctx context.Context, read store.Reader, by *doorward.Caller, now time.Time, tenantID, userID string) ([]doorward.MadeWebhook, error) {
	all, err := read.WebhooksMadeBy(ctx, tenantID, userID)
	if !may(by, now, doorward.WebhookManage, by.Tenant(), nil).Allowed {
		for i := range all {
			all[i].URL = ""
		}
	}
	return all, err
}
