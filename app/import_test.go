package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/store"
)

// staple is the password of the hashes here; they were made by the programs
// that internal/argon's tests name.
const (
	staple        = "correct horse battery staple"
	stapledBcrypt = "$2b$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"
)

// people reads a list in CSV, whose columns are these.
func (w *world) people(rows ...string) roster.List {
	w.Helper()
	list, err := roster.Read(strings.NewReader("email,role,name,status,passwordHash\n"+strings.Join(rows, "\n")+"\n"), roster.CSV)
	w.ok(err)
	return list
}

// faults are the places and codes of an import that was refused.
func (w *world) faults(err error) (all []string) {
	w.Helper()
	var refused *roster.Error
	if !errors.As(err, &refused) {
		w.Fatalf("the error is %v, want faults of the list", err)
	}
	for _, f := range refused.Faults.Faults {
		all = append(all, fmt.Sprintf("%d %s %s", f.Line, f.Column, f.Code))
	}
	return all
}

// picture is all that an import could change.
func (w *world) picture() (all []any) {
	w.Helper()
	ctx, read := w.Context(), w.db.Read()
	tenants, err := read.Tenants(ctx)
	w.ok(err)
	for _, t := range tenants {
		w.ok(read.EachMember(ctx, t.ID, func(m store.Member) error { all = append(all, m); return nil }))
		w.ok(read.EachInvitation(ctx, t.ID, func(i doorward.Invitation) error { all = append(all, i); return nil }))
		w.ok(read.EachEvent(ctx, t.ID, func(e doorward.Event) error { all = append(all, e); return nil }))
	}
	return all
}

func (w *world) unchanged(before []any) {
	w.Helper()
	if diff := cmp.Diff(before, w.picture()); diff != "" {
		w.Errorf("something is left of it:\n%s", diff)
	}
}

func TestImport(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		_, elsewhere := w.tenant()
		inv, token := w.invite(owner, "bob@acme.example", doorward.RoleUser)
		done, err := w.on(0).Users.Import(w.Context(), operator, acme.ID, w.people(
			"eve@acme.example,VIEWER,,suspended,"+stapledBcrypt,
			"bob@acme.example,ADMIN,Bob,,"+stapledBcrypt,
			"cat@acme.example,USER,Cat,,",
			elsewhere.Email+",USER,,,"+stapledBcrypt,
		), false)
		w.ok(err)
		kept := []roster.Person{{Line: 5, Email: elsewhere.Email, Role: doorward.RoleUser, Status: doorward.UserActive, PasswordHash: stapledBcrypt}}
		if diff := cmp.Diff(user.Imported{Members: 4, Accounts: 3, Unset: 1, Kept: kept, Invitations: 1}, done); diff != "" {
			w.Errorf("done (-want +got):\n%s", diff)
		}

		for email, want := range map[string]doorward.Code{
			"bob@acme.example": "", "eve@acme.example": doorward.CodeMembershipSuspended, "cat@acme.example": doorward.CodeInvalidCredentials,
			elsewhere.Email: doorward.CodeInvalidCredentials,
		} {
			if got := w.tries(email, staple); got != want {
				w.Errorf("%s signs in with the imported password: %q, want %q", email, got, want)
			}
		}
		if got := w.tries(elsewhere.Email, first); got != "" {
			w.Errorf("who had an account and signs in with the password of that: %q", got)
		}
		bob := w.signIn("bob@acme.example", staple).User
		if bob.Role != doorward.RoleAdmin || bob.Name != "Bob" || bob.TenantID != acme.ID {
			w.Errorf("Bob is %+v", bob)
		}
		_, err = w.on(0).Invitations.Complete(w.Context(), stranger(0), token, first, first)
		if code(err) != doorward.CodeInvitationRevoked {
			w.Errorf("the invitation %s of somebody who was imported: %v", inv.ID, err)
		}
		w.recorded(acme.ID, bob.ID, 4)
	})
}

// recorded wants a record of the import for each person, and one with their
// number.
func (w *world) recorded(tenantID, bob string, people int) {
	w.Helper()
	events, err := w.db.Read().Events(w.Context(), tenantID)
	w.ok(err)
	targets := map[string][]doorward.Change{}
	for _, e := range events {
		if e.Action == doorward.UserImport && e.Outcome == doorward.Done && e.ActorType == doorward.Operator {
			targets[e.Target.ID] = e.Changes
		}
	}
	want := map[string][]doorward.Change{
		tenantID: {{Field: "people", To: fmt.Sprint(people)}}, bob: {{Field: "role", To: "ADMIN"}},
	}
	for id, changes := range want {
		if diff := cmp.Diff(changes, targets[id]); diff != "" {
			w.Errorf("recorded for %s (-want +got):\n%s", id, diff)
		}
	}
	if len(targets) != people+1 {
		w.Errorf("%d records of an import of %d people", len(targets), people)
	}
}

