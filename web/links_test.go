package web_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/storetest"
)

// Each link that is mailed is used in each state that its account, its tenant and its mail may have
// got into meanwhile. A row of the table says what the endpoint answers, and which rows of the
// database have changed then: none after a refusal, but that of a code that it ends. The page that the
// link opens answers the same.

// mailedLink is a kind of link.
type mailedLink struct {
	name    string
	request string
	page    string        // path of the form that the page sends
	life    time.Duration // of the link
	// prepare makes the people of the link, and mail has it mailed, again each time. It returns the code.
	prepare func(*linkCase)
	mail    func(*linkCase) string
	// ready gets what the link asks for beside the code, after the state has come about, if that can be had.
	ready func(*linkCase)
	// body is what is sent with the code, and done checks what a link that works has done.
	body func(*linkCase) m
	done func(*linkCase)
	rows []linkRow
	// byPage is what its page changes when the link works, if that is more than the endpoint does.
	byPage string
}

// linkRow is one state and the right answer in it.
type linkRow struct {
	state, answer string
	changed       string // see changedRows
}

// linkTenants are the two tenants of a case. The asker is an ADMIN of Acme, who sends invitations
// and asks for resets.
type linkTenants struct {
	acme, globex *doorwardtest.Tenant
	asker        *doorwardtest.Person
}

// linkCase is one link in one state. Ann is a member of both tenants, except for invitations: they
// are from Acme to somebody in Globex, or to somebody new. In names of states "there" is Acme.
type linkCase struct {
	*server
	linkTenants
	t            *testing.T
	db           *sql.DB
	rows         string // see allRows
	link         mailedLink
	n            int
	ann          *doorwardtest.Person
	to           string // the mailbox of the link, and ann's address
	next         string // a free address
	other        string // the address of ann's latest change that she doesn't have
	gives        string // the address that the link gives to ann
	invitation   string // its id
	code, secret string // secret is the password that is sent
	by           []opt
	app          *authenticator   // ann's second factor
	own          string           // a session of ann that was opened later; "": her first
	challenge    string           // for an answer by the factor
	before       map[rowOf]string // the rows before the next use
}

// as sends the session of the person.
func (c *linkCase) as(p *doorwardtest.Person) { c.by = []opt{as(p.Token())} }

// must ends the test at an error.
func (c *linkCase) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// inGlobex makes ann a member of Globex, with a session there.
func (c *linkCase) inGlobex() {
	c.ann = c.globex.Join(c.to, "USER")
}

// inBoth makes ann a member of both tenants, with a session in each.
func (c *linkCase) inBoth() {
	c.inGlobex()
	c.addMember(c.t, c.acme, c.ann, "USER")
	c.send(c.t, loginPath, m{"email": c.to, "password": password, "tenantId": c.acme.ID}).ok(http.StatusOK)
}

func (c *linkCase) inBothWithFactor() {
	c.inBoth()
	c.app = c.enrolTOTP(c.t, c.ann.Token())
}

func (c *linkCase) inGlobexWithFactor() {
	c.inGlobex()
	c.app = c.enrolTOTP(c.t, c.ann.Token())
}

// token returns ann's session.
func (c *linkCase) token() string { return cmp.Or(c.own, c.ann.Token()) }

// signIn sends a new session of ann, or none where she can't sign in any more.
func (c *linkCase) signIn() {
	c.by = nil
	account, err := c.Node.DB.Read().Account(c.t.Context(), c.ann.ID)
	if errors.Is(err, store.ErrNone) {
		return
	}
	c.must(err)
	for _, tenant := range []*doorwardtest.Tenant{c.acme, c.globex} {
		if a := c.send(c.t, loginPath, m{"email": account.Email, "password": c.secret, "tenantId": tenant.ID}); a.status == http.StatusOK {
			c.by = []opt{as(a.text("token"))}
			return
		}
	}
}

// mailConfirmTo is mailConfirm, and sends ann's first session with the code.
func (c *linkCase) mailConfirmTo() string {
	code := c.mailConfirm()
	c.as(c.ann)
	return code
}

// mailInvitationSecond is mailInvitation to somebody who has a factor, which is then asked for.
func (c *linkCase) mailInvitationSecond() string {
	code := c.mailInvitation()
	c.askForFactorOf(code)
	return code
}

func (c *linkCase) askForFactor() { c.askForFactorOf(c.code) }

// askForFactorOf accepts by the password, which begins a challenge while the invitation is good.
func (c *linkCase) askForFactorOf(code string) {
	a := c.send(c.t, "POST /api/v2/auth/accept-invitation", m{"token": code, "password": c.secret})
	if a.text("code") == "mfa_required" {
		c.challenge = a.text("challenge")
	}
}

func factorCode(c *linkCase) m { return m{"challenge": c.challenge, "code": c.app.code(c.t)} }

func (c *linkCase) mailInvitation() string {
	if c.invitation == "" {
		c.invitation = c.send(c.t, invitePath, m{"email": c.to, "role": "USER"}, as(c.asker.Token())).ok(http.StatusCreated).text("id")
		return c.server.code(c.t, c.to)
	}
	c.Advance(time.Minute)
	c.resend(c.t, c.asker.Token(), c.invitation).ok(http.StatusOK)
	return c.server.code(c.t, c.to)
}

func (c *linkCase) mailReset() string { return c.forgot(c.t, c.to) }

// mailChange requests a change of ann's address to the next one, and returns the codes that confirm
// and undo it.
func (c *linkCase) mailChange() (confirm, undo string) {
	next := c.next
	c.next, c.other = "again-"+next, next
	c.send(c.t, emailPath, m{"email": next}, as(c.token())).ok(http.StatusAccepted)
	return c.server.code(c.t, next), c.server.code(c.t, c.to)
}

// changeAddress gives ann the next address.
func (c *linkCase) changeAddress() {
	confirm, _ := c.mailChange()
	c.send(c.t, confirmEmailPath, m{"token": confirm}, as(c.token())).ok(http.StatusNoContent)
	c.deliver(c.t)
	c.other, c.to = c.to, c.other
}

