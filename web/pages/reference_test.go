package pages_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/net/html"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

// document reads the server's OpenAPI description.
func document(t *testing.T, server *doorwardtest.Server) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(get(t, server.URL+"/openapi.json").body))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// reference returns the parts of all pages of the reference, by id.
func reference(t *testing.T, server *doorwardtest.Server) map[string]*html.Node {
	t.Helper()
	parts := map[string]*html.Node{}
	for _, at := range groups {
		for n := range elements(page(t, server.URL+at), "section") {
			parts[attr(n, "id")] = n
		}
	}
	return parts
}

// forEachOperation calls fn for each operation, with its part of the reference.
func forEachOperation(t *testing.T, server *doorwardtest.Server, fn func(method, path string, op *openapi3.Operation, part *html.Node)) {
	t.Helper()
	docs := reference(t, server)
	for path, item := range document(t, server).Paths.Map() {
		for method, op := range item.Operations() {
			part := docs[op.OperationID]
			if part == nil {
				t.Errorf("the reference has no %s", op.OperationID)
				continue
			}
			fn(method, path, op, part)
		}
	}
}

func TestReferenceSaysWhatTheDocumentSays(t *testing.T) {
	forEachOperation(t, start(t), func(method, path string, op *openapi3.Operation, part *html.Node) {
		want := []string{method, path, op.Summary, strings.ReplaceAll(op.Description, "`", "")}
		if op.RequestBody != nil {
			for mediaType, body := range op.RequestBody.Value.Content {
				if mediaType != "application/json" {
					want = append(want, mediaType)
				}
				for name, member := range body.Schema.Value.Properties {
					want = append(want, name, member.Value.Description)
				}
			}
		}
		for _, p := range op.Parameters {
			want = append(want, p.Value.Name)
		}
		for status, res := range op.Responses.Map() {
			want = append(want, status)
			want = append(want, codes.FindAllString(*res.Value.Description, -1)...)
		}
		got := text(part)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("the reference of %s does not say %q", op.OperationID, w)
			}
		}
	})
}

var codes = regexp.MustCompile(`[a-z]+_[a-z_]+|forbidden|unauthenticated|unavailable`)

func TestReferenceLinksErrorsByStatus(t *testing.T) {
	forEachOperation(t, start(t), func(_, _ string, op *openapi3.Operation, part *html.Node) {
		linked := map[string]bool{}
		for row := range elements(find(part, "dl"), "div") {
			status, _, _ := strings.Cut(text(find(row, "dt")), " ")
			for a := range elements(row, "a") {
				linked[status+" "+attr(a, "href")] = true
			}
		}
		for status, res := range op.Responses.Map() {
			for _, code := range codes.FindAllString(*res.Value.Description, -1) {
				if !linked[status+" "+front.ProblemPath(doorward.Code(code))] {
					t.Errorf("%s: %s %s is not linked", op.OperationID, status, code)
				}
			}
		}
	})
}

func TestReferenceMarksRequiredMembers(t *testing.T) {
	notes := map[string]map[string]string{}
	forEachOperation(t, start(t), func(_, _ string, op *openapi3.Operation, part *html.Node) {
		notes[op.OperationID] = map[string]string{}
		for p := range elements(part, "p") {
			if attr(p, "class") == "member" {
				name, note := text(find(p, "code")), strings.TrimSpace(text(p.LastChild))
				notes[op.OperationID][name] = note
			}
		}
	})
	for _, want := range []struct{ id, name, note string }{
		{"login", "password", "required"},
		{"login", "tenantId", "string"},
		{"leaveTenant", "tenantId", "required"},
		{"login", "token", "string"},
		{"invite", "acceptedAt", "optional"},
	} {
		if got := notes[want.id][want.name]; got != want.note {
			t.Errorf("%s: %s ends with %q, want %q", want.id, want.name, got, want.note)
		}
	}
}

func TestReferenceSaysWhoMay(t *testing.T) {
	docs := reference(t, start(t))
	for id, want := range map[string]string{
		"invite":           "Roles with user.invite: OWNER, ADMIN",
		"login":            "Who may Anyone\n",
		"acceptInvitation": "Anyone, with or without a session",
		"session":          "Everyone who is signed in",
		"introspect":       "The operator, with an operator key",
		"getOwnApiKey":     "An API key, whatever it may do",
	} {
		if got := text(docs[id]); !strings.Contains(got, want) {
			t.Errorf("the reference of %s does not say that it is for %q", id, want)
		}
	}
}