// TestImportAllOrNothing: one row that can't be, and nobody comes in, whether
// that shows in the list, in the tenant, or only when it is written.
func TestImportAllOrNothing(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		frank := w.join(owner, doorward.RoleUser)
		before := w.picture()
		list := w.people(
			"ann@acme.example,USER,,,",
			"ann@acme.example,USER,,,",
			frank.Email+",ADMIN,,,",
			"bob@acme.example,BOSS,,,",
			"cat@acme.example,USER,,,",
		)
		_, err := w.on(0).Users.Import(w.Context(), operator, acme.ID, list, false)
		if diff := cmp.Diff([]string{"3 email duplicate", "4 email already_member", "5 role invalid"}, w.faults(err)); diff != "" {
			w.Errorf("faults (-want +got):\n%s", diff)
		}
		w.unchanged(before)

		for id, want := range map[string]doorward.Code{"tnt_none": doorward.CodeNotFound, "": doorward.CodeNotFound} {
			if _, err := w.on(0).Users.Import(w.Context(), operator, id, w.people("ann@acme.example,USER,,,"), false); code(err) != want {
				w.Errorf("into the tenant %q: %v, want %s", id, err, want)
			}
		}
		_, err = w.on(0).Users.Import(w.Context(), owner.Caller, acme.ID, w.people("ann@acme.example,USER,,,"), false)
		if code(err) != doorward.CodeForbidden {
			w.Errorf("by an OWNER: %v", err)
		}
	})
}

func TestImportIntoAClosingTenant(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		_, _, err := w.on(0).Tenants.Close(w.Context(), owner.Caller, acme.Name)
		w.ok(err)
		before := w.picture()
		_, err = w.on(0).Users.Import(w.Context(), operator, acme.ID, w.people("ann@acme.example,USER,,,"), false)
		if code(err) != doorward.CodeTenantClosing {
			w.Errorf("the error is %v", err)
		}
		w.unchanged(before)
	})
}

// TestDryRunLeavesNothing and says what the import then does.
func TestDryRunLeavesNothing(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		w.invite(owner, "bob@acme.example", doorward.RoleUser)
		before := w.picture()
		list := w.people("ann@acme.example,USER,,,"+stapledBcrypt, "bob@acme.example,USER,,,")
		dry, err := w.on(0).Users.Import(w.Context(), operator, acme.ID, list, true)
		w.ok(err)
		w.unchanged(before)
		for _, email := range []string{"ann@acme.example", "bob@acme.example"} {
			if _, err := w.db.Read().AccountByEmail(w.Context(), email); !errors.Is(err, store.ErrNone) {
				w.Errorf("%s has an account after a dry run: %v", email, err)
			}
		}
		done, err := w.on(0).Users.Import(w.Context(), operator, acme.ID, list, false)
		w.ok(err)
		if diff := cmp.Diff(dry, done); diff != "" || done.Members != 2 {
			w.Errorf("the dry run said something else (-dry +done):\n%s", diff)
		}
	})
}

