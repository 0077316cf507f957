package web_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
)

const domainsPath = "/api/v2/domains"

// publish sets the record of the domain that the answer shows.
func (s *server) publish(a answer) {
	s.dns.TXT(a.text("record.name"), a.text("record.value"))
}

// A tenant adds a domain, proves it, gives it to a connection and deletes it.
func TestDomains(t *testing.T) {
	onBothRaw(t, func(t *testing.T, d *server, db *sql.DB) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		owner, other := as(acme.Owner.Token()), as(zeta.Owner.Token())
		a := d.send(t, "POST "+domainsPath, m{"domain": "BÜCHER.example"}, owner).ok(http.StatusCreated)
		a.members("", "id", "domain", "status", "record", "createdAt").is("domain", "xn--bcher-kva.example").is("status", "pending")
		a.is("record.type", "TXT").is("record.name", "_doorward.xn--bcher-kva.example")
		if !strings.HasPrefix(a.text("record.value"), "doorward-verification=") {
			t.Errorf("the record is %q", a.text("record.value"))
		}
		path := domainsPath + "/" + a.text("id")
		d.send(t, "POST "+domainsPath, m{"domain": "bücher.example"}, owner).fails(http.StatusConflict, "domain_exists")
		d.send(t, "POST "+domainsPath, m{"domain": "gmail.com"}, owner).invalid("/domain", "public_domain")
		d.send(t, "POST "+domainsPath, m{"domain": "https://acme.example"}, owner).invalid("/domain", "invalid")
		d.send(t, "POST "+domainsPath, m{"domain": ""}, owner).invalid("/domain", "required")
		theirs := d.send(t, "POST "+domainsPath, m{"domain": "bücher.example"}, other).ok(http.StatusCreated)

		d.dns.TXT(a.text("record.name"), "doorward-verification=other", "v=spf1 -all")
		refused := d.send(t, "POST "+path+"/verify", nil, owner).fails(http.StatusConflict, "domain_not_proved")
		if seen := fmt.Sprint(refused.at("seen")); seen != "[doorward-verification=other]" {
			t.Errorf("seen is %s", seen)
		}
		d.dns.Fail(a.text("record.name"), true)
		if wait := d.send(t, "POST "+path+"/verify", nil, owner).fails(http.StatusServiceUnavailable, "provider_unavailable").retryAfter(); wait < time.Second {
			t.Errorf("it can be repeated after %v", wait)
		}
		d.dns.Fail(a.text("record.name"), false)
		d.publish(a)
		d.send(t, "POST "+path+"/verify", nil, owner).ok(http.StatusOK).is("status", "verified").members("", "id", "domain", "status", "record", "createdAt", "verifiedAt", "checkedAt")
		d.publish(theirs)
		d.send(t, "POST "+domainsPath+"/"+theirs.text("id")+"/verify", nil, other).fails(http.StatusConflict, "domain_taken")

		connections := []string{doorward.NewID(doorward.PrefixConnection), doorward.NewID(doorward.PrefixConnection)}
		for _, id := range connections {
			if _, err := db.ExecContext(t.Context(), `INSERT INTO connections (id, tenant_id, type, name, product, status, created_at, jit, jit_role)
VALUES ($1, $2, 'oidc', 'Okta', 'okta', 'draft', 0, 'off', 'USER')`, id, acme.ID); err != nil {
				t.Fatal(err)
			}
		}
		d.send(t, "PATCH "+path, m{"connectionId": "con_none"}, owner).invalid("/connectionId", "invalid")
		d.send(t, "PATCH "+path, m{}, owner).invalid("/connectionId", "required")
		before := d.send(t, "GET "+path, nil, owner).ok(http.StatusOK).header.Get("ETag")
		d.send(t, "PATCH "+path, m{"connectionId": connections[0]}, owner, with("If-Match", before)).ok(http.StatusOK).is("connectionId", connections[0])
		d.send(t, "PATCH "+path, m{"connectionId": ""}, owner, with("If-Match", before)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.send(t, "PATCH "+path, m{"connectionId": connections[1]}, owner).fails(http.StatusConflict, "domain_in_use")
		d.send(t, "PATCH "+path, m{"connectionId": ""}, owner).ok(http.StatusOK).members("", "id", "domain", "status", "record", "createdAt", "verifiedAt", "checkedAt")

		d.send(t, "GET "+path, nil, other).fails(http.StatusNotFound, "not_found")
		d.send(t, "PATCH "+path, m{"connectionId": ""}, other).fails(http.StatusNotFound, "not_found")
		d.send(t, "POST "+path+"/verify", nil, other).fails(http.StatusNotFound, "not_found")
		d.send(t, "DELETE "+path, nil, other).fails(http.StatusNotFound, "not_found")
		items := d.send(t, "GET "+domainsPath, nil, owner).ok(http.StatusOK).is("total", 1.0).at("items").([]any)
		if len(items) != 1 || items[0].(m)["domain"] != "xn--bcher-kva.example" {
			t.Errorf("the list is %v", items)
		}
		d.send(t, "DELETE "+path, nil, owner, with("If-Match", `"x"`)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.send(t, "DELETE "+path, nil, owner).ok(http.StatusNoContent)
		d.send(t, "DELETE "+path, nil, owner).fails(http.StatusNotFound, "not_found")
		d.send(t, "POST "+domainsPath+"/"+theirs.text("id")+"/verify", nil, other).ok(http.StatusOK).is("status", "verified")

		more := d.send(t, "POST "+domainsPath, m{"domain": "more.example"}, owner).ok(http.StatusCreated)
		d.publish(more)
		d.setQuotas(t, acme.ID, m{"eventsPerDay": 0})
		path = domainsPath + "/" + more.text("id")
		d.send(t, "POST "+path+"/verify", nil, owner).fails(http.StatusConflict, "quota_exceeded")
		d.send(t, "PATCH "+path, m{"connectionId": connections[0]}, owner).fails(http.StatusConflict, "quota_exceeded")
		d.send(t, "GET "+path, nil, owner).ok(http.StatusOK).is("status", "pending")
	})
}

// Domains have limits: how many a tenant has, how many it verifies a minute, and how many events it records.
func TestLimitsOfDomains(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		first := d.send(t, "POST "+domainsPath, m{"domain": "acme.example"}, owner).ok(http.StatusCreated)
		path := domainsPath + "/" + first.text("id")
		for range 120 {
			d.send(t, "POST "+path+"/verify", nil, owner).fails(http.StatusConflict, "domain_not_proved")
		}
		if wait := d.send(t, "POST "+path+"/verify", nil, owner).fails(http.StatusTooManyRequests, "too_many_attempts").retryAfter(); wait <= 0 || wait > time.Minute {
			t.Errorf("it can be repeated after %v", wait)
		}
		for i := range doorward.DomainsMax - 1 {
			d.send(t, "POST "+domainsPath, m{"domain": fmt.Sprintf("n%d.example", i)}, owner).ok(http.StatusCreated)
		}
		d.send(t, "POST "+domainsPath, m{"domain": "more.example"}, owner).fails(http.StatusConflict, "too_many_domains")
		d.send(t, "DELETE "+path, nil, owner).ok(http.StatusNoContent)
		d.setQuotas(t, acme.ID, m{"eventsPerDay": 0})
		d.send(t, "POST "+domainsPath, m{"domain": "more.example"}, owner).fails(http.StatusConflict, "quota_exceeded")
	})
}

