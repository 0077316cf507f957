package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/pgtest"
)

// runDoctor runs doctor and returns what it prints and its exit code.
func runDoctor(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"doctor"}, args...))
	code := 0
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		code = exitCode(err)
	}
	return out.String(), code
}

// checkDoctorFails checks that doctor fails and prints all of the texts.
func checkDoctorFails(t *testing.T, args []string, texts ...string) {
	t.Helper()
	out, code := runDoctor(t, args...)
	if code == 0 {
		t.Errorf("doctor found no problem:\n%s", out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("doctor doesn't say %q:\n%s", text, out)
		}
	}
}

// openInstallation creates an installation that doctor finds no fault in, and returns its
// database and the flags that name it.
func openInstallation(t *testing.T, dsn string) (*sql.DB, []string) {
	t.Helper()
	createInstallation(t, dsn)
	db, err := openSQL(dsn, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	execSQL(t, db, `UPDATE mails SET state = 'sent'`)
	if out, code := runDoctor(t, "--database", dsn); code != 0 {
		t.Fatalf("doctor fails before anything is broken:\n%s", out)
	}
	return db, []string{"--database", dsn}
}

func execSQL(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorFindsFaultyRows: an old mail, a tenant without an OWNER, an edited event, and a model that this
// version can't read.
func TestDoctorFindsFaultyRows(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "doorward.db"), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			db, args := openInstallation(t, dsn)
			execSQL(t, db, `UPDATE mails SET state = 'queued', created_at = 0`)
			checkDoctorFails(t, args, "FAIL  mail queue     1 mail waits, one of them since 1970-01-01", "mail not sent yet")
			execSQL(t, db, `UPDATE mails SET state = 'sent'`)
			execSQL(t, db, `INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_ann', 'ann@people.example', '', 1)`)
			execSQL(t, db, `INSERT INTO memberships (tenant_id, user_id, role, status, name, created_at) SELECT id, 'usr_ann', 'USER', 'active', '', 1 FROM tenants`)
			execSQL(t, db, `UPDATE invitations SET state = 'REVOKED'`) // else an OWNER may come
			checkDoctorFails(t, args, "FAIL  owners         no active OWNER in ", "doorward user set-role")
			execSQL(t, db, `UPDATE memberships SET role = 'OWNER'`)
			execSQL(t, db, `UPDATE events SET action = 'user.remove' WHERE action = 'tenant.create'`)
			checkDoctorFails(t, args, "FAIL  audit trail    the trail of ", "was tampered with", `"doorward audit verify" shows where`)
			execSQL(t, db, `UPDATE events SET action = 'tenant.create' WHERE action = 'user.remove'`)
			execSQL(t, db, `UPDATE audit_chains SET last = last + 1`)
			checkDoctorFails(t, args, "FAIL  audit trail")
			execSQL(t, db, `UPDATE audit_chains SET last = last - 1`)
			execSQL(t, db, `INSERT INTO models (version, revision, text, created_at, created_by) VALUES (1, 1, 'actions: {}
policies: permit(principal, action, resource) when { never };', 0, '')`)
			checkDoctorFails(t, args, "FAIL  model          version 1 has faults, the first of 1 at 2:11: In the policies", `"doorward model show" prints it`)
			rows := 0
			if err := db.QueryRow(`SELECT count(*) FROM backups`).Scan(&rows); err != nil || rows != 0 {
				t.Errorf("doctor has left %d rows, %v", rows, err)
			}
		})
	}
}

// TestDoctorFindsALock: a program with an open write transaction.
func TestDoctorFindsALock(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	db, args := openInstallation(t, dsn)
	db.SetMaxOpenConns(1)
	execSQL(t, db, `BEGIN IMMEDIATE`)
	checkDoctorFails(t, args, "FAIL  writing        ", "database is locked", "fuser -v")
	execSQL(t, db, `ROLLBACK`)
}

