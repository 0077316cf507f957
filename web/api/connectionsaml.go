package api

import (
	"context"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/web/front"
)

// maxConnectionBody is how many bytes a body may have that makes or changes a connection: metadata have up to 256 KiB,
// which escaping in JSON can double.
const maxConnectionBody = 512 << 10

// metadataType is the media type of metadata (saml-metadata-2.0-os, appendix A).
const metadataType = "application/samlmetadata+xml"

type samlCertificateView struct {
	Fingerprint string    `json:"fingerprint" example:"9f2b…" doc:"SHA-256, in hexadecimal digits"`
	From        time.Time `json:"from"`
	Until       time.Time `json:"until" doc:"OWNERs get mails 30, 7 and 1 days before the last one ends. It is good until it is taken away, all the same"`
}

func viewCertificates(of metadata.Provider) []samlCertificateView {
	all := []samlCertificateView{}
	for _, c := range of.Certificates {
		all = append(all, samlCertificateView{c.Fingerprint, c.From, c.Until})
	}
	return all
}

// addSAML adds what a connection of type saml has in place of what those of type oidc have.
func (a *api) addSAML(v *connectionView, s connection.Shown) {
	v.Issuer, v.JWKSURL, v.RevokeURL, v.LogoutURL = "", "", "", ""
	v.EntityID, v.MetadataURL, v.SubjectFrom = s.InForce.Issuer, s.InForce.MetadataURL, s.InForce.SubjectFrom
	v.SSOURL, v.Certificates = s.Provider.SSOURL, viewCertificates(s.Provider)
	v.SPEntityID, v.ACSURL, v.SPMetadataURL = a.app.Connections.SAML.MetadataURL(s.ID), a.app.Connections.SAML.ACSURL(s.ID), a.app.Connections.SAML.MetadataURL(s.ID)
	v.SignRequests, v.Encrypt = &s.SignRequests, &s.Encrypt
	if p := v.Pending; p != nil {
		p.EntityID, p.MetadataURL, p.SubjectFrom = s.Pending.Issuer, s.Pending.MetadataURL, s.Pending.SubjectFrom
		p.Issuer, p.SSOURL, p.Certificates = "", s.PendingProvider.SSOURL, viewCertificates(s.PendingProvider)
	}
}

var docRefreshConnection = front.Doc{
	ID: "refreshConnection", Tag: "Sign-on", Summary: "Read again what the provider says of itself",
	Description: "At the address of its metadata, or of its discovery document: Doorward reads them daily by itself. Certificates that the provider has taken away sign nobody in from the answer on, on every node, and new ones do. What can't be read, or is of another provider, changes nothing. Answers within 12 s. A fault of what is there is 422 at `/metadataUrl` or `/issuer`, as when the connection is made; 503 if it can't be reached.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeTooManyAttempts, doorward.CodeValidationFailed, doorward.CodeProviderUnavailable},
}

func (a *api) refreshConnection(ctx context.Context, c *front.Call, _ front.None) (connectionView, error) {
	id, err := connectionID(c)
	if err != nil {
		return connectionView{}, err
	}
	found, err := a.app.Connections.Refresh(ctx, c.Caller, id)
	if err != nil {
		return connectionView{}, err
	}
	return a.viewConnection(found), nil
}

var docConnectionMetadata = front.Doc{
	ID: "connectionMetadata", Tag: "Sign-on", Summary: "Doorward's own SAML metadata for a connection",
	Description: "For the provider of a connection of type saml, also of a draft: its address is Doorward's entityID there. It has the certificate of signed requests with `signRequests`, and that of encrypted assertions with `encrypt`. Keep it for up to 300 seconds.",
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodeMasterKeyMissing},
}

// connectionMetadata answers with XML.
func (a *api) connectionMetadata() front.Endpoint {
	e := front.Raw(func(ctx context.Context, c *front.Call) error {
		id, err := c.ID("con", doorward.PrefixConnection)
		if err != nil {
			return err
		}
		text, err := a.app.Connections.SAML.Metadata(ctx, id)
		if err != nil {
			return err
		}
		c.W.Header().Set("Content-Type", metadataType)
		c.W.Header().Set("Cache-Control", keysLife)
		c.W.WriteHeader(http.StatusOK)
		_, _ = c.W.Write(text) // the client is gone
		return nil
	})
	e.OutMedia = metadataType
	return e
}