func (c *linkCase) mailConfirm() string { confirm, _ := c.mailChange(); return confirm }

// mailUndo returns the code that undoes a requested change.
func (c *linkCase) mailUndo() string {
	_, undo := c.mailChange()
	c.other = c.to
	return undo
}

// mailUndoConfirmed returns the code that undoes a confirmed change.
func (c *linkCase) mailUndoConfirmed() string {
	c.changeAddress()
	return c.server.code(c.t, c.other)
}

// giveWord gives the word of the person's tenant that ann's factors may be removed.
func (c *linkCase) giveWord(by *doorwardtest.Person) {
	c.send(c.t, "POST /api/v2/users/"+c.ann.ID+"/mfa/reset", nil, as(by.Token())).ok(http.StatusAccepted)
}

// mailFactorReset has both tenants give their word, the later of which counts. The words end
// ann's sessions, so that she signs in again.
func (c *linkCase) mailFactorReset() string {
	c.giveWord(c.asker)
	c.deliver(c.t) // two mails at once arrive in any order
	c.giveWord(c.globex.Owner)
	code := c.server.code(c.t, c.to)
	if c.own == "" {
		asked := c.send(c.t, loginPath, m{"email": c.to, "password": password, "tenantId": c.globex.ID}).fails(http.StatusForbidden, "mfa_required")
		c.own = c.send(c.t, secondPath, m{"challenge": asked.text("challenge"), "code": c.app.code(c.t)}).ok(http.StatusOK).text("token")
	}
	return code
}

func onlyToken(*linkCase) m { return m{} }

func newPassword(c *linkCase) m {
	c.secret = "three old paper boats"
	return m{"password": c.secret, "confirmPassword": c.secret}
}

func ownPassword(c *linkCase) m { return m{"password": c.secret} }

// isMember checks that the invited person is in Acme now.
func (c *linkCase) isMember() {
	c.t.Helper()
	inv, err := c.Node.DB.Read().Invitation(c.t.Context(), c.invitation)
	c.must(err)
	account, err := c.Node.DB.Read().AccountByEmail(c.t.Context(), inv.Email)
	c.must(err)
	member, err := c.Node.DB.Read().User(c.t.Context(), c.acme.ID, account.ID)
	c.must(err)
	if inv.State != doorward.InvitationAccepted || member.Role != doorward.RoleUser || member.Status != doorward.UserActive || account.PasswordHash == "" {
		c.t.Errorf("the invitation is %s, the member %s %s", inv.State, member.Status, member.Role)
	}
}

// hasPassword checks that the password is the one that was sent. In a tenant that is frozen or closing
// nobody signs in.
func (c *linkCase) hasPassword() {
	c.t.Helper()
	if a := c.login(c.t, c.to, c.secret); a.status == http.StatusUnauthorized {
		c.t.Errorf("a login with the new password: %s", a.body)
	}
}

// hasAddress checks that ann has the address that the link was to give.
func (c *linkCase) hasAddress() {
	c.t.Helper()
	account, err := c.Node.DB.Read().Account(c.t.Context(), c.ann.ID)
	c.must(err)
	if account.Email != c.gives {
		c.t.Errorf("the address is %s, want %s", account.Email, c.gives)
	}
}

// hasNoFactor checks that a login asks for none.
func (c *linkCase) hasNoFactor() {
	c.t.Helper()
	if a := c.login(c.t, c.to, c.secret); a.text("code") == "mfa_required" {
		c.t.Error("a login still asks for the factor")
	}
}

// use sends the code to the endpoint and returns the answer in short form.
func (c *linkCase) use() string {
	c.t.Helper()
	body := c.link.body(c)
	body["token"] = c.code
	a := c.send(c.t, c.link.request, body, c.by...)
	return strings.TrimSpace(fmt.Sprint(a.status, " ", a.text("code")))
}

// usePage is use by the form of the link's page. It returns the status.
func (c *linkCase) usePage() string {
	c.t.Helper()
	form := url.Values{"token": {c.code}}
	for name, value := range c.link.body(c) {
		form.Set(name, value.(string))
	}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.URL+c.link.page, strings.NewReader(form.Encode()))
	c.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, change := range c.by {
		change(req)
	}
	res, err := c.client.Do(req)
	c.must(err)
	c.must(res.Body.Close())
	return fmt.Sprint(res.StatusCode)
}

// tenantStates are what may happen between a mail and the use of its link and would disturb other
// cases: to the tenants, to the asker, to the clock.
var tenantStates = map[string]func(*linkCase){
	"late":         func(c *linkCase) { c.Advance(c.link.life) },
	"just in time": func(c *linkCase) { c.Advance(c.link.life - time.Second) },

	"frozen there":      func(c *linkCase) { c.freeze(c.t, c.acme.ID) },
	"frozen everywhere": func(c *linkCase) { c.freeze(c.t, c.acme.ID); c.freeze(c.t, c.globex.ID) },
	"thawed everywhere": func(c *linkCase) {
		c.freeze(c.t, c.acme.ID)
		c.freeze(c.t, c.globex.ID)
		for _, id := range []string{c.acme.ID, c.globex.ID} {
			_, err := c.Node.App.Tenants.Thaw(c.t.Context(), doorward.OperatorAtTerminal(), id)
			c.must(err)
		}
	},
	"closing there":        func(c *linkCase) { c.close(c.acme) },
	"closing everywhere":   func(c *linkCase) { c.close(c.acme); c.close(c.globex) },
	"destroyed there":      func(c *linkCase) { c.destroy(c.acme) },
	"destroyed elsewhere":  func(c *linkCase) { c.destroy(c.globex) },
	"destroyed everywhere": func(c *linkCase) { c.destroy(c.acme); c.destroy(c.globex) },

	"word lapsed there": func(c *linkCase) {
		c.Advance(doorward.FactorWordLife - time.Hour)
		c.globex.Owner.Login()
		c.giveWord(c.globex.Owner)
		c.code = c.server.code(c.t, c.to)
		c.Advance(2 * time.Hour)
	},

	"asker demoted":   func(c *linkCase) { c.patchUser(c.t, c.acme.Owner, c.asker.ID, m{"role": "USER"}).ok(http.StatusOK) },
	"asker suspended": func(c *linkCase) { c.suspend(c.t, c.acme.ID, c.asker.ID) },
	"asker resumed": func(c *linkCase) {
		c.suspend(c.t, c.acme.ID, c.asker.ID)
		c.patchUser(c.t, c.acme.Owner, c.asker.ID, m{"status": "active"}).ok(http.StatusOK)
	},
	"asker removed": func(c *linkCase) { c.remove(c.acme, c.asker) },
	"asker erased":  func(c *linkCase) { c.erase(c.asker.Email) },
	"domain refused": func(c *linkCase) {
		c.patchTenant(c.t, c.acme.Owner.Token(), m{"settings": m{"allowedEmailDomains": []string{"allowed.example"}}}).ok(http.StatusOK)
	},
}