// TestImportsAtOnce: two lists with people in common, in opposite orders. Into
// one tenant one of them comes; into two both, and everybody has one account.
func TestImportsAtOnce(t *testing.T) {
	onEach(t, func(w *world) {
		const people = 200
		var up, down []string
		for i := range people {
			up = append(up, fmt.Sprintf("p%03d@acme.example,USER,,,%s", i, stapledBcrypt))
			down = append(down, fmt.Sprintf("p%03d@acme.example,USER,,,%s", people-1-i, stapledBcrypt))
		}
		lists := []roster.List{w.people(up...), w.people(down...)}
		acme, _ := w.tenant()
		errs := together(2, func(i int) error {
			_, err := w.on(i).Users.Import(w.Context(), operator, acme.ID, lists[i], false)
			if refused := (*roster.Error)(nil); errors.As(err, &refused) {
				err = doorward.Fail(doorward.CodeAlreadyMember, "")
			}
			return err
		})
		w.ends(errs, tally{"": 1, doorward.CodeAlreadyMember: 1})
		w.members(acme.ID, people+1)

		fresh := make([]roster.List, 2)
		for i, list := range lists {
			for _, p := range list.People {
				p.Email = "new." + p.Email
				fresh[i].People = append(fresh[i].People, p)
			}
		}
		zeta, _ := w.tenant()
		iota, _ := w.tenant()
		done := make([]user.Imported, 2)
		errs = together(2, func(i int) (err error) {
			done[i], err = w.on(i).Users.Import(w.Context(), operator, []string{zeta.ID, iota.ID}[i], fresh[i], false)
			return err
		})
		w.ends(errs, tally{"": 2})
		w.members(zeta.ID, people+1)
		w.members(iota.ID, people+1)
		if n := done[0].Accounts + done[1].Accounts; n != people {
			w.Errorf("%d accounts made for %d people", n, people)
		}
		if len(w.nodes) > 1 {
			if n := w.deadlocks(); n != 0 {
				w.Errorf("%d deadlocks", n)
			}
		}
	})
}

func (w *world) members(tenantID string, want int) {
	w.Helper()
	all, err := w.db.Read().Users(w.Context(), tenantID)
	w.ok(err)
	if len(all) != want {
		w.Errorf("%d members, want %d", len(all), want)
	}
}

// TestImportedHashes: who was somebody elsewhere signs in as there, and has a
// hash of ours from then on.
func TestImportedHashes(t *testing.T) {
	hashes := map[string]string{
		"bcrypt": stapledBcrypt,
		"php":    "$2y$06$rzkPS/i1xtIjuEeqbHVAYeFM2JcwkxoZPZw2dTP/AWOaa.0jDBN9a",
		"scrypt": "$scrypt$ln=14,r=8,p=1$+vn49/b19PPy8fDv7u3s6w$hZ/MDx2Co/P240yeA5bUGCAORzx8HHWM+7ckVjfiafM",
		"pbkdf2": "$pbkdf2-sha256$29000$.vn49/b19PPy8fDv7u3s6w$Hv4NnEud71XJdkFre9JY2ppEXEdfkyg3Spli7LIDxE4",
		"sha512": "$pbkdf2-sha512$25000$.vn49/b19PPy8fDv7u3s6w$tGxph8r9A1uirdwD/0X5Mx6caGeSTU3RMziKcFTdjXL0eAC0Xm1yU8xVfm1xxiAoI8rRPyLkluOd6Z79cyp.VQ",
		"argon2": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$QKHrg5tayLGcN+Y0HVPNaBqykOVLUxlMkZycXE1uWRM",
	}
	onEach(t, func(w *world) {
		acme, _ := w.tenant()
		var rows []string
		for name, hash := range hashes {
			rows = append(rows, name+"@acme.example,USER,,,\""+hash+"\"")
		}
		_, err := w.on(0).Users.Import(w.Context(), operator, acme.ID, w.people(rows...), false)
		w.ok(err)
		for name := range hashes {
			email := name + "@acme.example"
			if got := w.tries(email, staple+"r"); got != doorward.CodeInvalidCredentials {
				w.Errorf("%s with a wrong password: %q", name, got)
			}
			for range 2 {
				p := w.signIn(email, staple)
				if hash := w.account(p).PasswordHash; !strings.HasPrefix(hash, "$argon2id$v=19$m=1024,t=1,p=1$") {
					w.Errorf("%s: the hash after a login is %.20s…", name, hash)
				}
			}
		}
	})
}

// TestImportedWithoutPassword: nothing opens the account, the empty password
// neither, until its owner has set one by mail.
func TestImportedWithoutPassword(t *testing.T) {
	onEach(t, func(w *world) {
		acme, _ := w.tenant()
		_, err := w.on(0).Users.Import(w.Context(), operator, acme.ID, w.people("ann@acme.example,USER,,,"), false)
		w.ok(err)
		hashes := w.on(0).Hashing().Hashes
		for _, guess := range []string{"", " ", first} {
			if got := w.tries("ann@acme.example", guess); got != doorward.CodeInvalidCredentials {
				w.Errorf("with %q: %q", guess, got)
			}
		}
		if got := w.on(0).Hashing().Hashes - hashes; got != 3 {
			w.Errorf("%d hashes for three attempts: the time tells that there is no password", got)
		}
		w.ok(w.on(0).Passwords.Forgot(w.Context(), stranger(0), "ann@acme.example", ""))
		w.ok(failure(w.on(0).Passwords.Reset(w.Context(), stranger(0), w.letter("ann@acme.example"), first, first)))
		if p := w.signIn("ann@acme.example", first); p.TenantID != acme.ID {
			w.Errorf("signed in as %+v", p.User)
		}
	})
}

