package user_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
	"golang.org/x/text/unicode/norm"
)

// importedPassword is the password of the hashes in this file. The tests of internal/argon name
// the programs that made them.
const (
	importedPassword = "correct horse battery staple"
	importedBcrypt   = "$2b$06$abcdefghijklmnopqrstu.jFo3griMkFdv.q5HFdFZfS6Hp1tC0ES"
)

// Values of the argument dryRun of Import.
const dryRun, notDry = true, false

// people reads a CSV list with these columns.
func people(f *apptest.Fixture, rows ...string) roster.List {
	f.Helper()
	list, err := roster.Read(strings.NewReader("email,role,name,status,passwordHash\n"+strings.Join(rows, "\n")+"\n"), roster.CSV)
	f.NoError(err)
	return list
}

// faults returns the positions and codes of the faults of a refused import.
func faults(f *apptest.Fixture, err error) (all []string) {
	f.Helper()
	var refused *roster.Error
	if !errors.As(err, &refused) {
		f.Fatalf("the error is %v, want faults of the list", err)
	}
	for _, f := range refused.Faults.Listed {
		all = append(all, fmt.Sprintf("%d %s %s", f.Line, f.Column, f.Code))
	}
	return all
}

// snapshot returns everything that an import could change.
func snapshot(f *apptest.Fixture) (all []any) {
	f.Helper()
	ctx, read := f.Context(), f.DB.Read()
	tenants, err := read.TenantPage(ctx, store.TenantFilter{}, doorward.Window{Limit: 1000})
	f.NoError(err)
	for _, t := range tenants.Items {
		f.NoError(read.EachMember(ctx, t.ID, func(m store.Member) error { all = append(all, m); return nil }))
		f.NoError(read.EachInvitation(ctx, t.ID, func(i doorward.Invitation) error { all = append(all, i); return nil }))
		f.NoError(read.EachEvent(ctx, t.ID, func(e doorward.Event) error { all = append(all, e); return nil }))
	}
	return all
}

func wantUnchanged(f *apptest.Fixture, before []any) {
	f.Helper()
	if diff := cmp.Diff(before, snapshot(f)); diff != "" {
		f.Errorf("the import left changes:\n%s", diff)
	}
}

func TestImport(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		_, elsewhere := f.Tenant()
		inv, token := f.Invite(owner, "bob@acme.example", doorward.RoleUser)
		done, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, people(f,
			"eve@acme.example,VIEWER,,suspended,"+importedBcrypt,
			"bob@acme.example,ADMIN,Bob,,"+importedBcrypt,
			"cat@acme.example,USER,Cat,,",
			elsewhere.User.Email+",USER,,,"+importedBcrypt,
		), notDry)
		f.NoError(err)
		kept := []roster.Person{{Line: 5, Email: elsewhere.User.Email, Role: doorward.RoleUser, Status: doorward.UserActive, PasswordHash: importedBcrypt}}
		if diff := cmp.Diff(user.Imported{Members: 4, Accounts: 3, WithoutPassword: 1, PasswordKept: kept, Invitations: 1}, done); diff != "" {
			f.Errorf("result (-want +got):\n%s", diff)
		}

		// Lists keep the order of the file.
		found, err := f.Node(0).Users.List(f.Context(), owner.Caller, user.Filter{}, doorward.Window{Limit: 9})
		f.NoError(err)
		var listed []string
		for _, u := range found.Items[1:] {
			listed = append(listed, u.Email)
		}
		if diff := cmp.Diff([]string{"eve@acme.example", "bob@acme.example", "cat@acme.example", elsewhere.User.Email}, listed); diff != "" {
			f.Errorf("the list (-want +got):\n%s", diff)
		}

		for email, want := range map[string]doorward.Code{
			"bob@acme.example": "", "eve@acme.example": doorward.CodeMembershipSuspended, "cat@acme.example": doorward.CodeInvalidCredentials,
			elsewhere.User.Email: doorward.CodeInvalidCredentials,
		} {
			if got := f.TryLogin(email, importedPassword); got != want {
				f.Errorf("%s signs in with the imported password: %q, want %q", email, got, want)
			}
		}
		if got := f.TryLogin(elsewhere.User.Email, apptest.FirstPassword); got != "" {
			f.Errorf("a login with the password of the existing account: %q", got)
		}
		bob := f.SignIn("bob@acme.example", importedPassword).User
		if bob.Role != doorward.RoleAdmin || bob.Name != "Bob" || bob.TenantID != acme.ID {
			f.Errorf("Bob is %+v", bob)
		}
		_, err = f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword, apptest.FirstPassword)
		if apptest.Code(err) != doorward.CodeInvitationRevoked {
			f.Errorf("the invitation %s of an imported person: %v", inv.ID, err)
		}
		wantRecorded(f, acme.ID, bob.ID, 4)
	})
}

