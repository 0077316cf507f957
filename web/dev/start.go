package dev

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// Start is the first page of "doorward dev". It signs any visitor in as any of the demo
// people, so it must never be served where others can reach it.
type Start struct {
	Mailbox  *Mailbox
	Tenant   string
	Password string // of all people
	People   []Person
}

// Person is one of the demo people.
type Person struct {
	Role  doorward.Role
	Email string
}

// Routes returns the page at /, the forms on it, and the mailbox.
func (s *Start) Routes() []front.Route {
	return append(s.Mailbox.Routes(),
		front.On("GET /{$}", front.Optional(), set.Show(s.show), front.Doc{}),
		front.On("POST /dev/sign-in", front.Public(), set.Take("/", s.signIn, s.show), front.Doc{}),
		front.On("POST /dev/invite", front.Allowed(doorward.UserInvite), set.Take("/", s.invite, s.show), front.Doc{}),
	)
}

// start is what the page shows.
type start struct {
	*Start
	Me        string // address of the person who is signed in; empty if nobody is
	CanInvite bool   // whether that person may invite
	Mails     []mailView
}

// maxShown is how many mails the page shows at most.
const maxShown = 5

func (s *Start) show(_ context.Context, c *ui.Call) (ui.View, error) {
	c.Suggest("email", "ann@acme.example")
	return ui.View{Page: "start", Wide: true, Body: start{
		Start: s, Me: c.Caller.Email, CanInvite: c.Can(doorward.UserInvite), Mails: s.Mailbox.latest(c, maxShown),
	}}, nil
}

func (s *Start) signIn(ctx context.Context, c *ui.Call) (ui.View, error) {
	outcome, err := c.Site().App.Login.WithPassword(ctx, c.Caller, c.Value("as"), s.Password, "")
	if err != nil {
		return ui.View{}, err
	}
	signedIn, ok := outcome.(login.SignedIn)
	if !ok { // the person has a second factor, or needs one
		return c.To("/login"), nil
	}
	c.SetSession(signedIn.Opened)
	return c.To("/?done=signed-in"), nil
}

// invite returns after the mail has reached the mailbox.
func (s *Start) invite(ctx context.Context, c *ui.Call) (ui.View, error) {
	app := c.Site().App
	offer := invite.Offer{Email: c.Value("email"), Role: string(doorward.RoleUser), Locale: c.Language.Tag}
	if _, err := app.Invitations.Send(ctx, c.Caller, offer); err != nil {
		return ui.View{}, err
	}
	return c.To("/?done=invited"), app.Mail.Deliver(ctx)
}
