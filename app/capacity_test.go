package app_test

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/internal/secret"
)

// sizeTolerance is how far a size may be from the documented one: pages of indexes are between half full
// and full, a test fills fewer of them than an installation does, and documents round.
const sizeTolerance = 0.25

func checkSize(t *testing.T, document, what string, is, documented float64) {
	t.Helper()
	t.Logf("%s takes %.0f B, documented %.0f B", what, is, documented)
	if off := is/documented - 1; off < -sizeTolerance || off > sizeTolerance {
		t.Errorf("%s takes %.0f B with its indexes; docs/%s says %.0f: correct the page, and what it calculates with that", what, is, document, documented)
	}
}

// TestSizesInDocuments compares the sizes of rows in the documents with those in databases that real
// actions fill. Sizes depend on the versions of the databases, not on the machine.
func TestSizesInDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("needs PostgreSQL and thousands of transactions")
	}
	t.Parallel()
	sizes := sizesInPostgres(t)
	documented := documentedSizes(t)
	for row, table := range sizedTables {
		checkSize(t, "capacity.md", row, sizes[table], documented[table])
	}
	checkPlan(t, documented)
	million := aMillionEvents.FindStringSubmatch(page(t, "operations.md"))
	if million == nil {
		t.Fatalf("docs/operations.md has no text like %s", aMillionEvents)
	}
	checkSize(t, "operations.md", "an event on SQLite", sizesInSQLite(t)["events"], number(t, million[1])*1e3)
	checkSize(t, "operations.md", "an event on PostgreSQL", sizes["events"], number(t, million[2])*1e3)
}

// aMillionEvents is a sentence of docs/operations.md.
var aMillionEvents = regexp.MustCompile(`A million events,[^.]*? take\s+([0-9.]+) GB on SQLite\s+and\s+([0-9.]+) GB on\s+PostgreSQL`)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// number reads 1,600 and 3.2.
func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sizedTables are the tables whose rows docs/capacity.md has a size for, by what it calls a row.
var sizedTables = map[string]string{
	"an account": "users", "a membership": "memberships", "a session": "sessions", "a known browser": "devices",
	"an invitation": "invitations", "a link in a mail": "link_tokens", "a mail": "mails", "an audit event": "events",
}

// documentedSize is a line such as "| *e* | row of an audit event | 1,500 B |".
var documentedSize = regexp.MustCompile(`(?m)^\|[^|]*\| row of ([^|]*) \| ([0-9,]+) B \|$`)

func documentedSizes(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, found := range documentedSize.FindAllStringSubmatch(page(t, "capacity.md"), -1) {
		if sizedTables[found[1]] == "" {
			t.Fatalf("docs/capacity.md: %s: the row has no table in this test", found[0])
		}
		all[sizedTables[found[1]]] = number(t, found[2])
	}
	if len(all) != len(sizedTables) {
		t.Fatalf("docs/capacity.md has sizes of %d rows, want %d", len(all), len(sizedTables))
	}
	return all
}

// checkPlan compares the bytes for each session in the plan of docs/capacity.md with the sizes above it.
func checkPlan(t *testing.T, size map[string]float64) {
	t.Helper()
	for row, want := range map[string]float64{
		"people and sessions on disk":               size["users"] + size["memberships"] + size["sessions"] + 2*size["devices"],
		"audit events a year":                       1.5 * 365 * size["events"],
		"invitations a year, one person in ten new": 0.1 * (size["invitations"] + size["link_tokens"] + size["mails"] + 2*size["events"]),
	} {
		found := regexp.MustCompile(`(?m)^\| ` + row + ` \| [^|]* \| [^|]* \| ([0-9.,]+) ([MG]B) \|`).FindStringSubmatch(page(t, "capacity.md"))
		if found == nil {
			t.Fatalf("docs/capacity.md has no row %q", row)
		}
		perSession := number(t, found[1]) * map[string]float64{"MB": 1, "GB": 1e3}[found[2]] // of a million
		if off := perSession/want - 1; off < -0.05 || off > 0.05 {
			t.Errorf("docs/capacity.md: %s: a million sessions take %.0f MB by the sizes above, not %s %s", row, want, found[1], found[2])
		}
	}
}

// sizedRows is how many rows a test adds to each table. The pages of an index of random keys are split nearly at the same
// time, here at about 620 rows: shortly after that, chance decides how many have been.
const sizedRows = 1000

// pagesInPostgres asks for the bytes of a table and its indexes without their maps of free space: VACUUM makes
// those whenever it comes by, and they are as large as some tables of this test.
const pagesInPostgres = `SELECT sum(pg_relation_size(c.oid)) FROM pg_class c
	WHERE c.oid = CAST($1 AS regclass) OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = CAST($1 AS regclass))`