// wantRecorded fails unless the trail has one event per imported person and one with
// their number.
func wantRecorded(f *apptest.Fixture, tenantID, bob string, people int) {
	f.Helper()
	events, err := storetest.Events(f.Context(), f.DB.Read(), tenantID)
	f.NoError(err)
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
			f.Errorf("recorded for %s (-want +got):\n%s", id, diff)
		}
	}
	if len(targets) != people+1 {
		f.Errorf("%d records of an import of %d people", len(targets), people)
	}
}

// TestImportAllOrNothing: one bad row stops the whole import, whether the fault shows in the
// list or in the tenant.
func TestImportAllOrNothing(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		frank := f.Join(owner, doorward.RoleUser)
		before := snapshot(f)
		list := people(f,
			"ann@acme.example,USER,,,",
			"ann@acme.example,USER,,,",
			frank.User.Email+",ADMIN,,,",
			"bob@acme.example,BOSS,,,",
			"cat@acme.example,USER,,,",
		)
		_, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, list, notDry)
		if diff := cmp.Diff([]string{"3 email duplicate", "4 email already_member", "5 role invalid"}, faults(f, err)); diff != "" {
			f.Errorf("faults (-want +got):\n%s", diff)
		}
		wantUnchanged(f, before)

		for id, want := range map[string]doorward.Code{"tnt_none": doorward.CodeNotFound, "": doorward.CodeNotFound} {
			if _, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, id, people(f, "ann@acme.example,USER,,,"), notDry); apptest.Code(err) != want {
				f.Errorf("into the tenant %q: %v, want %s", id, err, want)
			}
		}
		_, err = f.Node(0).Users.Import(f.Context(), owner.Caller, acme.ID, people(f, "ann@acme.example,USER,,,"), notDry)
		if apptest.Code(err) != doorward.CodeForbidden {
			f.Errorf("by an OWNER: %v", err)
		}
	})
}

func TestImportIntoAClosingTenant(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		_, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
		f.NoError(err)
		before := snapshot(f)
		_, err = f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, people(f, "ann@acme.example,USER,,,"), notDry)
		if apptest.Code(err) != doorward.CodeTenantClosing {
			f.Errorf("the error is %v", err)
		}
		wantUnchanged(f, before)
	})
}

// TestDryRunLeavesNothing: a dry run writes nothing, and returns the same result as the
// import.
func TestDryRunLeavesNothing(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		f.Invite(owner, "bob@acme.example", doorward.RoleUser)
		before := snapshot(f)
		list := people(f, "ann@acme.example,USER,,,"+importedBcrypt, "bob@acme.example,USER,,,")
		dry, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, list, dryRun)
		f.NoError(err)
		wantUnchanged(f, before)
		for _, email := range []string{"ann@acme.example", "bob@acme.example"} {
			if _, err := f.DB.Read().AccountByEmail(f.Context(), email); !errors.Is(err, store.ErrNone) {
				f.Errorf("%s has an account after a dry run: %v", email, err)
			}
		}
		done, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, list, notDry)
		f.NoError(err)
		if diff := cmp.Diff(dry, done); diff != "" || done.Members != 2 {
			f.Errorf("the dry run returned another result (-dry +import):\n%s", diff)
		}
	})
}

