package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/jwt"
	"github.com/doorward/doorward/web/front"
)

// connectionRoutes manage the connections of a tenant.
func (a *api) connectionRoutes() []front.Route {
	guard := front.Allowed(doorward.SSOManage)
	return []front.Route{
		front.On("GET /api/v2/sso/connections", guard, front.JSON(http.StatusOK, a.connections), docConnections),
		front.On("POST /api/v2/sso/connections", front.Allowed(doorward.ConnectionCreate), front.Create(http.StatusCreated, a.createConnection, a.viewCreatedConnection).UpTo(maxConnectionBody), docCreateConnection).CallsOut(),
		front.On("GET /api/v2/sso/connections/{id}", guard, front.JSON(http.StatusOK, a.connection), docConnection),
		front.On("PATCH /api/v2/sso/connections/{id}", front.Allowed(doorward.ConnectionUpdate), front.JSON(http.StatusOK, a.editConnection).UpTo(maxConnectionBody), docEditConnection).CallsOut(),
		front.On("DELETE /api/v2/sso/connections/{id}", front.Allowed(doorward.ConnectionDelete), front.JSON(http.StatusOK, a.deleteConnection), docDeleteConnection),
		front.On("DELETE /api/v2/sso/connections/{id}/pending", front.Allowed(doorward.ConnectionUpdate), front.JSON(http.StatusNoContent, a.dropPending), docDropPending),
		front.On("POST /api/v2/sso/connections/{id}/refresh", front.Allowed(doorward.ConnectionUpdate), front.JSON(http.StatusOK, a.refreshConnection), docRefreshConnection).CallsOut(),
		front.On("POST /api/v2/sso/connections/{id}/switch", front.Allowed(doorward.ConnectionSwitch), front.JSON(http.StatusOK, a.switchConnection), docSwitchConnection),
		front.On("POST /api/v2/sso/connections/{id}/secrets", front.Allowed(doorward.ConnectionSecretChange), front.Create(http.StatusCreated, a.addClientSecret, viewAddedSecret), docAddClientSecret),
		front.On("DELETE /api/v2/sso/connections/{id}/secrets/{secretId}", front.Allowed(doorward.ConnectionSecretChange), front.JSON(http.StatusNoContent, a.deleteClientSecret), docDeleteClientSecret),
		front.On("POST /api/v2/sso/connections/{id}/scim-secrets", front.Allowed(doorward.ConnectionSecretChange), front.Create(http.StatusCreated, a.addSCIMSecret, viewNewSCIMSecret), docAddSCIMSecret),
		front.On("DELETE /api/v2/sso/connections/{id}/scim-secrets/{secretId}", front.Allowed(doorward.ConnectionSecretChange), front.JSON(http.StatusNoContent, a.deleteSCIMSecret), docDeleteSCIMSecret),
		front.On("GET /api/v2/sso/connections/{id}/attempts", guard, front.JSON(http.StatusOK, a.attempts), docAttempts),
		front.On("GET /api/v2/sso/connections/{id}/tests/{testId}", guard, front.JSON(http.StatusOK, a.connectionTest), docConnectionTest),
		front.On("GET /api/v2/sso/connections/{id}/identities", guard, front.JSON(http.StatusOK, a.identities), docIdentities),
		front.On("DELETE /api/v2/sso/identities/{id}", front.Allowed(doorward.IdentityUnlink), front.JSON(http.StatusOK, a.unlinkIdentity), docUnlinkIdentity),
		front.On("GET /api/v2/auth/sso/{con}/jwks", front.Public(), front.JSON(http.StatusOK, a.connectionKeys), docConnectionKeys),
		front.On("GET /api/v2/auth/sso/{con}/metadata", front.Public(), a.connectionMetadata(), docConnectionMetadata),
	}
}

type groupMapping struct {
	Group string        `json:"group" example:"Engineering" doc:"As the provider sends it; letter case counts. Of a directory, the displayName, in which it doesn't count, or the externalId of a group, which stays the same one when it is renamed: answers have its present name, and a change may name it by either"`
	Role  doorward.Role `json:"role" example:"USER" doc:"Of rank ADMIN at most"`
}

