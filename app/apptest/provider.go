package apptest

import (
	"encoding/json"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// The client that Provider knows.
const (
	ClientID     = "doorward"
	ClientSecret = "a secret of the client"
)

// Provider returns a provider that knows the client ClientID, and signs in ann@acme.example. It has the clock of the
// fixture.
func (f *Fixture) Provider() *oidctest.Provider {
	f.Helper()
	p := oidctest.New("")
	f.Cleanup(p.Close)
	p.Change(func(s *oidctest.Settings) {
		s.Apps = []oidctest.App{{ID: ClientID, Secrets: []string{ClientSecret}}}
		s.Person = oidctest.Person{Subject: "7", Email: "ann@acme.example"}
		s.Now = f.DB.Now
	})
	return p
}

// DraftOf is a connection to the provider by a client secret.
func DraftOf(p *oidctest.Provider) connection.Draft {
	return connection.Draft{
		Type: "oidc", Name: new("Okta"), Issuer: new(p.Issuer()), ClientID: new(ClientID), ClientAuth: new("secret_basic"),
	}
}

// Create makes a draft of a connection, and adds ClientSecret where it needs one.
func (f *Fixture) Create(by Person, d connection.Draft) connection.Shown {
	f.Helper()
	f.UseMasterKey()
	made, err := f.Node(0).Connections.Create(f.Context(), by.Caller, d)
	f.NoError(err)
	if made.InForce.ClientAuth != doorward.PrivateKeyJWT {
		f.NoError(ErrorOf(f.Node(0).ClientSecrets.Add(f.Context(), by.Caller, made.ID, clientsecret.Typed{Secret: ClientSecret})))
	}
	made, err = f.Node(1).Connections.Connection(f.Context(), by.Caller, made.ID)
	f.NoError(err)
	return made
}

// PassTest lets a test of the connection pass, with a real sign-in at the provider.
func (f *Fixture) PassTest(by Person, id string, p *oidctest.Provider) {
	f.Helper()
	made, err := f.Node(0).Tests.Make(f.Context(), by.Caller, id)
	f.NoError(err)
	begun, _, err := f.Node(1).Tests.Begin(f.Context(), by.Caller, id, made.ID, "")
	f.NoError(err)
	asserted, err := f.SignInAt(p, id, begun.Pending)
	f.NoError(err)
	claims, err := json.Marshal(asserted.Claims)
	f.NoError(err)
	ended, err := f.Node(1).Tests.End(f.Context(), made.ID, claims, []doorward.TestCheck{{Name: "iss", OK: true}})
	f.NoError(err)
	if ended.Status != doorward.TestPassed {
		f.Fatalf("the test ends as %+v", ended)
	}
}

// SignInAt signs in at the provider by what Ready returns, and opens no session.
func (f *Fixture) SignInAt(p *oidctest.Provider, id string, isPending bool) (oidcrp.Asserted, error) {
	f.Helper()
	connections := f.Node(1).Connections
	ready, err := connections.Ready(f.Context(), id, isPending)
	if err != nil {
		return oidcrp.Asserted{}, err
	}
	flow := oidcrp.Begin(f.DB.Now())
	callback, err := p.SignIn(oidcrp.AuthURL(ready.Discovery, ready.Config, flow, ""))
	f.NoError(err)
	asserted, err := connections.Provider().Finish(f.Context(), ready.Discovery, ready.Config, flow, callback.Query())
	if err == nil {
		connections.SecretUsed(f.Context(), ready, asserted.UsedSecret)
	}
	return asserted, err
}

// Active makes a connection to the provider that has passed a test, and signs people in.
func (f *Fixture) Active(by Person, p *oidctest.Provider) connection.Shown {
	f.Helper()
	c := f.Create(by, DraftOf(p))
	f.SSOMode(by, doorward.SSOOptional, doorward.GuestsAllowed)
	f.PassTest(by, c.ID, p)
	after, _, err := f.Node(0).Connections.Edit(f.Context(), by.Caller, c.ID, connection.Change{Draft: connection.Draft{Status: new("active")}})
	f.NoError(err)
	return after
}