// TestDoctorFindsAReadOnlyServer: a primary that became a standby, or is read-only. With sslmode=prefer, the default,
// pgx tries one server twice, with and without TLS; with target_session_attrs, or several servers, no connection is
// made to one that takes no writes.
func TestDoctorFindsAReadOnlyServer(t *testing.T) {
	dsn := pgtest.DSN(t)
	db, _ := openInstallation(t, dsn)
	var name string
	if err := db.QueryRow(`SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	execSQL(t, db, `ALTER DATABASE "`+name+`" SET default_transaction_read_only = on`)
	plain, _, _ := strings.Cut(dsn, "?")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	several := strings.Replace(plain, u.Host, u.Host+",localhost:"+u.Port(), 1)
	for dsn, check := range map[string]string{
		dsn:                       "writing ",
		plain:                     "writing ",
		plain + "?sslmode=prefer": "writing ",
		plain + "?target_session_attrs=read-write": "database",
		several: "database",
	} {
		checkDoctorFails(t, []string{"--database", dsn}, "FAIL  "+check+"       ", "read", "that it is not a standby")
		if _, code := runDoctor(t, "--database", dsn); code != exitUnavailable {
			t.Errorf("%s: doctor exits with %d, and other commands with %d", dsn, code, exitUnavailable)
		}
	}
	checkDoctorFails(t, []string{"--database", several + "?target_session_attrs=primary"}, "FAIL  writing        ", "read-only transaction")
}

// TestDoctorFindsAMissingStandby: commits wait for an absent standby. A rolled-back
// write doesn't show that.
func TestDoctorFindsAMissingStandby(t *testing.T) {
	pair := pgtest.StartPair(t)
	dsn := pair.DSN(t)
	createInstallation(t, dsn)
	db, err := openSQL(dsn, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	execSQL(t, db, `UPDATE mails SET state = 'sent'`)
	if out, code := runDoctor(t, "--database", dsn); code != 0 || !strings.Contains(out, "ok    replication    synchronous") {
		t.Fatalf("doctor fails before anything is broken:\n%s", out)
	}
	pair.Standby.Stop(t, pgtest.Fast)
	checkDoctorFails(t, []string{"--database", dsn}, "FAIL  replication    a commit has waited for a synchronous standby for 5s", "Start the standby")
}

// TestDoctorFindsDamage: corrupted pages.
func TestDoctorFindsDamage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doorward.db")
	db, args := openInstallation(t, "sqlite:"+file)
	var page, size int64
	err := db.QueryRow(`SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master WHERE name = 'devices'`).Scan(&page, &size)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, int(size)), (page-1)*size); err != nil {
		t.Fatal(err)
	}
	checkDoctorFails(t, args, "FAIL  pages          ", "restore the last backup")
}

// TestDoctorFindsAFullDisk runs on its own small disk.
func TestDoctorFindsAFullDisk(t *testing.T) {
	folder := onSmallDisk(t, 24)
	if folder == "" {
		return
	}
	dsn := "sqlite:" + filepath.Join(folder, "doorward.db")
	createInstallation(t, dsn)
	free := fillDisk(t, folder)
	full := "FAIL  space          only 0 MiB are free in " + folder
	checkDoctorFails(t, []string{"--database", dsn}, "FAIL  database       disk I/O error", full, "Free some space")
	free()
	db, err := openSQL(dsn, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	args := []string{"--database", dsn}
	execSQL(t, db, `UPDATE mails SET tries = 0`) // the database stays open, as that of a server
	free = fillDisk(t, folder)
	checkDoctorFails(t, args, "FAIL  writing        ", "The disk of the database is full", full)
	free()
	if out, code := runDoctor(t, args...); !strings.Contains(out, "ok    writing") || code == 0 {
		t.Errorf("exit code %d, want writing to be ok, and too little space, on a disk of 24 MiB:\n%s", code, out)
	}
}

// TestDoctorFindsARefusedSender: the mail server accepts everything except the sender,
// and no mail is sent.
func TestDoctorFindsARefusedSender(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	_, args := openInstallation(t, dsn)
	for reply, isAccepted := range map[string]bool{"250 ok": true, "550 5.7.1 you may not send as this": false, "451 try later": false} {
		server, received := startMailServer(t, reply, "250 ok")
		out, code := runDoctor(t, append(args, "--smtp", "smtp://"+server+"?tls=none")...)
		if isAccepted != (code == 0) || !isAccepted && (!strings.Contains(out, "FAIL  mail ") || !strings.Contains(out, reply[4:]) || !strings.Contains(out, "Set --mail-from")) {
			t.Errorf("%s: exit code %d\n%s", reply, code, out)
		}
		commands := <-received
		if !strings.Contains(commands, "MAIL FROM:<no-reply@localhost>") || strings.Contains(commands, "RCPT TO:<postmaster@example.com>") != isAccepted || strings.Contains(commands, "DATA") || isAccepted && !strings.Contains(commands, "RSET") {
			t.Errorf("%s: the commands were %q", reply, commands)
		}
	}
}

// TestDoctorFindsRefusedRelaying: the mail server accepts the sender, and no mail to other hosts.
func TestDoctorFindsRefusedRelaying(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	_, args := openInstallation(t, dsn)
	for reply, isFound := range map[string]bool{
		"554 5.7.1 <postmaster@example.com>: Relay access denied": true, "504 5.5.2 <box>: Helo command rejected: need fully-qualified hostname": true,
		"550 5.1.1 no such user": false, "450 4.2.0 greylisted": false,
	} {
		server, received := startMailServer(t, "250 ok", reply)
		out, code := runDoctor(t, append(args, "--smtp", "smtp://"+server+"?tls=none", "--base-url", "https://auth.example.com")...)
		if isFound != strings.Contains(out, "FAIL  mail ") || isFound && (!strings.Contains(out, reply[4:]) || !strings.Contains(out, "set --smtp-hello")) {
			t.Errorf("%s: exit code %d\n%s", reply, code, out)
		}
		if commands := <-received; !strings.Contains(commands, "EHLO auth.example.com\n") || strings.Contains(commands, "DATA") {
			t.Errorf("%s: the commands were %q", reply, commands)
		}
	}
}

// startMailServer serves one connection, and answers MAIL and RCPT with these replies. received gets
// the commands when the connection has ended.
func startMailServer(t *testing.T, reply, toRecipient string) (address string, received <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	all := make(chan string, 1)
	go func() {
		var text strings.Builder
		defer func() { all <- text.String() }()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "220 mail.example.com ready\r\n")
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			text.WriteString(lines.Text() + "\n")
			switch {
			case strings.HasPrefix(lines.Text(), "MAIL"):
				fmt.Fprint(conn, reply+"\r\n")
			case strings.HasPrefix(lines.Text(), "RCPT"):
				fmt.Fprint(conn, toRecipient+"\r\n")
			case lines.Text() == "QUIT":
				fmt.Fprint(conn, "221 bye\r\n")
				return
			default:
				fmt.Fprint(conn, "250 ok\r\n")
			}
		}
	}()
	return l.Addr().String(), all
}

// TestPgBouncer: doctor and serve refuse a pooler in the mode transaction or statement, and
// one that refuses a parameter of the DSN. The mode session works, without further settings there.
func TestPgBouncer(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	installed.Program(t, "pgbouncer", "pgbouncer")
	dsn := pgtest.DSN(t)
	createInstallation(t, dsn)
	for _, test := range []struct{ mode, parameter, says string }{
		{"session", "", ""},
		{"transaction", "", "set pool_mode = session"},
		{"statement", "", "set pool_mode = session"},
		{"session", "&statement_timeout=60000", "ignore_startup_parameters"},
	} {
		t.Run(test.mode+test.parameter, func(t *testing.T) {
			pooled := startPgBouncer(t, dsn, "pool_mode = "+test.mode) + test.parameter
			if test.says == "" {
				if out, _ := runDoctor(t, "--database", pooled); !strings.Contains(out, "ok    database       postgres answers") || !strings.Contains(out, "ok    writing") {
					t.Errorf("doctor says\n%s", out)
				}
				return
			}
			checkDoctorFails(t, []string{"--database", pooled}, "FAIL  database       a connection pooler, such as PgBouncer", test.says)
			if err := runInProcess("serve", "--listen", "localhost:0", "--database", pooled); err == nil || exitCode(err) != exitUnavailable || !strings.Contains(describe(err), test.says) {
				t.Errorf("serve: %v", err)
			}
		})
	}
}

// startPgBouncer starts a pooler in front of a database and returns its DSN.
func startPgBouncer(t *testing.T, dsn, settings string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listen := freeport.AddressOn("127.0.0.1")
	_, port, _ := net.SplitHostPort(listen)
	folder := t.TempDir()
	for _, f := range []string{folder, filepath.Dir(folder)} { // pgbouncer runs as another user
		if err := os.Chmod(f, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nauth_type = any\nunix_socket_dir =\ndefault_pool_size = 20\n%s\n",
		u.Hostname(), u.Port(), u.User.Username(), port, settings)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // it holds no secret
		t.Fatal(err)
	}
	cmd := exec.Command("pgbouncer", file)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // always fails: it was killed
		if t.Failed() {
			t.Logf("%s", log.String())
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(waitTimeout); ; <-tick.C {
		if conn, err := net.Dial("tcp", listen); err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it doesn't listen: %s", log.String())
		}
	}
	u.Host = listen
	return u.String()
}