type clientSecretView struct {
	ID         string     `json:"id" example:"ccs_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Hint       string     `json:"hint" example:"k3Qz" doc:"The last characters of the secret; empty for a short one"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  *time.Time `json:"expiresAt,omitempty" doc:"As it was said when it was added; it is tried afterwards, too"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty" doc:"When the provider last accepted it, to the hour"`
	Lost       bool       `json:"lost,omitempty" doc:"Only if it was lost with the master key of the installation: add it again, or a new one, which takes its place"`
}

type connectionParametersView struct {
	Issuer     string              `json:"issuer,omitempty" example:"https://acme.okta.example" doc:"Absent until it is known"`
	ClientID   string              `json:"clientId,omitempty" example:"0oa1b2c3d4" doc:"Absent until it is known"`
	ClientAuth doorward.ClientAuth `json:"clientAuth,omitempty" enum:"secret_basic,secret_post,private_key_jwt" doc:"Of type oidc: how Doorward proves itself to the provider"`
	EmailFrom  string              `json:"emailFrom" example:"email" doc:"The claim, or the attribute, with the address"`
	TestedAt   *time.Time          `json:"testedAt,omitempty" doc:"When a test of exactly this has passed; absent since the last change"`

	EntityID     string                `json:"entityId,omitempty" example:"https://idp.acme.example" doc:"Of type saml: what the provider calls itself"`
	SSOURL       string                `json:"ssoUrl,omitempty" example:"https://idp.acme.example/sso" doc:"Of type saml: where sign-ins begin, as the metadata say"`
	MetadataURL  string                `json:"metadataUrl,omitempty" example:"https://idp.acme.example/metadata" doc:"Of type saml: where the metadata are read; absent if they were given as a text"`
	Certificates []samlCertificateView `json:"certificates,omitzero" doc:"Of type saml: by which the provider signs"`
	SubjectFrom  string                `json:"subjectFrom,omitempty" example:"objectidentifier" doc:"Of type saml: the attribute with the subject; absent: the NameID"`
}