// TestImportsAtOnce: two lists that share people, in opposite orders. In one
// tenant only one succeeds; in two tenants both do, with one account per person.
func TestImportsAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const size = 200
		var up, down []string
		for i := range size {
			up = append(up, fmt.Sprintf("p%03d@acme.example,USER,,,%s", i, importedBcrypt))
			down = append(down, fmt.Sprintf("p%03d@acme.example,USER,,,%s", size-1-i, importedBcrypt))
		}
		lists := []roster.List{people(f, up...), people(f, down...)}
		acme, _ := f.Tenant()
		errs := apptest.Concurrently(2, func(i int) error {
			_, err := f.Node(i).Users.Import(f.Context(), apptest.Operator, acme.ID, lists[i], notDry)
			if refused := (*roster.Error)(nil); errors.As(err, &refused) {
				err = doorward.Fail(doorward.CodeAlreadyMember, "")
			}
			return err
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeAlreadyMember: 1})
		wantMembers(f, acme.ID, size+1)

		fresh := make([]roster.List, 2)
		for i, list := range lists {
			for _, p := range list.People {
				p.Email = "new." + p.Email
				fresh[i].People = append(fresh[i].People, p)
			}
		}
		zeta, _ := f.Tenant()
		theta, _ := f.Tenant()
		done := make([]user.Imported, 2)
		errs = apptest.Concurrently(2, func(i int) (err error) {
			done[i], err = f.Node(i).Users.Import(f.Context(), apptest.Operator, []string{zeta.ID, theta.ID}[i], fresh[i], notDry)
			return err
		})
		f.WantCodes(errs, apptest.Codes{"": 2})
		wantMembers(f, zeta.ID, size+1)
		wantMembers(f, theta.ID, size+1)
		if n := done[0].Accounts + done[1].Accounts; n != size {
			f.Errorf("%d accounts made for %d people", n, size)
		}
		f.WantNoDeadlocks()
	})
}

func wantMembers(f *apptest.Fixture, tenantID string, want int) {
	f.Helper()
	page, err := f.DB.Read().UserPage(f.Context(), tenantID, store.UserFilter{}, doorward.Window{Limit: 1000})
	f.NoError(err)
	if len(page.Items) != want {
		f.Errorf("%d members, want %d", len(page.Items), want)
	}
}

// TestImportedHashes: an imported person signs in with the old password, and the
// login replaces the hash with Doorward's own.
func TestImportedHashes(t *testing.T) {
	hashes := map[string]string{
		"bcrypt": importedBcrypt,
		"php":    "$2y$06$rzkPS/i1xtIjuEeqbHVAYeFM2JcwkxoZPZw2dTP/AWOaa.0jDBN9a",
		"scrypt": "$scrypt$ln=14,r=8,p=1$+vn49/b19PPy8fDv7u3s6w$hZ/MDx2Co/P240yeA5bUGCAORzx8HHWM+7ckVjfiafM",
		"pbkdf2": "$pbkdf2-sha256$29000$.vn49/b19PPy8fDv7u3s6w$Hv4NnEud71XJdkFre9JY2ppEXEdfkyg3Spli7LIDxE4",
		"sha512": "$pbkdf2-sha512$25000$.vn49/b19PPy8fDv7u3s6w$tGxph8r9A1uirdwD/0X5Mx6caGeSTU3RMziKcFTdjXL0eAC0Xm1yU8xVfm1xxiAoI8rRPyLkluOd6Z79cyp.VQ",
		"argon2": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$QKHrg5tayLGcN+Y0HVPNaBqykOVLUxlMkZycXE1uWRM",
	}
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, _ := f.Tenant()
		var rows []string
		for name, hash := range hashes {
			rows = append(rows, name+"@acme.example,USER,,,\""+hash+"\"")
		}
		_, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, people(f, rows...), notDry)
		f.NoError(err)
		for name := range hashes {
			email := name + "@acme.example"
			if got := f.TryLogin(email, importedPassword+"r"); got != doorward.CodeInvalidCredentials {
				f.Errorf("%s with a wrong password: %q", name, got)
			}
			for range 2 {
				p := f.SignIn(email, importedPassword)
				if hash := f.Account(p).PasswordHash; !strings.HasPrefix(hash, "$argon2id$v=19$m=1024,t=1,p=1$") {
					f.Errorf("%s: the hash after a login is %.20s…", name, hash)
				}
			}
		}
	})
}