// linkStates are what else may happen. These cases share their tenants.
var linkStates = map[string]func(*linkCase){
	"plain":             func(*linkCase) {},
	"own session":       func(c *linkCase) { c.by = []opt{as(c.token())} },
	"another's session": func(c *linkCase) { c.as(c.asker) },
	"wrong password":    func(c *linkCase) { c.secret = "wrong password" },
	"used":              func(c *linkCase) { c.use() },
	"replaced":          func(c *linkCase) { c.link.mail(c) },
	"replaced and used": func(c *linkCase) {
		old := c.code
		c.code = c.link.mail(c)
		c.use()
		c.code = old
	},

	"suspended there":      func(c *linkCase) { c.suspend(c.t, c.acme.ID, c.ann.ID) },
	"suspended elsewhere":  func(c *linkCase) { c.suspend(c.t, c.globex.ID, c.ann.ID) },
	"suspended everywhere": func(c *linkCase) { c.suspendEverywhere() },
	"resumed everywhere": func(c *linkCase) {
		c.suspendEverywhere()
		c.patchUser(c.t, c.acme.Owner, c.ann.ID, m{"status": "active"}).ok(http.StatusOK)
		c.patchUser(c.t, c.globex.Owner, c.ann.ID, m{"status": "active"}).ok(http.StatusOK)
	},
	"removed there":      func(c *linkCase) { c.remove(c.acme, c.ann) },
	"removed elsewhere":  func(c *linkCase) { c.remove(c.globex, c.ann) },
	"removed everywhere": func(c *linkCase) { c.remove(c.acme, c.ann); c.remove(c.globex, c.ann) },
	"left everywhere": func(c *linkCase) {
		for _, tenant := range []*doorwardtest.Tenant{c.acme, c.globex} {
			c.send(c.t, "DELETE /api/v2/auth/memberships/"+tenant.ID, nil, as(c.token())).ok(http.StatusNoContent)
		}
	},
	"erased": func(c *linkCase) { c.erase(c.to) },

	"revoked": func(c *linkCase) {
		c.send(c.t, "DELETE /api/v2/invitations/"+c.invitation, nil, as(c.asker.Token())).ok(http.StatusNoContent)
	},
	"account meanwhile":  func(c *linkCase) { c.globex.Join(c.to, "USER") },
	"imported meanwhile": func(c *linkCase) { c.importPerson(c.to) },

	"new password": func(c *linkCase) {
		c.secret = "three old paper boats"
		c.send(c.t, changePath, m{"currentPassword": password, "password": c.secret, "confirmPassword": c.secret}, as(c.token())).ok(http.StatusNoContent)
	},
	"other sessions ended": func(c *linkCase) {
		c.send(c.t, "DELETE /api/v2/sessions", nil, as(c.token())).ok(http.StatusNoContent)
	},
	"new address":                      (*linkCase).changeAddress,
	"new address, own session":         func(c *linkCase) { c.changeAddress(); c.as(c.ann) },
	"own session, suspended elsewhere": func(c *linkCase) { c.as(c.ann); c.suspend(c.t, c.globex.ID, c.ann.ID) },
	"own session, used":                func(c *linkCase) { c.as(c.ann); c.use() },
	"change undone": func(c *linkCase) {
		c.send(c.t, undoPath, m{"token": c.server.code(c.t, c.to)}).ok(http.StatusNoContent)
	},
	"word refused": func(c *linkCase) {
		c.send(c.t, "DELETE /api/v2/auth/factors/reset", nil, as(c.token())).ok(http.StatusNoContent)
	},
	"joined meanwhile": func(c *linkCase) { c.joinAnother() },
	"address taken":    func(c *linkCase) { c.globex.Join(c.gives, "USER") },
}

// joinAnother makes ann a member of a third tenant.
func (c *linkCase) joinAnother() {
	third := c.Tenant(fmt.Sprintf("initech%d", c.n))
	code := c.invite(c.t, third.Owner, c.to, "USER")
	c.send(c.t, "POST /api/v2/auth/accept-invitation", m{"token": code}, as(c.token())).ok(http.StatusOK)
}

func (c *linkCase) suspendEverywhere() {
	c.suspend(c.t, c.acme.ID, c.ann.ID)
	c.suspend(c.t, c.globex.ID, c.ann.ID)
}

func (c *linkCase) remove(from *doorwardtest.Tenant, who *doorwardtest.Person) {
	c.send(c.t, "DELETE /api/v2/users/"+who.ID, nil, as(from.Owner.Token())).ok(http.StatusOK)
}

func (c *linkCase) erase(address string) {
	_, err := c.Node.App.Users.EraseAddress(c.t.Context(), doorward.OperatorAtTerminal(), address)
	c.must(err)
}

func (c *linkCase) close(tenant *doorwardtest.Tenant) {
	_, err := c.Node.App.Tenants.CloseFor(c.t.Context(), doorward.OperatorAtTerminal(), tenant.ID)
	c.must(err)
}