type connectionView struct {
	ID            string                    `json:"id" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Type          doorward.ConnectionType   `json:"type" enum:"oidc,saml,scim"`
	Name          string                    `json:"name" example:"Acme's Okta"`
	Product       doorward.Product          `json:"product" enum:"okta,entra,google,keycloak,ping,onelogin,jumpcloud,other"`
	Status        doorward.ConnectionStatus `json:"status" enum:"draft,active,disabled"`
	CreatedAt     time.Time                 `json:"createdAt"`
	LastSignInAt  *time.Time                `json:"lastSignInAt,omitempty"`
	Issuer        string                    `json:"issuer,omitempty" example:"https://acme.okta.example" doc:"Absent until it is known"`
	ClientID      string                    `json:"clientId,omitempty" example:"0oa1b2c3d4" doc:"Absent until it is known"`
	ClientAuth    doorward.ClientAuth       `json:"clientAuth,omitempty" enum:"secret_basic,secret_post,private_key_jwt" doc:"How Doorward proves itself to the provider"`
	EmailFrom     string                    `json:"emailFrom,omitempty" example:"email" doc:"The claim, or the attribute, with the address"`
	TestedAt      *time.Time                `json:"testedAt,omitempty" doc:"When a test of exactly this has passed; absent since the last change"`
	EntityID      string                    `json:"entityId,omitempty" example:"https://idp.acme.example" doc:"Of type saml: what the provider calls itself; absent until it is known"`
	SSOURL        string                    `json:"ssoUrl,omitempty" example:"https://idp.acme.example/sso" doc:"Of type saml: where sign-ins begin, as the metadata say"`
	MetadataURL   string                    `json:"metadataUrl,omitempty" example:"https://idp.acme.example/metadata" doc:"Of type saml: where the metadata are read; absent if they were given as a text"`
	Certificates  []samlCertificateView     `json:"certificates,omitzero" doc:"Of type saml: by which the provider signs, without those that were taken away"`
	SPEntityID    string                    `json:"spEntityId,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/metadata" doc:"Of type saml: what Doorward calls itself, to be copied to the provider; of each connection its own"`
	ACSURL        string                    `json:"acsUrl,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/acs" doc:"Of type saml: where the provider sends its responses, to be copied to it"`
	SPMetadataURL string                    `json:"spMetadataUrl,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/metadata" doc:"Of type saml: Doorward's metadata for the provider"`
	SignRequests  *bool                     `json:"signRequests,omitempty" doc:"Of type saml: requests to the provider are signed, by the key in our metadata"`
	Encrypt       *bool                     `json:"encrypt,omitempty" doc:"Of type saml: our metadata have a key to which the provider may encrypt assertions"`
	SubjectFrom   string                    `json:"subjectFrom,omitempty" example:"objectidentifier" doc:"Of type saml: the attribute with the subject; absent: the NameID"`

	Pending *connectionParametersView `json:"pending,omitempty" doc:"A change that signs nobody in before it has passed a test and was switched"`

	JIT                 doorward.JIT       `json:"jit" enum:"off,invited,domains" doc:"Whom the first sign-in makes a member"`
	JITRole             doorward.Role      `json:"jitRole" example:"USER"`
	Mappings            []groupMapping     `json:"mappings"`
	GroupsFrom          string             `json:"groupsFrom,omitempty" example:"groups" doc:"The claim, or the attribute, with the groups"`
	FactorACR           []string           `json:"factorAcr" example:"[\"phr\"]" doc:"Values of acr that stand for a second factor"`
	TrustProviderFactor bool               `json:"trustProviderFactor" doc:"A second factor that the provider has asked for counts"`
	Ends                doorward.Ends      `json:"ends" enum:"connection,tenant" doc:"Which sessions of a person end when the provider revokes that person: those that the connection has vouched for, or all in the tenant"`
	EndsKeys            bool               `json:"endsKeys" doc:"The person's API keys end, too"`
	Secrets             []clientSecretView `json:"secrets" doc:"The newest first, without the secrets"`
	Directory           directoryView      `json:"directory"`

	CallbackURL string `json:"callbackUrl,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/callback" doc:"To be registered at the provider, exactly"`
	StartURL    string `json:"startUrl,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/start" doc:"Where a sign-in begins"`
	JWKSURL     string `json:"jwksUrl,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/jwks" doc:"Where the provider reads the keys of private_key_jwt"`
	RevokeURL   string `json:"revokeUrl,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/revoke" doc:"Where the provider revokes people (Global Token Revocation)"`
	LogoutURL   string `json:"backchannelLogoutUrl,omitempty" example:"https://accounts.example.com/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/backchannel-logout" doc:"Where the provider sends logout tokens (OpenID Connect Back-Channel Logout)"`
}

func viewParameters(p doorward.ConnectionParameters) connectionParametersView {
	return connectionParametersView{Issuer: p.Issuer, ClientID: p.ClientID, ClientAuth: p.ClientAuth, EmailFrom: p.EmailFrom, TestedAt: p.TestedAt}
}

func (a *api) viewConnection(s connection.Shown) connectionView {
	v := connectionView{
		ID: s.ID, Type: s.Type, Name: s.Name, Product: s.Product, Status: s.Status, CreatedAt: s.CreatedAt, LastSignInAt: s.LastSignInAt,
		Issuer: s.InForce.Issuer, ClientID: s.InForce.ClientID, ClientAuth: s.InForce.ClientAuth, EmailFrom: s.InForce.EmailFrom, TestedAt: s.InForce.TestedAt,
		JIT: s.JIT, JITRole: s.JITRole, Mappings: []groupMapping{}, GroupsFrom: s.GroupsFrom,
		FactorACR: append([]string{}, s.FactorACR...), TrustProviderFactor: s.TrustFactor, Ends: s.Ends, EndsKeys: s.EndsKeys, Secrets: []clientSecretView{},
		CallbackURL: a.app.Connections.CallbackURL(s.ID), StartURL: a.app.Connections.StartURL(s.ID), JWKSURL: a.app.Connections.KeysURL(s.ID),
		RevokeURL: a.app.Connections.RevokeURL(s.ID), LogoutURL: a.app.Connections.LogoutURL(s.ID),
	}
	if s.Pending != nil {
		pending := viewParameters(*s.Pending)
		v.Pending = &pending
	}
	v.Directory = viewDirectory(s)
	v.Directory.URL = a.app.Directories.URL()
	if s.Type == doorward.SCIMDirectory {
		v.ClientAuth, v.EmailFrom, v.CallbackURL, v.StartURL, v.JWKSURL, v.RevokeURL, v.LogoutURL = "", "", "", "", "", "", ""
	}
	if s.Type == doorward.SAML {
		a.addSAML(&v, s)
	}
	for _, m := range s.Mappings {
		v.Mappings = append(v.Mappings, groupMapping{m.Group, m.Role})
	}
	for _, secret := range s.Secrets {
		v.Secrets = append(v.Secrets, viewClientSecret(secret))
	}
	return v
}

func (a *api) viewCreatedConnection(_ *front.Call, made connection.Shown) connectionView {
	return a.viewConnection(made)
}

type connectionList struct {
	Items []connectionView `json:"items"`
	front.PageInfo
}

var docConnections = front.Doc{
	ID: "listConnections", Tag: "Sign-on", Summary: "List the tenant's connections",
	Description: "The oldest first, at most 10.",
	List:        true,
	Sort:        []string{"createdAt"},
}

func (a *api) connections(ctx context.Context, c *front.Call, _ front.None) (out connectionList, err error) {
	out.Items, out.PageInfo, err = front.List(ctx, c, a.app.Connections.List, a.viewConnection)
	return out, err
}

// connectionID returns the connection of the path.
func connectionID(c *front.Call) (string, error) {
	return c.ID("id", doorward.PrefixConnection)
}

var docConnection = front.Doc{
	ID: "getConnection", Tag: "Sign-on", Summary: "Show a connection",
	Description: "Never with its secrets.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) connection(ctx context.Context, c *front.Call, _ front.None) (connectionView, error) {
	id, err := connectionID(c)
	if err != nil {
		return connectionView{}, err
	}
	found, err := a.app.Connections.Connection(ctx, c.Caller, id)
	return withVersion(c, found, err, a.viewConnection)
}

type createConnectionInput struct {
	Type                string          `json:"type" enum:"oidc,saml,scim" example:"oidc" doc:"scim: a directory alone, which signs nobody in and needs no test"`
	Name                string          `json:"name" example:"Acme's Okta" doc:"People see it when they sign in; at most 100 characters"`
	Product             *string         `json:"product,omitempty" enum:"okta,entra,google,keycloak,ping,onelogin,jumpcloud,other" example:"okta" doc:"other if absent"`
	Issuer              *string         `json:"issuer,omitempty" example:"https://acme.okta.example" doc:"As the provider writes it: https, without user, query and fragment. It may be given later"`
	ClientID            *string         `json:"clientId,omitempty"`
	ClientAuth          *string         `json:"clientAuth,omitempty" enum:"secret_basic,secret_post,private_key_jwt" example:"private_key_jwt" doc:"If absent private_key_jwt for okta, keycloak and ping, else secret_basic"`
	EmailFrom           *string         `json:"emailFrom,omitempty" example:"email" doc:"The claim, or the attribute, with the address; email if absent, which of type saml stands for its usual names. NameID: the NameID"`
	MetadataURL         *string         `json:"metadataUrl,omitempty" example:"https://idp.acme.example/metadata" doc:"Of type saml: where the provider's metadata are. It may be given later"`
	Metadata            *string         `json:"metadata,omitempty" doc:"Of type saml, in place of metadataUrl: the text of the metadata, at most 256 KiB"`
	EntityID            *string         `json:"entityId,omitempty" example:"https://idp.acme.example" doc:"Of type saml: the provider that is meant, where the metadata have several"`
	SubjectFrom         *string         `json:"subjectFrom,omitempty" example:"objectidentifier" doc:"Of type saml: the attribute with the subject; the NameID if absent"`
	SignRequests        *bool           `json:"signRequests,omitempty" doc:"Of type saml: sign requests to the provider; as its metadata say if absent"`
	Encrypt             *bool           `json:"encrypt,omitempty" doc:"Of type saml: let the provider encrypt assertions; false if absent"`
	JIT                 *string         `json:"jit,omitempty" enum:"off,invited,domains" example:"domains" doc:"off if absent"`
	JITRole             *string         `json:"jitRole,omitempty" example:"USER" doc:"Of rank ADMIN at most; USER if absent"`
	Mappings            *[]groupMapping `json:"mappings,omitempty" doc:"At most 200; the highest role wins"`
	GroupsFrom          *string         `json:"groupsFrom,omitempty" example:"groups"`
	FactorACR           *[]string       `json:"factorAcr,omitempty"`
	TrustProviderFactor *bool           `json:"trustProviderFactor,omitempty"`
	Ends                *string         `json:"ends,omitempty" enum:"connection,tenant" example:"tenant" doc:"tenant if absent"`
	EndsKeys            *bool           `json:"endsKeys,omitempty"`
	Directory           *directoryInput `json:"directory,omitempty"`
}

// directoryInput is what a connection's directory may do.
type directoryInput struct {
	Outside       *string `json:"outside,omitempty" enum:"invite,refuse" example:"invite" doc:"What becomes of addresses outside of the tenant's proved domains; invite if absent"`
	EmptyByRemove *bool   `json:"emptyByRemove,omitempty" doc:"Whether the removal of members that names none empties a group; false if absent"`
}

// addTo adds it to a draft.
func (in *directoryInput) addTo(d connection.Draft) connection.Draft {
	if in != nil {
		d.Outside, d.EmptyByRemove = in.Outside, in.EmptyByRemove
	}
	return d
}

func (in createConnectionInput) draft() connection.Draft {
	return in.Directory.addTo(connection.Draft{
		Type: in.Type, Name: &in.Name, Product: in.Product, Issuer: in.Issuer, ClientID: in.ClientID, ClientAuth: in.ClientAuth, EmailFrom: in.EmailFrom,
		JIT: in.JIT, JITRole: in.JITRole, Mappings: mappingsOf(in.Mappings), GroupsFrom: in.GroupsFrom, FactorACR: in.FactorACR, TrustFactor: in.TrustProviderFactor,
		Ends: in.Ends, EndsKeys: in.EndsKeys,
		MetadataURL: in.MetadataURL, Metadata: in.Metadata, EntityID: in.EntityID, SubjectFrom: in.SubjectFrom, SignRequests: in.SignRequests, Encrypt: in.Encrypt,
	})
}

func mappingsOf(typed *[]groupMapping) *[]doorward.GroupMapping {
	if typed == nil {
		return nil
	}
	all := make([]doorward.GroupMapping, len(*typed))
	for i, m := range *typed {
		all[i] = doorward.GroupMapping{Group: m.Group, Role: m.Role}
	}
	return &all
}

var docCreateConnection = front.Doc{
	ID: "createConnection", Tag: "Sign-on", Summary: "Make a connection to the tenant's own provider",
	Description: "A draft, which signs nobody in before a test has passed and it was enabled. With an issuer, Doorward reads what the provider says of itself, and answers within 12 s; what is wrong with it is a fault of `/issuer`: `invalid`, `address_refused`, `multi_tenant_issuer`, `issuer_mismatch`, `unreachable`. Likewise with metadata of type saml, at `/metadataUrl` or `/metadata`: `invalid`, `doctype`, `too_large`, `no_certificate`, `expired`, `address_refused`, `unreachable`. Where they have several providers, `/entityId` is `required`, or `unknown_entity` if it isn't one of them; the fault lists them as `entities`. The body may have 512 KiB. Making, changing and testing connections asks providers 300 times a minute at most for a tenant.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeTooManyConnections, doorward.CodeTooManyAttempts, doorward.CodeQuotaExceeded, doorward.CodeMasterKeyMissing},
}

func (a *api) createConnection(ctx context.Context, c *front.Call, in createConnectionInput) (connection.Shown, error) {
	return a.app.Connections.Create(ctx, c.Caller, in.draft())
}

type editConnectionInput struct {
	Name                *string         `json:"name,omitempty"`
	Status              *string         `json:"status,omitempty" enum:"active,disabled"`
	Issuer              *string         `json:"issuer,omitempty"`
	ClientID            *string         `json:"clientId,omitempty"`
	ClientAuth          *string         `json:"clientAuth,omitempty" enum:"secret_basic,secret_post,private_key_jwt"`
	EmailFrom           *string         `json:"emailFrom,omitempty"`
	MetadataURL         *string         `json:"metadataUrl,omitempty" doc:"Of type saml. Empty: what is kept stays, and is read there no more"`
	Metadata            *string         `json:"metadata,omitempty" doc:"Of type saml, in place of metadataUrl: at most 256 KiB"`
	EntityID            *string         `json:"entityId,omitempty" doc:"Of type saml: the provider that is meant, where the metadata have several"`
	SubjectFrom         *string         `json:"subjectFrom,omitempty" doc:"Of type saml. Empty: the NameID"`
	Certificates        *[]string       `json:"certificates,omitempty" doc:"Of type saml: the fingerprints of the provider's certificates to keep. The others sign nobody in from the answer on, on every node, until an OWNER changes the metadata, whatever the provider says. One has to stay"`
	SignRequests        *bool           `json:"signRequests,omitempty" doc:"Of type saml"`
	Encrypt             *bool           `json:"encrypt,omitempty" doc:"Of type saml"`
	JIT                 *string         `json:"jit,omitempty" enum:"off,invited,domains"`
	JITRole             *string         `json:"jitRole,omitempty"`
	Mappings            *[]groupMapping `json:"mappings,omitempty" doc:"All of them"`
	GroupsFrom          *string         `json:"groupsFrom,omitempty" doc:"Empty: none"`
	FactorACR           *[]string       `json:"factorAcr,omitempty"`
	TrustProviderFactor *bool           `json:"trustProviderFactor,omitempty"`
	Ends                *string         `json:"ends,omitempty" enum:"connection,tenant"`
	EndsKeys            *bool           `json:"endsKeys,omitempty"`
	Directory           *directoryInput `json:"directory,omitempty"`
}

func (in editConnectionInput) draft() connection.Draft {
	return in.Directory.addTo(connection.Draft{
		Name: in.Name, Status: in.Status, Issuer: in.Issuer, ClientID: in.ClientID, ClientAuth: in.ClientAuth, EmailFrom: in.EmailFrom,
		JIT: in.JIT, JITRole: in.JITRole, Mappings: mappingsOf(in.Mappings), GroupsFrom: in.GroupsFrom, FactorACR: in.FactorACR, TrustFactor: in.TrustProviderFactor,
		Ends: in.Ends, EndsKeys: in.EndsKeys,
		MetadataURL: in.MetadataURL, Metadata: in.Metadata, EntityID: in.EntityID, SubjectFrom: in.SubjectFrom, Certificates: in.Certificates,
		SignRequests: in.SignRequests, Encrypt: in.Encrypt,
	})
}

type endedSessions struct {
	Sessions int64 `json:"sessions" example:"3"`
}

// endedByStatus is what ends with a connection, or rests while it is disabled.
type endedByStatus struct {
	Sessions    int64 `json:"sessions" example:"3"`
	SCIMSecrets int   `json:"scimSecrets" example:"1" doc:"Secrets of its directory: they rest while it is disabled, and end when it is deleted"`
}

type concernedPerson struct {
	UserID   string `json:"userId" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Email    string `json:"email" example:"ann@acme.example"`
	Sessions int64  `json:"sessions,omitempty" doc:"That end"`
}