// Changes of domains need a recent proof of identity; reading doesn't.
func TestProofForDomains(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		path := domainsPath + "/" + d.send(t, "POST "+domainsPath, m{"domain": "acme.example"}, owner).ok(http.StatusCreated).text("id")
		d.Advance(20 * time.Minute)
		for route, body := range map[string]any{
			"POST " + domainsPath: m{"domain": "other.example"}, "PATCH " + path: m{"connectionId": ""}, "POST " + path + "/verify": nil, "DELETE " + path: nil,
		} {
			d.send(t, route, body, owner).fails(http.StatusForbidden, "step_up_required")
		}
		d.send(t, "GET "+path, nil, owner).ok(http.StatusOK)
		d.send(t, "GET "+domainsPath+"?cursor=x", nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
		d.send(t, "GET "+domainsPath+"?limit=201", nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
	})
}

// domainSteps are the steps about domains.
func (r *recorder) domainSteps() []step {
	var mine, theirs answer
	verify := func(a answer, who opt) answer {
		return r.ask("POST "+domainsPath+"/"+a.text("id")+"/verify", nil, who)
	}
	return []step{
		{"a domain", func() {
			mine = r.ask("POST "+domainsPath, m{"domain": "acme.example"}, r.as(r.owner)).ok(201)
			r.names[mine.text("id")] = "DOMAIN"
			r.ask("POST "+domainsPath, m{"domain": "acme.example"}, r.as(r.owner)).fails(409, "domain_exists")
		}, []string{`Acme: OWNER done domain.create domain DOMAIN, domain "" "acme.example"`}},
		{"a domain by an ADMIN", func() {
			r.ask("POST "+domainsPath, m{"domain": "other.example"}, r.as(r.ann)).fails(403, "forbidden")
		}, []string{`Acme: ann refused domain.create tenant Acme, reason "" "forbidden"`}},
		{"a domain proved", func() {
			verify(mine, r.as(r.owner)).fails(409, "domain_not_proved")
			r.publish(mine)
			for range 2 {
				verify(mine, r.as(r.owner)).ok(200)
			}
		}, []string{`Acme: OWNER done domain.verify domain DOMAIN, domain "" "acme.example", status "pending" "verified"`}},
		{"a domain released", func() {
			for range 2 {
				if _, err := r.Node.App.Domains.Release(r.t.Context(), doorward.OperatorAtTerminal(), "acme.example"); err != nil {
					r.t.Fatal(err)
				}
			}
		}, []string{`Acme: operator done domain.release domain DOMAIN, domain "" "acme.example", status "verified" "lapsed"`}},
		{"a domain that another tenant has proved", func() {
			theirs = r.ask("POST "+domainsPath, m{"domain": "acme.example"}, r.as(r.other)).ok(201)
			r.names[theirs.text("id")] = "THEIRS"
			r.publish(theirs)
			verify(theirs, r.as(r.other)).ok(200)
		}, []string{
			`Acme: system done domain.delete domain DOMAIN, domain "acme.example" ""`,
			`Zeta: other done domain.create domain THEIRS, domain "" "acme.example"`,
			`Zeta: other done domain.verify domain THEIRS, domain "" "acme.example", status "pending" "verified"`,
		}},
		{"a domain deleted", func() {
			r.ask("DELETE "+domainsPath+"/"+theirs.text("id"), nil, r.as(r.other)).ok(204)
		}, []string{`Zeta: other done domain.delete domain THEIRS, domain "acme.example" ""`}},
	}
}
