package connection_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
)

const entity = "https://idp.acme.example"

// certificate is a certificate of a provider, and its fingerprint.
type certificate struct {
	der   []byte
	print string
}

func newCertificate(until time.Time) certificate {
	der := apptest.SAMLCertificate(until)
	sum := sha256.Sum256(der)
	return certificate{der, hex.EncodeToString(sum[:])}
}

func metadataOf(entityID string, certificates ...certificate) string {
	ders := make([][]byte, len(certificates))
	for i, c := range certificates {
		ders[i] = c.der
	}
	return apptest.SAMLMetadata(entityID, ders...)
}

func prints(certificates ...certificate) (all []string) {
	for _, c := range certificates {
		all = append(all, c.print)
	}
	return all
}

// passed lets a test of the connection pass, whatever its provider says.
func passed(f *apptest.Fixture, by apptest.Person, id string) {
	f.Helper()
	tests := f.Node(0).Tests
	made, err := tests.Make(f.Context(), by.Caller, id)
	f.NoError(err)
	_, _, err = tests.Begin(f.Context(), by.Caller, id, made.ID, "")
	f.NoError(err)
	_, err = tests.End(f.Context(), made.ID, nil, []doorward.TestCheck{{Name: "signature", OK: true}})
	f.NoError(err)
}

// activeSAML makes a connection with the metadata at the address, or, without one, as a text, and enables it.
func activeSAML(f *apptest.Fixture, by apptest.Person, address, text string) connection.Shown {
	f.Helper()
	f.UseMasterKey()
	d := connection.Draft{Type: "saml", Name: new("SAML"), MetadataURL: &address}
	if address == "" {
		d.MetadataURL, d.Metadata = nil, &text
	}
	made, err := f.Node(0).Connections.Create(f.Context(), by.Caller, d)
	f.NoError(err)
	passed(f, by, made.ID)
	return edit(f, by, made.ID, connection.Draft{Status: new("active")})
}

// wantSigners checks by which certificates people are signed in on each node, by what is in force or pending.
func wantSigners(f *apptest.Fixture, id string, isPending bool, want ...certificate) {
	f.Helper()
	for node := range 2 {
		config, _, err := f.Node(node).Connections.ReadySAML(f.Context(), id, isPending)
		f.NoError(err)
		got := []string{}
		for _, c := range config.Provider.Certificates {
			got = append(got, c.Fingerprint)
		}
		if !slices.Equal(got, prints(want...)) {
			f.Errorf("node %d takes certificates %v, want %v", node, got, prints(want...))
		}
	}
}

// begunByLink makes a set-up link of the connection and returns its caller.
func begunByLink(f *apptest.Fixture, by apptest.Person, id string) doorward.Caller {
	f.Helper()
	links := f.Node(0).SetupLinks
	made, err := links.Make(f.Context(), by.Caller, id, 0)
	f.NoError(err)
	_, token, _ := strings.Cut(made.URL, "#token=")
	cookie, err := links.Begin(f.Context(), apptest.Anonymous(0), token)
	f.NoError(err)
	caller, _, err := links.Caller(f.Context(), apptest.Anonymous(0), cookie.Reveal())
	f.NoError(err)
	return caller
}