func TestAnswersInTheReferenceAreValid(t *testing.T) {
	server := start(t)
	forEachOperation(t, server, func(_, _ string, op *openapi3.Operation, part *html.Node) {
		for status, res := range op.Responses.Map() {
			if media := res.Value.Content["application/json"]; media != nil && status[0] == '2' {
				requireValid(t, op.OperationID, media.Schema.Value, example(part, op.OperationID+"-body"))
			}
		}
	})
	docs := reference(t, server)
	problem := document(t, server).Components.Schemas["Problem"].Value
	requireValid(t, "the object", problem, example(docs["object-problem"], "object-problem-body"))
	for _, about := range doorward.Problems() {
		requireValid(t, string(about.Code), problem, example(page(t, server.URL+front.ProblemPath(about.Code)), "example"))
	}
}

func requireValid(t *testing.T, name string, schema *openapi3.Schema, example string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(example), &v); err != nil {
		t.Errorf("%s: %v in %s", name, err, example)
		return
	}
	if err := schema.VisitJSON(v); err != nil {
		t.Errorf("%s: the example doesn't match its schema: %v", name, err)
	}
	if strings.Contains(example, `"…"`) {
		t.Errorf("%s: the example lacks a value: add it to the document or to defaultExamples: %s", name, example)
	}
}

// example returns the text of the block that the caption labels.
func example(n *html.Node, caption string) string {
	for pre := range elements(n, "pre") {
		if slices.Contains(strings.Fields(attr(pre, "aria-labelledby")), caption) {
			return text(pre)
		}
	}
	return ""
}

// The shell runs the examples unchanged; the server must understand each.
func TestExamplesWorkUnchanged(t *testing.T) {
	// With a proxy, names of webhooks are not resolved: there may be no resolver here.
	noResolver := func(c *node.Config) { c.Webhooks.Proxy = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} }
	server := start(t, doorwardtest.BaseURL("https://auth.example/platform"), doorwardtest.Audiences("https://messages.example.com"), noResolver)
	acme := server.Tenant("Acme")
	acme.Join("ann@acme.example", "USER")
	key, err := server.Node.App.Keys.CreateOperator(t.Context(), doorward.OperatorAtTerminal(), "test")
	if err != nil {
		t.Fatal(err)
	}
	_, body := acme.Owner.Post("/api/v2/api-keys", map[string]any{"name": "Shop", "permissions": []string{"message.send"}})
	var issued struct{ Key string }
	if err := json.Unmarshal(body, &issued); err != nil {
		t.Fatal(err)
	}
	forEachOperation(t, server, func(method, path string, op *openapi3.Operation, part *html.Node) {
		req := parseCurl(t, example(part, op.OperationID+"-curl"), "TOKEN="+acme.Owner.Login(), "KEY="+key, "API_KEY="+issued.Key)
		if req.Method != method || !strings.HasPrefix(req.URL.String(), "https://auth.example/platform"+path) && !strings.HasPrefix(req.URL.String(), "https://auth.example/platform/api/v2/") {
			t.Errorf("%s: the example calls %s %s", op.OperationID, req.Method, req.URL)
		}
		req.URL.Scheme, req.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var body struct{ Code string }
		_ = json.NewDecoder(res.Body).Decode(&body) // 204 has none
		if want, ok := expectedCodes[op.OperationID]; res.StatusCode >= 300 && (!ok || body.Code != want) {
			t.Errorf("%s: the example is answered %d %s", op.OperationID, res.StatusCode, body.Code)
		}
	})
}

