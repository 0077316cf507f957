package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/web/front"
)

type connectionAttemptView struct {
	At         time.Time               `json:"at" doc:"The last time, of equal faults in a row"`
	RequestID  string                  `json:"requestId,omitempty" doc:"Of the last request; absent for what Doorward does by itself"`
	Kind       doorward.AttemptKind    `json:"kind" enum:"sign_in,test,step_up,revoke,metadata,scim"`
	Outcome    doorward.AttemptOutcome `json:"outcome" enum:"signed_in,asked,done,refused,unavailable"`
	Check      string                  `json:"check,omitempty" example:"aud" doc:"The check that refused"`
	Seen       string                  `json:"seen,omitempty" doc:"What the provider said, without tokens; of people who are refused before they have an account here the address, marked if the provider does not call it verified"`
	Advice     string                  `json:"advice,omitempty" example:"client_id"`
	Subject    string                  `json:"subject,omitempty"`
	UserID     string                  `json:"userId,omitempty" doc:"The account here, if it is known; of a test, who tests"`
	Count      int                     `json:"count" doc:"How often the same fault came in a row"`
	RequestIDs []string                `json:"requestIds" example:"[\"req_7d2c5tpae7kq2m5x3yh4n6rj7w\"]" doc:"Of the last ten requests, the newest last"`
}

func viewConnectionAttempt(a doorward.Attempt) connectionAttemptView {
	v := connectionAttemptView{
		At: a.At, Kind: a.Kind, Outcome: a.Outcome, Check: a.Check, Seen: a.Seen, Advice: a.Advice, Subject: a.Subject, UserID: a.UserID,
		Count: a.Count, RequestIDs: append([]string{}, a.RequestIDs...),
	}
	if len(a.RequestIDs) > 0 {
		v.RequestID = a.RequestIDs[len(a.RequestIDs)-1]
	}
	return v
}

type connectionAttemptList struct {
	Items []connectionAttemptView `json:"items"`
	front.PageInfo
}

var docAttempts = front.Doc{
	ID: "listAttempts", Tag: "Sign-on", Summary: "Show the protocol of a connection",
	Description: "What was attempted by the connection in the last 30 days, the newest first: the last 200 of each kind. Equal faults in a row are one entry.",
	List:        true,
	Sort:        []string{"at"},
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) attempts(ctx context.Context, c *front.Call, _ front.None) (out connectionAttemptList, err error) {
	id, err := c.ID("id", doorward.PrefixConnection)
	if err != nil {
		return out, err
	}
	out.Items, out.PageInfo, err = front.List(ctx, c, front.With(id, a.app.Connections.Attempts), viewConnectionAttempt)
	return out, err
}

type testCheckView struct {
	Name   string `json:"name" example:"aud"`
	OK     bool   `json:"ok"`
	Seen   string `json:"seen,omitempty" example:"doorward"`
	Wanted string `json:"wanted,omitempty"`
	Advice string `json:"advice,omitempty"`
}

type connectionTestView struct {
	Status doorward.TestStatus `json:"status" enum:"waiting,passed,failed"`
	Claims map[string]any      `json:"claims" example:"{\"sub\": \"00u1a2b3c4\", \"email\": \"ann@acme.example\"}" doc:"What the provider said of the person, of the claims that Doorward reads; empty while the test is waiting"`
	Checks []testCheckView     `json:"checks"`
}

var docConnectionTest = front.Doc{
	ID: "getConnectionTest", Tag: "Sign-on", Summary: "Show a test",
	Description: "For 24 hours. A test that wasn't finished within 10 minutes has failed.",
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) connectionTest(ctx context.Context, c *front.Call, _ front.None) (v connectionTestView, err error) {
	id, err := connectionID(c)
	if err != nil {
		return v, err
	}
	testID, err := c.ID("testId", doorward.PrefixTest)
	if err != nil {
		return v, err
	}
	test, err := a.app.Tests.Show(ctx, c.Caller, id, testID)
	if err != nil {
		return v, err
	}
	v = connectionTestView{Status: test.Status, Claims: map[string]any{}, Checks: []testCheckView{}}
	if len(test.Claims) > 0 {
		if err := json.Unmarshal(test.Claims, &v.Claims); err != nil {
			return v, doorward.Unavailable(err)
		}
	}
	for _, check := range test.Checks {
		v.Checks = append(v.Checks, testCheckView(check))
	}
	return v, nil
}

type identityView struct {
	ID         string    `json:"id" example:"idn_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	UserID     string    `json:"userId" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Email      string    `json:"email" example:"ann@acme.example" doc:"Of the account, as it is now"`
	Issuer     string    `json:"issuer" example:"https://acme.okta.example"`
	Subject    string    `json:"subject" example:"00u1a2b3c4" doc:"Who it is at the provider"`
	From       string    `json:"subjectFrom,omitempty" example:"objectidentifier" doc:"Of SAML: the attribute that has said so; absent: the NameID"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt"`
}

func viewIdentity(i connection.LinkedIdentity) identityView {
	return identityView{i.ID, i.UserID, i.Email, i.Provider(), i.Subject, i.SubjectFrom(), i.CreatedAt, i.LastUsedAt}
}

type identityList struct {
	Items []identityView `json:"items"`
	front.PageInfo
}

var docIdentities = front.Doc{
	ID: "listIdentities", Tag: "Sign-on", Summary: "List who signs in by a connection",
	Description: "The newest identity first. An identity is the provider's own name for a person, which stays when the address changes.",
	List:        true,
	Sort:        []string{"createdAt"},
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) identities(ctx context.Context, c *front.Call, _ front.None) (out identityList, err error) {
	id, err := c.ID("id", doorward.PrefixConnection)
	if err != nil {
		return out, err
	}
	out.Items, out.PageInfo, err = front.List(ctx, c, front.With(id, a.app.Connections.Identities), viewIdentity)
	return out, err
}

type endedIdentity struct {
	Ended endedSessions `json:"ended"`
}

var docUnlinkIdentity = front.Doc{
	ID: "unlinkIdentity", Tag: "Sign-on", Summary: "Delete an identity",
	Description: "Ends the person's sessions of that connection, on every node before the answer. The account and its membership stay; the next sign-in joins them again, by the rules of a first one.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound},
}

func (a *api) unlinkIdentity(ctx context.Context, c *front.Call, _ front.None) (v endedIdentity, err error) {
	id, err := c.ID("id", doorward.PrefixIdentity)
	if err != nil {
		return v, err
	}
	ended, err := a.app.Connections.Unlink(ctx, c.Caller, id)
	c.SetRevocation(ended.Revocation)
	return endedIdentity{endedSessions{ended.Sessions}}, err
}