// TestExportedPeopleComeIn into another installation, with their passwords.
func TestExportedPeopleComeIn(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		bob := w.join(owner, doorward.RoleViewer)
		_, err := w.on(0).Users.Suspend(w.Context(), operator, bob.User)
		w.ok(err)
		cat := w.join(owner, doorward.RoleUser)
		var file bytes.Buffer
		w.ok(w.on(0).Tenants.ExportPeople(w.Context(), operator, acme.ID, true, &file))

		other := newWorld(t, engines[0], noLimits, w.db.Now)
		list, err := roster.Read(&file, roster.JSONLines)
		w.ok(err)
		c, err := other.on(0).Tenants.Create(other.Context(), operator, "Acme", "somebody@example.com")
		other.ok(err)
		done, err := other.on(0).Users.Import(other.Context(), operator, c.Tenant.ID, list, false)
		other.ok(err)
		if done.Members != 3 || done.Unset != 0 {
			w.Errorf("done: %+v", done)
		}
		for email, want := range map[string]doorward.Code{owner.Email: "", cat.Email: "", bob.Email: doorward.CodeMembershipSuspended} {
			if got := other.tries(email, first); got != want {
				w.Errorf("%s signs in there: %q, want %q", email, got, want)
			}
		}
		if p := other.signIn(owner.Email, first); p.Role != doorward.RoleOwner {
			w.Errorf("the OWNER is %s there", p.Role)
		}
	})
}

func TestExport(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		_, token := w.invite(owner, "bob@acme.example", doorward.RoleUser)
		_, stranger := w.tenant()
		hash := w.account(owner).PasswordHash
		for _, hashes := range []bool{false, true} {
			var file bytes.Buffer
			w.ok(w.on(0).Tenants.Export(w.Context(), operator, acme.ID, hashes, &file))
			if got := strings.Contains(file.String(), hash); got != hashes {
				w.Errorf("hashes asked for: %v, and there: %v", hashes, got)
			}
			for _, secret := range []string{token, owner.token.Reveal(), stranger.Email} {
				if strings.Contains(file.String(), secret) {
					w.Errorf("the export has %q in it", secret)
				}
			}
			w.whole(file.Bytes(), hashes)
		}
		err := w.on(0).Tenants.Export(w.Context(), operator, "tnt_none", false, &bytes.Buffer{})
		if code(err) != doorward.CodeNotFound {
			w.Errorf("no tenant: %v", err)
		}
		err = w.on(0).Tenants.Export(w.Context(), owner.Caller, acme.ID, true, &bytes.Buffer{})
		if code(err) != doorward.CodeForbidden {
			w.Errorf("by an OWNER: %v", err)
		}
		full := errors.New("the disk is full")
		if err := w.on(0).Tenants.Export(w.Context(), operator, acme.ID, false, failing{full}); !errors.Is(err, full) {
			w.Errorf("a writer that fails: %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// whole wants a document with all parts, the record of itself included.
func (w *world) whole(text []byte, hashes bool) {
	w.Helper()
	var doc struct {
		Format int
		Tenant struct{ ID, Name, Status string }
		People []struct {
			Email, Role  string
			HasPassword  bool
			PasswordHash string
		}
		Invitations []struct{ Email, Status string }
		AuditEvents []struct {
			Action  string
			Changes []doorward.Change
		}
	}
	w.ok(json.Unmarshal(text, &doc))
	if doc.Format != 1 || doc.Tenant.ID == "" || len(doc.People) != 1 || len(doc.Invitations) != 2 || len(doc.AuditEvents) < 4 {
		w.Fatalf("the document is\n%s", text)
	}
	if p := doc.People[0]; p.Role != "OWNER" || !p.HasPassword || hashes && argon.Known(p.PasswordHash) != nil {
		w.Errorf("the OWNER is %+v", p)
	}
	last := doc.AuditEvents[len(doc.AuditEvents)-1]
	if last.Action != "tenant.export" || len(last.Changes) == 1 != hashes {
		w.Errorf("the last record is %+v", last)
	}
}
