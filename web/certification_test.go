package web_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

const (
	certificationModel = "../examples/authzen/certification.yaml"
	pdp                = "https://pdp.example"
)

// certified is a server with the model of the certification scenario and nothing else. The
// numbers in the tests are those of the scenario's sections.
type certified struct{ evaluator }

func onCertified(t *testing.T, test func(*testing.T, certified)) {
	t.Helper()
	onSQLite(t, func(t *testing.T, d *server) {
		text, err := os.ReadFile(certificationModel)
		if err != nil {
			t.Fatal(err)
		}
		d.ApplyModel(string(text))
		test(t, certified{newEvaluator(t, d)})
	}, doorwardtest.BaseURL(pdp))
}

var (
	userAlice, userBob           = entity("user", "alice"), entity("user", "bob")
	record1, record2             = entity("record", "record-1"), entity("record", "record-2")
	activeRecord, archivedRecord = withProperties(record1, m{"status": "active"}), withProperties(record2, m{"status": "archived"})
	adminBob                     = withProperties(userBob, m{"role": "admin"})
	anyUser                      = m{"type": "user"}
	anyRecord                    = m{"type": "record"}
	atHome                       = m{"time": "2025-06-27T18:03-07:00", "ip": "192.168.1.1"}
)

// withProperties returns the entity with properties.
func withProperties(of, properties m) m { return withMember(of, "properties", properties) }

// withMember returns a copy with one more, or another, member.
func withMember(of m, name string, value any) m {
	c := m{name: value}
	for k, v := range of {
		if k != name {
			c[k] = v
		}
	}
	return c
}

func deletion(soft bool) m { return m{"name": "delete", "properties": m{"soft": soft}} }

// decides sends an evaluation and checks the form and the value of the decision.
func (c certified) decides(t *testing.T, section string, body any, want bool) {
	t.Helper()
	a := c.send(t, evaluationPath, body, c.key).ok(http.StatusOK)
	if got, isBool := a.at("decision").(bool); !isBool || got != want || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		t.Errorf("%s: %s, want %v", section, a.body, want)
	}
}

func TestCertificationBasic(t *testing.T) {
	onCertified(t, func(t *testing.T, c certified) {
		read := question(userAlice, "read", record1)
		c.decides(t, "2.2.1", read, true)
		c.decides(t, "1.4 rule 2", question(userAlice, "write", record1), true)
		c.decides(t, "1.4 rule 3", question(userBob, "read", record1), true)
		c.decides(t, "2.2.2", question(userBob, "write", record1), false)
		c.decides(t, "2.2.3", withMember(read, "context", atHome), true)
		c.decides(t, "2.2.4", question(userAlice, "write", archivedRecord), false)
		c.decides(t, "2.2.4, for any record", question(userAlice, "write", withProperties(record1, m{"status": "archived"})), false)
		c.decides(t, "2.2.5", question(adminBob, "write", archivedRecord), true)
		c.decides(t, "2.2.5, for any user", question(withProperties(userAlice, m{"role": "admin"}), "write", archivedRecord), true)
		c.decides(t, "2.2.6", withMember(question(userAlice, "", record1), "action", deletion(true)), true)
		c.decides(t, "2.2.7", withMember(question(userAlice, "", record1), "action", deletion(false)), false)
		c.decides(t, "2.2.8", m{
			"subject":  withProperties(userAlice, m{"department": "Sales", "role": "manager"}),
			"action":   m{"name": "read", "properties": m{"method": "GET"}},
			"resource": withProperties(record1, m{"status": "active", "owner": "bob"}),
		}, true)
		c.decides(t, "2.2.9", withMember(withMember(read, "foo", "bar"), "futureField", m{"nested": true}), true)
		for range 5 {
			c.decides(t, "2.6", read, true)
			c.decides(t, "2.6", question(userBob, "write", record1), false)
		}
	})
}

