package api

import (
	"context"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/web/front"
)

// webhookRoutes are also open to the operator, and to services that name no tenant, for the
// webhooks of the installation.
func (a *api) webhookRoutes() []front.Route {
	may := func(action doorward.Action) front.Guard { return front.Allowed(action).OrInstallation() }
	guard := may(doorward.WebhookManage)
	return []front.Route{
		front.On("GET /api/v2/webhooks", guard, front.JSON(http.StatusOK, a.webhooks), docWebhooks),
		front.On("POST /api/v2/webhooks", may(doorward.WebhookCreate), front.Create(http.StatusCreated, a.createWebhook, viewIssuedWebhook), docCreateWebhook),
		front.On("GET /api/v2/webhooks/{id}", guard, front.JSON(http.StatusOK, a.webhook), docWebhook),
		front.On("PATCH /api/v2/webhooks/{id}", may(doorward.WebhookUpdate), front.JSON(http.StatusOK, a.editWebhook), docEditWebhook),
		front.On("DELETE /api/v2/webhooks/{id}", may(doorward.WebhookDelete), front.JSON(http.StatusNoContent, a.deleteWebhook), docDeleteWebhook),
		front.On("POST /api/v2/webhooks/{id}/rotate-secret", may(doorward.WebhookRotate), front.Create(http.StatusCreated, a.rotateWebhook, viewWebhookSecret), docRotateWebhook),
		front.On("POST /api/v2/webhooks/{id}/test", may(doorward.WebhookTest), front.JSON(http.StatusOK, a.testWebhook), docTestWebhook),
		front.On("GET /api/v2/webhooks/{id}/deliveries", guard, front.JSON(http.StatusOK, a.deliveries), docDeliveries),
		front.On("POST /api/v2/webhooks/deliveries/{id}/retry", may(doorward.WebhookRetry), front.JSON(http.StatusAccepted, a.retryDelivery), docRetryDelivery),
		front.On("POST /api/v2/webhooks/{id}/replay", may(doorward.WebhookReplay), front.JSON(http.StatusAccepted, a.replay), docReplay),
	}
}

