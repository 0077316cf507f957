package main

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/tlscert/certtest"
	"github.com/doorward/doorward/internal/waittest"
)

// startServe starts a server on a database, waits until it is ready, and returns its address.
func startServe(t *testing.T, dsn string, flags ...string) (address string) {
	t.Helper()
	address = freeport.AddressOn("localhost")
	var log bytes.Buffer
	cmd := exec.Command("doorward", append([]string{"serve", "--database", dsn, "--listen", address, "--smtp", "file:mail"}, flags...)...)
	cmd.Dir, cmd.Stderr = t.TempDir(), &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // always fails: it was killed
		if t.Failed() {
			t.Logf("%s", log.String())
		}
	})
	waittest.Until(t, "the server is ready", func() bool {
		res, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return address
}

// TestDoctorFindsABadCertificate: at the base URL and in the files, one that has ended, and one that ends soon.
func TestDoctorFindsABadCertificate(t *testing.T) {
	_, args := openInstallation(t, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"))
	authority := certtest.NewAuthority(t)
	for end, says := range map[time.Duration]string{-time.Hour: " ended at 20", 50 * time.Hour: " ends in 2 days, at 20", 400 * time.Hour: ""} {
		pair := authority.Pair(time.Now().Add(end))
		cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		gateway := httptest.NewUnstartedServer(http.NotFoundHandler())
		gateway.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		gateway.StartTLS()
		at := append(args[:len(args):len(args)], "--base-url", strings.Replace(gateway.URL, "127.0.0.1", "localhost", 1))
		certFile, keyFile := pair.WriteFiles(t, t.TempDir())
		files := append(args[:len(args):len(args)], "--tls-cert", certFile, "--tls-key", keyFile)
		if says == "" {
			for _, args := range [][]string{at, files} {
				if out, code := runDoctor(t, args...); code != 0 || !strings.Contains(out, "is valid until 20") {
					t.Errorf("exit code %d:\n%s", code, out)
				}
			}
		} else {
			checkDoctorFails(t, at, "FAIL  base URL host  its certificate"+says, "Renew the certificate of localhost:")
			checkDoctorFails(t, files, "FAIL  certificate    the certificate in --tls-cert"+says, "Renew it, and replace both files")
		}
		gateway.Close()
	}
	gateway := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is for example.com and 127.0.0.1
	defer gateway.Close()
	checkDoctorFails(t, append(args, "--base-url", strings.Replace(gateway.URL, "127.0.0.1", "localhost", 1)), "FAIL  base URL host  browsers refuse its certificate: certificate is valid for", "not localhost")
}

// TestDoctorFindsADeadBaseURL: a name without a record, and a host where nothing listens.
func TestDoctorFindsADeadBaseURL(t *testing.T) {
	_, args := openInstallation(t, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"))
	checkDoctorFails(t, append(args, "--base-url", "https://auth.invalid"), "FAIL  base URL host  the name auth.invalid doesn't resolve", "Correct --base-url, or the DNS record")
	// 0.0.0.0 is this machine, and doesn't look like it.
	checkDoctorFails(t, append(args, "--base-url", "https://0.0.0.0:1"), "FAIL  base URL host  https://0.0.0.0:1 can't be reached", "connection refused", "Check that the gateway in front runs")
}

// TestDoctorFindsAnUntrustedProxy: people come through a proxy that isn't among --trusted-proxies.
func TestDoctorFindsAnUntrustedProxy(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	_, args := openInstallation(t, dsn)
	address := startServe(t, dsn)
	args = append(args, "--listen", address)
	if out, code := runDoctor(t, args...); code != 0 || !strings.Contains(out, "ok    hashing") {
		t.Fatalf("exit code %d before there is a proxy:\n%s", code, out)
	}
	target, err := url.Parse("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
	}})
	defer proxy.Close()
	res, err := http.Get(proxy.URL + "/login")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	checkDoctorFails(t, args, "FAIL  proxies        requests with X-Forwarded-For come from an address that is not in --trusted-proxies", "Add the proxy's address, which the server's log names")
}

// TestDoctorFindsAFullPool: more people sign in than passwords can be hashed.
func TestDoctorFindsAFullPool(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	_, args := openInstallation(t, dsn)
	address := startServe(t, dsn, "--limit-login-ip", "0", "--limit-login-account", "0", "--password-time", "20")
	stop := make(chan struct{})
	var people sync.WaitGroup
	for range 32 {
		people.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := http.Post("http://"+address+"/api/v2/auth/login", "application/json", strings.NewReader(`{"email":"ann@acme.example","password":"is it this one, then?"}`))
				if err == nil {
					res.Body.Close()
				}
			}
		})
	}
	out := ""
	waittest.Until(t, "doctor finds the pool full", func() bool {
		out, _ = runDoctor(t, append(args, "--listen", address)...)
		return strings.Contains(out, "FAIL  hashing        all ") && strings.Contains(out, "callers wait") && strings.Contains(out, "doorward audit search --action session.open")
	})
	close(stop)
	people.Wait()
}

