package tlscert_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/internal/tlscert"
	"github.com/doorward/doorward/internal/tlscert/certtest"
)

// serial returns the serial number of the certificate for a handshake.
func serial(t *testing.T, s tlscert.Source) int64 {
	t.Helper()
	cert, err := s.Config().GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.Int64()
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

// load returns a source with a pair in a folder, and its log.
func load(t *testing.T, p certtest.Pair, folder string) (*tlscert.Files, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	cert, key := p.WriteFiles(t, folder)
	f := tlscert.NewFiles(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	return f, &log
}

func TestRaceNewFilesAreLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, folder := certtest.NewAuthority(t), t.TempDir()
		f, _ := load(t, ca.Pair(tomorrow()), folder)
		go f.Run(t.Context())
		next := ca.Pair(time.Now().Add(36 * time.Hour))
		next.WriteFiles(t, folder)
		<-time.After(6 * time.Second)
		synctest.Wait()
		if got := serial(t, f); got != next.Serial {
			t.Errorf("certificate %d is in use, want the new one, %d", got, next.Serial)
		}
		if got, want := f.Expires(), time.Now().Add(30*time.Hour); got.Before(want) {
			t.Errorf("it expires at %v, want the new one's expiry, after %v", got, want)
		}
	})
}

// Kubernetes changes the target of a symbolic link to a folder.
func TestFilesBehindALinkAreLoaded(t *testing.T) {
	ca, root := certtest.NewAuthority(t), t.TempDir()
	for _, folder := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target string) {
		if err := errors.Join(os.Symlink(target, filepath.Join(root, "new")), os.Rename(filepath.Join(root, "new"), filepath.Join(root, "data"))); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	f, _ := load(t, ca.Pair(tomorrow()), filepath.Join(root, "data"))
	next := ca.Pair(tomorrow())
	next.WriteFiles(t, filepath.Join(root, "two"))
	link("two")
	f.Reload()
	if got := serial(t, f); got != next.Serial {
		t.Errorf("certificate %d is in use, want the new one, %d", got, next.Serial)
	}
}

func TestBrokenFilesLeaveTheOldPair(t *testing.T) {
	for name, harm := range map[string]func(ca *certtest.Authority, cert, key string){
		"no PEM":            func(_ *certtest.Authority, cert, _ string) { certtest.Replace(t, cert, []byte("nonsense")) },
		"empty":             func(_ *certtest.Authority, _, key string) { certtest.Replace(t, key, nil) },
		"another one's key": func(ca *certtest.Authority, _, key string) { certtest.Replace(t, key, ca.Pair(tomorrow()).Key) },
		"gone":              func(_ *certtest.Authority, cert, _ string) { os.Remove(cert) },
		"past": func(ca *certtest.Authority, cert, _ string) {
			ca.Pair(time.Now().Add(-time.Hour)).WriteFiles(t, filepath.Dir(cert))
		},
		"key as certificate": func(ca *certtest.Authority, cert, key string) {
			p := ca.Pair(tomorrow())
			certtest.Replace(t, cert, p.Key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ca, folder := certtest.NewAuthority(t), t.TempDir()
			old := ca.Pair(tomorrow())
			f, log := load(t, old, folder)
			harm(ca, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
			f.Reload()
			f.Reload()
			if got := serial(t, f); got != old.Serial {
				t.Errorf("certificate %d is in use, want the old one, %d", got, old.Serial)
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
				t.Errorf("two reloads made %d errors in the log, want 1:\n%s", n, log)
			}
			if strings.Contains(log.String(), "PRIVATE KEY") {
				t.Errorf("the key is in the log:\n%s", log)
			}
			next := ca.Pair(tomorrow())
			next.WriteFiles(t, folder)
			f.Reload()
			if got := serial(t, f); got != next.Serial {
				t.Errorf("after the repair certificate %d is in use, want the new one, %d", got, next.Serial)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	ca, folder := certtest.NewAuthority(t), t.TempDir()
	if err := tlscert.NewFiles(filepath.Join(folder, "no"), filepath.Join(folder, "no"), slog.Default()).Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without files: %v, want fs.ErrNotExist", err)
	}
	// A server with an expired certificate still starts.
	if _, log := load(t, ca.Pair(time.Now().Add(-time.Hour)), folder); !strings.Contains(log.String(), "browsers will refuse") {
		t.Errorf("an expired certificate causes no warning: %s", log)
	}
	if _, err := tlscert.NewFiles("a", "b", slog.Default()).Config().GetCertificate(nil); err == nil {
		t.Error("a handshake before Load succeeds")
	}
	if end := tlscert.NewFiles("a", "b", slog.Default()).Expires(); !end.IsZero() {
		t.Errorf("a certificate that was never loaded expires at %v", end)
	}
}

func TestACMEFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "on", "the", "way")
	source := tlscert.NewACME("door.test.example", folder, "https://localhost/dir", "", slog.Default())
	if err := source.Load(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("the folder has %v in it, %v, want nothing", left, err)
	}
	if _, err := source.Config().GetCertificate(&tls.ClientHelloInfo{ServerName: "door.test.example"}); err == nil {
		t.Error("a handshake succeeds before there is a certificate")
	}
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tlscert.NewACME("door.test.example", file, "", "", slog.Default()).Load(); err == nil {
		t.Error("a file is accepted as the folder")
	}
}