func viewConcerned(people []connection.Person) []concernedPerson {
	var all []concernedPerson
	for _, p := range people {
		all = append(all, concernedPerson(p))
	}
	return all
}

// endedByConnection is what disabling or deleting a connection ends.
type endedByConnection struct {
	Ended   endedByStatus     `json:"ended" doc:"What it has ended, on every node"`
	Managed int               `json:"managed" doc:"How many managed accounts stay with no way in but a reset of the password"`
	People  []concernedPerson `json:"people,omitempty" doc:"Of a dry run: whose sessions end, at most 100"`
}

func viewEndedBy(e connection.Ended) endedByConnection {
	return endedByConnection{endedByStatus{e.Sessions, e.SCIMSecrets}, e.Managed, viewConcerned(e.People)}
}

type editedConnection struct {
	Connection connectionView    `json:"connection"`
	Ended      endedByStatus     `json:"ended" doc:"What disabling it has ended, on every node"`
	Managed    int               `json:"managed" doc:"How many managed accounts stay with no way in but a reset of the password; 0 unless it is disabled"`
	People     []concernedPerson `json:"people,omitempty" doc:"Of a dry run: whose sessions end, at most 100"`
}

var dryRunOnly = []front.Parameter{dryRun}

var docEditConnection = front.Doc{
	ID: "editConnection", Tag: "Sign-on", Summary: "Change, enable or disable a connection",
	Description: "All changes or none. What an active connection signs people in by (`issuer`, `clientId`, `clientAuth`, `entityId`, `metadataUrl`, `metadata`, `subjectFrom`, `emailFrom`) is changed in `pending`, and signs nobody in before it has passed a test and was switched; everything else is in force at once. `certificates` takes the other ones of the provider away at once, also from what is pending; 409 `certificate_needed` if none would be left. `status` active needs a passed test of exactly what the connection has. Disabling ends the sessions that the connection has vouched for, on every node before the answer. With an issuer or metadata, the answer comes within 12 s, as when a connection is made. With `If-Match`, a change by somebody else since is 412.",
	Versioned:   true,
	Query:       dryRunOnly,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeConnectionNotTested, doorward.CodeCertificateNeeded, doorward.CodeTooManyAttempts, doorward.CodeQuotaExceeded, doorward.CodeMasterKeyMissing},
}