// TestSAMLFaults: what is wrong with metadata is a fault of the field that names them, which says what to do.
func TestSAMLFaults(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		good, old := newCertificate(time.Now().Add(time.Hour)), time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
		one, other := metadataOf(entity, good), metadataOf("https://other.example", good)
		several := apptest.SAMLFederation(one, other)
		expired := strings.Replace(one, "entityID=", `validUntil="`+old+`" entityID=`, 1)
		server := f.MetadataServer(several)
		closed := f.MetadataServer("")
		closed.Say(http.StatusNotFound, "")
		for name, c := range map[string]struct {
			draft         connection.Draft
			pointer, code string
		}{
			"several":                      {connection.Draft{Metadata: &several}, "/entityId", "required"},
			"several at an address":        {connection.Draft{MetadataURL: new(server.Address())}, "/entityId", "required"},
			"another":                      {connection.Draft{MetadataURL: new(server.Address()), EntityID: new("x")}, "/entityId", "unknown_entity"},
			"an entityID alone":            {connection.Draft{EntityID: new("x")}, "/metadataUrl", "required"},
			"both":                         {connection.Draft{MetadataURL: new(server.Address()), Metadata: &one}, "/metadata", "invalid"},
			"no XML":                       {connection.Draft{Metadata: new("x")}, "/metadata", "invalid"},
			"nothing":                      {connection.Draft{Metadata: new("")}, "/metadata", "invalid"},
			"a document type":              {connection.Draft{Metadata: new("<!DOCTYPE x []>" + one)}, "/metadata", "doctype"},
			"too large":                    {connection.Draft{Metadata: new(strings.Repeat(" ", 256<<10) + one)}, "/metadata", "too_large"},
			"no certificate":               {connection.Draft{Metadata: new(metadataOf(entity))}, "/metadata", "no_certificate"},
			"expired":                      {connection.Draft{Metadata: &expired}, "/metadata", "expired"},
			"no https":                     {connection.Draft{MetadataURL: new("http://idp.example/metadata")}, "/metadataUrl", "invalid"},
			"a user in the address":        {connection.Draft{MetadataURL: new("https://a:b@idp.example/metadata")}, "/metadataUrl", "invalid"},
			"an internal address":          {connection.Draft{MetadataURL: new("https://10.1.2.3/metadata")}, "/metadataUrl", "address_refused"},
			"not found":                    {connection.Draft{MetadataURL: new(closed.Address())}, "/metadataUrl", "unreachable"},
			"an issuer":                    {connection.Draft{Issuer: new(entity)}, "/issuer", "invalid"},
			"a control character":          {connection.Draft{SubjectFrom: new("a\x1fb")}, "/subjectFrom", "invalid"},
			"metadata of type oidc":        {connection.Draft{Type: "oidc", Metadata: &one}, "/metadata", "invalid"},
			"signed requests of type scim": {connection.Draft{Type: "scim", SignRequests: new(true)}, "/signRequests", "invalid"},
		} {
			d := c.draft
			d.Name = new("SAML")
			if d.Type == "" {
				d.Type = "saml"
			}
			_, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, d)
			var e *doorward.Error
			if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Pointer != c.pointer || e.Fields[0].Code != c.code || e.Fields[0].Message == "" {
				t.Errorf("%s: the error is %v", name, err)
				continue
			}
			if wantsEntities := c.pointer == "/entityId"; wantsEntities != slices.Contains(e.Fields[0].Entities, "https://other.example") {
				t.Errorf("%s: the entities are %q", name, e.Fields[0].Entities)
			}
			if strings.Contains(e.Fields[0].Message, "{") {
				t.Errorf("%s: the message is %q", name, e.Fields[0].Message)
			}
		}
		made, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "saml", Name: new("SAML"), MetadataURL: new(server.Address()), EntityID: new(entity)})
		f.NoError(err)
		if made.InForce.Issuer != entity || made.Provider.SSOURL != "https://idp.example/sso" || made.InForce.EmailFrom != "email" {
			t.Errorf("the connection is %+v", made)
		}
		_, err = f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, made.ID, clientsecret.Typed{Secret: "a secret of a client"})
		wantCode(f, err, doorward.CodeValidationFailed)
	})
}

// TestSAMLChangesWait: on an active connection metadata are pending as a whole, and so is what the others name. What the
// new ones lack goes at the switch. Identities of another entityID, or read from another attribute, count only once they
// are used again.
func TestSAMLChangesWait(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		old, next := newCertificate(time.Now().Add(time.Hour)), newCertificate(time.Now().Add(2*time.Hour))
		c := activeSAML(f, owner, "", metadataOf(entity, old))
		connections := f.Node(0).Connections
		is := edit(f, owner, c.ID, connection.Draft{Metadata: new(metadataOf(entity, old))})
		if is.Pending != nil {
			t.Errorf("the same metadata are pending: %+v", is.Pending)
		}
		is = edit(f, owner, c.ID, connection.Draft{Metadata: new(metadataOf(entity, next))})
		if is.Pending == nil || is.InForce.TestedAt == nil {
			t.Fatalf("after the change it is %+v", is)
		}
		wantSigners(f, c.ID, false, old)
		wantSigners(f, c.ID, true, next)
		_, err := connections.Switch(f.Context(), owner.Caller, c.ID, false)
		wantCode(f, err, doorward.CodeConnectionNotTested)
		passed(f, owner, c.ID)
		switched, err := connections.Switch(f.Context(), owner.Caller, c.ID, false)
		f.NoError(err)
		if !switched.SwitchedAt.IsZero() {
			t.Errorf("after other certificates identities count only once they are used again")
		}
		wantSigners(f, c.ID, false, next)

		for name, d := range map[string]connection.Draft{
			"subjectFrom": {SubjectFrom: new("employeeid")},
			"entityId":    {Metadata: new(metadataOf("https://other.example", next))},
		} {
			was := get(f, owner, c.ID)
			edit(f, owner, c.ID, d)
			wantSigners(f, c.ID, true, next)
			passed(f, owner, c.ID)
			switched, err := connections.Switch(f.Context(), owner.Caller, c.ID, false)
			f.NoError(err)
			if !switched.SwitchedAt.After(was.SwitchedAt) {
				t.Errorf("after a switch to another %s identities count as before", name)
			}
			if was.InForce.IdentityIssuer() == switched.InForce.IdentityIssuer() {
				t.Errorf("with another %s subjects are those of %q still", name, was.InForce.IdentityIssuer())
			}
		}
		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("NameID")})
		f.NoError(connections.DropPending(f.Context(), owner.Caller, c.ID))
		wantSigners(f, c.ID, false, next)
	})
}