// TestDoctorFindsWhatStopsWebhooks: a dead endpoint, deliveries that nobody tries, a pause, and a dropped index.
func TestDoctorFindsWhatStopsWebhooks(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "doorward.db"), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			db, args := openInstallation(t, dsn)
			key := filepath.Join(t.TempDir(), "master.key")
			run := func(command ...string) {
				t.Helper()
				if err := runInProcess(append(command, args...)...); err != nil {
					t.Fatalf("%s: %v", command, err)
				}
			}
			if err := runInProcess("key", "create-master", key); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--master-key-file", key)
			run("webhook", "create", "--url", "http://localhost:1/hook?secret", "--events", "*")
			args = args[:2]
			run("key", "create-operator", "--name", "signup")
			startServe(t, dsn, "--master-key-file", key)
			waittest.Until(t, "the endpoint has failed", func() bool {
				failed := 0
				return db.QueryRow(`SELECT count(*) FROM webhooks WHERE failing_since IS NOT NULL`).Scan(&failed) == nil && failed == 1
			})
			execSQL(t, db, `UPDATE webhooks SET failing_since = failing_since - 61000000`)
			checkDoctorFails(t, append(args, "--master-key-file", key), "FAIL  webhooks       whk_", " of the installation to localhost:1 fails since 20", "doorward webhook queue list")
			if out, _ := runDoctor(t, args...); strings.Contains(out, "?secret") {
				t.Errorf("it shows the query of the URL:\n%s", out)
			}
			run("webhook", "queue", "pause", "--reason", "the endpoint moves")
			checkDoctorFails(t, args, "FAIL  queues         Deliveries to webhooks have been paused since 20", ": the endpoint moves", `"doorward webhook queue resume"`, "ok    webhooks")
			run("mail", "queue", "pause")
			execSQL(t, db, `INSERT INTO queue_pauses (queue, scope, since, reason) VALUES ('webhook', 'tnt_a', 0, ''), ('webhook', 'whk_a', 0, '')`)
			checkDoctorFails(t, args, `"doorward mail queue resume"`, `"doorward webhook queue resume"`, `"doorward webhook queue resume --tenant tnt_a"`, `"doorward webhook queue resume --webhook whk_a"`)
			execSQL(t, db, `UPDATE webhook_deliveries SET next_at = 0`)
			execSQL(t, db, `DELETE FROM queue_pauses`)
			execSQL(t, db, `UPDATE webhooks SET enabled = FALSE, disabled_reason = 'failing'`)
			checkDoctorFails(t, args, "FAIL  webhooks       whk_", "was disabled, since it failed for days")
			execSQL(t, db, `DROP INDEX mails_due`)
			checkDoctorFails(t, args, "FAIL  indexes        missing, or not valid: mails_due", "CREATE INDEX mails_due ON mails (next_at, id) WHERE state = 'queued';")
		})
	}
}

// TestDoctorFindsWaitingDeliveries: deliveries are due, and no server runs.
func TestDoctorFindsWaitingDeliveries(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	db, args := openInstallation(t, dsn)
	execSQL(t, db, `INSERT INTO webhooks (id, tenant_id, url, events, about, include, enabled, public_key, secret_sealed, private_sealed, created_at) VALUES ('whk_a', '', 'https://hooks.example.com/', '*', '', '', TRUE, '', x'00', x'00', 0)`)
	execSQL(t, db, `INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, state, urgent, tries, step, next_at, created_at, attempts) VALUES ('whd_a', 'whk_a', 'evt_a', 'key.create', 'pending', TRUE, 0, 0, 0, 0, '[]')`)
	checkDoctorFails(t, args, "FAIL  webhook queue  1 delivery waits, one of them is due since 1970-01-01", "Is a server running, with the master key?")
}
