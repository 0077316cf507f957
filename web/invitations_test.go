package web_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/smtp/smtptest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
)

const bulkPath = "POST /api/v2/auth/invite/bulk"

// sendInvitation sends an invitation without waiting for the mail, and returns the answer.
func (s *server) sendInvitation(t *testing.T, by *doorwardtest.Person, email, role string, days int) answer {
	t.Helper()
	return s.send(t, invitePath, m{"email": email, "role": role, "expiresInDays": days}, as(by.Token())).ok(http.StatusCreated)
}

func (s *server) resend(t *testing.T, token, id string) answer {
	t.Helper()
	return s.send(t, "POST /api/v2/invitations/"+id+"/resend", nil, as(token))
}

func TestInvitationsAreListedByState(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		d.sendInvitation(t, globex.Owner, "else@x.example", "USER", 3)
		expired := d.sendInvitation(t, acme.Owner, "expired@x.example", "USER", 1).text("id")
		d.Advance(24*time.Hour - time.Second)
		acme.Owner.Login()
		used := d.sendInvitation(t, acme.Owner, "used@x.example", "USER", 3)
		d.complete(t, d.code(t, "used@x.example"), password).ok(http.StatusOK)
		revoked := d.sendInvitation(t, acme.Owner, "revoked@x.example", "USER", 3).text("id")
		d.send(t, "DELETE /api/v2/invitations/"+revoked, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		pending := d.sendInvitation(t, acme.Owner, "pending@x.example", "OWNER", 3).text("id")
		admin := acme.Join("admin@acme.example", "ADMIN") // also sees invitations to higher roles
		list := func(query string) []string {
			t.Helper()
			ids, _ := d.page(t, "/api/v2/invitations?"+query, "id", as(admin.Token()))
			return ids
		}
		if got := list("status=EXPIRED"); len(got) != 0 {
			t.Errorf("expired are %q, a second too early", got)
		}
		d.Advance(time.Second)
		for query, want := range map[string][]string{
			"status=PENDING": {pending}, "status=REVOKED": {revoked}, "status=EXPIRED": {expired}, "limit=2&status=PENDING": {pending},
		} {
			if got := list(query); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		if got := list("status=ACCEPTED"); len(got) != 3 || got[1] != used.text("id") { // the admin's, this one, the owner's
			t.Errorf("accepted are %q", got)
		}
		if got := list(""); len(got) != 6 || got[1] != pending {
			t.Errorf("all are %q, want the newest first", got)
		}
		for _, limit := range []int{1, 2, 5, 6, 7} {
			if got := d.allPages(t, "/api/v2/invitations", "id", limit, func(int) {}, as(admin.Token())); !slices.Equal(got, list("")) {
				t.Errorf("by pages of %d: %q", limit, got)
			}
		}
		d.send(t, "GET /api/v2/invitations?status=expired", nil, as(admin.Token())).fails(http.StatusUnprocessableEntity, "validation_failed")

		one := d.send(t, "GET /api/v2/invitations/"+pending, nil, as(admin.Token())).ok(http.StatusOK)
		one.members("", "id", "email", "role", "name", "status", "tenantId", "invitedBy", "createdAt", "expiresAt", "delivery")
		d.send(t, "GET /api/v2/invitations/"+expired, nil, as(admin.Token())).ok(http.StatusOK).is("status", "EXPIRED")
		d.send(t, "GET /api/v2/invitations/"+revoked, nil, as(admin.Token())).ok(http.StatusOK).is("status", "REVOKED").instant("revokedAt")
		d.send(t, "GET /api/v2/invitations/"+used.text("id"), nil, as(admin.Token())).ok(http.StatusOK).is("status", "ACCEPTED").instant("acceptedAt")
	})
}

func TestForeignInvitationsAreAbsent(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		code := d.invite(t, globex.Owner, "else@x.example", "OWNER")
		ids, _ := d.page(t, "/api/v2/invitations?status=PENDING", "id", as(globex.Owner.Token()))
		for _, route := range []string{"GET /api/v2/invitations/%s", "DELETE /api/v2/invitations/%s", "POST /api/v2/invitations/%s/resend"} {
			refusal := func(id string) string {
				t.Helper()
				a := d.send(t, fmt.Sprintf(route, id), nil, as(acme.Owner.Token())).fails(http.StatusNotFound, "not_found")
				return strings.ReplaceAll(a.withoutIDs(), id, "ID")
			}
			if foreign, absent := refusal(ids[0]), refusal("inv_aaaaaaaaaaaaaaaaaaaaaaaaaa"); foreign != absent {
				t.Errorf("%s: the answers for a foreign and an unknown invitation differ:\n%s\n%s", route, foreign, absent)
			}
			refusal("usr_x")
		}
		d.complete(t, code, password).ok(http.StatusOK)
	})
}