// expectedCodes are the problem codes that answer examples whose codes, ids or passwords
// exist only in the reference.
var expectedCodes = map[string]string{
	"applyModel":  "precondition_failed",
	"startSignOn": "not_found", "finishSignOn": "not_found", "testConnection": "not_found",
	"revokeByProvider": "not_found", "logOutByProvider": "not_found", "receiveSAML": "not_found",
	"explainAccess": "validation_failed", // has only the action, since there are three ways to name the caller
	"putSsoPolicy":  "precondition_failed", "confirmSsoPolicy": "nothing_to_confirm",
	"putPolicy": "precondition_failed", "confirmPolicy": "not_found", "restorePolicyVersion": "not_found",
	"acceptInvitation": "invitation_not_found", "completeRegistration": "invitation_not_found", "resetPassword": "reset_not_found",
	"enrolTOTP": "challenge_over", "confirmTOTP": "not_found", "renameFactor": "not_found", "removeFactor": "not_found", "makeRecoveryCodes": "not_found",
	"resetFactors": "reset_not_found", "keepFactors": "step_up_required", "resetUserFactors": "not_found",
	"loginSecond": "validation_failed", "acceptInvitationSecond": "validation_failed", "finishStepUp": "validation_failed", // the examples have two answers, and only one is accepted
	"confirmEmail": "email_change_not_found", "undoEmail": "email_change_not_found", "eraseAccount": "validation_failed",
	"invite": "already_member", "changePassword": "validation_failed", "restoreTenant": "tenant_not_closing", "closeTenant": "validation_failed",
	"setTenantLogo": "logo_refused", // there is no file
	"leaveTenant":   "not_found", "switchTenant": "not_found", "endSession": "not_found", "setTenantStatus": "not_found", "getTenantById": "not_found",
	"getUser": "not_found", "editUser": "not_found", "removeUser": "not_found", "signOutUser": "not_found",
	"getApiKey": "not_found", "editApiKey": "not_found", "revokeApiKey": "not_found", "rotateApiKey": "not_found", "endPreviousSecret": "not_found",
	"reportKey": "validation_failed", // a complete key would alarm secret scanners
	"getRole":   "not_found", "editRole": "not_found", "deleteRole": "not_found",
	"bulkUsers":        "validation_failed", // has none of the three changes
	"listUserSessions": "not_found", "endUserSession": "not_found",
	"beginPasskey": "challenge_over", "finishPasskey": "challenge_over", "finishPasskeyLogin": "challenge_over",
	"getWebhook": "not_found", "editWebhook": "not_found", "deleteWebhook": "not_found", "rotateWebhookSecret": "not_found", "testWebhook": "not_found",
	"listWebhookDeliveries": "not_found", "retryWebhookDelivery": "not_found", "replayWebhook": "not_found",
	"createConnection": "validation_failed", // nobody answers at the issuer of the example
	"getConnection":    "not_found", "editConnection": "not_found", "deleteConnection": "not_found", "dropPendingConnection": "not_found", "switchConnection": "not_found", "refreshConnection": "not_found", "connectionMetadata": "not_found",
	"addClientSecret": "not_found", "deleteClientSecret": "not_found", "addSCIMSecret": "not_found", "deleteSCIMSecret": "not_found", "listAttempts": "not_found", "listDirectoryRuns": "not_found", "getDirectoryRun": "not_found", "undoDirectoryRun": "not_found", "getConnectionTest": "not_found", "listIdentities": "not_found",
	"makeSetupLink": "not_found", "endSetupLink": "not_found",
	"unlinkIdentity": "not_found", "connectionKeys": "not_found",
	"getDomain": "not_found", "editDomain": "not_found", "verifyDomain": "not_found", "deleteDomain": "not_found",
	"getInvitation": "not_found", "resendInvitation": "not_found", "revokeInvitation": "not_found",
}

// parseCurl returns the request that the command line sends.
func parseCurl(t *testing.T, command string, env ...string) *http.Request {
	t.Helper()
	sh := exec.CommandContext(t.Context(), "sh", "-c", `curl() { printf '%s\0' "$@"; }; `+command)
	sh.Env = env
	out, err := sh.Output()
	if err != nil {
		t.Fatalf("%v in %s", err, command)
	}
	args := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	method, address, body, header := "", "", "", http.Header{}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-X":
			i++
			method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		case "-b":
			i++
			header.Set("Cookie", args[i])
		case "-d", "--data-binary":
			i++
			method, body = cmp.Or(method, http.MethodPost), args[i]
		default:
			address = args[i]
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), cmp.Or(method, http.MethodGet), address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	return req
}

func TestFirstStepsAreThere(t *testing.T) {
	server := start(t)
	for _, path := range []string{"/", "/docs/api"} {
		var got []string
		for a := range elements(find(page(t, server.URL+path), "ol"), "a") {
			got = append(got, attr(a, "href"))
		}
		want := []string{"/docs/api/invitations#invite", "/docs/api/invitations#completeRegistration", "/docs/api/sessions#login", "/docs/api/sessions#session", "/docs/api/sessions#logout"}
		if !slices.Equal(got, want) {
			t.Errorf("the steps on %s are %q, want %q", path, got, want)
		}
	}
}
