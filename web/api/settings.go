package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

// settingsInput has the settings of doorward.Settings, which has the bounds of numbers. The tag doc
// describes a setting in a request, and view in an answer.
type settingsInput struct {
	SessionIdleMinutes     *front.Int `json:"sessionIdleMinutes,omitempty" example:"30"`
	SessionAbsoluteMinutes *front.Int `json:"sessionAbsoluteMinutes,omitempty" example:"720"`
	InvitationDays         *front.Int `json:"invitationDays,omitempty" example:"14" view:"The most that an invitation may be valid for"`
	AllowedEmailDomains    *[]string  `json:"allowedEmailDomains,omitempty" maxItems:"100" example:"[\"acme.example\"]" doc:"Empty: all" view:"Domains of the addresses that may be invited; empty: all"`
	KeepEventsDays         *front.Int `json:"keepEventsDays,omitempty" example:"365" doc:"30 or more, and at most as long as the installation keeps them; 0: as long as the installation does. Older events are deleted within minutes; to keep fewer days than before needs a recent proof" view:"For how many days events of the audit trail are kept; 0: for ever"`
	MFA                    *string    `json:"mfa,omitempty" enum:"optional,required" doc:"Whether members need a second factor" view:"Whether members need a second factor"`
	MFARoles               *[]string  `json:"mfaRoles,omitempty" example:"[\"ADMIN\"]" doc:"The roles that mfa covers; empty: all. Where it covers more roles than before, the days of grace begin again" view:"The roles that mfa covers; empty: all"`
	MFAGraceDays           *front.Int `json:"mfaGraceDays,omitempty" example:"7" view:"For how many days members sign in without one, from the demand or from joining, whichever is later"`
	MFARememberDays        *front.Int `json:"mfaRememberDays,omitempty" example:"14" view:"For how many days a browser stands in for the second factor; 0: it does not"`
	StepUpMinutes          *front.Int `json:"stepUpMinutes,omitempty" example:"10" view:"The longest age of a proof of identity for sensitive actions"`
	Accent                 *string    `json:"accent,omitempty" example:"#3b4ccf" doc:"# and six hexadecimal digits; empty: that of the installation" view:"Colour of buttons and links on the tenant's pages; empty: that of the installation"`
}

// settingsView has the effective settings, all of them: those of the tenant, or else of the installation.
type settingsView settingsInput

// byName returns the settings that are in the body, for tenant.Edit.
func (s settingsInput) byName() map[string]any {
	all := map[string]any{}
	for field, value := range reflect.ValueOf(s).Fields() {
		switch v := value.Interface().(type) {
		case *front.Int:
			if v != nil {
				all[jsonName(field)] = int64(*v)
			}
		default:
			if !value.IsNil() {
				all[jsonName(field)] = value.Elem().Interface()
			}
		}
	}
	return all
}

func viewSettings(all []doorward.Setting, t doorward.Tenant) (v settingsView) {
	byName := map[string]any{}
	for _, s := range all {
		byName[s.Name] = s.Effective(t)
	}
	for field, value := range reflect.ValueOf(&v).Elem().Fields() {
		p := reflect.New(field.Type.Elem())
		p.Elem().Set(reflect.ValueOf(byName[jsonName(field)]).Convert(field.Type.Elem()))
		value.Set(p)
	}
	return v
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// TransformSchema implements huma.SchemaTransformer: it adds the bounds that all installations have.
func (settingsInput) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	for _, setting := range doorward.Settings(doorward.SessionLimits{}, 0) {
		if p := s.Properties[setting.Name]; setting.Unit != "" {
			p.Minimum = new(float64(setting.Min))
			if setting.Max > 0 {
				p.Maximum = new(float64(setting.Max))
			}
		}
	}
	return s
}

// TransformSchema implements huma.SchemaTransformer: an answer has every setting.
func (v settingsView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	for field := range reflect.TypeOf(v).Fields() {
		p := s.Properties[jsonName(field)]
		p.Description, p.MaxItems = field.Tag.Get("view"), nil
		s.Required = append(s.Required, jsonName(field))
	}
	return s
}