func TestRevokeInvitation(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin := acme.Join("admin@acme.example", "ADMIN")
		above := d.sendInvitation(t, acme.Owner, "above@x.example", "OWNER", 3).text("id")
		revoke := func(by *doorwardtest.Person, id string) answer {
			t.Helper()
			return d.send(t, "DELETE /api/v2/invitations/"+id, nil, as(by.Token()))
		}
		revoke(admin, above).fails(http.StatusForbidden, "forbidden")
		d.resend(t, admin.Token(), above).fails(http.StatusForbidden, "forbidden")
		d.send(t, "GET /api/v2/invitations/"+above, nil, as(admin.Token())).ok(http.StatusOK).is("status", "PENDING")
		code := d.code(t, "above@x.example")
		revoke(acme.Owner, above).ok(http.StatusNoContent)
		d.complete(t, code, password).fails(http.StatusGone, "invitation_revoked")

		expired := d.sendInvitation(t, acme.Owner, "expired@x.example", "USER", 1).text("id")
		used := d.sendInvitation(t, acme.Owner, "used@x.example", "USER", 3).text("id")
		d.complete(t, d.code(t, "used@x.example"), password).ok(http.StatusOK)
		d.Advance(24 * time.Hour)
		acme.Owner.Login()
		admin.Login()
		for _, id := range []string{above, expired, used} {
			revoke(acme.Owner, id).fails(http.StatusConflict, "invitation_not_pending")
			d.resend(t, acme.Owner.Token(), id).fails(http.StatusConflict, "invitation_not_pending")
		}
		revoke(admin, above).fails(http.StatusForbidden, "forbidden")
		d.invite(t, acme.Owner, "above@x.example", "USER") // the address is free again
	})
}

// Resending invalidates the earlier mails and restarts the validity.
func TestResendInvitation(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin := acme.Join("admin@acme.example", "ADMIN")
		first := d.sendInvitation(t, admin, "ann@x.example", "USER", 3)
		id, old := first.text("id"), d.code(t, "ann@x.example")
		d.Advance(30 * time.Minute)
		again := d.resend(t, admin.Token(), id).ok(http.StatusOK).is("delivery", "queued").is("status", "PENDING").is("id", id).is("invitedBy", admin.ID)
		again.is("createdAt", first.at("createdAt"))
		if later := again.instant("expiresAt").Sub(first.instant("expiresAt")).Round(time.Second); later != 30*time.Minute {
			t.Errorf("it expires %v later", later)
		}
		latest := d.code(t, "ann@x.example")
		if latest == old || len(d.Mails("ann@x.example")) != 2 {
			t.Fatalf("the codes are %s and %s in %d mails", old, latest, len(d.Mails("ann@x.example")))
		}
		d.send(t, "GET /api/v2/invitations/"+id, nil, as(admin.Token())).ok(http.StatusOK).is("delivery", "sent")
		d.complete(t, old, password).fails(http.StatusGone, "invitation_revoked")
		d.complete(t, latest, password).ok(http.StatusOK)
		d.complete(t, old, password).fails(http.StatusGone, "invitation_used")
	})
}

// An invitation whose sender has lost the permission is valid again once somebody else resends
// it.
func TestResendAfterTheInviterWasDemoted(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin := acme.Join("admin@acme.example", "ADMIN")
		id := d.sendInvitation(t, admin, "ann@x.example", "USER", 3).text("id")
		d.patchUser(t, acme.Owner, admin.ID, m{"role": "USER"}).ok(http.StatusOK)
		d.complete(t, d.code(t, "ann@x.example"), password).fails(http.StatusGone, "invitation_revoked")
		d.resend(t, admin.Token(), id).fails(http.StatusForbidden, "forbidden")
		d.Advance(time.Minute)
		d.resend(t, acme.Owner.Token(), id).ok(http.StatusOK).is("invitedBy", acme.Owner.ID)
		d.complete(t, d.code(t, "ann@x.example"), password).ok(http.StatusOK)
	})
}