// destroy closes the tenant and destroys its data, without the hold, after which the link would be
// late, too.
func (c *linkCase) destroy(tenant *doorwardtest.Tenant) {
	c.close(tenant)
	c.must(c.Node.App.Access.Upkeep(c.t.Context(), func(tx *store.Tx) error {
		_, restoreErr := tx.RestoreTenant(c.t.Context(), tenant.ID)
		_, err := tx.CloseTenant(c.t.Context(), tenant.ID, tx.Now)
		return errors.Join(restoreErr, err)
	}))
	c.must(c.Node.App.Tenants.Sweep(c.t.Context()))
}

func (c *linkCase) importPerson(email string) {
	list, err := roster.Read(strings.NewReader("email,role\n"+email+",VIEWER\n"), roster.CSV)
	c.must(err)
	_, err = c.Node.App.Users.Import(c.t.Context(), doorward.OperatorAtTerminal(), c.acme.ID, list, false)
	c.must(err)
}

// notCompared are tables that a request changes whatever it does: counters, what nodes tell each
// other, and the trail's own bookkeeping.
var notCompared = []string{"attempts", "throttles", "inbox", "changes", "change_position", "nodes", "turns", "audit_chains", "decisions"}

// notComparedColumns are written to take a lock, by any use of a session, or by a sweep.
var notComparedColumns = []string{"revision", "last_seen_at", "swept_epoch"}

// allRows returns a query for the rows of all tables that are compared: the name of the table, the
// number of the row, its text. Events of refusals are left out.
func allRows(t *testing.T, db *sql.DB) string {
	t.Helper()
	var tables []string
	for table, columns := range columnsOf(t, db) {
		if slices.Contains(notCompared, table) {
			continue
		}
		query := fmt.Sprintf(`SELECT '%s', rowid, %s FROM %[1]s`, table, strings.Join(columns, ` || ' ' || `))
		if table == "events" { // most of the rows, and none of a link changes one
			query = `SELECT 'events', rowid, '' FROM events WHERE outcome = 'done'`
		}
		tables = append(tables, query)
	}
	return strings.Join(tables, " UNION ALL ")
}