// sizesInPostgres returns the bytes of a row of each table, with its indexes.
func sizesInPostgres(t *testing.T) map[string]float64 {
	t.Helper()
	engine := apptest.Postgres
	engine.Nodes = 1
	f := apptest.New(t, engine, apptest.NoLimits, time.Now)
	db, err := sql.Open("pgx", f.DSN)
	f.NoError(err)
	return fill(f, db, pagesInPostgres)
}

// sizesInSQLite is sizesInPostgres for SQLite.
func sizesInSQLite(t *testing.T) map[string]float64 {
	t.Helper()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, time.Now)
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(f.DSN, "sqlite:")+"?mode=ro&_pragma=busy_timeout(10000)")
	f.NoError(err)
	return fill(f, db, `SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = $1)`)
}

// fill imports people, invites others, signs people in with a browser and out again. It returns the
// bytes of a row of each table that grows by that.
func fill(f *apptest.Fixture, db *sql.DB, sizeOf string) map[string]float64 {
	f.Helper()
	f.Cleanup(func() { db.Close() })
	acme, owner := f.Tenant()
	m := sizing{Fixture: f, db: db, sizeOf: sizeOf, owner: owner, tenantID: acme.ID, bytes: map[string]float64{}}
	m.grow(m.importPeople, "users", "memberships")
	m.grow(m.invitePeople, "invitations", "link_tokens", "mails")
	m.grow(func() {
		m.grow(m.signIn, "sessions", "devices")
		m.signOut()
	}, "events")
	return m.bytes
}

// sizing fills a database and measures how its tables grow.
type sizing struct {
	*apptest.Fixture
	db       *sql.DB
	sizeOf   string // a query for the bytes of a table with its indexes
	owner    apptest.Person
	tenantID string
	bytes    map[string]float64 // of a row of each table
	people   []apptest.Person
}

// read returns the bytes of a table with its indexes, and how many rows it has.
func (m *sizing) read(table string) (bytes, rows int64) {
	m.Helper()
	m.NoError(m.db.QueryRowContext(m.Context(), m.sizeOf, table).Scan(&bytes))
	m.NoError(m.db.QueryRowContext(m.Context(), `SELECT count(*) FROM `+table).Scan(&rows))
	return bytes, rows
}

// grow notes by how much fill makes the tables grow for each row.
func (m *sizing) grow(fill func(), tables ...string) {
	m.Helper()
	bytes, rows := map[string]int64{}, map[string]int64{}
	for _, table := range tables {
		bytes[table], rows[table] = m.read(table)
	}
	fill()
	for _, table := range tables {
		size, n := m.read(table)
		if n-rows[table] < sizedRows {
			m.Fatalf("%s got %d rows, want at least %d", table, n-rows[table], sizedRows)
		}
		m.bytes[table] = float64(size-bytes[table]) / float64(n-rows[table])
	}
}

func (m *sizing) email(i int) string { return fmt.Sprintf("ada.lovelace%06d@example.com", i) }

// importPeople adds people with passwords.
func (m *sizing) importPeople() {
	hash := m.Account(m.owner).PasswordHash
	list := roster.List{}
	for i := range sizedRows {
		list.People = append(list.People, roster.Person{Line: i + 1, Email: m.email(i), Role: doorward.RoleUser, Name: "Ada Lovelace", Status: doorward.UserActive, PasswordHash: hash})
	}
	_, err := m.Node(0).Users.Import(m.Context(), apptest.Operator, m.tenantID, list, false)
	m.NoError(err)
}

// invitePeople sends invitations, with their mails.
func (m *sizing) invitePeople() {
	for i := range sizedRows {
		offer := apptest.Offer("new."+m.email(i), doorward.RoleUser)
		offer.Name = "Grace Hopper"
		_, err := m.Node(0).Invitations.Send(m.Context(), m.owner.Caller, offer)
		m.NoError(err)
	}
	m.NoError(m.Node(0).Mail.Deliver(m.Context()))
}

// visitor returns caller i with what an HTTP request says about it.
func (m *sizing) visitor(i int) doorward.Caller {
	by := apptest.Anonymous(i)
	by.RequestID = fmt.Sprintf("req_%026d", i)
	by.UserAgent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
	return by
}

func (m *sizing) signIn() {
	for i := range sizedRows {
		r, err := apptest.SignedIn(m.Node(0).Login.WithPassword(m.Context(), m.visitor(i), m.email(i), apptest.FirstPassword, ""))
		m.NoError(err)
		m.people = append(m.people, apptest.PersonOf(r))
	}
}

func (m *sizing) signOut() {
	for i, p := range m.people {
		by := m.visitor(sizedRows + i)
		by.Principal = p.Principal
		_, err := m.Node(0).Sessions.End(m.Context(), by, []secret.Token{p.Token})
		m.NoError(err)
	}
}