func TestResendTooSoon(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		id := d.sendInvitation(t, acme.Owner, "ann@x.example", "USER", 3).text("id")
		requireTooSoon := func(least, most int) {
			t.Helper()
			a := d.resend(t, acme.Owner.Token(), id).fails(http.StatusTooManyRequests, "resend_too_soon")
			if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < least || wait > most {
				t.Errorf("Retry-After is %q, want %d to %d", a.header.Get("Retry-After"), least, most)
			}
		}
		requireTooSoon(59, 60)
		d.Advance(59 * time.Second)
		requireTooSoon(1, 1)
		d.Advance(time.Second)
		for range 5 {
			d.resend(t, acme.Owner.Token(), id).ok(http.StatusOK)
			requireTooSoon(59, 60)
			d.Advance(time.Minute)
		}
		requireTooSoon(23*3600, 24*3600-5*60+1)
		other := d.sendInvitation(t, acme.Owner, "other@x.example", "USER", 3).text("id")
		d.Advance(time.Minute)
		d.resend(t, acme.Owner.Token(), other).ok(http.StatusOK) // to another address
		d.Advance(24*time.Hour - 6*time.Minute)
		acme.Owner.Login()
		for range 5 {
			d.resend(t, acme.Owner.Token(), id).ok(http.StatusOK)
			d.Advance(time.Minute)
		}
		// The first invitation of a day doesn't count towards the five.
		d.send(t, "DELETE /api/v2/invitations/"+id, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		id = d.sendInvitation(t, acme.Owner, "ann@x.example", "ADMIN", 3).text("id")
		d.send(t, "DELETE /api/v2/invitations/"+id, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		d.send(t, invitePath, m{"email": "ann@x.example", "role": "USER"}, as(acme.Owner.Token())).fails(http.StatusTooManyRequests, "resend_too_soon")
	})
}

// Another invitation to an address counts as a resend: otherwise revoking and
// inviting could flood a mailbox. The first of a day doesn't count, and one to another
// role may follow within the minute.
func TestInviteAgainTooOften(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		invite := func(role string) answer {
			return d.send(t, invitePath, m{"email": "Ann@x.example", "role": role}, as(acme.Owner.Token()))
		}
		revoke := func(a answer) {
			t.Helper()
			d.send(t, "DELETE /api/v2/invitations/"+a.text("id"), nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		}
		for _, role := range []string{"USER", "ADMIN", "VIEWER", "USER", "OWNER"} {
			revoke(invite(role).ok(http.StatusCreated))
		}
		last := invite("USER").ok(http.StatusCreated)
		d.Advance(time.Minute)
		d.resend(t, acme.Owner.Token(), last.text("id")).fails(http.StatusTooManyRequests, "resend_too_soon")
		revoke(last)
		refused := invite("USER").fails(http.StatusTooManyRequests, "resend_too_soon")
		if wait := refused.retryAfter(); wait > 24*time.Hour || wait < 23*time.Hour {
			t.Errorf("Retry-After is %v, want what is left of the day", wait)
		}
		invite("NONE").invalid("/role", "invalid")

		rows := d.send(t, bulkPath, m{"invitations": []m{{"email": "ann@x.example", "role": "USER"}, {"email": "bob@x.example", "role": "USER"}}}, as(acme.Owner.Token())).ok(http.StatusOK).at("items").([]any)
		one, two := rows[0].(m), rows[1].(m)
		if problem, _ := one["problem"].(m); one["status"] != 429.0 || problem["code"] != "resend_too_soon" || two["status"] != 201.0 {
			t.Errorf("the rows are %v", rows)
		}
		d.sendInvitation(t, globex.Owner, "ann@x.example", "USER", 3) // of another tenant

		d.Advance(refused.retryAfter() - time.Minute)
		acme.Owner.Login()
		invite("USER").fails(http.StatusTooManyRequests, "resend_too_soon")
		d.Advance(time.Minute)
		invite("USER").ok(http.StatusCreated)
	})
}