// TestCertificateTakenAway: a certificate that was taken away by hand signs nobody in from the answer on, on every node,
// and whatever the provider says later; what an OWNER names brings it back, after a test and a switch.
func TestCertificateTakenAway(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		a, b, added := newCertificate(time.Now().Add(time.Hour)), newCertificate(time.Now().Add(2*time.Hour)), newCertificate(time.Now().Add(3*time.Hour))
		server := f.MetadataServer(metadataOf(entity, a, b))
		c := activeSAML(f, owner, server.Address(), "")
		edit(f, owner, c.ID, connection.Draft{SubjectFrom: new("uid")}) // pending, with the same certificates
		connections := f.Node(0).Connections
		byLink := begunByLink(f, owner, c.ID)

		wantCode(f, tryEdit(f, owner, c.ID, connection.Draft{Certificates: &[]string{}}), doorward.CodeCertificateNeeded)
		wantCode(f, tryEdit(f, owner, c.ID, connection.Draft{Certificates: &[]string{a.print, added.print}}), doorward.CodeValidationFailed)
		wantCode(f, tryEdit(f, owner, c.ID, connection.Draft{Certificates: &[]string{a.print}, EntityID: new(entity)}), doorward.CodeValidationFailed)
		_, _, err := connections.Edit(f.Context(), byLink, c.ID, connection.Change{Draft: connection.Draft{Certificates: &[]string{a.print}}})
		wantCode(f, err, doorward.CodeForbidden)
		wantSigners(f, c.ID, false, a, b)

		before := get(f, owner, c.ID)
		after := edit(f, owner, c.ID, connection.Draft{Certificates: &[]string{strings.ToUpper(a.print)}})
		wantSigners(f, c.ID, false, a)
		wantSigners(f, c.ID, true, a)
		if after.Version() == before.Version() || after.InForce.TestedAt == nil || len(after.Provider.Certificates) != 1 {
			t.Errorf("after the change it is %+v", after)
		}
		server.Say(http.StatusOK, metadataOf(entity, a, b, added))
		_, err = connections.Refresh(f.Context(), owner.Caller, c.ID)
		f.NoError(err)
		wantSigners(f, c.ID, false, a, added)
		wantSigners(f, c.ID, true, a, added)

		_, _, err = connections.Edit(f.Context(), byLink, c.ID, connection.Change{Draft: connection.Draft{Metadata: new(metadataOf(entity, b))}})
		wantCode(f, err, doorward.CodeValidationFailed)
		_, _, err = connections.Edit(f.Context(), byLink, c.ID, connection.Change{Draft: connection.Draft{Metadata: new(metadataOf(entity, b, added))}})
		f.NoError(err)
		wantSigners(f, c.ID, true, added)

		edit(f, owner, c.ID, connection.Draft{MetadataURL: new(server.Address())})
		wantSigners(f, c.ID, false, a, added)
		wantSigners(f, c.ID, true, a, b, added)
		passed(f, owner, c.ID)
		_, err = connections.Switch(f.Context(), owner.Caller, c.ID, false)
		f.NoError(err)
		wantSigners(f, c.ID, false, a, b, added)
	})
}

// TestSwitchNeedsCertificate: what is pending isn't switched to once all of its certificates were taken away.
func TestSwitchNeedsCertificate(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		a, b := newCertificate(time.Now().Add(time.Hour)), newCertificate(time.Now().Add(2*time.Hour))
		c := activeSAML(f, owner, "", metadataOf(entity, a, b))
		edit(f, owner, c.ID, connection.Draft{Metadata: new(metadataOf(entity, b))})
		passed(f, owner, c.ID)
		edit(f, owner, c.ID, connection.Draft{Certificates: &[]string{a.print}})
		_, err := f.Node(0).Connections.Switch(f.Context(), owner.Caller, c.ID, false)
		wantCode(f, err, doorward.CodeCertificateNeeded)
		wantSigners(f, c.ID, false, a)
	})
}