func (a *api) editConnection(ctx context.Context, c *front.Call, in editConnectionInput) (editedConnection, error) {
	id, err := connectionID(c)
	if err != nil {
		return editedConnection{}, err
	}
	isDryRun, err := c.Flag("dryRun")
	if err != nil {
		return editedConnection{}, err
	}
	after, ended, err := a.app.Connections.Edit(ctx, c.Caller, id, connection.Change{Draft: in.draft(), Versions: c.Versions(), DryRun: isDryRun})
	if err != nil {
		return editedConnection{}, err
	}
	if !isDryRun {
		c.SetRevocation(ended.Revocation)
		c.SetVersion(after.Version())
	}
	return editedConnection{a.viewConnection(after), endedByStatus{ended.Sessions, ended.SCIMSecrets}, ended.Managed, viewConcerned(ended.People)}, nil
}

var docDeleteConnection = front.Doc{
	ID: "deleteConnection", Tag: "Sign-on", Summary: "Delete a connection",
	Description: "With its secrets, keys, protocol and identities. Ends the sessions that it has vouched for, on every node before the answer. Accounts and memberships stay. With `If-Match`, a change by somebody else since is 412.",
	Conditional: true,
	Query:       dryRunOnly,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeValidationFailed},
}

func (a *api) deleteConnection(ctx context.Context, c *front.Call, _ front.None) (endedByConnection, error) {
	id, err := connectionID(c)
	if err != nil {
		return endedByConnection{}, err
	}
	isDryRun, err := c.Flag("dryRun")
	if err != nil {
		return endedByConnection{}, err
	}
	ended, err := a.app.Connections.Delete(ctx, c.Caller, id, isDryRun, c.Versions()...)
	c.SetRevocation(ended.Revocation)
	return viewEndedBy(ended), err
}

