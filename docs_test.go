package doorward_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/internal/goldentest"
	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/authzen"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
)

// These tests compare tables in docs with the code. To rewrite the tables:
//
//	go test -run Golden . -update

const (
	permissionsPage = "docs/permissions.md"
	errorsPage      = "docs/errors.md"
	endpointsPage   = "docs/endpoints.md"
)

// table returns a Markdown table. The first row is its header.
func table(rows ...[]string) string {
	var out strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return out.String()
}

// code formats a word as code in Markdown.
func code[T ~string](word T) string { return "`" + string(word) + "`" }

// codes formats words as code, separated by spaces; without words it returns a dash.
func codes[T ~string](words []T) string {
	if len(words) == 0 {
		return "–"
	}
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = code(w)
	}
	return strings.Join(all, " ")
}

// cell escapes a text for the cell of a table: "|" would end the cell, and "<" begin HTML.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }

func mark(yes bool) string {
	if yes {
		return "✔"
	}
	return "–"
}

// rolesDescending returns the four roles, the highest first.
func rolesDescending() []doorward.Role {
	roles := slices.Clone(doorward.Roles)
	slices.Reverse(roles)
	return roles
}

func TestGoldenPermissions(t *testing.T) {
	goldentest.Section(t, permissionsPage, "permissions", permissionTable())
	goldentest.Section(t, permissionsPage, "actions", actionTable())
	goldentest.Section(t, permissionsPage, "proofs", proofTable(t))
	goldentest.Section(t, permissionsPage, "operator", operatorTable(t))
	goldentest.Section(t, permissionsPage, "held", rolePairTable("Acts on someone who is", func(r doorward.Role) (doorward.Action, doorward.Object) {
		return doorward.UserSuspend, doorward.Object{TenantID: "tnt_own", Held: r}
	}))
	goldentest.Section(t, permissionsPage, "granted", rolePairTable("Invites as, or makes", func(r doorward.Role) (doorward.Action, doorward.Object) {
		return doorward.UserInvite, doorward.Object{TenantID: "tnt_own", Granted: r}
	}))
}

func permissionTable() string {
	rows := [][]string{{"Permission"}}
	for _, role := range rolesDescending() {
		rows[0] = append(rows[0], string(role))
	}
	for _, verb := range doorward.Verbs() {
		if !verb.Action.IsPermission() {
			continue
		}
		row := []string{code(verb.Action)}
		for _, role := range rolesDescending() {
			row = append(row, mark(slices.Contains(verb.Roles(), role)))
		}
		rows = append(rows, row)
	}
	return table(rows...)
}

// actionTable lists the permissions that actions or routes of Doorward need.
func actionTable() string {
	rows := [][]string{{"Permission", "allows the actions", "and is asked for by"}}
	for _, verb := range doorward.Verbs() {
		if !verb.Action.IsPermission() {
			continue
		}
		actions, asking := actionsAllowedBy(verb.Action), routesOf(string(verb.Action))
		if len(actions)+len(asking) > 0 {
			rows = append(rows, []string{code(verb.Action), codes(actions), strings.ReplaceAll(codes(asking), "` `", "`<br>`")})
		}
	}
	return table(rows...)
}

func actionsAllowedBy(permission doorward.Action) (actions []doorward.Action) {
	for _, verb := range doorward.Verbs() {
		if verb.Permission == permission && verb.Action != permission {
			actions = append(actions, verb.Action)
		}
	}
	return actions
}

func routesOf(guard string) (patterns []string) {
	for _, r := range documented() {
		if r.Guard.Name() == guard {
			patterns = append(patterns, pattern(r))
		}
	}
	return patterns
}

// proofs says what proof allows each ByProof action. A new action needs a line.
var proofs = map[doorward.Action]string{
	doorward.SessionOpen:      "the password of the account, and its second factor if it has one; or a passkey of the account; to switch to another tenant, the session",
	doorward.SessionRefuse:    "nothing: it is the record of a password that was wrong",
	doorward.SessionEnd:       "the session that ends, or another one of the same person",
	doorward.InvitationAccept: "the token of the invitation's mail; if the account exists, also its session or password",
	doorward.UserLeave:        "a session of the person who leaves",
	doorward.AccountEmail:     "to request it, a session of the person, proved recently; to confirm it, the code of the mail to the new address; to undo it, the code of the mail to the old address",
	doorward.AccountExport:    "a session of the person, proved recently",
	doorward.AccountErase:     "a session of the person, proved recently, and the address of the account; or the operator",
	doorward.PasswordChange:   "a session, and the password that is replaced; if the person has a second factor, also a recent proof with it",
	doorward.PasswordReset:    "the token of the reset's mail",
	doorward.PasswordForgot:   "nothing: the mail goes only to the address of the account",
	doorward.SessionStepUp:    "the session, and the second factor of its user; for a user without one, the password",
	doorward.MFAEnrol:         "a session, proved recently; for a first factor at the login, the challenge that follows the password",
	doorward.MFARemove:        "a session of the person whose factor it is, proved recently",
	doorward.MFAChallenge:     "the password of the account; to switch to another tenant, the session",
	doorward.MFARefuse:        "nothing: it is the record of a second factor that was wrong",
	doorward.MFAKeep:          "a session in which a second factor was proved",
	doorward.MFAClone:         "a passkey whose signature counter has not increased",
	doorward.MFARecover:       "the password, with a recovery code or with the code of a mail that all tenants of the person have asked for",
	doorward.SSORefuse:        "nothing: it records a refusal",
	doorward.IdentityLink:     "the word of the tenant's provider, or besides that a proof of the account",
	doorward.UserJoin:         "the word of the tenant's provider, for an address in a domain that the tenant has proved",
	doorward.SetupLinkBegin:   "the link, in a browser that is the first to begin by it",
	doorward.SSOBypass:        "the password of an OWNER's account and its second factor; or a passkey of it",
	doorward.APIKeyLeak:       "the API key, shown by the person or scanner that found it",
	doorward.APIKeyRefuse:     "nothing: it is the record of an API key that is not valid, or not valid from that address",
	doorward.AuditOpen:        "a link that `doorward audit link` has made at the terminal",
	doorward.AuditEnd:         "the cookie of the operator's page that is closed",
	doorward.UserProfile:      "a session of the person whose name it is",
	doorward.RequestRefuse:    "nothing: it is the record of a request that was refused before routing",
}