// TestImportedHashesOfTypedText: elsewhere passwords were hashed as people typed them, also those that
// NFC changes. The first login replaces the hash by one over NFC, so that both ways of typing work.
func TestImportedHashesOfTypedText(t *testing.T) {
	accounts := map[string]struct{ typed, hash string }{ // hashlib.pbkdf2_hmac (Python)
		"ohm":        {"twelve times 5 \u2126", "$pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg$G9JAhfcEqxgpD1.nQYJ8zVkQ1SP2MyzIZX0EaJ/sb8s"},
		"vietnamese": {"ma\u0323\u0302t kha\u0302\u0309u cu\u0309a to\u0302i", "$pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg$6Nfp0bw/qrJKW/76T4wL9v6CQo5Jtf2Un7cQWmvg3MQ"},
		"hindi":      {"\u0958\u0959\u095a \u0928\u093f\u091c\u0940 password", "$pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg$x8pOBXHzergk.XTe6jOL8lQDzF2RX7NfgsQTl95oUlI"},
	}
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, _ := f.Tenant()
		vietnamese := accounts["vietnamese"].typed
		own, err := argon.NewPool(argon.Params{MemoryKiB: 1024, Time: 1, Parallelism: 1}, argon.Options{}).Hash(f.Context(), vietnamese)
		f.NoError(err)
		accounts["argon2id"] = struct{ typed, hash string }{vietnamese, own} // by the parameters of this node
		var rows []string
		for name, a := range accounts {
			rows = append(rows, name+"@acme.example,USER,,,\""+a.hash+"\"")
		}
		_, err = f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, people(f, rows...), notDry)
		f.NoError(err)
		for name, a := range accounts {
			email := name + "@acme.example"
			if got := f.TryLogin(email, norm.NFC.String(a.typed)); got != doorward.CodeInvalidCredentials {
				f.Errorf("%s: the hash is of another text than was typed: %q", name, got)
			}
			for _, text := range []string{a.typed, norm.NFC.String(a.typed), a.typed} {
				f.SignIn(email, text)
			}
		}
	})
}

// TestImportedWithoutPassword: the account accepts no password, not even the empty
// one, until its owner sets one by mail.
func TestImportedWithoutPassword(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, _ := f.Tenant()
		_, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, people(f, "ann@acme.example,USER,,,"), notDry)
		f.NoError(err)
		hashes := f.Node(0).Hashing().Hashes
		for _, guess := range []string{"", " ", apptest.FirstPassword} {
			if got := f.TryLogin("ann@acme.example", guess); got != doorward.CodeInvalidCredentials {
				f.Errorf("with %q: %q", guess, got)
			}
		}
		if got := f.Node(0).Hashing().Hashes - hashes; got != 3 {
			f.Errorf("%d hashes for three attempts: the response time reveals that there is no password", got)
		}
		f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(0), "ann@acme.example", ""))
		f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), f.MailToken("ann@acme.example"), apptest.FirstPassword, apptest.FirstPassword)))
		if p := f.SignIn("ann@acme.example", apptest.FirstPassword); p.User.TenantID != acme.ID {
			f.Errorf("signed in as %+v", p.User)
		}
	})
}
