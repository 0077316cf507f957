// Command ogen calls a Doorward with the client that ogen makes.
package main

import (
	"context"
	"log"
	"os"

	"github.com/ogen-go/ogen/ogenerrors"

	"github.com/doorward/doorward/tools/clients/ogen/api"
)

// token is the session token, the only kind of credential that these calls use.
type token string

func (t token) SessionToken(context.Context, api.OperationName) (api.SessionToken, error) {
	if t == "" {
		return api.SessionToken{}, ogenerrors.ErrSkipClientSecurity
	}
	return api.SessionToken{Token: string(t)}, nil
}

func (token) SessionCookie(context.Context, api.OperationName) (api.SessionCookie, error) {
	return api.SessionCookie{}, ogenerrors.ErrSkipClientSecurity
}

func (token) OperatorKey(context.Context, api.OperationName) (api.OperatorKey, error) {
	return api.OperatorKey{}, ogenerrors.ErrSkipClientSecurity
}

func (token) ServiceKey(context.Context, api.OperationName) (api.ServiceKey, error) {
	return api.ServiceKey{}, ogenerrors.ErrSkipClientSecurity
}

func (token) TenantKey(context.Context, api.OperationName) (api.TenantKey, error) {
	return api.TenantKey{}, ogenerrors.ErrSkipClientSecurity
}

func main() {
	ctx, address, password := context.Background(), os.Args[1], os.Args[2]
	c, err := api.NewClient(address, token(""))
	check(err)

	wrong, err := c.Login(ctx, &api.LoginInput{Email: "owner@acme.example", Password: "not the password"})
	check(err)
	// ogen names the answer's type after the first operation that has it, which may change.
	if p, ok := wrong.(interface{ GetResponse() api.Problem }); !ok || p.GetResponse().Code != "invalid_credentials" {
		log.Fatalf("a wrong password: %#v", wrong)
	}

	login, err := c.Login(ctx, &api.LoginInput{Email: "owner@acme.example", Password: password})
	check(err)
	in, ok := login.(*api.SignedInHeaders)
	if !ok {
		log.Fatalf("login: %#v", login)
	}
	c, err = api.NewClient(address, token(in.Response.Token))
	check(err)

	invited, err := c.Invite(ctx, &api.InviteInput{Email: "ogen@acme.example", Role: "USER"}, api.InviteParams{})
	check(err)
	if i, ok := invited.(*api.InvitationHeaders); !ok || i.Response.InvitedBy.Null {
		log.Fatalf("invite: %#v", invited)
	}

	list, err := c.ListInvitations(ctx, api.ListInvitationsParams{})
	check(err)
	if l, ok := list.(*api.InvitationListHeaders); !ok || len(l.Response.Items) == 0 {
		log.Fatalf("list: %#v", list)
	}
	more(ctx, c)
}

// more calls further operations: bulk invitations, webhooks, second factors.
func more(ctx context.Context, c *api.Client) {
	offer := func(email string) api.BulkOffer { return api.BulkOffer{Email: api.NewOptString(email)} }
	bulk, err := c.InviteBulk(ctx, &api.BulkInput{Invitations: []api.BulkOffer{offer("bulk-ogen@acme.example"), offer("no address")}}, api.InviteBulkParams{})
	check(err)
	if b, ok := bulk.(*api.BulkAnswerHeaders); !ok || len(b.Response.Items) != 2 || !b.Response.Items[1].Problem.Set {
		log.Fatalf("several invitations: %#v", bulk)
	}

	made, err := c.CreateWebhook(ctx, &api.CreateWebhookInput{URL: "http://localhost:9/", Events: []string{"user.*"}}, api.CreateWebhookParams{})
	check(err)
	issued, ok := made.(*api.IssuedWebhookHeaders)
	if !ok || issued.Response.Secret == "" {
		log.Fatalf("webhook: %#v", made)
	}
	edited, err := c.EditWebhook(ctx, &api.EditWebhookInput{About: api.NewOptString("CRM")}, api.EditWebhookParams{ID: issued.Response.Webhook.ID})
	check(err)
	if w, ok := edited.(*api.WebhookHeaders); !ok || w.Response.About != "CRM" {
		log.Fatalf("edited webhook: %#v", edited)
	}

	begun, err := c.EnrolTOTP(ctx, api.OptEnrolInput{})
	check(err)
	factor, ok := begun.(*api.EnrolmentHeaders)
	if !ok || factor.Response.Secret == "" {
		log.Fatalf("second factor: %#v", begun)
	}
	wrong, err := c.ConfirmTOTP(ctx, &api.ConfirmInput{ID: factor.Response.ID, Code: "000000"})
	check(err)
	if p, ok := wrong.(*api.ConfirmTOTPUnprocessableEntity); !ok || p.Response.Code != "validation_failed" {
		log.Fatalf("a wrong code: %#v", wrong)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