func TestCertificationErrors(t *testing.T) {
	onCertified(t, func(t *testing.T, c certified) {
		read := question(userAlice, "read", record1)
		for section, body := range map[string]any{
			"2.4.1 subject": withoutMember(read, "subject", ""), "2.4.1 action": withoutMember(read, "action", ""), "2.4.1 resource": withoutMember(read, "resource", ""),
			"2.4.2 subject.type": withoutMember(read, "subject", "type"), "2.4.2 subject.id": withoutMember(read, "subject", "id"), "2.4.2 action.name": withMember(read, "action", m{}),
			"2.4.2 resource.type": withoutMember(read, "resource", "type"), "2.4.2 resource.id": withoutMember(read, "resource", "id"),
			"2.4.4": "{", "2.4.5": "", "2.4.6 subject": withMember(read, "subject", "alice"), "2.4.6 action.name": withMember(read, "action", m{"name": 123}),
		} {
			if a := c.send(t, evaluationPath, body, c.key); a.status != http.StatusBadRequest {
				t.Errorf("%s: %d", section, a.status)
			}
		}
		if a := c.send(t, evaluationPath, read, c.key, without("Content-Type"), with("Content-Type", "text/plain")); a.status != http.StatusBadRequest {
			t.Errorf("2.4.3: %d", a.status)
		}
		if a := c.send(t, evaluationPath, read, c.key, with("X-Request-ID", "bfe9eb29-ab87-4ca3-be83-a1d5d8305716")); a.header.Get("X-Request-ID") != "bfe9eb29-ab87-4ca3-be83-a1d5d8305716" {
			t.Errorf("2.5.1: %v", a.header)
		}
		c.decides(t, "2.5.2", read, true)
	})
}

// decideAll sends evaluations and checks the number and form of the decisions, and each value
// unless nil is wanted.
func (c certified) decideAll(t *testing.T, section string, body m, want ...any) {
	t.Helper()
	a := c.send(t, evaluationsPath, body, c.key).ok(http.StatusOK)
	all, _ := a.at("evaluations").([]any)
	if len(all) != len(want) {
		t.Errorf("%s: %s, want %d evaluations", section, a.body, len(want))
		return
	}
	for i, one := range all {
		got, isBool := one.(m)["decision"].(bool)
		if !isBool || want[i] != nil && got != want[i] {
			t.Errorf("%s: evaluation %d is %v, want %v", section, i, one, want[i])
		}
	}
}

func TestCertificationBatch(t *testing.T) {
	onCertified(t, func(t *testing.T, c certified) {
		read, write := m{"name": "read"}, m{"name": "write"}
		c.decideAll(t, "3.2.1", m{"subject": userAlice, "action": read, "evaluations": []m{{"resource": record1}, {"resource": record2}}}, true, nil)
		c.decideAll(t, "3.2.2", m{"subject": userBob, "resource": record1, "evaluations": []m{{"action": read}, {"action": write}}}, true, false)
		c.decideAll(t, "3.2.3", m{"subject": userAlice, "action": write, "evaluations": []m{{"resource": activeRecord}, {"resource": archivedRecord}}}, true, false)
		c.decideAll(t, "3.2.4", m{"action": write, "resource": archivedRecord, "evaluations": []m{{"subject": userAlice}, {"subject": adminBob}}}, false, true)
		c.decideAll(t, "3.2.5", m{"evaluations": []m{question(userAlice, "read", record1), question(userBob, "write", record1)}}, true, false)
		c.decideAll(t, "3.2.6", m{"subject": userAlice, "action": read, "context": m{"time": atHome["time"]}, "evaluations": []m{
			{"resource": record1}, {"resource": record2, "context": m{"time": "2025-06-27T19:00-07:00", "source": "batch-override"}},
		}}, nil, nil)
		c.decideAll(t, "3.2.7", m{"subject": userAlice, "action": write, "resource": activeRecord, "evaluations": []m{{}, {"resource": archivedRecord}}}, true, false)
		c.decideAll(t, "3.4.1", m{"subject": userAlice, "action": read, "options": m{"evaluations_semantic": "execute_all"}, "evaluations": []m{{"resource": record1}, {}}}, true, false)
		single := question(userAlice, "read", record1)
		c.send(t, evaluationsPath, single, c.key).ok(http.StatusOK).is("decision", true)
		c.send(t, evaluationsPath, withMember(single, "evaluations", []m{}), c.key).ok(http.StatusOK).is("decision", true)
	})
}

// finds sends a search and checks the results and their type.
func (c certified) finds(t *testing.T, section, kind string, body m, want ...string) {
	t.Helper()
	a := c.send(t, searchPath+kind, body, c.key).ok(http.StatusOK)
	results, isList := a.at("results").([]any)
	var got []string
	for _, r := range results {
		found := r.(m)
		if kind == "action" {
			got = append(got, found["name"].(string))
			continue
		}
		got = append(got, found["id"].(string))
		if sought := body[kind].(m)["type"]; found["type"] != sought {
			t.Errorf("%s: found %v among those of the type %v", section, found, sought)
		}
	}
	if !isList || !slices.Equal(got, want) {
		t.Errorf("%s: found %s, want %v", section, a.body, want)
	}
}

