package connection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/metadata"
)

// Draft is a connection, or a change of one, as somebody has typed it; nil fields stay unchanged. Type and
// Product are those of a new one.
type Draft struct {
	Type    string
	Product *string
	Name    *string
	Status  *string // of a change

	Issuer, ClientID, ClientAuth, EmailFrom *string

	// Of type saml: where the metadata are, or their text; which provider of those; the attribute with the subject.
	MetadataURL, Metadata, EntityID, SubjectFrom *string
	Certificates                                 *[]string // fingerprints of those to keep, of a change
	SignRequests, Encrypt                        *bool

	JIT, JITRole *string
	Mappings     *[]doorward.GroupMapping
	GroupsFrom   *string
	FactorACR    *[]string
	TrustFactor  *bool
	Ends         *string
	EndsKeys     *bool

	Outside       *string // of its directory
	EmptyByRemove *bool
}

// Limits of what is typed, in bytes but for claims and groups, which count code points.
const (
	issuerMax   = 1000
	clientIDMax = 255
	claimMax    = 100
	groupMax    = 255
	acrMax      = 255
)

// defaultEmailClaim is that of OpenID Connect Core 1.0, section 5.1.
const defaultEmailClaim = "email"

func fault(pointer, code, message string) doorward.FieldError {
	return doorward.FieldError{Pointer: pointer, Code: code, Message: message}
}

// newConnection returns the connection that the draft describes, and the faults of what only a new one
// has.
func newConnection(by doorward.Caller, d Draft) (made doorward.Connection, faults []doorward.FieldError) {
	product := doorward.OtherProduct
	if d.Product != nil {
		product = doorward.Product(*d.Product)
	}
	made = doorward.Connection{
		ID: doorward.NewID(doorward.PrefixConnection), TenantID: by.TenantID, Type: doorward.OpenIDConnect, Product: product,
		Status: doorward.ConnectionDraft, JIT: doorward.JITOff, JITRole: doorward.RoleUser, FactorACR: []string{}, Mappings: []doorward.GroupMapping{}, Ends: doorward.EndsTenant, Outside: doorward.OutsideInvite,
		InForce: doorward.ConnectionParameters{ClientAuth: product.DefaultClientAuth(), EmailFrom: defaultEmailClaim},
	}
	switch doorward.ConnectionType(d.Type) {
	case doorward.OpenIDConnect:
	case doorward.SAML:
		made.Type, made.InForce = doorward.SAML, doorward.ConnectionParameters{EmailFrom: defaultEmailAttribute}
	case doorward.SCIMDirectory:
		made.Type, made.InForce.ClientAuth = doorward.SCIMDirectory, doorward.SecretBasic // no key is made
	default:
		faults = append(faults, fault("/type", "invalid", "The type is oidc, saml or scim."))
	}
	if !slices.Contains(doorward.Products, product) {
		faults = append(faults, fault("/product", "invalid", "Write okta, entra, google, keycloak, ping, onelogin, jumpcloud or other."))
	}
	return made, faults
}

// setOwn changes what is in force as soon as it is edited, and returns the faults of what is typed.
func (d Draft) setOwn(c *doorward.Connection) (faults []doorward.FieldError) {
	if d.Name != nil {
		c.Name = *d.Name
		if faults = doorward.CheckName("/name", &c.Name); len(faults) == 0 && c.Name == "" {
			faults = append(faults, fault("/name", "required", "Name the connection; people see it when they sign in."))
		}
	}
	if d.JIT != nil {
		c.JIT = doorward.JIT(*d.JIT)
		if !slices.Contains([]doorward.JIT{doorward.JITOff, doorward.JITInvited, doorward.JITDomains}, c.JIT) {
			faults = append(faults, fault("/jit", "invalid", "Write off, invited or domains."))
		}
	}
	if d.GroupsFrom != nil {
		c.GroupsFrom = *d.GroupsFrom
		faults = append(faults, checkClaim("/groupsFrom", c.GroupsFrom)...)
	}
	if d.FactorACR != nil {
		c.FactorACR = uniqueWords(*d.FactorACR)
		faults = append(faults, checkACR(*d.FactorACR)...)
	}
	if d.TrustFactor != nil {
		c.TrustFactor = *d.TrustFactor
	}
	if d.EndsKeys != nil {
		c.EndsKeys = *d.EndsKeys
	}
	if d.Ends != nil {
		if c.Ends = doorward.Ends(*d.Ends); c.Ends != doorward.EndsConnection && c.Ends != doorward.EndsTenant {
			faults = append(faults, fault("/ends", "invalid", "Write connection or tenant."))
		}
	}
	if d.SignRequests != nil {
		c.SignRequests = *d.SignRequests
	}
	if d.Encrypt != nil {
		c.Encrypt = *d.Encrypt
	}
	if d.Outside != nil {
		c.Outside = doorward.Outside(*d.Outside)
		if c.Outside != doorward.OutsideInvite && c.Outside != doorward.OutsideRefuse {
			faults = append(faults, fault("/directory/outside", "invalid", "Write invite or refuse."))
		}
	}
	if d.EmptyByRemove != nil {
		c.EmptyByRemove = *d.EmptyByRemove
	}
	return append(faults, d.setRoles(c)...)
}