var docDropPending = front.Doc{
	ID: "dropPendingConnection", Tag: "Sign-on", Summary: "Drop what is pending",
	Description: "What is in force stays. 404 if nothing is pending.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeNothingPending, doorward.CodeQuotaExceeded},
}

func (a *api) dropPending(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := connectionID(c)
	if err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.Connections.DropPending(ctx, c.Caller, id)
}

type switchConnectionInput struct {
	DryRun bool `json:"dryRun,omitempty" doc:"Nothing is changed: the answer says what would be"`
}

// OptionalBody implements front.OptionalBody.
func (switchConnectionInput) OptionalBody() {}

type switchedConnection struct {
	Connection connectionView    `json:"connection"`
	Identities int               `json:"identities" doc:"How many identities count only once they are used again, since issuer, client, entityId or subjectFrom are others"`
	People     []concernedPerson `json:"people,omitempty" doc:"Some of those whom that concerns, at most 100"`
}

var docSwitchConnection = front.Doc{
	ID: "switchConnection", Tag: "Sign-on", Summary: "Put in force what is pending",
	Description: "Once a test of exactly that has passed. After a change of the issuer, the client, the entityId or subjectFrom, a person's identity counts only once it has been used again.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeNothingPending, doorward.CodeConnectionNotTested, doorward.CodeCertificateNeeded, doorward.CodeQuotaExceeded},
}

