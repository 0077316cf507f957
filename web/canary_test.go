package web_test

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/internal/trace/tracetest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
)

// tokenCanary returns a canary in the format of a token.
func tokenCanary(name string) string {
	return (strings.ReplaceAll(name, " ", "-") + "Canary" + strings.Repeat("7", 43))[:43]
}

// TestNoEndpointLeaksASecret calls every operation with several kinds of credentials, with
// secrets where they belong and where people put them by mistake. No answer, metric, trace,
// stored row or log line at any level contains a secret, but for a session's own cookie and the
// path that an error names. The same holds for the password of an unreachable mail server.
func TestNoEndpointLeaksASecret(t *testing.T) {
	t.Parallel()
	log := &logtest.Journal{}
	file := filepath.Join(t.TempDir(), "doorward.db")
	collector := tracetest.Start(t)
	withTraces := func(c *node.Config) { c.Trace = trace.Options{Collector: collector.URL, Sample: 1} }
	d := start(t, doorwardtest.Database("sqlite:"+file), doorwardtest.TrustLoopback(), withTraces, func(c *node.Config) {
		c.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	acme := d.Tenant("Acme")
	key := d.operatorKey(t)
	secrets := []string{key, strings.TrimPrefix(key, "dwo_"), password}
	requests := 0
	for _, template := range slices.Sorted(maps.Keys(d.spec.doc.Paths.Map())) {
		for method, op := range d.spec.doc.Paths.Value(template).Operations() {
			c := &canaries{name: method + template}
			path := parameterInPath.ReplaceAllString(template, c.token("path")) + "?token=" + c.token("query") + "&q=" + c.token("query") + "&cursor=" + c.token("query")
			body := c.body(op)
			session := acme.Owner.Login()
			for _, credential := range []opt{
				as(session), as(c.token("cookie")), bearer("dwo_" + c.token("key")), bearer(c.token("key")), bearer(key),
				cookie("JSESSIONID=" + c.token("cookie") + "; doorward_device=" + c.token("device") + "; other=" + c.token("other")),
				func(r *http.Request) { r.SetBasicAuth("ann", c.token("basic")) },
			} {
				a := d.send(t, method+" "+path, body, credential, with("X-Forwarded-For", c.token("for")), with("Referer", "https://x.example/#"+c.token("referer")),
					with("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), with("Tracestate", "x="+c.token("state")), with("Baggage", "x="+c.token("baggage")))
				requests++
				for _, secret := range append(c.all, session, key) {
					if answerRepeats(a, secret) && !mayRepeat(a, secret, session) {
						t.Errorf("%s repeats %q: %d %s %v", a.route, secret, a.status, a.body, a.header)
					}
				}
			}
			secrets = append(append(secrets, session), c.all...)
		}
	}
	if requests < 7*30 {
		t.Errorf("only %d requests: the document may be misread", requests)
	}
	metrics, rows := d.metrics(t), databaseContent(t, file)
	d.Stop() // flushes the last spans
	requireAbsent(t, secrets, map[string]string{"the log": log.String(), "the metrics": metrics, "the database": rows, "the traces": collector.Raw()})
	if len(collector.Named("POST /api/v2/auth/login")) == 0 || len(collector.Named("mail.send")) == 0 || !strings.Contains(metrics, `doorward_trace_spans_total{result="lost"} 0`) {
		t.Error("the traces are incomplete: they have no login or no mail, or spans were lost")
	}
	unsent := start(t, withTraces, func(c *node.Config) {
		c.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}, doorwardtest.Mail("smtp://platform:"+canary("smtp")+"@localhost:1"))
	unsent.queueFailingMail(t, log)
	metrics = unsent.metrics(t)
	unsent.Stop()
	requireAbsent(t, []string{canary("smtp")}, map[string]string{"the log": log.String(), "the metrics": metrics, "the traces": collector.Raw()})
}

var parameterInPath = regexp.MustCompile(`\{\w+\}`)

// mayRepeat reports whether the secret is the session's token, and a cookie repeats it but not
// the body.
func mayRepeat(a answer, secret, session string) bool {
	return secret == session && !strings.Contains(string(a.body), secret) && strings.Contains(strings.Join(a.cookies(), "\n"), secret)
}

// answerRepeats reports whether headers or body contain the secret. One in the path doesn't
// count, since an error names its path.
func answerRepeats(a answer, secret string) bool {
	if strings.HasPrefix(secret, "path") {
		return false
	}
	var text bytes.Buffer
	_ = a.header.Write(&text) // a buffer never fails
	return strings.Contains(text.String()+string(a.body), secret)
}

// canaries makes secrets for one operation and remembers them.
type canaries struct {
	name string
	all  []string
}

func (c *canaries) token(kind string) string {
	secret := tokenCanary(kind + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, c.name))
	if !slices.Contains(c.all, secret) {
		c.all = append(c.all, secret)
	}
	return secret
}

// body returns a body for the operation, with canaries in the members for secrets.
func (c *canaries) body(op *openapi3.Operation) any {
	if op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content.Get("application/json")
	if media == nil {
		return nil
	}
	return c.value("", media.Schema.Value)
}

var holdsSecret = regexp.MustCompile(`(?i)password|token|credential|code`)

func (c *canaries) value(name string, s *openapi3.Schema) any {
	switch {
	case s.Type.Is("array"):
		return []any{c.value(name, s.Items.Value)}
	case s.Type.Is("object"):
		object := m{}
		for member, of := range s.Properties {
			object[member] = c.value(member, of.Value)
		}
		return object
	case s.Type.Is("integer"):
		return 1
	case s.Type.Is("boolean"):
		return true
	case holdsSecret.MatchString(name):
		return c.token("body-" + name)
	case strings.Contains(strings.ToLower(name), "email"):
		return "nobody@acme.example"
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	return "x"
}

// requireAbsent requires that no text contains a secret, and that each has at least 1000 bytes.
func requireAbsent(t *testing.T, secrets []string, in map[string]string) {
	t.Helper()
	for where, text := range in {
		if len(text) < 1000 {
			t.Errorf("%s is too short to show anything: %q", where, text)
		}
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s has %q in %q", where, secret, text[max(0, at-300):at+len(secret)])
			}
		}
	}
}

func (s *server) metrics(t *testing.T) string {
	t.Helper()
	res, err := s.client.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d %v", res.StatusCode, err)
	}
	return string(text)
}

// queueFailingMail queues mails and returns when a failed delivery attempt is logged.
func (s *server) queueFailingMail(t *testing.T, log *logtest.Journal) {
	t.Helper()
	s.send(t, "POST /api/v2/auth/forgot-password", m{"email": "nobody@acme.example"}).ok(http.StatusAccepted)
	if _, err := s.Node.App.Tenants.Create(t.Context(), doorward.OperatorAtTerminal(), tenant.Draft{Name: "Globex", OwnerEmail: "ann@globex.example"}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "a failed delivery in the log", func() bool { return strings.Contains(log.String(), "mail not sent yet") })
}
