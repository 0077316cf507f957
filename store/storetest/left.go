package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// madeWebhooks: enabled webhooks of the tenant are found by who has made them, and by who has given
// them their URL.
func madeWebhooks(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	f.write(func(tx *store.Tx) {
		for i, w := range []doorward.Webhook{
			{TenantID: acme.ID, CreatedBy: "usr_ann", URLBy: "usr_ann", Enabled: true},
			{TenantID: acme.ID, CreatedBy: "usr_bob", URLBy: "usr_ann", Enabled: true},
			{TenantID: acme.ID, CreatedBy: "usr_bob", URLBy: "usr_bob", Enabled: true},
			{TenantID: acme.ID, CreatedBy: "usr_ann", URLBy: "usr_ann"},
			{TenantID: zeta.ID, CreatedBy: "usr_ann", URLBy: "usr_ann", Enabled: true},
		} {
			w.ID, w.URL = "whk_"+string(rune('1'+i)), "https://example.com/"+string(rune('1'+i))
			w.CreatedAt = tx.Now.Add(time.Duration(-i) * time.Second)
			noError(f, tx.InsertWebhook(ctx, w, store.WebhookSecrets{Secret: []byte("secret"), Private: []byte("private")}))
		}
	})
	equal(f, f.value(f.Read().WebhooksMadeBy(ctx, acme.ID, "usr_ann")), []doorward.MadeWebhook{{ID: "whk_2", URL: "https://example.com/2"}, {ID: "whk_1", URL: "https://example.com/1"}})
	equal(f, f.value(f.Read().WebhooksMadeBy(ctx, acme.ID, "usr_cat")), []doorward.MadeWebhook(nil))
}

// leftByPeople: what an account that is erased leaves in a tenant.
func leftByPeople(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob, cat := f.member(acme, "ann@acme.example", doorward.RoleAdmin), f.member(acme, "bob@acme.example", doorward.RoleUser), f.member(acme, "cat@acme.example", doorward.RoleUser)
	record := func(action doorward.Action, actor, target string, changes ...doorward.Change) {
		f.write(func(tx *store.Tx) {
			noError(f, tx.InsertEvent(ctx, doorward.Event{
				ID: f.id("evt_"), Action: action, Outcome: doorward.Done, ActorType: doorward.ByUser, ActorID: actor,
				Target: doorward.Object{Type: "x", ID: target, TenantID: acme.ID}, Changes: changes,
			}))
		})
	}
	role := func(from, to doorward.Role) doorward.Change {
		return doorward.Change{Field: "role", From: string(from), To: string(to)}
	}

	made, key := f.apiKey(bob, "made"), f.apiKey(ann, "ann's")
	record(doorward.APIKeyCreate, bob.ID, made.ID)
	seenBy := func(userID string) []string {
		var all []string
		f.write(func(tx *store.Tx) { all = f.value(tx.APIKeysSeenBy(ctx, acme.ID, userID, 10)).([]string) })
		return all
	}
	equal(f, seenBy(cat.ID), []string(nil))
	record(doorward.APIKeyRotate, cat.ID, made.ID)
	equal(f, seenBy(cat.ID), []string{made.ID})
	equal(f, seenBy(bob.ID), []string(nil)) // doesn't know the newest secret

	record(doorward.UserRole, ann.ID, bob.ID, role(doorward.RoleViewer, bob.Role))
	record(doorward.UserRole, key.ID, cat.ID, role(doorward.RoleViewer, cat.Role)) // by an API key of ann
	given := []store.GivenRole{{UserID: cat.ID, From: doorward.RoleViewer, To: cat.Role}, {UserID: bob.ID, From: doorward.RoleViewer, To: bob.Role}}
	equal(f, f.value(f.Read().RolesGivenBy(ctx, acme.ID, ann.ID)), given)
	record(doorward.UserRole, ann.ID, bob.ID, role(bob.Role, doorward.RoleOwner)) // who has another role now
	equal(f, f.value(f.Read().RolesGivenBy(ctx, acme.ID, ann.ID)), given[:1])
	record(doorward.UserRole, ann.ID, bob.ID, doorward.Change{Field: doorward.FieldRoleByHand, To: string(bob.Role)})
	given = []store.GivenRole{{UserID: bob.ID, To: bob.Role}, given[0]}
	equal(f, f.value(f.Read().RolesGivenBy(ctx, acme.ID, ann.ID)), given)
	equal(f, f.value(f.Read().RoleByHand(ctx, acme.ID, bob.ID)).(doorward.Event).ActorID, ann.ID)
	_, err := f.Read().RoleByHand(ctx, acme.ID, cat.ID)
	equal(f, err == store.ErrNone, true)

	inv := f.draft(acme, "cat@acme.example")
	inv.InvitedBy = ann.ID
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.InsertInvitation(ctx, inv))
		f.wantChange(tx.AcceptInvitation(ctx, inv.ID))
	})
	record(doorward.InvitationAccept, cat.ID, inv.ID)
	equal(f, f.value(f.Read().PeopleInvitedBy(ctx, acme.ID, ann.ID, 10)), []string{cat.ID})
	equal(f, f.value(f.Read().PeopleInvitedBy(ctx, acme.ID, bob.ID, 10)), []string(nil))
}