func (a *api) switchConnection(ctx context.Context, c *front.Call, in switchConnectionInput) (switchedConnection, error) {
	id, err := connectionID(c)
	if err != nil {
		return switchedConnection{}, err
	}
	done, err := a.app.Connections.Switch(ctx, c.Caller, id, in.DryRun)
	if err != nil {
		return switchedConnection{}, err
	}
	return switchedConnection{a.viewConnection(done.Shown), done.Identities, viewConcerned(done.People)}, nil
}

func viewClientSecret(s doorward.ConnectionSecret) clientSecretView {
	return clientSecretView{s.ID, s.Hint, s.CreatedAt, s.ExpiresAt, s.LastUsedAt, s.IsLost}
}

func viewAddedSecret(_ *front.Call, s doorward.ConnectionSecret) clientSecretView {
	return viewClientSecret(s)
}

type clientSecretInput struct {
	ClientSecret string     `json:"clientSecret" example:"Zq8~5rJ…k3Qz" doc:"As the provider shows it; no answer shows it again"`
	ExpiresAt    *time.Time `json:"expiresAt,omitempty" doc:"When the provider ends it: OWNERs get mails 30, 7 and 1 days before"`
}

var docAddClientSecret = front.Doc{
	ID: "addClientSecret", Tag: "Sign-on", Summary: "Add a client secret",
	Description: "Two at most: the newest is tried first, the other one when the provider refuses it. Adding or deleting one makes earlier tests of `secret_basic` and `secret_post` void; an active connection goes on.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeTooManySecrets, doorward.CodeMasterKeyMissing},
}