// columnsOf returns the columns that are compared, by table, as expressions of SQL.
func columnsOf(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	found, err := db.QueryContext(t.Context(), `SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var table, column string
		if err := found.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(notComparedColumns, column) {
			all[table] = append(all[table], "ifnull("+column+", 'NULL')")
		}
	}
	return all
}

// rowOf identifies a row.
type rowOf struct {
	table  string
	number int64
}

func (c *linkCase) readRows() map[rowOf]string {
	c.t.Helper()
	// As the sweep does, which would delete expired sessions, too.
	_, err := c.db.ExecContext(c.t.Context(), `DELETE FROM sessions WHERE epoch < (SELECT session_epoch FROM tenants WHERE id = tenant_id)`)
	c.must(err)
	found, err := c.db.QueryContext(c.t.Context(), c.rows)
	c.must(err)
	defer found.Close()
	all := map[rowOf]string{}
	for found.Next() {
		var row rowOf
		var text string
		c.must(found.Scan(&row.table, &row.number, &text))
		all[row] = text
	}
	c.must(found.Err())
	return all
}

// changedRows says how many rows of each table were added, deleted and changed: "events+1 sessions-2
// users~1".
func changedRows(before, after map[rowOf]string) string {
	counts := map[string]int{}
	for row, text := range before {
		if now, is := after[row]; !is {
			counts[row.table+"-"]++
		} else if now != text {
			counts[row.table+"~"]++
		}
	}
	for row := range after {
		if _, was := before[row]; !was {
			counts[row.table+"+"]++
		}
	}
	var all []string
	for _, change := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprint(change, counts[change]))
	}
	return strings.Join(all, " ")
}

// linkCases makes the cases of a link on a server of their own.
type linkCases struct {
	*server
	t      *testing.T
	db     *sql.DB
	rows   string // see allRows
	link   mailedLink
	n      int
	shared *linkTenants // nil: none, or the clock was moved
}

// begin makes the people of a case, has the link mailed, and brings it into the state.
func (l *linkCases) begin(state string) *linkCase {
	l.t.Helper()
	l.n++
	l.sweep(l.Node.App.Accounts.Sweep) // of the cases before
	c := &linkCase{server: l.server, t: l.t, db: l.db, rows: l.rows, link: l.link, n: l.n, secret: password}
	change, isShared := linkStates[state]
	if !isShared {
		if change = tenantStates[state]; change == nil {
			l.t.Fatalf("there is no state %q", state)
		}
	}
	if !isShared || l.shared == nil {
		l.shared = l.newTenants()
	}
	c.linkTenants = *l.shared
	if !isShared {
		l.shared = nil
	}
	c.to, c.next = fmt.Sprintf("ann%d@people.example", l.n), fmt.Sprintf("next%d@people.example", l.n)
	l.link.prepare(c)
	c.code = l.link.mail(c)
	c.gives = c.other
	change(c)
	if l.link.ready != nil {
		l.link.ready(c)
	}
	l.deliver(l.t)
	l.sweep(l.Node.App.Mail.Sweep)
	return c
}

// sweep does what the node does by itself, at any moment, so that it doesn't between two readings of the rows.
func (l *linkCases) sweep(do func(context.Context) error) {
	l.t.Helper()
	if err := do(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *linkCases) newTenants() *linkTenants {
	acme, globex := l.Tenant(fmt.Sprintf("acme%d", l.n)), l.Tenant(fmt.Sprintf("globex%d", l.n))
	return &linkTenants{acme, globex, acme.Join(fmt.Sprintf("asker%d@people.example", l.n), "ADMIN")}
}

// try uses the link, or sends the form of its page, and returns the answer and which rows that has
// changed, also by the mails that it sends.
func (c *linkCase) try(use func() string) (answer, changed string) {
	c.t.Helper()
	if c.before == nil {
		c.before = c.readRows()
	}
	answer = use()
	c.deliver(c.t)
	after := c.readRows()
	changed = changedRows(c.before, after)
	c.before = after
	return answer, changed
}

// pageAnswer is the answer of the page where the endpoint answers in this way.
func (l mailedLink) pageAnswer(answer string) string {
	switch status, code, _ := strings.Cut(answer, " "); {
	case code == "":
		return "303"
	case l.page == "/accept/join" && (code == "unauthenticated" || code == "wrong_account"): // it asks for the password instead
		return "422"
	case code == "unauthenticated": // it leads to the sign-in
		return "303"
	default:
		return status
	}
}

// alsoByPage are the states in which a link that works is used once more, by its page. After a
// refusal the page is asked in each state.
var alsoByPage = []string{"plain", "own session", "another's session"}

func TestMailedLinks(t *testing.T) {
	for _, link := range mailedLinks {
		t.Run(link.name, func(t *testing.T) {
			t.Parallel()
			dsn := dbtest.SQLite(t)
			d, db := start(t, doorwardtest.Database(dsn), masterKey(t)), storetest.Raw(t, dsn)
			cases := linkCases{server: d, t: t, db: db, rows: allRows(t, db), link: link}
			for _, row := range link.rows {
				c := cases.begin(row.state)
				c.want(row, row.answer, c.use)
				if !strings.HasPrefix(row.answer, "2") {
					row.changed = "" // what a refusal ends, it ends once
					c.want(row, link.pageAnswer(row.answer), c.usePage)
				} else if slices.Contains(alsoByPage, row.state) {
					if link.byPage != "" {
						row.changed = link.byPage
					}
					c = cases.begin(row.state)
					c.want(row, link.pageAnswer(row.answer), c.usePage)
				}
			}
			cases.checkTenants()
		})
	}
}

// want uses the link as try does, and compares the answer and the rows.
func (c *linkCase) want(row linkRow, answer string, use func() string) {
	c.t.Helper()
	got, changed := c.try(use)
	if got != answer || changed != row.changed {
		c.t.Errorf("%s: answered %q, and changed %q, want %q %q", row.state, got, changed, answer, row.changed)
	}
	if strings.HasPrefix(row.answer, "2") {
		c.link.done(c)
	}
}

// checkTenants requires that nothing is left of tenants that were destroyed, such as an event in a
// trail that nobody reads, and that the trails hold.
func (l *linkCases) checkTenants() {
	l.t.Helper()
	for table, columns := range columnsOf(l.t, l.db) {
		if !slices.Contains(columns, "ifnull(tenant_id, 'NULL')") {
			continue
		}
		query := `SELECT count(*) FROM ` + table + ` WHERE tenant_id <> '' AND tenant_id NOT IN (SELECT id FROM tenants)`
		if n := storetest.Query[int](l.t, l.db, query); n > 0 {
			l.t.Errorf("%d rows of %s are of destroyed tenants", n, table)
		}
	}
	if n, err := l.Node.App.Audit.VerifyAll(l.t.Context()); n != 0 || err != nil {
		l.t.Errorf("the trails have %d faults, %v", n, err)
	}
}

// TestEveryCodeHasRows: each endpoint that takes the code of a mail is in the table.
func TestEveryCodeHasRows(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		for _, e := range d.operations(t) {
			if !e.takesJSON() || e.schema().Properties["token"] == nil {
				continue
			}
			if !slices.ContainsFunc(mailedLinks, func(l mailedLink) bool { return l.request == e.Request }) {
				t.Errorf("mailedLinks lacks %s", e.Request)
			}
		}
	})
}

// What the links change that work.
const (
	registered     = "events+1 invitations~1 memberships+1 users+1"
	registeredHere = "devices+1 events+2 invitations~1 memberships+1 sessions+1 users+1" // the page signs in, too
	joined         = "events+1 invitations~1 memberships+1"
	joinedByFactor = "challenges-1 events+1 factors~1 invitations~1 memberships+1"
	addressChanged = "email_changes~1 events+2 link_tokens+1 mails+1 memberships~2 users~1"                                    // in two tenants; and the old address can undo it
	factorsRemoved = "devices-3 events+2 factor_codes~1 factor_words~2 factors-1 mails+1 recovery_codes-10 sessions-1 users~1" // by the words of two tenants, and with a session in Globex
)

var mailedLinks = []mailedLink{
	{
		name: "complete-registration", request: "POST /api/v2/auth/complete-registration", page: "/accept/register", life: 7 * 24 * time.Hour,
		prepare: func(*linkCase) {}, mail: (*linkCase).mailInvitation, body: newPassword, done: (*linkCase).isMember, byPage: registeredHere,
		rows: []linkRow{
			{"plain", "200", registered},
			{"another's session", "200", registered},
			{"late", "410 invitation_expired", ""},
			{"just in time", "200", registered},
			{"used", "410 invitation_used", ""},
			{"replaced", "410 invitation_revoked", ""},
			{"replaced and used", "410 invitation_used", ""},
			{"frozen there", "403 tenant_frozen", ""},
			{"thawed everywhere", "200", registered},
			{"closing there", "403 tenant_closing", ""},
			{"destroyed there", "404 invitation_not_found", ""},
			{"asker demoted", "410 invitation_revoked", ""},
			{"asker suspended", "410 invitation_revoked", ""},
			{"asker resumed", "410 invitation_revoked", ""},
			{"asker removed", "410 invitation_revoked", ""},
			{"asker erased", "410 invitation_revoked", ""},
			{"revoked", "410 invitation_revoked", ""},
			{"domain refused", "410 invitation_revoked", ""},
			{"account meanwhile", "409 account_exists", ""},
			{"imported meanwhile", "410 invitation_revoked", ""},
		},
	},
	{
		name: "complete-registration of somebody elsewhere", request: "POST /api/v2/auth/complete-registration", page: "/accept/register", life: 7 * 24 * time.Hour,
		prepare: (*linkCase).inGlobex, mail: (*linkCase).mailInvitation, body: newPassword, done: (*linkCase).isMember,
		rows: []linkRow{
			{"plain", "409 account_exists", ""},
			{"own session", "409 account_exists", ""},
			{"suspended elsewhere", "409 account_exists", ""},
			{"removed elsewhere", "200", "events+1 invitations~1 memberships+1 users~1"},
			{"erased", "200", registered},
			{"destroyed elsewhere", "200", registered},
			{"new address", "200", registered},
		},
	},
	{
		name: "accept-invitation by the password", request: "POST /api/v2/auth/accept-invitation", page: "/accept/join", life: 7 * 24 * time.Hour,
		prepare: (*linkCase).inGlobex, mail: (*linkCase).mailInvitation, body: ownPassword, done: (*linkCase).isMember,
		rows: []linkRow{
			{"plain", "200", joined},
			{"own session", "200", joined},
			{"another's session", "200", joined},
			{"wrong password", "401 invalid_credentials", ""},
			{"late", "410 invitation_expired", ""},
			{"just in time", "200", joined},
			{"used", "410 invitation_used", ""},
			{"replaced", "410 invitation_revoked", ""},
			{"replaced and used", "410 invitation_used", ""},
			{"suspended elsewhere", "200", joined},
			{"removed elsewhere", "401 invalid_credentials", ""},
			{"erased", "401 invalid_credentials", ""},
			{"frozen there", "403 tenant_frozen", ""},
			{"frozen everywhere", "403 tenant_frozen", ""},
			{"thawed everywhere", "200", joined},
			{"closing there", "403 tenant_closing", ""},
			{"closing everywhere", "403 tenant_closing", ""},
			{"destroyed there", "404 invitation_not_found", ""},
			{"destroyed elsewhere", "401 invalid_credentials", ""},
			{"asker demoted", "410 invitation_revoked", ""},
			{"asker suspended", "410 invitation_revoked", ""},
			{"asker resumed", "410 invitation_revoked", ""},
			{"asker removed", "410 invitation_revoked", ""},
			{"asker erased", "410 invitation_revoked", ""},
			{"revoked", "410 invitation_revoked", ""},
			{"domain refused", "410 invitation_revoked", ""},
			{"imported meanwhile", "410 invitation_revoked", ""},
			{"new password", "200", joined},
			{"new address", "401 invalid_credentials", ""},
		},
	},
	{
		name: "accept-invitation by the session", request: "POST /api/v2/auth/accept-invitation", page: "/accept/join", life: 7 * 24 * time.Hour,
		prepare: (*linkCase).inGlobex, mail: (*linkCase).mailInvitation, body: onlyToken, done: (*linkCase).isMember,
		rows: []linkRow{
			{"plain", "401 unauthenticated", ""},
			{"own session", "200", joined},
			{"another's session", "403 wrong_account", ""},
			{"own session, used", "410 invitation_used", ""},
			{"new address, own session", "403 wrong_account", ""},
			{"own session, suspended elsewhere", "401 unauthenticated", ""},
		},
	},
	{
		name: "accept-invitation by the password and the factor", request: "POST /api/v2/auth/accept-invitation/second", page: "/accept/second", life: 7 * 24 * time.Hour,
		prepare: (*linkCase).inGlobexWithFactor, mail: (*linkCase).mailInvitationSecond, ready: (*linkCase).askForFactor, body: factorCode, done: (*linkCase).isMember,
		rows: []linkRow{
			{"plain", "200", joinedByFactor},
			{"own session", "200", joinedByFactor},
			{"another's session", "200", joinedByFactor},
			{"late", "410 invitation_expired", ""},
			{"just in time", "200", joinedByFactor},
			{"used", "410 invitation_used", ""},
			{"replaced", "410 invitation_revoked", ""},
			{"suspended elsewhere", "200", joinedByFactor},
			{"frozen there", "403 tenant_frozen", ""},
			{"closing there", "403 tenant_closing", ""},
			{"destroyed there", "404 invitation_not_found", ""},
			{"asker demoted", "410 invitation_revoked", ""},
			{"revoked", "410 invitation_revoked", ""},
			{"domain refused", "410 invitation_revoked", ""},
			{"replaced and used", "410 invitation_used", ""},
			{"removed elsewhere", "410 challenge_over", ""},
			{"erased", "410 challenge_over", ""},
			{"new password", "200", joinedByFactor},
			{"new address", "410 challenge_over", ""},
		},
	},
	{
		name: "reset", request: resetPath, page: "/reset/password", life: 30 * time.Minute,
		prepare: (*linkCase).inBoth, mail: (*linkCase).mailReset, body: newPassword, done: (*linkCase).hasPassword,
		rows: []linkRow{
			{"plain", "204", "devices-2 events+3 mails+1 resets~1 sessions-2 users~1"},
			{"own session", "204", "devices-2 events+3 mails+1 resets~1 sessions-2 users~1"},
			{"another's session", "204", "devices-2 events+3 mails+1 resets~1 sessions-2 users~1"},
			{"late", "410 reset_expired", ""},
			{"just in time", "204", "devices-2 events+3 mails+1 resets~1 sessions-2 users~1"},
			{"used", "410 reset_used", ""},
			{"replaced", "410 reset_expired", ""},
			{"replaced and used", "410 reset_expired", ""},
			{"suspended there", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"suspended elsewhere", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"suspended everywhere", "410 reset_expired", ""},
			{"resumed everywhere", "410 reset_expired", ""},
			{"removed there", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"removed elsewhere", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"removed everywhere", "410 reset_expired", ""},
			{"left everywhere", "410 reset_expired", ""},
			{"erased", "404 reset_not_found", ""},
			{"frozen there", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"frozen everywhere", "410 reset_expired", ""},
			{"thawed everywhere", "410 reset_expired", ""},
			{"closing there", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"closing everywhere", "410 reset_expired", ""},
			{"destroyed there", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"destroyed elsewhere", "204", "devices-2 events+1 mails+1 resets~1 sessions-1 users~1"},
			{"destroyed everywhere", "404 reset_not_found", ""},
			{"new password", "410 reset_expired", ""},
			{"new address", "410 reset_expired", ""},
		},
	},
	{
		name: "confirm by the code alone", request: confirmEmailPath, page: "/confirm-email/now", life: 30 * time.Minute,
		prepare: (*linkCase).inBoth, mail: (*linkCase).mailConfirm, body: onlyToken, done: (*linkCase).hasAddress,
		rows: []linkRow{
			{"plain", "401 unauthenticated", ""},
			{"own session", "204", addressChanged},
			{"another's session", "403 wrong_account", ""},
			{"own session, suspended elsewhere", "401 unauthenticated", ""},
		},
	},
	{
		name: "confirm", request: confirmEmailPath, page: "/confirm-email/now", life: 30 * time.Minute,
		prepare: (*linkCase).inBoth, mail: (*linkCase).mailConfirmTo, ready: (*linkCase).signIn, body: onlyToken, done: (*linkCase).hasAddress,
		rows: []linkRow{
			{"plain", "204", addressChanged},
			{"late", "410 email_change_over", ""},
			{"just in time", "204", addressChanged},
			{"used", "410 email_change_over", ""},
			{"replaced", "410 email_change_over", ""},
			{"replaced and used", "410 email_change_over", ""},
			{"suspended there", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~2 users~1"},
			{"suspended elsewhere", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~2 users~1"},
			{"suspended everywhere", "401 unauthenticated", ""},
			{"resumed everywhere", "204", addressChanged},
			{"removed there", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~1 users~1"},
			{"removed elsewhere", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~1 users~1"},
			{"removed everywhere", "401 unauthenticated", ""},
			{"left everywhere", "401 unauthenticated", ""},
			{"erased", "401 unauthenticated", ""},
			{"frozen there", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~2 users~1"},
			{"frozen everywhere", "401 unauthenticated", ""},
			{"thawed everywhere", "204", addressChanged},
			{"closing there", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~2 users~1"},
			{"closing everywhere", "401 unauthenticated", ""},
			{"destroyed there", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~1 users~1"},
			{"destroyed elsewhere", "204", "email_changes~1 events+1 link_tokens+1 mails+1 memberships~1 users~1"},
			{"destroyed everywhere", "401 unauthenticated", ""},
			{"new password", "410 email_change_over", ""},
			{"other sessions ended", "410 email_change_over", ""},
			{"change undone", "410 email_change_over", ""},
			{"address taken", "409 account_exists", ""},
			{"domain refused", "409 memberships_affected", ""},
		},
	},
	{
		name: "undo of a request", request: undoPath, page: "/undo-email/now", life: 7 * 24 * time.Hour,
		prepare: (*linkCase).inBoth, mail: (*linkCase).mailUndo, body: onlyToken, done: (*linkCase).hasAddress,
		rows: []linkRow{
			{"plain", "204", "devices-2 email_changes~1 events+3 link_tokens+1 mails+1 resets+1 sessions-2 users~1"},
			{"own session", "204", "devices-2 email_changes~1 events+3 link_tokens+1 mails+1 resets+1 sessions-2 users~1"},
			{"another's session", "204", "devices-2 email_changes~1 events+3 link_tokens+1 mails+1 resets+1 sessions-2 users~1"},
			{"late", "410 email_change_over", ""},
			{"just in time", "204", "devices-2 email_changes~1 events+2 link_tokens+1 mails+1 resets+1 sessions-2 users~1"},
			{"used", "410 email_change_over", ""},
			{"replaced", "204", "devices-2 email_changes~2 events+3 link_tokens+1 mails+1 resets+1 sessions-2 users~1"},
			{"replaced and used", "204", "email_changes~1 events+2 link_tokens+1 mails+1 resets+1 resets~1 users~1"},
			{"suspended there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"suspended elsewhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"suspended everywhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 users~1"},
			{"resumed everywhere", "204", "devices-2 email_changes~1 events+2 link_tokens+1 mails+1 resets+1 users~1"},
			{"removed there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"removed elsewhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"removed everywhere", "204", "email_changes~1 events+1 link_tokens+1 mails+1 resets+1 users~1"},
			{"left everywhere", "204", "email_changes~1 events+1 link_tokens+1 mails+1 resets+1 users~1"},
			{"erased", "404 email_change_not_found", ""},
			{"frozen there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"frozen everywhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 users~1"},
			{"thawed everywhere", "204", "devices-2 email_changes~1 events+2 link_tokens+1 mails+1 resets+1 users~1"},
			{"closing there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"closing everywhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 users~1"},
			{"destroyed there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"destroyed elsewhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"destroyed everywhere", "404 email_change_not_found", ""},
			{"new password", "204", "email_changes~1 events+3 link_tokens+1 mails+1 resets+1 sessions-1 users~1"},
			{"joined meanwhile", "204", "devices-2 email_changes~1 events+5 link_tokens+1 mails+3 memberships~1 resets+1 sessions-2 users~1"}, // suspended there, of which two hear
			{"domain refused", "204", "devices-2 email_changes~1 events+3 link_tokens+1 mails+1 resets+1 sessions-2 users~1"},
			{"new address", "204", "devices-2 email_changes~2 events+3 link_tokens+1 mails+2 memberships~2 resets+1 sessions-2 users~1"},
		},
	},
	{
		name: "undo of a change", request: undoPath, page: "/undo-email/now", life: 7 * 24 * time.Hour,
		prepare: (*linkCase).inBoth, mail: (*linkCase).mailUndoConfirmed, body: onlyToken, done: (*linkCase).hasAddress,
		rows: []linkRow{
			{"plain", "204", "devices-2 email_changes~1 events+3 link_tokens+1 mails+2 memberships~2 resets+1 sessions-2 users~1"},
			{"own session", "204", "devices-2 email_changes~1 events+3 link_tokens+1 mails+2 memberships~2 resets+1 sessions-2 users~1"},
			{"another's session", "204", "devices-2 email_changes~1 events+3 link_tokens+1 mails+2 memberships~2 resets+1 sessions-2 users~1"},
			{"late", "410 email_change_over", ""},
			{"just in time", "204", "devices-2 email_changes~1 events+2 link_tokens+1 mails+2 memberships~2 resets+1 sessions-2 users~1"},
			{"used", "410 email_change_over", ""},
			{"replaced", "204", "devices-2 email_changes~2 events+3 link_tokens+1 mails+2 memberships~2 resets+1 sessions-2 users~1"},
			{"replaced and used", "204", "email_changes~1 events+2 link_tokens+1 mails+2 memberships~2 resets+1 resets~1 users~1"},
			{"suspended there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~2 resets+1 sessions-1 users~1"},
			{"suspended elsewhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~2 resets+1 sessions-1 users~1"},
			{"suspended everywhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~2 resets+1 users~1"},
			{"resumed everywhere", "204", "devices-2 email_changes~1 events+2 link_tokens+1 mails+2 memberships~2 resets+1 users~1"},
			{"removed there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~1 resets+1 sessions-1 users~1"},
			{"removed elsewhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~1 resets+1 sessions-1 users~1"},
			{"removed everywhere", "204", "email_changes~1 events+1 link_tokens+1 mails+2 resets+1 users~1"},
			{"left everywhere", "204", "email_changes~1 events+1 link_tokens+1 mails+2 resets+1 users~1"},
			{"erased", "404 email_change_not_found", ""},
			{"frozen there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~2 resets+1 sessions-1 users~1"},
			{"frozen everywhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~2 resets+1 users~1"},
			{"thawed everywhere", "204", "devices-2 email_changes~1 events+2 link_tokens+1 mails+2 memberships~2 resets+1 users~1"},
			{"closing there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~2 resets+1 sessions-1 users~1"},
			{"closing everywhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~2 resets+1 users~1"},
			{"destroyed there", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~1 resets+1 sessions-1 users~1"},
			{"destroyed elsewhere", "204", "devices-2 email_changes~1 events+1 link_tokens+1 mails+2 memberships~1 resets+1 sessions-1 users~1"},
			{"destroyed everywhere", "404 email_change_not_found", ""},
			{"new password", "204", "email_changes~1 events+3 link_tokens+1 mails+2 memberships~2 resets+1 sessions-1 users~1"},
			{"joined meanwhile", "204", "devices-2 email_changes~1 events+5 link_tokens+1 mails+4 memberships~3 resets+1 sessions-2 users~1"},
			{"domain refused", "204", "devices-2 email_changes~1 events+4 link_tokens+1 mails+5 memberships~2 resets+1 sessions-2 users~1"},
			{"new address", "204", "devices-2 email_changes~2 events+3 link_tokens+1 mails+2 memberships~2 resets+1 sessions-2 users~1"},
			{"address taken", "409 account_exists", ""},
		},
	},
	{
		name: "factors/reset", request: resetFactorsPath, page: "/factors/reset/confirm", life: 24 * time.Hour,
		prepare: (*linkCase).inBothWithFactor, mail: (*linkCase).mailFactorReset, body: ownPassword, done: (*linkCase).hasNoFactor,
		rows: []linkRow{
			{"plain", "204", factorsRemoved},
			{"own session", "204", factorsRemoved},
			{"another's session", "204", factorsRemoved},
			{"wrong password", "401 invalid_credentials", ""},
			{"late", "410 reset_expired", ""},
			{"just in time", "204", factorsRemoved},
			{"used", "410 reset_used", ""},
			{"replaced", "410 reset_expired", ""},
			{"replaced and used", "410 reset_expired", ""},
			{"suspended there", "204", "devices-3 events+1 factor_codes~1 factor_words~1 factors-1 mails+1 recovery_codes-10 sessions-1 users~1"},
			{"suspended elsewhere", "204", "devices-3 events+1 factor_codes~1 factor_words~1 factors-1 mails+1 recovery_codes-10 users~1"},
			{"suspended everywhere", "410 reset_expired", "factor_codes~1"},
			{"resumed everywhere", "410 reset_expired", "factor_codes~1"},
			{"removed there", "204", "devices-3 events+1 factor_codes~1 factor_words~1 factors-1 mails+1 recovery_codes-10 sessions-1 users~1"},
			{"removed elsewhere", "204", "devices-3 events+1 factor_codes~1 factor_words~1 factors-1 mails+1 recovery_codes-10 users~1"},
			{"removed everywhere", "410 reset_expired", ""},
			{"left everywhere", "410 reset_expired", ""},
			{"erased", "404 reset_not_found", ""},
			{"frozen there", "204", "devices-3 events+1 factor_codes~1 factor_words~2 factors-1 mails+1 recovery_codes-10 sessions-1 users~1"},
			{"frozen everywhere", "410 reset_expired", "factor_codes~1"},
			{"thawed everywhere", "204", "devices-3 events+2 factor_codes~1 factor_words~2 factors-1 mails+1 recovery_codes-10 users~1"},
			{"closing there", "204", "devices-3 events+1 factor_codes~1 factor_words~2 factors-1 mails+1 recovery_codes-10 sessions-1 users~1"},
			{"closing everywhere", "410 reset_expired", "factor_codes~1"},
			{"destroyed there", "204", "devices-3 events+1 factor_codes~1 factor_words~1 factors-1 mails+1 recovery_codes-10 sessions-1 users~1"},
			{"destroyed elsewhere", "204", "devices-3 events+1 factor_codes~1 factor_words~1 factors-1 mails+1 recovery_codes-10 users~1"},
			{"destroyed everywhere", "404 reset_not_found", ""},
			{"asker demoted", "204", factorsRemoved},
			{"asker suspended", "204", factorsRemoved},
			{"asker removed", "204", factorsRemoved},
			{"asker erased", "204", factorsRemoved},
			{"word refused", "410 reset_expired", ""},
			{"word lapsed there", "410 reset_expired", "factor_codes~1"},
			{"joined meanwhile", "410 reset_expired", "factor_codes~1"},
			{"new password", "204", strings.TrimPrefix(factorsRemoved, "devices-3 ")},
			{"new address", "410 reset_expired", ""},
		},
	},
}