// setRoles changes the roles. Which there are is judged by checkRoles, in the transaction.
func (d Draft) setRoles(c *doorward.Connection) (faults []doorward.FieldError) {
	if d.JITRole != nil {
		c.JITRole = doorward.Role(*d.JITRole)
	}
	if d.Mappings == nil {
		return nil
	}
	before := c.Mappings
	c.Mappings = slices.Clone(*d.Mappings)
	if len(c.Mappings) > doorward.MappingsMax {
		return []doorward.FieldError{fault("/mappings", "out_of_range", fmt.Sprintf("At most %d mappings.", doorward.MappingsMax))}
	}
	seen := map[string]bool{}
	for at, m := range c.Mappings {
		pointer := fmt.Sprintf("/mappings/%d/group", at)
		if i := slices.IndexFunc(before, func(b doorward.GroupMapping) bool { return b.Group == m.Group || b.Written() == m.Group }); i >= 0 {
			m.Group, m.GroupID, m.Given = before[i].Group, before[i].GroupID, before[i].Given
		}
		switch {
		case m.Group == "":
			faults = append(faults, fault(pointer, "required", "Name the group as the provider sends it."))
		case utf8.RuneCountInString(m.Group) > groupMax || hasControl(m.Group):
			faults = append(faults, fault(pointer, "invalid", "A group has at most 255 characters, and no control characters."))
		case seen[m.Group]:
			faults = append(faults, fault(pointer, "taken", "Another mapping has this group."))
		}
		c.Mappings[at], seen[m.Group] = m, true
	}
	slices.SortFunc(c.Mappings, func(a, b doorward.GroupMapping) int { return strings.Compare(a.Group, b.Group) })
	return faults
}

// checkRoles returns the faults of roles that aren't there, or rank above ADMIN: nothing is raised from
// outside. Pointers are those of the draft.
func (d Draft) checkRoles(rules *doorward.Rules) (faults []doorward.FieldError) {
	if d.JITRole != nil {
		faults = append(faults, checkRole(rules, "/jitRole", doorward.Role(*d.JITRole))...)
	}
	if d.Mappings != nil {
		for i, m := range *d.Mappings {
			faults = append(faults, checkRole(rules, fmt.Sprintf("/mappings/%d/role", i), m.Role)...)
		}
	}
	return faults
}

func checkRole(rules *doorward.Rules, pointer string, role doorward.Role) []doorward.FieldError {
	switch rank := rules.Rank(role); {
	case rank == "":
		return []doorward.FieldError{fault(pointer, "invalid", "The tenant has no such role.")}
	case rank.Outranks(doorward.RoleAdmin):
		return []doorward.FieldError{fault(pointer, "out_of_range", "A connection gives roles that rank as ADMIN at most.")}
	}
	return nil
}

// setParameters changes what the connection signs people in by, and returns the faults of what is typed.
// Whether the issuer answers is judged by provider.Client.Look.
func (d Draft) setParameters(p *doorward.ConnectionParameters) (faults []doorward.FieldError) {
	if faults = d.checkType(); len(faults) > 0 || d.Type == string(doorward.SCIMDirectory) {
		return faults
	}
	if d.Type == string(doorward.SAML) {
		return append(d.setSAML(p), d.checkCertificates()...)
	}
	if d.Issuer != nil {
		p.Issuer = oidcrp.TrimIssuer(*d.Issuer)
		faults = append(faults, checkIssuer(p.Issuer)...)
	}
	if d.ClientID != nil {
		p.ClientID = *d.ClientID
		if len(p.ClientID) > clientIDMax || hasControl(p.ClientID) || strings.TrimSpace(p.ClientID) != p.ClientID {
			faults = append(faults, fault("/clientId", "invalid", "Copy the client id from the provider: at most 255 bytes, without blanks around it."))
		}
	}
	if d.ClientAuth != nil {
		p.ClientAuth = doorward.ClientAuth(*d.ClientAuth)
		if !slices.Contains([]doorward.ClientAuth{doorward.SecretBasic, doorward.SecretPost, doorward.PrivateKeyJWT}, p.ClientAuth) {
			faults = append(faults, fault("/clientAuth", "invalid", "Write secret_basic, secret_post or private_key_jwt."))
		}
	}
	if d.EmailFrom != nil {
		p.EmailFrom = cmp.Or(*d.EmailFrom, defaultEmailClaim)
		faults = append(faults, checkClaim("/emailFrom", p.EmailFrom)...)
	}
	return faults
}

