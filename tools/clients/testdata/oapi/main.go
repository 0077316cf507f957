// Command oapi calls a Doorward with the client that oapi-codegen makes.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/doorward/doorward/tools/clients/oapi/api"
)

func main() {
	ctx, address, password := context.Background(), os.Args[1], os.Args[2]
	c, err := api.NewClientWithResponses(address)
	check(err)

	wrong, err := c.LoginWithResponse(ctx, api.LoginInput{Email: "owner@acme.example", Password: "not the password"})
	check(err)
	if p := wrong.ApplicationproblemJSON401; p == nil || p.Code != "invalid_credentials" {
		log.Fatalf("a wrong password: %s %s", wrong.Status(), wrong.Body)
	}

	login, err := c.LoginWithResponse(ctx, api.LoginInput{Email: "owner@acme.example", Password: password})
	check(err)
	if login.JSON200 == nil {
		log.Fatalf("login: %s %s", login.Status(), login.Body)
	}
	session := func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+login.JSON200.Token)
		return nil
	}

	invited, err := c.InviteWithResponse(ctx, &api.InviteParams{}, api.InviteInput{Email: "oapi@acme.example", Role: "USER"}, session)
	check(err)
	if invited.JSON201 == nil || invited.JSON201.InvitedBy == nil {
		log.Fatalf("invite: %s %s", invited.Status(), invited.Body)
	}

	list, err := c.ListInvitationsWithResponse(ctx, &api.ListInvitationsParams{}, session)
	check(err)
	if list.JSON200 == nil || len(list.JSON200.Items) == 0 {
		log.Fatalf("list: %s %s", list.Status(), list.Body)
	}
	more(ctx, c, session)
}

// more calls further operations: bulk invitations, webhooks, second factors.
func more(ctx context.Context, c *api.ClientWithResponses, session api.RequestEditorFn) {
	good, bad := "bulk-oapi@acme.example", "no address"
	bulk, err := c.InviteBulkWithResponse(ctx, &api.InviteBulkParams{}, api.BulkInput{Invitations: []api.BulkOffer{{Email: &good}, {Email: &bad}}}, session)
	check(err)
	if bulk.JSON200 == nil || len(bulk.JSON200.Items) != 2 || bulk.JSON200.Items[1].Problem == nil {
		log.Fatalf("several invitations: %s %s", bulk.Status(), bulk.Body)
	}

	made, err := c.CreateWebhookWithResponse(ctx, &api.CreateWebhookParams{}, api.CreateWebhookInput{Url: "http://localhost:9/", Events: []string{"user.*"}}, session)
	check(err)
	if made.JSON201 == nil || made.JSON201.Secret == "" {
		log.Fatalf("webhook: %s %s", made.Status(), made.Body)
	}
	about := "CRM"
	edited, err := c.EditWebhookWithResponse(ctx, made.JSON201.Webhook.Id, &api.EditWebhookParams{}, api.EditWebhookInput{About: &about}, session)
	check(err)
	if edited.JSON200 == nil || edited.JSON200.About != about {
		log.Fatalf("edited webhook: %s %s", edited.Status(), edited.Body)
	}

	factor, err := c.EnrolTOTPWithResponse(ctx, api.EnrolInput{}, session)
	check(err)
	if factor.JSON201 == nil || factor.JSON201.Secret == "" {
		log.Fatalf("second factor: %s %s", factor.Status(), factor.Body)
	}
	wrong, err := c.ConfirmTOTPWithResponse(ctx, api.ConfirmInput{Id: factor.JSON201.Id, Code: "000000"}, session)
	check(err)
	if p := wrong.ApplicationproblemJSON422; p == nil || p.Code != "validation_failed" {
		log.Fatalf("a wrong code: %s %s", wrong.Status(), wrong.Body)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