func proofTable(t *testing.T) string {
	t.Helper()
	rows := [][]string{{"Action", "Allowed by"}}
	for _, verb := range doorward.Verbs() {
		if verb.By != doorward.ByProof {
			continue
		}
		if proofs[verb.Action] == "" {
			t.Errorf("%s: say in proofs in docs_test.go what allows it", verb.Action)
		}
		rows = append(rows, []string{code(verb.Action), proofs[verb.Action]})
	}
	return table(rows...)
}

// operatorTable lists the actions of the operator, with the decisions for the operator and for an
// OWNER.
func operatorTable(t *testing.T) string {
	t.Helper()
	rows := [][]string{{"Action", "Operator", "OWNER of the tenant"}}
	for _, verb := range doorward.Verbs() {
		if verb.By == doorward.ByOperator {
			on := doorward.Object{TenantID: "tnt_own"}
			rows = append(rows, []string{
				code(verb.Action), verdict(t, doorward.OperatorAtTerminal(), verb.Action, on),
				verdict(t, member(doorward.RoleOwner, doorward.UserActive), verb.Action, on),
			})
		}
	}
	return table(rows...)
}

// rolePairTable has a row for each role of the person who acts, and a column for each role of the
// other person.
func rolePairTable(title string, actionFor func(doorward.Role) (doorward.Action, doorward.Object)) string {
	rows := [][]string{{title}}
	for _, other := range rolesDescending() {
		rows[0] = append(rows[0], string(other))
	}
	for _, own := range rolesDescending() {
		row := []string{string(own)}
		for _, other := range rolesDescending() {
			action, on := actionFor(other)
			by := member(own, doorward.UserActive)
			row = append(row, mark(decide.May(&by.Principal, &decide.Question{Action: action, On: on}).Allowed))
		}
		rows = append(rows, row)
	}
	return table(rows...)
}

func TestGoldenErrors(t *testing.T) {
	rows := [][]string{{"Code", "Status", "Title", "What it means and what to do"}}
	for _, p := range doorward.Problems() {
		rows = append(rows, []string{code(p.Code), fmt.Sprint(front.Status(p.Code)), p.Title, cell(p.Help)})
	}
	goldentest.Section(t, errorsPage, "codes", table(rows...))
}

func TestGoldenEndpoints(t *testing.T) {
	var out strings.Builder
	for _, tag := range tags() {
		fmt.Fprintf(&out, "\n## %s\n\n", tag)
		rows := [][]string{{"Endpoint", "Who", "Answers", "Does"}}
		for _, r := range documented() {
			if r.Doc.Tag == tag {
				rows = append(rows, []string{code(pattern(r)), guardCallers(r.Guard), fmt.Sprint(r.Endpoint.Status), r.Doc.Summary})
			}
		}
		out.WriteString(table(rows...))
	}
	goldentest.Section(t, endpointsPage, "endpoints", out.String())
}

// documented returns the routes that the OpenAPI document has.
func documented() []front.Route {
	all := slices.Concat(api.Routes(nil), edge.Documented(nil), authzen.Routes(nil))
	return slices.DeleteFunc(all, func(r front.Route) bool { return r.Doc.ID == "" })
}

func tags() (all []string) {
	for _, r := range documented() {
		if !slices.Contains(all, r.Doc.Tag) {
			all = append(all, r.Doc.Tag)
		}
	}
	return all
}

// guardCallers names the callers that a guard admits.
func guardCallers(g front.Guard) string {
	switch g.Name() {
	case front.Public().Name():
		return "anyone"
	case front.Optional().Name():
		return "anyone, a session counts"
	case front.SignedIn().Name():
		return "a session"
	case front.SignedInOrKey().Name():
		return "a session or an API key"
	case front.KeyOnly().Name():
		return "an API key"
	case front.Operated().Name():
		if need := g.Service(); need != "" {
			return "an operator key, a service key with " + code(need)
		}
		return "an operator key"
	}
	var admitted []string
	verb, _ := doorward.Lookup(doorward.Action(g.Name()))
	for _, role := range verb.Roles() {
		admitted = append(admitted, string(role))
	}
	if g.Service() != "" {
		admitted = append(admitted, "a service key with it")
		if across := g.AcrossTenants(); across != "" {
			admitted = append(admitted, "for all tenants one with `"+string(across)+"`")
		}
	}
	if need := g.OfOperator(); need != "" {
		admitted = append(admitted, "for all tenants an operator key, a limited one with `"+string(need)+"`")
	}
	return code(g.Name()) + ": " + strings.Join(admitted, ", ")
}
