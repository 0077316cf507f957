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
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