func TestInviteSeveral(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin := acme.Join("admin@acme.example", "ADMIN")
		pending := d.sendInvitation(t, acme.Owner, "pending@x.example", "USER", 3).text("id")
		bulk := func(rows ...m) answer {
			t.Helper()
			return d.send(t, bulkPath, m{"invitations": rows}, as(admin.Token()))
		}
		a := bulk(
			m{"email": "One@x.example", "role": "USER", "name": "One", "expiresInDays": 2},
			m{"email": "above@x.example", "role": "OWNER"},
			m{"email": "none", "role": "NONE"},
			m{"email": "one@X.example", "role": "VIEWER"},
			m{"email": "pending@x.example", "role": "USER"},
			m{"email": admin.Email, "role": "USER"},
			m{},
			m{"email": "two@x.example", "role": "ADMIN"},
		).ok(http.StatusOK).members("", "items")
		var got []any
		rows := a.at("items").([]any)
		for _, row := range rows {
			row := row.(m)
			problem, _ := row["problem"].(m)
			invitation, _ := row["invitation"].(m)
			got = append(got, row["status"], problem["code"], invitation["email"])
			if (problem == nil) == (invitation == nil) {
				t.Errorf("a row must have either an invitation or a problem: %v", row)
			}
		}
		want := []any{
			201.0, nil, "one@x.example", 403.0, "forbidden", nil, 422.0, "validation_failed", nil, 409.0, "invitation_pending", nil,
			409.0, "invitation_pending", nil, 409.0, "already_member", nil, 422.0, "validation_failed", nil, 201.0, nil, "two@x.example",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the rows:\n%s", diff)
		}
		first := rows[0].(m)["invitation"].(m)["id"]
		if rows[3].(m)["problem"].(m)["invitationId"] != first || rows[4].(m)["problem"].(m)["invitationId"] != pending {
			t.Errorf("conflicting invitations: %s", a.body)
		}
		faults := rows[2].(m)["problem"].(m)["errors"].([]any)
		if len(faults) != 2 || faults[0].(m)["pointer"] != "/email" || faults[1].(m)["pointer"] != "/role" {
			t.Errorf("the faults of a row are %v", faults)
		}
		d.deliver(t)
		if len(d.Mails("one@x.example")) != 1 || len(d.Mails("two@x.example")) != 1 || len(d.Mails("above@x.example")) != 0 {
			t.Error("mails went to others than those invited")
		}
		d.complete(t, d.code(t, "two@x.example"), password).ok(http.StatusOK).is("user.role", "ADMIN")
	})
}

// A malformed row refuses the whole request, and so do fewer than 1 or more than 100 rows.
func TestMalformedBulkInvitation(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		good := `{"email":"good@x.example","role":"USER"}`
		for _, row := range []string{`{"email":1}`, `null`, `[]`, `{"email":"a@x.example","role":"USER","more":1}`, `{"Email":"a@x.example"}`, `{"expiresInDays":1.5}`, `"x"`, `{`} {
			d.send(t, bulkPath, `{"invitations":[`+good+`,`+row+`]}`, as(acme.Owner.Token())).fails(http.StatusBadRequest, "invalid_body")
		}
		rows := func(n int) (all []m) {
			for i := range n {
				all = append(all, m{"email": fmt.Sprintf("p%d@x.example", i), "role": "USER"})
			}
			return all
		}
		for _, body := range []any{m{}, m{"invitations": []m{}}, m{"invitations": rows(101)}} {
			d.send(t, bulkPath, body, as(acme.Owner.Token())).invalid("/invitations", "out_of_range")
		}
		if ids, _ := d.page(t, "/api/v2/invitations?status=PENDING", "id", as(acme.Owner.Token())); len(ids) > 0 {
			t.Fatalf("%d were invited", len(ids))
		}
		all := d.send(t, bulkPath, m{"invitations": rows(100)}, as(acme.Owner.Token())).ok(http.StatusOK).at("items").([]any)
		for i, row := range all {
			if row.(m)["status"] != 201.0 {
				t.Fatalf("row %d: %v", i, row)
			}
		}
		if ids, _ := d.page(t, "/api/v2/invitations?status=PENDING&limit=200", "id", as(acme.Owner.Token())); len(ids) != 100 || len(all) != 100 {
			t.Errorf("%d are invited", len(ids))
		}
	})
}

