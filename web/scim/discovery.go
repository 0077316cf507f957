package scim

import (
	"context"
	"net/http"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/web/front"
)

type object = map[string]any

func (h *handler) config(_ context.Context, c *front.Call) error {
	no := object{"supported": false}
	c.AnswerAs(http.StatusOK, mediaType, object{
		"schemas":        []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"patch":          object{"supported": true},
		"bulk":           object{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter":         object{"supported": true, "maxResults": pageMax},
		"changePassword": no, "sort": no, "etag": no,
		"authenticationSchemes": []object{{
			"type": "oauthbearertoken", "name": "Secret of the connection", "primary": true,
			"description": "Send the connection's secret as \"Authorization: Bearer dwc_…\".",
		}},
		"meta": object{"resourceType": "ServiceProviderConfig", "location": c.Site().BaseURL() + Base + "/ServiceProviderConfig"},
	})
	return nil
}

// answerList answers with all of the resources, or with the one whose id is asked for.
func answerList(c *front.Call, all []object) error {
	answer := list{Schemas: []string{listSchema}, TotalResults: len(all), StartIndex: 1, ItemsPerPage: len(all), Resources: []any{}}
	for _, one := range all {
		answer.Resources = append(answer.Resources, one)
	}
	c.AnswerAs(http.StatusOK, mediaType, answer)
	return nil
}

func answerOne(c *front.Call, all []object, id string) error {
	for _, one := range all {
		if strings.EqualFold(one["id"].(string), id) {
			c.AnswerAs(http.StatusOK, mediaType, one)
			return nil
		}
	}
	return doorward.Fail(doorward.CodeNotFound, "")
}

func (h *handler) resourceTypes(_ context.Context, c *front.Call) error {
	return answerList(c, resourceTypes(c))
}

func (h *handler) resourceType(_ context.Context, c *front.Call) error {
	return answerOne(c, resourceTypes(c), c.R.PathValue("name"))
}

func resourceTypes(c *front.Call) []object {
	return []object{{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"}, "id": "User", "name": "User", "endpoint": "/Users",
		"description": "A member of the tenant, or somebody whom it has invited", "schema": scim.UserSchema,
		"schemaExtensions": []object{{"schema": scim.EnterpriseSchema, "required": false}, {"schema": stateSchema, "required": false}},
		"meta":             object{"resourceType": "ResourceType", "location": c.Site().BaseURL() + Base + "/ResourceTypes/User"},
	}, {
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"}, "id": "Group", "name": "Group", "endpoint": "/Groups",
		"description": "A group of the directory, whose role a mapping of the connection can give to its members", "schema": scim.GroupSchema,
		"meta": object{"resourceType": "ResourceType", "location": c.Site().BaseURL() + Base + "/ResourceTypes/Group"},
	}}
}

func (h *handler) schemas(_ context.Context, c *front.Call) error {
	return answerList(c, schemas(c))
}

func (h *handler) schema(_ context.Context, c *front.Call) error {
	return answerOne(c, schemas(c), c.R.PathValue("urn"))
}

func schemas(c *front.Call) []object {
	schema := func(urn, name string, attributes ...object) object {
		return object{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:Schema"}, "id": urn, "name": name, "description": name, "attributes": attributes,
			"meta": object{"resourceType": "Schema", "location": c.Site().BaseURL() + Base + "/Schemas/" + urn},
		}
	}
	return []object{
		schema(scim.UserSchema, "User",
			with(text("userName"), "required", true, "uniqueness", "server"), with(text("externalId"), "caseExact", true), text("displayName"), with(text("active"), "type", "boolean"),
			complexOf("name", false, text("formatted"), text("familyName"), text("givenName"), text("middleName"), text("honorificPrefix"), text("honorificSuffix")),
			complexOf("emails", true, text("value"), text("display"), text("type"), with(text("primary"), "type", "boolean")),
			with(complexOf("groups", true, text("value"), text("$ref"), text("display"), text("type")), "mutability", "readOnly")),
		schema(scim.GroupSchema, "Group",
			with(text("displayName"), "required", true, "uniqueness", "server"), with(text("externalId"), "caseExact", true),
			complexOf("members", true, with(text("value"), "mutability", "immutable"), with(text("$ref"), "mutability", "immutable"), with(text("type"), "mutability", "immutable"))),
		schema(scim.EnterpriseSchema, "EnterpriseUser",
			text("employeeNumber"), text("costCenter"), text("organization"), text("division"), text("department"),
			complexOf("manager", false, text("value"), text("$ref"), text("displayName"))),
		schema(stateSchema, "Doorward", with(text("state"), "mutability", "readOnly"), with(text("refused"), "mutability", "readOnly")),
	}
}

// text describes an attribute with one text (RFC 7643, section 7).
func text(name string) object {
	return object{"name": name, "type": "string", "multiValued": false, "required": false, "caseExact": false, "mutability": "readWrite", "returned": "default", "uniqueness": "none"}
}

// with sets properties of an attribute, given as names and values.
func with(attribute object, properties ...any) object {
	for i := 0; i+1 < len(properties); i += 2 {
		attribute[properties[i].(string)] = properties[i+1]
	}
	return attribute
}

func complexOf(name string, multiValued bool, parts ...object) object {
	return with(text(name), "type", "complex", "multiValued", multiValued, "subAttributes", parts)
}