type webhookView struct {
	ID             string                  `json:"id" example:"whk_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	URL            string                  `json:"url" example:"https://hooks.example.com/doorward"`
	Events         []string                `json:"events" example:"[\"user.*\"]"`
	About          string                  `json:"about" example:"Sync of the CRM"`
	Include        []string                `json:"include" example:"[\"email\"]" doc:"email, where bodies hold e-mail addresses"`
	Enabled        bool                    `json:"enabled"`
	DisabledReason doorward.DisabledReason `json:"disabledReason,omitempty" enum:"gone,failing,restored,key_lost" doc:"Why Doorward has disabled it; absent otherwise. After key_lost, rotate its secret before you enable it"`
	PublicKey      string                  `json:"publicKey" example:"whpk_…" doc:"Verifies the signatures v1a (Ed25519)"`
	CreatedAt      time.Time               `json:"createdAt"`
	LastSuccessAt  *time.Time              `json:"lastSuccessAt,omitempty"`
	FailingSince   *time.Time              `json:"failingSince,omitempty" doc:"The first failure since the last success"`
}

func viewWebhook(w doorward.Webhook) webhookView {
	return webhookView{
		ID: w.ID, URL: w.URL, Events: w.Events, About: w.About, Include: w.Include, Enabled: w.Enabled, DisabledReason: w.DisabledReason,
		PublicKey: w.PublicKey, CreatedAt: w.CreatedAt, LastSuccessAt: w.LastSuccessAt, FailingSince: w.FailingSince,
	}
}

type webhookList struct {
	Items []webhookView `json:"items"`
	front.PageInfo
}

var docWebhooks = front.Doc{
	ID: "listWebhooks", Tag: "Webhooks", Summary: "List the tenant's webhooks",
	Description: "The newest first. With an operator key, or a service key without the header `Doorward-Tenant`, this and all other endpoints for webhooks are about those of the installation, which get the events of all tenants.",
	List:        true,
	Sort:        []string{"createdAt"},
}

func (a *api) webhooks(ctx context.Context, c *front.Call, _ front.None) (out webhookList, err error) {
	out.Items, out.PageInfo, err = front.List(ctx, c, a.app.Webhooks.List, viewWebhook)
	return out, err
}

var docWebhook = front.Doc{
	ID: "getWebhook", Tag: "Webhooks", Summary: "Show a webhook",
	Description: "Never with its secret.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) webhook(ctx context.Context, c *front.Call, _ front.None) (webhookView, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return webhookView{}, err
	}
	w, err := a.app.Webhooks.Get(ctx, c.Caller, id)
	return withVersion(c, w, err, viewWebhook)
}

type createWebhookInput struct {
	URL     string   `json:"url" example:"https://hooks.example.com/doorward" doc:"https, on a public address; http on loopback names while base_url is one"`
	Events  []string `json:"events" example:"[\"user.*\", \"invitation.accept\"]" doc:"1 to 100 of: an event such as user.invite, a group such as user.*, or *"`
	About   string   `json:"about,omitempty" doc:"What it is for; at most 200 characters"`
	Include []string `json:"include,omitempty" example:"[\"email\"]" doc:"email: bodies hold e-mail addresses"`
	Enabled *bool    `json:"enabled,omitempty" doc:"true if absent"`
}

// issuedWebhook is a webhook with its secret.
type issuedWebhook struct {
	Webhook webhookView `json:"webhook"`
	Secret  string      `json:"secret" example:"whsec_…" doc:"For the signatures v1; no later answer shows it"`
}

func viewIssuedWebhook(_ *front.Call, made webhook.Issued) issuedWebhook {
	return issuedWebhook{viewWebhook(made.Webhook), made.Secret.Reveal()}
}

var docCreateWebhook = front.Doc{
	ID: "createWebhook", Tag: "Webhooks", Summary: "Create a webhook",
	Description: "From now on its endpoint gets the events that its patterns match, as Standard Webhooks 1.0.0 says: `webhook-id` is the event's id, `webhook-signature` has `v1` (HMAC with the secret) and `v1a` (Ed25519, `publicKey`). The secret is in this answer only.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeTooManyWebhooks, doorward.CodeQuotaExceeded, doorward.CodeMasterKeyMissing},
}

func (a *api) createWebhook(ctx context.Context, c *front.Call, in createWebhookInput) (webhook.Issued, error) {
	return a.app.Webhooks.Create(ctx, c.Caller, webhook.Draft{URL: &in.URL, Events: &in.Events, About: &in.About, Include: &in.Include, Enabled: in.Enabled})
}

type editWebhookInput struct {
	URL     *string   `json:"url,omitempty"`
	Events  *[]string `json:"events,omitempty"`
	About   *string   `json:"about,omitempty"`
	Include *[]string `json:"include,omitempty"`
	Enabled *bool     `json:"enabled,omitempty" doc:"false drops what is pending"`
}

var docEditWebhook = front.Doc{
	ID: "editWebhook", Tag: "Webhooks", Summary: "Change, disable or enable a webhook",
	Description: "All changes or none. With `If-Match`, a change by somebody else since is 412.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeQuotaExceeded},
}

func (a *api) editWebhook(ctx context.Context, c *front.Call, in editWebhookInput) (webhookView, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return webhookView{}, err
	}
	w, err := a.app.Webhooks.Edit(ctx, c.Caller, id, webhook.Draft{
		URL: in.URL, Events: in.Events, About: in.About, Include: in.Include, Enabled: in.Enabled,
	}, c.Versions())
	return withVersion(c, w, err, viewWebhook)
}

var docDeleteWebhook = front.Doc{
	ID: "deleteWebhook", Tag: "Webhooks", Summary: "Delete a webhook",
	Description: "With its deliveries; nothing more is sent. With `If-Match`, a change by somebody else since is 412.",
	Conditional: true,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed},
}

func (a *api) deleteWebhook(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.Webhooks.Delete(ctx, c.Caller, id, c.Versions()...)
}

type rotateWebhookInput struct {
	GraceHours *front.Int `json:"graceHours,omitempty" minimum:"0" maximum:"168" doc:"How long messages are signed with the present secret, too; 24 if absent"`
}

// OptionalBody implements front.OptionalBody.
func (rotateWebhookInput) OptionalBody() {}

type webhookSecret struct {
	Secret string `json:"secret" example:"whsec_…" doc:"No later answer shows it"`
}

func viewWebhookSecret(_ *front.Call, made webhook.Issued) webhookSecret {
	return webhookSecret{made.Secret.Reveal()}
}

var docRotateWebhook = front.Doc{
	ID: "rotateWebhookSecret", Tag: "Webhooks", Summary: "Give a webhook a new secret",
	Description: "For the grace each message has two signatures `v1`, by the new secret and by the present one. `publicKey` stays.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeMasterKeyMissing},
}

func (a *api) rotateWebhook(ctx context.Context, c *front.Call, in rotateWebhookInput) (webhook.Issued, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return webhook.Issued{}, err
	}
	return a.app.Webhooks.Rotate(ctx, c.Caller, id, (*int64)(in.GraceHours))
}

type testResult struct {
	Status int    `json:"status" doc:"The status of the endpoint's answer; 0 if there was none"`
	Ms     int64  `json:"ms"`
	Error  string `json:"error,omitempty" doc:"Why there is no answer"`
}

var docTestWebhook = front.Doc{
	ID: "testWebhook", Tag: "Webhooks", Summary: "Send a test to a webhook",
	Description: "Sends an event `webhook.test` now, with `seq` 0, and waits 2 s for the answer. Works for a disabled webhook, too.",
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodeMasterKeyMissing},
}

func (a *api) testWebhook(ctx context.Context, c *front.Call, _ front.None) (testResult, error) {
	id, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return testResult{}, err
	}
	attempt, err := a.app.Webhooks.Test(ctx, c.Caller, id)
	return testResult{attempt.Status, attempt.Ms, attempt.Error}, err
}