// emptyQueue delivers mail until none is queued. It moves the clock while mail waits
// for its next try, but not while a worker is sending: a claim lasts two minutes, and
// the mail would be sent twice.
func (s *server) emptyQueue(t *testing.T) {
	t.Helper()
	s.Node.App.Inbox.RecordPending(t.Context()) // it queues mails of resets
	const pause = time.Minute                   // no mail waits longer after its first three tries
	waittest.Until(t, "all mail to be sent", func() bool {
		if err := s.Node.App.Mail.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := s.Node.DB.Now()
		queued, err := s.Node.DB.Read().DueMails(t.Context(), store.Mail{}, now.Add(time.Hour), 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(queued) > 0 && !slices.ContainsFunc(queued, func(mail store.Mail) bool { return mail.NextAt.After(now.Add(pause)) }) {
			s.clock.advance(time.Second)
		}
		return len(queued) == 0
	})
}

// waitUntilTried waits until the mail server has refused all mails that are queued.
func (s *server) waitUntilTried(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		all, err := s.Node.DB.Read().DueMails(context.Background(), store.Mail{}, s.Node.DB.Now().Add(time.Hour), 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 && !slices.ContainsFunc(all, func(mail store.Mail) bool { return mail.LastError == "" }) {
			return
		}
		if err := s.Node.App.Mail.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("no mail is queued, or one was not tried")
}

func TestDeliveryOfInvitations(t *testing.T) {
	t.Parallel()
	sink := smtptest.Start(t, smtptest.Options{})
	d := start(t, doorwardtest.Mail(sink.URL()))
	acme := d.Tenant("Acme")
	own, _ := d.page(t, "/api/v2/invitations", "id", as(acme.Owner.Token())) // the OWNER's invitation, whose delivery may be in any state
	delivery := func(id string) string {
		t.Helper()
		return d.send(t, "GET /api/v2/invitations/"+id, nil, as(acme.Owner.Token())).ok(http.StatusOK).text("delivery")
	}
	sink.Refuse(smtptest.AtRecipient, 451)
	later := d.sendInvitation(t, acme.Owner, "later@x.example", "USER", 3).is("delivery", "queued").text("id")
	d.waitUntilTried(t)
	if got := delivery(later); got != "queued" {
		t.Errorf("refused with 451, the delivery is %s", got)
	}
	sink.Behave()
	d.emptyQueue(t)
	if got := delivery(later); got != "sent" {
		t.Errorf("accepted, the delivery is %s", got)
	}
	sink.Refuse(smtptest.AtRecipient, 550)
	never := d.sendInvitation(t, acme.Owner, "never@x.example", "USER", 3).text("id")
	d.emptyQueue(t)
	if got := delivery(never); got != "failed" {
		t.Errorf("refused with 550, the delivery is %s", got)
	}
	for query, want := range map[string][]string{
		"delivery=failed": {never}, "delivery=failed&status=PENDING": {never}, "delivery=failed&status=ACCEPTED": {},
		"delivery=sent&status=PENDING": {later}, "delivery=queued&status=PENDING": {}, "delivery=&status=PENDING": {never, later},
	} {
		if ids, _ := d.page(t, "/api/v2/invitations?"+query, "id", as(acme.Owner.Token())); !slices.Equal(slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(own, id) }), want) {
			t.Errorf("%s: %q, want %q", query, ids, want)
		}
	}
	d.send(t, "GET /api/v2/invitations?delivery=lost", nil, as(acme.Owner.Token())).fails(http.StatusUnprocessableEntity, "validation_failed")
	_, cursor := d.page(t, "/api/v2/invitations?limit=1&status=PENDING", "id", as(acme.Owner.Token()))
	d.send(t, "GET /api/v2/invitations?status=PENDING&delivery=sent&cursor="+cursor, nil, as(acme.Owner.Token())).fails(http.StatusBadRequest, "invalid_cursor")
	sink.Behave()
	d.clock.advance(time.Minute)
	d.resend(t, acme.Owner.Token(), never).ok(http.StatusOK).is("delivery", "queued")
	d.emptyQueue(t)
	if got := delivery(never); got != "sent" {
		t.Errorf("sent again, the delivery is %s", got)
	}
}

// A mail that is still queued when the invitation is resent brings no second valid token.
func TestResendReplacesAQueuedMail(t *testing.T) {
	t.Parallel()
	sink := smtptest.Start(t, smtptest.Options{})
	d := start(t, doorwardtest.Mail(sink.URL()))
	acme := d.Tenant("Acme")
	sink.Refuse(smtptest.AtRecipient, 451)
	id := d.sendInvitation(t, acme.Owner, "ann@x.example", "USER", 3).text("id")
	d.waitUntilTried(t)
	d.clock.advance(time.Minute)
	d.resend(t, acme.Owner.Token(), id).ok(http.StatusOK)
	sink.Behave()
	d.emptyQueue(t)
	good := ""
	for _, mail := range sink.Wait(t, "ann@x.example", 1) { // the first mail may have been in transit at the resend
		code := codeLine.FindString(mail.Parse(t).Text)
		if d.complete(t, code, "short").status == http.StatusGone {
			continue
		}
		if good != "" {
			t.Fatal("two mails have a valid token")
		}
		good = code
	}
	d.send(t, "GET /api/v2/invitations/"+id, nil, as(acme.Owner.Token())).ok(http.StatusOK).is("delivery", "sent")
	d.complete(t, good, password).ok(http.StatusOK)
}
