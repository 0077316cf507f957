package web_test

import (
	"database/sql"
	"net/http"
	"testing"
	"time"
)

// An OWNER takes a run back once, within seven days, and sees before what would come back. Nobody else may.
func TestUndoOfARunByAPI(t *testing.T) {
	onBothRaw(t, func(t *testing.T, d *server, db *sql.DB) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		con, idp := d.directory(t, acme)
		owner, admin := as(acme.Owner.Token()), as(acme.Join("ada@hand.example", "ADMIN").Token())
		bob := acme.Join("bob@hand.example", "USER")
		off := m{"Operations": []m{{"op": "replace", "path": "active", "value": false}}}
		d.send(t, "PATCH "+scimUsers+"/"+bob.ID, off, idp).ok(http.StatusOK)
		runs := connectionsPath + "/" + con + "/runs"
		run := runs + "/" + d.send(t, "GET "+runs, nil, owner).ok(http.StatusOK).item().text("id")
		undo := "POST " + run + "/undo"

		for _, list := range []string{runs, run} {
			d.send(t, "GET "+list+"?cursor=x", nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
			d.send(t, "GET "+list+"?limit=0", nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
		}
		d.send(t, undo, m{"dryrun": true}, owner).fails(http.StatusBadRequest, "invalid_body")
		d.send(t, undo, m{"dryRun": true}, admin).fails(http.StatusForbidden, "forbidden")
		d.send(t, undo, nil, admin).fails(http.StatusForbidden, "forbidden")
		d.send(t, undo, nil, idp).ok(http.StatusUnauthorized)
		d.send(t, undo, nil, as(zeta.Owner.Token())).fails(http.StatusNotFound, "not_found")
		preview := d.send(t, undo, m{"dryRun": true}, owner).ok(http.StatusOK).is("undo", nil).is("preview.people", 1.0)
		if back := preview.at("preview.back").([]any); len(back) != 1 || back[0].(m)["userId"] != bob.ID {
			t.Errorf("the dry run says %v", back)
		}
		d.send(t, "GET /api/v2/users/"+bob.ID, nil, owner).ok(http.StatusOK).is("status", "suspended")
		age := func(by time.Duration) {
			if _, err := db.Exec(`UPDATE directory_runs SET last_at = last_at - $1`, by.Microseconds()); err != nil {
				t.Fatal(err)
			}
		}
		age(7*24*time.Hour + time.Minute)
		d.send(t, undo, m{"dryRun": true}, owner).fails(http.StatusGone, "undo_over")
		d.send(t, undo, nil, owner).fails(http.StatusGone, "undo_over")
		age(-time.Hour)
		d.send(t, undo, nil, owner).ok(http.StatusAccepted).is("preview", nil)
		d.send(t, undo, nil, owner).fails(http.StatusConflict, "already_undone")
		d.send(t, undo, m{"dryRun": true}, owner).fails(http.StatusConflict, "already_undone")
		if err := d.Node.App.DirectoryRuns.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.send(t, "GET /api/v2/users/"+bob.ID, nil, owner).ok(http.StatusOK).is("status", "active")
	})
}
