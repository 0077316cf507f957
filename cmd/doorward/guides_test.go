package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
)

// The how-to pages, followed from the first block to the last.

func TestAPIKeysPage(t *testing.T) { follow(t, "../../docs/api-keys.md") }

func TestModelPage(t *testing.T) { follow(t, "../../docs/model.md") }

// TestTextsPage follows docs/pages.md, whose only commands are about texts.
func TestTextsPage(t *testing.T) { follow(t, "../../docs/pages.md") }

func TestOtherOriginsPage(t *testing.T) { follow(t, "../../docs/other-origins.md") }

func TestInvitingPage(t *testing.T) { follow(t, "../../docs/invite-from-a-backend.md") }

// TestAuditPage follows docs/audit.md, on an installation with a tenant.
func TestAuditPage(t *testing.T) {
	skipPages(t)
	database := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	createInstallation(t, database)
	t.Setenv("DOORWARD_DATABASE", database)
	if out, err := exec.Command("doorward", "key", "create-operator", "--name", "billing-sync").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	follow(t, "../../docs/audit.md")
}

// TestIncidentsPage does what docs/incidents.md says to do when something was stolen.
func TestIncidentsPage(t *testing.T) { follow(t, "../../docs/incidents.md") }

func TestRotatingPage(t *testing.T) { follow(t, "../../docs/rotate.md") }

// TestNginxPage follows docs/nginx.md, with three free ports.
func TestNginxPage(t *testing.T) {
	skipPages(t)
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	installed.Program(t, "nginx", "nginx")
	installed.Program(t, "openssl", "openssl")
	secure, plain := freeport.AddressOn("localhost"), freeport.AddressOn("localhost")
	runner := newRunner(t, ":8443", strings.TrimPrefix(secure, "localhost"), "127.0.0.1:8080", plain, "127.0.0.1:8081", freeport.AddressOn("127.0.0.1"))
	runner.Env = []string{"DOORWARD_LISTEN=" + plain}
	runner.RunPage(t, "../../docs/nginx.md")
}

// TestServicePage follows docs/protect-a-service.md, beside this checkout.
func TestServicePage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the page builds a program; make test runs it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// Looked at, so that go test reruns this test when the client changes.
	sources, _ := filepath.Glob(filepath.Join(root, "client", "*.go"))
	for _, file := range sources {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	runner := newRunner(t, "=../doorward/client", "='"+root+"/client'", "localhost:8092", freeport.AddressOn("localhost"))
	runner.Env = append(runner.Env, "GOPROXY=off", "GOWORK=off")
	runner.RunPage(t, "../../docs/protect-a-service.md")
}