func TestCertificationSearch(t *testing.T) {
	onCertified(t, func(t *testing.T, c certified) {
		subjects := question(anyUser, "read", record1)
		c.finds(t, "4.2.1", "subject", subjects, "alice", "bob")
		c.finds(t, "4.2.2", "subject", withMember(subjects, "context", atHome), "alice", "bob")
		c.finds(t, "4.2.3", "subject", question(userAlice, "read", record1), "alice", "bob")
		c.finds(t, "4.2.4", "subject", question(anyUser, "write", archivedRecord), "bob")

		resources := question(userAlice, "read", anyRecord)
		c.finds(t, "4.3.1", "resource", resources, "record-1", "record-2")
		c.finds(t, "4.3.2", "resource", withMember(resources, "context", atHome), "record-1", "record-2")
		c.finds(t, "4.3.3", "resource", question(userAlice, "read", record1), "record-1", "record-2")
		c.finds(t, "4.3.4", "resource", question(adminBob, "write", anyRecord), "record-2")

		actions := m{"subject": userAlice, "resource": record1}
		c.finds(t, "4.4.1", "action", actions, "read", "write")
		c.finds(t, "4.4.2", "action", withMember(actions, "context", atHome), "read", "write")
		c.finds(t, "4.4.3", "action", m{"subject": adminBob, "resource": archivedRecord}, "read", "write")

		page := c.send(t, searchPath+"subject", withMember(subjects, "page", m{"limit": 1}), c.key).ok(http.StatusOK)
		next, isText := page.at("page.next_token").(string)
		if results, _ := page.at("results").([]any); len(results) != 1 || !isText || next == "" {
			t.Errorf("4.5.1: %s", page.body)
		}
		last := c.send(t, searchPath+"subject", withMember(subjects, "page", m{"token": next}), c.key).ok(http.StatusOK)
		if results, _ := last.at("results").([]any); len(results) != 1 || last.at("page.next_token") != "" {
			t.Errorf("4.5.2: %s", last.body)
		}
	})
}

func TestCertificationOfUnknownEntities(t *testing.T) {
	onCertified(t, func(t *testing.T, c certified) {
		nobody, nothing := entity("user", "nonexistent-user"), entity("record", "nonexistent-record")
		c.finds(t, "4.6.1", "action", m{"subject": nobody, "resource": record1})
		c.finds(t, "4.6.1", "action", m{"subject": userAlice, "resource": nothing})
		c.finds(t, "4.6.1", "resource", question(nobody, "read", anyRecord))
		c.finds(t, "4.6.1", "subject", question(anyUser, "read", nothing))
		ship := entity("spaceship", "1")
		c.finds(t, "4.6.2", "subject", question(m{"type": "spaceship"}, "read", record1))
		c.finds(t, "4.6.2", "subject", question(anyUser, "read", ship))
		c.finds(t, "4.6.2", "resource", question(userAlice, "read", m{"type": "spaceship"}))
		c.finds(t, "4.6.2", "resource", question(ship, "read", anyRecord))
		c.finds(t, "4.6.2", "action", m{"subject": ship, "resource": record1})
		c.finds(t, "4.6.2", "action", m{"subject": userAlice, "resource": ship})

		for section, body := range map[string]m{
			"subject 4.7.1": {"subject": anyUser, "resource": record1}, "resource 4.7.1": {"action": m{"name": "read"}, "resource": anyRecord}, "action 4.7.1": {"subject": userAlice},
			"subject 4.7.2": question(anyUser, "read", anyRecord), "resource 4.7.2": question(anyUser, "read", anyRecord), "action 4.7.2": {"subject": anyUser, "resource": record1},
		} {
			kind, _, _ := strings.Cut(section, " ")
			if a := c.send(t, searchPath+kind, body, c.key); a.status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", section, a.status, a.body)
			}
		}
	})
}

func TestCertificationDiscovery(t *testing.T) {
	onCertified(t, func(t *testing.T, c certified) {
		a := c.send(t, metadataPath, nil).ok(http.StatusOK).is("policy_decision_point", pdp)
		for _, name := range []string{"access_evaluation_endpoint", "access_evaluations_endpoint", "search_subject_endpoint", "search_resource_endpoint", "search_action_endpoint"} {
			if address := a.text(name); !strings.HasPrefix(address, pdp+"/access/v1/") {
				t.Errorf("6.5: %s is %q", name, address)
			}
		}
	})
}