func (a *api) addClientSecret(ctx context.Context, c *front.Call, in clientSecretInput) (doorward.ConnectionSecret, error) {
	id, err := connectionID(c)
	if err != nil {
		return doorward.ConnectionSecret{}, err
	}
	return a.app.ClientSecrets.Add(ctx, c.Caller, id, clientsecret.Typed{Secret: in.ClientSecret, ExpiresAt: in.ExpiresAt})
}

var docDeleteClientSecret = front.Doc{
	ID: "deleteClientSecret", Tag: "Sign-on", Summary: "Delete a client secret",
	Description: "It is used no more from the answer on.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound},
}

func (a *api) deleteClientSecret(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := connectionID(c)
	if err != nil {
		return front.None{}, err
	}
	secretID, err := c.ID("secretId", doorward.PrefixClientSecret)
	if err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.ClientSecrets.Delete(ctx, c.Caller, id, secretID)
}

type connectionKeySet struct {
	Keys []jwt.Public `json:"keys" nullable:"false"`
}

// keysLife is how long providers may keep the keys.
const keysLife = "max-age=300"

var docConnectionKeys = front.Doc{
	ID: "connectionKeys", Tag: "Sign-on", Summary: "The keys by which a connection authenticates to its provider",
	Description: "A JSON Web Key Set (RFC 7517) for the provider, for `private_key_jwt`: the key that signs now, the next one a day before it signs, and the last one for a day. Keep it for up to 300 seconds.",
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) connectionKeys(ctx context.Context, c *front.Call, _ front.None) (connectionKeySet, error) {
	id, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return connectionKeySet{}, err
	}
	all, err := a.app.Connections.Keys(ctx, id)
	if err != nil {
		return connectionKeySet{}, err
	}
	set := connectionKeySet{make([]jwt.Public, len(all))}
	for i, key := range all {
		if err := json.Unmarshal(key, &set.Keys[i]); err != nil {
			return connectionKeySet{}, doorward.Unavailable(err)
		}
	}
	c.W.Header().Set("Cache-Control", keysLife)
	return set, nil
}