// checkType returns the faults of what a connection of this type doesn't have.
func (d Draft) checkType() (faults []doorward.FieldError) {
	const oidc, saml, scim = string(doorward.OpenIDConnect), string(doorward.SAML), string(doorward.SCIMDirectory)
	if !slices.Contains([]string{oidc, saml, scim}, d.Type) { // which is a fault already
		return nil
	}
	for _, one := range []struct {
		pointer string
		isTyped bool
		of      []string
	}{
		{"/issuer", d.Issuer != nil, []string{oidc}},
		{"/clientId", d.ClientID != nil, []string{oidc}},
		{"/clientAuth", d.ClientAuth != nil, []string{oidc}},
		{"/emailFrom", d.EmailFrom != nil, []string{oidc, saml}},
		{"/metadataUrl", d.MetadataURL != nil, []string{saml}},
		{"/metadata", d.Metadata != nil, []string{saml}},
		{"/entityId", d.EntityID != nil, []string{saml}},
		{"/subjectFrom", d.SubjectFrom != nil, []string{saml}},
		{"/certificates", d.Certificates != nil, []string{saml}},
		{"/signRequests", d.SignRequests != nil, []string{saml}},
		{"/encrypt", d.Encrypt != nil, []string{saml}},
	} {
		switch {
		case !one.isTyped || slices.Contains(one.of, d.Type):
		case d.Type == scim:
			faults = append(faults, fault(one.pointer, "invalid", "A connection of type scim signs nobody in: leave this out."))
		default:
			faults = append(faults, fault(one.pointer, "invalid", "Only connections of type "+one.of[0]+" have this: leave it out."))
		}
	}
	return faults
}

// checkIssuer returns the faults of an issuer's form; an empty one, which isn't known yet, has none.
func checkIssuer(issuer string) []doorward.FieldError {
	if issuer == "" {
		return nil
	}
	if len(issuer) > issuerMax {
		return []doorward.FieldError{provider.IssuerFault(&oidcrp.Fault{Code: oidcrp.CodeInvalid})}
	}
	var f *oidcrp.Fault
	if err := oidcrp.CheckIssuer(issuer); errors.As(err, &f) {
		return []doorward.FieldError{provider.IssuerFault(f)}
	}
	return nil
}

func checkClaim(pointer, name string) []doorward.FieldError {
	if utf8.RuneCountInString(name) > claimMax || hasControl(name) {
		return []doorward.FieldError{fault(pointer, "invalid", "The name of a claim, or of an attribute of SAML, has at most 100 characters, and no control characters.")}
	}
	return nil
}

func checkACR(values []string) (faults []doorward.FieldError) {
	if len(values) > doorward.FactorACRMax {
		return []doorward.FieldError{fault("/factorAcr", "out_of_range", fmt.Sprintf("At most %d values.", doorward.FactorACRMax))}
	}
	for i, v := range values {
		if v == "" || len(v) > acrMax || hasControl(v) || strings.ContainsFunc(v, unicode.IsSpace) {
			faults = append(faults, fault(fmt.Sprintf("/factorAcr/%d", i), "invalid", "A value of acr has 1 to 255 bytes, without blanks."))
		}
	}
	return faults
}

func hasControl(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }

func uniqueWords(words []string) []string {
	all := []string{}
	for _, word := range words {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// changesAny reports whether the draft has anything but the status.
func (d Draft) changesAny() bool {
	d.Status = nil
	return d != Draft{}
}

// field is a value that can be edited, as the trail shows it.
type field struct{ name, value string }

func ownFields(c doorward.Connection) []field {
	mappings := make([]string, len(c.Mappings))
	for i, m := range c.Mappings {
		mappings[i] = m.Group + "=" + string(m.Role)
	}
	all := []field{
		{doorward.FieldName, c.Name},
		{"jit", string(c.JIT)},
		{"jitRole", string(c.JITRole)},
		{"mappings", strings.Join(mappings, ", ")},
		{"groupsFrom", c.GroupsFrom},
		{"factorAcr", strings.Join(c.FactorACR, " ")},
		{"trustProviderFactor", fmt.Sprint(c.TrustFactor)},
		{"ends", string(c.Ends)},
		{"endsKeys", fmt.Sprint(c.EndsKeys)},
		{"outside", string(c.Outside)},
		{"emptyByRemove", fmt.Sprint(c.EmptyByRemove)},
	}
	if c.Type == doorward.SAML {
		all = append(all, field{"signRequests", fmt.Sprint(c.SignRequests)}, field{"encrypt", fmt.Sprint(c.Encrypt)})
	}
	return all
}

func parameterFields(t doorward.ConnectionType, p doorward.ConnectionParameters, said metadata.Provider) []field {
	if t == doorward.SAML {
		return samlFields(p, said)
	}
	return []field{{"issuer", p.Issuer}, {"clientId", p.ClientID}, {"clientAuth", string(p.ClientAuth)}, {"emailFrom", p.EmailFrom}}
}