// TestCertificateNotices: OWNERs are told 30, 7 and 1 days before the last certificate ends, each once over all nodes, and
// no more once the provider has a newer one.
func TestCertificateNotices(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		now := f.DB.Now()
		first, last := newCertificate(now.Add(20*24*time.Hour)), newCertificate(now.Add(40*24*time.Hour))
		server := f.MetadataServer(metadataOf(entity, first, last))
		activeSAML(f, owner, server.Address(), "")
		mails := func() int {
			for node := range 2 {
				f.NoError(f.Node(node).Connections.Sweep(f.Context()))
			}
			f.NoError(f.Node(0).Mail.Deliver(f.Context()))
			return strings.Count(strings.Join(f.Subjects(owner.User.Email), "\n"), "certificate of the sign-in")
		}
		if n := mails(); n != 0 {
			t.Errorf("40 days before the last one ends there are %d mails", n)
		}
		for i, days := range []int{15, 20, 4} { // 25, 5 and 1 days before
			clock.Move(time.Duration(days) * 24 * time.Hour)
			if n := mails(); n != i+1 {
				t.Errorf("at notice %d there are %d mails", i+1, n)
			}
		}
		server.Say(http.StatusOK, metadataOf(entity, last, newCertificate(f.DB.Now().Add(400*24*time.Hour))))
		f.NoError(f.Node(0).Connections.ReadDue(f.Context()))
		clock.Move(12 * time.Hour)
		if n := mails(); n != 3 {
			t.Errorf("with a newer one there are %d mails", n)
		}
	})
}

// TestSAMLKeys: our metadata have a key for each purpose once it is asked for, the same on every node, and never one key
// for both; without a master key none is asked for.
func TestSAMLKeys(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		text := metadataOf(entity, newCertificate(time.Now().Add(time.Hour)))
		made, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "saml", Name: new("SAML"), Metadata: &text})
		f.NoError(err)
		wantCode(f, tryEdit(f, owner, made.ID, connection.Draft{Encrypt: new(true)}), doorward.CodeMasterKeyMissing)
		f.UseMasterKey()
		ours := func(node int) string {
			text, err := f.Node(node).Connections.SAML.Metadata(f.Context(), made.ID)
			f.NoError(err)
			return string(text)
		}
		if strings.Contains(ours(0), "KeyDescriptor") {
			t.Errorf("without being asked for there is a key: %s", ours(0))
		}
		edit(f, owner, made.ID, connection.Draft{Encrypt: new(true), SignRequests: new(true)})
		if text := ours(1); strings.Count(text, "<md:KeyDescriptor") != 2 || text != ours(0) || text != ours(1) {
			t.Errorf("our metadata are %s and %s", ours(0), text)
		}
		config, _, err := f.Node(1).Connections.ReadySAML(f.Context(), made.ID, false)
		f.NoError(err)
		again, _, err := f.Node(0).Connections.ReadySAML(f.Context(), made.ID, false)
		f.NoError(err)
		if config.Sign == nil || config.Decrypt == nil || config.Sign.ID == config.Decrypt.ID || config.Sign.ID != again.Sign.ID || len(config.MACKey) < 32 || string(config.MACKey) != string(again.MACKey) {
			t.Errorf("the nodes have %+v and %+v", config, again)
		}
		edit(f, owner, made.ID, connection.Draft{Encrypt: new(false)})
		if text := ours(1); strings.Count(text, "<md:KeyDescriptor") != 1 || strings.Contains(text, config.Decrypt.Certificate()) {
			t.Errorf("without encryption our metadata are %s", text)
		}

		wants := strings.Replace(text, "<md:IDPSSODescriptor ", `<md:IDPSSODescriptor WantAuthnRequestsSigned="true" `, 1)
		signs, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "saml", Name: new("Signs"), Metadata: &wants})
		f.NoError(err)
		if !signs.SignRequests {
			t.Error("requests to a provider that wants them signed aren't")
		}
		_, err = f.Node(0).Connections.Delete(f.Context(), owner.Caller, made.ID, false)
		f.NoError(err)
		_, err = f.Node(1).Connections.SAML.Metadata(f.Context(), made.ID)
		wantCode(f, err, doorward.CodeNotFound)
	})
}
